/* SPDX-License-Identifier: MIT */
/*
 * Operations that a worker has taken from its ring and may not issue yet, because another must
 * complete first or because their moment depends on a completion (pace think). One worker's own.
 *
 * Operations of one queue (a stream, a file; see order_queue) leave in the order in which they
 * came. With --order overlap alone each is a queue of its own.
 */
#ifndef REPLAY_PARK_H
#define REPLAY_PARK_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/order.h"
#include "replay/prepared.h"

struct park;

struct parked {
    struct prepared op;
    struct order_tag tag;
    uint64_t due_ns;   /* clock; fixed when it came, except for pace think */
    uint64_t ready_ns; /* clock: when what it waited for was seen to be done */
    uint32_t next;
    bool waited;       /* was not ready when it came */
};

/*
 * Room for `capacity` operations. start_ns: the clock's time of the run's time 0 (set by
 * park_start). think: due times follow completions. -ENOMEM.
 */
int park_new(struct park **ret_park, struct order *order, uint32_t capacity, bool think)
    TRACE_MUST_CHECK;
void park_free(struct park *park); /* NULL is fine */
void park_start(struct park *park, uint64_t start_ns);

bool park_full(const struct park *park);
uint32_t park_count(const struct park *park);
/* Takes the operation in; there is room. now_ns is the clock's. */
void park_add(struct park *park, const struct prepared *op, const struct order_tag *tag,
              uint64_t due_ns, uint64_t now_ns);
/*
 * The operation that is ready and due earliest, if it is due by now_ns; it stays parked until
 * park_drop. NULL when there is none. UINT64_MAX as now_ns: whatever is ready.
 */
struct parked *park_peek(struct park *park, uint64_t now_ns);
/* Removes what park_peek returned. */
void park_drop(struct park *park, uint64_t now_ns);
/* When the earliest ready operation is due; UINT64_MAX when none is ready. */
uint64_t park_next_due(struct park *park, uint64_t now_ns);

#endif
