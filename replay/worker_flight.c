/* SPDX-License-Identifier: MIT */
/* Handing operations to the engine and taking them back. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "replay/worker_state.h"

static void depth_to(struct worker *w, uint64_t now_ns)
{
    account_depth(&w->issuer.account, w->depth_since_ns, now_ns, w->in_flight);
    w->depth_since_ns = now_ns;
}

static void pause_real(uint64_t ns)
{
    const struct timespec pause = {.tv_nsec = (long)ns};

    nanosleep(&pause, NULL);
}

/* An engine that holds nothing and still takes nothing may be short of something for a moment,
 * not for ever. */
static int refused(struct worker *w)
{
    if (w->in_flight > 0)
        return 0;
    if (++w->refusals > REFUSALS_MAX)
        return diag_set(&w->issuer.diag, -EBUSY, "engine %s takes no operation (EAGAIN) with none "
                                                 "in flight", w->conf->conf->engine.engine->name);
    pause_real(SHORT_WAIT_NS);
    return 0;
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
        return taken == -EAGAIN ? refused(w) : taken;
    }
    w->refusals = 0;
    w->idle_turns = 0;
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
int worker_submit(struct worker *w)
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

int worker_reap(struct worker *w, uint32_t min, uint64_t timeout_ns)
{
    int count = engine_reap(w->issuer.engine, w->done, min, w->complete_max, timeout_ns);

    if (count > 0)
        completed_book(w, count, clock_now_ns(w->conf->clock));
    return count < 0 ? count : 0;
}

/* Submits and takes back in one call: one entry into the kernel where the engine can. */
int worker_submit_reap(struct worker *w, uint32_t min, uint64_t timeout_ns)
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

/* Nothing is in flight and nothing can be issued now. */
void worker_idle(struct worker *w, uint64_t now_ns)
{
    struct account_obstacles *seen = &w->issuer.account.seen;
    uint64_t until_ns = w->next_due_ns;

    if (until_ns == UINT64_MAX || (until_ns <= now_ns && w->paced)) {
        /* The decoder, or an operation of another worker, is waited for: not for long, and then
         * asleep, so that it gets the CPU. */
        if (w->simulated || (w->park == NULL && w->idle_turns++ < IDLE_YIELDS))
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
int worker_reap_paced(struct worker *w, uint64_t now_ns, bool stopping)
{
    struct account_obstacles *seen = &w->issuer.account.seen;
    uint64_t due_ns = stopping || w->free_count == 0 ? UINT64_MAX : w->next_due_ns;
    uint64_t budget_ns, before_flight = w->in_flight;
    int err;

    if (due_ns > w->conf->control->deadline_ns && !stopping)
        due_ns = w->conf->control->deadline_ns;
    if (due_ns <= now_ns)
        return worker_reap(w, 0, 0);
    budget_ns = w->simulated ? due_ns - now_ns : waiter_budget(&w->issuer.waiter, now_ns, due_ns);
    if (!stopping && !w->simulated && budget_ns > SHORT_WAIT_NS &&
        ((w->ring_empty && !ring_finished(w->ring, w->head)) ||
         (w->park != NULL && park_count(w->park) > 0)))
        budget_ns = SHORT_WAIT_NS;
    if (budget_ns == 0)
        return worker_reap(w, 0, 0);
    err = worker_reap(w, 1, budget_ns);
    seen->wait_from_ns = now_ns;
    seen->wait_to_ns = clock_now_ns(w->conf->clock);
    if (!w->simulated && w->in_flight == before_flight && budget_ns > SHORT_WAIT_NS &&
        seen->wait_to_ns >= now_ns + budget_ns)
        waiter_learn(&w->issuer.waiter, now_ns + budget_ns, seen->wait_to_ns);
    return err;
}

int worker_reap_asap(struct worker *w, bool stopping)
{
    bool starving = !stopping && w->free_count > 0 && !ring_finished(w->ring, w->head) &&
                    w->ring_empty;
    bool parked = w->park != NULL && park_count(w->park) > 0;
    uint32_t min = w->complete_min < w->in_flight ? w->complete_min : w->in_flight;

    return worker_reap(w, min, starving || parked ? SHORT_WAIT_NS : LONGEST_WAIT_NS);
}
