/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/anonymise.h"
#include "capture/tables.h"
#include "capture/filter.h"
#include "capture/keep.h"
#include "capture/overhead.h"
#include "capture/sample.h"
#include "capture/pending.h"
#include "capture/program.h"
#include "capture/window.h"

static struct trace_op op_at(int64_t issue_ns)
{
    struct trace_op op = TRACE_OP_INIT;

    op.issue_ns = issue_ns;
    return op;
}

static void window_orders(void **state)
{
    struct window window;
    struct trace_op op;
    unsigned int seed = 7;
    int64_t last = -1;

    assert_int_equal(window_init(&window, 100), 0);
    assert_false(window_pop(&window, INT64_MAX, &op));
    for (int i = 0; i < 100; i++) {
        seed = seed * 1103515245u + 12345u;
        op = op_at(seed % 50);
        op.length = (uint64_t)i;
        window_push(&window, &op);
    }
    assert_true(window_full(&window));
    /* By time, and ops of one time in the order they came. */
    for (int i = 0; i < 60; i++) {
        int64_t before = last;
        uint64_t arrival = op.length;

        assert_true(window_pop(&window, INT64_MAX, &op));
        assert_true(op.issue_ns >= before);
        if (op.issue_ns == before)
            assert_true(op.length > arrival);
        last = op.issue_ns;
    }
    assert_false(window_pop(&window, last, &op));
    op = op_at(-5);
    window_push(&window, &op);
    assert_true(window_pop(&window, 0, &op));
    assert_int_equal(op.issue_ns, -5);
    window_release(&window);
}

/* Halves in any order, with many in between. */
static void pending_meets(void **state)
{
    struct pending pending;
    struct trace_op op, whole;
    uint32_t cursor = 0;
    int left = 0;

    pending_init(&pending);
    for (uint64_t id = 1; id <= 5000; id++) {
        op = op_at((int64_t)id * 10);
        if (id % 3 == 0)
            assert_int_equal(
                pending_done(&pending, id, id * 10 + 4, 512, TRACE_COMPLETION_UPPER, &whole),
                0);
        else
            assert_int_equal(pending_issue(&pending, id, &op, &whole), 0);
    }
    for (uint64_t id = 1; id <= 5000; id++) {
        op = op_at((int64_t)id * 10);
        if (id % 5 == 0)
            continue;
        if (id % 3 == 0)
            assert_int_equal(pending_issue(&pending, id, &op, &whole), 1);
        else
            assert_int_equal(
                pending_done(&pending, id, id * 10 + 4, 512, TRACE_COMPLETION_UPPER, &whole),
                1);
        assert_int_equal(whole.issue_ns, (int64_t)id * 10);
        assert_int_equal(whole.latency_ns, 4);
        assert_int_equal(whole.result, 512);
        assert_int_equal(whole.completion, TRACE_COMPLETION_UPPER);
    }
    while (pending_take(&pending, &cursor, &whole)) {
        assert_int_equal(whole.issue_ns / 10 % 5, 0);
        assert_int_equal(whole.latency_ns, TRACE_UNKNOWN_U64);
        left++;
    }
    assert_int_equal(left, 5000 / 5 - 5000 / 15);
    pending_release(&pending);
}

static void keep_forgets(void **state)
{
    struct keep keep;
    const struct trace_op *run;
    struct trace_op op;
    size_t at = 0, count;
    int64_t next = 9000;

    keep_init(&keep, 1000, 4000 * sizeof(struct trace_op));
    for (int64_t i = 0; i < 10000; i++) {
        op = op_at(i);
        assert_int_equal(keep_add(&keep, &op, 1), 0);
        if (i % 100 == 0)
            keep_expire(&keep, i);
    }
    keep_expire(&keep, 10000);
    assert_int_equal(keep.cut, 0);
    while ((count = keep_run(&keep, at, &run)) > 0) {
        for (size_t i = 0; i < count; i++)
            assert_int_equal(run[i].issue_ns, next++);
        at += count;
    }
    assert_int_equal(next, 10000);
    /* The memory limit goes first, and is counted. */
    keep_clear(&keep);
    for (int64_t i = 0; i < 5000; i++) {
        op = op_at(20000);
        assert_int_equal(keep_add(&keep, &op, 1), 0);
    }
    assert_int_equal(keep.cut, 1000);
    assert_int_equal(keep.count, 4000);
    keep_release(&keep);
}

static void tables_number_once(void **state)
{
    struct tables tables;
    struct trace_file file = {.path = "/a", .inode = 1, .size_bytes = 7};
    struct trace_stream stream = {.pid = 1, .tid = 2, .comm = "sh"};
    char name[32];
    uint32_t number, again;

    tables_init(&tables);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 10000; i++) {
            snprintf(name, sizeof(name), "/dir/%u", i);
            file.path = name;
            file.inode = i;
            file.size_bytes = (uint64_t)round;
            assert_int_equal(tables_file(&tables, &file, &number), 0);
            assert_int_equal(number, i);
        }
    }
    assert_int_equal(tables.file_count, 10000);
    assert_int_equal(tables.files[77].size_bytes, 0); /* of the first sight */
    assert_string_equal(tables.files[77].path, "/dir/77");
    file.inode = 5; /* the same path, another file */
    assert_int_equal(tables_file(&tables, &file, &number), 0);
    assert_int_equal(number, 10000);
    assert_int_equal(tables_stream(&tables, &stream, &number), 0);
    assert_int_equal(tables_stream(&tables, &stream, &again), 0);
    assert_int_equal(number, again);
    stream.comm = "sqlite3";
    assert_int_equal(tables_stream(&tables, &stream, &again), 0);
    assert_int_not_equal(number, again);
    tables_release(&tables);
}

static bool passes(const char *condition, unsigned int kind, uint64_t length, const char *path)
{
    struct filter *filter = NULL;
    struct trace_op op = op_at(0);
    bool answer;

    assert_int_equal(filter_new(&filter, &condition, 1, NULL), 0);
    op.kind = (uint8_t)kind;
    op.length = length;
    answer = filter_passes(filter, &op, path ? 3 : TRACE_NONE_U32, path);
    assert_int_equal(answer, filter_passes(filter, &op, path ? 3 : TRACE_NONE_U32, path));
    filter_free(filter);
    return answer;
}

static void filter_conditions(void **state)
{
    static const char *const bad[] = {"",           "path",  "path=",   "op=reed", "op=read,",
                                      "size",       "size>", "size>=x", "size!4",  "size!=4",
                                      "colour=red", "op",    "!=x",     "size<0",  "path>x"};
    static const char *const both[] = {"op=read", "path!=*.tmp"};
    struct filter *filter;
    struct trace_op op = op_at(0);

    assert_true(passes("op=read,write", TRACE_WRITE, 1, "/a"));
    assert_false(passes("op=read,write", TRACE_FSYNC, 0, "/a"));
    assert_true(passes("op!=read", TRACE_FSYNC, 0, "/a"));
    assert_true(passes("path=/var/*", TRACE_READ, 1, "/var/lib/x"));
    assert_false(passes("path=/var/*", TRACE_READ, 1, "/usr/x"));
    assert_false(passes("path=*", TRACE_READ, 1, NULL));
    assert_true(passes("path!=/var/*", TRACE_READ, 1, NULL));
    assert_true(passes("size>=4k", TRACE_READ, 4096, "/a"));
    assert_false(passes("size>4k", TRACE_READ, 4096, "/a"));
    assert_true(passes("size<=4096", TRACE_READ, 4096, "/a"));
    assert_false(passes("size<4096", TRACE_WRITE, 4096, "/a"));
    assert_true(passes("size=512", TRACE_WRITE, 512, "/a"));
    assert_true(passes("size>1m", TRACE_FSYNC, 0, "/a"));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(filter_new(&filter, &bad[i], 1, NULL), -EINVAL);
    assert_int_equal(filter_new(&filter, both, 2, NULL), 0);
    assert_true(filter_passes(filter, &op, 0, "/a"));
    assert_false(filter_passes(filter, &op, 1, "/a.tmp"));
    filter_free(filter);
    assert_true(filter_passes(NULL, &op, 0, "/a"));
}

static void names_are_hidden(void **state)
{
    struct anonymiser one, other;
    char *first, *second, *third;

    assert_int_equal(anonymiser_init(&one), 0);
    assert_int_equal(anonymiser_init(&other), 0);
    first = anonymiser_path(&one, "/home/eve/home/letter.db");
    second = anonymiser_path(&one, "/home/eve/home/letter.db");
    third = anonymiser_path(&other, "/home/eve/home/letter.db");
    assert_string_equal(first, second);
    assert_string_not_equal(first, third);
    assert_null(strstr(first, "eve"));
    assert_int_equal(strlen(first), 4 * 13 + 3);
    assert_string_equal(first + strlen(first) - 3, ".db");
    assert_memory_equal(first + 1, first + 27, 12); /* home, twice */
    free(first);
    free(second);
    free(third);
    first = anonymiser_path(&one, "//x//");
    assert_int_equal(strlen(first), 16);
    free(first);
    first = anonymiser_path(&one, "");
    assert_string_equal(first, "");
    free(first);
}

static void programs_are_told_apart(void **state)
{
    char path[4200];

    assert_int_equal(program_look("sh", 0, path, sizeof(path)), PROGRAM_DYNAMIC);
    assert_non_null(strchr(path, '/'));
    assert_int_equal(program_look("no such program", 0, path, sizeof(path)), PROGRAM_MISSING);
    assert_int_equal(program_look("/", 0, path, sizeof(path)), PROGRAM_MISSING);
    assert_null(program_obstacle(PROGRAM_DYNAMIC));
    assert_null(program_obstacle(PROGRAM_MISSING));
    assert_non_null(program_obstacle(PROGRAM_STATIC));
}

/* A second is judged by what was spent in it, the collector's part and the programs'. */
static void overhead_by_the_second(void **state)
{
    const uint64_t second = UINT64_C(1000000000);
    struct overhead overhead;

    (void)state;
    overhead_init(&overhead, 10, 5 * second, 700, 900);
    assert_false(overhead_due(&overhead, 5 * second + second - 1));
    assert_true(overhead_due(&overhead, 6 * second));
    /* 4 % + 5 %, 6 % + 5 %, then two seconds at once: 10 % of each is not above 10 %. */
    assert_false(overhead_exceeded(&overhead, 6 * second, 700 + second / 25, 900 + second / 20));
    assert_true(overhead.last_pct > 8.99 && overhead.last_pct < 9.01);
    assert_true(overhead_exceeded(&overhead, 7 * second, 700 + second / 10, 900 + second / 10));
    assert_true(overhead.last_pct > 10.99 && overhead.last_pct < 11.01);
    assert_false(overhead_due(&overhead, 8 * second - 1));
    assert_false(overhead_exceeded(&overhead, 9 * second, 700 + second / 10, 900 + 3 * second / 10));
    assert_true(overhead.most_pct > 10.99 && overhead.most_pct < 11.01);
    overhead_init(&overhead, 0, 0, 0, 0);
    assert_false(overhead_due(&overhead, 100 * second));
}

/* With fake figures: as many fewer as it was too much, at least half; then no more can be done. */
static void overhead_asks_for_fewer(void **state)
{
    const uint64_t second = 1000000000;
    struct overhead overhead;

    (void)state;
    overhead_init(&overhead, 10, 0, 0, 0);
    assert_true(overhead_exceeded(&overhead, second, 0, second / 8)); /* 12.5 % */
    assert_int_equal(overhead_sample(&overhead, 1, 1024), 2);
    assert_int_equal(overhead_sample(&overhead, 0, 1024), 2);
    assert_int_equal(overhead_sample(&overhead, 5, 1024), 10);
    assert_true(overhead_exceeded(&overhead, 2 * second, 0, second / 8 + 3 * second / 4)); /* 75 % */
    assert_int_equal(overhead_sample(&overhead, 1, 1024), 8);
    assert_int_equal(overhead_sample(&overhead, 2, 1024), 15);
    assert_int_equal(overhead_sample(&overhead, 1000, 1024), 1024);
    assert_int_equal(overhead_sample(&overhead, 1024, 1024), 0);
    overhead_init(&overhead, 1e-9, 0, 0, 0);
    assert_true(overhead_exceeded(&overhead, second, 0, second));
    assert_int_equal(overhead_sample(&overhead, 1, 1024), 1024);
}

/* What a sample keeps, every larger one keeps; the share is right for numbers in a row. */
static void sample_is_nested(void **state)
{
    static const unsigned int of[] = {2, 3, 7, 64, 1024};

    (void)state;
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        unsigned int kept = 0, each = 4096;

        for (uint32_t tid = 30000; tid < 30000 + each; tid++) {
            kept += sample_keeps(tid, of[i]) != 0;
            assert_true(sample_keeps(tid, 0) && sample_keeps(tid, 1));
            if (i > 0 && sample_keeps(tid, of[i]))
                assert_true(sample_keeps(tid, of[i - 1]));
        }
        assert_in_range(kept, each / of[i] - 2, each / of[i] + 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overhead_by_the_second),
        cmocka_unit_test(overhead_asks_for_fewer),
        cmocka_unit_test(sample_is_nested),
        cmocka_unit_test(window_orders),
        cmocka_unit_test(pending_meets),
        cmocka_unit_test(keep_forgets),
        cmocka_unit_test(tables_number_once),
        cmocka_unit_test(filter_conditions),
        cmocka_unit_test(names_are_hidden),
        cmocka_unit_test(programs_are_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
