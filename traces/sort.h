/* SPDX-License-Identifier: MIT */
/*
 * Stable external merge sort of operations by issue time, in bounded memory: runs go to an
 * unlinked temporary file. Input that is nearly sorted (a capture) costs one heap pass and
 * no file so long as the disorder fits in memory.
 *
 * Lifecycle: new, add..., finish, next until 0, free. One thread at a time.
 */
#ifndef TRACES_SORT_H
#define TRACES_SORT_H

#include "traces/trace.h"

struct trace_sorter;

struct trace_sorter_conf {
    size_t memory_bytes;  /* 0 = 64 MiB; least 1 MiB */
    const char *temp_dir; /* NULL = TMPDIR, else /tmp */
};

int trace_sorter_new(struct trace_sorter **ret_sorter, const struct trace_sorter_conf *conf,
                     struct diag *diag) TRACE_MUST_CHECK;
int trace_sorter_add(struct trace_sorter *sorter, const struct trace_op *ops,
                     size_t count) TRACE_MUST_CHECK;
/* No op added from now on is issued before floor_ns (-EBADMSG when one is): next may deliver
 * what lies below it. */
void trace_sorter_floor(struct trace_sorter *sorter, int64_t floor_ns);
int trace_sorter_finish(struct trace_sorter *sorter) TRACE_MUST_CHECK;
/* 1 and a run of sorted ops valid until the next call; 0 at the end, or before finish when more
 * must be added first. */
int trace_sorter_next(struct trace_sorter *sorter, const struct trace_op **ret_ops,
                      size_t *ret_count) TRACE_MUST_CHECK;
/* Ops that were added with a time below an earlier one's, and the largest such step. */
void trace_sorter_disorder(const struct trace_sorter *sorter, uint64_t *ret_backward_steps,
                           uint64_t *ret_largest_step_ns);
void trace_sorter_free(struct trace_sorter *sorter);

/*
 * Normalise: sort by issue time, time 0 at the first I/O op, tables without gaps or unused
 * entries (numbered as they are met), file totals, small coding, index. Reads the whole of a
 * tape that can seek, the rest of one that cannot; writes a whole tape to sink (taken over).
 * Metadata is carried; TRACE_META_START_WALL and CAPTURE_START are shifted; operations in
 * damaged blocks are added to the lost events, as kind "damaged".
 */
int trace_normalise(struct trace_reader *reader, struct trace_sink *sink,
                    const struct trace_sorter_conf *conf, struct diag *diag) TRACE_MUST_CHECK;

#endif
