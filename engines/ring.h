/* SPDX-License-Identifier: MIT */
/*
 * One io_uring, driven directly: what the io_uring engine is built on.
 *
 * liburing's queue functions are not used: those of the release that is common today write to
 * an index array that NO_SQARRAY does away with. One ring belongs to one thread. Its completion
 * ring holds every op that may be in flight, so that it never overflows.
 *
 *     ring_init --> (fill ring->sqes[ring->tail & ring->sq_mask], ring->tail++)
 *               --> ring_publish --> ring_reap, ring_wait --> ring_release
 */
#ifndef ENGINES_RING_H
#define ENGINES_RING_H

#include <liburing.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine_op;

/* Younger than the headers this may be built with. */
#define RING_SETUP_NO_SQARRAY (1u << 16)

/* In user_data, with the op's address: an entry that the op's own is linked to. The op's
 * engine_u64 starts at 0. */
#define RING_HELPER 1u

struct ring {
    int fd;
    int enter_fd; /* fd, or its registered index */
    unsigned int enter_flags;
    unsigned int setup_flags;
    unsigned int features;
    unsigned int in_flight;
    /* submission */
    unsigned int *sq_head, *sq_tail, *sq_flags, *sq_array;
    unsigned int sq_mask, sq_entries;
    unsigned int tail; /* of the ops prepared so far; *sq_tail is what the kernel may see */
    struct io_uring_sqe *sqes;
    /* completion */
    unsigned int *cq_head, *cq_tail;
    unsigned int cq_mask;
    struct io_uring_cqe *cqes;
    void *sq_map, *cq_map;
    size_t sq_bytes, cq_bytes, sqe_bytes;
};

/* The optional setup flags, youngest kernel first: the order in which they are given up. */
struct ring_step {
    unsigned int flag;
    const char *name;
    bool matters; /* its absence is a downgrade */
};
#define RING_STEP_COUNT 8u
extern const struct ring_step ring_steps[RING_STEP_COUNT];

/*
 * A ring for entries prepared at once and depth in flight. wanted = IORING_SETUP_ flags; of
 * those in ring_steps the ones that the kernel does not know are given up one by one:
 * setup_flags says what is left. params carries the SQPOLL settings. -errno of io_uring_setup,
 * -E2BIG: the kernel has no ring for this depth, -ENOMEM.
 */
int ring_init(struct ring *ring, unsigned int entries, unsigned int depth, unsigned int wanted,
              const struct io_uring_params *params) __attribute__((warn_unused_result));
/* fd -1 is fine. Nothing may be in flight. */
void ring_release(struct ring *ring);
/* Registers the ring's own descriptor, so that each call spares a look-up; enter_flags is not 0
 * when the kernel did (5.18). */
void ring_register_self(struct ring *ring);

/* Entries that may be prepared now. */
unsigned int ring_space(const struct ring *ring);
/*
 * Publishes the count entries prepared last and enters the kernel, waiting there for min
 * completions when wait is set. How many the kernel consumed; the rest is taken back, to be
 * prepared again. 0 = try later. With SQPOLL: publishes, wakes the thread if it sleeps, count.
 */
int ring_publish(struct ring *ring, unsigned int count, bool wait, unsigned int min,
                 uint64_t timeout_ns);
/*
 * Takes up to max completions that are there: each op (user_data) with its result, or its
 * helper's when that failed. Completions of helpers are not given back; the caller does not count
 * them in in_flight.
 */
unsigned int ring_reap(struct ring *ring, struct engine_op **done, unsigned int max);
/*
 * Waits until min completions are in the ring, the time is over or a signal came; min 0 makes
 * those appear that only a call brings forth. 0 = look into the ring and come back when there
 * are too few, 1 = give up waiting, or -errno. timeout_ns as an engine's reap.
 */
int ring_wait(const struct ring *ring, unsigned int min, uint64_t timeout_ns);
/* Whether completions may be there that only a call brings forth. */
bool ring_must_enter(const struct ring *ring);

#endif
