/* SPDX-License-Identifier: MIT */
/* Which operations a worker may issue now. */
#include <errno.h>
#include <sched.h>

#include "replay/worker_state.h"

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

/* False: every descriptor it may have is in use; some must come back first. */
static bool slot_stage(struct worker *w, const struct prepared *p, const struct order_tag *tag,
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
        if (err == -EMFILE && w->in_flight + w->staged > 0)
            return false;
        /* It fails here as it would have failed in the kernel: issued, and failed. */
        slot->op.result = err;
        slot->op.issued_ns = slot->op.completed_ns = clock_now_ns(w->conf->clock);
        issuer_complete(&w->issuer, slot, TRACE_UNKNOWN_U64);
        return true;
    }
    w->free_count--;
    w->batch[w->staged++] = &slot->op;
    return true;
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
    if (__builtin_expect(p->action == PREPARED_ENGINE, 1))
        return slot_stage(w, p, tag, due_ns, cause);
    issuer_core(&w->issuer, p, tag, due_ns, cause);
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

void worker_gather(struct worker *w, uint64_t now_ns)
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
