/* SPDX-License-Identifier: MIT */
/*
 * Engines on a block device: direct transfers, flush, discard and write-zeroes as the device's
 * own. On a loop device of its own, or on $IOTAPE_TEST_DEVICE, which it overwrites.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/engine_bench.h"

#define BLOCK  4096u
#define BLOCKS 64u

static char device_path[64];
static int loop_fd = -1;

/* A loop device on a file of ours; it goes when the last descriptor is closed. */
static int loop_make(void)
{
    struct loop_info64 info = {.lo_flags = LO_FLAGS_AUTOCLEAR};
    int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), number, file;

    if (control < 0)
        return -1;
    file = bench_file("backing", 1 << 20, 0);
    /* Another process may take the number first: then the next. */
    for (int tries = 0; tries < 10 && loop_fd < 0; tries++) {
        number = ioctl(control, LOOP_CTL_GET_FREE);
        if (number < 0)
            break;
        snprintf(device_path, sizeof(device_path), "/dev/loop%d", number);
        loop_fd = open(device_path, O_RDWR | O_CLOEXEC);
        if (loop_fd >= 0 &&
            (ioctl(loop_fd, LOOP_SET_FD, file) || ioctl(loop_fd, LOOP_SET_STATUS64, &info))) {
            close(loop_fd);
            loop_fd = -1;
        }
    }
    close(file);
    close(control);
    return loop_fd >= 0 ? 0 : -1;
}

static bool device_polls(void)
{
    char path[128], value = '0';
    struct stat st;
    FILE *file;

    if (stat(device_path, &st))
        return false;
    snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/queue/io_poll", major(st.st_rdev),
             minor(st.st_rdev));
    file = fopen(path, "re");
    if (!file)
        return false;
    if (fread(&value, 1, 1, file) != 1)
        value = '0';
    fclose(file);
    return value == '1';
}

static void one(struct bench *bench, struct engine_op *op)
{
    struct engine_op *done[1];

    assert_int_equal(engine_submit(bench->handle, &op, 1), 1);
    if (bench_wait(bench, done, 1, 1) != 1)
        fail_msg("%s: %s did not come back: %s", bench->choice.text, trace_op_name(op->kind),
                 bench->diag.text);
}

static bool knows(const struct bench *bench, unsigned int kind)
{
    return bench->choice.engine->ops & ENGINE_OP(kind);
}

static void range_is_zero(struct bench *bench, uint64_t offset, bool must)
{
    struct engine_op op = bench_op(bench, TRACE_READ, 0, offset, BLOCK);

    memset(op.buffer, 0xee, BLOCK);
    one(bench, &op);
    assert_int_equal(op.result, BLOCK);
    if (must)
        for (unsigned int i = 0; i < BLOCK; i++)
            assert_int_equal(((unsigned char *)op.buffer)[i], 0);
}

/* Every block written and read back, several at once. */
static void transfers(struct bench *bench, uint8_t seed)
{
    struct engine_op op[8], *ops[8], *done[8];
    unsigned int batch = bench->env.batch, back = 0;

    for (unsigned int first = 0; first < BLOCKS * 2; first += batch) {
        bool write = first < BLOCKS;

        for (unsigned int i = 0; i < batch; i++) {
            op[i] = bench_op(bench, write ? TRACE_WRITE : TRACE_READ, i,
                             (first + i) % BLOCKS * BLOCK, BLOCK);
            memset(op[i].buffer, write ? (int)(seed + first + i) : 0, BLOCK);
            ops[i] = &op[i];
        }
        assert_int_equal(engine_submit(bench->handle, ops, batch), batch);
        for (back = 0; back < batch;)
            back += (unsigned int)bench_wait(bench, done, 1, 8);
        for (unsigned int i = 0; i < batch; i++) {
            assert_int_equal(op[i].result, BLOCK);
            assert_int_equal(((uint8_t *)op[i].buffer)[BLOCK - 1],
                             (uint8_t)(seed + (first + i) % BLOCKS));
        }
    }
}

static void on_device(const char *choice, bool direct, uint8_t seed)
{
    int fd = open(device_path, O_RDWR | O_CLOEXEC | (direct ? O_DIRECT : 0));
    struct engine_op op;
    struct bench bench;

    assert_true(fd >= 0);
    bench_init(&bench, fd, 8);
    bench.target.block_device = true;
    bench.target.direct = direct;
    bench.env.all_direct = direct;
    assert_int_equal(engine_choice_parse(&bench.choice, choice, &bench.diag), 0);
    if (engine_choice_probe(&bench.choice, &bench.diag) == 0) {
        if (bench.choice.engine->flags & ENGINE_BLOCKING)
            bench.env.batch = 1;
        if (engine_open(&bench.handle, &bench.choice, &bench.env))
            fail_msg("%s: %s", choice, bench.diag.text);
        transfers(&bench, seed);
        for (uint8_t kind = 0; kind < TRACE_OP_COUNT; kind++) {
            if (!knows(&bench, kind) ||
                (kind != TRACE_FLUSH && kind != TRACE_FSYNC && kind != TRACE_FDATASYNC))
                continue;
            op = bench_op(&bench, kind, 0, TRACE_UNKNOWN_U64, 0);
            one(&bench, &op);
            assert_int_equal(op.result, 0);
        }
        if (knows(&bench, TRACE_DISCARD)) {
            op = bench_op(&bench, TRACE_DISCARD, 0, 2 * BLOCK, BLOCK);
            one(&bench, &op);
            assert_true(op.result == 0 || op.result == -EOPNOTSUPP);
            range_is_zero(&bench, 2 * BLOCK, false); /* what it reads then is the device's */
        }
        if (knows(&bench, TRACE_WRITE_ZEROES)) {
            op = bench_op(&bench, TRACE_WRITE_ZEROES, 0, 3 * BLOCK, BLOCK);
            one(&bench, &op);
            assert_int_equal(op.result, 0);
            range_is_zero(&bench, 3 * BLOCK, true);
        }
    }
    bench_close(&bench);
    close(fd);
}

static void every_engine_on_a_device(void **test_state)
{
    const struct engine *engine;

    for (unsigned int i = 0; (engine = engine_at(i)); i++) {
        if (engine->flags & ENGINE_NO_TARGET)
            continue;
        on_device(engine->name, false, (uint8_t)(i * 16));
        if (!(engine->flags & ENGINE_BUFFERED_ONLY))
            on_device(engine->name, true, (uint8_t)(i * 16 + 8));
    }
    on_device("io_uring:sqpoll=1", true, 3);
}

static void polled_completions(void **test_state)
{
    struct bench bench;
    int fd;

    if (!device_polls()) {
        fd = open(device_path, O_RDWR | O_DIRECT | O_CLOEXEC);
        bench_init(&bench, fd, 8);
        bench.env.all_direct = true;
        if (!engine_choice_parse(&bench.choice, "io_uring", &bench.diag) &&
            !engine_choice_probe(&bench.choice, &bench.diag)) {
            engine_choice_release(&bench.choice);
            assert_int_equal(bench_open(&bench, "io_uring:iopoll=1"), -EOPNOTSUPP);
            assert_non_null(strstr(bench.diag.text, "poll queues"));
        }
        bench_close(&bench);
        close(fd);
        return;
    }
    print_message("%s polls\n", device_path);
    on_device("io_uring:iopoll=1", true, 5);
    on_device("io_uring:iopoll=1,register=0,defer=0", true, 6);
    on_device("io_uring:iopoll=1,sqpoll=1", true, 7);
    on_device("vsync:polled=1", true, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_engine_on_a_device),
        cmocka_unit_test(polled_completions),
    };
    const char *given = getenv("IOTAPE_TEST_DEVICE");
    int failed;

    if (given) {
        snprintf(device_path, sizeof(device_path), "%s", given);
    } else if (geteuid() != 0 || loop_make()) {
        puts("no loop device can be made here");
        return 77;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (loop_fd >= 0)
        close(loop_fd);
    return failed;
}
