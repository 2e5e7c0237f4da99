/* SPDX-License-Identifier: MIT */
#include "engines/engine.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engines/fault.h"
#include "traces/diag.h"

#define MAX_DEPTH 65536u
/* Longer waits are for ever: engines add them to the clock without fear of overflow. */
#define MAX_TIMEOUT_NS ((uint64_t)1 << 62)

#define REGISTER(name) extern const struct engine engine_##name;
#include "engines.def"
#undef REGISTER

static const struct engine *const engines[] = {
#define REGISTER(name) &engine_##name,
#include "engines.def"
#undef REGISTER
};

#define ENGINE_COUNT (sizeof(engines) / sizeof(engines[0]))

const struct engine *engine_at(unsigned int index)
{
    return index < ENGINE_COUNT ? engines[index] : NULL;
}

const struct engine *engine_find(const char *name, size_t length)
{
    for (size_t i = 0; i < ENGINE_COUNT; i++)
        if (strlen(engines[i]->name) == length && !memcmp(engines[i]->name, name, length))
            return engines[i];
    return NULL;
}

/* ---- choices ---------------------------------------------------------------------------- */

static int diag_unknown(struct diag *diag, const char *name, size_t length)
{
    char list[512];
    size_t used = 0;

    list[0] = '\0';
    for (size_t i = 0; i < ENGINE_COUNT && used < sizeof(list); i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
                                 engines[i]->name);
    return diag_set(diag, -EINVAL, "no engine is called '%.*s'; there are: %s", (int)length,
                    name, list);
}

static int choice_options(struct engine_choice *choice, const char *options, struct diag *diag)
{
    const struct engine *engine = choice->engine;
    int err;

    if (!engine->opts) {
        if (options && *options)
            return diag_set(diag, -EINVAL, "engine %s has no options (given: '%s')",
                            engine->name, options);
        return 0;
    }
    choice->conf = calloc(1, engine->conf_size);
    if (!choice->conf)
        return diag_errno(diag, -ENOMEM, "engine %s", engine->name);
    err = opts_defaults(engine->opts, choice->conf, diag);
    if (!err && options && *options)
        err =
            opts_parse_text(engine->opts, choice->conf, options, NULL, &choice->storage, diag);
    return err;
}

int engine_choice_parse(struct engine_choice *ret_choice, const char *text, struct diag *diag)
{
    struct engine_choice choice = {0};
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    int err;

    choice.engine = engine_find(text, length);
    if (!choice.engine)
        return diag_unknown(diag, text, length);
    choice.text = strdup(text);
    if (!choice.text)
        return diag_errno(diag, -ENOMEM, "engine %s", choice.engine->name);
    err = choice_options(&choice, colon ? colon + 1 : NULL, diag);
    if (err) {
        engine_choice_release(&choice);
        return err;
    }
    *ret_choice = choice;
    return 0;
}

void engine_choice_release(struct engine_choice *choice)
{
    if (choice->conf)
        opts_release(choice->engine->opts, choice->conf);
    free(choice->conf);
    free(choice->storage);
    free(choice->text);
    *choice = (struct engine_choice){0};
}

int engine_choice_probe(const struct engine_choice *choice, struct diag *diag)
{
    const struct engine *engine = choice->engine;
    char reason[256] = "";

    if (engine->unavailable)
        return diag_set(diag, -ENOSYS, "engine %s: %s", engine->name, engine->unavailable);
    if (engine->probe && engine->probe(reason, sizeof(reason)))
        return diag_set(diag, -ENOSYS, "engine %s: %s", engine->name, reason);
    return 0;
}

void engine_choice_capacity(const struct engine_choice *choice, uint32_t depth, uint32_t states,
                            struct engine_capacity *ret_capacity)
{
    struct engine_capacity capacity = {0};

    if (choice->engine->capacity)
        choice->engine->capacity(choice->conf, depth, states, &capacity);
    *ret_capacity = capacity;
}

/* ---- handles ---------------------------------------------------------------------------- */

struct engine_handle {
    const struct engine *engine;
    void *state;
    uint32_t depth;
    uint32_t batch;
    unsigned int in_flight; /* with the engine, or injected */
    bool faults;            /* a fault plan is in force */
    struct engine_env env;
    /* Fault points: ops that complete without having reached the engine, oldest first. */
    struct engine_op **injected;
    unsigned int injected_count;
    unsigned int counted_ahead; /* ops the plan has counted and let pass, not taken yet */
    int pending_error;          /* the op after those is to fail so */
};

static int env_check(const struct engine *engine, const struct engine_env *env)
{
    if (engine->unavailable)
        return diag_set(env->diag, -ENOSYS, "engine %s: %s", engine->name, engine->unavailable);
    if (env->depth < 1 || env->depth > MAX_DEPTH)
        return diag_set(env->diag, -EINVAL, "engine %s: depth %u is not within 1 .. %u",
                        engine->name, env->depth, MAX_DEPTH);
    if (env->batch < 1 || env->batch > env->depth)
        return diag_set(env->diag, -EINVAL, "engine %s: batch %u is not within 1 .. depth %u",
                        engine->name, env->batch, env->depth);
    if (env->clock->simulated && !(engine->flags & ENGINE_SIMULATES))
        return diag_set(env->diag, -EINVAL,
                        "engine %s does real I/O: it cannot run on a "
                        "simulated clock (the model engine can)",
                        engine->name);
    if (engine->flags & ENGINE_BUFFERED_ONLY)
        for (uint32_t i = 0; i < env->target_count; i++)
            if (env->targets[i].direct)
                return diag_set(env->diag, -EINVAL, "engine %s cannot do direct I/O (%s)",
                                engine->name, env->targets[i].path);
    return 0;
}

static int faults_open(struct engine_handle *handle)
{
    int err = fault_load(getenv("IOTAPE_FAULT"), handle->env.diag);

    if (err <= 0)
        return err;
    handle->faults = true;
    handle->injected = calloc(handle->depth, sizeof(handle->injected[0]));
    if (!handle->injected)
        return diag_errno(handle->env.diag, -ENOMEM, "engine %s", handle->engine->name);
    err = fault_open();
    if (err)
        return diag_errno(handle->env.diag, err, "engine %s (IOTAPE_FAULT)",
                          handle->engine->name);
    return 0;
}

int engine_open(struct engine_handle **ret_handle, const struct engine_choice *choice,
                const struct engine_env *env)
{
    struct engine_handle *handle;
    bool unused_downgraded;
    int err;

    err = env_check(choice->engine, env);
    if (err)
        return err;
    handle = calloc(1, sizeof(*handle));
    if (!handle)
        return diag_errno(env->diag, -ENOMEM, "engine %s", choice->engine->name);
    handle->engine = choice->engine;
    handle->depth = env->depth;
    handle->batch = env->batch;
    handle->env = *env;
    if (!env->ret_downgraded)
        handle->env.ret_downgraded = &unused_downgraded;
    *handle->env.ret_downgraded = false;
    if (env->granted_size > 0)
        env->granted[0] = '\0';
    err = faults_open(handle);
    if (!err)
        err = handle->engine->open(choice->conf, &handle->env, &handle->state);
    if (err) {
        free(handle->injected);
        free(handle);
        return err;
    }
    handle->env.ret_downgraded = env->ret_downgraded;
    *ret_handle = handle;
    return 0;
}

/* ---- submit ----------------------------------------------------------------------------- */

/* Checks, and marks the ops: once submit is called a pool thread may be reading them. */
static int submit_check(const struct engine_handle *handle, struct engine_op **ops,
                        unsigned int count)
{
    const struct engine *engine = handle->engine;
    struct diag *diag = handle->env.diag;

    if (count > handle->batch || count > handle->depth - handle->in_flight)
        return diag_set(diag, -EINVAL,
                        "engine %s: %u ops handed over with %u of depth %u in "
                        "flight and batch %u",
                        engine->name, count, handle->in_flight, handle->depth, handle->batch);
    if (count > 1 && (engine->flags & ENGINE_BLOCKING))
        return diag_set(diag, -EINVAL, "engine %s takes one op at a time", engine->name);
    for (unsigned int i = 0; i < count; i++) {
        if (ops[i]->state != ENGINE_OP_IDLE)
            return diag_set(diag, -EINVAL, "engine %s: an op was handed over twice",
                            engine->name);
        if (ops[i]->kind >= TRACE_OP_COUNT || !(engine->ops & ENGINE_OP(ops[i]->kind)))
            return diag_set(diag, -EINVAL, "engine %s does not do '%s' itself", engine->name,
                            trace_op_name(ops[i]->kind));
    }
    for (unsigned int i = 0; i < count; i++)
        ops[i]->state = ENGINE_OP_INFLIGHT;
    return 0;
}

/* Books what the engine said it took of ops[0 .. count-1]; the rest is the caller's again. */
static int submit_taken(struct engine_handle *handle, struct engine_op **ops,
                        unsigned int count, int taken)
{
    unsigned int kept = taken > 0 ? (unsigned int)taken : 0;

    if (kept > count)
        return diag_set(handle->env.diag, -EPROTO, "engine %s took %d ops of %u",
                        handle->engine->name, taken, count);
    for (unsigned int i = kept; i < count; i++)
        ops[i]->state = ENGINE_OP_IDLE;
    if (taken < 0 && taken != -EAGAIN)
        return diag_errno(handle->env.diag, taken, "engine %s: submit", handle->engine->name);
    handle->in_flight += kept;
    return taken;
}

static void inject(struct engine_handle *handle, struct engine_op *op)
{
    op->result = handle->pending_error;
    handle->pending_error = 0;
    if (handle->engine->flags & ENGINE_STAMPS) {
        op->issued_ns = clock_now_ns(handle->env.clock);
        op->completed_ns = op->issued_ns;
    }
    handle->injected[handle->injected_count++] = op;
    handle->in_flight++;
}

/*
 * How many of ops may go to the engine: those before the one the plan wants to fail. The caller
 * hands over the ops left by a short count again, in the same order, so each is counted once.
 */
static unsigned int faults_pass(struct engine_handle *handle, unsigned int count)
{
    while (handle->counted_ahead < count && !handle->pending_error) {
        handle->pending_error = fault_submit_op();
        if (!handle->pending_error)
            handle->counted_ahead++;
    }
    return handle->counted_ahead < count ? handle->counted_ahead : count;
}

static void faults_stall(const struct engine_handle *handle)
{
    uint64_t stall_ns = fault_stall_ns();
    uint64_t until_ns;

    if (!stall_ns)
        return;
    until_ns = clock_now_ns(handle->env.clock) + stall_ns;
    while (clock_now_ns(handle->env.clock) < until_ns)
        handle->env.clock->wait_until(handle->env.clock, until_ns);
}

static int submit_with_faults(struct engine_handle *handle, struct engine_op **ops,
                              unsigned int count)
{
    unsigned int pass = faults_pass(handle, count);
    int taken;

    for (unsigned int i = pass ? pass : 1; i < count; i++)
        ops[i]->state = ENGINE_OP_IDLE;
    if (pass == 0) {
        inject(handle, ops[0]);
        taken = 1;
    } else {
        taken =
            submit_taken(handle, ops, pass, handle->engine->submit(handle->state, ops, pass));
        if (taken > 0)
            handle->counted_ahead -= (unsigned int)taken;
    }
    faults_stall(handle);
    return taken;
}

int engine_submit(struct engine_handle *handle, struct engine_op **ops, unsigned int count)
{
    int err;

    if (count == 0)
        return 0;
    err = submit_check(handle, ops, count);
    if (err)
        return err;
    if (__builtin_expect(handle->faults, 0))
        return submit_with_faults(handle, ops, count);
    return submit_taken(handle, ops, count, handle->engine->submit(handle->state, ops, count));
}

/* ---- reap ------------------------------------------------------------------------------- */

static bool transfers(const struct engine_op *op)
{
    return op->kind == TRACE_READ || op->kind == TRACE_WRITE;
}

/* Books what the engine handed back. */
static int reap_done(struct engine_handle *handle, struct engine_op **done, unsigned int max,
                     int count)
{
    struct diag *diag = handle->env.diag;

    if (count < 0) {
        diag_errno(diag, count, "engine %s: reap", handle->engine->name);
        return count;
    }
    if ((unsigned int)count > max || (unsigned int)count > handle->in_flight)
        return diag_set(diag, -EPROTO, "engine %s handed back %d ops, %u in flight",
                        handle->engine->name, count, handle->in_flight);
    for (int i = 0; i < count; i++) {
        struct engine_op *op = done[i];

        if (op->state != ENGINE_OP_INFLIGHT)
            return diag_set(diag, -EPROTO, "engine %s handed an op back twice",
                            handle->engine->name);
        if (transfers(op) && op->result > 0 && (uint64_t)op->result > op->length)
            return diag_set(diag, -EPROTO, "engine %s: %lld bytes moved of %llu",
                            handle->engine->name, (long long)op->result,
                            (unsigned long long)op->length);
        op->state = ENGINE_OP_IDLE;
    }
    handle->in_flight -= (unsigned int)count;
    return count;
}

/* Injected completions first; -EINTR of the plan is an early return, others break the engine.
 */
static int reap_with_faults(struct engine_handle *handle, struct engine_op **done,
                            unsigned int min, unsigned int max, uint64_t timeout_ns)
{
    unsigned int given = handle->injected_count < max ? handle->injected_count : max;
    int err = fault_reap(), count = 0;

    if (err)
        return err == -EINTR ? 0 : reap_done(handle, done, max, err);
    memcpy(done, handle->injected, given * sizeof(done[0]));
    handle->injected_count -= given;
    memmove(handle->injected, handle->injected + given,
            handle->injected_count * sizeof(handle->injected[0]));
    if (given < max && handle->in_flight > given)
        count = handle->engine->reap(handle->state, done + given, min > given ? min - given : 0,
                                     max - given, timeout_ns);
    if (count >= 0)
        count += (int)given;
    count = reap_done(handle, done, max, count);
    for (int i = 0; i < count; i++)
        if (transfers(done[i]) && fault_short() && done[i]->result > 0)
            done[i]->result /= 2;
    return count;
}

int engine_reap(struct engine_handle *handle, struct engine_op **done, unsigned int min,
                unsigned int max, uint64_t timeout_ns)
{
    if (handle->in_flight == 0 || max == 0)
        return 0;
    if (min > handle->in_flight)
        min = handle->in_flight;
    if (min > max)
        min = max;
    if (timeout_ns > MAX_TIMEOUT_NS)
        timeout_ns = UINT64_MAX;
    if (__builtin_expect(handle->faults, 0))
        return reap_with_faults(handle, done, min, max, timeout_ns);
    return reap_done(handle, done, max,
                     handle->engine->reap(handle->state, done, min, max, timeout_ns));
}

/* For engines without the callback, and whenever a fault plan is in force. */
static int submit_then_reap(struct engine_handle *handle, struct engine_op **ops,
                            unsigned int count, int *ret_taken, struct engine_op **done,
                            unsigned int min, unsigned int max, uint64_t timeout_ns)
{
    int taken = engine_submit(handle, ops, count);

    *ret_taken = taken;
    if (taken < 0 && taken != -EAGAIN)
        return taken;
    return engine_reap(handle, done, min, max, timeout_ns);
}

int engine_submit_reap(struct engine_handle *handle, struct engine_op **ops, unsigned int count,
                       int *ret_taken, struct engine_op **done, unsigned int min,
                       unsigned int max, uint64_t timeout_ns)
{
    const struct engine *engine = handle->engine;
    unsigned int reachable = handle->in_flight + count;
    int taken = 0, reaped, err;

    if (!engine->submit_reap || handle->faults)
        return submit_then_reap(handle, ops, count, ret_taken, done, min, max, timeout_ns);
    if (reachable == 0) {
        *ret_taken = 0;
        return 0;
    }
    err = submit_check(handle, ops, count);
    if (err) {
        *ret_taken = err;
        return err;
    }
    if (min > reachable)
        min = reachable;
    if (min > max)
        min = max;
    if (timeout_ns > MAX_TIMEOUT_NS)
        timeout_ns = UINT64_MAX;
    reaped = engine->submit_reap(handle->state, ops, count, &taken, done, min, max, timeout_ns);
    taken = submit_taken(handle, ops, count, taken);
    *ret_taken = taken;
    if (taken < 0 && taken != -EAGAIN)
        return taken;
    return reap_done(handle, done, max, reaped);
}

const char *engine_counter(struct engine_handle *handle, unsigned int index,
                           uint64_t *ret_value)
{
    if (!handle->engine->counter)
        return NULL;
    return handle->engine->counter(handle->state, index, ret_value);
}

unsigned int engine_in_flight(const struct engine_handle *handle)
{
    return handle->in_flight;
}

void engine_close(struct engine_handle *handle)
{
    if (!handle)
        return;
    handle->engine->close(handle->state);
    free(handle->injected);
    free(handle);
}
