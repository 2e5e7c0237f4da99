/* SPDX-License-Identifier: MIT */
/*
 * A pool of threads that executes ops for one owner: what the threads and syslet engines share.
 *
 * The owner (one thread) hands ops over and takes them back; the pool's threads call run for
 * each, in the order handed over. Nothing is allocated and no mutex is taken after pool_new:
 * a semaphore counts what is queued, finished ops come back on an intrusive list, and the owner
 * sleeps on a futex only until as many as it waits for are there. While an op is in the pool
 * its engine_ptr is the pool's. All signals are blocked in the pool's threads.
 */
#ifndef ENGINES_POOL_H
#define ENGINES_POOL_H

#include <stdint.h>

#include "engines/engine.h"

struct pool;

struct pool_conf {
    const char *name;     /* the engine's, for messages */
    unsigned int threads; /* 1 or more */
    unsigned int depth;   /* most ops in the pool at once */
    /* Executes op and sets its result; any of the pool's threads, several at once. */
    void (*run)(void *context, struct engine_op *op);
    void *context;
    struct diag *diag;
};

/* Starts every thread before it returns. -EAGAIN with diag: no more threads (the limits are
 * named), -ENOMEM. */
int pool_new(struct pool **ret_pool, const struct pool_conf *conf) TRACE_MUST_CHECK;
/* Waits for the ops being executed, drops the queued ones, ends the threads. NULL is fine. */
void pool_free(struct pool *pool);

/* Queues count ops. Waits for nothing but a thread that is just taking one. */
void pool_submit(struct pool *pool, struct engine_op **ops, unsigned int count);
/* Queues, for the next pool_reap, an op that the owner itself has finished. */
void pool_finished(struct pool *pool, struct engine_op *op);
/* As an engine's reap. */
int pool_reap(struct pool *pool, struct engine_op **done, unsigned int min, unsigned int max,
              uint64_t timeout_ns);

#endif
