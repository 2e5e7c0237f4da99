/* SPDX-License-Identifier: MIT */
/*
 * Requests that were issued and not yet seen to complete: a hash from (device, sector, op kind)
 * to the op, for sources whose issue and completion are separate events.
 *
 * The same key may be in flight more than once; take returns the oldest. Bounded: when full,
 * put hands the oldest entry of all back as evicted, so that a source that never completes its
 * requests costs a fixed amount of memory.
 */
#ifndef CONVERT_INFLIGHT_H
#define CONVERT_INFLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "traces/trace.h"

struct inflight;

struct inflight_key {
    uint64_t device, sector;
    uint32_t kind; /* enum trace_op_kind, or any number the caller keeps to */
};

struct inflight *inflight_new(uint32_t most); /* NULL: no memory, or most is 0 */
void inflight_free(struct inflight *inflight);
/* Keeps a copy of op. True: *ret_evicted is the oldest entry, dropped to make room. */
bool inflight_put(struct inflight *inflight, const struct inflight_key *key,
                  const struct trace_op *op, struct trace_op *ret_evicted);
/* False: nothing in flight has this key. */
bool inflight_take(struct inflight *inflight, const struct inflight_key *key,
                   struct trace_op *ret_op);
/* Takes the oldest of all: to drain at the end. False: empty. */
bool inflight_take_any(struct inflight *inflight, struct trace_op *ret_op);

#endif
