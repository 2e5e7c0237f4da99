/* SPDX-License-Identifier: MIT */
/*
 * A whole curve against another: at every point the ratio over paired trials, and a band that
 * holds the true ratios at all points at once.
 *
 * The band is a studentised bootstrap over trials (never over I/Os): half its width at a point
 * is that point's standard error times one factor, chosen so that the largest deviation of a
 * resampled curve stays inside for the level's share of the resamples.
 */
#ifndef REPLAY_COMPARE_BAND_H
#define REPLAY_COMPARE_BAND_H

#include <stdbool.h>
#include <stdint.h>

struct band_point {
    double ratio, low, high;
};

/*
 * logs: pairs rows of points values each, log(cell / baseline). ret_points has room for points.
 * -EDOM: fewer than INFER_LEAST_PAIRS pairs. -ENOMEM.
 */
int band_of_ratios(const double *logs, unsigned int pairs, unsigned int points, double level,
                   unsigned int draws, uint64_t seed, struct band_point *ret_points);

#endif
