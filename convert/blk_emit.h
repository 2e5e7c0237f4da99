/* SPDX-License-Identifier: MIT */
/*
 * Operations as block-layer events in time order: for each a Q, optionally a D at the same
 * time, and, when its latency is known, a C. Used by the exporters that write blktrace and
 * blkparse.
 *
 * Completions wait in memory until the operations reach their time: as much as was in flight.
 * One thread.
 */
#ifndef CONVERT_BLK_EMIT_H
#define CONVERT_BLK_EMIT_H

#include "convert/blk_event.h"
#include "convert/exporter.h"

struct blk_emit;

/* Time of the first event: readers take 0 for "no time yet". */
#define BLK_EMIT_BASE_NS 1000000000ull

/* Each event, in time order; comm is NUL-padded to BLK_COMM_MAX, device says which file.
 * first_of_pid: no event of this pid went before. 0 or -errno, handed up. */
typedef int (*blk_emit_fn)(void *context, const struct blk_event *event, const char *comm,
                           bool first_of_pid);

int blk_emit_new(struct blk_emit **ret_emit, struct export *export, bool with_issue,
                 blk_emit_fn emit, void *context) TRACE_MUST_CHECK;
void blk_emit_free(struct blk_emit *emit); /* NULL is fine */
/* What block events cannot hold is counted in the export. 0 or -errno. */
int blk_emit_ops(struct blk_emit *emit, const struct trace_op *ops,
                 size_t count) TRACE_MUST_CHECK;
int blk_emit_end(struct blk_emit *emit) TRACE_MUST_CHECK;

#endif
