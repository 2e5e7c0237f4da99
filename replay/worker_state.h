/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the asynchronous loop share of a worker: worker.c turns, worker_choose.c picks
 * what may be issued, worker_flight.c hands it over and takes it back. Not for others.
 */
#ifndef REPLAY_WORKER_STATE_H
#define REPLAY_WORKER_STATE_H

#include "replay/conf.h"
#include "replay/park.h"
#include "replay/worker_setup.h"

#define LONGEST_WAIT_NS 50000000u /* a stop is noticed within this */
#define IDLE_YIELDS     100u
#define REFUSALS_MAX    20000u    /* in a row: some seconds */
#define SHORT_WAIT_NS   100000u   /* where something that makes no event is waited for */

struct worker {
    struct issuer issuer;
    const struct worker_conf *conf;
    struct feed_ring *ring;
    struct park *park; /* NULL when not ordered */
    uint64_t head, tail;
    uint32_t *free_slots;
    uint32_t free_count;
    struct engine_op **batch; /* staged, not yet handed over */
    uint32_t staged;
    uint32_t staged_same;     /* recorded batches: more of it may follow */
    struct engine_op **done;
    uint32_t complete_min, complete_max;
    uint32_t in_flight;
    uint64_t depth_since_ns;
    uint64_t calls;
    uint32_t refusals;
    uint32_t idle_turns;      /* with nothing to do, in a row */
    uint64_t start_ns;
    bool paced, simulated, blocking, draining, starved;
    bool ring_empty;          /* as of the last look */
    uint64_t next_due_ns;     /* of the next operation, as of the last look; UINT64_MAX unknown */
};

/* ---- worker_choose.c: at now_ns, moves what is due and allowed into the batch ---- */

void worker_gather(struct worker *w, uint64_t now_ns);

/* ---- worker_flight.c: 0, or -errno when the engine is broken ---- */

/* One call that submits what is staged; what it does not take stays staged. */
int worker_submit(struct worker *w);
/* Takes back at least min, within timeout_ns. */
int worker_reap(struct worker *w, uint32_t min, uint64_t timeout_ns);
/* Both in one call: one entry into the kernel where the engine can. */
int worker_submit_reap(struct worker *w, uint32_t min, uint64_t timeout_ns);
/* Nothing is in flight and nothing can be issued at now_ns: waits for what is next. */
void worker_idle(struct worker *w, uint64_t now_ns);
/* Operations are in flight and nothing can be issued: waits for them, not beyond the next due. */
int worker_reap_paced(struct worker *w, uint64_t now_ns, bool stopping);
int worker_reap_asap(struct worker *w, bool stopping);

#endif
