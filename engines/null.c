/* SPDX-License-Identifier: MIT */
/*
 * Completes every op at once: what is left of a replay's cost is the replayer's own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engines/engine.h"
#include "traces/diag.h"

struct null_state {
    unsigned int head; /* oldest op not yet reaped */
    unsigned int count;
    unsigned int mask;
    struct engine_op *ring[];
};

static int null_open(const void *conf, const struct engine_env *env, void **ret_state)
{
    struct null_state *state;
    unsigned int size = 1;

    while (size < env->depth)
        size *= 2;
    state = calloc(1, sizeof(*state) + size * sizeof(state->ring[0]));
    if (!state)
        return diag_errno(env->diag, -ENOMEM, "engine null");
    state->mask = size - 1;
    *ret_state = state;
    return 0;
}

static int null_submit(void *opaque, struct engine_op **ops, unsigned int count)
{
    struct null_state *state = opaque;

    for (unsigned int i = 0; i < count; i++) {
        struct engine_op *op = ops[i];

        op->result = op->kind <= TRACE_WRITE ? (int64_t)op->length : 0;
        state->ring[(state->head + state->count++) & state->mask] = op;
    }
    return (int)count;
}

static int null_reap(void *opaque, struct engine_op **done, unsigned int min, unsigned int max,
                     uint64_t timeout_ns)
{
    struct null_state *state = opaque;
    unsigned int count = state->count < max ? state->count : max;

    for (unsigned int i = 0; i < count; i++)
        done[i] = state->ring[state->head++ & state->mask];
    state->count -= count;
    return (int)count;
}

_Static_assert(TRACE_READ == 0 && TRACE_WRITE == 1,
               "null_submit tells transfers by one compare");

const struct engine engine_null = {
    .name = "null",
    .summary = "completes every op at once: measures the replayer itself",
    .help =
        "No I/O is done and no file is opened; buffers are left as they are. A read or write "
        "\"moves\" its whole length, every other op gives 0.",
    .ops = (1ull << TRACE_OP_COUNT) - 1,
    .flags = ENGINE_NO_TARGET | ENGINE_SIMULATES,
    .open = null_open,
    .submit = null_submit,
    .reap = null_reap,
    .close = free,
};
