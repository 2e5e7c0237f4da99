/* SPDX-License-Identifier: MIT */
/* Shared by order.c, the decoder's side, and order_ready.c, the workers', alone. */
#ifndef REPLAY_ORDER_STATE_H
#define REPLAY_ORDER_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "replay/order.h"

#define ORDER_SLEEPERS 64u /* counters of sleeping threads; a power of two */

/* The completions of a scope, in recorded order, by rank modulo the size. */
struct rank_ring {
    uint64_t mask;
    _Atomic uint64_t seq[]; /* relaxed: a reader that was overtaken finds out from the prefix */
};

struct scope {
    _Atomic uint64_t prefix; /* entries known to be complete here */
    _Atomic(struct rank_ring *) ring;
    uint64_t ranked;  /* decoder: entries appended */
    int64_t recorded_ns; /* decoder: recorded time of the last one appended */
    _Atomic uint64_t last_ns; /* think: the latest completion in the prefix */
};

/* A recorded operation that the decoder has met and whose recorded completion it has not. */
struct pending {
    int64_t completed_ns;
    uint64_t seq;
    uint32_t file, stream;
};

struct order {
    struct order_conf conf;
    uint64_t window_mask;
    /* By number modulo the window: number + 1 once complete. */
    _Atomic uint64_t *done;
    uint64_t *done_ns; /* think: the clock's time of it; written before done */
    _Atomic uint64_t *contiguous; /* everything numbered below is complete */
    _Atomic uint64_t *version;
    _Atomic uint32_t *sleepers; /* ORDER_SLEEPERS, by the number they wait for */
    struct scope *scopes; /* streams, then files, then all */
    size_t scope_count;
    _Atomic uint32_t *file_done; /* files with barriers: operations complete */
    /* decoder only */
    uint32_t *file_issued;
    uint64_t *file_barrier; /* number + 1 of its last barrier */
    uint64_t last_name_call;
    uint64_t next_seq;
    struct pending *heap;
    size_t heap_count, heap_size;
    char *arena;
    uint64_t arena_used;
    struct overlap_index *overlap;
};

static inline bool order_is_done(const struct order *order, uint64_t seq)
{
    /* A later number in the cell was admitted only after this one was complete. */
    return atomic_load_explicit(&order->done[seq & order->window_mask],
                                memory_order_acquire) > seq;
}

static inline struct scope *stream_scope(struct order *order, uint32_t stream)
{
    return &order->scopes[stream == TRACE_NONE_U32 ? order->conf.streams : stream];
}

static inline struct scope *file_scope(struct order *order, uint32_t file)
{
    return &order->scopes[order->conf.streams + 1 +
                          (file == TRACE_NONE_U32 ? order->conf.files : file)];
}

static inline struct scope *all_scope(struct order *order)
{
    return &order->scopes[order->scope_count - 1];
}

#endif
