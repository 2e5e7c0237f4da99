/* SPDX-License-Identifier: MIT */
/* Due times, the learnt margin, parked operations: the timing logic, on a clock that is simulated
 * where one is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engines/clock.h"
#include "replay/pace.h"
#include "replay/park.h"
#include "replay/stats.h"
#include "replay/wait.h"

static void test_due_exact(void **state)
{
    struct pace pace;

    (void)state;
    pace_init(&pace, 1.0, 0, 0);
    assert_int_equal(pace_due(&pace, -500), -500);
    assert_int_equal(pace_due(&pace, 0), 0);
    /* Beyond the whole numbers of a double. */
    assert_int_equal(pace_due(&pace, 9007199254740993), 9007199254740993);
}

/* A time that goes back is due with the one before it and moves nothing after it. */
static void test_due_backwards(void **state)
{
    struct pace pace;

    (void)state;
    pace_init(&pace, 1.0, 0, 1000);
    assert_int_equal(pace_due(&pace, 1000), 0);
    assert_int_equal(pace_due(&pace, 5000), 4000);
    assert_int_equal(pace_due(&pace, 3000), 4000);
    assert_int_equal(pace_due(&pace, 6000), 5000);
}

/* A million thirds of a nanosecond add up to no error. */
static void test_due_speed(void **state)
{
    struct pace pace;
    int64_t due = 0;

    (void)state;
    pace_init(&pace, 3.0, 0, 0);
    for (int64_t i = 0; i <= 1000000; i++)
        due = pace_due(&pace, i * 10);
    assert_int_equal(due, 3333333);
    assert_int_equal(pace_scale(&pace, 300), 100);
}

static void test_due_gaps(void **state)
{
    struct pace pace;

    (void)state;
    pace_init(&pace, 2.0, 100, 0);
    assert_int_equal(pace_due(&pace, 0), 0);
    assert_int_equal(pace_due(&pace, 1000), 50);  /* 1000 became 100 */
    assert_int_equal(pace_due(&pace, 1100), 100); /* 100 is not above 100 */
    assert_int_equal(pace_due(&pace, 5000), 150);
}

static void test_due_loops(void **state)
{
    struct pace pace;

    (void)state;
    pace_init(&pace, 1.0, 0, 100);
    assert_int_equal(pace_due(&pace, 100), 0);
    assert_int_equal(pace_due(&pace, 400), 300);
    pace_next_loop(&pace, 50);
    assert_int_equal(pace_due(&pace, 100), 350);
    assert_int_equal(pace_due(&pace, 400), 650);
}

/* The margin goes to where 2 % of the wake-ups are later, and stays within its bounds. */
static void test_margin(void **state)
{
    const atomic_int stop = 0;
    struct waiter waiter;
    uint32_t random = 1;

    (void)state;
    waiter_init(&waiter, &clock_real, WAIT_HYBRID, &stop);
    for (int i = 0; i < 20000; i++) {
        random = random * 1664525u + 1013904223u;
        /* uniform over 0 .. 50 us: the 98th percentile is 49 us */
        waiter_learn(&waiter, 1000, 1000 + (random >> 8) % 50000);
    }
    assert_in_range(waiter.margin_ns, 40000, 70000);
    for (int i = 0; i < 20000; i++)
        waiter_learn(&waiter, 1000, 1000);
    assert_int_equal(waiter.margin_ns, WAIT_MARGIN_MIN_NS);
    for (int i = 0; i < 1000; i++)
        waiter_learn(&waiter, 0, 100000000);
    assert_int_equal(waiter.margin_ns, WAIT_MARGIN_MAX_NS);
    assert_int_equal(waiter.overshoot_max_ns, 100000000);
}

static void test_budget(void **state)
{
    const atomic_int stop = 0;
    struct waiter waiter;

    (void)state;
    waiter_init(&waiter, &clock_real, WAIT_HYBRID, &stop);
    waiter.margin_ns = 20000;
    waiter.awake_since_ns = 1000000;
    assert_int_equal(waiter_budget(&waiter, 1000000, 1015000), 0);
    assert_int_equal(waiter_budget(&waiter, 1000000, 1100000), 80000);
    /* Awake for too long: a gap shorter than the margin is slept through all the same. */
    waiter.margin_ns = 100000;
    assert_int_equal(waiter_budget(&waiter, 1000000, 1080000), 0);
    waiter.awake_since_ns = 1000000;
    assert_int_equal(waiter_budget(&waiter, 1000001 + WAIT_AWAKE_MAX_NS,
                                   1080001 + WAIT_AWAKE_MAX_NS), 80000 - WAIT_NAP_MARGIN_NS);
    waiter_init(&waiter, &clock_real, WAIT_SPIN, &stop);
    assert_int_equal(waiter_budget(&waiter, 0, 1000000), 0);
    waiter_init(&waiter, &clock_real, WAIT_SLEEP, &stop);
    assert_int_equal(waiter_budget(&waiter, 0, 1000), 1000);
}

/* A wait ends at its deadline on a simulated clock, and early when the run stops. */
static void test_until(void **state)
{
    struct clock *clock = clock_simulated_new(5000);
    atomic_int stop = 0;
    struct waiter waiter;
    uint64_t now;

    (void)state;
    assert_non_null(clock);
    waiter_init(&waiter, clock, WAIT_HYBRID, &stop);
    assert_int_equal(waiter_until(&waiter, 5000, 86400000000000), 86400000000000);
    clock_simulated_free(clock);
    stop = 1;
    waiter_init(&waiter, &clock_real, WAIT_HYBRID, &stop);
    now = clock_now_ns(&clock_real);
    assert_true(waiter_until(&waiter, now, now + 3600000000000) < now + 1000000000);
}

/* Operations of a stream leave a park in order, each due from the completion before it. */
static void test_park_think(void **state)
{
    const struct order_conf conf = {.think = true, .streams = 2, .files = 1};
    struct trace_op op = TRACE_OP_INIT;
    struct prepared p[3];
    struct order_tag tags[3];
    struct order *order;
    struct park *park;
    struct parked *parked;

    (void)state;
    assert_int_equal(order_new(&order, &conf), 0);
    assert_int_equal(park_new(&park, order, 8, true), 0);
    park_start(park, 1000000);
    op.file = 0;
    for (int i = 0; i < 3; i++) {
        op.stream = i == 1 ? 1 : 0;
        op.issue_ns = i * 100;
        op.latency_ns = 50;
        p[i] = (struct prepared){.due_ns = op.issue_ns, .stream = op.stream, .ref = (uint64_t)i};
        assert_int_equal(order_tag_op(order, &op, &p[i], &tags[i]), 0);
        park_add(park, &p[i], &tags[i], 0, 0);
    }
    assert_int_equal(park_count(park), 3);
    assert_null(park_peek(park, 999999));
    parked = park_peek(park, 1000000);
    assert_non_null(parked);
    assert_int_equal(parked->op.ref, 0);
    park_drop(park, 1000000);
    parked = park_peek(park, 1000100);
    assert_non_null(parked);
    assert_int_equal(parked->op.ref, 1);
    park_drop(park, 1000100);
    /* The third thinks for 150 after the first, whenever that completes. */
    assert_int_equal(park_next_due(park, 1000100), UINT64_MAX);
    order_done(order, &p[0], &tags[0], 1007000);
    assert_int_equal(park_next_due(park, 1007000), 1007150);
    parked = park_peek(park, 1007150);
    assert_non_null(parked);
    assert_int_equal(parked->op.ref, 2);
    assert_true(parked->waited);
    park_drop(park, 1007150);
    assert_int_equal(park_count(park), 0);
    park_free(park);
    order_free(order);
}

/* Slices join as the run grows, and nothing is lost. */
static void test_timeline(void **state)
{
    struct stats *stats = calloc(1, sizeof *stats);
    uint64_t sum = 0, depth_ns = 0;

    (void)state;
    assert_non_null(stats);
    stats_init(stats);
    for (uint64_t t = 0; t < 100; t++) {
        stats_bucket(&stats->timeline, t * 1000000000)->completed += 1;
        stats_depth(stats, 0, t * 1000000000, (t + 1) * 1000000000, 3);
    }
    for (int i = 0; i < STATS_BUCKETS; i++) {
        sum += stats->timeline.buckets[i].completed;
        depth_ns += stats->timeline.buckets[i].depth_ns;
    }
    assert_int_equal(sum, 100);
    assert_int_equal(depth_ns, 300000000000);
    assert_int_equal(stats->depth_ns, 300000000000);
    free(stats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_due_exact), cmocka_unit_test(test_due_backwards),
        cmocka_unit_test(test_due_speed), cmocka_unit_test(test_due_gaps),
        cmocka_unit_test(test_due_loops), cmocka_unit_test(test_margin),
        cmocka_unit_test(test_budget),    cmocka_unit_test(test_until),
        cmocka_unit_test(test_park_think), cmocka_unit_test(test_timeline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
