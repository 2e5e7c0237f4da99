/* SPDX-License-Identifier: MIT */
/*
 * What matched ops of two tapes say together: is B issued when A says it should be, in A's
 * order, the same op; and how latency moved, in all and by op kind, stream and file of A.
 *
 * Expected time (I/O ops): the first matched op's time in B plus what passed in A since A's,
 * divided by the speed. Where B is a result tape its first due time is the anchor, so that a
 * late first op does not shift all the others.
 *
 * Lifecycle: pairs_new, pairs_add in B's issue order, read, pairs_free. (A pair that
 * comes out of B's order is not judged for overtaking.) Memory is fixed: at most
 * PAIRS_GROUPS streams and files are told apart, the rest is one group "(others)". One thread.
 */
#ifndef REPLAY_COMPARE_PAIRS_H
#define REPLAY_COMPARE_PAIRS_H

#include "replay/compare_curve.h"
#include "replay/compare_match.h"

#define PAIRS_GROUPS 64

/* Pairs of one op kind, stream or file. */
struct pairs_group {
    uint32_t id; /* op kind, or index in A's stream or file table; TRACE_NONE_U32: the others */
    uint64_t pairs;
    struct hist a, b;                /* latencies, ns, where both completions are exact */
    struct curve_signed change;      /* of those: ns, B minus A of each pair */
    struct curve_signed issue_error; /* ns, of I/O ops: B's issue minus the expected time */
};

struct pairs_groups {
    struct pairs_group
        *group[PAIRS_GROUPS + 1]; /* the last is the others'; NULL where unused */
    uint32_t used;
};

struct pairs {
    uint64_t matched;
    uint64_t kind_differs, length_differs, offset_differs, result_differs;
    uint64_t latency_pairs;          /* both exact */
    struct curve_signed change;      /* ns, B's latency minus A's */
    struct curve_signed issue_error; /* ns, B's issue minus the expected time */
    struct curve_signed
        due_error; /* ns, B's due minus the expected time: 0 is an honest plan */
    uint64_t due_pairs;
    uint64_t overtaken;         /* issued after an op that A issued later */
    uint64_t overtaken_most_ns; /* by how much, in A's time, at most */
    struct pairs_groups by_kind, by_stream, by_file;
    /* private */
    double speed;
    bool anchored;
    int64_t anchor_a_ns, anchor_b_ns;
    int64_t highest_a_ns, instant_a_ns, highest_b_ns;
};

/* speed: how many times faster than A's times B was meant to go; 1 for as recorded. */
int pairs_new(struct pairs **ret_pairs, double speed) TRACE_MUST_CHECK; /* -ENOMEM */
int pairs_add(struct pairs *pairs, const struct trace_op *a,
              const struct trace_op *b) TRACE_MUST_CHECK; /* -ENOMEM */
void pairs_free(struct pairs *pairs);                     /* NULL is fine */

#endif
