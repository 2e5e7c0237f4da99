/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "replay/compare_band.h"
#include "replay/compare_infer.h"

static void near_to(double value, double expected, double within)
{
    if (!(fabs(value - expected) <= within))
        fail_msg("got %.9g, expected %.9g within %g", value, expected, within);
}

/* Values of printed tables. */
static void distributions(void **state)
{
    near_to(infer_normal_cdf(1.959963985), 0.975, 1e-9);
    near_to(infer_t_cdf(2, 5), 0.949030260585, 1e-9);
    near_to(infer_t_cdf(-1, 1), 0.25, 1e-12);
    near_to(infer_t_quantile(0.975, 10), 2.228138852, 1e-8);
    near_to(infer_t_quantile(0.975, 1), 12.706204736, 1e-7);
    near_to(infer_t_quantile(0.5, 7), 0, 1e-6);
    near_to(infer_t_quantile(0.995, 30), 2.749995654, 1e-8);
}

static void permutation_by_hand(void **state)
{
    /* Sums of five signs: 5 once, 3 five times, and their mirrors: 12 of 32. */
    const double five[] = {1, 1, 1, 1, -1};
    const double six[] = {1, 2, 3, 4, 5, 6};
    const double zero[] = {0, 0, 0, 0, 0, 0};
    /* |sum| = 2 at least: all but the four patterns that give 0. */
    const double four[] = {1, 2, 3, -4};

    near_to(infer_sign_flip_p(five, 5, 1), 0.375, 1e-12);
    near_to(infer_sign_flip_p(six, 6, 1), 2.0 / 64, 1e-12);
    near_to(infer_sign_flip_p(zero, 6, 1), 1, 1e-12);
    near_to(infer_sign_flip_p(four, 4, 1), 14.0 / 16, 1e-12);
    near_to(infer_sign_flip_p(NULL, 0, 1), 1, 0);
    near_to(infer_smallest_p(6), 2.0 / 64, 1e-15);
}

/* The sampled test agrees with the enumerated one where both can be had. */
static void permutation_sampled(void **state)
{
    double values[INFER_EXACT_PAIRS + 1] = {0};
    struct infer_random random = {7};
    double exact, sampled;
    unsigned int i;

    for (i = 0; i < INFER_EXACT_PAIRS; i++)
        values[i] = infer_random_normal(&random) + 0.3;
    exact = infer_sign_flip_p(values, INFER_EXACT_PAIRS, 1);
    sampled =
        infer_sign_flip_p(values, INFER_EXACT_PAIRS + 1, 1); /* a zero more: same answer */
    near_to(sampled, exact, 0.005);
    near_to(sampled, infer_sign_flip_p(values, INFER_EXACT_PAIRS + 1, 1), 0);
}

static void holm_by_hand(void **state)
{
    double p[] = {0.01, 0.04, 0.03, 0.005};

    assert_int_equal(infer_holm(p, 4, p), 0);
    near_to(p[0], 0.03, 1e-12);
    near_to(p[1], 0.06, 1e-12);
    near_to(p[2], 0.06, 1e-12);
    near_to(p[3], 0.02, 1e-12);
}

static void power_known(void **state)
{
    unsigned int one, many;

    /* A paired t test with effect 1, ten pairs, 5 %: 0.803; the steps of p cost a little. */
    near_to(infer_power(10, 1, 0.05, 1, expm1(1)), 0.803, 0.01);
    /* No difference: the level itself, at most. */
    near_to(infer_power(12, 1, 0.05, 1, 0), 0.05, 0.001);
    near_to(infer_power(5, 1, 0.05, 0.01, 1), 0, 0);
    /* Ten comparisons need 2/2^n <= 0.005, so 9 at least, whatever the noise. */
    assert_int_equal(infer_trials_needed(10, 0.05, 1e-9, 0.03, 0.9), 9);
    assert_int_equal(infer_least_pairs(10, 0.05), 9);
    assert_int_equal(infer_least_pairs(1, 0.05), 6);
    one = infer_trials_needed(1, 0.05, 0.0283, 0.03, 0.9);
    many = infer_trials_needed(8, 0.05, 0.0283, 0.03, 0.9);
    assert_in_range(one, 11, 13);
    assert_in_range(many, 16, 22);
    assert_int_equal(infer_trials_needed(1, 0.05, 10, 0.001, 0.9), 0);
}

static void interval_covers(void **state)
{
    struct infer_random random = {11};
    struct infer_interval interval;
    double values[12];
    unsigned int run, i, covered = 0;

    for (run = 0; run < 600; run++) {
        for (i = 0; i < 12; i++)
            values[i] = 0.5 + infer_random_normal(&random);
        assert_int_equal(infer_bootstrap_t(values, 12, 0.95, 500, run, &interval), 0);
        assert_true(interval.low <= interval.high);
        covered += interval.low <= 0.5 && interval.high >= 0.5;
    }
    /* 95 % of 600 is 570; the bootstrap of twelve values is a little off. */
    assert_in_range(covered, 552, 592);
    assert_int_equal(infer_bootstrap_t(values, 5, 0.95, 500, 1, &interval), -EDOM);
}

static void verdicts(void **state)
{
    const double up[10] = {0.10, 0.11, 0.09, 0.10, 0.12, 0.08, 0.10, 0.11, 0.09, 0.10};
    const double level[10] = {0.01, -0.01, 0.005, -0.008, 0.01, -0.01, 0.002, 0, -0.004, 0.006};
    const double wild[10] = {0.4, -0.3, 0.2, -0.5, 0.6, -0.1, 0.3, -0.4, 0.1, -0.2};
    struct infer_comparison comparisons[4] = {
        {.log_ratio = up, .pairs = 10},
        {.log_ratio = level, .pairs = 10},
        {.log_ratio = wild, .pairs = 10},
        {.log_ratio = up, .pairs = 5},
    };
    const struct infer_rules rules = {0.05, 0.95, 0.05, 2000, 3};

    assert_int_equal(infer_judge(comparisons, 4, &rules), 0);
    assert_int_equal(comparisons[0].verdict, INFER_DIFFERENT);
    assert_int_equal(comparisons[1].verdict, INFER_EQUIVALENT);
    assert_int_equal(comparisons[2].verdict, INFER_UNDECIDED);
    assert_int_equal(comparisons[3].verdict, INFER_UNDECIDED);
    assert_true(isnan(comparisons[3].low));
    near_to(comparisons[0].ratio, exp(0.1), 1e-9);
    assert_true(comparisons[0].low > 1.09 && comparisons[0].high < 1.12);
    near_to(comparisons[0].p_holm, 4 * comparisons[0].p, 1e-12);
}

/* A band holds the whole of the true curve about as often as it says: curves whose points hang
 * together, as quantiles of one trial do. */
static void bands_cover(void **state)
{
    enum {
        PAIRS = 12,
        POINTS = 15
    };
    static double logs[PAIRS * POINTS];
    struct infer_random random = {21};
    struct band_point band[POINTS];
    unsigned int run, row, point, covered = 0, inside;
    double at;

    for (run = 0; run < 300; run++) {
        for (row = 0; row < PAIRS; row++)
            for (point = 0, at = 0.2 * infer_random_normal(&random); point < POINTS; point++) {
                at += 0.05 * infer_random_normal(&random);
                logs[row * POINTS + point] = 0.3 + at;
            }
        assert_int_equal(band_of_ratios(logs, PAIRS, POINTS, 0.95, 400, run, band), 0);
        for (point = 0, inside = 0; point < POINTS; point++)
            inside += band[point].low <= exp(0.3) && band[point].high >= exp(0.3);
        covered += inside == POINTS;
    }
    assert_in_range(covered, 270, 298);
    assert_int_equal(band_of_ratios(logs, 5, POINTS, 0.95, 400, 1, band), -EDOM);
}

static void trend(void **state)
{
    struct infer_random random = {5};
    struct infer_trend found;
    double values[40];
    unsigned int i, run, wrong = 0;

    for (i = 0; i < 40; i++)
        values[i] = 10 + i * 0.1 + 0.2 * infer_random_normal(&random);
    assert_int_equal(infer_trend_find(values, 40, 1, &found), 0);
    near_to(found.change, 3.9, 0.4);
    assert_true(found.p < 0.001);
    for (run = 0; run < 200; run++) {
        for (i = 0; i < 40; i++)
            values[i] = infer_random_normal(&random);
        assert_int_equal(infer_trend_find(values, 40, run, &found), 0);
        wrong += found.p < 0.01;
    }
    assert_in_range(wrong, 0, 7);
    assert_int_equal(infer_trend_find(values, 5, 1, &found), 0);
    near_to(found.p, 1, 0);
}

static void humps(void **state)
{
    struct infer_random random = {9};
    struct infer_humps found;
    double values[16];
    unsigned int i, run, wrong = 0;

    for (i = 0; i < 16; i++)
        values[i] = (i % 3 == 0 ? 120 : 100) + infer_random_normal(&random);
    assert_int_equal(infer_humps_find(values, 16, 1, &found), 0);
    assert_true(found.p < 0.001);
    assert_int_equal(found.low_count, 10);
    near_to(found.low, 100, 1.5);
    near_to(found.high, 120, 1.5);
    for (run = 0; run < 200; run++) {
        for (i = 0; i < 16; i++)
            values[i] = infer_random_normal(&random);
        assert_int_equal(infer_humps_find(values, 16, run, &found), 0);
        wrong += found.p < 0.01;
    }
    assert_in_range(wrong, 0, 7);
    for (i = 0; i < 16; i++)
        values[i] = 3;
    assert_int_equal(infer_humps_find(values, 16, 1, &found), 0);
    near_to(found.p, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distributions),
        cmocka_unit_test(permutation_by_hand),
        cmocka_unit_test(permutation_sampled),
        cmocka_unit_test(holm_by_hand),
        cmocka_unit_test(power_known),
        cmocka_unit_test(interval_covers),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(trend),
        cmocka_unit_test(humps),
        cmocka_unit_test(bands_cover),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
