/* SPDX-License-Identifier: MIT */
#include "replay/compare_infer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const infer_verdict_names[] = {"undecided", "different", "equivalent", NULL};

/* splitmix64: every seed is as good as any other, and a stream is one word of state. */
uint64_t infer_random_next(struct infer_random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double infer_random_unit(struct infer_random *random)
{
    return (double)(infer_random_next(random) >> 11) * 0x1p-53;
}

double infer_random_normal(struct infer_random *random)
{
    double radius = sqrt(-2 * log(1 - infer_random_unit(random)));

    return radius * cos(2 * M_PI * infer_random_unit(random));
}

uint32_t infer_random_below(struct infer_random *random, uint32_t limit)
{
    return (uint32_t)(((infer_random_next(random) >> 32) * limit) >> 32);
}

void infer_shuffle(struct infer_random *random, uint32_t *order, uint32_t count)
{
    uint32_t i, j, swap;

    for (i = 0; i < count; i++)
        order[i] = i;
    for (i = count; i > 1; i--) {
        j = infer_random_below(random, i);
        swap = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swap;
    }
}

double infer_mean(const double *values, unsigned int count)
{
    double sum = 0;
    unsigned int i;

    for (i = 0; i < count; i++)
        sum += values[i];
    return count > 0 ? sum / count : 0;
}

double infer_deviation(const double *values, unsigned int count)
{
    double mean = infer_mean(values, count), sum = 0;
    unsigned int i;

    if (count < 2)
        return 0;
    for (i = 0; i < count; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return sqrt(sum / (count - 1));
}

/* ---- the permutation test ----------------------------------------------------------- */

/* A mean that differs from the one met by rounding alone counts as equal to it. */
#define AS_FAR (1 - 1e-9)

/* All patterns in Gray order, so that each step flips one sign. The first value's sign stays:
 * the other half of the patterns are mirror images. */
static double sign_flip_exact(const double *differences, unsigned int count)
{
    double flipped[INFER_EXACT_PAIRS], sum = 0, met;
    uint32_t patterns = 1u << (count - 1), at, hits = 0;
    unsigned int bit;

    memcpy(flipped, differences, count * sizeof *flipped);
    for (bit = 0; bit < count; bit++)
        sum += differences[bit];
    met = fabs(sum) * AS_FAR;
    for (at = 0;;) {
        hits += fabs(sum) >= met;
        if (++at == patterns)
            break;
        bit = (unsigned int)__builtin_ctz(at) + 1;
        sum -= 2 * flipped[bit];
        flipped[bit] = -flipped[bit];
    }
    return (double)hits / patterns;
}

static double sign_flip_sampled(const double *differences, unsigned int count, uint64_t seed)
{
    struct infer_random random = {seed};
    double sum = 0, met;
    uint64_t signs = 0;
    uint32_t draw, hits = 0;
    unsigned int i;

    for (i = 0; i < count; i++)
        sum += differences[i];
    met = fabs(sum) * AS_FAR;
    for (draw = 0; draw < INFER_DRAWS; draw++) {
        for (i = 0, sum = 0; i < count; i++) {
            if (i % 64 == 0)
                signs = infer_random_next(&random);
            sum += signs >> (i % 64) & 1 ? differences[i] : -differences[i];
        }
        hits += fabs(sum) >= met;
    }
    /* The pattern met is one of the sample: p is never 0. */
    return (hits + 1.0) / (INFER_DRAWS + 1.0);
}

double infer_sign_flip_p(const double *differences, unsigned int count, uint64_t seed)
{
    if (count == 0)
        return 1;
    return count <= INFER_EXACT_PAIRS ? sign_flip_exact(differences, count)
                                      : sign_flip_sampled(differences, count, seed);
}

double infer_smallest_p(unsigned int count)
{
    if (count <= 1)
        return 1;
    return count <= INFER_EXACT_PAIRS ? ldexp(1, 1 - (int)count) : 1.0 / (INFER_DRAWS + 1.0);
}

unsigned int infer_least_pairs(unsigned int comparisons, double alpha)
{
    unsigned int pairs = INFER_LEAST_PAIRS;

    while (pairs <= INFER_EXACT_PAIRS && infer_smallest_p(pairs) * comparisons > alpha)
        pairs++;
    return pairs;
}

static int by_value(const void *a, const void *b)
{
    double left, right;

    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return (left > right) - (left < right);
}

struct ranked {
    double p;
    unsigned int index;
};

static int by_p(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;

    if (left->p != right->p)
        return left->p < right->p ? -1 : 1;
    return (left->index > right->index) - (left->index < right->index);
}

int infer_holm(const double *p, unsigned int count, double *ret_adjusted)
{
    struct ranked *ranked = malloc((count ? count : 1) * sizeof *ranked);
    double adjusted, highest = 0;
    unsigned int i;

    if (!ranked)
        return -ENOMEM;
    for (i = 0; i < count; i++)
        ranked[i] = (struct ranked){p[i], i};
    qsort(ranked, count, sizeof *ranked, by_p);
    for (i = 0; i < count; i++) {
        adjusted = fmin(1, ranked[i].p * (count - i));
        highest = fmax(highest, adjusted);
        ret_adjusted[ranked[i].index] = highest;
    }
    free(ranked);
    return 0;
}

/* ---- the interval ------------------------------------------------------------------- */

double infer_quantile(double *values, unsigned int count, double q)
{
    double at, part;
    unsigned int low;

    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, by_value);
    at = q * (count - 1);
    low = (unsigned int)at;
    if (low + 1 >= count)
        return values[count - 1];
    part = at - low;
    return values[low] * (1 - part) + values[low + 1] * part;
}

int infer_bootstrap_t(const double *values, unsigned int count, double level,
                      unsigned int draws, uint64_t seed, struct infer_interval *ret_interval)
{
    struct infer_random random = {seed};
    double mean = infer_mean(values, count), error, *sample, *t, tail = (1 - level) / 2, spread;
    unsigned int draw, i, kept = 0;

    if (count < INFER_LEAST_PAIRS || draws == 0)
        return -EDOM;
    error = infer_deviation(values, count) / sqrt(count);
    sample = malloc(count * sizeof *sample);
    t = malloc(draws * sizeof *t);
    if (!sample || !t) {
        free(sample);
        free(t);
        return -ENOMEM;
    }
    for (draw = 0; draw < draws; draw++) {
        for (i = 0; i < count; i++)
            sample[i] = values[infer_random_below(&random, count)];
        spread = infer_deviation(sample, count) / sqrt(count);
        /* A resample of one value alone says nothing of the error. */
        if (spread > error * 1e-9)
            t[kept++] = (infer_mean(sample, count) - mean) / spread;
    }
    *ret_interval = (struct infer_interval){
        mean - error * infer_quantile(t, kept, 1 - tail),
        mean - error * infer_quantile(t, kept, tail),
    };
    free(sample);
    free(t);
    return 0;
}

/* ---- the verdict -------------------------------------------------------------------- */

static int comparison_measure(struct infer_comparison *comparison,
                              const struct infer_rules *rules, uint64_t seed)
{
    const double *values = comparison->log_ratio;
    struct infer_interval interval;
    int err;

    comparison->ratio = exp(infer_mean(values, comparison->pairs));
    comparison->deviation = infer_deviation(values, comparison->pairs);
    comparison->p = infer_sign_flip_p(values, comparison->pairs, seed);
    comparison->low = comparison->high = NAN;
    comparison->within_margin = false;
    comparison->verdict = INFER_UNDECIDED;
    err = infer_bootstrap_t(values, comparison->pairs, rules->level, rules->draws, seed,
                            &interval);
    if (err == -EDOM)
        return 0;
    if (err < 0)
        return err;
    comparison->low = exp(interval.low);
    comparison->high = exp(interval.high);
    comparison->within_margin =
        comparison->low >= 1 / (1 + rules->margin) && comparison->high <= 1 + rules->margin;
    return 0;
}

int infer_judge(struct infer_comparison *comparisons, unsigned int count,
                const struct infer_rules *rules)
{
    double *p = calloc(count ? count : 1, sizeof *p);
    unsigned int i;
    int err = 0;

    if (!p)
        return -ENOMEM;
    for (i = 0; i < count && err == 0; i++) {
        err = comparison_measure(&comparisons[i], rules, rules->seed + i);
        p[i] = comparisons[i].p;
    }
    if (err == 0)
        err = infer_holm(p, count, p);
    for (i = 0; i < count && err == 0; i++) {
        comparisons[i].p_holm = p[i];
        if (comparisons[i].pairs < INFER_LEAST_PAIRS)
            continue;
        if (p[i] <= rules->alpha)
            comparisons[i].verdict = INFER_DIFFERENT;
        else if (comparisons[i].within_margin)
            comparisons[i].verdict = INFER_EQUIVALENT;
    }
    free(p);
    return err;
}
