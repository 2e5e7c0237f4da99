/* SPDX-License-Identifier: MIT */
/*
 * From the tape to the workers: one decoder thread reads blocks, prepares each operation and
 * puts it into the ring of the worker it belongs to. The rings are what a worker sees of the
 * tape; it never parses or decompresses anything.
 *
 *     feed_new -> feed_start -> [workers take] -> feed_stop -> feed_free
 *
 * A ring has one producer (the decoder). Its consumer is one worker (ring_peek, ring_pop), or
 * the slot threads of one worker together (ring_claim); not both.
 */
#ifndef REPLAY_FEED_H
#define REPLAY_FEED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "replay/prepared.h"

struct conf;
struct diag;
struct order;
struct plan;
struct target_set;
struct trace_reader;

struct feed_ring {
    _Alignas(64) _Atomic uint64_t tail; /* prepared so far */
    _Atomic bool ended;                 /* tail is final */
    _Atomic uint32_t news;              /* a futex: grows when somebody is to look again */
    _Atomic uint32_t waiting;           /* consumers asleep in ring_sleep */
    _Alignas(64) _Atomic uint64_t head; /* taken so far */
    _Alignas(64) uint64_t mask;
    struct prepared *ops;
    struct order_tag *tags; /* NULL when the replay is not ordered */
    _Atomic uint64_t *taken; /* several consumers: position + 1 once a slot was copied */
};

struct feed;

struct feed_conf {
    struct trace_reader *reader; /* the feed's until feed_stop; can seek */
    const struct conf *conf;
    const struct plan *plan;
    const struct target_set *targets;
    struct order **orders; /* NULL when not ordered; one, or one a clone */
    uint32_t workers;
    uint32_t capacity; /* of each ring, a power of two */
    bool shared;       /* workers are processes */
    bool claimed;      /* several consumers a ring: ring_claim */
};

/* The rings, empty. conf is copied, what it points to stays. -ENOMEM. */
int feed_new(struct feed **ret_feed, const struct feed_conf *conf, struct diag *diag)
    TRACE_MUST_CHECK;
struct feed_ring *feed_ring(struct feed *feed, uint32_t worker);
/* Starts the decoder thread. */
int feed_start(struct feed *feed) TRACE_MUST_CHECK;
/* Ends the decoder thread, early if need be. 0, or what reading the tape failed with. */
int feed_stop(struct feed *feed, struct diag *diag);
void feed_free(struct feed *feed); /* NULL is fine; feed_stop came first */

/* How many operations can be taken now. *cached_tail is the consumer's copy of tail. */
static inline uint64_t ring_ready(struct feed_ring *ring, uint64_t head, uint64_t *cached_tail)
{
    if (*cached_tail == head)
        *cached_tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    return *cached_tail - head;
}

/* Everything was taken and nothing will come. */
static inline bool ring_finished(struct feed_ring *ring, uint64_t head)
{
    return atomic_load_explicit(&ring->ended, memory_order_acquire) &&
           head == atomic_load_explicit(&ring->tail, memory_order_acquire);
}

/* Gives everything before head back to the decoder. */
static inline void ring_release(struct feed_ring *ring, uint64_t head)
{
    atomic_store_explicit(&ring->head, head, memory_order_release);
}

/*
 * For several consumers: copies the next operation and makes it the caller's alone. False when
 * the ring is empty now.
 */
bool ring_claim(struct feed_ring *ring, struct prepared *ret_op, struct order_tag *ret_tag);
/* Sleeps while the ring is empty and not ended, at most timeout_ns (up to a second). */
void ring_sleep(struct feed_ring *ring, uint64_t timeout_ns);
/* Wakes all that sleep in ring_sleep: they have something else to look at. Any process. */
void feed_wake(struct feed *feed);

#endif
