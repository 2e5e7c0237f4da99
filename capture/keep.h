/* SPDX-License-Identifier: MIT */
/*
 * --ring: the last so many seconds of ops, in memory. Older ops are forgotten; when the memory
 * limit comes first, that is counted. One thread.
 */
#ifndef CAPTURE_KEEP_H
#define CAPTURE_KEEP_H

#include "traces/trace.h"

struct keep {
    struct trace_op *ops; /* circular: count of them from first */
    size_t first, count, room, limit;
    uint64_t span_ns;
    uint64_t cut; /* ops younger than span_ns that the memory limit pushed out */
};

/* limit_bytes of memory at most. Allocates as it fills. */
void keep_init(struct keep *keep, uint64_t span_ns, uint64_t limit_bytes);
void keep_release(struct keep *keep);
/* -ENOMEM. Ops come roughly by time. */
int keep_add(struct keep *keep, const struct trace_op *ops, size_t count) TRACE_MUST_CHECK;
/* Forgets what was issued more than the span before now_ns. */
void keep_expire(struct keep *keep, int64_t now_ns);
/* The ops in the order they came, for dumping: a run from index, 0 at the end. */
size_t keep_run(const struct keep *keep, size_t index, const struct trace_op **ret_ops);
void keep_clear(struct keep *keep);

#endif
