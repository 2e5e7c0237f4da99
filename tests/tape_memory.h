/* SPDX-License-Identifier: MIT */
/* Tapes in memory, for the unit tests of traces/. Include after <cmocka.h>. */
#ifndef TESTS_TAPE_MEMORY_H
#define TESTS_TAPE_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "traces/diag.h"
#include "traces/trace.h"

#define TAPE_FILES   12
#define TAPE_STREAMS 5

/* Bytes of a tape; as a sink it grows, as a source at is the read position. */
struct tape {
    uint8_t *data;
    size_t length, capacity;
    size_t at;
    bool closed, kept;
    size_t fail_at; /* the sink fails beyond this many bytes; 0: never */
    int fail_with;
};

static inline int tape_sink_write(void *context, const void *buffer, size_t bytes)
{
    struct tape *tape = context;

    if (tape->fail_at > 0 && tape->length + bytes > tape->fail_at)
        return tape->fail_with;
    if (tape->length + bytes > tape->capacity) {
        tape->capacity = (tape->length + bytes) * 2;
        tape->data = realloc(tape->data, tape->capacity);
        assert_non_null(tape->data);
    }
    memcpy(tape->data + tape->length, buffer, bytes);
    tape->length += bytes;
    return 0;
}

static inline int tape_sink_close(void *context, bool keep)
{
    struct tape *tape = context;

    tape->closed = true;
    tape->kept = keep;
    return 0;
}

static inline void tape_sink(struct tape *tape, struct trace_sink *ret_sink)
{
    *ret_sink = (struct trace_sink){
        .write = tape_sink_write, .close = tape_sink_close, .context = tape, .name = "memory"};
}

/* A pipe gives odd numbers of bytes at once. */
static inline int64_t tape_source_read(void *context, void *buffer, size_t bytes)
{
    struct tape *tape = context;
    size_t left = tape->length - tape->at, now = bytes < left ? bytes : left;

    if (now > 1237)
        now = 1237;
    if (now > 0)
        memcpy(buffer, tape->data + tape->at, now);
    tape->at += now;
    return (int64_t)now;
}

static inline int64_t tape_source_pread(void *context, void *buffer, size_t bytes,
                                        uint64_t offset)
{
    struct tape *tape = context;
    size_t now;

    if (offset >= tape->length)
        return 0;
    now = tape->length - (size_t)offset;
    if (now > bytes)
        now = bytes;
    memcpy(buffer, tape->data + offset, now);
    return (int64_t)now;
}

static inline void tape_source(struct tape *tape, bool pipe, struct trace_source *ret_source)
{
    tape->at = 0;
    *ret_source = (struct trace_source){
        .read = tape_source_read,
        .pread = pipe ? NULL : tape_source_pread,
        .size_bytes = pipe ? TRACE_UNKNOWN_U64 : tape->length,
        .context = tape,
        .name = "memory",
    };
}

static inline struct trace_reader *tape_open(struct tape *tape, bool pipe)
{
    struct trace_source source;
    struct trace_reader *reader;

    tape_source(tape, pipe, &source);
    assert_int_equal(trace_reader_open(&reader, &source, NULL), 0);
    return reader;
}

static inline uint64_t tape_random(uint64_t *seed)
{
    uint64_t z = (*seed += 0x9e3779b97f4a7c15u);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Operations of every kind with all sorts of values, unknown ones too. Freed by the caller. */
static inline struct trace_op *tape_ops(size_t count, uint64_t seed, bool result)
{
    struct trace_op *ops = calloc(count ? count : 1, sizeof(*ops));
    int64_t now_ns = 0;

    assert_non_null(ops);
    for (size_t i = 0; i < count; i++) {
        uint64_t r = tape_random(&seed), s = tape_random(&seed);
        struct trace_op op = TRACE_OP_INIT;

        now_ns += (int64_t)(r % 100000);
        op.issue_ns = now_ns;
        op.kind = r >> 60 ? r >> 8 & 1 : (r >> 8) % TRACE_OP_COUNT;
        op.api = (s >> 3) % TRACE_API_COUNT;
        op.completion = (s >> 9) % TRACE_COMPLETION_COUNT;
        op.file = r % 11 ? (uint32_t)(s % TAPE_FILES) : TRACE_NONE_U32;
        op.file2 = op.kind == TRACE_RENAME ? 1 : TRACE_NONE_U32;
        op.stream = (uint32_t)(s >> 7) % TAPE_STREAMS;
        op.flags = s % 5 ? TRACE_F_DIRECT : (uint32_t)s;
        op.arg = op.kind == TRACE_OPEN ? (uint32_t)s : 0;
        op.length = (r >> 20 & 15) * 512;
        if (op.kind < 2)
            op.offset = s % 7 ? (s >> 10) % (1u << 20) * 4096 : s;
        if (op.completion != TRACE_COMPLETION_UNKNOWN)
            op.latency_ns = s % 1000003;
        op.result = r % 13 == 0 ? TRACE_UNKNOWN_I64 : r % 17 ? (int64_t)op.length : -5;
        if (s % 3)
            op.batch = i / 8;
        if (result) {
            op.cause = s % TRACE_CAUSE_COUNT;
            op.due_ns = r % 19 ? now_ns - (int64_t)(s % 5000) : TRACE_UNKNOWN_I64;
            op.submit_ns = s % 3001;
            op.ref = i;
        }
        ops[i] = op;
    }
    return ops;
}

static inline struct trace_writer *tape_begin(struct tape *tape,
                                              const struct trace_writer_conf *conf)
{
    struct trace_writer *writer;
    struct trace_sink sink;
    uint32_t index;

    tape_sink(tape, &sink);
    assert_int_equal(trace_writer_open(&writer, &sink, conf, NULL), 0);
    assert_int_equal(trace_writer_meta(writer, TRACE_META_SOURCE, "test"), 0);
    for (uint32_t i = 0; i < TAPE_FILES; i++) {
        char path[64];
        struct trace_file file = {.path = path,
                                  .size_bytes = i << 20,
                                  .inode = i + 1,
                                  .mode = 0644,
                                  .kind = TRACE_FILE_REGULAR};

        snprintf(path, sizeof(path), "/data/db/table-%u.ibd", i);
        assert_int_equal(trace_writer_file(writer, &file, &index), 0);
        assert_int_equal(index, i);
    }
    for (uint32_t i = 0; i < TAPE_STREAMS; i++) {
        char comm[32];
        struct trace_stream stream = {.pid = 100, .tid = 100 + i, .ppid = 1, .comm = comm};

        snprintf(comm, sizeof(comm), "worker-%u", i);
        assert_int_equal(trace_writer_stream(writer, &stream, &index), 0);
        assert_int_equal(index, i);
    }
    return writer;
}

static inline void tape_write(struct tape *tape, const struct trace_op *ops, size_t count,
                              const struct trace_writer_conf *conf)
{
    struct trace_writer *writer = tape_begin(tape, conf);

    assert_int_equal(trace_writer_ops(writer, ops, count), 0);
    assert_int_equal(trace_writer_lost(writer, "ring", 3), 0);
    assert_int_equal(trace_writer_close(writer), 0);
}

/* Every operation that can be read; freed by the caller. */
static inline struct trace_op *tape_read(struct tape *tape, bool pipe, size_t *ret_count,
                                         struct trace_damage *ret_damage)
{
    struct trace_reader *reader = tape_open(tape, pipe);
    const struct trace_op *ops;
    struct trace_op *all = NULL;
    size_t count, total = 0;
    int got;

    while ((got = trace_reader_next(reader, &ops, &count)) > 0) {
        all = realloc(all, (total + count) * sizeof(*all));
        assert_non_null(all);
        memcpy(all + total, ops, count * sizeof(*ops));
        total += count;
    }
    assert_int_equal(got, 0);
    if (ret_damage)
        trace_reader_damage(reader, ret_damage);
    trace_reader_free(reader);
    *ret_count = total;
    return all;
}

/* How many operations a reader still gives. */
static inline size_t tape_rest(struct trace_reader *reader)
{
    const struct trace_op *ops;
    size_t count, total = 0;
    int got;

    while ((got = trace_reader_next(reader, &ops, &count)) > 0)
        total += count;
    assert_int_equal(got, 0);
    return total;
}

static inline void tape_assert_op(const struct trace_op *a, const struct trace_op *b)
{
    assert_int_equal(a->issue_ns, b->issue_ns);
    assert_int_equal(a->latency_ns, b->latency_ns);
    assert_int_equal(a->offset, b->offset);
    assert_int_equal(a->length, b->length);
    assert_int_equal(a->result, b->result);
    assert_int_equal(a->due_ns, b->due_ns);
    assert_int_equal(a->submit_ns, b->submit_ns);
    assert_int_equal(a->ref, b->ref);
    assert_int_equal(a->batch, b->batch);
    assert_int_equal(a->file, b->file);
    assert_int_equal(a->file2, b->file2);
    assert_int_equal(a->stream, b->stream);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->arg, b->arg);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->api, b->api);
    assert_int_equal(a->completion, b->completion);
    assert_int_equal(a->cause, b->cause);
}

#endif
