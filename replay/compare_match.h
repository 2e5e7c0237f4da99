/* SPDX-License-Identifier: MIT */
/*
 * Which op of one tape is which op of the other, with a bounded number kept waiting.
 *
 * Each op comes in with a key: equal keys are the same op, the k-th of a key on one side being
 * the k-th on the other. An op whose partner has not come yet waits; when more than the window
 * wait, the longest waiting is given up and counted.
 *
 * Lifecycle: match_new, match_offer for the ops of both tapes in step, match_drain, match_free.
 * All memory is taken by match_new (about 140 bytes an op of the window). One thread.
 */
#ifndef REPLAY_COMPARE_MATCH_H
#define REPLAY_COMPARE_MATCH_H

#include "traces/trace.h"

enum match_side {
    MATCH_A = 0,
    MATCH_B = 1
};

struct match_entry {
    uint64_t key;
    uint64_t index; /* of the op in its tape, issue order */
    struct trace_op op;
    uint8_t side;
};

struct match;

/* window: ops that may wait, 1 .. 2^28. -ENOMEM, -EINVAL. */
int match_new(struct match **ret_match, uint32_t window) TRACE_MUST_CHECK;
void match_free(struct match *match); /* NULL is fine */

/*
 * Offers one op. When its partner waits: 1 and *ret_partner, which is good until the next call.
 * Otherwise it waits, 0; and if that pushed another out, *ret_given_up is that one (else NULL).
 */
int match_offer(struct match *match, const struct match_entry *entry,
                const struct match_entry **ret_partner,
                const struct match_entry **ret_given_up);
/* At the end: takes out those that still wait, oldest first; NULL when none is left. */
const struct match_entry *match_drain(struct match *match);
uint32_t match_waiting(const struct match *match, enum match_side side);
uint32_t
match_most_waiting(const struct match *match); /* the most there ever were, both sides */

#endif
