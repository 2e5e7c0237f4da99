/* SPDX-License-Identifier: MIT */
#include "engines/pool.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "traces/diag.h"

/* The threads make system calls and no deep calls of their own. */
#define STACK_BYTES ((size_t)128 << 10)

struct pool {
    void (*run)(void *context, struct engine_op *op);
    void *context;
    pthread_t *threads;
    unsigned int thread_count;
    bool stop; /* atomic */

    /* Owner to threads. A thread that got the semaphore takes the next place of the ring:
     * places are taken in order and never more than were filled. It empties the place, so that
     * one that is slow to do so, while others have gone round the ring, holds up its refill. */
    sem_t queued;
    struct engine_op **ring; /* each atomic; NULL = empty */
    uint32_t mask;
    uint32_t filled; /* the owner's */
    uint32_t taken;  /* atomic */

    /* Threads to owner. */
    struct engine_op *finished; /* atomic; newest first, linked by engine_ptr */
    uint32_t finished_count;    /* atomic; wraps; the futex */
    uint32_t wake_at;           /* atomic: finished_count for which the owner waits */
    uint32_t waiting;           /* atomic: whether it does */

    /* The owner's own. */
    uint32_t received;              /* of finished_count */
    struct engine_op *first, *last; /* oldest first, to be handed out */
};

/* ---- the threads' side ------------------------------------------------------------------ */

static void pool_wake_owner(struct pool *pool)
{
    syscall(SYS_futex, &pool->finished_count, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void pool_push(struct pool *pool, struct engine_op *op)
{
    struct engine_op *head = __atomic_load_n(&pool->finished, __ATOMIC_RELAXED);
    uint32_t count;

    do {
        op->engine_ptr = head;
    } while (!__atomic_compare_exchange_n(&pool->finished, &head, op, true, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
    /* Sequentially consistent with the owner's store of waiting and load of the count: one of
     * the two sides sees the other. */
    count = __atomic_add_fetch(&pool->finished_count, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&pool->waiting, __ATOMIC_SEQ_CST) &&
        (int32_t)(count - __atomic_load_n(&pool->wake_at, __ATOMIC_SEQ_CST)) >= 0)
        pool_wake_owner(pool);
}

static void *pool_thread(void *opaque)
{
    struct pool *pool = opaque;
    struct engine_op *op;
    uint32_t place;

    for (;;) {
        while (sem_wait(&pool->queued) != 0)
            ;
        if (__atomic_load_n(&pool->stop, __ATOMIC_ACQUIRE))
            return NULL;
        place = __atomic_fetch_add(&pool->taken, 1, __ATOMIC_ACQ_REL);
        op = __atomic_exchange_n(&pool->ring[place & pool->mask], NULL, __ATOMIC_ACQ_REL);
        pool->run(pool->context, op);
        pool_push(pool, op);
    }
}

/* ---- life ------------------------------------------------------------------------------- */

static int start_threads(struct pool *pool, const struct pool_conf *conf)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int err = 0;

    if (pthread_attr_init(&attr))
        return diag_errno(conf->diag, -ENOMEM, "engine %s", conf->name);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (!err && pool->thread_count < conf->threads) {
        err = -pthread_create(&pool->threads[pool->thread_count], &attr, pool_thread, pool);
        if (!err)
            pool->thread_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (err)
        return diag_set(conf->diag, err,
                        "engine %s: thread %u of %u cannot be started: see ulimit -u, "
                        "kernel.threads-max and the cgroup's pids.max",
                        conf->name, pool->thread_count + 1, conf->threads);
    return 0;
}

int pool_new(struct pool **ret_pool, const struct pool_conf *conf)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    uint32_t places = 1;
    int err = -ENOMEM;

    if (!pool)
        return diag_errno(conf->diag, -ENOMEM, "engine %s", conf->name);
    while (places < conf->depth * 2)
        places *= 2;
    pool->run = conf->run;
    pool->context = conf->context;
    pool->mask = places - 1;
    sem_init(&pool->queued, 0, 0);
    pool->ring = calloc(places, sizeof(pool->ring[0]));
    pool->threads = calloc(conf->threads, sizeof(pool->threads[0]));
    if (!pool->ring || !pool->threads)
        diag_errno(conf->diag, err, "engine %s", conf->name);
    else
        err = start_threads(pool, conf);
    if (err) {
        pool_free(pool);
        return err;
    }
    *ret_pool = pool;
    return 0;
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    __atomic_store_n(&pool->stop, true, __ATOMIC_RELEASE);
    for (unsigned int i = 0; i < pool->thread_count; i++)
        sem_post(&pool->queued);
    for (unsigned int i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    sem_destroy(&pool->queued);
    free(pool->ring);
    free(pool->threads);
    free(pool);
}

/* ---- the owner's side ------------------------------------------------------------------- */

void pool_submit(struct pool *pool, struct engine_op **ops, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++) {
        struct engine_op **place = &pool->ring[pool->filled++ & pool->mask];

        while (__atomic_load_n(place, __ATOMIC_ACQUIRE))
            sched_yield();
        __atomic_store_n(place, ops[i], __ATOMIC_RELEASE);
        sem_post(&pool->queued);
    }
}

void pool_finished(struct pool *pool, struct engine_op *op)
{
    op->engine_ptr = NULL;
    if (pool->last)
        pool->last->engine_ptr = op;
    else
        pool->first = op;
    pool->last = op;
}

/* Moves what the threads have finished to the end of the owner's list, oldest first. */
static void pool_receive(struct pool *pool)
{
    struct engine_op *op, *next, *oldest = NULL, *newest;

    if (!__atomic_load_n(&pool->finished, __ATOMIC_RELAXED))
        return;
    op = newest = __atomic_exchange_n(&pool->finished, NULL, __ATOMIC_ACQUIRE);
    for (; op; op = next) {
        next = op->engine_ptr;
        op->engine_ptr = oldest;
        oldest = op;
        pool->received++;
    }
    if (pool->last)
        pool->last->engine_ptr = oldest;
    else
        pool->first = oldest;
    pool->last = newest;
}

static unsigned int pool_take(struct pool *pool, struct engine_op **done, unsigned int max)
{
    unsigned int count = 0;

    pool_receive(pool);
    while (count < max && pool->first) {
        done[count] = pool->first;
        pool->first = done[count]->engine_ptr;
        done[count]->engine_ptr = NULL;
        count++;
    }
    if (!pool->first)
        pool->last = NULL;
    return count;
}

/* Sleeps until the threads have finished wanted more than were received. false: timed out, or a
 * signal came. */
static bool pool_sleep(struct pool *pool, unsigned int wanted, const struct timespec *deadline)
{
    uint32_t target = pool->received + wanted, count;
    bool reached = false;
    long result;

    __atomic_store_n(&pool->wake_at, target, __ATOMIC_SEQ_CST);
    __atomic_store_n(&pool->waiting, 1, __ATOMIC_SEQ_CST);
    for (;;) {
        count = __atomic_load_n(&pool->finished_count, __ATOMIC_SEQ_CST);
        reached = (int32_t)(count - target) >= 0;
        if (reached)
            break;
        result = syscall(SYS_futex, &pool->finished_count, FUTEX_WAIT_BITSET_PRIVATE, count,
                         deadline, NULL, FUTEX_BITSET_MATCH_ANY);
        if (result < 0 && errno != EAGAIN)
            break;
    }
    __atomic_store_n(&pool->waiting, 0, __ATOMIC_SEQ_CST);
    return reached;
}

int pool_reap(struct pool *pool, struct engine_op **done, unsigned int min, unsigned int max,
              uint64_t timeout_ns)
{
    unsigned int count = pool_take(pool, done, max);
    struct timespec deadline;
    uint64_t deadline_ns;

    if (count >= min || timeout_ns == 0)
        return (int)count;
    if (timeout_ns != UINT64_MAX) {
        deadline_ns = clock_now_ns(&clock_real) + timeout_ns;
        deadline.tv_sec = (time_t)(deadline_ns / 1000000000u);
        deadline.tv_nsec = (long)(deadline_ns % 1000000000u);
    }
    pool_sleep(pool, min - count, timeout_ns == UINT64_MAX ? NULL : &deadline);
    return (int)(count + pool_take(pool, done + count, max - count));
}
