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

#define OPS       200
#define BLOCK_OPS 16

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
                struct trace_damage damage;
                struct trace_op *ops;
                size_t count, expected = 0;

                for (size_t b = 0; b < small.block_count; b++)
                    if (small.blocks[b].offset_bytes + small.blocks[b].stored_bytes <= cut)
                        expected += small.blocks[b].ops;
                small.tape.length = cut;
                ops = tape_read(&small.tape, pipe, &count, &damage);
                assert_int_equal(count, expected);
                ops_check(&small, ops, count);
                assert_true(damage.truncated);
                free(ops);
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

static void flip_check(struct small_tape *small, size_t at, uint8_t bits, bool pipe, bool tables)
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
            assert_true(ops[i].file == TRACE_NONE_U32 || trace_reader_file(reader, ops[i].file));
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
    for (int recoded = 0; recoded < 2; recoded++) {
        struct small_tape small;

        small_tape_make(&small, recoded);
        for (size_t at = 0; at < small.tape.length; at++) {
            flip_check(&small, at, 0xff, false, false);
            flip_check(&small, at, 0x01, false, true);
            flip_check(&small, at, 0x80, true, false);
        }
        small_tape_free(&small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_flip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
