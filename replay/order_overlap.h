/* SPDX-License-Identifier: MIT */
/*
 * Which of the operations before it does an operation share bytes with? The decoder's index for
 * --order overlap: hashed by target and 256 KiB granule, newest first; entries that are complete
 * are dropped as they are met. One thread.
 */
#ifndef REPLAY_ORDER_OVERLAP_H
#define REPLAY_ORDER_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

struct overlap_index;

struct overlap_op {
    uint64_t seq;
    uint64_t low, high; /* bytes, high exclusive, low < high */
    uint32_t target;
    bool write;
};

/* done(context, seq) says whether an operation has completed. NULL without memory. */
struct overlap_index *overlap_new(bool (*done)(void *context, uint64_t seq), void *context);
/* Calls conflict for earlier incomplete operations on the same bytes where one of the two writes
 * (what an intervening covering write already waits for is left out), then enters op. -ENOMEM. */
int overlap_add(struct overlap_index *index, const struct overlap_op *op,
                void (*conflict)(void *context, uint64_t seq), void *context);
void overlap_free(struct overlap_index *index); /* NULL is fine */

#endif
