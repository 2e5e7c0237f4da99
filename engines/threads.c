/* SPDX-License-Identifier: MIT */
/*
 * A pool of blocking workers of fixed size: what many applications and libraries do for
 * asynchronous I/O.
 */
#include <errno.h>
#include <stdlib.h>

#include "engines/blocking.h"
#include "engines/engine.h"
#include "engines/pool.h"
#include "engines/thread_limit.h"
#include "traces/diag.h"

struct threads_conf {
    uint64_t threads;
};

static const struct opt threads_opts[] = {
    {"threads", 0, OPT_COUNT, offsetof(struct threads_conf, threads), .arg = "N", .def = "64",
     .min = 1, .max = 65536,
     .help = "threads of each replay worker's pool; never more than its depth"},
    {0}};

struct threads_state {
    const struct engine_env *env;
    struct pool *pool;
};

static void threads_run(void *context, struct engine_op *op)
{
    struct threads_state *state = context;

    op->issued_ns = clock_now_ns(state->env->clock);
    op->result = blocking_run(op, state->env);
    op->completed_ns = clock_now_ns(state->env->clock);
}

static void threads_close(void *opaque)
{
    struct threads_state *state = opaque;

    if (!state)
        return;
    pool_free(state->pool);
    free(state);
}

static int threads_open(const void *opaque_conf, const struct engine_env *env, void **ret_state)
{
    const struct threads_conf *conf = opaque_conf;
    struct threads_state *state = calloc(1, sizeof(*state));
    struct pool_conf pool_conf = {
        .name = "threads",
        .threads = conf->threads < env->depth ? (unsigned int)conf->threads : env->depth,
        .depth = env->depth,
        .run = threads_run,
        .context = state,
        .diag = env->diag,
    };
    int err;

    if (!state)
        return diag_errno(env->diag, -ENOMEM, "engine threads");
    state->env = env;
    err = pool_new(&state->pool, &pool_conf);
    if (err) {
        threads_close(state);
        return err;
    }
    *ret_state = state;
    return 0;
}

static int threads_submit(void *opaque, struct engine_op **ops, unsigned int count)
{
    struct threads_state *state = opaque;

    pool_submit(state->pool, ops, count);
    return (int)count;
}

static int threads_reap(void *opaque, struct engine_op **done, unsigned int min,
                        unsigned int max, uint64_t timeout_ns)
{
    struct threads_state *state = opaque;

    return pool_reap(state->pool, done, min, max, timeout_ns);
}

static void threads_capacity(const void *opaque_conf, uint32_t depth, uint32_t states,
                             struct engine_capacity *ret_capacity)
{
    const struct threads_conf *conf = opaque_conf;

    thread_limit_capacity(depth, conf->threads < depth ? (uint32_t)conf->threads : depth,
                          states, ret_capacity);
}

const struct engine engine_threads = {
    .name = "threads",
    .summary = "a pool of blocking workers of fixed size",
    .help =
        "Ops queue for a thread that executes them with pread, pwrite and the other blocking "
        "calls. An op counts as issued when a thread starts it: time in the queue is lag.",
    .opts = threads_opts,
    .conf_size = sizeof(struct threads_conf),
    .ops = BLOCKING_OPS,
    .flags = ENGINE_STAMPS,
    .open = threads_open,
    .submit = threads_submit,
    .reap = threads_reap,
    .close = threads_close,
    .capacity = threads_capacity,
};
