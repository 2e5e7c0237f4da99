/* SPDX-License-Identifier: MIT */
/* Block events to operations: pairing, order over CPUs, both protocols, either byte order,
 * damage. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "convert/blktrace_format.h"
#include "convert/import.h"
#include "convert/input.h"

#define OPS_MAX 4096
#define DEV     (8u << 20)

enum {
    R = 1,
    W = 2,
    FLUSH = 4,
    SYNC = 8,
    DISCARD = 0x2000,
    FUA = 0x8000,
    PC = 0x200,
    APPEND = 0x10000 /* version 8 */
};

struct capture {
    uint8_t *bytes;
    size_t length, size;
    bool v8, big;
    uint32_t sequence, cpu;
};

struct result {
    struct trace_op ops[OPS_MAX];
    size_t count;
    int error;
    uint64_t lost;
    char text[1024];
};

static void put(struct capture *capture, uint64_t value, unsigned int bytes, bool big)
{
    if (capture->length + 8 > capture->size) {
        capture->size = 2 * capture->size + 4096;
        capture->bytes = realloc(capture->bytes, capture->size);
        assert_non_null(capture->bytes);
    }
    for (unsigned int i = 0; i < bytes; i++)
        capture->bytes[capture->length++] = (uint8_t)(value >> 8 * (big ? bytes - 1 - i : i));
}

struct event {
    uint64_t time, sector;
    uint32_t act, category, bytes, pid;
    int16_t error;
    uint64_t payload; /* of a split: big-endian */
    const char *name; /* a notice of pid's name */
    bool cgroup;
};

static void record(struct capture *c, struct event e)
{
    bool b = c->big, notice = e.name != NULL;
    uint32_t pdu = (notice ? 16 : e.act == 13 ? 8 : 0) + (e.cgroup ? 8 : 0);
    uint64_t action = (uint64_t)(notice ? 0x400 : e.category) << 16 | (notice ? 0 : e.act) |
                      (e.cgroup ? 0x100 : 0);

    put(c, c->v8 ? BLKTRACE_MAGIC_V8 : BLKTRACE_MAGIC_V7, 4, b);
    put(c, notice ? 0 : ++c->sequence, 4, b);
    put(c, e.time, 8, b);
    put(c, e.sector, 8, b);
    put(c, e.bytes, 4, b);
    if (c->v8) {
        put(c, e.pid, 4, b);
        put(c, action, 8, b);
    } else {
        put(c, action, 4, b);
        put(c, e.pid, 4, b);
    }
    put(c, DEV, 4, b);
    put(c, c->cpu, 4, b);
    put(c, (uint16_t)e.error, 2, b);
    put(c, pdu, 2, b);
    if (c->v8)
        for (int i = 0; i < 12; i++)
            put(c, 0, 1, b);
    if (e.cgroup)
        put(c, 77, 8, b);
    for (size_t i = 0; notice && i < 16; i++)
        put(c, i < strlen(e.name) ? (uint8_t)e.name[i] : 0, 1, b);
    if (!notice && e.act == 13)
        put(c, e.payload, 8, true);
}

#define REC(...) record(&c, (struct event){__VA_ARGS__})

static int take(void *context, const struct trace_op *ops, size_t count)
{
    struct result *result = context;

    for (size_t i = 0; i < count; i++) {
        assert_true(result->count < OPS_MAX);
        result->ops[result->count++] = ops[i];
    }
    return 0;
}

/* Runs the importer over the captures as the files of one set. */
static struct result *convert(struct capture *captures, size_t count, char event,
                              uint64_t skip_bad)
{
    struct import_options options = {.event = event};
    struct diag diag = DIAG_INIT;
    struct input_list inputs = {0};
    struct import *import = calloc(1, sizeof(*import));
    struct result *result = calloc(1, sizeof(*result));

    assert_non_null(import);
    assert_non_null(result);
    import_init(import, &options, skip_bad, take, result, &diag);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(0, input_list_add_memory(&inputs, "capture", captures[i].bytes,
                                                  captures[i].length, &diag));
    import_begin_run(import, 0, false);
    result->error = importer_find("blktrace", 8)->run(inputs.items, inputs.count, import, NULL);
    if (result->error == 0)
        assert_int_equal(0, import_flush(import));
    for (size_t i = 0; i < import->lost.count; i++)
        result->lost += import->lost.items[i].count;
    memcpy(result->text, diag.text, sizeof(diag.text));
    import_release(import);
    input_list_release(&inputs);
    free(import);
    for (size_t i = 0; i < count; i++)
        free(captures[i].bytes);
    return result;
}

static void merged_request_completes_each(void **state)
{
    struct capture c = {0};
    struct result *r;

    (void)state;
    REC(.time = 100, .act = 1, .category = W, .sector = 8, .bytes = 4096, .pid = 1);
    REC(.time = 110, .act = 1, .category = W, .sector = 16, .bytes = 4096, .pid = 1);
    REC(.time = 120, .act = 2, .category = W, .sector = 16, .bytes = 4096, .pid = 1);
    REC(.time = 130, .act = 1, .category = W, .sector = 0, .bytes = 4096, .pid = 1);
    REC(.time = 140, .act = 3, .category = W, .sector = 0, .bytes = 4096, .pid = 1);
    REC(.time = 150, .act = 7, .category = W, .sector = 0, .bytes = 12288);
    REC(.time = 500, .act = 8, .category = W, .sector = 0, .bytes = 12288);
    r = convert(&c, 1, 0, 0);
    assert_int_equal(0, r->error);
    assert_int_equal(3, r->count);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(500 - r->ops[i].issue_ns, r->ops[i].latency_ns);
        assert_int_equal(4096, r->ops[i].result);
        assert_int_equal(r->ops[i].offset == 4096 ? 0 : TRACE_F_MERGED,
                         r->ops[i].flags & TRACE_F_MERGED);
    }
    free(r);
}

static void split_and_partial_complete_once(void **state)
{
    struct capture c = {0};
    struct result *r;

    (void)state;
    REC(.time = 1, .act = 1, .category = R, .sector = 100, .bytes = 8192);
    REC(.time = 2, .act = 13, .category = R, .sector = 100, .bytes = 4096, .payload = 108);
    /* the second half first, in two parts, one of them failed */
    REC(.time = 10, .act = 8, .category = R, .sector = 108, .bytes = 512);
    REC(.time = 20, .act = 8, .category = R, .sector = 109, .bytes = 3584, .error = -5);
    REC(.time = 30, .act = 8, .category = R, .sector = 100, .bytes = 4096);
    r = convert(&c, 1, 0, 0);
    assert_int_equal(1, r->count);
    assert_int_equal(29, r->ops[0].latency_ns);
    assert_int_equal(-5, r->ops[0].result);
    free(r);
}

static void same_sector_twice_pairs_by_size_then_age(void **state)
{
    struct capture c = {0};
    struct result *r;

    (void)state;
    REC(.time = 1, .act = 1, .category = R, .sector = 8, .bytes = 4096);
    REC(.time = 2, .act = 1, .category = R, .sector = 8, .bytes = 8192);
    REC(.time = 3, .act = 1, .category = R, .sector = 8, .bytes = 4096);
    REC(.time = 4, .act = 1, .category = W, .sector = 8, .bytes = 4096);
    REC(.time = 10, .act = 8, .category = R, .sector = 8, .bytes = 8192);
    REC(.time = 20, .act = 8, .category = R, .sector = 8, .bytes = 4096);
    REC(.time = 30, .act = 8, .category = W, .sector = 8, .bytes = 4096);
    REC(.time = 40, .act = 8, .category = R, .sector = 8, .bytes = 4096);
    r = convert(&c, 1, 0, 0);
    assert_int_equal(4, r->count);
    assert_int_equal(8, r->ops[0].latency_ns);
    assert_int_equal(19, r->ops[1].latency_ns);
    assert_int_equal(TRACE_WRITE, r->ops[2].kind);
    assert_int_equal(26, r->ops[2].latency_ns);
    assert_int_equal(37, r->ops[3].latency_ns);
    free(r);
}

static void requeued_request_is_one_op(void **state)
{
    struct capture c = {0};
    struct result *r;

    (void)state;
    REC(.time = 1, .act = 7, .category = W | SYNC, .sector = 8, .bytes = 4096);
    REC(.time = 2, .act = 6, .category = W, .sector = 8, .bytes = 4096);
    REC(.time = 3, .act = 7, .category = W | SYNC, .sector = 8, .bytes = 4096);
    REC(.time = 9, .act = 8, .category = W, .sector = 8, .bytes = 4096);
    r = convert(&c, 1, 0, 0);
    assert_int_equal(1, r->count);
    assert_int_equal(8, r->ops[0].latency_ns);
    assert_int_equal(TRACE_F_REQUEUED | TRACE_F_SYNC, r->ops[0].flags);
    free(r);
}

static void flush_sequences(void **state)
{
    struct capture c = {0};
    struct result *r;

    (void)state;
    REC(.time = 1, .act = 1, .category = W | FLUSH | FUA, .sector = 64, .bytes = 4096);
    REC(.time = 2, .act = 7, .category = FLUSH);
    REC(.time = 3, .act = 8, .category = FLUSH);
    REC(.time = 4, .act = 8, .category = W, .sector = 64, .bytes = 4096);
    REC(.time = 5, .act = 1, .category = W | FLUSH); /* a bare flush comes between */
    REC(.time = 8, .act = 8, .category = FLUSH);
    REC(.time = 9, .act = 8, .category = W, .sector = 64);
    REC(.time = 11, .act = 8, .category = W, .sector = 0);
    REC(.time = 20, .act = 1, .category = W | FUA, .sector = 128, .bytes = 512);
    REC(.time = 24, .act = 8, .category = W | FUA, .sector = 128,
        .bytes = 512); /* a device with FUA: no end event */
    r = convert(&c, 1, 0, 0);
    assert_int_equal(3, r->count);
    assert_int_equal(TRACE_WRITE, r->ops[0].kind);
    assert_int_equal(TRACE_F_PREFLUSH | TRACE_F_FUA, r->ops[0].flags);
    assert_int_equal(8, r->ops[0].latency_ns);
    assert_int_equal(TRACE_FLUSH, r->ops[1].kind);
    assert_int_equal(6, r->ops[1].latency_ns);
    assert_int_equal(4, r->ops[2].latency_ns);
    free(r);
}

static void discards_passthrough_and_sentinels(void **state)
{
    struct capture c = {0};
    struct result *r;

    (void)state;
    REC(.time = 1, .act = 7, .category = W | DISCARD, .sector = 1ull << 40,
        .bytes = 0xfffff000);
    REC(.time = 5, .act = 8, .category = W | DISCARD, .sector = 1ull << 40,
        .bytes = 0xfffff000);
    REC(.time = 6, .act = 7, .category = FLUSH, .sector = UINT64_MAX);
    REC(.time = 7, .act = 8, .category = FLUSH, .sector = UINT64_MAX, .error = -5);
    REC(.time = 8, .act = 7, .category = R | PC, .bytes = 36);
    REC(.time = 9, .act = 8, .category = R | PC);
    r = convert(&c, 1, 0, 0);
    assert_int_equal(3, r->count);
    assert_int_equal(TRACE_DISCARD, r->ops[0].kind);
    assert_int_equal(512ull << 40, r->ops[0].offset);
    assert_int_equal(0xfffff000, r->ops[0].length);
    assert_int_equal(TRACE_FLUSH, r->ops[1].kind);
    assert_int_equal(-5, r->ops[1].result);
    assert_int_equal(TRACE_PASSTHROUGH, r->ops[2].kind);
    assert_true(r->ops[2].offset == TRACE_UNKNOWN_U64);
    assert_int_equal(1, r->ops[2].latency_ns);
    free(r);
}

/* One request of several ranges has the first one's sector and the bytes of all. */
static void discards_of_several_ranges(void **state)
{
    struct capture c = {0};
    struct result *r;

    (void)state;
    REC(.time = 10, .act = 1, .category = W | DISCARD, .sector = 8000, .bytes = 4096);
    REC(.time = 11, .act = 1, .category = W | DISCARD, .sector = 16, .bytes = 8192);
    REC(.time = 12, .act = 1, .category = W | DISCARD, .sector = 500, .bytes = 4096);
    REC(.time = 13, .act = 7, .category = W | DISCARD, .sector = 8000, .bytes = 16384);
    /* Queued before the completion of the others, and no part of their request. */
    REC(.time = 14, .act = 1, .category = W | DISCARD, .sector = 8008, .bytes = 4096);
    REC(.time = 15, .act = 1, .category = W | DISCARD, .sector = 700, .bytes = 4096);
    REC(.time = 16, .act = 7, .category = W | DISCARD, .sector = 8008, .bytes = 8192);
    REC(.time = 100, .act = 8, .category = W | DISCARD, .sector = 8000, .bytes = 16384);
    REC(.time = 200, .act = 8, .category = W | DISCARD, .sector = 8008, .bytes = 8192);
    /* Without issue events the ranges that wait are taken in their order. */
    REC(.time = 300, .act = 1, .category = W | DISCARD, .sector = 4, .bytes = 512);
    REC(.time = 301, .act = 1, .category = W | DISCARD, .sector = 9, .bytes = 1024);
    REC(.time = 400, .act = 8, .category = W | DISCARD, .sector = 4, .bytes = 1536);
    r = convert(&c, 1, 0, 0);
    assert_int_equal(0, r->error);
    assert_int_equal(7, r->count);
    for (size_t i = 0; i < r->count; i++) {
        const struct trace_op *op = &r->ops[i];
        int64_t ends = op->issue_ns < 13 ? 100 : op->issue_ns < 300 ? 200 : 400;

        assert_int_equal(ends - op->issue_ns, op->latency_ns);
        assert_int_equal(op->length, op->result);
        assert_false(op->flags & TRACE_F_INFLIGHT);
    }
    free(r);
}

/* An append is asked for at its zone's start and completes where it was written. */
static void appends_complete_where_they_wrote(void **state)
{
    struct capture c = {.v8 = true};
    struct result *r;

    (void)state;
    REC(.time = 1, .act = 1, .category = W | APPEND, .sector = 0, .bytes = 4096, .pid = 1);
    REC(.time = 2, .act = 1, .category = W | APPEND, .sector = 524288, .bytes = 4096, .pid = 1);
    REC(.time = 3, .act = 1, .category = W | APPEND, .sector = 0, .bytes = 8192, .pid = 1);
    REC(.time = 4, .act = 7, .category = W | APPEND, .sector = 0, .bytes = 4096);
    REC(.time = 5, .act = 7, .category = W | APPEND, .sector = 524288, .bytes = 4096);
    /* The kernel made a write of this one when it issued it. */
    REC(.time = 6, .act = 7, .category = W, .sector = 1600, .bytes = 8192);
    REC(.time = 20, .act = 8, .category = W | APPEND, .sector = 524800, .bytes = 4096);
    REC(.time = 30, .act = 8, .category = W | APPEND, .sector = 1592, .bytes = 4096);
    REC(.time = 40, .act = 8, .category = W, .sector = 1600, .bytes = 8192);
    r = convert(&c, 1, 0, 0);
    assert_int_equal(0, r->error);
    assert_int_equal(3, r->count);
    for (size_t i = 0; i < r->count; i++) {
        const struct trace_op *op = &r->ops[i];
        int64_t ends = op->issue_ns == 1 ? 30 : op->issue_ns == 2 ? 20 : 40;

        assert_int_equal(TRACE_ZONE_APPEND, op->kind);
        assert_int_equal(op->issue_ns == 2 ? 524288 * 512 : 0, op->offset);
        assert_int_equal(ends - op->issue_ns, op->latency_ns);
        assert_int_equal(op->length, op->result);
    }
    free(r);
}

static void event_choice(void **state)
{
    static const struct {
        char asked;
        size_t ops;
        int64_t first;
    } cases[] = {{0, 1, 1}, {'Q', 1, 1}, {'D', 2, 2}, {'C', 2, 5}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct capture c = {0};
        struct result *r;

        REC(.time = 1, .act = 1, .category = R, .sector = 8, .bytes = 8192);
        REC(.time = 2, .act = 7, .category = R, .sector = 8, .bytes = 4096);
        REC(.time = 3, .act = 7, .category = R, .sector = 16, .bytes = 4096);
        REC(.time = 5, .act = 8, .category = R, .sector = 8, .bytes = 4096);
        REC(.time = 7, .act = 8, .category = R, .sector = 16, .bytes = 4096);
        r = convert(&c, 1, cases[i].asked, 0);
        assert_int_equal(cases[i].ops, r->count);
        assert_int_equal(cases[i].first, r->ops[0].issue_ns);
        free(r);
    }
}

/* The same records in every layout and byte order, one CPU of each kind in a set. */
static void layouts_and_byte_orders(void **state)
{
    struct capture captures[4] = {{.v8 = false, .big = false},
                                  {.v8 = true, .big = false},
                                  {.v8 = false, .big = true},
                                  {.v8 = true, .big = true}};
    struct result *r;

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        struct capture c = captures[i];

        c.cpu = i;
        REC(.name = "writer", .pid = 10 + i, .time = 1, .cgroup = i & 1);
        for (uint32_t k = 0; k < 50; k++) {
            /* asked on this CPU, completed on the next */
            REC(.time = 1000 * k + i, .act = 1, .category = W, .sector = 8 * (4 * k + i),
                .bytes = 4096, .pid = 10 + i, .cgroup = k & 1);
            REC(.time = 1000 * k + 100 + i, .act = 8, .category = W,
                .sector = 8 * (4 * k + (i + 1) % 4), .bytes = 4096);
        }
        captures[i] = c;
    }
    r = convert(captures, 4, 0, 0);
    assert_int_equal(200, r->count);
    for (size_t i = 0; i < r->count; i++) {
        assert_true(r->ops[i].latency_ns >= 97 && r->ops[i].latency_ns <= 103);
        assert_int_equal(4096, r->ops[i].result);
        assert_true(r->ops[i].stream != TRACE_NONE_U32);
    }
    assert_int_equal(0, r->lost);
    free(r);
}

/* A stream in which one CPU's buffer follows another's steps back in time. */
static void stream_that_steps_back(void **state)
{
    struct capture c = {0};
    struct result *r;

    (void)state;
    for (uint32_t i = 0; i < 500; i++)
        REC(.time = 1000 + 10 * i, .act = 1, .category = R, .sector = 8 * i, .bytes = 4096);
    c.cpu = 1;
    c.sequence = 0;
    for (uint32_t i = 0; i < 500; i++)
        REC(.time = 1005 + 10 * i, .act = 8, .category = R, .sector = 8 * i, .bytes = 4096);
    r = convert(&c, 1, 0, 0);
    assert_int_equal(500, r->count);
    for (size_t i = 0; i < r->count; i++)
        assert_int_equal(5, r->ops[i].latency_ns);
    free(r);
}

/* Every cut yields exactly the whole records in front of it, and says so when it cuts one. */
static void every_cut_keeps_what_is_whole(void **state)
{
    (void)state;
    for (size_t cut = 1; cut <= 4 * 48; cut++) {
        struct capture c = {0};
        struct result *r;

        for (uint32_t i = 0; i < 4; i++)
            REC(.time = 10 * i, .act = 1, .category = R, .sector = 8 * i, .bytes = 4096);
        c.length = cut;
        r = convert(&c, 1, 0, 0);
        assert_int_equal(0, r->error);
        assert_int_equal(cut / 48, r->count);
        assert_int_equal(cut % 48 != 0, r->lost);
        free(r);
    }
}

static void garbage_is_an_error_or_passed_over(void **state)
{
    (void)state;
    for (int skip = 0; skip < 2; skip++) {
        struct capture c = {0};
        struct result *r;

        for (uint32_t i = 0; i < 6; i++) {
            if (i == 3)
                for (int k = 0; k < 77; k++)
                    put(&c, 0xa5, 1, false);
            REC(.time = 10 * i, .act = 1, .category = R, .sector = 8 * i, .bytes = 4096);
        }
        r = convert(&c, 1, 0, skip ? 10 : 0);
        if (skip) {
            assert_int_equal(0, r->error);
            assert_int_equal(6, r->count);
        } else {
            assert_int_equal(-EBADMSG, r->error);
            assert_non_null(strstr(r->text, "byte 144: not a blktrace record"));
        }
        free(r);
    }
}

static void numbers_that_are_missing_are_lost(void **state)
{
    struct capture c = {0};
    struct result *r;

    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        REC(.time = 10 * i, .act = 1, .category = R, .sector = 8 * i, .bytes = 4096);
        c.sequence += i == 4 ? 7 : 0;
    }
    r = convert(&c, 1, 0, 0);
    assert_int_equal(10, r->count);
    assert_int_equal(7, r->lost);
    free(r);
}

/* Requests that never complete do not grow what waits without end. */
static void without_completions_memory_is_bounded(void **state)
{
    struct capture c = {0};
    struct result *r;

    (void)state;
    REC(.time = 1, .act = 8, .category = R, .sector = 1, .bytes = 512);
    for (uint32_t i = 0; i < 4000; i++)
        REC(.time = 10 + i, .act = 1, .category = R, .sector = 8, .bytes = 4096);
    r = convert(&c, 1, 0, 0);
    assert_int_equal(4000, r->count);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merged_request_completes_each),
        cmocka_unit_test(split_and_partial_complete_once),
        cmocka_unit_test(same_sector_twice_pairs_by_size_then_age),
        cmocka_unit_test(requeued_request_is_one_op),
        cmocka_unit_test(flush_sequences),
        cmocka_unit_test(discards_passthrough_and_sentinels),
        cmocka_unit_test(discards_of_several_ranges),
        cmocka_unit_test(appends_complete_where_they_wrote),
        cmocka_unit_test(event_choice),
        cmocka_unit_test(layouts_and_byte_orders),
        cmocka_unit_test(stream_that_steps_back),
        cmocka_unit_test(every_cut_keeps_what_is_whole),
        cmocka_unit_test(garbage_is_an_error_or_passed_over),
        cmocka_unit_test(numbers_that_are_missing_are_lost),
        cmocka_unit_test(without_completions_memory_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
