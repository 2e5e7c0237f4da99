/* SPDX-License-Identifier: MIT */
/*
 * What one tape says of itself: counts, bytes, failures, latencies, gaps, sizes, depth, and how
 * they went over time. Fed in issue order, in memory that does not grow with the tape.
 *
 * Latencies count only where the completion is exact: upper bounds and unknown ones are counted
 * apart and stay out of every distribution. Depth takes upper bounds too, and says how many.
 *
 * Lifecycle: side_new, side_add for each op, side_finish, read the fields, side_free. One
 * thread.
 */
#ifndef REPLAY_COMPARE_SIDE_H
#define REPLAY_COMPARE_SIDE_H

#include "replay/compare_curve.h"
#include "replay/compare_series.h"
#include "traces/trace.h"

#define SIDE_LATE_NS 1000000u /* lag above this is late, as in replay */

struct side_kind {
    uint64_t ops, bytes, errors, shorts;
    uint64_t exact, upper, unknown; /* completions */
    struct hist latency;            /* ns, exact ones */
};

struct side_depth; /* completions to come */

struct side {
    uint64_t ops;    /* all kinds */
    uint64_t io_ops; /* those that trace_op_is_io */
    uint64_t bytes;  /* asked for by ranged ops */
    uint64_t errors, shorts, results_unknown;
    uint64_t in_flight_at_end;              /* ops flagged so */
    int64_t first_ns, last_ns, end_ns;      /* first and last issue, last known completion;
                                               of I/O ops; 0 when io_ops is 0 */
    uint64_t exact, upper, unknown;         /* completions of I/O ops */
    struct side_kind *kind[TRACE_OP_COUNT]; /* NULL: none of the kind */
    struct hist latency;                    /* ns, I/O ops, exact */
    struct hist response;                   /* ns from due to completion, exact */
    struct hist gap;                        /* ns between issues of I/O ops */
    struct hist size;                       /* bytes of ranged ops */
    struct hist depth_time;                 /* ops in flight, weighted by ns */
    struct hist depth_issue;                /* ops in flight as seen by each op, itself too */
    struct curve_signed lag;                /* ns, issued minus due */
    uint64_t late;                          /* lag above SIDE_LATE_NS */
    uint64_t cause[TRACE_CAUSE_COUNT];      /* of ops with due times */
    uint64_t batches, batched;              /* submission calls seen, ops they carried */
    struct hist submit;                     /* ns inside the issuing call */
    uint64_t backward;                      /* ops out of issue order: the tape lies */
    bool depth_cut;                         /* more in flight than can be followed */
    struct series series;
    /* private */
    struct side_depth *inflight;
    const uint64_t *file_base; /* where each file begins on the offset map; NULL: all at 0 */
    uint64_t *file_base_owned;
    uint32_t file_count;
    uint64_t last_batch;
};

int side_new(struct side **ret_side) TRACE_MUST_CHECK; /* -ENOMEM */
/* Lays the files of the table end to end for the offset map; call before the first op. */
int side_lay_files(struct side *side, const struct trace_reader *reader) TRACE_MUST_CHECK;
int side_add(struct side *side, const struct trace_op *op) TRACE_MUST_CHECK; /* -ENOMEM */
void side_finish(struct side *side);
void side_free(struct side *side); /* NULL is fine */

uint64_t
side_duration_ns(const struct side *side); /* first issue to last completion or issue */
double side_per_s(const struct side *side, uint64_t amount); /* 0 without a duration */

#endif
