/* SPDX-License-Identifier: MIT */
/* What is particular to the engines on the kernel's asynchronous interfaces. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/engine_bench.h"

static bool can_run(const char *text)
{
    struct engine_choice choice;
    struct diag diag = DIAG_INIT;
    bool can;

    assert_int_equal(engine_choice_parse(&choice, text, &diag), 0);
    can = engine_choice_probe(&choice, &diag) == 0;
    engine_choice_release(&choice);
    return can;
}

/* A read of an empty pipe stays in flight until something is written to it. */
static void timed_wait(const char *choice, bool one_call)
{
    struct engine_op op, *ops[1] = {&op}, *done[1];
    uint64_t before_ns, took_ns;
    int pipe_fds[2], taken = 0;
    struct bench bench;

    assert_int_equal(pipe(pipe_fds), 0);
    bench_init(&bench, pipe_fds[0], 4);
    assert_int_equal(bench_open(&bench, choice), 0);
    op = bench_op(&bench, TRACE_READ, 0, TRACE_UNKNOWN_U64, 3);
    before_ns = clock_now_ns(&clock_real);
    if (one_call) {
        assert_int_equal(engine_submit_reap(bench.handle, ops, 1, &taken, done, 1, 1, 20000000),
                         0);
        assert_int_equal(taken, 1);
    } else {
        assert_int_equal(engine_submit(bench.handle, ops, 1), 1);
        assert_int_equal(engine_reap(bench.handle, done, 0, 1, 0), 0);
        assert_int_equal(engine_reap(bench.handle, done, 1, 1, 20000000), 0);
    }
    took_ns = clock_now_ns(&clock_real) - before_ns;
    assert_true(took_ns >= 20000000);
    assert_int_equal(write(pipe_fds[1], "abc", 3), 3);
    assert_int_equal(bench_wait(&bench, done, 1, 1), 1);
    assert_int_equal(op.result, 3);
    assert_memory_equal(op.buffer, "abc", 3);
    bench_close(&bench);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void io_uring_waits_as_long_as_told(void **test_state)
{
    static const char *const choices[] = {"io_uring", "io_uring:register=0",
                                          "io_uring:defer=0,coop=0", "io_uring:sqpoll=1"};

    if (!can_run("io_uring"))
        skip();
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        timed_wait(choices[i], false);
        timed_wait(choices[i], true);
    }
}

static void io_uring_says_what_was_granted(void **test_state)
{
    struct bench bench;
    int fd;

    if (!can_run("io_uring"))
        skip();
    fd = bench_file("granted", 4096, 0);
    bench_init(&bench, fd, 4);
    assert_int_equal(bench_open(&bench, "io_uring"), 0);
    if (!bench.downgraded) {
        assert_non_null(strstr(bench.granted, "single_issuer"));
        assert_non_null(strstr(bench.granted, "defer_taskrun"));
        assert_non_null(strstr(bench.granted, "files"));
        assert_non_null(strstr(bench.granted, "buffers"));
        assert_string_equal(bench.notes, "");
    } else {
        assert_string_not_equal(bench.notes, "");
    }
    bench_close(&bench);
    bench_init(&bench, fd, 4);
    assert_int_equal(bench_open(&bench, "io_uring:sqpoll=1"), 0);
    assert_non_null(strstr(bench.granted, "sqpoll"));
    assert_null(strstr(bench.granted, "defer_taskrun"));
    assert_null(strstr(bench.granted, "single_issuer"));
    bench_close(&bench);
    bench_init(&bench, fd, 4);
    assert_int_equal(bench_open(&bench, "io_uring:sqpoll=1,sqpoll-cpu=x"), -EINVAL);
    bench_close(&bench);
    bench_init(&bench, fd, 4);
    assert_int_equal(bench_open(&bench, "io_uring:iopoll=1"), -EINVAL);
    assert_non_null(strstr(bench.diag.text, "direct"));
    bench_close(&bench);
    close(fd);
}

/* Buffers over the memory lock limit: a note, and the run goes on without them. Runs in a child
 * without CAP_IPC_LOCK, whose exit status is the count of failures. */
static int run_without_memlock(void)
{
    struct rlimit limit = {.rlim_cur = 65536, .rlim_max = 65536};
    struct engine_op op, *ops[1] = {&op}, *done[1];
    struct bench bench;
    int fd = bench_file("memlock", 4096, 5), failures = 0;

    if (setrlimit(RLIMIT_MEMLOCK, &limit) || setuid(65534))
        return 77;
    bench_init(&bench, fd, 64);
    if (bench_open(&bench, "io_uring"))
        return 1;
    failures += !bench.downgraded;
    failures += !strstr(bench.notes, "registered buffers not used");
    failures += !strstr(bench.notes, "ulimit -l");
    failures += strstr(bench.granted, "buffers") != NULL;
    op = bench_op(&bench, TRACE_READ, 0, 0, 4096);
    failures += engine_submit(bench.handle, ops, 1) != 1;
    failures += bench_wait(&bench, done, 1, 1) != 1;
    failures += op.result != 4096;
    bench_close(&bench);
    return failures;
}

static void io_uring_runs_without_locked_memory(void **test_state)
{
    int status;
    pid_t pid;

    if (!can_run("io_uring") || geteuid() != 0)
        skip();
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(run_without_memlock());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static uint64_t proc_number(const char *path)
{
    unsigned long long value = 0;
    FILE *file = fopen(path, "r");

    if (file) {
        assert_int_equal(fscanf(file, "%llu", &value), 1);
        fclose(file);
    }
    return value;
}

/* What follows a flush in a batch is not stamped before it. */
static void libaio_hands_over_a_flush_alone(void **test_state)
{
    int fd = bench_file("flush", 4 * 4096, 1);
    struct engine_op op[4], *ops[4], *done[4];
    const int taken[] = {1, 1, 2};
    struct bench bench;
    unsigned int at = 0, back = 0;

    if (!can_run("libaio"))
        skip();
    bench_init(&bench, fd, 4);
    assert_int_equal(bench_open(&bench, "libaio"), 0);
    for (unsigned int i = 0; i < 4; i++) {
        op[i] = bench_op(&bench, TRACE_WRITE, i, i * 4096, 4096);
        ops[i] = &op[i];
    }
    op[1].flags |= TRACE_F_PREFLUSH;
    for (unsigned int i = 0; i < 3; i++) {
        assert_int_equal(engine_submit(bench.handle, ops + at, 4 - at), taken[i]);
        at += (unsigned int)taken[i];
    }
    while (back < 4) {
        int n = bench_wait(&bench, done, 1, 4);

        assert_true(n > 0);
        back += (unsigned int)n;
    }
    for (unsigned int i = 0; i < 4; i++)
        assert_int_equal(op[i].result, 4096);
    bench_close(&bench);
    close(fd);
}

static void libaio_names_the_knob_when_depth_does_not_fit(void **test_state)
{
    uint64_t limit = proc_number("/proc/sys/fs/aio-max-nr");
    uint32_t left = (uint32_t)(limit - proc_number("/proc/sys/fs/aio-nr"));
    struct engine_capacity capacity;
    struct bench filler, bench;

    if (!can_run("libaio") || limit > 65536 || left == 0)
        skip();
    bench_init(&filler, -1, left < 1000 ? left : 1000);
    assert_int_equal(bench_open(&filler, "libaio"), 0);
    bench_init(&bench, -1, 16);
    bench.env.depth = 65536;
    assert_int_equal(bench_open(&bench, "libaio"), -EAGAIN);
    assert_non_null(strstr(bench.diag.text, "fs.aio-max-nr"));
    assert_non_null(strstr(bench.diag.text, "65536"));
    engine_choice_capacity(&bench.choice, 65536, 1, &capacity);
    assert_true(capacity.max_depth < 65536);
    assert_non_null(strstr(capacity.reason, "sysctl"));
    engine_choice_capacity(&bench.choice, 16, 1, &capacity);
    assert_string_equal(capacity.reason, "");
    /* What one could have, a hundred together cannot. */
    engine_choice_capacity(&bench.choice, 4096, 100, &capacity);
    assert_true(capacity.max_depth < 4096 / 2);
    assert_non_null(strstr(capacity.reason, "409600"));
    bench_close(&bench);
    bench_close(&filler);
}

/* 20000 at once, on each of them. */
static void great_depth(const char *choice)
{
    const unsigned int depth = 20000;
    struct engine_op *op = calloc(depth, sizeof(op[0])), **ops = calloc(depth, sizeof(ops[0]));
    struct engine_op *done[256];
    unsigned int taken = 0, back = 0;
    struct bench bench;
    int fd = bench_file("deep", 1 << 20, 3), n;

    assert_true(op && ops);
    bench_init(&bench, fd, 16);
    bench.env.depth = depth;
    bench.env.batch = 8;
    if (bench_open(&bench, choice))
        fail_msg("%s", bench.diag.text);
    for (unsigned int i = 0; i < depth; i++) {
        op[i] = bench_op(&bench, TRACE_READ, i, i % 2048 * 512, 512);
        op[i].buffer = bench.env.buffers; /* all alike: what they bring is not looked at */
        ops[i] = &op[i];
    }
    while (taken < depth) {
        n = engine_submit(bench.handle, ops + taken, depth - taken < 8 ? depth - taken : 8);
        assert_true(n > 0);
        taken += (unsigned int)n;
    }
    while (back < depth) {
        n = bench_wait(&bench, done, 1, 256);
        assert_true(n > 0);
        for (int i = 0; i < n; i++)
            assert_int_equal(done[i]->result, 512);
        back += (unsigned int)n;
    }
    bench_close(&bench);
    close(fd);
    free(op);
    free(ops);
}

static void depth_20000_works(void **test_state)
{
    uint64_t left = proc_number("/proc/sys/fs/aio-max-nr") - proc_number("/proc/sys/fs/aio-nr");

    if (can_run("io_uring"))
        great_depth("io_uring");
    if (can_run("libaio") && left >= 20000)
        great_depth("libaio");
    if (can_run("posixaio"))
        great_depth("posixaio");
}

static void posixaio_has_one_pool_a_process(void **test_state)
{
    struct bench bench;

    if (!can_run("posixaio"))
        skip();
    bench_init(&bench, -1, 1);
    assert_int_equal(bench_open(&bench, "posixaio"), 0);
    bench_close(&bench);
    bench_init(&bench, -1, 1);
    assert_int_equal(bench_open(&bench, "posixaio:threads=3"), 0);
    assert_true(bench.downgraded);
    assert_non_null(strstr(bench.notes, "has 20 threads already, not 3"));
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(io_uring_waits_as_long_as_told),
        cmocka_unit_test(io_uring_says_what_was_granted),
        cmocka_unit_test(io_uring_runs_without_locked_memory),
        cmocka_unit_test(libaio_hands_over_a_flush_alone),
        cmocka_unit_test(libaio_names_the_knob_when_depth_does_not_fit),
        cmocka_unit_test(depth_20000_works),
        cmocka_unit_test(posixaio_has_one_pool_a_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
