/* SPDX-License-Identifier: MIT */
/*
 * The loop of asynchronous engines: many operations in flight from one thread. worker_threads.c
 * has the other one.
 */
#include "replay/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/worker_state.h"
#include "replay/worker_threads.h"

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
        worker_gather(w, now_ns);
    if (w->staged == 0 && w->in_flight == 0) {
        if (!stopping && !finished(w))
            worker_idle(w, now_ns);
        return 0;
    }
    if (w->staged == 0)
        return worker_reap_asap(w, stopping);
    /* Wait in the same call when there is nothing else to hand over. */
    full = w->free_count == 0 || w->draining || w->ring_empty;
    if (w->blocking) {
        int err = worker_submit(w);

        return err != 0 ? err : worker_reap(w, 0, 0);
    }
    return worker_submit_reap(w, full ? w->complete_min : 0,
                       w->ring_empty || w->park != NULL ? SHORT_WAIT_NS : LONGEST_WAIT_NS);
}

static int turn_paced(struct worker *w, bool stopping)
{
    uint64_t now_ns = clock_now_ns(w->conf->clock);
    int err = 0;

    if (!stopping)
        worker_gather(w, now_ns);
    if (w->staged > 0) {
        err = worker_submit(w);
        if (err == 0 && w->in_flight > 0)
            err = worker_reap(w, 0, 0);
        /* A refused batch is offered again when something has come back. */
        if (err == 0 && w->staged > 0 && w->in_flight > 0)
            err = worker_reap(w, 1, SHORT_WAIT_NS);
        return err;
    }
    if (w->in_flight > 0)
        return worker_reap_paced(w, now_ns, stopping);
    if (!stopping && !finished(w))
        worker_idle(w, now_ns);
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
