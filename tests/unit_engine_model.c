/* SPDX-License-Identifier: MIT */
/* The model engine on a simulated clock: exact times, and distributions that are what they say.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/engine_bench.h"

#define DEPTH 16u

struct sim {
    struct bench bench;
    struct clock *clock;
    struct engine_op op[DEPTH];
};

static void sim_open(struct sim *sim, const char *choice, uint64_t seed)
{
    sim->clock = clock_simulated_new(1000000);
    bench_init(&sim->bench, -1, DEPTH);
    sim->bench.env.clock = sim->clock;
    sim->bench.env.seed = seed;
    if (bench_open(&sim->bench, choice))
        fail_msg("%s", sim->bench.diag.text);
    for (unsigned int i = 0; i < DEPTH; i++)
        sim->op[i] = bench_op(&sim->bench, TRACE_READ, i, 0, 4096);
}

static void sim_close(struct sim *sim)
{
    bench_close(&sim->bench);
    clock_simulated_free(sim->clock);
}

static void submit_all(struct sim *sim, unsigned int count)
{
    struct engine_op *ops[DEPTH];

    for (unsigned int i = 0; i < count; i++)
        ops[i] = &sim->op[i];
    assert_int_equal(engine_submit(sim->bench.handle, ops, count), count);
}

static void channels_serve_in_order_of_arrival(void **test_state)
{
    struct engine_op *done[DEPTH];
    struct sim sim;

    sim_open(&sim, "model:service=100us,channels=2", 1);
    submit_all(&sim, 5);
    /* Two at 100 us, two at 200, one at 300. */
    assert_int_equal(engine_reap(sim.bench.handle, done, 0, DEPTH, 0), 0);
    assert_int_equal(engine_reap(sim.bench.handle, done, 1, DEPTH, UINT64_MAX), 2);
    assert_int_equal(clock_now_ns(sim.clock), 1100000);
    assert_ptr_equal(done[0], &sim.op[0]);
    assert_int_equal(done[0]->issued_ns, 1000000);
    assert_int_equal(done[0]->completed_ns, 1100000);
    assert_int_equal(done[0]->result, 4096);
    assert_int_equal(engine_reap(sim.bench.handle, done, 3, DEPTH, UINT64_MAX), 3);
    assert_int_equal(clock_now_ns(sim.clock), 1300000);
    assert_ptr_equal(done[2], &sim.op[4]);
    sim_close(&sim);
}

static void a_wait_stops_at_its_time(void **test_state)
{
    struct engine_op *done[DEPTH];
    struct sim sim;

    sim_open(&sim, "model:service=100us", 1);
    submit_all(&sim, 1);
    assert_int_equal(engine_reap(sim.bench.handle, done, 1, DEPTH, 99999), 0);
    assert_int_equal(clock_now_ns(sim.clock), 1099999);
    assert_int_equal(engine_reap(sim.bench.handle, done, 1, DEPTH, 1), 1);
    assert_int_equal(clock_now_ns(sim.clock), 1100000);
    sim_close(&sim);
}

static void kinds_have_times_of_their_own(void **test_state)
{
    struct engine_op *done[DEPTH];
    struct sim sim;

    sim_open(&sim,
             "model:service=100us,write-service=10us,sync-service=1ms,bandwidth=4096000,"
             "channels=3",
             1);
    sim.op[1].kind = TRACE_WRITE;
    sim.op[2].kind = TRACE_FSYNC;
    submit_all(&sim, 3);
    assert_int_equal(engine_reap(sim.bench.handle, done, 3, DEPTH, UINT64_MAX), 3);
    /* 4096 bytes at 4,096,000 a second are 1 ms. */
    assert_int_equal(sim.op[0].completed_ns - sim.op[0].issued_ns, 1100000);
    assert_int_equal(sim.op[1].completed_ns - sim.op[1].issued_ns, 1010000);
    assert_int_equal(sim.op[2].completed_ns - sim.op[2].issued_ns, 1000000);
    assert_int_equal(sim.op[2].result, 0);
    sim_close(&sim);
}

struct sample {
    double mean_ns, deviation_ns, failed, long_ones, last_ns;
};

/* count reads one after the other. */
static struct sample sample(const char *choice, uint64_t seed, unsigned int count)
{
    struct engine_op *done[DEPTH];
    struct sample sample = {0};
    double square = 0;
    struct sim sim;

    sim_open(&sim, choice, seed);
    for (unsigned int i = 0; i < count; i++) {
        double ns;

        submit_all(&sim, 1);
        assert_int_equal(engine_reap(sim.bench.handle, done, 1, DEPTH, UINT64_MAX), 1);
        ns = (double)(done[0]->completed_ns - done[0]->issued_ns);
        sample.mean_ns += ns / count;
        square += ns * ns / count;
        sample.failed += done[0]->result == -EIO ? 1.0 / count : 0;
        sample.long_ones += ns >= 1000000 ? 1.0 / count : 0;
        sample.last_ns = ns;
    }
    sample.deviation_ns = sqrt(square - sample.mean_ns * sample.mean_ns);
    sim_close(&sim);
    return sample;
}

static void near(double expected, double actual, double within)
{
    if (fabs(actual - expected) > within)
        fail_msg("%g is not within %g of %g", actual, within, expected);
}

static void distributions_are_what_they_say(void **test_state)
{
    struct sample s;

    s = sample("model:service=50us,random=100us", 3, 20000);
    near(150000, s.mean_ns, 3000);
    near(100000, s.deviation_ns, 3000);
    s = sample("model:service=50us,random=100us,dist=uniform", 3, 20000);
    near(150000, s.mean_ns, 2000);
    near(200000 / sqrt(12), s.deviation_ns, 1000);
    s = sample("model:service=50us,random=100us,dist=lognormal,sigma=0.5", 3, 20000);
    near(150000, s.mean_ns, 2000);
    near(100000 * sqrt(exp(0.25) - 1), s.deviation_ns, 2500);
    s = sample("model:service=50us,random=100us,dist=constant", 3, 100);
    near(150000, s.mean_ns, 0.01);
}

static void errors_and_humps_come_at_their_rate(void **test_state)
{
    struct sample s =
        sample("model:service=50us,error-rate=10,hump=25,hump-extra=1ms", 9, 20000);

    near(0.10, s.failed, 0.01);
    near(0.25, s.long_ones, 0.01);
}

static void runs_differ_by_noise_and_repeat_by_seed(void **test_state)
{
    double mean = 0, square = 0, slow = 0;

    assert_true(sample("model:random=10us", 5, 50).mean_ns ==
                sample("model:random=10us", 5, 50).mean_ns);
    assert_true(sample("model:random=10us", 5, 50).mean_ns !=
                sample("model:random=10us", 6, 50).mean_ns);
    for (unsigned int seed = 1; seed <= 400; seed++) {
        double factor = log(sample("model:noise=2", seed, 1).mean_ns / 100000);

        mean += factor / 400;
        square += factor * factor / 400;
        slow += sample("model:run-hump=30,run-hump-slower=50", seed, 1).mean_ns > 140000;
    }
    near(0, mean, 0.004);
    near(0.02, sqrt(square), 0.003);
    near(120, slow, 30);
    /* All workers of a run share its noise, not its draws. */
    assert_true(sample("model:noise=2,seed=7", 1, 1).mean_ns ==
                sample("model:noise=2,seed=7", 2, 1).mean_ns);
}

static void scale_and_drift_lengthen_service(void **test_state)
{
    near(300000, sample("model:scale=3", 1, 1).last_ns, 1);
    /* After about 1 s of run, 10% a second. */
    near(110000, sample("model:drift=10", 1, 9500).last_ns, 300);
}

static void the_factor_is_reported(void **test_state)
{
    struct sim sim;

    sim_open(&sim, "model:scale=2", 1);
    assert_int_equal(bench_counter(&sim.bench, "service_factor_ppm"), 2000000);
    sim_close(&sim);
}

static void it_runs_on_the_real_clock_too(void **test_state)
{
    struct engine_op op, *ops[1] = {&op}, *done[1];
    struct bench bench;
    uint64_t before_ns = clock_now_ns(&clock_real);

    bench_init(&bench, -1, 1);
    assert_int_equal(bench_open(&bench, "model:service=2ms"), 0);
    op = bench_op(&bench, TRACE_WRITE, 0, 0, 512);
    assert_int_equal(engine_submit(bench.handle, ops, 1), 1);
    assert_int_equal(engine_reap(bench.handle, done, 1, 1, UINT64_MAX), 1);
    assert_true(clock_now_ns(&clock_real) - before_ns >= 2000000);
    assert_int_equal(op.completed_ns - op.issued_ns, 2000000);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_serve_in_order_of_arrival),
        cmocka_unit_test(a_wait_stops_at_its_time),
        cmocka_unit_test(kinds_have_times_of_their_own),
        cmocka_unit_test(distributions_are_what_they_say),
        cmocka_unit_test(errors_and_humps_come_at_their_rate),
        cmocka_unit_test(runs_differ_by_noise_and_repeat_by_seed),
        cmocka_unit_test(scale_and_drift_lengthen_service),
        cmocka_unit_test(the_factor_is_reported),
        cmocka_unit_test(it_runs_on_the_real_clock_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
