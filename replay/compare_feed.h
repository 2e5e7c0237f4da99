/* SPDX-License-Identifier: MIT */
/*
 * The operations of one tape in issue order, one at a time, in bounded memory: a normalised
 * tape is read as it is, a raw one (a capture, a result tape) goes through the external sorter.
 *
 * Lifecycle: tape_feed_open, tape_feed_next until 0, tape_feed_close. One thread. Errors:
 * -errno, described in the diag given to open, which must live until close.
 */
#ifndef REPLAY_COMPARE_FEED_H
#define REPLAY_COMPARE_FEED_H

#include "traces/sort.h"
#include "traces/trace.h"

struct tape_feed {
    struct trace_reader *reader;
    struct trace_sorter *sorter; /* NULL when the tape is sorted already */
    struct diag *diag;
    const struct trace_op *run;
    size_t run_count, run_at;
    uint64_t index;    /* of the op that the next tape_feed_next returns, in issue order */
    bool tables_known; /* the file and stream tables are complete before the first op */
};

/* path "-" is standard input. Sorts a raw tape before it returns: that reads it all. */
int tape_feed_open(struct tape_feed *feed, const char *path,
                   struct diag *diag) TRACE_MUST_CHECK;
/* 1 and *ret_op (valid until the next call), 0 at the end. */
int tape_feed_next(struct tape_feed *feed, const struct trace_op **ret_op) TRACE_MUST_CHECK;
void tape_feed_close(struct tape_feed *feed); /* a zeroed feed is fine */

#endif
