/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "traces/hist.h"

static void test_slots(void **state)
{
    uint64_t value = 1;

    for (unsigned int slot = 0; slot < HIST_SLOTS; slot++) {
        assert_true(hist_slot(hist_slot_low(slot)) == slot);
        assert_true(hist_slot(hist_slot_high(slot)) == slot);
        if (slot)
            assert_true(hist_slot_low(slot) == hist_slot_high(slot - 1) + 1);
    }
    for (int i = 0; i < 1000; i++) {
        uint64_t low = hist_slot_low(hist_slot(value)), high = hist_slot_high(hist_slot(value));

        assert_true(low <= value && value <= high);
        assert_true(high - low <= value / 128);
        value = value * 6364136223846793005ull + 1442695040888963407ull;
    }
    assert_int_equal(hist_slot(UINT64_MAX), HIST_SLOTS - 1);
}

static void test_quantiles(void **state)
{
    struct hist *hist = malloc(sizeof(*hist)), *other = malloc(sizeof(*hist));

    assert_true(hist && other);
    hist_init(hist);
    hist_init(other);
    assert_int_equal(hist_quantile(hist, 0.5), 0);
    assert_true(hist_mean(hist) == 0);
    for (uint64_t i = 1; i <= 100; i++)
        hist_add(i % 2 ? hist : other, i);
    hist_merge(hist, other);
    assert_int_equal(hist->count, 100);
    assert_int_equal(hist->min, 1);
    assert_int_equal(hist->max, 100);
    assert_int_equal(hist_quantile(hist, 0), 1);
    assert_int_equal(hist_quantile(hist, 0.5), 50);
    assert_int_equal(hist_quantile(hist, 0.99), 99);
    assert_int_equal(hist_quantile(hist, 0.991), 100);
    assert_int_equal(hist_quantile(hist, 1), 100);
    assert_true(hist_mean(hist) == 50.5);
    assert_true(hist_stddev(hist) > 28.86 && hist_stddev(hist) < 28.87);
    hist_add(hist, UINT64_MAX);
    assert_true(hist_quantile(hist, 1) == UINT64_MAX);
    free(hist);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
