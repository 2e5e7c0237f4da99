/* SPDX-License-Identifier: MIT */
/*
 * pread and pwrite: the baseline of every table. The core runs one thread and one of these a
 * depth slot, so an op executes in the thread that issues it.
 */
#include <errno.h>
#include <stdlib.h>

#include "engines/blocking.h"
#include "engines/done.h"
#include "engines/engine.h"
#include "engines/thread_limit.h"
#include "traces/diag.h"

struct sync_state {
    const struct engine_env *env;
    struct done done; /* last: it ends in its ring */
};

static int sync_open(const void *conf, const struct engine_env *env, void **ret_state)
{
    struct sync_state *state = calloc(1, done_state_bytes(sizeof(*state), env->depth));

    if (!state)
        return diag_errno(env->diag, -ENOMEM, "engine sync");
    state->env = env;
    state->done.depth = env->depth;
    *ret_state = state;
    return 0;
}

static int sync_submit(void *opaque, struct engine_op **ops, unsigned int count)
{
    struct sync_state *state = opaque;

    for (unsigned int i = 0; i < count; i++) {
        ops[i]->result = blocking_run(ops[i], state->env);
        done_put(&state->done, ops[i]);
    }
    return (int)count;
}

static int sync_reap(void *opaque, struct engine_op **done, unsigned int min, unsigned int max,
                     uint64_t timeout_ns)
{
    struct sync_state *state = opaque;

    return done_take(&state->done, done, max);
}

static void sync_capacity(const void *conf, uint32_t depth, uint32_t states,
                          struct engine_capacity *ret_capacity)
{
    thread_limit_capacity(depth, depth, states, ret_capacity);
}

const struct engine engine_sync = {
    .name = "sync",
    .summary = "pread and pwrite, one thread for each op in flight",
    .help =
        "The baseline: each depth slot is a thread that issues its op with pread or pwrite "
        "and waits for it. Ops with flags (dsync, sync, nowait, polled, append) use preadv2 "
        "or pwritev2; a write with preflush is preceded by fdatasync.",
    .ops = BLOCKING_OPS,
    .flags = ENGINE_BLOCKING | ENGINE_CORE_THREADS,
    .open = sync_open,
    .submit = sync_submit,
    .reap = sync_reap,
    .close = free,
    .capacity = sync_capacity,
};
