/* SPDX-License-Identifier: MIT */
/*
 * The books of one issuing thread: what happened to each operation goes into its stats, its
 * result ring, and tells the order. One thread's own; nothing here allocates or locks.
 */
#ifndef REPLAY_ACCOUNT_H
#define REPLAY_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "engines/clock.h"
#include "replay/order.h"
#include "replay/prepared.h"
#include "replay/result.h"
#include "replay/stats.h"

struct worker_control;

/*
 * Why the thread could not issue earlier: moments on the clock at which each obstacle was last
 * seen to end. An operation that is late gets the first of them that lasted beyond its due time.
 */
struct account_obstacles {
    uint64_t starved_ns;     /* the decoder's ring was empty */
    uint64_t result_ns;      /* the result ring was full */
    uint64_t depth_ns;       /* a due operation met the depth cap */
    uint64_t wait_from_ns, wait_to_ns; /* the last sleep */
};

struct account {
    struct stats *stats;
    struct result_ring *results; /* NULL: no result tape */
    struct order *order;         /* NULL: not ordered */
    struct worker_control *control;
    const struct clock *clock;
    struct account_obstacles seen;
    bool paced;                  /* there are due times */
    uint64_t late_ns;
    uint8_t api;                 /* enum trace_api */
    uint64_t start_ns;
    uint64_t bucket_from_ns, bucket_to_ns; /* slice of the timeline that is current */
    struct stats_bucket *bucket;
};

/* One operation that was issued and has completed or failed. Times are the clock's. */
struct account_op {
    const struct prepared *p;
    const struct order_tag *tag; /* may be NULL when not ordered */
    int64_t result;
    uint64_t due_ns;             /* when paced */
    uint64_t issued_ns, completed_ns;
    uint64_t submit_ns;          /* inside the call; TRACE_UNKNOWN_U64 */
    uint64_t batch;              /* number of the call, TRACE_UNKNOWN_U64 = alone */
    uint8_t cause;               /* enum trace_cause, for when it was late */
};

void account_start(struct account *account, uint64_t start_ns);
/* Books a completion. May wait for room in the result ring. */
void account_done(struct account *account, const struct account_op *op);
/* Books an operation that is not issued; now_ns is the clock's. */
void account_skip(struct account *account, const struct prepared *p, const struct order_tag *tag,
                  uint64_t now_ns);
/* Why an operation due at due_ns, issued at now_ns, was not issued then. ready_ns: when what it
 * waited for was done, 0 when it waited for nothing. Also counts it as held by the depth cap. */
uint8_t account_cause(struct account *account, uint64_t due_ns, uint64_t now_ns,
                      uint64_t ready_ns);
/* `depth` operations were in flight from from_ns to to_ns. */
void account_depth(struct account *account, uint64_t from_ns, uint64_t to_ns, uint32_t depth);

#endif
