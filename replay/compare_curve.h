/* SPDX-License-Identifier: MIT */
/*
 * Distributions as compare sees them: a histogram of values that may be below zero, values that
 * count for more than one, and how far apart two distributions lie.
 *
 * One writer each; nothing allocates. Values carry the caller's unit (ns, bytes, ops in
 * flight).
 */
#ifndef REPLAY_COMPARE_CURVE_H
#define REPLAY_COMPARE_CURVE_H

#include <stdint.h>

#include "traces/hist.h"

/* As hist_add, weight times. weight 0 does nothing. */
void curve_add_weighted(struct hist *hist, uint64_t value, uint64_t weight);

/* A distribution of signed values: those below zero are kept by their size. */
struct curve_signed {
    struct hist below, above; /* above holds zero too */
};
void curve_signed_init(struct curve_signed *curve);
void curve_signed_add(struct curve_signed *curve, int64_t value);
uint64_t curve_signed_count(const struct curve_signed *curve);
int64_t curve_signed_min(const struct curve_signed *curve); /* 0 when empty, as the next ones */
int64_t curve_signed_max(const struct curve_signed *curve);
double curve_signed_mean(const struct curve_signed *curve);
double curve_signed_stddev(const struct curve_signed *curve);
/* The value at or below which the fraction lies, to within a slot of the histogram. */
int64_t curve_signed_quantile(const struct curve_signed *curve, double fraction);

/*
 * How far two distributions are apart. ks (Kolmogorov-Smirnov): the largest difference of the
 * cumulative shares, 0 .. 1, met at ks_at. mover (Wasserstein-1, the earth mover's distance):
 * the mean distance the values of one must be moved to become the other, in the values' unit.
 * Values are taken at the middle of their slot: mover is good to 0.8 % of the values.
 * Either one empty: -ENODATA and ret_distance is left alone.
 */
struct curve_distance {
    double ks;
    uint64_t ks_at;
    double mover;
};
int curve_distance(const struct hist *a, const struct hist *b,
                   struct curve_distance *ret_distance);

/* The fractions at which whole curves are printed and plotted: dense towards 1. */
#define CURVE_POINTS 33
extern const double curve_fraction[CURVE_POINTS];

#endif
