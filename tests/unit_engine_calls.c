/* SPDX-License-Identifier: MIT */
/* What is particular to the engines on blocking calls and mappings: vsync, syslet, mmap. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/engine_bench.h"

#define BLOCK 4096u

/* Submits count ops at once and takes all of them back. */
static void run(struct bench *bench, struct engine_op *op, unsigned int count)
{
    struct engine_op *ops[16], *done[16];
    unsigned int back = 0;
    int n;

    for (unsigned int i = 0; i < count; i++)
        ops[i] = &op[i];
    assert_int_equal(engine_submit(bench->handle, ops, count), count);
    while (back < count) {
        n = bench_wait(bench, done, 1, 16);
        assert_true(n > 0);
        back += (unsigned int)n;
    }
}

/* ---- vsync ------------------------------------------------------------------------------ */

static void vsync_joins_what_is_adjacent(void **test_state)
{
    int fd = bench_file("join", 8 * BLOCK, 1);
    struct engine_op op[8];
    struct bench bench;

    bench_init(&bench, fd, 8);
    assert_int_equal(bench_open(&bench, "vsync"), 0);
    for (unsigned int i = 0; i < 8; i++) {
        op[i] = bench_op(&bench, TRACE_WRITE, i, i * BLOCK, BLOCK);
        memset(op[i].buffer, (int)i + 1, BLOCK);
    }
    op[3].offset = 7 * BLOCK; /* a gap, and not in order after it */
    op[7].offset = 3 * BLOCK;
    run(&bench, op, 8);
    for (unsigned int i = 0; i < 8; i++) {
        char byte;

        assert_int_equal(op[i].result, BLOCK);
        assert_int_equal(pread(fd, &byte, 1, (off_t)op[i].offset + 100), 1);
        assert_int_equal(byte, i + 1);
    }
    /* 0-2, 3, 4-6, 7 */
    assert_int_equal(bench_counter(&bench, "calls"), 4);
    assert_int_equal(bench_counter(&bench, "joined"), 4);
    bench_close(&bench);
    close(fd);
}

static void vsync_deals_a_short_result_out(void **test_state)
{
    int fd = bench_file("deal", 2 * BLOCK + 100, 9);
    struct engine_op op[4];
    struct bench bench;

    bench_init(&bench, fd, 8);
    assert_int_equal(bench_open(&bench, "vsync"), 0);
    for (unsigned int i = 0; i < 4; i++)
        op[i] = bench_op(&bench, TRACE_READ, i, i * BLOCK, BLOCK);
    run(&bench, op, 4);
    assert_int_equal(op[0].result, BLOCK);
    assert_int_equal(op[1].result, BLOCK);
    assert_int_equal(op[2].result, 100);
    assert_int_equal(op[3].result, 0);
    assert_int_equal(((char *)op[2].buffer)[99], 9);
    assert_int_equal(((char *)op[2].buffer)[100], 0);
    /* The fourth was not reached by the first call: it had one of its own. */
    assert_int_equal(bench_counter(&bench, "calls"), 2);
    bench_close(&bench);
    close(fd);
}

static void vsync_gives_an_error_to_its_own_op(void **test_state)
{
    int fd = bench_file("error", 4 * BLOCK, 9);
    struct engine_op op[3];
    struct bench bench;

    bench_init(&bench, fd, 8);
    assert_int_equal(bench_open(&bench, "vsync"), 0);
    for (unsigned int i = 0; i < 3; i++)
        op[i] = bench_op(&bench, TRACE_READ, i, i * BLOCK, BLOCK);
    op[1].buffer = (void *)16; /* EFAULT, in the middle of a joined call */
    run(&bench, op, 3);
    assert_int_equal(op[0].result, BLOCK);
    assert_int_equal(op[1].result, -EFAULT);
    assert_int_equal(op[2].result, BLOCK);
    bench_close(&bench);
    close(fd);
}

/* ---- syslet ----------------------------------------------------------------------------- */

static void syslet_does_cached_reads_inline(void **test_state)
{
    int fd = bench_file("inline", 16 * BLOCK, 4);
    struct engine_op op[4];
    struct bench bench;
    char data[BLOCK];

    bench_init(&bench, fd, 8);
    assert_int_equal(bench_open(&bench, "syslet"), 0);
    for (unsigned int i = 0; i < 16; i++)
        assert_int_equal(pread(fd, data, BLOCK, i * BLOCK), BLOCK);
    for (unsigned int i = 0; i < 3; i++)
        op[i] = bench_op(&bench, TRACE_READ, i, i * BLOCK, BLOCK);
    op[3] = bench_op(&bench, TRACE_FSYNC, 3, TRACE_UNKNOWN_U64, 0);
    run(&bench, op, 4);
    for (unsigned int i = 0; i < 3; i++)
        assert_int_equal(op[i].result, BLOCK);
    assert_int_equal(op[3].result, 0);
    if (bench_counter(&bench, "unsupported") == 0) {
        assert_int_equal(bench_counter(&bench, "inline"), 3);
        assert_int_equal(bench_counter(&bench, "would_block"), 1);
    }
    bench_close(&bench);
    close(fd);
}

/* A range of which only the first page is cached: begun inline, ended by the pool. */
static void syslet_continues_what_came_in_part(void **test_state)
{
    int fd = bench_file("part", 16 * BLOCK, 6);
    struct engine_op op;
    struct bench bench;
    char data[BLOCK];

    bench_init(&bench, fd, 8);
    assert_int_equal(bench_open(&bench, "syslet"), 0);
    assert_int_equal(fsync(fd), 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); /* no readahead past the page that is read */
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    assert_int_equal(pread(fd, data, BLOCK, 0), BLOCK);
    op = bench_op(&bench, TRACE_READ, 0, 0, 8 * BLOCK);
    run(&bench, &op, 1);
    assert_int_equal(op.result, 8 * BLOCK);
    for (unsigned int i = 0; i < 8 * BLOCK; i++)
        assert_int_equal(((char *)op.buffer)[i], 6);
    assert_int_equal(bench_counter(&bench, "inline") + bench_counter(&bench, "would_block") +
                         bench_counter(&bench, "unsupported") +
                         bench_counter(&bench, "continued_partial"),
                     1);
    print_message("continued_partial %d\n", (int)bench_counter(&bench, "continued_partial"));
    /* A read across the end of the file stays short. */
    op = bench_op(&bench, TRACE_READ, 0, 15 * BLOCK, 2 * BLOCK);
    run(&bench, &op, 1);
    assert_int_equal(op.result, BLOCK);
    bench_close(&bench);
    close(fd);
}

/* ---- mmap ------------------------------------------------------------------------------- */

static void mmap_survives_a_file_that_shrinks(void **test_state)
{
    int fd = bench_file("shrink", 64 * BLOCK, 2);
    struct engine_op op;
    struct bench bench;

    bench_init(&bench, fd, 1);
    assert_int_equal(bench_open(&bench, "mmap"), 0);
    op = bench_op(&bench, TRACE_READ, 0, 40 * BLOCK, BLOCK);
    run(&bench, &op, 1);
    assert_int_equal(op.result, BLOCK);
    assert_int_equal(ftruncate(fd, 10 * BLOCK), 0);
    op = bench_op(&bench, TRACE_READ, 0, 41 * BLOCK, BLOCK);
    run(&bench, &op, 1);
    assert_int_equal(op.result, -EIO);
    op = bench_op(&bench, TRACE_WRITE, 0, 5 * BLOCK, BLOCK);
    run(&bench, &op, 1);
    assert_int_equal(op.result, BLOCK);
    /* The size is looked up again after the failure: now it is the end of the file. */
    op = bench_op(&bench, TRACE_READ, 0, 41 * BLOCK, BLOCK);
    run(&bench, &op, 1);
    assert_int_equal(op.result, 0);
    bench_close(&bench);
    close(fd);
}

static void mmap_crosses_windows_and_grows_files(void **test_state)
{
    int fd = bench_file("windows", 3 << 20, 2);
    struct engine_op op;
    struct bench bench;
    struct stat st;
    char data[BLOCK];

    bench_init(&bench, fd, 1);
    assert_int_equal(bench_open(&bench, "mmap:window=1m,windows=1"), 0);
    op = bench_op(&bench, TRACE_WRITE, 0, (1 << 20) - BLOCK / 2, BLOCK);
    memset(op.buffer, 7, BLOCK);
    run(&bench, &op, 1);
    assert_int_equal(op.result, BLOCK);
    assert_int_equal(pread(fd, data, BLOCK, (1 << 20) - BLOCK / 2), BLOCK);
    assert_memory_equal(data, op.buffer, BLOCK);
    op.offset = (5 << 20) + 100;
    run(&bench, &op, 1);
    assert_int_equal(op.result, BLOCK);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, (5 << 20) + 100 + BLOCK);
    assert_int_equal(pread(fd, data, BLOCK, (5 << 20) + 100), BLOCK);
    assert_memory_equal(data, op.buffer, BLOCK);
    op = bench_op(&bench, TRACE_MSYNC, 0, 0, 0);
    run(&bench, &op, 1);
    assert_int_equal(op.result, 0);
    bench_close(&bench);
    close(fd);
}

/* Descriptors that are closed and opened again may stand for another file. */
static void mmap_follows_the_descriptor_when_files_come_and_go(void **test_state)
{
    int fd = bench_file("first", BLOCK, 1), other = bench_file("second", BLOCK, 2);
    struct engine_op op;
    struct bench bench;

    bench_init(&bench, fd, 1);
    bench.env.targets_fixed = false;
    assert_int_equal(bench_open(&bench, "mmap"), 0);
    op = bench_op(&bench, TRACE_READ, 0, 0, BLOCK);
    run(&bench, &op, 1);
    assert_int_equal(((char *)op.buffer)[0], 1);
    assert_int_equal(dup2(other, fd), fd);
    run(&bench, &op, 1);
    assert_int_equal(((char *)op.buffer)[0], 2);
    bench_close(&bench);
    close(fd);
    close(other);
}

static void mmap_touches_pages_when_asked(void **test_state)
{
    int fd = bench_file("touch", 4 * BLOCK, 3);
    struct engine_op op;
    struct bench bench;
    char data[2 * BLOCK];

    bench_init(&bench, fd, 1);
    assert_int_equal(bench_open(&bench, "mmap:touch=1"), 0);
    op = bench_op(&bench, TRACE_READ, 0, 0, 4 * BLOCK);
    run(&bench, &op, 1);
    assert_int_equal(op.result, 4 * BLOCK);
    assert_int_equal(((char *)op.buffer)[0], 0);
    op = bench_op(&bench, TRACE_WRITE, 0, 0, 2 * BLOCK);
    memset(op.buffer, 8, 2 * BLOCK);
    run(&bench, &op, 1);
    assert_int_equal(pread(fd, data, 2 * BLOCK, 0), 2 * BLOCK);
    assert_int_equal(data[0], 8);
    assert_int_equal(data[1], 3);
    assert_int_equal(data[BLOCK], 8);
    bench_close(&bench);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vsync_joins_what_is_adjacent),
        cmocka_unit_test(vsync_deals_a_short_result_out),
        cmocka_unit_test(vsync_gives_an_error_to_its_own_op),
        cmocka_unit_test(syslet_does_cached_reads_inline),
        cmocka_unit_test(syslet_continues_what_came_in_part),
        cmocka_unit_test(mmap_survives_a_file_that_shrinks),
        cmocka_unit_test(mmap_crosses_windows_and_grows_files),
        cmocka_unit_test(mmap_follows_the_descriptor_when_files_come_and_go),
        cmocka_unit_test(mmap_touches_pages_when_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
