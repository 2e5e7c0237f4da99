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
typedef int (*blk_emit_fn)(void *context, struct export *export, const struct blk_event *event,
                           const char *comm, bool first_of_pid);

/* *ret_state is a struct blk_emit, of which context_bytes zeroed bytes are emit's context. */
int blk_emit_begin(struct export *export, bool with_issue, blk_emit_fn emit,
                   size_t context_bytes, void **ret_state) TRACE_MUST_CHECK;
/* An exporter's other three callbacks. What block events cannot hold is counted in the export.
 */
int blk_emit_ops(void *state, struct export *export, const struct trace_op *ops, size_t count);
int blk_emit_end(void *state, struct export *export);
void blk_emit_release(void *state); /* NULL is fine */

#endif
