/* SPDX-License-Identifier: MIT */
/*
 * The loop of asynchronous engines: many operations in flight from one thread. worker_threads.c
 * has the other one.
 */
#include "replay/worker.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay/conf.h"
#include "replay/park.h"
#include "replay/worker_setup.h"
#include "replay/worker_threads.h"

#define LONGEST_WAIT_NS 50000000u /* a stop is noticed within this */
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
    uint64_t start_ns;
    bool paced, simulated, blocking, draining, starved;
    bool ring_empty;          /* as of the last look */
    uint64_t next_due_ns;     /* of the next operation, as of the last look; UINT64_MAX unknown */
};

/* ---- choosing --------------------------------------------------------------------------- */

/*
 * The next operation of the ring, or NULL. Notes whether the decoder is behind. Simulated time
 * stands still while the decoder works: what is issued must not depend on how quick it is.
 */
static struct prepared *ring_next(struct worker *w)
{
    while (ring_ready(w->ring, w->head, &w->tail) == 0) {
        if (!w->simulated || ring_finished(w->ring, w->head)) {
            w->ring_empty = true;
            return NULL;
        }
        ring_release(w->ring, w->head);
        sched_yield();
    }
    w->ring_empty = false;
    return &w->ring->ops[w->head & w->ring->mask];
}

static uint64_t due_of(const struct worker *w, const struct prepared *p)
{
    return w->paced ? w->start_ns + (uint64_t)p->due_ns : 0;
}

static void slot_stage(struct worker *w, const struct prepared *p, const struct order_tag *tag,
                       uint64_t due_ns, uint8_t cause)
{
    struct slot *slot = &w->issuer.slots[w->free_slots[w->free_count - 1]];
    int err;

    slot->p = *p;
    if (tag != NULL)
        slot->tag = *tag;
    slot->due_ns = due_ns;
    slot->cause = cause;
    slot->batch = TRACE_UNKNOWN_U64;
    err = issuer_stage(&w->issuer, slot);
    if (__builtin_expect(err != 0, 0)) {
        /* It fails here as it would have failed in the kernel: issued, and failed. */
        slot->op.result = err;
        slot->op.issued_ns = slot->op.completed_ns = clock_now_ns(w->conf->clock);
        issuer_complete(&w->issuer, slot, TRACE_UNKNOWN_U64);
        return;
    }
    w->free_count--;
    w->batch[w->staged++] = &slot->op;
}

/*
 * Takes one operation that is due and allowed. False: the batch must go first (a call of the
 * replayer's own would hold it up; the recorded batch ends here).
 */
static bool take(struct worker *w, const struct prepared *p, const struct order_tag *tag,
                 uint64_t due_ns, uint64_t now_ns, uint64_t ready_ns)
{
    uint8_t cause = TRACE_CAUSE_NONE;

    if (w->staged > 0 && (p->action == PREPARED_CORE ||
                          (w->conf->conf->recorded_batches && !(p->marks & PREPARED_SAME_BATCH))))
        return false;
    if (!w->paced)
        w->issuer.account.stats->held_by_order += ready_ns != 0;
    else if (now_ns > due_ns)
        cause = account_cause(&w->issuer.account, due_ns, now_ns, ready_ns);
    if (__builtin_expect(p->action != PREPARED_ENGINE, 0))
        issuer_core(&w->issuer, p, tag, due_ns, cause);
    else
        slot_stage(w, p, tag, due_ns, cause);
    return true;
}

/* Whether a recorded batch that begins at the ring's head finds room to go as a whole. */
static bool batch_fits(struct worker *w)
{
    bool ended = atomic_load_explicit(&w->ring->ended, memory_order_acquire);
    uint64_t ready = atomic_load_explicit(&w->ring->tail, memory_order_acquire) - w->head;
    uint32_t length = 1;

    while (length < w->issuer.batch && length < ready &&
           (w->ring->ops[(w->head + length) & w->ring->mask].marks & PREPARED_SAME_BATCH))
        length++;
    /* What the decoder has not shown yet may belong to it. */
    if (length == ready && length < w->issuer.batch && !ended)
        return false;
    return length <= w->free_count;
}

static void gather_plain(struct worker *w, uint64_t now_ns)
{
    uint64_t head = w->head;

    w->next_due_ns = UINT64_MAX;
    /* At a pace nothing waits for company: there what is due goes. */
    if (w->conf->conf->recorded_batches && !w->paced && w->in_flight > 0 && !batch_fits(w))
        return;
    while (w->staged < w->issuer.batch && w->free_count > 0) {
        const struct prepared *p = ring_next(w);
        uint64_t due_ns;

        if (p == NULL)
            break;
        due_ns = due_of(w, p);
        if (w->paced && due_ns > now_ns) {
            w->next_due_ns = due_ns;
            break;
        }
        if (!take(w, p, NULL, due_ns, now_ns, 0))
            break;
        w->head++;
    }
    if (w->head != head)
        ring_release(w->ring, w->head);
    if (w->paced && w->free_count == 0) {
        const struct prepared *p = ring_next(w);

        if (p != NULL && due_of(w, p) <= now_ns)
            w->issuer.account.seen.depth_ns = now_ns;
    }
}

/* Moves what has become due from the ring to the park; with pace think everything there is. */
static void park_fill(struct worker *w, uint64_t now_ns)
{
    bool wait_for_due = w->conf->conf->pace == PACE_RECORDED;
    uint64_t head = w->head;

    while (!park_full(w->park)) {
        const struct prepared *p = ring_next(w);

        if (p == NULL)
            break;
        if (wait_for_due && due_of(w, p) > now_ns) {
            w->next_due_ns = due_of(w, p);
            break;
        }
        park_add(w->park, p, &w->ring->tags[w->head & w->ring->mask], due_of(w, p), now_ns);
        w->head++;
    }
    if (w->head != head)
        ring_release(w->ring, w->head);
}

static void gather_ordered(struct worker *w, uint64_t now_ns)
{
    uint64_t until_ns = w->paced ? now_ns : UINT64_MAX;
    uint64_t due_ns;

    w->next_due_ns = UINT64_MAX;
    park_fill(w, now_ns);
    while (w->staged < w->issuer.batch && w->free_count > 0) {
        struct parked *parked = park_peek(w->park, until_ns);

        if (parked == NULL)
            break;
        if (!take(w, &parked->op, &parked->tag, parked->due_ns, now_ns,
                  parked->waited ? parked->ready_ns : 0))
            break;
        park_drop(w->park, now_ns);
    }
    due_ns = park_next_due(w->park, now_ns);
    if (due_ns < w->next_due_ns)
        w->next_due_ns = due_ns;
    if (w->paced && w->free_count == 0 && due_ns <= now_ns)
        w->issuer.account.seen.depth_ns = now_ns;
}

static void starved_note(struct worker *w, uint64_t now_ns)
{
    struct stats *stats = w->issuer.account.stats;

    if (w->simulated)
        return;
    /* An empty ring matters while the worker could have issued. */
    if (w->ring_empty && w->free_count > 0 && !ring_finished(w->ring, w->head)) {
        if (!w->starved)
            stats->starved++;
        w->starved = true;
        w->issuer.account.seen.starved_ns = now_ns;
    } else {
        w->starved = false;
    }
}

static void gather(struct worker *w, uint64_t now_ns)
{
    const struct conf *conf = w->conf->conf;

    if (w->draining && w->in_flight > conf->depth_low)
        return;
    w->draining = false;
    if (conf->batch_wait && w->in_flight > 0 && w->free_count < w->issuer.batch)
        return;
    if (w->park != NULL)
        gather_ordered(w, now_ns);
    else
        gather_plain(w, now_ns);
    if (__builtin_expect(w->ring_empty, 0))
        starved_note(w, now_ns);
}

/* ---- handing over and taking back -------------------------------------------------------- */

static void depth_to(struct worker *w, uint64_t now_ns)
{
    account_depth(&w->issuer.account, w->depth_since_ns, now_ns, w->in_flight);
    w->depth_since_ns = now_ns;
}

/* Books what a call took; what it did not take stays staged, in order. */
static int taken_book(struct worker *w, uint32_t offered, int taken, uint64_t issued_ns,
                      uint64_t returned_ns, bool timed)
{
    struct stats *stats = w->issuer.account.stats;

    stats->submit_calls++;
    stats_depth_sub(&w->conf->control->depth, offered - (taken > 0 ? (uint32_t)taken : 0));
    if (taken < 0) {
        stats->eagain++;
        return taken == -EAGAIN ? 0 : taken;
    }
    if (timed)
        stats->submit_ns += returned_ns - issued_ns;
    hist_add(&stats->batch, (uint64_t)taken);
    w->in_flight += (uint32_t)taken;
    if (w->in_flight > stats->depth_max)
        stats->depth_max = w->in_flight;
    w->staged -= (uint32_t)taken;
    if (w->staged > 0)
        memmove(w->batch, w->batch + taken, w->staged * sizeof *w->batch);
    w->calls++;
    return 0;
}

static void stamp(struct worker *w, uint32_t count, uint64_t issued_ns)
{
    /* In flight from here on: a call may work on them before it returns. */
    stats_depth_add(&w->conf->control->depth, count);
    for (uint32_t i = 0; i < count; i++) {
        struct slot *slot = w->batch[i]->core;

        slot->op.issued_ns = issued_ns;
        slot->op.returned_ns = 0;
        if (count > 1)
            slot->batch = w->calls * 1024 + w->conf->index;
    }
}

static void completed_book(struct worker *w, int count, uint64_t now_ns)
{
    bool stamps = (w->conf->conf->engine.engine->flags & ENGINE_STAMPS) != 0;

    if (count <= 0)
        return;
    depth_to(w, now_ns);
    w->in_flight -= (uint32_t)count;
    stats_depth_sub(&w->conf->control->depth, (uint32_t)count);
    for (int i = 0; i < count; i++) {
        struct slot *slot = w->done[i]->core;

        if (!stamps)
            slot->op.completed_ns = now_ns;
        issuer_complete(&w->issuer, slot,
                        slot->op.returned_ns > slot->op.issued_ns
                            ? slot->op.returned_ns - slot->op.issued_ns
                            : TRACE_UNKNOWN_U64);
        w->free_slots[w->free_count++] = slot->op.slot_index;
    }
    atomic_fetch_add_explicit(&w->conf->control->completed, (uint64_t)count,
                              memory_order_relaxed);
    if (w->paced) {
        struct slot *last = w->done[count - 1]->core;

        atomic_store_explicit(&w->conf->control->lag_ns,
                              last->op.issued_ns > last->due_ns
                                  ? last->op.issued_ns - last->due_ns : 0,
                              memory_order_relaxed);
    }
    if (w->in_flight == w->issuer.depth && w->conf->conf->depth_low > 0)
        w->draining = true;
}

/* One call that submits what is staged. Returns 0, or -errno: the engine is broken. */
static int submit(struct worker *w)
{
    uint32_t count = w->blocking ? 1 : w->staged;
    uint64_t issued_ns = clock_now_ns(w->conf->clock);
    uint64_t returned_ns;
    int taken;

    depth_to(w, issued_ns);
    stamp(w, count, issued_ns);
    taken = engine_submit(w->issuer.engine, w->batch, count);
    returned_ns = clock_now_ns(w->conf->clock);
    for (int i = 0; i < taken; i++)
        w->batch[i]->returned_ns = returned_ns;
    return taken_book(w, count, taken, issued_ns, returned_ns, true);
}

static int reap(struct worker *w, uint32_t min, uint64_t timeout_ns)
{
    int count = engine_reap(w->issuer.engine, w->done, min, w->complete_max, timeout_ns);

    if (count > 0)
        completed_book(w, count, clock_now_ns(w->conf->clock));
    return count < 0 ? count : 0;
}

/* Submits and takes back in one call: one entry into the kernel where the engine can. */
static int submit_reap(struct worker *w, uint32_t min, uint64_t timeout_ns)
{
    uint32_t count = w->staged;
    uint64_t issued_ns = clock_now_ns(w->conf->clock);
    uint64_t now_ns;
    int taken = 0, reaped, err;

    depth_to(w, issued_ns);
    stamp(w, count, issued_ns);
    reaped = engine_submit_reap(w->issuer.engine, w->batch, count, &taken, w->done, min,
                                w->complete_max, timeout_ns);
    now_ns = clock_now_ns(w->conf->clock);
    if (taken > 0 && reaped >= 0)
        depth_to(w, issued_ns);
    err = taken_book(w, count, taken, issued_ns, now_ns, false);
    if (err == 0 && reaped < 0)
        err = reaped;
    completed_book(w, reaped, now_ns);
    return err;
}

/* ---- waiting ----------------------------------------------------------------------------- */

static void pause_real(uint64_t ns)
{
    const struct timespec pause = {.tv_nsec = (long)ns};

    nanosleep(&pause, NULL);
}

/* Nothing is in flight and nothing can be issued now. */
static void idle(struct worker *w, uint64_t now_ns)
{
    struct account_obstacles *seen = &w->issuer.account.seen;
    uint64_t until_ns = w->next_due_ns;

    if (until_ns == UINT64_MAX || (until_ns <= now_ns && w->paced)) {
        /* The decoder, or an operation of another worker, is waited for. */
        if (w->simulated || w->park == NULL)
            sched_yield();
        else
            pause_real(SHORT_WAIT_NS / 4);
        return;
    }
    /* Another worker's completion may make an earlier one ready. */
    if (w->park != NULL && park_count(w->park) > 0 && !w->simulated &&
        until_ns > now_ns + SHORT_WAIT_NS)
        until_ns = now_ns + SHORT_WAIT_NS;
    if (until_ns > w->conf->control->deadline_ns)
        until_ns = w->conf->control->deadline_ns;
    seen->wait_from_ns = now_ns;
    seen->wait_to_ns = waiter_until(&w->issuer.waiter, now_ns, until_ns);
}

/* Operations are in flight at recorded or think pace: wait for them, not beyond the next due. */
static int reap_paced(struct worker *w, uint64_t now_ns, bool stopping)
{
    struct account_obstacles *seen = &w->issuer.account.seen;
    uint64_t due_ns = stopping || w->free_count == 0 ? UINT64_MAX : w->next_due_ns;
    uint64_t budget_ns, before_flight = w->in_flight;
    int err;

    if (due_ns > w->conf->control->deadline_ns && !stopping)
        due_ns = w->conf->control->deadline_ns;
    if (due_ns <= now_ns)
        return reap(w, 0, 0);
    budget_ns = w->simulated ? due_ns - now_ns : waiter_budget(&w->issuer.waiter, now_ns, due_ns);
    if (!stopping && !w->simulated && budget_ns > SHORT_WAIT_NS &&
        ((w->ring_empty && !ring_finished(w->ring, w->head)) ||
         (w->park != NULL && park_count(w->park) > 0)))
        budget_ns = SHORT_WAIT_NS;
    if (budget_ns == 0)
        return reap(w, 0, 0);
    err = reap(w, 1, budget_ns);
    seen->wait_from_ns = now_ns;
    seen->wait_to_ns = clock_now_ns(w->conf->clock);
    if (!w->simulated && w->in_flight == before_flight && budget_ns > SHORT_WAIT_NS &&
        seen->wait_to_ns >= now_ns + budget_ns)
        waiter_learn(&w->issuer.waiter, now_ns + budget_ns, seen->wait_to_ns);
    return err;
}

static int reap_asap(struct worker *w, bool stopping)
{
    bool starving = !stopping && w->free_count > 0 && !ring_finished(w->ring, w->head) &&
                    w->ring_empty;
    bool parked = w->park != NULL && park_count(w->park) > 0;
    uint32_t min = w->complete_min < w->in_flight ? w->complete_min : w->in_flight;

    return reap(w, min, starving || parked ? SHORT_WAIT_NS : LONGEST_WAIT_NS);
}

/* ---- the loop ------------------------------------------------------------------------------ */

static bool finished(struct worker *w)
{
    return (w->park == NULL || park_count(w->park) == 0) && ring_finished(w->ring, w->head);
}

/* One turn at pace asap: refill, submit, wait. */
static int turn_asap(struct worker *w, bool stopping)
{
    uint64_t now_ns = w->park != NULL ? clock_now_ns(w->conf->clock) : 0;
    bool full;

    if (!stopping)
        gather(w, now_ns);
    if (w->staged == 0 && w->in_flight == 0) {
        if (!stopping && !finished(w))
            idle(w, now_ns);
        return 0;
    }
    if (w->staged == 0)
        return reap_asap(w, stopping);
    /* Wait in the same call when there is nothing else to hand over. */
    full = w->free_count == 0 || w->draining || w->ring_empty;
    if (w->blocking) {
        int err = submit(w);

        return err != 0 ? err : reap(w, 0, 0);
    }
    return submit_reap(w, full ? w->complete_min : 0,
                       w->ring_empty || w->park != NULL ? SHORT_WAIT_NS : LONGEST_WAIT_NS);
}

static int turn_paced(struct worker *w, bool stopping)
{
    uint64_t now_ns = clock_now_ns(w->conf->clock);
    int err = 0;

    if (!stopping)
        gather(w, now_ns);
    if (w->staged > 0) {
        err = submit(w);
        if (err == 0 && w->in_flight > 0)
            err = reap(w, 0, 0);
        /* A refused batch is offered again when something has come back. */
        if (err == 0 && w->staged > 0 && w->in_flight > 0)
            err = reap(w, 1, SHORT_WAIT_NS);
        return err;
    }
    if (w->in_flight > 0)
        return reap_paced(w, now_ns, stopping);
    if (!stopping && !finished(w))
        idle(w, now_ns);
    return 0;
}

static int loop(struct worker *w)
{
    struct worker_control *control = w->conf->control;
    uint64_t turns = 0;
    int err = 0;

    while (err == 0) {
        bool stopping = atomic_load_explicit(&control->stop, memory_order_relaxed) != 0;

        /* The clock is read anyway at a pace; at asap now and then is enough. */
        if (!stopping && control->deadline_ns != UINT64_MAX && (w->paced || turns++ % 16 == 0) &&
            clock_now_ns(w->conf->clock) >= control->deadline_ns)
            stopping = true;
        if (stopping && w->staged > 0 && w->in_flight == 0 && w->issuer.account.stats->eagain)
            break; /* never issued: not reached */
        if (w->staged == 0 && w->in_flight == 0 && (stopping || finished(w)))
            break;
        err = w->paced ? turn_paced(w, stopping) : turn_asap(w, stopping);
    }
    return err;
}

/* The engine is broken: what it still holds has failed. */
static void abandon(struct worker *w)
{
    uint64_t now_ns;

    engine_close(w->issuer.engine);
    w->issuer.engine = NULL;
    now_ns = clock_now_ns(w->conf->clock);
    for (uint32_t i = 0; i < w->issuer.depth && w->in_flight > 0; i++) {
        struct slot *slot = &w->issuer.slots[i];

        if (slot->op.state != ENGINE_OP_INFLIGHT)
            continue;
        slot->op.result = -ECANCELED;
        slot->op.completed_ns = now_ns;
        issuer_complete(&w->issuer, slot, TRACE_UNKNOWN_U64);
        w->in_flight--;
    }
}

static int worker_setup(struct worker *w, const struct worker_conf *conf)
{
    const struct conf *options = conf->conf;
    uint32_t depth = conf->depth;
    int err = issuer_setup(&w->issuer, conf, 0, depth, conf->fd_capacity);

    if (err != 0)
        return err;
    w->conf = conf;
    w->ring = conf->ring;
    w->paced = options->pace != PACE_ASAP;
    w->simulated = conf->clock->simulated;
    w->blocking = (options->engine.engine->flags & ENGINE_BLOCKING) != 0;
    w->complete_min = options->complete_min < depth ? (uint32_t)options->complete_min : depth;
    w->complete_max = options->complete_max ? (uint32_t)options->complete_max : depth;
    w->free_slots = calloc(depth, sizeof *w->free_slots);
    w->batch = calloc(depth, sizeof *w->batch);
    w->done = calloc(w->complete_max, sizeof(struct engine_op *));
    if (w->free_slots == NULL || w->batch == NULL || w->done == NULL)
        return diag_errno(&w->issuer.diag, -ENOMEM, "depth %u", depth);
    for (uint32_t i = 0; i < depth; i++)
        w->free_slots[w->free_count++] = depth - 1 - i;
    if (conf->order != NULL) {
        err = park_new(&w->park, conf->order, conf->park_capacity, options->pace == PACE_THINK);
        if (err != 0)
            return diag_errno(&w->issuer.diag, err, "--order");
    }
    return 0;
}

static int run_async(const struct worker_conf *conf)
{
    struct worker w = {0};
    int err = worker_setup(&w, conf);

    if (err != 0)
        issuer_fail(&w.issuer, err);
    else if (issuer_wait_go(&w.issuer)) {
        w.start_ns = conf->control->start_ns;
        w.depth_since_ns = clock_now_ns(conf->clock);
        if (w.park != NULL)
            park_start(w.park, w.start_ns);
        err = loop(&w);
        if (err != 0) {
            issuer_fail(&w.issuer, err);
            abandon(&w);
        }
        issuer_finish(&w.issuer);
        memcpy(conf->report->granted, w.issuer.granted, sizeof conf->report->granted);
        memcpy(conf->report->notes, w.issuer.notes, sizeof conf->report->notes);
        conf->report->downgraded = w.issuer.downgraded;
    }
    park_free(w.park);
    free(w.free_slots);
    free(w.batch);
    free(w.done);
    issuer_release(&w.issuer);
    atomic_fetch_sub(&conf->control->running, 1);
    return err;
}

uint32_t worker_threads(const struct conf *conf, uint32_t depth)
{
    return conf->engine.engine->flags & ENGINE_CORE_THREADS ? depth : 1;
}

int worker_run(const struct worker_conf *conf)
{
    if (conf->conf->engine.engine->flags & ENGINE_CORE_THREADS)
        return run_threads(conf);
    return run_async(conf);
}
