/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "engines/pool.h"
#include "traces/diag.h"

#define DEPTH 37u
#define TOTAL 20000u
#define WAIT  UINT64_MAX

struct context {
    uint64_t runs;  /* atomic */
    bool gate_shut; /* atomic: runs wait while it is */
    bool signals_open;
};

static void run(void *opaque, struct engine_op *op)
{
    struct context *context = opaque;
    sigset_t mask;

    while (__atomic_load_n(&context->gate_shut, __ATOMIC_ACQUIRE))
        usleep(100);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    if (!sigismember(&mask, SIGINT) || !sigismember(&mask, SIGALRM))
        __atomic_store_n(&context->signals_open, true, __ATOMIC_RELEASE);
    op->result = (int64_t)op->offset * 2;
    __atomic_add_fetch(&context->runs, 1, __ATOMIC_RELAXED);
}

static struct pool *pool_make(struct context *context, unsigned int threads)
{
    struct pool_conf conf = {
        .name = "test", .threads = threads, .depth = DEPTH, .run = run, .context = context};
    struct pool *pool;

    assert_int_equal(pool_new(&pool, &conf), 0);
    return pool;
}

static void every_op_comes_back_once_with_its_result(void **test_state)
{
    struct context context = {0};
    struct engine_op ops[DEPTH] = {{0}}, *free_ops[DEPTH], *done[DEPTH], *op;
    unsigned int free_count = DEPTH, sent = 0, back = 0;
    uint64_t sum = 0;
    struct pool *pool = pool_make(&context, 5);

    for (unsigned int i = 0; i < DEPTH; i++)
        free_ops[i] = &ops[i];
    while (back < TOTAL) {
        while (free_count > 0 && sent < TOTAL) {
            op = free_ops[--free_count];
            op->offset = sent++;
            /* Every tenth is the owner's own, and mixes with the threads'. */
            if (sent % 10 == 0) {
                op->result = (int64_t)op->offset * 2;
                pool_finished(pool, op);
            } else {
                pool_submit(pool, &op, 1);
            }
        }
        int n = pool_reap(pool, done, sent - back < 3 ? sent - back : 3, DEPTH, WAIT);

        assert_true(n > 0);
        for (int i = 0; i < n; i++) {
            assert_int_equal(done[i]->result, done[i]->offset * 2);
            sum += done[i]->offset;
            free_ops[free_count++] = done[i];
        }
        back += (unsigned int)n;
    }
    assert_int_equal(sum, (uint64_t)TOTAL * (TOTAL - 1) / 2);
    assert_int_equal(context.runs, TOTAL - TOTAL / 10);
    assert_int_equal(pool_reap(pool, done, 0, DEPTH, 0), 0);
    pool_free(pool);
    assert_false(context.signals_open);
}

static void a_wait_ends_at_its_time(void **test_state)
{
    struct context context = {.gate_shut = true};
    struct engine_op op = {.offset = 4}, *ops[1] = {&op}, *done[1];
    struct pool *pool = pool_make(&context, 1);
    uint64_t before_ns = clock_now_ns(&clock_real);

    pool_submit(pool, ops, 1);
    assert_int_equal(pool_reap(pool, done, 0, 1, 0), 0);
    assert_int_equal(pool_reap(pool, done, 1, 1, 3000000), 0);
    assert_true(clock_now_ns(&clock_real) - before_ns >= 3000000);
    __atomic_store_n(&context.gate_shut, false, __ATOMIC_RELEASE);
    assert_int_equal(pool_reap(pool, done, 1, 1, WAIT), 1);
    assert_int_equal(op.result, 8);
    pool_free(pool);
}

static void on_alarm(int number)
{
}

static void a_signal_ends_a_wait(void **test_state)
{
    struct context context = {.gate_shut = true};
    struct sigaction action = {.sa_handler = on_alarm}, before;
    struct engine_op op = {0}, *ops[1] = {&op}, *done[1];
    struct pool *pool = pool_make(&context, 2);

    sigaction(SIGALRM, &action, &before);
    pool_submit(pool, ops, 1);
    ualarm(20000, 20000); /* again and again: one may come before the wait */
    assert_int_equal(pool_reap(pool, done, 1, 1, WAIT), 0);
    ualarm(0, 0);
    sigaction(SIGALRM, &before, NULL);
    __atomic_store_n(&context.gate_shut, false, __ATOMIC_RELEASE);
    assert_int_equal(pool_reap(pool, done, 1, 1, WAIT), 1);
    pool_free(pool);
}

static void free_waits_for_what_runs_and_drops_the_rest(void **test_state)
{
    struct context context = {0};
    struct engine_op ops[DEPTH] = {{0}}, *pointers[DEPTH];
    struct pool *pool = pool_make(&context, 2);

    for (unsigned int i = 0; i < DEPTH; i++)
        pointers[i] = &ops[i];
    pool_submit(pool, pointers, DEPTH);
    pool_free(pool);
    assert_true(context.runs <= DEPTH);
    pool_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_comes_back_once_with_its_result),
        cmocka_unit_test(a_wait_ends_at_its_time),
        cmocka_unit_test(a_signal_ends_a_wait),
        cmocka_unit_test(free_waits_for_what_runs_and_drops_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
