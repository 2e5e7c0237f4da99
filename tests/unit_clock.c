/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engines/clock.h"

static void real_clock_moves_forward_and_waits(void **test_state)
{
    uint64_t before_ns = clock_now_ns(&clock_real), deadline_ns = before_ns + 2000000;

    assert_true(before_ns > 0);
    clock_real.wait_until(&clock_real, deadline_ns);
    assert_true(clock_now_ns(&clock_real) >= deadline_ns);
    assert_true(clock_real.now_ns(&clock_real) >= deadline_ns);
    /* A deadline that has passed does not wait. */
    clock_real.wait_until(&clock_real, 1);
}

static void simulated_clock_moves_only_when_told(void **test_state)
{
    struct clock *clock = clock_simulated_new(1000);

    assert_non_null(clock);
    assert_true(clock->simulated);
    assert_int_equal(clock_now_ns(clock), 1000);
    assert_int_equal(clock_now_ns(clock), 1000);
    clock->wait_until(clock, 86400u * 1000000000ull);
    assert_int_equal(clock_now_ns(clock), 86400u * 1000000000ull);
    clock->wait_until(clock, 5);
    assert_int_equal(clock_now_ns(clock), 86400u * 1000000000ull);
    clock_simulated_free(clock);
    clock_simulated_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_clock_moves_forward_and_waits),
        cmocka_unit_test(simulated_clock_moves_only_when_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
