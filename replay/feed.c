/* SPDX-License-Identifier: MIT */
#include "replay/feed.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "replay/aim.h"
#include "replay/area.h"
#include "replay/classify.h"
#include "replay/conf.h"
#include "replay/order.h"
#include "replay/pace.h"
#include "replay/plan.h"
#include "replay/target.h"
#include "traces/diag.h"

#define PUBLISH_EVERY 64u /* operations a ring may hold back before its consumer sees them */

/* What the decoder keeps of each worker. */
struct lane {
    struct feed_ring *ring;
    uint64_t tail;       /* written, perhaps not yet published */
    uint64_t published;
    uint64_t free_until; /* tail may grow to this without looking at head */
    uint64_t last_batch;
};

struct feed {
    struct trace_reader *reader;
    const struct conf *conf;
    const struct plan *plan;
    const struct target_set *targets;
    struct order **orders; /* one, or one a clone; NULL when not ordered */
    uint32_t worker_count, capacity;
    bool shared, claimed;
    struct feed_ring *rings;
    struct lane *lanes;
    struct pace pace;
    uint64_t next_lane; /* for operations without a stream */
    pthread_t thread;
    bool started;
    atomic_int stop;
    int error;
    struct diag diag;
};

static int rings_alloc(struct feed *feed)
{
    size_t ops_bytes = feed->capacity * sizeof(struct prepared);
    size_t tags_bytes = feed->capacity * sizeof(struct order_tag);

    feed->rings = area_alloc(feed->worker_count * sizeof *feed->rings, feed->shared);
    feed->lanes = calloc(feed->worker_count, sizeof *feed->lanes);
    if (feed->rings == NULL || feed->lanes == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < feed->worker_count; i++) {
        struct feed_ring *ring = &feed->rings[i];

        ring->mask = feed->capacity - 1;
        ring->ops = area_alloc(ops_bytes, feed->shared);
        if (feed->orders != NULL)
            ring->tags = area_alloc(tags_bytes, feed->shared);
        if (feed->claimed)
            ring->taken = area_alloc(feed->capacity * sizeof *ring->taken, feed->shared);
        if (ring->ops == NULL || (feed->orders != NULL && ring->tags == NULL) ||
            (feed->claimed && ring->taken == NULL))
            return -ENOMEM;
        feed->lanes[i] = (struct lane){
            .ring = ring, .free_until = feed->capacity, .last_batch = TRACE_UNKNOWN_U64};
    }
    return 0;
}

int feed_new(struct feed **ret_feed, const struct feed_conf *conf, struct diag *diag)
{
    struct feed *feed = calloc(1, sizeof *feed);

    if (feed == NULL)
        return diag_errno(diag, -ENOMEM, "decoder");
    feed->reader = conf->reader;
    feed->conf = conf->conf;
    feed->plan = conf->plan;
    feed->targets = conf->targets;
    feed->orders = conf->orders;
    feed->worker_count = conf->workers;
    feed->capacity = conf->capacity;
    feed->shared = conf->shared;
    feed->claimed = conf->claimed;
    if (rings_alloc(feed) != 0) {
        feed_free(feed);
        return diag_errno(diag, -ENOMEM, "decoder");
    }
    *ret_feed = feed;
    return 0;
}

void feed_free(struct feed *feed)
{
    if (feed == NULL)
        return;
    for (uint32_t i = 0; feed->rings != NULL && i < feed->worker_count; i++) {
        area_free(feed->rings[i].ops, feed->capacity * sizeof(struct prepared));
        area_free(feed->rings[i].tags, feed->capacity * sizeof(struct order_tag));
        area_free((void *)feed->rings[i].taken, feed->capacity * sizeof(uint64_t));
    }
    area_free(feed->rings, feed->worker_count * sizeof *feed->rings);
    free(feed->lanes);
    free(feed);
}

struct feed_ring *feed_ring(struct feed *feed, uint32_t worker)
{
    return &feed->rings[worker];
}

/* ---- one operation --------------------------------------------------------------------- */

static void prepare(struct feed *feed, const struct trace_op *op, uint64_t ref,
                    struct prepared *p)
{
    const struct trace_file *file =
        op->file == TRACE_NONE_U32 ? NULL : trace_reader_file(feed->reader, op->file);
    enum skip_reason skip;

    /* A block trace's "sync" is a hint to the scheduler, not O_SYNC. */
    *p = (struct prepared){
        .due_ns = feed->conf->pace == PACE_ASAP ? 0 : pace_due(&feed->pace, op->issue_ns),
        .offset = op->offset,
        .length = op->length,
        .expected = op->result,
        .ref = ref,
        .target = TRACE_NONE_U32,
        .file = op->file,
        .stream = op->stream,
        .flags = op->flags & ~feed->conf->drop_flags &
                 ~(op->api == TRACE_API_BLOCK ? (uint32_t)TRACE_F_SYNC : 0),
        .arg = op->arg,
        .kind = op->kind,
    };
    p->action = (uint8_t)classify(feed->conf, file, op, &skip);
    p->skip = (uint8_t)skip;
    if (op->result != TRACE_UNKNOWN_I64 &&
        !(op->flags & (TRACE_F_FIXED_RESULT | TRACE_F_INFLIGHT)))
        p->marks |= PREPARED_EXPECTED;
    if (file != NULL && (feed->plan->files[op->file].flags & PLAN_BARRIERS))
        p->marks |= PREPARED_FENCED;
    if (p->action == PREPARED_CORE && classify_barrier(op->kind, op->arg))
        p->marks |= PREPARED_BARRIER;
    if (feed->targets->count != 0)
        aim(feed->conf, feed->targets, op, p);
}

/* ---- lanes ----------------------------------------------------------------------------- */

/* Wakes up to count of those that sleep in ring_sleep. */
static void ring_wake(struct feed_ring *ring, int count)
{
    /* With the fence of ring_sleep: either it sees what is new, or its sleeper is seen here. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&ring->waiting, memory_order_relaxed) == 0)
        return;
    atomic_fetch_add_explicit(&ring->news, 1, memory_order_relaxed);
    syscall(SYS_futex, &ring->news, FUTEX_WAKE, count, NULL, NULL, 0);
}

static void lane_publish(struct lane *lane)
{
    if (lane->published != lane->tail) {
        atomic_store_explicit(&lane->ring->tail, lane->tail, memory_order_release);
        if (lane->ring->taken != NULL)
            ring_wake(lane->ring, (int)(lane->tail - lane->published));
        lane->published = lane->tail;
    }
}

static void publish_all(struct feed *feed)
{
    for (uint32_t i = 0; i < feed->worker_count; i++)
        lane_publish(&feed->lanes[i]);
}

#define NAP_LEAST_NS 100000u
#define NAP_MOST_NS  1000000u /* a worker that grows quick meanwhile must not find the ring empty */

/* How long the worker will take for `wanted` operations, as it took `taken` of them in the last
 * nap: each wake-up costs a switch on a CPU that the worker may need. */
static uint64_t nap_next(uint64_t nap_ns, uint64_t taken, uint64_t wanted)
{
    uint64_t next_ns = taken > 0 ? nap_ns * wanted / taken : nap_ns * 2;

    return next_ns < NAP_LEAST_NS  ? NAP_LEAST_NS
           : next_ns > NAP_MOST_NS ? NAP_MOST_NS
                                   : next_ns;
}

/* Waits until the ring has room. Sleeps while it waits: the ring is far ahead of its worker. */
static int lane_wait(struct feed *feed, struct lane *lane)
{
    const uint64_t room = feed->capacity / 4;
    uint64_t nap_ns = NAP_LEAST_NS, before = 0;

    for (bool slept = false;; slept = true) {
        uint64_t head = atomic_load_explicit(&lane->ring->head, memory_order_acquire);
        struct timespec pause;

        lane->free_until = head + feed->capacity;
        /* Once asleep, wake for a good part of the ring, not for one operation. */
        if (lane->free_until - lane->tail > (slept ? room : 0))
            return 0;
        if (atomic_load_explicit(&feed->stop, memory_order_relaxed))
            return -EINTR;
        if (!slept)
            publish_all(feed);
        else
            nap_ns = nap_next(nap_ns, head - before, room - (lane->free_until - lane->tail) + 1);
        before = head;
        pause = (struct timespec){.tv_nsec = (long)nap_ns};
        nanosleep(&pause, NULL);
    }
}

static int lane_put(struct feed *feed, uint32_t worker, const struct prepared *p,
                    const struct order_tag *tag, uint64_t batch)
{
    struct lane *lane = &feed->lanes[worker];
    struct prepared *slot;

    if (lane->tail == lane->free_until) {
        int err = lane_wait(feed, lane);

        if (err != 0)
            return err;
    }
    if (lane->ring->taken != NULL && lane->tail >= feed->capacity) {
        /* Its last content was claimed; the claimer may still be copying it. */
        const _Atomic uint64_t *taken = &lane->ring->taken[lane->tail & lane->ring->mask];

        while (atomic_load_explicit(taken, memory_order_acquire) !=
               lane->tail - feed->capacity + 1)
            sched_yield();
    }
    slot = &lane->ring->ops[lane->tail & lane->ring->mask];
    *slot = *p;
    if (batch != TRACE_UNKNOWN_U64 && batch == lane->last_batch)
        slot->marks |= PREPARED_SAME_BATCH;
    lane->last_batch = batch;
    if (tag != NULL)
        lane->ring->tags[lane->tail & lane->ring->mask] = *tag;
    lane->tail++;
    if (lane->tail - lane->published >= PUBLISH_EVERY)
        lane_publish(lane);
    return 0;
}

static uint32_t route(struct feed *feed, const struct trace_op *op, const struct prepared *p)
{
    /* Table entries are numbered as they are met: the remainder spreads them evenly. */
    if (feed->worker_count == 1)
        return 0;
    if (feed->conf->order & ORDER_OVERLAP)
        return p->file % feed->worker_count; /* those on the same bytes meet in one worker */
    if (op->stream != TRACE_NONE_U32)
        return op->stream % feed->worker_count;
    return (uint32_t)(feed->next_lane++ % feed->worker_count);
}

static int put_tagged(struct feed *feed, uint32_t worker, const struct trace_op *op,
                      struct prepared *p, struct order *order)
{
    struct order_tag tag;
    int err;

    /* The window may be full because workers wait for what is not yet published. */
    err = order_tag_op(order, op, p, &tag);
    if (err == -EAGAIN) {
        publish_all(feed);
        err = order_tag_wait(order, op, p, &feed->stop, &tag);
    }
    if (err != 0)
        return err;
    tag.think_ns = pace_scale(&feed->pace, tag.think_ns);
    if (feed->conf->max_gap_ns != 0 && tag.think_ns > feed->conf->max_gap_ns)
        tag.think_ns = feed->conf->max_gap_ns;
    return lane_put(feed, worker, p, &tag, op->batch);
}

static int put(struct feed *feed, const struct trace_op *op, struct prepared *p)
{
    uint32_t copies = feed->conf->clones ? feed->worker_count : 1;
    uint32_t target = p->target;
    int err = 0;

    for (uint32_t c = 0; c < copies && err == 0; c++) {
        uint32_t worker = feed->conf->clones ? c : route(feed, op, p);

        if (target != TRACE_NONE_U32)
            p->target = target + c * feed->targets->per_clone;
        if (feed->orders != NULL)
            err = put_tagged(feed, worker, op, p, feed->orders[c]);
        else
            err = lane_put(feed, worker, p, NULL, op->batch);
    }
    return err;
}

/* ---- the thread ------------------------------------------------------------------------ */

static int decode_block(struct feed *feed, const struct trace_op *ops, size_t count,
                        uint64_t first)
{
    const struct trace_op *op;
    struct trace_op room;
    struct prepared p = {0};
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++) {
        if (!classify_in_window(feed->conf, ops[i].issue_ns))
            continue;
        op = classify_op(feed->conf, &ops[i], &room);
        prepare(feed, op, first + i, &p);
        err = put(feed, op, &p);
    }
    publish_all(feed);
    return err;
}

static int decode_loop(struct feed *feed)
{
    const struct trace_op *ops;
    size_t count;
    uint64_t index = 0;
    int err = trace_reader_rewind(feed->reader);

    if (err != 0)
        return diag_errno(&feed->diag, err, "%s", trace_reader_name(feed->reader));
    while ((err = trace_reader_next(feed->reader, &ops, &count)) > 0) {
        err = decode_block(feed, ops, count, index);
        index += count;
        if (err != 0)
            return err;
    }
    return err;
}

static void *feed_main(void *arg)
{
    struct feed *feed = arg;
    const struct plan *plan = feed->plan;
    uint64_t ops = plan->ops > 1 ? plan->ops - 1 : 1;
    /* The next loop follows the last by the mean distance between operations. */
    uint64_t tail_ns = pace_scale(&feed->pace, (uint64_t)(plan->last_ns - plan->first_ns) / ops);
    int err = 0;

    for (uint64_t loop = 0; loop < feed->conf->loops && err == 0; loop++) {
        if (loop > 0) {
            pace_next_loop(&feed->pace, tail_ns);
            for (uint32_t c = 0; feed->orders != NULL && c < feed->targets->clones; c++)
                order_next_loop(feed->orders[c]);
        }
        err = decode_loop(feed);
    }
    publish_all(feed);
    feed->error = err == -EINTR ? 0 : err;
    for (uint32_t i = 0; i < feed->worker_count; i++)
        atomic_store_explicit(&feed->rings[i].ended, true, memory_order_release);
    feed_wake(feed);
    return NULL;
}

void feed_wake(struct feed *feed)
{
    for (uint32_t i = 0; i < feed->worker_count; i++)
        ring_wake(&feed->rings[i], INT32_MAX);
}

void ring_sleep(struct feed_ring *ring, uint64_t timeout_ns)
{
    const struct timespec timeout = {.tv_sec = timeout_ns >= 1000000000u ? 1 : 0,
                                     .tv_nsec = timeout_ns >= 1000000000u ? 0 : (long)timeout_ns};
    uint32_t news;

    atomic_fetch_add_explicit(&ring->waiting, 1, memory_order_relaxed);
    news = atomic_load_explicit(&ring->news, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&ring->tail, memory_order_acquire) ==
            atomic_load_explicit(&ring->head, memory_order_acquire) &&
        !atomic_load_explicit(&ring->ended, memory_order_acquire))
        syscall(SYS_futex, &ring->news, FUTEX_WAIT, news, &timeout, NULL, 0);
    atomic_fetch_sub_explicit(&ring->waiting, 1, memory_order_relaxed);
}

int feed_start(struct feed *feed)
{
    int err;

    pace_init(&feed->pace, feed->conf->speed, feed->conf->max_gap_ns, feed->plan->origin_ns);
    err = -pthread_create(&feed->thread, NULL, feed_main, feed);
    feed->started = err == 0;
    return err;
}

int feed_stop(struct feed *feed, struct diag *diag)
{
    if (!feed->started)
        return 0;
    atomic_store(&feed->stop, 1);
    pthread_join(feed->thread, NULL);
    feed->started = false;
    if (feed->error != 0)
        return diag_set(diag, feed->error, "%s",
                        feed->diag.error ? feed->diag.text : strerror(-feed->error));
    return 0;
}

bool ring_claim(struct feed_ring *ring, struct prepared *ret_op, struct order_tag *ret_tag)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);

    do {
        if (head == atomic_load_explicit(&ring->tail, memory_order_acquire))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&ring->head, &head, head + 1,
                                                    memory_order_acq_rel, memory_order_acquire));
    *ret_op = ring->ops[head & ring->mask];
    if (ring->tags != NULL)
        *ret_tag = ring->tags[head & ring->mask];
    atomic_store_explicit(&ring->taken[head & ring->mask], head + 1, memory_order_release);
    return true;
}
