/* SPDX-License-Identifier: MIT */
/* What order_ready lets through, held against the recorded times by brute force; and the same
 * with threads. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <cmocka.h>

#include "replay/conf.h"
#include "replay/order.h"
#include "replay/order_overlap.h"

#define OPS     3000
#define STREAMS 5
#define FILES   4

struct item {
    struct trace_op op;
    struct prepared p;
    struct order_tag tag;
    bool issued, done;
};

static uint32_t random_state = 12345;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

/* Ops at growing times, with latencies that make completions overtake each other. */
static struct item *make_items(void)
{
    struct item *items = calloc(OPS, sizeof *items);
    int64_t now = 0;

    assert_non_null(items);
    for (int i = 0; i < OPS; i++) {
        struct item *item = &items[i];

        now += draw(100);
        item->op = (struct trace_op)TRACE_OP_INIT;
        item->op.issue_ns = now;
        item->op.latency_ns = draw(10) == 0 ? 2000 + draw(3000) : draw(300);
        item->op.kind = draw(3) == 0 ? TRACE_WRITE : TRACE_READ;
        item->op.stream = draw(STREAMS);
        item->op.file = draw(FILES);
        item->op.offset = draw(64) * 512;
        item->op.length = (1 + draw(16)) * 512;
        item->p = (struct prepared){.offset = item->op.offset,
                                    .length = item->op.length,
                                    .target = item->op.file,
                                    .file = item->op.file,
                                    .stream = item->op.stream,
                                    .kind = item->op.kind};
    }
    return items;
}

static bool overlaps(const struct item *a, const struct item *b)
{
    return a->op.file == b->op.file && a->op.offset < b->op.offset + b->op.length &&
           b->op.offset < a->op.offset + a->op.length &&
           (a->op.kind == TRACE_WRITE || b->op.kind == TRACE_WRITE);
}

/* Must a be complete before b, which comes later, is issued? */
static bool must_precede(uint32_t mask, const struct item *a, const struct item *b)
{
    bool before = a->op.issue_ns + (int64_t)a->op.latency_ns <= b->op.issue_ns;

    return ((mask & ORDER_STREAM) && before && a->op.stream == b->op.stream) ||
           ((mask & ORDER_FILE) && before && a->op.file == b->op.file) ||
           ((mask & ORDER_ALL) && before) || ((mask & ORDER_OVERLAP) && overlaps(a, b));
}

static bool oracle(uint32_t mask, const struct item *items, int index)
{
    for (int i = 0; i < index; i++)
        if (!items[i].done && must_precede(mask, &items[i], &items[index]))
            return false;
    return true;
}

/*
 * Decodes ahead by up to 40 ops, completes in random order, and at every step compares what
 * order_ready says of each undone op. Overlap may say no where it could say yes (when more than
 * ORDER_EDGES are in the way), never the other way.
 */
static void check_mask(uint32_t mask)
{
    const struct order_conf conf = {.mask = mask, .streams = STREAMS, .files = FILES,
                                    .window = 1u << 12};
    struct item *items = make_items();
    struct order *order;
    int decoded = 0, first = 0, refused = 0, exact = 0;

    assert_int_equal(order_new(&order, &conf), 0);
    while (first < OPS) {
        bool moved = false;

        while (decoded < OPS && decoded < first + 40) {
            assert_int_equal(order_tag_op(order, &items[decoded].op, &items[decoded].p,
                                          &items[decoded].tag), 0);
            decoded++;
        }
        for (int i = first; i < decoded; i++) {
            uint64_t from;
            bool ready, right;

            if (items[i].done)
                continue;
            right = oracle(mask, items, i);
            ready = order_ready(order, &items[i].p, &items[i].tag, &from);
            assert_false(ready && !right);
            if (!(mask & ORDER_OVERLAP))
                assert_int_equal(ready, right);
            exact += ready == right;
            refused += !ready;
            if (ready && draw(4) == 0) {
                order_done(order, &items[i].p, &items[i].tag, 1);
                items[i].done = true;
                moved = true;
            }
        }
        /* The oldest undone one waits for nothing that is not done. */
        assert_true(moved || oracle(mask, items, first));
        while (first < decoded && items[first].done)
            first++;
    }
    assert_true(refused > 100);
    assert_true(exact > refused);
    order_free(order);
    free(items);
}

static void test_masks(void **state)
{
    (void)state;
    check_mask(ORDER_STREAM);
    check_mask(ORDER_FILE);
    check_mask(ORDER_ALL);
    check_mask(ORDER_OVERLAP);
    check_mask(ORDER_STREAM | ORDER_FILE);
    check_mask(ORDER_FILE | ORDER_OVERLAP);
    check_mask(ORDER_STREAM | ORDER_FILE | ORDER_ALL | ORDER_OVERLAP);
}

/* think: the time of the last completion waited for, and the recorded time since it. */
static void test_think(void **state)
{
    const struct order_conf conf = {.think = true, .streams = 1, .files = 1};
    struct trace_op op = TRACE_OP_INIT;
    struct prepared p = {.file = 0, .stream = 0};
    struct order_tag tags[3];
    struct order *order;
    uint64_t from;

    (void)state;
    assert_int_equal(order_new(&order, &conf), 0);
    op.stream = op.file = 0;
    op.latency_ns = 100; /* done at 100 */
    assert_int_equal(order_tag_op(order, &op, &p, &tags[0]), 0);
    op.issue_ns = 50; /* while the first is in flight; done at 60 */
    op.latency_ns = 10;
    assert_int_equal(order_tag_op(order, &op, &p, &tags[1]), 0);
    op.issue_ns = 130; /* 30 after the last completion */
    assert_int_equal(order_tag_op(order, &op, &p, &tags[2]), 0);
    assert_int_equal(tags[2].think_ns, 30);
    assert_true(order_ready(order, &p, &tags[0], &from));
    assert_int_equal(from, 0);
    assert_true(order_ready(order, &p, &tags[1], &from));
    assert_int_equal(from, 0);
    assert_false(order_ready(order, &p, &tags[2], &from));
    order_done(order, &p, &tags[0], 7000);
    assert_false(order_ready(order, &p, &tags[2], &from));
    order_done(order, &p, &tags[1], 5000);
    assert_true(order_ready(order, &p, &tags[2], &from));
    assert_int_equal(from, 7000);
    order_free(order);
}

/* A call that renames waits for the operations on its files, and those after it for the call. */
static void test_names(void **state)
{
    const struct order_conf conf = {.streams = 1, .files = 2};
    struct trace_op op = TRACE_OP_INIT;
    struct prepared data = {.file = 0, .kind = TRACE_WRITE, .marks = PREPARED_FENCED};
    struct prepared rename = {.file = 0, .offset = 1ull << 32, .kind = TRACE_RENAME,
                              .action = PREPARED_CORE,
                              .marks = PREPARED_FENCED | PREPARED_BARRIER};
    struct prepared other = {.file = 1, .kind = TRACE_READ, .marks = PREPARED_FENCED};
    struct order_tag tags[3];
    struct order *order;
    uint64_t from;

    (void)state;
    assert_int_equal(order_new(&order, &conf), 0);
    op.file = 0;
    assert_int_equal(order_tag_op(order, &op, &data, &tags[0]), 0);
    op.kind = TRACE_RENAME;
    op.file2 = 1;
    assert_int_equal(order_tag_op(order, &op, &rename, &tags[1]), 0);
    op.kind = TRACE_READ;
    op.file = 1;
    op.file2 = TRACE_NONE_U32;
    assert_int_equal(order_tag_op(order, &op, &other, &tags[2]), 0);
    assert_true(order_ready(order, &data, &tags[0], &from));
    assert_false(order_ready(order, &rename, &tags[1], &from));
    assert_false(order_ready(order, &other, &tags[2], &from));
    order_done(order, &data, &tags[0], 1);
    assert_true(order_ready(order, &rename, &tags[1], &from));
    assert_false(order_ready(order, &other, &tags[2], &from));
    order_done(order, &rename, &tags[1], 1);
    assert_true(order_ready(order, &other, &tags[2], &from));
    order_free(order);
}

/* The window holds the decoder back, and lets it go on. */
static void test_window(void **state)
{
    const struct order_conf conf = {.mask = ORDER_ALL, .streams = 1, .files = 1, .window = 16};
    struct trace_op op = TRACE_OP_INIT;
    struct prepared p = {0};
    struct order_tag tags[17];
    struct order *order;
    atomic_int stop = 1;

    (void)state;
    assert_int_equal(order_new(&order, &conf), 0);
    op.latency_ns = 5;
    for (int i = 0; i < 16; i++)
        assert_int_equal(order_tag_op(order, &op, &p, &tags[i]), 0);
    assert_int_equal(order_tag_op(order, &op, &p, &tags[16]), -EAGAIN);
    assert_int_equal(order_tag_wait(order, &op, &p, &stop, &tags[16]), -EINTR);
    order_done(order, &p, &tags[3], 1);
    assert_int_equal(order_tag_op(order, &op, &p, &tags[16]), -EAGAIN);
    order_done(order, &p, &tags[0], 1);
    assert_int_equal(order_tag_op(order, &op, &p, &tags[16]), 0);
    order_free(order);
}

/* ---- threads ---------------------------------------------------------------------------- */

#define THREADS 3

struct crew {
    struct order *order;
    struct item *items;
    uint32_t mask;
    _Atomic int decoded;
    _Atomic int *done;
};

struct member {
    struct crew *crew;
    int index;
};

static void *crew_main(void *arg)
{
    struct member *member = arg;
    struct crew *crew = member->crew;

    /* Every third op is mine, in order, as a worker's stream would be. */
    for (int i = member->index; i < OPS; i += THREADS) {
        struct item *item = &crew->items[i];
        uint64_t from;

        while (atomic_load_explicit(&crew->decoded, memory_order_acquire) <= i)
            sched_yield();
        while (!order_ready(crew->order, &item->p, &item->tag, &from))
            sched_yield();
        for (int k = i - 1; k >= 0 && k > i - 200; k--)
            if (must_precede(crew->mask, &crew->items[k], item) &&
                !atomic_load_explicit(&crew->done[k], memory_order_acquire))
                return (void *)1;
        atomic_store_explicit(&crew->done[i], 1, memory_order_release);
        order_done(crew->order, &item->p, &item->tag, 1);
    }
    return NULL;
}

static void test_threads(void **state)
{
    struct crew crew = {.items = make_items(), .mask = ORDER_FILE | ORDER_ALL | ORDER_OVERLAP};
    const struct order_conf conf = {.mask = crew.mask, .streams = STREAMS, .files = FILES,
                                    .window = 256};
    struct member members[THREADS];
    pthread_t threads[THREADS];
    atomic_int stop = 0;

    (void)state;
    crew.done = calloc(OPS, sizeof *crew.done);
    assert_non_null(crew.done);
    assert_int_equal(order_new(&crew.order, &conf), 0);
    for (int t = 0; t < THREADS; t++) {
        members[t] = (struct member){&crew, t};
        assert_int_equal(pthread_create(&threads[t], NULL, crew_main, &members[t]), 0);
    }
    for (int i = 0; i < OPS; i++) {
        assert_int_equal(order_tag_wait(crew.order, &crew.items[i].op, &crew.items[i].p, &stop,
                                        &crew.items[i].tag), 0);
        atomic_store_explicit(&crew.decoded, i + 1, memory_order_release);
    }
    for (int t = 0; t < THREADS; t++) {
        void *failed;

        pthread_join(threads[t], &failed);
        assert_null(failed);
    }
    order_free(crew.order);
    free(crew.items);
    free((void *)crew.done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks),  cmocka_unit_test(test_think),
        cmocka_unit_test(test_names),  cmocka_unit_test(test_window),
        cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
