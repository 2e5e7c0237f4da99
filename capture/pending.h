/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous ops that have been seen issued but not completed, or the other way round: the
 * two halves come from different rings, in any order, and meet here by their id. One thread.
 */
#ifndef CAPTURE_PENDING_H
#define CAPTURE_PENDING_H

#include "traces/trace.h"

struct pending_half {
    uint64_t id; /* 0 = empty */
    bool issued; /* op is the issue; else only completed_ns and result are known */
    uint64_t completed_ns;
    int64_t result;
    uint8_t completion; /* enum trace_completion */
    struct trace_op op;
};

struct pending {
    struct pending_half *halves; /* open addressing; a power of two */
    uint32_t count, room;
};

void pending_init(struct pending *pending);
void pending_release(struct pending *pending);
/* Adds a half. 1 and the whole op in ret_op when the other was there; 0; or -ENOMEM. Ids are
 * not 0; op.issue_ns is the time of issue on the clock of completed_ns. */
int pending_issue(struct pending *pending, uint64_t id, const struct trace_op *op,
                  struct trace_op *ret_op) TRACE_MUST_CHECK;
int pending_done(struct pending *pending, uint64_t id, uint64_t completed_ns, int64_t result,
                 unsigned int completion, struct trace_op *ret_op) TRACE_MUST_CHECK;
/* Takes any issued op out that has no completion: 1, or 0 when there is none left. *cursor
 * starts at 0; nothing else may be done with pending between the first call and the last. */
int pending_take(struct pending *pending, uint32_t *cursor, struct trace_op *ret_op);

#endif
