/* SPDX-License-Identifier: MIT */
/* The registry, the choice on the command line, and what the wrappers check. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/engine_bench.h"

/* ---- an engine that breaks the contract on request -------------------------------------- */

struct fake {
    struct engine_op *ops[8];
    unsigned int count;
    int take;      /* submit's answer, when not 0 */
    bool twice;    /* reap hands the first op back again */
    bool too_many; /* reap says more than it was given */
    int reap_error;
    int64_t result;
    struct engine_op *last;
};

static struct fake fake;

static int fake_open(const void *conf, const struct engine_env *env, void **ret_state)
{
    *ret_state = &fake;
    return 0;
}

static int fake_submit(void *state, struct engine_op **ops, unsigned int count)
{
    if (fake.take)
        return fake.take;
    for (unsigned int i = 0; i < count; i++)
        fake.ops[fake.count++] = ops[i];
    return (int)count;
}

static int fake_reap(void *state, struct engine_op **done, unsigned int min, unsigned int max,
                     uint64_t timeout_ns)
{
    if (fake.reap_error)
        return fake.reap_error;
    if (fake.twice) {
        done[0] = fake.last;
        return 1;
    }
    for (unsigned int i = 0; i < fake.count; i++) {
        fake.last = done[i] = fake.ops[i];
        done[i]->result = fake.result;
    }
    fake.count = 0;
    return fake.too_many ? (int)max + 1 : (int)min;
}

static void fake_close(void *state)
{
}

static const struct engine engine_fake = {
    .name = "fake",
    .summary = "for this test",
    .ops = ENGINE_OPS_RW,
    .open = fake_open,
    .submit = fake_submit,
    .reap = fake_reap,
    .close = fake_close,
};

static void fake_bench(struct bench *bench)
{
    fake = (struct fake){0};
    bench_init(bench, -1, 8);
    bench->choice = (struct engine_choice){.engine = &engine_fake};
    assert_int_equal(engine_open(&bench->handle, &bench->choice, &bench->env), 0);
}

/* ---- registry and choice ---------------------------------------------------------------- */

static void engines_are_found_by_name_in_order(void **test_state)
{
    const struct engine *engine, *before = NULL;

    for (unsigned int i = 0; (engine = engine_at(i)); i++) {
        if (before)
            assert_true(strcmp(before->name, engine->name) < 0);
        assert_ptr_equal(engine_find(engine->name, strlen(engine->name)), engine);
        assert_true(engine->summary && engine->ops);
        assert_true(engine->unavailable || (engine->open && engine->submit && engine->reap));
        before = engine;
    }
    assert_non_null(engine_find("sync", 4));
    assert_null(engine_find("sync", 3));
    assert_null(engine_find("sync2", 5));
}

/* Every option has help, and its default is within its own limits. */
static void options_are_documented_and_their_defaults_hold(void **test_state)
{
    const struct engine *engine;

    for (unsigned int i = 0; (engine = engine_at(i)); i++) {
        struct engine_choice choice;
        struct diag diag = DIAG_INIT;

        for (const struct opt *opt = engine->opts; opt && (opt->name || opt->help); opt++)
            assert_true(opt->help && *opt->help);
        if (engine_choice_parse(&choice, engine->name, &diag))
            fail_msg("%s: %s", engine->name, diag.text);
        assert_string_equal(choice.text, engine->name);
        engine_choice_release(&choice);
    }
}

static void wrong_choices_say_what_is_wrong(void **test_state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"nosuch", "there are: "},           {"", "no engine is called ''"},
        {"null:depth=1", "has no options"},  {"model:nosuch=1", "nosuch"},
        {"model:service=fast", "service"},   {"model:channels=0", "channels"},
        {"model:dist=gauss", "exponential"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct engine_choice choice;
        struct diag diag = DIAG_INIT;

        assert_int_equal(engine_choice_parse(&choice, cases[i].text, &diag), -EINVAL);
        if (!strstr(diag.text, cases[i].says))
            fail_msg("'%s' does not say '%s'", diag.text, cases[i].says);
    }
}

static void unavailable_engines_are_refused_with_the_reason(void **test_state)
{
    static const struct engine absent = {.name = "absent", .unavailable = "built without libx"};
    struct engine_choice choice = {.engine = &absent};
    struct bench bench;

    bench_init(&bench, -1, 1);
    assert_int_equal(engine_choice_probe(&choice, &bench.diag), -ENOSYS);
    assert_string_equal(bench.diag.text, "engine absent: built without libx");
    diag_clear(&bench.diag);
    assert_int_equal(engine_open(&bench.handle, &choice, &bench.env), -ENOSYS);
    bench_close(&bench);
}

static void open_refuses_what_cannot_be(void **test_state)
{
    struct clock *clock = clock_simulated_new(0);
    struct bench bench;

    bench_init(&bench, -1, 4);
    bench.env.clock = clock;
    assert_int_equal(bench_open(&bench, "sync"), -EINVAL);
    assert_non_null(strstr(bench.diag.text, "simulated clock"));
    bench.env.clock = &clock_real;
    bench.env.batch = 5;
    assert_int_equal(engine_open(&bench.handle, &bench.choice, &bench.env), -EINVAL);
    bench.env.batch = 1;
    bench.env.depth = 0;
    assert_int_equal(engine_open(&bench.handle, &bench.choice, &bench.env), -EINVAL);
    bench.env.depth = 65537;
    assert_int_equal(engine_open(&bench.handle, &bench.choice, &bench.env), -EINVAL);
    bench_close(&bench);
    bench_init(&bench, -1, 4);
    bench.target.direct = true;
    assert_int_equal(bench_open(&bench, "mmap"), -EINVAL);
    assert_non_null(strstr(bench.diag.text, "direct"));
    bench_close(&bench);
    clock_simulated_free(clock);
}

/* A kernel has a limit of threads, and no machine of today lets a process start 2^32 - 1. */
static void engines_that_need_threads_name_the_limit(void **test_state)
{
    static const char *const choices[] = {"sync", "mmap", "threads:threads=65536"};

    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        struct engine_capacity capacity;
        struct engine_choice choice;
        struct diag diag = DIAG_INIT;

        assert_int_equal(engine_choice_parse(&choice, choices[i], &diag), 0);
        engine_choice_capacity(&choice, 1, 1, &capacity);
        assert_string_equal(capacity.reason, "");
        assert_true(capacity.memory_bytes > 0);
        engine_choice_capacity(&choice, UINT32_MAX, 1, &capacity);
        if (i < 2) {
            assert_true(capacity.max_depth > 0 && capacity.max_depth < UINT32_MAX);
            assert_non_null(strstr(capacity.reason, "more can be started"));
        }
        engine_choice_release(&choice);
    }
}

/* ---- the contract ----------------------------------------------------------------------- */

static void callers_mistakes_are_refused(void **test_state)
{
    struct bench bench;
    struct engine_op op[9], *ops[9], *done[8];

    fake_bench(&bench);
    for (unsigned int i = 0; i < 9; i++) {
        op[i] = bench_op(&bench, TRACE_READ, i % 8, 0, 512);
        ops[i] = &op[i];
    }
    assert_int_equal(engine_submit(bench.handle, ops, 9), -EINVAL);
    op[1].kind = TRACE_FSYNC;
    assert_int_equal(engine_submit(bench.handle, ops, 2), -EINVAL);
    assert_int_equal(op[0].state, ENGINE_OP_IDLE);
    op[1].kind = TRACE_READ;
    assert_int_equal(engine_submit(bench.handle, ops, 2), 2);
    assert_int_equal(engine_submit(bench.handle, ops, 1), -EINVAL);
    assert_int_equal(engine_in_flight(bench.handle), 2);
    assert_int_equal(engine_submit(bench.handle, ops + 2, 7), -EINVAL);
    assert_int_equal(engine_submit(bench.handle, ops, 0), 0);
    assert_int_equal(engine_reap(bench.handle, done, 8, 8, 0), 2);
    assert_int_equal(engine_reap(bench.handle, done, 8, 8, UINT64_MAX), 0);
    bench_close(&bench);
}

static void engines_mistakes_are_found(void **test_state)
{
    struct engine_op op, *ops[1] = {&op}, *done[8];
    struct bench bench;

    fake_bench(&bench);
    op = bench_op(&bench, TRACE_READ, 0, 0, 512);
    fake.take = 2;
    assert_int_equal(engine_submit(bench.handle, ops, 1), -EPROTO);
    op.state = ENGINE_OP_IDLE;
    fake.take = -EAGAIN;
    assert_int_equal(engine_submit(bench.handle, ops, 1), -EAGAIN);
    assert_int_equal(op.state, ENGINE_OP_IDLE);
    fake.take = -ENODEV;
    diag_clear(&bench.diag);
    assert_int_equal(engine_submit(bench.handle, ops, 1), -ENODEV);
    fake.take = 0;
    fake.result = 513; /* more than was asked for */
    assert_int_equal(engine_submit(bench.handle, ops, 1), 1);
    assert_int_equal(engine_reap(bench.handle, done, 1, 8, 0), -EPROTO);
    bench_close(&bench);

    fake_bench(&bench);
    op = bench_op(&bench, TRACE_READ, 0, 0, 512);
    assert_int_equal(engine_submit(bench.handle, ops, 1), 1);
    fake.too_many = true;
    assert_int_equal(engine_reap(bench.handle, done, 1, 8, 0), -EPROTO);
    bench_close(&bench);

    fake_bench(&bench);
    struct engine_op two[2] = {bench_op(&bench, TRACE_READ, 0, 0, 512),
                               bench_op(&bench, TRACE_READ, 1, 0, 512)};
    struct engine_op *pair[2] = {&two[0], &two[1]};

    assert_int_equal(engine_submit(bench.handle, pair, 2), 2);
    assert_int_equal(engine_reap(bench.handle, done, 1, 1, 0), 1);
    fake.last = done[0];
    fake.twice = true;
    assert_int_equal(engine_reap(bench.handle, done, 1, 1, 0), -EPROTO);
    assert_non_null(strstr(bench.diag.text, "twice"));
    bench_close(&bench);
}

static void a_broken_engine_is_said_by_submit_reap(void **test_state)
{
    struct engine_op op, *ops[1] = {&op}, *done[8];
    struct bench bench;
    int taken;

    fake_bench(&bench);
    op = bench_op(&bench, TRACE_READ, 0, 0, 512);
    fake.take = -ENXIO;
    assert_int_equal(engine_submit_reap(bench.handle, ops, 1, &taken, done, 1, 8, 0), -ENXIO);
    assert_int_equal(taken, -ENXIO);
    fake.take = 0;
    fake.result = 512;
    assert_int_equal(engine_submit_reap(bench.handle, ops, 1, &taken, done, 1, 8, 0), 1);
    assert_int_equal(taken, 1);
    assert_int_equal(engine_submit_reap(bench.handle, ops, 0, &taken, done, 1, 8, 0), 0);
    assert_int_equal(engine_submit(bench.handle, ops, 1), 1);
    fake.reap_error = -EIO;
    assert_int_equal(engine_reap(bench.handle, done, 1, 8, 0), -EIO);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_are_found_by_name_in_order),
        cmocka_unit_test(options_are_documented_and_their_defaults_hold),
        cmocka_unit_test(wrong_choices_say_what_is_wrong),
        cmocka_unit_test(unavailable_engines_are_refused_with_the_reason),
        cmocka_unit_test(open_refuses_what_cannot_be),
        cmocka_unit_test(engines_that_need_threads_name_the_limit),
        cmocka_unit_test(callers_mistakes_are_refused),
        cmocka_unit_test(engines_mistakes_are_found),
        cmocka_unit_test(a_broken_engine_is_said_by_submit_reap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
