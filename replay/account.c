/* SPDX-License-Identifier: MIT */
#include "replay/account.h"

#include <time.h>

#include "replay/worker.h"

void account_start(struct account *account, uint64_t start_ns)
{
    account->start_ns = start_ns;
    account->bucket = NULL;
    account->bucket_from_ns = account->bucket_to_ns = 0;
}

/* The slice of the timeline that holds at_ns; mostly the one of the last call. */
static inline struct stats_bucket *slice(struct account *account, uint64_t at_ns)
{
    if (at_ns >= account->bucket_to_ns || at_ns < account->bucket_from_ns) {
        uint64_t since_ns = at_ns > account->start_ns ? at_ns - account->start_ns : 0;
        uint64_t width_ns;

        account->bucket = stats_bucket(&account->stats->timeline, since_ns);
        width_ns = account->stats->timeline.width_ns;
        account->bucket_from_ns = account->start_ns + since_ns / width_ns * width_ns;
        account->bucket_to_ns = account->bucket_from_ns + width_ns;
    }
    return account->bucket;
}

void account_depth(struct account *account, uint64_t from_ns, uint64_t to_ns, uint32_t depth)
{
    if (depth == 0 || to_ns <= from_ns)
        return;
    if (from_ns >= account->bucket_from_ns && to_ns < account->bucket_to_ns) {
        account->stats->depth_ns += depth * (to_ns - from_ns);
        account->bucket->depth_ns += depth * (to_ns - from_ns);
        return;
    }
    stats_depth(account->stats, account->start_ns, from_ns, to_ns, depth);
    account->bucket_to_ns = 0; /* the slices may have been joined */
}

static void wait_for_room(struct account *account)
{
    const struct timespec pause = {.tv_nsec = 200000};
    struct result_ring *ring = account->results;
    uint64_t from_ns = clock_now_ns(&clock_real);

    /* Once asleep, until a quarter is free: the writer takes out thousands at a time. */
    do {
        nanosleep(&pause, NULL);
        ring->cached_head = atomic_load_explicit(&ring->head, memory_order_acquire);
    } while (atomic_load_explicit(&ring->tail, memory_order_relaxed) - ring->cached_head >
                 ring->mask - ring->mask / 4 &&
             !atomic_load_explicit(&account->control->results_broken, memory_order_relaxed));
    account->stats->result_full++;
    account->stats->result_full_ns += clock_now_ns(&clock_real) - from_ns;
    account->seen.result_ns = clock_now_ns(account->clock);
}

static void write_result(struct account *account, const struct account_op *op, bool late)
{
    const struct prepared *p = op->p;
    bool two_files = !trace_op_is_io(p->kind) &&
                     (p->kind == TRACE_RENAME || p->kind == TRACE_LINK);
    struct trace_op *out;

    if (__builtin_expect(!result_room(account->results), 0)) {
        wait_for_room(account);
        if (!result_room(account->results))
            return;
    }
    out = result_slot(account->results);
    out->issue_ns = (int64_t)(op->issued_ns - account->start_ns);
    out->latency_ns = op->completed_ns - op->issued_ns;
    out->offset = two_files ? TRACE_UNKNOWN_U64 : p->offset;
    out->length = p->length;
    out->result = op->result;
    out->due_ns = account->paced ? (int64_t)(op->due_ns - account->start_ns) : TRACE_UNKNOWN_I64;
    out->submit_ns = op->submit_ns;
    out->ref = p->ref;
    out->batch = op->batch;
    out->file = p->file;
    out->file2 = two_files ? (uint32_t)(p->offset >> 32) : TRACE_NONE_U32;
    out->stream = p->stream;
    out->flags = p->flags;
    out->arg = p->arg;
    out->kind = p->kind;
    out->api = account->api;
    out->completion = TRACE_COMPLETION_EXACT;
    out->cause = late ? op->cause : TRACE_CAUSE_NONE;
    result_push(account->results);
}

/* A name-space call gives descriptors and such: there success is what is compared. */
static bool unexpected(const struct prepared *p, int64_t result)
{
    if (!(p->marks & PREPARED_EXPECTED) || p->expected == result)
        return false;
    if (trace_op_is_io(p->kind) && (p->kind == TRACE_READ || p->kind == TRACE_WRITE))
        return true;
    return p->expected < 0 || result < 0;
}

static inline bool book_time(struct account *account, const struct account_op *op)
{
    struct stats *stats = account->stats;
    struct stats_bucket *bucket = slice(account, op->completed_ns);
    uint64_t service_ns = op->completed_ns - op->issued_ns;
    uint64_t lag_ns;

    hist_add(&stats->service[stats_class(op->p->kind)], service_ns);
    bucket->completed++;
    bucket->service_ns += service_ns;
    if (op->result > 0)
        bucket->bytes += (uint64_t)op->result;
    if (stats->first_issue_ns == 0 || op->issued_ns < stats->first_issue_ns)
        stats->first_issue_ns = op->issued_ns;
    if (op->completed_ns > stats->last_completion_ns)
        stats->last_completion_ns = op->completed_ns;
    if (!account->paced)
        return false;
    lag_ns = op->issued_ns > op->due_ns ? op->issued_ns - op->due_ns : 0;
    hist_add(&stats->lag, lag_ns);
    hist_add(&stats->response, service_ns + lag_ns);
    bucket->lag_ns += lag_ns;
    if (lag_ns > bucket->lag_max_ns)
        bucket->lag_max_ns = lag_ns;
    if (lag_ns <= account->late_ns)
        return false;
    stats->late++;
    stats->late_by[op->cause]++;
    return true;
}

void account_done(struct account *account, const struct account_op *op)
{
    struct stats *stats = account->stats;
    const struct prepared *p = op->p;
    bool late = book_time(account, op);

    stats->issued++;
    stats->kind_ops[p->kind]++;
    if (__builtin_expect(op->result < 0, 0)) {
        stats_count_error(stats, p->kind, op->result);
    } else {
        stats->completed++;
        if (p->kind == TRACE_READ || p->kind == TRACE_WRITE) {
            stats->kind_bytes[p->kind] += (uint64_t)op->result;
            if (__builtin_expect((uint64_t)op->result < p->length, 0))
                stats->short_transfers++;
        } else if (trace_op_has_range(p->kind)) {
            stats->kind_bytes[p->kind] += p->length;
        }
    }
    if (__builtin_expect(unexpected(p, op->result), 0))
        stats->unexpected++;
    if (account->results != NULL)
        write_result(account, op, late);
    if (account->order != NULL)
        order_done(account->order, p, op->tag, op->completed_ns);
}

void account_skip(struct account *account, const struct prepared *p, const struct order_tag *tag,
                  uint64_t now_ns)
{
    account->stats->skipped[p->skip]++;
    if (account->order != NULL)
        order_done(account->order, p, tag, now_ns);
}

uint8_t account_cause(struct account *account, uint64_t due_ns, uint64_t now_ns,
                      uint64_t ready_ns)
{
    const struct account_obstacles *seen = &account->seen;

    if (now_ns <= due_ns)
        return TRACE_CAUSE_NONE;
    if (ready_ns > due_ns) {
        account->stats->held_by_order++;
        return TRACE_CAUSE_ORDER;
    }
    if (seen->depth_ns >= due_ns)
        account->stats->holds++;
    if (seen->starved_ns >= due_ns)
        return TRACE_CAUSE_DECODER;
    if (seen->result_ns >= due_ns)
        return TRACE_CAUSE_RESULT_RING;
    if (seen->depth_ns >= due_ns)
        return TRACE_CAUSE_DEPTH_CAP;
    if (seen->wait_to_ns >= due_ns && seen->wait_from_ns <= due_ns)
        return TRACE_CAUSE_WAKEUP;
    return TRACE_CAUSE_WORKER_BUSY;
}
