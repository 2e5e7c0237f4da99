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
    static const size_t counts[] = {0, 1, 2, 255, 256, 257, 9000};

    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
        for (unsigned int way = 0; way < 12; way++) {
            struct trace_writer_conf conf = {.raw = way & 1,
                                             .result = way & 2,
                                             .small = way & 4,
                                             .block_ops = 4096,
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

/* Ops that are all alike, but for one at the end or the middle of a block, or none. */
static void test_alike(void **state)
{
    static const size_t odd[] = {SIZE_MAX, 999, 500, 127, 128, 0};

    (void)state;
    for (size_t c = 0; c < sizeof(odd) / sizeof(odd[0]); c++)
        for (unsigned int way = 0; way < 16; way++) {
            struct trace_writer_conf conf = {
                .raw = way & 1, .result = way & 2, .small = way & 4, .block_ops = 1000};
            struct trace_op *ops = tape_ops(1000, 7, way & 2), other = ops[1], *back;
            struct tape tape = {0};
            size_t back_count;

            if (way & 8)
                ops[0].latency_ns = ops[0].length = ops[0].offset = TRACE_UNKNOWN_U64;
            other.issue_ns = ops[0].issue_ns;
            for (size_t i = 1; i < 1000; i++)
                ops[i] = ops[0];
            if (odd[c] < 1000)
                ops[odd[c]] = other;
            tape_write(&tape, ops, 1000, &conf);
            back = tape_read(&tape, false, &back_count, NULL);
            assert_int_equal(back_count, 1000);
            for (size_t i = 0; i < back_count; i++)
                tape_assert_op(&ops[i], &back[i]);
            free(back);
            free(tape.data);
            free(ops);
        }
}

#define PHASE_BLOCKS 3
#define PHASES       4
#define LARGE_BLOCK  16384u

/* A writer that has all blocks tries on each what it chose for the one before: a tape whose
 * character changes is still read back whole, and is about as small as with every choice made
 * afresh, as several threads do. */
static void test_choices_follow_the_blocks(void **state)
{
    size_t count = (size_t)PHASE_BLOCKS * PHASES * LARGE_BLOCK, back_count;
    struct trace_op *ops = tape_ops(count, 5, false), *back;
    struct trace_writer_conf once = {.small = true, .block_ops = LARGE_BLOCK},
                             afresh = {.small = true, .block_ops = LARGE_BLOCK, .threads = 2};
    struct tape remembered = {0}, chosen = {0};
    uint64_t seed = 3;

    (void)state;
    for (size_t i = 0; i < count; i++) {
        size_t phase = i / LARGE_BLOCK / PHASE_BLOCKS;
        uint64_t random = tape_random(&seed);

        ops[i].kind = TRACE_READ;
        ops[i].length = ops[i].result = phase == 1 ? 65536 : 4096;
        ops[i].offset = phase == 0   ? random % (1u << 30) * 4096
                        : phase == 2 ? (random & 1) * 8192
                                     : i * ops[i].length;
        ops[i].latency_ns = phase == 3 ? UINT64_MAX - 1 - i % 2 * (UINT64_MAX / 3) : random % 5;
    }
    tape_write(&remembered, ops, count, &once);
    tape_write(&chosen, ops, count, &afresh);
    assert_true(remembered.length <= chosen.length + chosen.length / 100);
    back = tape_read(&remembered, false, &back_count, NULL);
    assert_int_equal(back_count, count);
    for (size_t i = 0; i < count; i++)
        tape_assert_op(&ops[i], &back[i]);
    free(back);
    free(ops);
    free(remembered.data);
    free(chosen.data);
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

static void test_seek(void **state)
{
    size_t count = 2000;
    struct trace_writer_conf conf = {.block_ops = 50};
    struct trace_op *ops = tape_ops(count, 5, false);
    struct tape tape = {0};

    tape_write(&tape, ops, count, &conf);
    for (int index = 1; index >= 0; index--) {
        struct trace_reader *reader;

        if (!index)
            tape.length -= 300; /* no end block, no index */
        reader = tape_open(&tape, false);
        for (size_t i = 0; i < count; i += 37) {
            const struct trace_op *found;
            size_t found_count, at = 0;

            assert_int_equal(trace_reader_seek_ns(reader, ops[i].issue_ns), 0);
            assert_int_equal(trace_reader_next(reader, &found, &found_count), 1);
            /* The first op at or after the time is in the block, and nothing later was skipped.
             */
            while (at < found_count && found[at].issue_ns < ops[i].issue_ns)
                at++;
            assert_true(at < found_count);
            assert_int_equal(found[at].issue_ns, ops[i].issue_ns);
            assert_int_equal(trace_reader_first_index(reader) % 50, 0);
        }
        assert_int_equal(trace_reader_seek_ns(reader, INT64_MIN), 0);
        assert_int_equal(tape_rest(reader), count);
        assert_int_equal(trace_reader_seek_ns(reader, ops[count - 1].issue_ns + 1), 0);
        assert_int_equal(tape_rest(reader), 0);
        assert_int_equal(trace_reader_rewind(reader), 0);
        assert_int_equal(tape_rest(reader), count);
        assert_int_equal(trace_reader_op_count(reader), count);
        trace_reader_free(reader);
    }
    {
        struct trace_reader *reader = tape_open(&tape, true);

        assert_int_equal(trace_reader_seek_ns(reader, 0), -ESPIPE);
        assert_int_equal(trace_reader_rewind(reader), -ESPIPE);
        trace_reader_free(reader);
    }
    free(tape.data);
    free(ops);
}

/* Operations out of order: a block that holds a late one must not be passed over. */
static void test_seek_raw(void **state)
{
    struct trace_writer_conf conf = {.raw = true, .block_ops = 10};
    struct trace_op *ops = tape_ops(100, 9, false);
    struct trace_reader *reader;
    struct tape tape = {0};

    for (size_t i = 0; i < 100; i++)
        ops[i].issue_ns = (int64_t)i * 10;
    ops[25].issue_ns = 5000;
    tape_write(&tape, ops, 100, &conf);
    reader = tape_open(&tape, false);
    assert_int_equal(trace_reader_seek_ns(reader, 700), 0);
    assert_int_equal(tape_rest(reader), 80);
    trace_reader_free(reader);
    free(tape.data);
    free(ops);
}

static void test_summaries(void **state)
{
    size_t count = 1000, seen = 0;
    struct trace_writer_conf conf = {.block_ops = 64};
    struct trace_op *ops = tape_ops(count, 6, false);
    struct trace_block_summary summary;
    struct tape tape = {0};

    tape_write(&tape, ops, count, &conf);
    for (int pipe = 0; pipe < 2; pipe++) {
        struct trace_reader *reader = tape_open(&tape, pipe);

        for (seen = 0; trace_reader_next_summary(reader, &summary) == 1; seen += summary.ops) {
            uint64_t counts[TRACE_OP_COUNT] = {0}, bytes[TRACE_OP_COUNT] = {0};

            assert_int_equal(summary.first_index, seen);
            for (size_t i = seen; i < seen + summary.ops; i++) {
                counts[ops[i].kind]++;
                bytes[ops[i].kind] += trace_op_bytes(&ops[i]);
            }
            assert_memory_equal(counts, summary.op_count, sizeof(counts));
            assert_memory_equal(bytes, summary.op_bytes, sizeof(bytes));
            assert_int_equal(summary.first_ns, ops[seen].issue_ns);
            assert_int_equal(summary.last_ns, ops[seen + summary.ops - 1].issue_ns);
        }
        assert_int_equal(seen, count);
        trace_reader_free(reader);
    }
    free(tape.data);
    free(ops);
}

static void test_wall(void **state)
{
    struct trace_op *ops = tape_ops(30, 6, false);
    const struct trace_op *found;
    struct tape tape = {0};
    struct trace_writer *writer = tape_begin(&tape, NULL);
    struct trace_reader *reader;
    uint64_t wall_ns;
    int64_t tape_ns;
    size_t count;

    trace_writer_wall(writer, 1234, 1700000000000000000u);
    assert_int_equal(trace_writer_ops(writer, ops, 10), 0);
    assert_int_equal(trace_writer_flush(writer), 0);
    assert_int_equal(trace_writer_ops(writer, ops, 20), 0);
    assert_int_equal(trace_writer_close(writer), 0);
    reader = tape_open(&tape, true);
    assert_int_equal(trace_reader_next(reader, &found, &count), 1);
    assert_true(trace_reader_wall(reader, &tape_ns, &wall_ns));
    assert_int_equal(tape_ns, 1234);
    assert_int_equal(wall_ns, 1700000000000000000u);
    assert_int_equal(trace_reader_next(reader, &found, &count), 1);
    assert_false(trace_reader_wall(reader, &tape_ns, &wall_ns));
    trace_reader_free(reader);
    free(tape.data);
    free(ops);
}

static void test_many_files(void **state)
{
    enum {
        FILES = 100000
    };
    struct trace_writer *writer;
    struct trace_reader *reader;
    struct tape tape = {0};
    struct trace_sink sink;

    tape_sink(&tape, &sink);
    assert_int_equal(trace_writer_open(&writer, &sink, NULL, NULL), 0);
    for (uint32_t i = 0; i < FILES; i++) {
        char path[64];
        struct trace_file file = {.path = path, .size_bytes = i, .kind = TRACE_FILE_REGULAR};
        struct trace_op op = TRACE_OP_INIT;
        uint32_t index;

        snprintf(path, sizeof(path), "/srv/mail/%u/%u/message", i / 1000, i);
        assert_int_equal(trace_writer_file(writer, &file, &index), 0);
        op.issue_ns = i;
        op.file = index;
        assert_int_equal(trace_writer_ops(writer, &op, 1), 0);
        assert_int_equal(trace_writer_file_totals(writer, index, 1, 0, 0), 0);
    }
    assert_int_equal(trace_writer_close(writer), 0);
    assert_true(tape.length < FILES * 10);
    reader = tape_open(&tape, false);
    assert_int_equal(trace_reader_load_tables(reader), 0);
    assert_int_equal(trace_reader_file_count(reader), FILES);
    assert_string_equal(trace_reader_file(reader, 99999)->path, "/srv/mail/99/99999/message");
    assert_int_equal(trace_reader_file(reader, 777)->size_bytes, 777);
    assert_int_equal(trace_reader_file(reader, 777)->ops, 1);
    assert_int_equal(tape_rest(reader), FILES);
    trace_reader_free(reader);
    free(tape.data);
}

static void test_bad_ops(void **state)
{
    static const struct {
        size_t at, bytes;
        uint64_t value;
    } bad[] = {
        {offsetof(struct trace_op, kind), 1, TRACE_OP_COUNT},
        {offsetof(struct trace_op, api), 1, TRACE_API_COUNT},
        {offsetof(struct trace_op, completion), 1, TRACE_COMPLETION_COUNT},
        {offsetof(struct trace_op, cause), 1, TRACE_CAUSE_COUNT},
        {offsetof(struct trace_op, file), 4, TAPE_FILES},
        {offsetof(struct trace_op, file2), 4, TAPE_FILES},
        {offsetof(struct trace_op, stream), 4, TAPE_STREAMS},
    };
    struct tape tape = {0};
    struct trace_writer *writer = tape_begin(&tape, NULL);
    struct trace_file file = {.path = "x", .kind = TRACE_FILE_KIND_COUNT};
    uint32_t index;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct trace_op op = TRACE_OP_INIT;
        uint32_t wide = (uint32_t)bad[i].value;
        uint8_t narrow = (uint8_t)bad[i].value;

        memcpy((char *)&op + bad[i].at, bad[i].bytes == 1 ? (void *)&narrow : (void *)&wide,
               bad[i].bytes);
        assert_int_equal(trace_writer_ops(writer, &op, 1), -EINVAL);
    }
    assert_int_equal(trace_writer_flush(writer), 0);
    assert_int_equal(trace_writer_written_ops(writer), 0);
    assert_int_equal(trace_writer_file(writer, &file, &index), -EINVAL);
    assert_int_equal(trace_writer_file_totals(writer, TAPE_FILES, 1, 1, 1), -EINVAL);
    assert_int_equal(trace_writer_meta(writer, "", "x"), -EINVAL);
    trace_writer_abort(writer);
    assert_true(tape.closed);
    assert_false(tape.kept);
    free(tape.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_tables),
        cmocka_unit_test(test_alike),
        cmocka_unit_test(test_choices_follow_the_blocks),
        cmocka_unit_test(test_normalise),  cmocka_unit_test(test_seek),
        cmocka_unit_test(test_seek_raw),   cmocka_unit_test(test_summaries),
        cmocka_unit_test(test_wall),       cmocka_unit_test(test_many_files),
        cmocka_unit_test(test_bad_ops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
