/* SPDX-License-Identifier: MIT */
/*
 * Which operations must have completed before another may be issued.
 *
 * The decoder gives each operation a number and a tag (order_tag_op); the worker that has it asks
 * order_ready before it issues, and tells order_done when it has completed (or was skipped).
 * Everything between them is atomics in memory that worker processes share: no locks, and no
 * system call but to wake a thread that sleeps in order_wait.
 *
 * Ranked scopes (file, stream, all). In the recording the completions of a scope form a
 * sequence. The decoder appends an operation to its scope's sequence once it meets an operation
 * issued at or after that completion; an operation waits until the first `rank` entries, those
 * recorded before its issue, are complete here. Whoever asks moves the scope's prefix on, so
 * each entry is looked at once: O(1) an operation, amortised.
 *
 * Overlap. An operation waits for the earlier ones, not yet complete, that touch the same bytes
 * of the same target, when one of the two writes. The decoder finds them (it alone keeps the
 * index) and names up to ORDER_EDGES; where there are more, the operation waits for everything
 * numbered up to the last of them.
 *
 * Barriers. Whatever the order asked for, a call that makes, removes, renames, truncates or
 * allocates a file waits for the operations on that file before it, and those after it wait for
 * the call; calls on names follow one another.
 */
#ifndef REPLAY_ORDER_H
#define REPLAY_ORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "replay/prepared.h"

struct order;

struct order_conf {
    uint32_t mask;       /* enum conf_order */
    bool think;          /* completion times are kept for streams */
    uint32_t streams;    /* entries of the tape's stream table */
    uint32_t files;
    uint64_t assume_ns;  /* latency of operations without one */
    bool assume;
    bool shared;         /* workers are processes */
    uint32_t window;     /* operations between the oldest incomplete and the newest decoded;
                            a power of two; 0 = the default */
};

int order_new(struct order **ret_order, const struct order_conf *conf) TRACE_MUST_CHECK;
void order_free(struct order *order); /* NULL is fine */

/* ---- decoder thread ---- */

/*
 * Fills *ret_tag for the operation `p`, recorded as `op`, the next in issue order. -EAGAIN: too
 * many operations lie between it and the oldest incomplete one; publish what is held back, then
 * order_tag_wait, which waits: -EINTR when *stop turns non-zero meanwhile. -ENOMEM.
 */
int order_tag_op(struct order *order, const struct trace_op *op, const struct prepared *p,
                 struct order_tag *ret_tag);
int order_tag_wait(struct order *order, const struct trace_op *op, const struct prepared *p,
                   const atomic_int *stop, struct order_tag *ret_tag);
/* The tape starts again: recorded times of the next loop follow those of this one. */
void order_next_loop(struct order *order);

/* ---- workers ---- */

/*
 * Whether everything it waits for is done. For pace think *ret_from_ns is then the clock's time of
 * the last completion in its stream that it waited for, 0 when it waited for none.
 */
bool order_ready(struct order *order, const struct prepared *p, const struct order_tag *tag,
                 uint64_t *ret_from_ns);
/*
 * The same, for a thread that has nothing else to do: sleeps (a futex) until the first thing that p
 * waits for is done, at most timeout_ns. False: not yet; ask again.
 */
bool order_wait(struct order *order, const struct prepared *p, const struct order_tag *tag,
                uint64_t timeout_ns, uint64_t *ret_from_ns);
/* It has completed, at the clock's completed_ns. */
void order_done(struct order *order, const struct prepared *p, const struct order_tag *tag,
                uint64_t completed_ns);
/* Grows with every completion of any worker: unchanged means that nothing became ready. */
uint64_t order_version(const struct order *order);
/* Operations of one queue number issue first in, first out; UINT32_MAX: no such queue. */
uint32_t order_queue(const struct order *order, const struct prepared *p);
/* How many queue numbers there are. */
uint32_t order_queues(const struct order *order);

#endif
