/* SPDX-License-Identifier: MIT */
/*
 * The statistics of compare. The unit of replication is a whole trial, never one I/O; trials
 * are paired within a block; no outlier is removed.
 *
 * All of it works on logarithms of ratios: what is estimated is the ratio of geometric means,
 * and "5 %" is the same distance up and down. Pure functions: no state, no allocation kept;
 * what draws random numbers takes a seed and gives the same answer for the same seed.
 */
#ifndef REPLAY_COMPARE_INFER_H
#define REPLAY_COMPARE_INFER_H

#include <stdbool.h>
#include <stdint.h>

/* Below this many pairs no interval and no verdict but undecided. */
#define INFER_LEAST_PAIRS 6
/* The defaults: chance of a wrong "different" anywhere in a matrix, confidence of an interval.
 */
#define INFER_ALPHA 0.04
#define INFER_LEVEL 0.95
/* Planned chance of finding the difference asked for: the permutation test loses a little to
 * the t test whose power is computed, so that 0.9 is kept. */
#define INFER_POWER      0.92
#define INFER_MOST_PAIRS 10000
/* Up to here every pattern of signs is enumerated; above, a random sample of this many. */
#define INFER_EXACT_PAIRS 20
#define INFER_DRAWS       100000

struct infer_random {
    uint64_t state;
};
uint64_t infer_random_next(struct infer_random *random);
double infer_random_unit(struct infer_random *random);   /* 0 <= x < 1 */
double infer_random_normal(struct infer_random *random); /* mean 0, deviation 1 */
uint32_t infer_random_below(struct infer_random *random, uint32_t limit);
/* A random order of 0 .. count-1. */
void infer_shuffle(struct infer_random *random, uint32_t *order, uint32_t count);

double infer_mean(const double *values, unsigned int count);
double infer_deviation(const double *values, unsigned int count); /* n - 1; 0 below 2 values */
double infer_normal_cdf(double z);
double infer_t_cdf(double t, double freedom);
double infer_t_quantile(double p, double freedom); /* 0 < p < 1 */

/*
 * Two-sided p of the paired permutation test that the mean difference is 0: the share of sign
 * patterns whose mean is as far from 0 as the one met. count 0 gives 1.
 */
double infer_sign_flip_p(const double *differences, unsigned int count, uint64_t seed);
/* The smallest p that count pairs can give. */
double infer_smallest_p(unsigned int count);
/* Fewest pairs with which one of that many comparisons can be called different at all. */
unsigned int infer_least_pairs(unsigned int comparisons, double alpha);
/* Holm's step-down adjusted p of each of count tests; in place is fine. -ENOMEM. */
int infer_holm(const double *p, unsigned int count, double *ret_adjusted);

struct infer_interval {
    double low, high;
};
/*
 * Studentised bootstrap (bootstrap-t) interval of the mean at the level (0.95), by draws
 * resamples. -EDOM: fewer than INFER_LEAST_PAIRS. -ENOMEM.
 */
int infer_bootstrap_t(const double *values, unsigned int count, double level,
                      unsigned int draws, uint64_t seed, struct infer_interval *ret_interval);

enum infer_verdict {
    INFER_UNDECIDED = 0,
    INFER_DIFFERENT,
    INFER_EQUIVALENT
};
extern const char *const infer_verdict_names[];

struct infer_rules {
    double alpha;       /* of the whole matrix: INFER_ALPHA */
    double level;       /* of the intervals: INFER_LEVEL */
    double margin;      /* equivalent within: 0.05 = 5 % */
    unsigned int draws; /* bootstrap resamples */
    uint64_t seed;
};

/* One cell against its baseline. The first two fields are the caller's, the rest is written. */
struct infer_comparison {
    const double *log_ratio; /* a pair each: log(cell / baseline) */
    unsigned int pairs;
    double ratio;     /* of geometric means */
    double low, high; /* its interval; both NAN where none is claimed */
    double p, p_holm;
    double deviation; /* of the log ratios */
    enum infer_verdict verdict;
    bool within_margin; /* the whole interval is */
};
/*
 * Judges all comparisons of a matrix together: different when Holm's p is at most alpha; else
 * equivalent when the whole interval lies within the margin; else undecided. -ENOMEM.
 */
int infer_judge(struct infer_comparison *comparisons, unsigned int count,
                const struct infer_rules *rules);

/* Chance that a true ratio of 1 + difference is called different, at worst, in a matrix of that
 * many comparisons; deviation is that of the log ratios. */
double infer_power(unsigned int pairs, unsigned int comparisons, double alpha, double deviation,
                   double difference);
/* Fewest pairs with at least that power, at least INFER_LEAST_PAIRS; 0 when INFER_MOST_PAIRS do
 * not reach it. */
unsigned int infer_trials_needed(unsigned int comparisons, double alpha, double deviation,
                                 double difference, double power);

/* A trend of values along their order. p by permutation; change: from first to last by a
 * straight line, in the values' unit. Fewer than 6 values give p 1. */
struct infer_trend {
    double change, p;
};
int infer_trend_find(const double *values, unsigned int count, uint64_t seed,
                     struct infer_trend *ret_trend); /* -ENOMEM */

/*
 * Do the values fall in two heaps? share: variance left within the best split into two groups
 * of at least two, over all of it. p: how often as many values of one normal distribution split
 * so well. Fewer than 6 values, or all equal, give p 1.
 */
struct infer_humps {
    double low, high; /* means of the two groups */
    unsigned int low_count;
    double share, p;
};
int infer_humps_find(const double *values, unsigned int count, uint64_t seed,
                     struct infer_humps *ret_humps); /* -ENOMEM */

/* The q-quantile of values by linear interpolation; sorts them in place. 0 when none. */
double infer_quantile(double *values, unsigned int count, double q);

#endif
