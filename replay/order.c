/* SPDX-License-Identifier: MIT */
#include "replay/order.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay/area.h"
#include "replay/conf.h"
#include "replay/order_overlap.h"
#include "replay/order_state.h"

#define DEFAULT_WINDOW (1u << 17)
#define ARENA_BYTES    (1ull << 32) /* reserved, touched as used */
#define FIRST_ENTRIES  8u

static bool done_callback(void *context, uint64_t seq)
{
    return order_is_done(context, seq);
}

static int alloc_shared(struct order *order)
{
    bool shared = order->conf.shared;
    size_t window = order->conf.window;

    order->done = area_alloc(window * sizeof *order->done, shared);
    order->done_ns = area_alloc(window * sizeof *order->done_ns, shared);
    order->contiguous = area_alloc(64, shared);
    order->version = area_alloc(64, shared);
    order->sleepers = area_alloc(ORDER_SLEEPERS * sizeof *order->sleepers, shared);
    order->scopes = area_alloc(order->scope_count * sizeof *order->scopes, shared);
    order->file_done = area_alloc((order->conf.files + 1ull) * sizeof *order->file_done, shared);
    order->arena = area_alloc(ARENA_BYTES, shared);
    if (order->done == NULL || order->done_ns == NULL || order->contiguous == NULL ||
        order->version == NULL || order->sleepers == NULL || order->scopes == NULL ||
        order->file_done == NULL || order->arena == NULL)
        return -ENOMEM;
    return 0;
}

int order_new(struct order **ret_order, const struct order_conf *conf)
{
    struct order *order = calloc(1, sizeof *order);
    int err = -ENOMEM;

    if (order == NULL)
        return -ENOMEM;
    order->conf = *conf;
    if (order->conf.window == 0)
        order->conf.window = DEFAULT_WINDOW;
    order->window_mask = order->conf.window - 1;
    order->scope_count = (size_t)conf->streams + 1 + (size_t)conf->files + 1 + 1;
    if (alloc_shared(order) != 0)
        goto out;
    order->file_issued = calloc((size_t)conf->files + 1, sizeof *order->file_issued);
    order->file_barrier = calloc((size_t)conf->files + 1, sizeof *order->file_barrier);
    if (order->file_issued == NULL || order->file_barrier == NULL)
        goto out;
    if (conf->mask & ORDER_OVERLAP) {
        order->overlap = overlap_new(done_callback, order);
        if (order->overlap == NULL)
            goto out;
    }
    *ret_order = order;
    return 0;
out:
    order_free(order);
    return err;
}

void order_free(struct order *order)
{
    if (order == NULL)
        return;
    area_free((void *)order->done, order->conf.window * sizeof *order->done);
    area_free(order->done_ns, order->conf.window * sizeof *order->done_ns);
    area_free((void *)order->contiguous, 64);
    area_free((void *)order->version, 64);
    area_free((void *)order->sleepers, ORDER_SLEEPERS * sizeof *order->sleepers);
    area_free(order->scopes, order->scope_count * sizeof *order->scopes);
    area_free((void *)order->file_done, (order->conf.files + 1ull) * sizeof *order->file_done);
    area_free(order->arena, ARENA_BYTES);
    overlap_free(order->overlap);
    free(order->file_issued);
    free(order->file_barrier);
    free(order->heap);
    free(order);
}

/* ---- decoder ------------------------------------------------------------------------- */

static int heap_push(struct order *order, struct pending item)
{
    size_t at = order->heap_count;

    if (at == order->heap_size) {
        size_t size = order->heap_size ? order->heap_size * 2 : 256;
        struct pending *heap = realloc(order->heap, size * sizeof *heap);

        if (heap == NULL)
            return -ENOMEM;
        order->heap = heap;
        order->heap_size = size;
    }
    order->heap_count++;
    while (at > 0 && order->heap[(at - 1) / 2].completed_ns > item.completed_ns) {
        order->heap[at] = order->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    order->heap[at] = item;
    return 0;
}

static struct pending heap_pop(struct order *order)
{
    struct pending top = order->heap[0];
    struct pending last = order->heap[--order->heap_count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= order->heap_count)
            break;
        if (child + 1 < order->heap_count &&
            order->heap[child + 1].completed_ns < order->heap[child].completed_ns)
            child++;
        if (order->heap[child].completed_ns >= last.completed_ns)
            break;
        order->heap[at] = order->heap[child];
        at = child;
    }
    if (order->heap_count > 0)
        order->heap[at] = last;
    return top;
}

/* A ring twice as large, with the entries at the ranks they had. Readers of the old one go on. */
static int ring_grow(struct order *order, struct scope *scope)
{
    struct rank_ring *old = atomic_load_explicit(&scope->ring, memory_order_relaxed);
    uint64_t size = old ? (old->mask + 1) * 2 : FIRST_ENTRIES;
    uint64_t bytes = sizeof(struct rank_ring) + size * sizeof(uint64_t);
    struct rank_ring *ring = (struct rank_ring *)(order->arena + order->arena_used);

    if (order->arena_used + bytes > ARENA_BYTES)
        return -ENOMEM;
    order->arena_used += bytes;
    ring->mask = size - 1;
    if (old != NULL)
        for (uint64_t r = scope->ranked - (old->mask + 1); r != scope->ranked; r++)
            atomic_store_explicit(
                &ring->seq[r & ring->mask],
                atomic_load_explicit(&old->seq[r & old->mask], memory_order_relaxed),
                memory_order_relaxed);
    atomic_store_explicit(&scope->ring, ring, memory_order_release);
    return 0;
}

static int scope_append(struct order *order, struct scope *scope, uint64_t seq)
{
    struct rank_ring *ring = atomic_load_explicit(&scope->ring, memory_order_relaxed);

    if (ring == NULL ||
        scope->ranked - atomic_load_explicit(&scope->prefix, memory_order_acquire) > ring->mask) {
        int err = ring_grow(order, scope);

        if (err != 0)
            return err;
        ring = atomic_load_explicit(&scope->ring, memory_order_relaxed);
    }
    atomic_store_explicit(&ring->seq[scope->ranked & ring->mask], seq, memory_order_relaxed);
    scope->ranked++;
    return 0;
}

/* Appends what was recorded as complete by issue_ns to its scopes. */
static int rank_until(struct order *order, int64_t issue_ns)
{
    while (order->heap_count > 0 && order->heap[0].completed_ns <= issue_ns) {
        struct pending done = heap_pop(order);
        int err = 0;

        if ((order->conf.mask & ORDER_STREAM) || order->conf.think) {
            stream_scope(order, done.stream)->recorded_ns = done.completed_ns;
            err = scope_append(order, stream_scope(order, done.stream), done.seq);
        }
        if (err == 0 && (order->conf.mask & ORDER_FILE))
            err = scope_append(order, file_scope(order, done.file), done.seq);
        if (err == 0 && (order->conf.mask & ORDER_ALL))
            err = scope_append(order, all_scope(order), done.seq);
        if (err != 0)
            return err;
    }
    return 0;
}

static int tag_ranks(struct order *order, const struct trace_op *op, struct order_tag *tag)
{
    uint64_t latency_ns = op->latency_ns;
    int err;

    if (!(order->conf.mask & ORDER_RANKED) && !order->conf.think)
        return 0;
    err = rank_until(order, op->issue_ns);
    if (err != 0)
        return err;
    tag->rank_stream = stream_scope(order, op->stream)->ranked;
    tag->rank_file = file_scope(order, op->file)->ranked;
    tag->rank_all = all_scope(order)->ranked;
    if (tag->rank_stream > 0 && op->issue_ns > stream_scope(order, op->stream)->recorded_ns)
        tag->think_ns = (uint64_t)(op->issue_ns - stream_scope(order, op->stream)->recorded_ns);
    if (latency_ns == TRACE_UNKNOWN_U64 && order->conf.assume)
        latency_ns = order->conf.assume_ns;
    if (latency_ns == TRACE_UNKNOWN_U64)
        return 0; /* never seen to complete: nothing recorded waited for it */
    return heap_push(order, (struct pending){.completed_ns = op->issue_ns + (int64_t)latency_ns,
                                             .seq = tag->seq,
                                             .file = op->file,
                                             .stream = op->stream});
}

static void tag_edge(struct order_tag *tag, uint64_t seq)
{
    for (uint32_t i = 0; i < tag->edges; i++)
        if (tag->edge[i] == seq)
            return;
    if (tag->edges < ORDER_EDGES)
        tag->edge[tag->edges++] = seq;
    else if (tag->before <= seq)
        tag->before = seq + 1;
}

static void edge_callback(void *tag, uint64_t seq)
{
    tag_edge(tag, seq);
}

static bool is_name_call(const struct prepared *p)
{
    return (p->marks & PREPARED_BARRIER) && p->kind != TRACE_TRUNCATE &&
           p->kind != TRACE_FALLOCATE;
}

static void tag_barriers(struct order *order, const struct trace_op *op,
                         const struct prepared *p, struct order_tag *tag)
{
    bool barrier = (p->marks & PREPARED_BARRIER) != 0;
    bool two = p->kind == TRACE_RENAME || p->kind == TRACE_LINK;
    uint32_t files[2] = {op->file, barrier && two ? op->file2 : TRACE_NONE_U32};

    tag->file_issued = tag->file2_issued = TRACE_NONE_U32;
    if (!(p->marks & (PREPARED_FENCED | PREPARED_BARRIER)))
        return;
    /* Directories and what is in them: calls on names follow one another. */
    if (is_name_call(p) && order->last_name_call != 0)
        tag_edge(tag, order->last_name_call - 1);
    for (int i = 0; i < 2; i++) {
        if (files[i] == TRACE_NONE_U32)
            continue;
        if (barrier)
            *(i == 0 ? &tag->file_issued : &tag->file2_issued) = order->file_issued[files[i]];
        else if (order->file_barrier[files[i]] != 0)
            tag_edge(tag, order->file_barrier[files[i]] - 1);
        if (barrier)
            order->file_barrier[files[i]] = tag->seq + 1;
        order->file_issued[files[i]]++;
    }
    if (is_name_call(p))
        order->last_name_call = tag->seq + 1;
}

static int tag_overlap(struct order *order, const struct prepared *p, struct order_tag *tag)
{
    struct overlap_op op = {.seq = tag->seq, .target = p->target, .write = p->kind != TRACE_READ};

    if (order->overlap == NULL || p->action == PREPARED_SKIP)
        return 0;
    if (p->kind == TRACE_TRUNCATE) {
        op.low = p->length;
        op.high = UINT64_MAX;
    } else if (trace_op_has_range(p->kind) || p->kind == TRACE_FALLOCATE) {
        /* An append without a recorded place may land anywhere. */
        op.low = p->offset == TRACE_UNKNOWN_U64 ? 0 : p->offset;
        op.high = p->offset == TRACE_UNKNOWN_U64 ? UINT64_MAX : p->offset + p->length;
    }
    if (op.low >= op.high)
        return 0;
    return overlap_add(order->overlap, &op, edge_callback, tag);
}

static bool window_full(const struct order *order)
{
    return order->next_seq >= order->conf.window &&
           !order_is_done(order, order->next_seq - order->conf.window);
}

int order_tag_op(struct order *order, const struct trace_op *op, const struct prepared *p,
                 struct order_tag *ret_tag)
{
    struct order_tag tag = {.seq = order->next_seq};
    int err;

    if (window_full(order))
        return -EAGAIN;
    err = tag_ranks(order, op, &tag);
    if (err != 0)
        return err;
    tag_barriers(order, op, p, &tag);
    err = tag_overlap(order, p, &tag);
    if (err != 0)
        return err;
    order->next_seq++;
    *ret_tag = tag;
    return 0;
}

int order_tag_wait(struct order *order, const struct trace_op *op, const struct prepared *p,
                   const atomic_int *stop, struct order_tag *ret_tag)
{
    const struct timespec pause = {.tv_nsec = 50000};

    while (window_full(order)) {
        if (atomic_load_explicit(stop, memory_order_relaxed))
            return -EINTR;
        nanosleep(&pause, NULL);
    }
    return order_tag_op(order, op, p, ret_tag);
}

void order_next_loop(struct order *order)
{
    /* What was in flight at the end of the recording completes with it. */
    while (order->heap_count > 0) {
        int err = rank_until(order, INT64_MAX);

        if (err != 0)
            order->heap_count = 0; /* the waits that are lost were between loops */
    }
}
