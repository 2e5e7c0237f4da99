/* SPDX-License-Identifier: MIT */
/*
 * What the tapes in traces/samples hold: shared by the program that made them and the test that
 * reads them. The samples stay for ever, so none of this may change: a new version of the
 * format gets new samples.
 */
#ifndef TESTS_TAPE_SAMPLES_H
#define TESTS_TAPE_SAMPLES_H

#include <stdio.h>

#include "traces/trace.h"

#define SAMPLE_OPS     1000u
#define SAMPLE_FILES   20u
#define SAMPLE_STREAMS 4u

#define SAMPLE_BIG_FILES   5000u
#define SAMPLE_BIG_STREAMS 200u

static inline uint32_t sample_mix(uint32_t number)
{
    number = (number ^ number >> 16) * 0x7feb352du;
    number = (number ^ number >> 15) * 0x846ca68bu;
    return number ^ number >> 16;
}

static inline void sample_op(struct trace_op *op, uint32_t number, bool result)
{
    uint32_t mix = sample_mix(number);

    *op = (struct trace_op)TRACE_OP_INIT;
    op->issue_ns = (int64_t)number * 1000 + mix % 700;
    op->kind = mix >> 28 == 0 ? TRACE_FSYNC : (uint8_t)(mix >> 27 & 1);
    op->api = TRACE_API_IO_URING;
    op->file = mix % SAMPLE_FILES;
    op->stream = mix >> 8 & 3;
    op->flags = op->kind == TRACE_WRITE ? TRACE_F_DIRECT | TRACE_F_DSYNC : TRACE_F_DIRECT;
    if (op->kind != TRACE_FSYNC) {
        op->length = 4096u << (mix >> 5 & 3);
        op->offset = (uint64_t)(mix >> 10 & 0xffff) * 4096;
    }
    op->result = mix % 97 == 0 ? -5 : (int64_t)op->length;
    op->batch = number / 8;
    if (mix % 50 != 0) {
        op->completion = TRACE_COMPLETION_EXACT;
        op->latency_ns = 50000 + mix % 90000;
    }
    if (result) {
        op->due_ns = op->issue_ns - (int64_t)(mix % 60);
        op->submit_ns = 900 + mix % 300;
        op->ref = number;
        op->cause = mix % 31 == 0 ? TRACE_CAUSE_WAKEUP : TRACE_CAUSE_NONE;
    }
}

static inline void sample_file(struct trace_file *file, char *path, size_t size,
                               uint32_t number)
{
    snprintf(path, size, "/srv/data/%u/table-%u.db", number / 100, number);
    *file = (struct trace_file){
        .path = path,
        .size_bytes = number % 7 ? (uint64_t)number << 20 : TRACE_UNKNOWN_U64,
        .inode = 1000 + number,
        .device = 8u << 20 | 1,
        .mode = 0640,
        .flags = number % 3 ? 0 : TRACE_FILE_SPARSE,
        .kind = TRACE_FILE_REGULAR,
    };
}

static inline void sample_stream(struct trace_stream *stream, char *comm, size_t size,
                                 uint32_t number)
{
    snprintf(comm, size, "worker-%u", number);
    *stream = (struct trace_stream){.pid = 700, .tid = 700 + number, .ppid = 1, .comm = comm};
}

#endif
