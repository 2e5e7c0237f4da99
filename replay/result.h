/* SPDX-License-Identifier: MIT */
/*
 * The result tape: workers put what happened to each operation into rings of their own, one
 * writer thread takes it out and codes it. A worker waits when its ring is full, and says so;
 * nothing is dropped.
 *
 *     results_new -> results_start -> [workers push, ring_end] -> results_finish -> results_free
 */
#ifndef REPLAY_RESULT_H
#define REPLAY_RESULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "traces/trace.h"

struct diag;

struct result_ring {
    _Alignas(64) _Atomic uint64_t tail;
    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) uint64_t cached_head; /* the worker's copy of head */
    uint64_t mask;
    struct trace_op *ops;
};

struct results;

struct results_conf {
    const char *path;      /* "-" is standard output */
    bool force;
    uint32_t rings;
    uint32_t capacity;     /* of each, a power of two */
    bool shared;           /* workers are processes */
    const char *of;        /* the tape as the user named it */
    const struct trace_reader *reader; /* its tables are copied; whole by then */
    const char *config;    /* the replay's options as JSON */
    const char *clock;     /* "monotonic" or "simulated" */
    const char *cache;     /* state of the page cache at the start, as text */
    uint64_t start_wall_ns; /* Unix time of about time 0, 0 = simulated */
};

/* Creates the tape and writes its tables. -EEXIST without force, and what the writer says. */
int results_new(struct results **ret_results, const struct results_conf *conf, struct diag *diag)
    TRACE_MUST_CHECK;
struct result_ring *results_ring(struct results *results, uint32_t index);
int results_start(struct results *results) TRACE_MUST_CHECK;
/* No more pushes: writes what is left, then the Unix time of time 0 now that it is known (0:
 * leave what results_new was told) and `end` ("clean", "signal" ...), and closes the tape. */
int results_finish(struct results *results, uint64_t start_wall_ns, const char *end,
                   struct diag *diag);
/* True once writing has failed: the run should stop. Any thread. */
bool results_failed(const struct results *results);
void results_free(struct results *results); /* NULL is fine; unfinished: the tape is abandoned */

/* Room for one more? The worker only. */
static inline bool result_room(struct result_ring *ring)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

    if (tail - ring->cached_head <= ring->mask)
        return true;
    ring->cached_head = atomic_load_explicit(&ring->head, memory_order_acquire);
    return tail - ring->cached_head <= ring->mask;
}

/* The slot to fill; then result_push. There is room. */
static inline struct trace_op *result_slot(struct result_ring *ring)
{
    return &ring->ops[atomic_load_explicit(&ring->tail, memory_order_relaxed) & ring->mask];
}

static inline void result_push(struct result_ring *ring)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

    atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
}

#endif
