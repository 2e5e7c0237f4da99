/* SPDX-License-Identifier: MIT */
#include "replay/worker_threads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "replay/conf.h"
#include "replay/worker_setup.h"

#define STACK_BYTES     (256u * 1024)
#define CURIOUS_THREADS 32u         /* of a worker: so few may yield a while before they sleep */
#define STOP_UNSEEN_NS  1000000000u /* a stop that nobody woke for is seen after this */

struct crew {
    const struct worker_conf *conf;
    uint32_t threads;
    _Atomic uint32_t spinners; /* threads that spin for their due time now */
    uint32_t spinners_max;     /* CPUs to spare for that */
};

struct member {
    struct crew *crew;
    pthread_t thread;
    uint32_t index;
    struct issuer issuer;
    struct prepared p;
    struct order_tag tag;
    uint64_t ready_ns; /* when what it waited for was done; 0 = it did not wait */
};

/* How long an empty ring may be slept on: who stops the run wakes, the runtime does not. */
static uint64_t until_deadline_ns(const struct member *m)
{
    uint64_t deadline_ns = m->crew->conf->control->deadline_ns;
    uint64_t now_ns = clock_now_ns(m->crew->conf->clock);

    if (deadline_ns == UINT64_MAX)
        return STOP_UNSEEN_NS;
    return deadline_ns > now_ns + STOP_UNSEEN_NS ? STOP_UNSEEN_NS
           : deadline_ns > now_ns                ? deadline_ns - now_ns
                                                 : 0;
}

/* Takes the next operation of the ring. False: there will be none, or the run stops. */
static bool next(struct member *m)
{
    struct worker_control *control = m->crew->conf->control;
    struct stats *stats = m->issuer.account.stats;
    struct feed_ring *ring = m->crew->conf->ring;
    uint64_t turns = 0;

    for (;;) {
        if (atomic_load_explicit(&control->stop, memory_order_relaxed))
            return false;
        if (control->deadline_ns != UINT64_MAX &&
            clock_now_ns(m->crew->conf->clock) >= control->deadline_ns)
            return false;
        if (ring_claim(ring, &m->p, &m->tag))
            break;
        if (ring_finished(ring, atomic_load_explicit(&ring->head, memory_order_acquire)))
            return false;
        if (turns++ == 0)
            stats->starved++;
        m->issuer.account.seen.starved_ns = clock_now_ns(m->crew->conf->clock);
        /* Thousands that looked again and again would leave the decoder no CPU. */
        if (turns > 100 || m->crew->threads > CURIOUS_THREADS)
            ring_sleep(ring, until_deadline_ns(m));
        else
            sched_yield();
    }
    return true;
}

/* Until what the operation waits for is done. False: the run stops. */
static bool wait_allowed(struct member *m, uint64_t *ret_from_ns)
{
    struct worker_control *control = m->crew->conf->control;
    struct order *order = m->crew->conf->order;

    m->ready_ns = 0;
    *ret_from_ns = 0;
    if (order == NULL || order_ready(order, &m->p, &m->tag, ret_from_ns))
        return true;
    /* Looking again and again, at this priority, would take the CPU from what is waited for. */
    while (!order_wait(order, &m->p, &m->tag, STOP_UNSEEN_NS / 4, ret_from_ns))
        if (atomic_load_explicit(&control->stop, memory_order_relaxed))
            return false;
    m->ready_ns = clock_now_ns(m->crew->conf->clock);
    return true;
}

static bool wait_due(struct member *m, uint64_t due_ns)
{
    const struct worker_conf *conf = m->crew->conf;
    struct account_obstacles *seen = &m->issuer.account.seen;
    uint64_t deadline_ns = conf->control->deadline_ns;
    uint64_t now_ns = clock_now_ns(conf->clock);
    uint64_t until_ns = due_ns < deadline_ns ? due_ns : deadline_ns;

    if (now_ns < until_ns) {
        seen->wait_from_ns = now_ns;
        now_ns = waiter_until(&m->issuer.waiter, now_ns, until_ns);
        seen->wait_to_ns = now_ns;
    }
    return now_ns >= until_ns && due_ns < deadline_ns;
}

static int issue(struct member *m, uint64_t due_ns, uint8_t cause)
{
    struct worker_control *control = m->crew->conf->control;
    struct slot *slot = &m->issuer.slots[0];
    struct engine_op *op = &slot->op;
    struct engine_op *done;
    const struct clock *clock = m->crew->conf->clock;
    int err;

    slot->p = m->p;
    slot->tag = m->tag;
    slot->due_ns = due_ns;
    slot->cause = cause;
    slot->batch = TRACE_UNKNOWN_U64;
    err = issuer_stage(&m->issuer, slot);
    op->issued_ns = clock_now_ns(clock);
    if (err != 0) {
        op->result = err;
        op->completed_ns = op->issued_ns;
        issuer_complete(&m->issuer, slot, TRACE_UNKNOWN_U64);
        return 0;
    }
    stats_depth_add(&control->depth, 1);
    while ((err = engine_submit(m->issuer.engine, &op, 1)) == 0 || err == -EAGAIN)
        m->issuer.account.stats->eagain++;
    if (err == 1)
        do
            err = engine_reap(m->issuer.engine, &done, 1, 1, UINT64_MAX);
        while (err == 0);
    op->completed_ns = clock_now_ns(clock);
    stats_depth_sub(&control->depth, 1);
    if (err < 0)
        op->result = -ECANCELED;
    account_depth(&m->issuer.account, op->issued_ns, op->completed_ns, 1);
    m->issuer.account.stats->submit_calls++;
    hist_add(&m->issuer.account.stats->batch, 1);
    issuer_complete(&m->issuer, slot, op->completed_ns - op->issued_ns);
    atomic_fetch_add_explicit(&control->completed, 1, memory_order_relaxed);
    return err < 0 ? err : 0;
}

static int work(struct member *m)
{
    const struct worker_conf *conf = m->crew->conf;
    bool paced = conf->conf->pace != PACE_ASAP;
    bool think = conf->conf->pace == PACE_THINK;

    while (next(m)) {
        uint64_t due_ns = paced ? conf->control->start_ns + (uint64_t)m->p.due_ns : 0;
        uint8_t cause = TRACE_CAUSE_NONE;
        uint64_t from_ns;
        int err;

        /* A due time that hangs on completions is known when they are. */
        if (paced && !think && !wait_due(m, due_ns))
            return 0;
        if (!wait_allowed(m, &from_ns))
            return 0;
        if (think) {
            due_ns = from_ns ? from_ns + m->tag.think_ns : due_ns;
            if (!wait_due(m, due_ns))
                return 0;
        }
        if (!paced)
            m->issuer.account.stats->held_by_order += m->ready_ns != 0;
        else
            cause = account_cause(&m->issuer.account, due_ns, clock_now_ns(conf->clock),
                                  m->ready_ns);
        if (m->p.action != PREPARED_ENGINE) {
            issuer_core(&m->issuer, &m->p, &m->tag, due_ns, cause);
            continue;
        }
        err = issue(m, due_ns, cause);
        if (err != 0)
            return err;
    }
    return 0;
}

static void *member_main(void *arg)
{
    struct member *m = arg;
    struct crew *crew = m->crew;
    uint32_t fds = crew->conf->fd_capacity / crew->threads;
    int err = issuer_setup(&m->issuer, crew->conf, m->index, 1, fds ? fds : 1);

    if (err != 0) {
        issuer_fail(&m->issuer, err);
    } else if (issuer_wait_go(&m->issuer)) {
        m->issuer.waiter.spinners = &crew->spinners;
        m->issuer.waiter.spinners_max = crew->spinners_max;
        err = work(m);
        if (err != 0)
            issuer_fail(&m->issuer, err);
        issuer_finish(&m->issuer);
    }
    issuer_release(&m->issuer);
    return NULL;
}

int run_threads(const struct worker_conf *conf)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    struct crew crew = {.conf = conf,
                        .threads = conf->depth,
                        .spinners_max = cpus > 2 ? (uint32_t)cpus - 1 : 1};
    struct member *members = calloc(crew.threads, sizeof *members);
    pthread_attr_t attr;
    uint32_t started = 0;
    int err = members ? 0 : -ENOMEM;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    for (; err == 0 && started < crew.threads; started++) {
        members[started].crew = &crew;
        members[started].index = started;
        err = -pthread_create(&members[started].thread, &attr, member_main, &members[started]);
        if (err != 0)
            break;
    }
    pthread_attr_destroy(&attr);
    if (err != 0) {
        struct issuer issuer = {.conf = conf};

        diag_errno(&issuer.diag, err, "a thread for each of depth %u: only %u started",
                   crew.threads, started);
        issuer_fail(&issuer, err);
    }
    for (uint32_t i = 0; i < started; i++)
        pthread_join(members[i].thread, NULL);
    if (started > 0)
        memcpy(conf->report->notes, members[0].issuer.notes, sizeof conf->report->notes);
    free(members);
    atomic_fetch_sub(&conf->control->running, 1);
    return conf->report->error;
}
