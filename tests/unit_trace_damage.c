/* SPDX-License-Identifier: MIT */
/* Tapes that were cut, damaged or made to deceive. */
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
#include "traces/block.h"
#include "traces/bytes.h"
#include "traces/crc32c.h"
#include "traces/table.h"

#define OPS       96
#define BLOCK_OPS 12

struct small_tape {
    struct tape tape;
    struct trace_op *ops;
    struct trace_block_summary blocks[64];
    size_t block_count;
};

static void small_tape_make(struct small_tape *small, bool recoded)
{
    struct trace_writer_conf conf = {.raw = !recoded, .small = recoded, .block_ops = BLOCK_OPS};
    struct trace_reader *reader;

    memset(small, 0, sizeof(*small));
    small->ops = tape_ops(OPS, 42, false);
    for (size_t i = 0; i < OPS; i++)
        small->ops[i].arg = (uint32_t)i; /* tells which op it is */
    tape_write(&small->tape, small->ops, OPS, &conf);
    reader = tape_open(&small->tape, false);
    while (trace_reader_next_summary(reader, &small->blocks[small->block_count]) == 1)
        small->block_count++;
    assert_int_equal(small->block_count, (OPS + BLOCK_OPS - 1) / BLOCK_OPS);
    trace_reader_free(reader);
}

static void small_tape_free(struct small_tape *small)
{
    free(small->tape.data);
    free(small->ops);
}

static void ops_check(const struct small_tape *small, const struct trace_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_true(ops[i].arg < OPS);
        assert_true(i == 0 || ops[i].arg > ops[i - 1].arg);
        tape_assert_op(&small->ops[ops[i].arg], &ops[i]);
    }
}

static void test_cut(void **state)
{
    for (int recoded = 0; recoded < 2; recoded++) {
        struct small_tape small;
        size_t whole;

        small_tape_make(&small, recoded);
        whole = small.tape.length;
        for (size_t cut = TAPE_MAGIC_BYTES; cut < whole; cut++)
            for (int pipe = 0; pipe < 2; pipe++) {
                struct trace_block_summary summary;
                struct trace_damage damage;
                struct trace_reader *reader;
                struct trace_op *ops;
                size_t count, expected = 0, summed = 0;

                for (size_t b = 0; b < small.block_count; b++)
                    if (small.blocks[b].offset_bytes + small.blocks[b].stored_bytes <= cut)
                        expected += small.blocks[b].ops;
                small.tape.length = cut;
                ops = tape_read(&small.tape, pipe, &count, &damage);
                assert_int_equal(count, expected);
                ops_check(&small, ops, count);
                assert_true(damage.truncated);
                free(ops);
                /* Headers alone tell the same. */
                reader = tape_open(&small.tape, pipe);
                while (trace_reader_next_summary(reader, &summary) == 1)
                    summed += summary.ops;
                trace_reader_damage(reader, &damage);
                assert_int_equal(summed, expected);
                assert_true(damage.truncated);
                trace_reader_free(reader);
            }
        small_tape_free(&small);
    }
}

/* Notes are counted: damage is never silent. */
static void note_count(void *context, const char *text)
{
    assert_non_null(strstr(text, "memory"));
    ++*(unsigned int *)context;
}

static void flip_check(struct small_tape *small, size_t at, uint8_t bits, bool pipe,
                       bool tables)
{
    size_t total = 0, count;
    unsigned int notes = 0;
    struct diag diag = {.note = note_count, .note_context = &notes};
    struct trace_op all[OPS];
    const struct trace_op *ops;
    struct trace_damage damage;
    struct trace_source source;
    struct trace_reader *reader;

    small->tape.data[at] ^= bits;
    tape_source(&small->tape, pipe, &source);
    assert_int_equal(trace_reader_open(&reader, &source, &diag), 0);
    if (tables)
        assert_int_equal(trace_reader_load_tables(reader), 0);
    while (trace_reader_next(reader, &ops, &count) == 1) {
        assert_true(total + count <= OPS);
        memcpy(all + total, ops, count * sizeof(*ops));
        total += count;
        for (size_t i = 0; i < count; i++) {
            assert_true(ops[i].file == TRACE_NONE_U32 ||
                        trace_reader_file(reader, ops[i].file));
            assert_true(ops[i].stream == TRACE_NONE_U32 ||
                        trace_reader_stream(reader, ops[i].stream));
        }
    }
    ops_check(small, all, total);
    trace_reader_damage(reader, &damage);
    if (total + damage.ops != OPS || damage.blocks != 1 || damage.ops > BLOCK_OPS || notes == 0)
        fail_msg("byte %zu ^ %02x%s: %zu read, %llu lost, %llu blocks, %u notes", at, bits,
                 pipe ? ", pipe" : "", total, (unsigned long long)damage.ops,
                 (unsigned long long)damage.blocks, notes);
    trace_reader_free(reader);
    small->tape.data[at] ^= bits;
}

static void test_flip(void **state)
{
    struct small_tape small;

    small_tape_make(&small, true);
    for (size_t at = 0; at < small.tape.length; at++) {
        flip_check(&small, at, 0xff, false, at % 2);
        flip_check(&small, at, (uint8_t)(1 << at % 8), true, false);
    }
    small_tape_free(&small);
}

/* ---- tapes that were made to deceive: every checksum right, the contents not ---- */

static void header_set(uint8_t *block, size_t at, size_t bytes, uint64_t value)
{
    size_t header_bytes = load_le16(block + 10);
    uint8_t number[8];

    store_le64(number, value);
    memcpy(block + at, number, bytes);
    store_le32(block + header_bytes - 4, crc32c(0, block, header_bytes - 4));
}

static void test_hostile_headers(void **state)
{
    static const struct {
        size_t at, bytes;
        uint64_t value;
    } lies[] = {
        {8, 1, 0},           {8, 1, 77},           {9, 1, 0},
        {9, 1, 9},           {16, 4, UINT32_MAX},  {16, 4, 32 << 20},
        {20, 4, UINT32_MAX}, {20, 4, 0},           {28, 4, UINT32_MAX},
        {28, 4, 0},          {32, 8, UINT64_MAX},  {32, 8, 1ull << 62},
        {40, 4, UINT32_MAX}, {40, 4, 0},           {40, 4, 131072},
        {44, 4, UINT32_MAX}, {48, 4, UINT32_MAX},  {48, 4, 1 << 28},
        {48, 4, 0},          {52, 4, UINT32_MAX},  {52, 4, 1 << 28},
        {112, 8, 0},         {112, 8, UINT64_MAX},
    };

    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
        for (size_t b = 0; b < 3; b++)
            for (int pipe = 0; pipe < 2; pipe++) {
                struct trace_damage damage;
                struct trace_source source;
                struct trace_reader *reader;
                struct small_tape small;
                const struct trace_op *ops;
                size_t count, total = 0;
                int got;

                small_tape_make(&small, false);
                header_set(small.tape.data + small.blocks[b].offset_bytes, lies[i].at,
                           lies[i].bytes, lies[i].value);
                tape_source(&small.tape, pipe, &source);
                got = trace_reader_open(&reader, &source, NULL);
                if (got == 0) {
                    while ((got = trace_reader_next(reader, &ops, &count)) == 1)
                        total += count;
                    trace_reader_damage(reader, &damage);
                    assert_true(damage.blocks > 0 || damage.truncated || total == OPS ||
                                got == -EPROTONOSUPPORT);
                    trace_reader_free(reader);
                }
                assert_true(got == 0 || got == -EPROTONOSUPPORT);
                small_tape_free(&small);
            }
}

/* Random bytes put into payloads whose checksums are then made right: whatever comes out has
 * only values within range, and all that does not come out is counted. */
static void test_hostile_payloads(void **state)
{
    struct small_tape small;
    uint64_t seed = 1;

    small_tape_make(&small, true);
    for (unsigned int round = 0; round < 3000; round++) {
        const struct trace_block_summary *summary =
            &small.blocks[tape_random(&seed) % small.block_count];
        uint8_t *block = small.tape.data + summary->offset_bytes, saved[8192];
        size_t header_bytes = load_le16(block + 10), payload_bytes = load_le32(block + 16);
        struct trace_damage damage;
        struct trace_op *ops;
        size_t count;

        assert_true(summary->stored_bytes <= sizeof(saved));
        memcpy(saved, block, summary->stored_bytes);
        for (unsigned int n = 1 + tape_random(&seed) % 3; n > 0; n--)
            block[header_bytes + tape_random(&seed) % payload_bytes] =
                (uint8_t)tape_random(&seed);
        header_set(block, 24, 4, crc32c(0, block + header_bytes, payload_bytes));
        ops = tape_read(&small.tape, false, &count, &damage);
        assert_int_equal(count + damage.ops, OPS);
        for (size_t i = 0; i < count; i++) {
            assert_true(ops[i].kind < TRACE_OP_COUNT && ops[i].api < TRACE_API_COUNT &&
                        ops[i].completion < TRACE_COMPLETION_COUNT &&
                        ops[i].cause < TRACE_CAUSE_COUNT);
            assert_true(ops[i].file == TRACE_NONE_U32 || ops[i].file < TAPE_FILES);
            assert_true(ops[i].file2 == TRACE_NONE_U32 || ops[i].file2 < TAPE_FILES);
            assert_true(ops[i].stream == TRACE_NONE_U32 || ops[i].stream < TAPE_STREAMS);
        }
        free(ops);
        memcpy(block, saved, summary->stored_bytes);
    }
    small_tape_free(&small);
}

/* A block of paths that each repeat almost all of a long one: small as bytes, huge as text. */
static void test_path_bomb(void **state)
{
    struct trace_writer *writer;
    struct trace_damage damage;
    struct trace_reader *reader;
    struct tape tape = {0};
    struct trace_sink sink;
    struct buf bytes = BUF_INIT;
    struct block_header header;
    uint8_t block[BLOCK_HEADER_MAX];
    size_t length;

    tape_sink(&tape, &sink);
    assert_int_equal(trace_writer_open(&writer, &sink, NULL, NULL), 0);
    block_header_init(&header, BLOCK_FILES);
    for (header.entries = 0; header.entries < 2000; header.entries++) {
        char path[65001];
        struct trace_file file = {.path = path};

        memset(path, 'a', 65000);
        path[65000] = '\0';
        table_put_file(&bytes, &file, header.entries ? path : "");
    }
    header.files = header.entries;
    header.payload_bytes = header.raw_bytes = (uint32_t)bytes.length;
    header.payload_crc = crc32c(0, bytes.data, bytes.length);
    length = block_header_store(&header, block);
    assert_int_equal(tape_sink_write(&tape, block, length), 0);
    assert_int_equal(tape_sink_write(&tape, bytes.data, bytes.length), 0);
    assert_true(tape.length < 100000);
    reader = tape_open(&tape, true);
    trace_reader_damage(reader, &damage);
    assert_int_equal(damage.blocks, 1);
    assert_true(trace_reader_file_count(reader) < 600);
    trace_reader_free(reader);
    trace_writer_abort(writer);
    buf_release(&bytes);
    free(tape.data);
}

static void test_version(void **state)
{
    struct small_tape small;
    struct trace_source source;
    struct trace_reader *reader;
    struct diag diag = DIAG_INIT;

    small_tape_make(&small, false);
    store_le16(small.tape.data + 8, 2);
    store_le32(small.tape.data + 60, crc32c(0, small.tape.data, 60));
    tape_source(&small.tape, false, &source);
    assert_int_equal(trace_reader_open(&reader, &source, &diag), -EPROTONOSUPPORT);
    assert_non_null(strstr(diag.text, "version 2"));
    small_tape_free(&small);
}

static void test_not_a_tape(void **state)
{
    static const char long_text[] =
        "\x89IOTAPF\n and more than sixty-four bytes of other things, "
        "none of which is a tape at all";
    static const char *const texts[] = {"", "x", "\x89IOTAP", "hello, this is some text\n",
                                        long_text};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct tape tape = {.data = (uint8_t *)(uintptr_t)texts[i], .length = strlen(texts[i])};
        struct trace_source source;
        struct trace_reader *reader;

        tape_source(&tape, true, &source);
        assert_int_equal(trace_reader_open(&reader, &source, NULL), -EBADMSG);
    }
}

/* A recorder killed after a flush: everything up to it is there. */
static void test_killed_writer(void **state)
{
    struct trace_op *ops = tape_ops(100, 3, false), *back;
    struct tape tape = {0};
    struct trace_writer *writer = tape_begin(&tape, NULL);
    struct trace_damage damage;
    size_t count;

    assert_int_equal(trace_writer_ops(writer, ops, 70), 0);
    assert_int_equal(trace_writer_flush(writer), 0);
    assert_int_equal(trace_writer_ops(writer, ops + 70, 30), 0);
    back = tape_read(&tape, false, &count, &damage);
    assert_int_equal(count, 70);
    assert_true(damage.truncated);
    assert_int_equal(damage.blocks, 0);
    assert_int_equal(damage.ops, 0);
    trace_writer_abort(writer);
    free(back);
    free(ops);
    free(tape.data);
}

/* A sink that fails at any point: the error comes out, the output is given up. */
static void test_sink_fails(void **state)
{
    struct trace_op *ops = tape_ops(OPS, 3, false);
    size_t whole;

    {
        struct tape tape = {0};
        struct trace_writer_conf conf = {.block_ops = 10};

        struct trace_writer *writer = tape_begin(&tape, &conf);

        assert_int_equal(trace_writer_ops(writer, ops, OPS), 0);
        assert_int_equal(trace_writer_close(writer), 0);
        whole = tape.length;
        free(tape.data);
    }
    for (size_t fail_at = 64; fail_at < whole; fail_at += 97)
        for (unsigned int threads = 0; threads < 3; threads += 2) {
            struct trace_writer_conf conf = {.block_ops = 10, .threads = threads};
            struct tape tape = {.fail_at = fail_at, .fail_with = fail_at % 2 ? -EIO : -ENOSPC};
            struct trace_writer *writer = tape_begin(&tape, &conf);
            int err = trace_writer_ops(writer, ops, OPS);

            assert_true(err == 0 || err == tape.fail_with);
            assert_int_equal(trace_writer_close(writer), tape.fail_with);
            assert_true(tape.closed);
            assert_false(tape.kept);
            free(tape.data);
        }
    free(ops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_flip),
        cmocka_unit_test(test_hostile_headers),
        cmocka_unit_test(test_hostile_payloads),
        cmocka_unit_test(test_path_bomb),
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_not_a_tape),
        cmocka_unit_test(test_killed_writer),
        cmocka_unit_test(test_sink_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
