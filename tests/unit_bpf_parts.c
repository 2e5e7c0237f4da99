/* SPDX-License-Identifier: MIT */
/* The parts of the bpf recorder that need no kernel: paths, tables, mappings, ops, block words.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "capture/bpf_block.h"
#include "capture/bpf_maps.h"
#include "capture/bpf_op.h"
#include "capture/bpf_path.h"
#include "capture/bpf_position.h"
#include "capture/bpf_table.h"

static void test_components(void **state)
{
    char out[32];

    assert_int_equal(bpf_path_from_components("c\0b\0a", 6, out, sizeof(out)), 6);
    assert_string_equal(out, "/a/b/c");
    assert_int_equal(bpf_path_from_components("", 0, out, sizeof(out)), 1);
    assert_string_equal(out, "/");
    assert_int_equal(bpf_path_from_components("123456789\0abcdef", 17, out, 17), -ENAMETOOLONG);
}

static void join_is(const char *base, const char *text, const char *want)
{
    char out[64];

    assert_int_equal(bpf_path_join(base, text, out, sizeof(out)), strlen(want));
    assert_string_equal(out, want);
}

static void test_join(void **state)
{
    char out[8];

    join_is("/a/b", "c", "/a/b/c");
    join_is("/a/b", "../c", "/a/c");
    join_is("/a/b", "../../../c", "/c");
    join_is("/a/b", "./c/.//d/", "/a/b/c/d");
    join_is("/a/b", "/x/../y", "/y");
    join_is("/a", "..", "/");
    join_is(NULL, "x", "/x");
    join_is("/", "...", "/...");
    join_is("/a", "", "/a");
    assert_int_equal(bpf_path_join("/aaaa", "bbbb", out, sizeof(out)), -ENAMETOOLONG);
}

static void test_table(void **state)
{
    struct bpf_table table;
    static char values[10000];
    struct bpf_table_key key;
    size_t at = 0, count = 0;

    bpf_table_init(&table);
    assert_null(bpf_table_find(&table, (struct bpf_table_key){1, 2, 3}));
    for (uint64_t i = 0; i < 10000; i++)
        assert_int_equal(bpf_table_put(&table, (struct bpf_table_key){i, i % 7, 0}, &values[i]),
                         0);
    for (uint64_t i = 0; i < 10000; i += 2)
        assert_ptr_equal(bpf_table_remove(&table, (struct bpf_table_key){i, i % 7, 0}),
                         &values[i]);
    assert_null(bpf_table_remove(&table, (struct bpf_table_key){0, 0, 0}));
    for (uint64_t i = 0; i < 10000; i++)
        assert_ptr_equal(bpf_table_find(&table, (struct bpf_table_key){i, i % 7, 0}),
                         i % 2 ? &values[i] : NULL);
    while (bpf_table_next(&table, &at, &key)) {
        assert_int_equal(key.b, key.a % 7);
        count++;
    }
    assert_int_equal(count, 5000);
    /* Many come and go: the table does not grow with those gone. */
    for (uint64_t i = 0; i < 1000000; i++) {
        key = (struct bpf_table_key){i, 77, i};
        assert_int_equal(bpf_table_put(&table, key, &values[0]), 0);
        assert_ptr_equal(bpf_table_remove(&table, key), &values[0]);
    }
    assert_true(table.size <= 65536);
    bpf_table_release(&table);
}

static void test_maps(void **state)
{
    struct bpf_maps maps, child;
    struct bpf_map_range part;

    bpf_maps_init(&maps);
    assert_int_equal(bpf_maps_add(&maps, 0x10000, 0x7001, 1, 0x1000, 0x1000), 0);
    assert_true(bpf_maps_find(&maps, 0, UINT64_MAX, 0, &part));
    assert_int_equal(part.end, 0x18000);
    assert_false(bpf_maps_find(&maps, 0, UINT64_MAX, 1, &part));
    /* A hole leaves two parts, the second further into the file. */
    assert_int_equal(bpf_maps_remove(&maps, 0x12000, 0x1000), 0);
    assert_int_equal(maps.count, 2);
    assert_true(bpf_maps_find(&maps, 0x13000, 0x1000, 0, &part));
    assert_int_equal(part.offset, 0x4000);
    assert_false(bpf_maps_find(&maps, 0x12000, 0x1000, 0, &part));
    /* Another file over the end of it. */
    assert_int_equal(bpf_maps_add(&maps, 0x17000, 0x2000, 2, 0, 0x1000), 0);
    assert_true(bpf_maps_find(&maps, 0x17800, 0x100, 0, &part));
    assert_int_equal(part.file, 2);
    assert_int_equal(part.offset, 0x800);
    bpf_maps_init(&child);
    assert_int_equal(bpf_maps_copy(&child, &maps), 0);
    assert_int_equal(bpf_maps_remove(&maps, 0, UINT64_MAX), 0);
    assert_int_equal(maps.count, 0);
    assert_int_equal(child.count, 3);
    bpf_maps_release(&maps);
    bpf_maps_release(&child);
}

/* Four writes of 16 at one position; what each saw before and after depends on who came
 * between. */
static void test_positions(void **state)
{
    struct bpf_positions positions;
    uint64_t offset;

    bpf_positions_init(&positions);
    /* A at 0 and B at 16 both see 32 afterwards: one of them gets the gap. */
    assert_int_equal(bpf_positions_place(&positions, 7, 0, 32, 16, &offset), 0);
    assert_int_equal(offset, 16);
    assert_int_equal(bpf_positions_place(&positions, 7, 0, 32, 16, &offset), 0);
    assert_int_equal(offset, 0);
    /* The third was undisturbed, the fourth sees the fifth's end too. */
    assert_int_equal(bpf_positions_taken(&positions, 7, 32, 16), 0);
    assert_int_equal(bpf_positions_place(&positions, 7, 48, 80, 16, &offset), 0);
    assert_int_equal(offset, 64);
    assert_int_equal(bpf_positions_taken(&positions, 7, 48, 16), 0); /* no gap is left */
    /* Sizes tell gaps apart. */
    assert_int_equal(bpf_positions_place(&positions, 7, 80, 100, 4, &offset), 0);
    assert_int_equal(offset, 96);
    assert_int_equal(bpf_positions_place(&positions, 7, 80, 100, 6, &offset), 0);
    assert_int_equal(offset, 80);
    assert_int_equal(bpf_positions_place(&positions, 7, 80, 100, 10, &offset), 0);
    assert_int_equal(offset, 86);
    /* A seek back: nothing fits, so the position is believed. */
    assert_int_equal(bpf_positions_place(&positions, 7, 5, 10, 2, &offset), 0);
    assert_int_equal(offset, 8);
    /* One that nobody disturbed came first: what it took is no gap for who began with it. */
    assert_int_equal(bpf_positions_taken(&positions, 9, 0, 16), 0);
    assert_int_equal(bpf_positions_place(&positions, 9, 0, 48, 16, &offset), 0);
    assert_int_equal(offset, 32);
    assert_int_equal(bpf_positions_place(&positions, 9, 0, 48, 16, &offset), 0);
    assert_int_equal(offset, 16);
    /* The last came first, undisturbed: what lies before it is still to come. */
    assert_int_equal(bpf_positions_taken(&positions, 10, 32, 16), 0);
    assert_int_equal(bpf_positions_place(&positions, 10, 0, 48, 16, &offset), 0);
    assert_int_equal(offset, 0);
    assert_int_equal(bpf_positions_place(&positions, 10, 0, 48, 16, &offset), 0);
    assert_int_equal(offset, 16);
    /* Another open file of the same name is apart. */
    assert_int_equal(bpf_positions_place(&positions, 8, 0, 32, 16, &offset), 0);
    assert_int_equal(offset, 16);
    bpf_positions_release(&positions);
}

static void test_results(void **state)
{
    assert_int_equal(bpf_op_result(TRACE_READ, 7), 7);
    assert_int_equal(bpf_op_result(TRACE_READ, -5), -5);
    assert_int_equal(bpf_op_result(TRACE_READ, -512), -EINTR);
    assert_int_equal(bpf_op_result(TRACE_READ, -516), -EINTR);
    assert_int_equal(bpf_op_result(TRACE_OPEN, 5), 0);
    assert_int_equal(bpf_op_result(TRACE_OPEN, -ENOENT), -ENOENT);
    assert_int_equal(bpf_op_result(TRACE_MMAP, 0x7f0000000000), 0);
    assert_int_equal(bpf_op_result(TRACE_MMAP, -ENOMEM), -ENOMEM);
}

static struct bpf_event_op event_of(uint8_t kind, uint64_t extra)
{
    return (struct bpf_event_op){
        .head = {.type = BPF_EVENT_OP, .kind = kind, .api = TRACE_API_SYNC},
        .issue_ns = 100,
        .done_ns = 150,
        .offset = 4096,
        .length = 512,
        .extra = extra};
}

static void test_op(void **state)
{
    struct bpf_event_op event = event_of(TRACE_WRITE, 0);
    struct trace_op op;

    event.file_flags = O_DIRECT | O_SYNC | O_APPEND;
    event.call_flags = 0x8; /* RWF_NOWAIT */
    assert_true(bpf_op_fill(&event, &op));
    assert_int_equal(op.flags, TRACE_F_DIRECT | TRACE_F_SYNC | TRACE_F_APPEND | TRACE_F_NOWAIT);
    assert_int_equal(op.latency_ns, 50);
    assert_int_equal(op.completion, TRACE_COMPLETION_EXACT);
    event = event_of(TRACE_FALLOCATE, 3);
    assert_true(bpf_op_fill(&event, &op));
    assert_int_equal(op.kind, TRACE_DISCARD);
    event = event_of(TRACE_FALLOCATE, 0x10);
    assert_true(bpf_op_fill(&event, &op));
    assert_int_equal(op.kind, TRACE_WRITE_ZEROES);
    event = event_of(TRACE_UNLINK, AT_REMOVEDIR);
    assert_true(bpf_op_fill(&event, &op));
    assert_int_equal(op.kind, TRACE_RMDIR);
    event = event_of(TRACE_OPEN, ~UINT64_C(0));
    event.head.flags = BPF_OP_CREATED;
    assert_true(bpf_op_fill(&event, &op));
    assert_int_equal(op.kind, TRACE_CREATE);
    assert_int_equal(op.arg, O_CREAT | O_WRONLY | O_TRUNC);
    event = event_of(TRACE_READ, 0);
    event.length = UINT64_MAX / 2;
    assert_true(bpf_op_fill(&event, &op));
    assert_int_equal(op.length, 0x7ffff000);
    event = event_of(TRACE_READAHEAD, 1);
    event.head.api = TRACE_API_IO_URING;
    assert_false(bpf_op_fill(&event, &op));
    event = event_of(TRACE_FSYNC, 1);
    event.head.api = TRACE_API_IO_URING;
    event.head.type = BPF_EVENT_SUBMIT;
    assert_true(bpf_op_fill(&event, &op));
    assert_int_equal(op.kind, TRACE_FDATASYNC);
    assert_int_equal(op.completion, TRACE_COMPLETION_UNKNOWN);
}

/* A kernel where the numbers are others. */
static int word(void *context, const char *name)
{
    if (strcmp(name, "REQ_OP_READ") == 0)
        return 10;
    if (strcmp(name, "REQ_OP_WRITE") == 0)
        return 11;
    if (strcmp(name, "REQ_OP_FLUSH") == 0)
        return 12;
    if (strcmp(name, "__REQ_PREFLUSH") == 0)
        return 20;
    if (strcmp(name, "__REQ_FUA") == 0)
        return 21;
    return -ENOENT;
}

static void test_block(void **state)
{
    struct block_words words;
    struct bpf_event_block event = {.issue_ns = 10,
                                    .done_ns = 30,
                                    .sector = 8,
                                    .bytes = 4096,
                                    .done_bytes = 4096,
                                    .command = 11 | 1u << 20 | 1u << 21,
                                    .issues = 2};
    struct trace_op op;

    block_words_init(&words, word, NULL);
    block_op_fill(&words, &event, true, &op);
    assert_int_equal(op.kind, TRACE_WRITE);
    assert_int_equal(op.flags, TRACE_F_FUA | TRACE_F_REQUEUED);
    assert_int_equal(op.offset, 4096);
    assert_int_equal(op.latency_ns, 20);
    event.error = 10; /* BLK_STS_IOERR */
    block_op_fill(&words, &event, true, &op);
    assert_int_equal(op.result, -EIO);
    event.error = -ENOSPC; /* kernels before 5.16 */
    block_op_fill(&words, &event, true, &op);
    assert_int_equal(op.result, -ENOSPC);
    /* A bio keeps its flush; one without data is a flush. */
    event.head.class = BPF_BLOCK_BIOS;
    event.error = 0;
    block_op_fill(&words, &event, false, &op);
    assert_true(op.flags & TRACE_F_PREFLUSH);
    assert_true(op.flags & TRACE_F_INFLIGHT);
    assert_int_equal(op.result, TRACE_UNKNOWN_I64);
    event.bytes = 0;
    block_op_fill(&words, &event, true, &op);
    assert_int_equal(op.kind, TRACE_FLUSH);
    assert_int_equal(op.offset, TRACE_UNKNOWN_U64);
    event.command = 99;
    block_op_fill(&words, &event, true, &op);
    assert_int_equal(op.kind, TRACE_PASSTHROUGH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_components), cmocka_unit_test(test_join),
        cmocka_unit_test(test_table),      cmocka_unit_test(test_maps),
        cmocka_unit_test(test_results),    cmocka_unit_test(test_op),
        cmocka_unit_test(test_block),      cmocka_unit_test(test_positions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
