/* SPDX-License-Identifier: MIT */
/* What trials should not look like: drifting, or in two heaps. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/compare_infer.h"

#define SHAPE_DRAWS 2000

/* Covariance with the order, as far as it differs between permutations of the same values. */
static double order_sum(const double *values, const uint32_t *order, unsigned int count)
{
    double middle = (count - 1) / 2.0, sum = 0;
    unsigned int i;

    for (i = 0; i < count; i++)
        sum += (i - middle) * values[order ? order[i] : i];
    return sum;
}

int infer_trend_find(const double *values, unsigned int count, uint64_t seed,
                     struct infer_trend *ret_trend)
{
    struct infer_random random = {seed};
    double met = order_sum(values, NULL, count), squares;
    uint32_t *order;
    unsigned int draw, hits = 0;

    *ret_trend = (struct infer_trend){0, 1};
    if (count < INFER_LEAST_PAIRS)
        return 0;
    order = malloc(count * sizeof *order);
    if (!order)
        return -ENOMEM;
    for (draw = 0; draw < SHAPE_DRAWS; draw++) {
        infer_shuffle(&random, order, count);
        hits += fabs(order_sum(values, order, count)) >= fabs(met) * (1 - 1e-9);
    }
    free(order);
    squares = count * ((double)count * count - 1) / 12;
    ret_trend->change = met / squares * (count - 1);
    ret_trend->p = (hits + 1.0) / (SHAPE_DRAWS + 1.0);
    return 0;
}

static int by_size(const void *a, const void *b)
{
    double left, right;

    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return (left > right) - (left < right);
}

/* The least share of variance left by a split of sorted values; *ret_low: size of the low heap.
 */
static double best_split(const double *sorted, unsigned int count, unsigned int *ret_low)
{
    double total = 0, mean = infer_mean(sorted, count), sum_low = 0, between, best = 0, gap;
    unsigned int i, low = 0;

    for (i = 0; i < count; i++)
        total += (sorted[i] - mean) * (sorted[i] - mean);
    for (i = 1; i < count; i++) {
        sum_low += sorted[i - 1];
        if (i < 2 || count - i < 2)
            continue;
        gap = sum_low / i - (mean * count - sum_low) / (count - i);
        between = gap * gap * i * (count - i) / count;
        if (between > best) {
            best = between;
            low = i;
        }
    }
    *ret_low = low;
    return total > 0 ? 1 - best / total : 1;
}

int infer_humps_find(const double *values, unsigned int count, uint64_t seed,
                     struct infer_humps *ret_humps)
{
    struct infer_random random = {seed};
    unsigned int draw, hits = 0, i, ignored;
    struct infer_humps humps;
    double *sorted;

    *ret_humps = (struct infer_humps){.share = 1, .p = 1};
    if (count < INFER_LEAST_PAIRS || infer_deviation(values, count) <= 0)
        return 0;
    sorted = malloc(count * sizeof *sorted);
    if (!sorted)
        return -ENOMEM;
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_size);
    humps.share = best_split(sorted, count, &humps.low_count);
    humps.low = infer_mean(sorted, humps.low_count);
    humps.high = infer_mean(sorted + humps.low_count, count - humps.low_count);
    for (draw = 0; draw < SHAPE_DRAWS; draw++) {
        for (i = 0; i < count; i++)
            sorted[i] = infer_random_normal(&random);
        qsort(sorted, count, sizeof *sorted, by_size);
        hits += best_split(sorted, count, &ignored) <= humps.share;
    }
    humps.p = (hits + 1.0) / (SHAPE_DRAWS + 1.0);
    free(sorted);
    *ret_humps = humps;
    return 0;
}
