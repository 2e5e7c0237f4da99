/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "traces/diag.h"
#include "traces/sort.h"

static uint64_t random_next(uint64_t *seed)
{
    uint64_t z = (*seed += 0x9e3779b97f4a7c15u);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* offset holds the order of arrival, so that stability can be seen. */
static void op_make(struct trace_op *op, int64_t issue_ns, size_t number)
{
    *op = (struct trace_op)TRACE_OP_INIT;
    op->issue_ns = issue_ns;
    op->offset = number;
    op->file = (uint32_t)(number % 1000);
    op->length = number * 512;
}

enum shape {
    SORTED,
    NEARLY,
    REVERSED,
    RANDOM,
    EQUAL,
    FEW,
    SHAPES
};

static int64_t shape_ns(enum shape shape, size_t i, size_t count, uint64_t *seed)
{
    uint64_t r = random_next(seed);

    switch (shape) {
    case SORTED: return (int64_t)i;
    case NEARLY: return (int64_t)(i * 10 + r % 500);
    case REVERSED: return (int64_t)(count - i);
    case RANDOM: return (int64_t)r;
    case EQUAL: return 7;
    default: return (int64_t)(r % 5) - 2;
    }
}

struct checker {
    size_t count, total;
    int64_t last_ns;
    uint64_t last_number;
    bool any;
};

static void checker_take(struct checker *checker, const struct trace_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct trace_op *op = &ops[i];

        if (checker->any) {
            assert_true(op->issue_ns >= checker->last_ns);
            if (op->issue_ns == checker->last_ns)
                assert_true(op->offset > checker->last_number);
        }
        assert_int_equal(op->length, op->offset * 512);
        assert_int_equal(op->file, op->offset % 1000);
        checker->any = true;
        checker->last_ns = op->issue_ns;
        checker->last_number = op->offset;
        checker->count++;
    }
}

static void sort_check(enum shape shape, size_t count, size_t memory_bytes)
{
    struct trace_sorter_conf conf = {.memory_bytes = memory_bytes};
    uint64_t seed = shape + 1, backward, largest, expected_backward = 0;
    struct checker checker = {0};
    struct trace_sorter *sorter;
    struct diag diag = DIAG_INIT;
    const struct trace_op *ops;
    int64_t newest_ns = INT64_MIN;
    size_t got_count;
    int got;

    assert_int_equal(trace_sorter_new(&sorter, &conf, &diag), 0);
    for (size_t i = 0; i < count; i++) {
        struct trace_op op;

        op_make(&op, shape_ns(shape, i, count, &seed), i);
        expected_backward += op.issue_ns < newest_ns;
        if (op.issue_ns > newest_ns)
            newest_ns = op.issue_ns;
        assert_int_equal(trace_sorter_add(sorter, &op, 1), 0);
    }
    assert_int_equal(trace_sorter_finish(sorter), 0);
    while ((got = trace_sorter_next(sorter, &ops, &got_count)) == 1)
        checker_take(&checker, ops, got_count);
    assert_int_equal(got, 0);
    assert_int_equal(checker.count, count);
    trace_sorter_disorder(sorter, &backward, &largest);
    assert_int_equal(backward, expected_backward);
    trace_sorter_free(sorter);
}

static void test_memory(void **state)
{
    static const size_t counts[] = {0, 1, 2, 15, 16, 17, 500, 5000};

    for (enum shape shape = 0; shape < SHAPES; shape++)
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
            sort_check(shape, counts[c], 0);
}

/* 1 MiB holds some 8,000: several runs on disk. */
static void test_spill(void **state)
{
    for (enum shape shape = 0; shape < SHAPES; shape++)
        sort_check(shape, 60000, 1 << 20);
}

/* More runs than are merged at once. */
static void test_two_merges(void **state)
{
    sort_check(RANDOM, 620000, 1 << 20);
}

static void test_floor(void **state)
{
    struct trace_sorter_conf conf = {.memory_bytes = 1 << 20, .temp_dir = "/nonexistent"};
    struct checker checker = {0};
    struct trace_sorter *sorter;
    const struct trace_op *ops;
    struct trace_op op;
    uint64_t seed = 4;
    size_t count, most = 0;
    int got;

    assert_int_equal(trace_sorter_new(&sorter, &conf, NULL), 0);
    /* Ten times what memory holds, but never far out of order: no file is made. */
    for (size_t i = 0; i < 100000; i++) {
        op_make(&op, (int64_t)(i * 10 + random_next(&seed) % 1000), i);
        assert_int_equal(trace_sorter_add(sorter, &op, 1), 0);
        if (i % 500 != 499)
            continue;
        trace_sorter_floor(sorter, (int64_t)(i * 10));
        while ((got = trace_sorter_next(sorter, &ops, &count)) == 1)
            checker_take(&checker, ops, count);
        assert_int_equal(got, 0);
        most = i + 1 - checker.count > most ? i + 1 - checker.count : most;
    }
    assert_true(most <= 100);
    assert_int_equal(trace_sorter_finish(sorter), 0);
    while (trace_sorter_next(sorter, &ops, &count) == 1)
        checker_take(&checker, ops, count);
    assert_int_equal(checker.count, 100000);
    trace_sorter_free(sorter);
}

static void test_broken_promise(void **state)
{
    struct trace_sorter *sorter;
    struct diag diag = DIAG_INIT;
    struct trace_op op;

    assert_int_equal(trace_sorter_new(&sorter, NULL, &diag), 0);
    trace_sorter_floor(sorter, 100);
    op_make(&op, 99, 0);
    assert_int_equal(trace_sorter_add(sorter, &op, 1), -EBADMSG);
    assert_int_equal(diag.error, -EBADMSG);
    trace_sorter_free(sorter);
}

/* A temporary folder that is not there: said, not crashed. */
static void test_no_folder(void **state)
{
    struct trace_sorter_conf conf = {.memory_bytes = 1 << 20, .temp_dir = "/nonexistent"};
    struct trace_sorter *sorter;
    struct diag diag = DIAG_INIT;
    struct trace_op op;
    int err = 0;

    assert_int_equal(trace_sorter_new(&sorter, &conf, &diag), 0);
    for (size_t i = 0; i < 50000 && err == 0; i++) {
        op_make(&op, (int64_t)i, i);
        err = trace_sorter_add(sorter, &op, 1);
    }
    assert_int_equal(err, -ENOENT);
    assert_non_null(strstr(diag.text, "/nonexistent"));
    trace_sorter_free(sorter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),         cmocka_unit_test(test_spill),
        cmocka_unit_test(test_two_merges),     cmocka_unit_test(test_floor),
        cmocka_unit_test(test_broken_promise), cmocka_unit_test(test_no_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
