/* SPDX-License-Identifier: MIT */
/*
 * From the events of the BPF programs, in the order they were made, to the session's files,
 * streams and ops. Pairs asynchronous ops with their completions, follows renames, gives
 * submission batches their numbers.
 *
 *     init -> event, event ... -> finish (what is still in flight) -> release
 */
#ifndef CAPTURE_BPF_DECODE_H
#define CAPTURE_BPF_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "capture/bpf_event.h"
#include "capture/bpf_names.h"
#include "capture/bpf_position.h"
#include "capture/bpf_table.h"
#include "capture/recorder.h"

struct bpf_decode {
    struct session *session;
    struct bpf_names names;
    struct bpf_positions positions;
    struct bpf_table threads; /* tid -> struct decode_thread */
    struct bpf_table flights; /* cookie, context, pid -> struct decode_flight */
    struct bpf_table maps;    /* pid -> struct bpf_maps */
    uint64_t next_batch, page_bytes;
    size_t pages_held;           /* threads with pages not handed over yet */
    char path[BPF_PATH_MAX * 2]; /* scratch */
    char base[BPF_PATH_MAX * 2];
};

void bpf_decode_init(struct bpf_decode *self, struct session *session);
/* One record of the ring. 0, or an error of the session or -ENOMEM. Records that are too short
 * for their type are -EBADMSG. */
int bpf_decode_event(struct bpf_decode *self, const void *bytes, size_t size) TRACE_MUST_CHECK;
/* Nothing has come for a moment: hands over what was held back to be joined with more. */
int bpf_decode_idle(struct bpf_decode *self) TRACE_MUST_CHECK;
/* A call still under way at the end, from the map of threads. */
int bpf_decode_running(struct bpf_decode *self, uint32_t tid, const struct bpf_thread *thread,
                       const struct bpf_call *call) TRACE_MUST_CHECK;
/* Gives the ops in flight out, marked so. */
int bpf_decode_finish(struct bpf_decode *self) TRACE_MUST_CHECK;
void bpf_decode_release(struct bpf_decode *self);

#endif
