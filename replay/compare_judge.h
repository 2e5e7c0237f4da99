/* SPDX-License-Identifier: MIT */
/*
 * From the trials of an experiment to its answers: a summary of each cell, each cell against
 * its baseline by each figure asked for, and what should make a reader doubt them.
 *
 * Lifecycle: judge_new, read, judge_free. It only reads the design and the journal, and gives
 * the same answers for the same trials. One thread.
 */
#ifndef REPLAY_COMPARE_JUDGE_H
#define REPLAY_COMPARE_JUDGE_H

#include "replay/compare_band.h"
#include "replay/compare_condition.h"
#include "replay/compare_design.h"
#include "replay/compare_infer.h"
#include "replay/compare_journal.h"

#define JUDGE_METRICS 8

struct judge_rules {
    unsigned int metric[JUDGE_METRICS]; /* the first is the main one */
    unsigned int metrics;
    struct infer_rules infer;
    double detect;   /* difference to plan trials for: 0.03 */
    double unstable; /* relative deviation of a cell above which it is called so: 0.10 */
};

/* Doubts about a cell, by its main figure. */
enum judge_doubt {
    JUDGE_UNSTABLE = 1u << 0,   /* trials scatter more than judge_rules.unstable */
    JUDGE_TWO_HUMPED = 1u << 1, /* they fall in two heaps */
    JUDGE_UNSTEADY =
        1u << 2,            /* the second half of a trial runs at another rate than the first */
    JUDGE_ERRORS = 1u << 3, /* ops failed or were short */
};

struct judge_cell {
    unsigned int trials;       /* judged: warm-up and failures left out */
    double mean[METRIC_COUNT]; /* geometric where all are above 0, else arithmetic; NAN none */
    double scatter[METRIC_COUNT]; /* deviation over mean; NAN below 2 trials */
    unsigned int voids;           /* runs that failed and were run again */
    unsigned int doubts;          /* enum judge_doubt */
    struct infer_humps humps;
    double steady; /* middle of the trials' logs; NAN: not known */
    bool has_curve;
    /* Service time at curve_fraction[]: geometric mean over trials, and a band about it: its
     * 95 % interval by Student's t from INFER_LEAST_PAIRS trials on, else least and most. */
    double curve[CURVE_POINTS], curve_low[CURVE_POINTS], curve_high[CURVE_POINTS];
    /* The curve over the baseline's, paired, with a band that holds at all points at once; from
     * INFER_LEAST_PAIRS pairs on. */
    bool has_ratio_curve;
    struct band_point ratio_curve[CURVE_POINTS];
};

struct judge_comparison {
    unsigned int cell, metric; /* against the cell's baseline */
    struct infer_comparison infer;
    char refused[160]; /* why a verdict is refused (then it is undecided), or "" */
};

struct judge {
    struct judge_cell *cells;
    struct judge_comparison *comparisons; /* by cell, then by metric */
    unsigned int count;
    struct infer_trend trend; /* of the main figure over the experiment, as a share (0.05) */
    bool drifts;
    double deviation;           /* of log ratios of the main figure, pooled; NAN: not known */
    unsigned int trials_needed; /* for rules.detect, from that; 0: more than can be planned */
    double *log_ratios;         /* the comparisons point into it */
};

int judge_new(struct judge **ret_judge, const struct design *design,
              const struct journal *journal, const struct judge_rules *rules);
void judge_free(struct judge *judge); /* NULL is fine */

/* The comparison of a cell by a metric, or NULL. */
const struct judge_comparison *judge_find(const struct judge *judge, unsigned int cell,
                                          unsigned int metric);
/*
 * A --fail-if over all cells. Relative: true when for some comparison the verdict is different
 * and the whole interval lies beyond the limit; false when every interval lies on this side of
 * it; else undecided. Absolute: as it holds for the interval of the cell's own mean.
 * -EINVAL: not a figure that was judged.
 */
int judge_condition(const struct judge *judge, const struct design *design,
                    const struct journal *journal, const struct judge_rules *rules,
                    const struct condition *condition, enum condition_outcome *ret_outcome);

#endif
