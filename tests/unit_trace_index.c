/* SPDX-License-Identifier: MIT */
/* The index stays bounded and still leads to the right place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>

#include "traces/index.h"

static void index_fill(struct index *index, uint64_t blocks)
{
    for (uint64_t i = 0; i < blocks; i++)
        assert_int_equal(index_add(index, 64 + i * 1000, (int64_t)i * 10 + 9), 0);
}

static void test_find(void **state)
{
    static const uint64_t sizes[] = {1, 2, 3, 1000, INDEX_ENTRIES_MAX, INDEX_ENTRIES_MAX + 1,
                                     5 * INDEX_ENTRIES_MAX + 7};

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct index index = INDEX_INIT, back = INDEX_INIT;
        struct buf bytes = BUF_INIT;
        struct cursor in;
        uint64_t blocks = sizes[s];

        index_fill(&index, blocks);
        assert_true(index.count <= INDEX_ENTRIES_MAX);
        index_put(&index, &bytes);
        in = (struct cursor){.at = bytes.data, .end = bytes.data + bytes.length};
        assert_int_equal(index_take(&back, &in, index.count), 0);
        assert_ptr_equal(in.at, in.end);
        for (uint64_t i = 0; i < blocks; i += 1 + blocks / 500) {
            uint64_t block = (index_find(&back, (int64_t)i * 10 + 5) - 64) / 1000;

            /* Never past it, and no farther before it than the blocks an entry stands for. */
            assert_true(block <= i);
            assert_true(i - block < index.blocks_per_entry);
        }
        assert_int_equal(index_find(&back, (int64_t)blocks * 10), TRACE_UNKNOWN_U64);
        assert_int_equal(index_find(&back, INT64_MIN), 64);
        index_release(&index);
        index_release(&back);
        buf_release(&bytes);
    }
}

static void test_damaged(void **state)
{
    static const uint8_t bytes[] = {0x80, 0x80, 0x80};
    struct cursor in = {.at = bytes, .end = bytes + sizeof(bytes)};
    struct index index = INDEX_INIT;

    assert_int_equal(index_take(&index, &in, 1), -EBADMSG);
    in = (struct cursor){.at = bytes, .end = bytes + sizeof(bytes)};
    assert_int_equal(index_take(&index, &in, UINT32_MAX), -EBADMSG);
    assert_null(index.entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
