/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous ops on their way: what was handed over is remembered under the address (or
 * user_data) that its completion will name. Any thread; a short spin, never a wait for I/O.
 */
#ifndef CAPTURE_PRELOAD_ASYNC_H
#define CAPTURE_PRELOAD_ASYNC_H

#include "capture/preload.h"

/* One op, before it is handed over. */
struct async_op {
    uint64_t slot; /* of its descriptor, from file_slot */
    uint64_t offset, length;
    uint32_t flags, arg;
    uint8_t kind, api;
};

/* space keeps the keys of one interface (and ring or context) from another's. Remembers the op:
 * its id, or 0 when it is not recorded. Two ops may have the same key: they complete in the
 * order they were added. */
uint64_t async_add(uint64_t space, uint64_t key, const struct async_op *op);
/* Something that is not recorded but will complete under this key as well: keeps the order. */
void async_hold(uint64_t space, uint64_t key);
/* The op was not taken after all. */
void async_remove(uint64_t space, uint64_t key, uint64_t id);
/* Writes the record of an added op that was handed over at begin_ns. batch: 0 = alone. */
void async_issued(uint64_t space, uint64_t key, uint64_t id, const struct async_op *op,
                  uint64_t begin_ns, uint32_t batch);
/* The op with this key has completed by end_ns; nothing when it is not known. */
void async_done(uint64_t space, uint64_t key, int64_t result, uint64_t end_ns,
                unsigned int completion);
/* The next batch number of this process, from 1. */
uint32_t async_batch(void);

#endif
