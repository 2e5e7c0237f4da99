/* SPDX-License-Identifier: MIT */
/* Number strings: every coder gives back what it was given, and refuses what was not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <string.h>

#include "traces/column.h"

#define COUNT 5000

static uint64_t random_next(uint64_t *seed)
{
    uint64_t z = (*seed += 0x9e3779b97f4a7c15u);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* One shape of numbers a coder is made for, and its corner cases. */
static void numbers_fill(uint64_t *numbers, size_t count, unsigned int shape)
{
    uint64_t seed = shape;

    for (size_t i = 0; i < count; i++) {
        uint64_t r = random_next(&seed);

        switch (shape) {
        case 0: numbers[i] = 42; break;
        case 1: numbers[i] = UINT64_MAX; break;
        case 2: numbers[i] = r; break;
        case 3: numbers[i] = r >> (r & 63); break;
        case 4: numbers[i] = r % 200 * 4096; break;
        case 5: numbers[i] = r % 256; break;
        case 6: numbers[i] = r % 257; break;
        case 7: numbers[i] = (1ull << 40) + r % 1000; break;
        case 8: numbers[i] = i / 100 % 2; break;
        case 9: numbers[i] = i % 37 * 1000003; break;
        case 10: numbers[i] = i == count / 2 ? UINT64_MAX : 0; break;
        case 11: numbers[i] = r >> 8; break; /* 56 bits: the widest that is packed */
        default: numbers[i] = 1ull << (i % 64); break;
        }
    }
}
#define SHAPES 13

struct coded {
    struct buf bytes;
    struct part_arena arena;
    enum number_coder coder;
};

static void numbers_code(struct coded *coded, const uint64_t *numbers, size_t count,
                         enum numbers_effort effort)
{
    struct part_packer *packer = part_packer_new(6);
    struct numbers_writer *writer = numbers_writer_new(packer, effort);
    uint64_t cost;

    memset(coded, 0, sizeof(*coded));
    coded->coder = numbers_choose(writer, numbers, count, &cost);
    part_packer_begin(packer);
    numbers_write(writer, &coded->bytes, numbers, count, coded->coder);
    assert_false(coded->bytes.failed);
    coded->arena.capacity = part_packer_unpacked(packer);
    coded->arena.data = malloc(coded->arena.capacity + 1);
    /* The cost is an estimate, but not a wild one. */
    if (coded->bytes.length > cost / 8 + cost / 16 + 1200)
        fail_msg("%zu numbers, coder %d: %zu bytes, %llu bits expected", count, coded->coder,
                 coded->bytes.length, (unsigned long long)cost);
    numbers_writer_free(writer);
    part_packer_free(packer);
}

static void coded_free(struct coded *coded)
{
    buf_release(&coded->bytes);
    free(coded->arena.data);
}

static void test_round_trip(void **state)
{
    static const size_t counts[] = {0, 1, 2, 3, 255, 256, 257, COUNT};
    static struct numbers_reader reader;
    struct part_unpacker *unpacker = part_unpacker_new();
    uint64_t numbers[COUNT], back[COUNT];
    bool used[NUMBER_CODER_COUNT] = {0};

    for (unsigned int shape = 0; shape < SHAPES; shape++)
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
            for (enum numbers_effort effort = NUMBERS_QUICK; effort <= NUMBERS_SMALL;
                 effort++) {
                size_t count = counts[c];
                struct coded coded;
                struct cursor in;

                numbers_fill(numbers, count, shape);
                numbers_code(&coded, numbers, count, effort);
                used[coded.coder] = true;
                in = (struct cursor){.at = coded.bytes.data,
                                     .end = coded.bytes.data + coded.bytes.length};
                assert_true(numbers_open(&reader, unpacker, &coded.arena, &in, count));
                assert_ptr_equal(in.at, in.end);
                for (size_t done = 0; done < count;) {
                    size_t now = count - done < 77 ? count - done : 77;

                    assert_true(numbers_read(&reader, back + done, now));
                    done += now;
                }
                assert_memory_equal(numbers, back, count * sizeof(*numbers));
                assert_false(numbers_read(&reader, back, 1));
                coded_free(&coded);
            }
    for (unsigned int coder = 0; coder < NUMBER_CODER_COUNT; coder++)
        assert_true(used[coder]);
    part_unpacker_free(unpacker);
}

/* Strings cut at every byte are refused, or give no more than they announce. */
static void test_cut(void **state)
{
    static struct numbers_reader reader;
    struct part_unpacker *unpacker = part_unpacker_new();
    uint64_t numbers[300], back[300];

    for (unsigned int shape = 0; shape < SHAPES; shape++)
        for (enum numbers_effort effort = NUMBERS_QUICK; effort <= NUMBERS_SMALL; effort++) {
            struct coded coded;

            numbers_fill(numbers, 300, shape);
            numbers_code(&coded, numbers, 300, effort);
            for (size_t cut = 0; cut < coded.bytes.length; cut++) {
                uint8_t *exact = malloc(cut ? cut : 1);
                struct cursor in = {.at = exact, .end = exact + cut};

                memcpy(exact, coded.bytes.data, cut);
                coded.arena.used = 0;
                assert_false(numbers_open(&reader, unpacker, &coded.arena, &in, 300) &&
                             numbers_read(&reader, back, 300));
                free(exact);
            }
            coded_free(&coded);
        }
    part_unpacker_free(unpacker);
}

static void test_classes(void **state)
{
    uint64_t seed = 3;

    for (unsigned int class = 0; class <= CLASS_LAST; class ++) {
        assert_int_equal(class_of(class_low(class)), class);
        if (class > 0)
            assert_int_equal(class_of(class_low(class) - 1), class - 1);
    }
    assert_int_equal(class_of(UINT64_MAX), CLASS_LAST);
    for (unsigned int i = 0; i < 10000; i++) {
        uint64_t number = random_next(&seed) >> (i % 64);
        unsigned int class = class_of(number);

        assert_true(number - class_low(class) < 1ull << class_bits(class));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_classes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
