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

#include "tests/tape_memory.h"
#include "traces/sort.h"

static void test_round_trip(void **state)
{
    static const size_t counts[] = {0, 1, 2, 255, 256, 257, 1000, 70000};

    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
        for (unsigned int way = 0; way < 12; way++) {
            struct trace_writer_conf conf = {
                .raw = way & 1, .result = way & 2, .small = way & 4, .block_ops = 4096,
                .threads = way & 8 ? 1 + (way & 3) : 0};
            struct trace_op *ops = tape_ops(counts[c], 7 + c, way & 2);
            struct tape tape = {0};
            struct trace_op *back;
            size_t back_count;

            tape_write(&tape, ops, counts[c], &conf);
            for (int pipe = 0; pipe < 2; pipe++) {
                back = tape_read(&tape, pipe, &back_count, NULL);
                assert_int_equal(back_count, counts[c]);
                for (size_t i = 0; i < back_count; i++)
                    tape_assert_op(&ops[i], &back[i]);
                free(back);
            }
            free(tape.data);
            free(ops);
        }
}

static void test_tables(void **state)
{
    struct tape tape = {0};
    struct trace_op *ops = tape_ops(10, 1, false);
    struct trace_reader *reader;
    const char *key, *value;

    tape_write(&tape, ops, 10, NULL);
    reader = tape_open(&tape, false);
    assert_int_equal(trace_reader_load_tables(reader), 0);
    assert_int_equal(trace_reader_file_count(reader), TAPE_FILES);
    assert_int_equal(trace_reader_stream_count(reader), TAPE_STREAMS);
    assert_string_equal(trace_reader_file(reader, 3)->path, "/data/db/table-3.ibd");
    assert_int_equal(trace_reader_file(reader, 3)->size_bytes, 3 << 20);
    assert_int_equal(trace_reader_file(reader, 3)->kind, TRACE_FILE_REGULAR);
    assert_int_equal(trace_reader_stream(reader, 1)->tid, 101);
    assert_string_equal(trace_reader_stream(reader, 1)->comm, "worker-1");
    assert_null(trace_reader_file(reader, TAPE_FILES));
    assert_string_equal(trace_reader_meta(reader, TRACE_META_SOURCE), "test");
    assert_string_equal(trace_reader_meta(reader, "lost.ring"), "3");
    assert_int_equal(trace_reader_lost(reader), 3);
    assert_non_null(key = trace_reader_meta_at(reader, 0, &value));
    assert_string_equal(key, TRACE_META_SOURCE);
    assert_int_equal(trace_reader_op_count(reader), 10);
    trace_reader_free(reader);
    free(tape.data);
    free(ops);
}

static int compare_ns(const void *a, const void *b)
{
    const struct trace_op *x = a, *y = b;

    if (x->issue_ns != y->issue_ns)
        return x->issue_ns < y->issue_ns ? -1 : 1;
    return x->length < y->length ? -1 : x->length > y->length;
}

static void test_normalise(void **state)
{
    size_t count = 20000, back_count;
    struct trace_writer_conf conf = {.raw = true, .block_ops = 1000};
    struct trace_op *ops = tape_ops(count, 3, false), *back;
    struct tape tape = {0};

    for (size_t i = 0; i < count; i++) {
        ops[i].issue_ns = (int64_t)(i * 100 + (i * 7919 % 1000) * 1000) + 5000;
        ops[i].length = i;
        ops[i].kind = i % 3 ? TRACE_READ : TRACE_OPEN;
    }
    tape_write(&tape, ops, count, &conf);
    qsort(ops, count, sizeof(*ops), compare_ns);
    for (int pipe = 0; pipe < 2; pipe++) {
        struct trace_reader *reader = tape_open(&tape, pipe);
        struct trace_sorter_conf sorter_conf = {.memory_bytes = pipe ? 1 << 20 : 0};
        struct diag diag = DIAG_INIT;
        struct trace_sink sink;
        struct tape sorted = {0};
        int64_t zero_ns = 0;

        tape_sink(&sorted, &sink);
        assert_int_equal(trace_normalise(reader, &sink, &sorter_conf, &diag), 0);
        trace_reader_free(reader);
        back = tape_read(&sorted, false, &back_count, NULL);
        assert_int_equal(back_count, count);
        for (size_t i = count; i-- > 0;)
            if (ops[i].kind == TRACE_READ)
                zero_ns = ops[i].issue_ns;
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(back[i].issue_ns, ops[i].issue_ns - zero_ns);
            assert_int_equal(back[i].length, ops[i].length);
        }
        free(back);
        reader = tape_open(&sorted, false);
        assert_int_equal(trace_reader_load_tables(reader), 0);
        assert_false(trace_reader_is_raw(reader));
        assert_int_equal(trace_reader_lost(reader), 3);
        assert_string_equal(trace_reader_meta(reader, "lost.ring"), "3");
        assert_true(trace_reader_file(reader, 0)->ops != TRACE_UNKNOWN_U64);
        trace_reader_free(reader);
        free(sorted.data);
    }
    free(tape.data);
    free(ops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_normalise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
