/* SPDX-License-Identifier: MIT */
/* How many trials are enough: distributions of t, central and not, and the power of the test.
 */
#include <math.h>

#include "replay/compare_infer.h"

double infer_normal_cdf(double z)
{
    return 0.5 * erfc(-z / M_SQRT2);
}

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1), result, term, step;
    int m;

    d = 1 / (fabs(d) < tiny ? tiny : d);
    result = d;
    for (m = 1; m <= 500; m++) {
        term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 + term * d;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = 1 + term / c;
        c = fabs(c) < tiny ? tiny : c;
        result *= d * c;
        term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 + term * d;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = 1 + term / c;
        c = fabs(c) < tiny ? tiny : c;
        step = d * c;
        result *= step;
        if (fabs(step - 1) < 1e-14)
            break;
    }
    return result;
}

static double beta_regularised(double a, double b, double x)
{
    double front;

    if (x <= 0 || x >= 1)
        return x > 0;
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double infer_t_cdf(double t, double freedom)
{
    double tail = 0.5 * beta_regularised(freedom / 2, 0.5, freedom / (freedom + t * t));

    return t > 0 ? 1 - tail : tail;
}

double infer_t_quantile(double p, double freedom)
{
    double low = -1, high = 1, middle;
    int i;

    while (infer_t_cdf(low, freedom) > p)
        low *= 2;
    while (infer_t_cdf(high, freedom) < p)
        high *= 2;
    for (i = 0; i < 200 && high - low > 1e-13 * fabs(high); i++) {
        middle = (low + high) / 2;
        if (infer_t_cdf(middle, freedom) < p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/*
 * P(|T| > limit) for a non-central t: the normal chance given the deviation met, summed over
 * the distribution of that deviation (chi over the root of freedom), by the trapezium rule.
 */
static double noncentral_tails(double limit, double freedom, double shift)
{
    double spread = 8 / sqrt(2 * freedom), low = fmax(1e-9, 1 - spread), high = 1 + spread;
    double lead = freedom / 2 * log(freedom / 2) - lgamma(freedom / 2) + log(2);
    double sum = 0, weights = 0, s, weight;
    int i, steps = 400;

    for (i = 0; i <= steps; i++) {
        s = low + (high - low) * i / steps;
        weight = exp(lead + (freedom - 1) * log(s) - freedom * s * s / 2);
        weights += weight;
        sum += weight *
               (infer_normal_cdf(shift - limit * s) + infer_normal_cdf(-shift - limit * s));
    }
    return weights > 0 ? sum / weights : 0;
}

double infer_power(unsigned int pairs, unsigned int comparisons, double alpha, double deviation,
                   double difference)
{
    double level = alpha / (comparisons ? comparisons : 1), smallest = infer_smallest_p(pairs);
    double freedom = pairs - 1.0;

    if (pairs < INFER_LEAST_PAIRS || smallest > level)
        return 0;
    /* The test's p comes in steps: what it can really use of the level. */
    if (pairs <= INFER_EXACT_PAIRS)
        level = floor(level / smallest) * smallest;
    if (deviation <= 0)
        return 1;
    return noncentral_tails(infer_t_quantile(1 - level / 2, freedom), freedom,
                            fabs(log1p(difference)) / deviation * sqrt(pairs));
}

unsigned int infer_trials_needed(unsigned int comparisons, double alpha, double deviation,
                                 double difference, double power)
{
    unsigned int pairs;

    for (pairs = INFER_LEAST_PAIRS; pairs <= INFER_MOST_PAIRS;
         pairs += pairs < 1000 ? 1 : pairs / 100)
        if (infer_power(pairs, comparisons, alpha, deviation, difference) >= power)
            return pairs;
    return 0;
}
