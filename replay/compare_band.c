/* SPDX-License-Identifier: MIT */
#include "replay/compare_band.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "replay/compare_infer.h"

/* Mean and standard error of each point over the rows picked (NULL: all in turn). */
static void measure(const double *logs, const uint32_t *picked, unsigned int pairs,
                    unsigned int points, double *ret_mean, double *ret_error)
{
    unsigned int row, point;
    double away;

    for (point = 0; point < points; point++) {
        ret_mean[point] = ret_error[point] = 0;
        for (row = 0; row < pairs; row++)
            ret_mean[point] += logs[(picked ? picked[row] : row) * points + point] / pairs;
        for (row = 0; row < pairs; row++) {
            away = logs[(picked ? picked[row] : row) * points + point] - ret_mean[point];
            ret_error[point] += away * away;
        }
        ret_error[point] = sqrt(ret_error[point] / (pairs - 1) / pairs);
    }
}

/* The largest studentised deviation of a resampled curve from the one met. */
static double largest(const double *mean, const double *error, const double *drawn_mean,
                      const double *drawn_error, unsigned int points)
{
    double most = 0;
    unsigned int point;

    for (point = 0; point < points; point++)
        /* Where the trials agree exactly there is nothing to deviate. */
        if (error[point] > 0 && drawn_error[point] > error[point] * 1e-9)
            most = fmax(most, fabs(drawn_mean[point] - mean[point]) / drawn_error[point]);
    return most;
}

int band_of_ratios(const double *logs, unsigned int pairs, unsigned int points, double level,
                   unsigned int draws, uint64_t seed, struct band_point *ret_points)
{
    struct infer_random random = {seed};
    double *room, *mean, *error, *drawn_mean, *drawn_error, *most, factor;
    uint32_t *picked;
    unsigned int draw, row, point;
    int err = -ENOMEM;

    if (pairs < INFER_LEAST_PAIRS || points == 0 || draws == 0)
        return -EDOM;
    room = malloc((4 * (size_t)points + draws) * sizeof *room);
    picked = malloc(pairs * sizeof *picked);
    if (!room || !picked)
        goto out;
    mean = room;
    error = mean + points;
    drawn_mean = error + points;
    drawn_error = drawn_mean + points;
    most = drawn_error + points;
    measure(logs, NULL, pairs, points, mean, error);
    for (draw = 0; draw < draws; draw++) {
        for (row = 0; row < pairs; row++)
            picked[row] = infer_random_below(&random, pairs);
        measure(logs, picked, pairs, points, drawn_mean, drawn_error);
        most[draw] = largest(mean, error, drawn_mean, drawn_error, points);
    }
    factor = infer_quantile(most, draws, level);
    for (point = 0; point < points; point++)
        ret_points[point] =
            (struct band_point){exp(mean[point]), exp(mean[point] - factor * error[point]),
                                exp(mean[point] + factor * error[point])};
    err = 0;
out:
    free(room);
    free(picked);
    return err;
}
