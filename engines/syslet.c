/* SPDX-License-Identifier: MIT */
/*
 * Synchronous until it would block: each read or write is first tried inline with RWF_NOWAIT,
 * in the thread that submits; only what would block goes to a pool thread. This is what syslets
 * and threadlets did inside the kernel, with today's interfaces.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "engines/blocking.h"
#include "engines/engine.h"
#include "engines/pool.h"
#include "engines/thread_limit.h"
#include "traces/diag.h"

struct syslet_conf {
    uint64_t threads;
};

static const struct opt syslet_opts[] = {
    {"threads", 0, OPT_COUNT, offsetof(struct syslet_conf, threads), .arg = "N", .def = "64",
     .min = 1, .max = 65536,
     .help = "threads of each replay worker's pool, for ops that would block; never more than "
             "its depth"},
    {0}};

enum counter {
    COUNT_INLINE,
    COUNT_WOULD_BLOCK,
    COUNT_UNSUPPORTED,
    COUNT_PARTIAL,
    COUNT_COUNT
};

static const char *const counter_names[COUNT_COUNT] = {"inline", "would_block", "unsupported",
                                                       "continued_partial"};

struct syslet_state {
    const struct engine_env *env;
    struct pool *pool;
    uint64_t counters[COUNT_COUNT];
    /* One a target: bit 0 reads, bit 1 writes are known not to have RWF_NOWAIT. */
    uint8_t *unsupported;
};

/* engine_u64 is what the inline try has moved already. */
static void syslet_run(void *context, struct engine_op *op)
{
    struct syslet_state *state = context;
    uint64_t moved = op->engine_u64;
    struct engine_op rest = {
        .kind = op->kind,
        .flags = op->flags,
        .fd = op->fd,
        .target = op->target,
        .arg = op->arg,
        .offset = op->offset,
        .length = op->length - moved,
        .buffer = op->buffer ? (char *)op->buffer + moved : NULL,
    };
    int64_t result;

    if (op->issued_ns == 0)
        op->issued_ns = clock_now_ns(state->env->clock);
    if (rest.offset != TRACE_UNKNOWN_U64)
        rest.offset += moved;
    if (moved > 0)
        rest.flags &= ~(uint32_t)TRACE_F_PREFLUSH;
    result = blocking_run(&rest, state->env);
    /* What moved first has moved, whatever became of the rest. */
    if (moved > 0)
        result = (int64_t)moved + (result > 0 ? result : 0);
    op->result = result;
    op->completed_ns = clock_now_ns(state->env->clock);
}

static void syslet_close(void *opaque)
{
    struct syslet_state *state = opaque;

    if (!state)
        return;
    pool_free(state->pool);
    free(state->unsupported);
    free(state);
}

static int syslet_open(const void *opaque_conf, const struct engine_env *env, void **ret_state)
{
    const struct syslet_conf *conf = opaque_conf;
    struct syslet_state *state = calloc(1, sizeof(*state));
    struct pool_conf pool_conf = {
        .name = "syslet",
        .threads = conf->threads < env->depth ? (unsigned int)conf->threads : env->depth,
        .depth = env->depth,
        .run = syslet_run,
        .context = state,
        .diag = env->diag,
    };
    int err = -ENOMEM;

    if (!state)
        return diag_errno(env->diag, -ENOMEM, "engine syslet");
    state->env = env;
    state->unsupported = calloc(env->target_count + 1, 1);
    if (!state->unsupported)
        diag_errno(env->diag, err, "engine syslet");
    else
        err = pool_new(&state->pool, &pool_conf);
    if (err) {
        syslet_close(state);
        return err;
    }
    *ret_state = state;
    return 0;
}

static uint8_t *known_unsupported(struct syslet_state *state, const struct engine_op *op)
{
    return op->target < state->env->target_count ? &state->unsupported[op->target] : NULL;
}

/*
 * Whether an inline try can tell anything. A direct transfer waits for the device even with
 * RWF_NOWAIT; a preflush and every op that is no transfer blocks by nature.
 */
static bool worth_trying(const struct syslet_state *state, const struct engine_op *op)
{
    bool direct = op->flags & TRACE_F_DIRECT;

    if (op->target < state->env->target_count && state->env->targets[op->target].direct)
        direct = true;
    return (op->kind == TRACE_READ || op->kind == TRACE_WRITE) && !direct &&
           !(op->flags & TRACE_F_PREFLUSH);
}

/* true: op is finished. false: it is the pool's, engine_u64 says from where on. */
static bool try_inline(struct syslet_state *state, struct engine_op *op)
{
    uint8_t *unsupported = known_unsupported(state, op);
    uint8_t bit = op->kind == TRACE_WRITE ? 2 : 1;
    struct engine_op attempt = *op;
    bool asked = op->flags & TRACE_F_NOWAIT; /* then EAGAIN is the result */
    int64_t result;

    op->engine_u64 = 0;
    op->issued_ns = 0;
    if (!worth_trying(state, op) && !asked) {
        state->counters[COUNT_WOULD_BLOCK]++;
        return false;
    }
    if (unsupported && (*unsupported & bit) && !asked) {
        state->counters[COUNT_UNSUPPORTED]++;
        return false;
    }
    attempt.flags |= TRACE_F_NOWAIT;
    op->issued_ns = clock_now_ns(state->env->clock);
    result = blocking_run(&attempt, state->env);
    if (!asked && result == -EAGAIN) {
        state->counters[COUNT_WOULD_BLOCK]++;
        return false;
    }
    if (!asked && result == -EOPNOTSUPP) {
        state->counters[COUNT_UNSUPPORTED]++;
        if (unsupported)
            *unsupported |= bit;
        return false;
    }
    if (!asked && result > 0 && (uint64_t)result < op->length) {
        state->counters[COUNT_PARTIAL]++;
        op->engine_u64 = (uint64_t)result;
        return false;
    }
    state->counters[COUNT_INLINE]++;
    op->result = result;
    op->completed_ns = clock_now_ns(state->env->clock);
    return true;
}

static int syslet_submit(void *opaque, struct engine_op **ops, unsigned int count)
{
    struct syslet_state *state = opaque;

    for (unsigned int i = 0; i < count; i++) {
        if (try_inline(state, ops[i]))
            pool_finished(state->pool, ops[i]);
        else
            pool_submit(state->pool, &ops[i], 1);
    }
    return (int)count;
}

static int syslet_reap(void *opaque, struct engine_op **done, unsigned int min,
                       unsigned int max, uint64_t timeout_ns)
{
    struct syslet_state *state = opaque;

    return pool_reap(state->pool, done, min, max, timeout_ns);
}

static const char *syslet_counter(void *opaque, unsigned int index, uint64_t *ret_value)
{
    const struct syslet_state *state = opaque;

    if (index >= COUNT_COUNT)
        return NULL;
    *ret_value = state->counters[index];
    return counter_names[index];
}

static void syslet_capacity(const void *opaque_conf, uint32_t depth, uint32_t states,
                            struct engine_capacity *ret_capacity)
{
    const struct syslet_conf *conf = opaque_conf;

    thread_limit_capacity(depth, conf->threads < depth ? (uint32_t)conf->threads : depth,
                          states, ret_capacity);
}

const struct engine engine_syslet = {
    .name = "syslet",
    .summary = "inline while it does not block (RWF_NOWAIT), else by a pool thread",
    .help = "A read or write is tried inline with RWF_NOWAIT. What would block, what the file "
            "system cannot do so (unsupported), and the rest of what was done in part "
            "(continued_partial) goes to a pool thread; the report has the counts. Direct "
            "transfers wait for the device even with RWF_NOWAIT, so they and every op that is "
            "no transfer go to the pool at once and count as would_block. An op counts as "
            "issued at its inline try, or, without one, when a pool thread starts it.",
    .opts = syslet_opts,
    .conf_size = sizeof(struct syslet_conf),
    .ops = BLOCKING_OPS,
    .flags = ENGINE_STAMPS,
    .open = syslet_open,
    .submit = syslet_submit,
    .reap = syslet_reap,
    .close = syslet_close,
    .capacity = syslet_capacity,
    .counter = syslet_counter,
};
