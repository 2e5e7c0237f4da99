/* SPDX-License-Identifier: MIT */
/*
 * preadv2 and pwritev2 with RWF_ flags. Ops of one batch that follow each other in the same
 * file become one call; what it moved is dealt out to them exactly.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "engines/blocking.h"
#include "engines/done.h"
#include "engines/engine.h"
#include "traces/diag.h"

#define MAX_JOINED 1024u /* IOV_MAX */
/* The kernel moves no more in one call, so that a longer run would come out short. */
#define MAX_JOINED_BYTES ((uint64_t)0x7ffff000)

struct vsync_conf {
    bool join;
    bool polled;
};

static const struct opt vsync_opts[] = {
    {"join", 0, OPT_FLAG, offsetof(struct vsync_conf, join), .def = "1",
     .help = "make adjacent ops of a batch one call; 0 = one call an op"},
    {"polled", 0, OPT_FLAG, offsetof(struct vsync_conf, polled),
     .help = "RWF_HIPRI on every read and write: poll for the completion (direct I/O)"},
    {0}};

enum counter {
    COUNT_CALLS,
    COUNT_JOINED,
    COUNT_COUNT
};
static const char *const counter_names[COUNT_COUNT] = {"calls", "joined"};

struct vsync_state {
    const struct vsync_conf *conf;
    const struct engine_env *env;
    uint64_t counters[COUNT_COUNT];
    struct iovec iovs[MAX_JOINED];
    struct done done; /* last: it ends in its ring */
};

static int vsync_open(const void *conf, const struct engine_env *env, void **ret_state)
{
    struct vsync_state *state = calloc(1, done_state_bytes(sizeof(*state), env->depth));

    if (!state)
        return diag_errno(env->diag, -ENOMEM, "engine vsync");
    state->conf = conf;
    state->env = env;
    state->done.depth = env->depth;
    *ret_state = state;
    return 0;
}

static bool transfers(const struct engine_op *op)
{
    return op->kind == TRACE_READ || op->kind == TRACE_WRITE;
}

/* How many of ops[0 .. count-1], from the first on, one call can carry. */
static unsigned int joinable(const struct vsync_state *state, struct engine_op **ops,
                             unsigned int count)
{
    const struct engine_op *first = ops[0];
    uint64_t bytes = first->length;
    unsigned int n = 1;

    if (!state->conf->join || !transfers(first) || first->offset == TRACE_UNKNOWN_U64 ||
        (first->flags & (TRACE_F_APPEND | TRACE_F_PREFLUSH)))
        return 1;
    while (n < count && n < MAX_JOINED) {
        const struct engine_op *op = ops[n];

        if (op->kind != first->kind || op->fd != first->fd || op->flags != first->flags ||
            op->offset != first->offset + bytes || op->length > MAX_JOINED_BYTES - bytes)
            break;
        bytes += op->length;
        n++;
    }
    return n;
}

static int64_t transfer(struct vsync_state *state, struct engine_op **ops, unsigned int count)
{
    const struct engine_op *op = ops[0];
    off_t offset = op->offset == TRACE_UNKNOWN_U64 ? -1 : (off_t)op->offset;
    int rwf = blocking_rwf(op) | (state->conf->polled ? RWF_HIPRI : 0);
    ssize_t result;

    for (unsigned int i = 0; i < count; i++)
        state->iovs[i] = (struct iovec){.iov_base = ops[i]->buffer, .iov_len = ops[i]->length};
    do {
        result = op->kind == TRACE_READ
                     ? preadv2(op->fd, state->iovs, (int)count, offset, rwf)
                     : pwritev2(op->fd, state->iovs, (int)count, offset, rwf);
    } while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : result;
}

static void finish(struct vsync_state *state, struct engine_op *op, int64_t result,
                   uint64_t issued_ns, uint64_t completed_ns)
{
    op->result = result;
    op->issued_ns = issued_ns;
    op->completed_ns = completed_ns;
    done_put(&state->done, op);
}

/*
 * One call for ops[0 .. count-1]; returns how many of them it settled, at least one. An op is
 * settled by bytes moved to its end, or in part when the call stopped inside it. One that the
 * call did not reach has no result yet: it is tried again. So is every op of a joined call that
 * failed, since the failure may be another's; first alone, then those after it.
 */
static unsigned int run(struct vsync_state *state, struct engine_op **ops, unsigned int count)
{
    uint64_t issued_ns = clock_now_ns(state->env->clock), completed_ns, left;
    int64_t result;
    unsigned int settled = 0;

    if (!transfers(ops[0]) || (ops[0]->flags & TRACE_F_PREFLUSH))
        result = blocking_run(ops[0], state->env);
    else
        result = transfer(state, ops, count);
    state->counters[COUNT_CALLS]++;
    if (result < 0 && count > 1)
        return run(state, ops, 1);
    state->counters[COUNT_JOINED] += count - 1;
    completed_ns = clock_now_ns(state->env->clock);
    if (count == 1) {
        finish(state, ops[0], result, issued_ns, completed_ns);
        return 1;
    }
    left = (uint64_t)result;
    do {
        uint64_t part = ops[settled]->length < left ? ops[settled]->length : left;

        finish(state, ops[settled], (int64_t)part, issued_ns, completed_ns);
        left -= part;
        settled++;
    } while (settled < count && left > 0);
    return settled;
}

static int vsync_submit(void *opaque, struct engine_op **ops, unsigned int count)
{
    struct vsync_state *state = opaque;
    unsigned int at = 0;

    while (at < count)
        at += run(state, ops + at, joinable(state, ops + at, count - at));
    return (int)count;
}

static int vsync_reap(void *opaque, struct engine_op **done, unsigned int min, unsigned int max,
                      uint64_t timeout_ns)
{
    struct vsync_state *state = opaque;

    return done_take(&state->done, done, max);
}

static const char *vsync_counter(void *opaque, unsigned int index, uint64_t *ret_value)
{
    const struct vsync_state *state = opaque;

    if (index >= COUNT_COUNT)
        return NULL;
    *ret_value = state->counters[index];
    return counter_names[index];
}

const struct engine engine_vsync = {
    .name = "vsync",
    .summary = "preadv2 and pwritev2, adjacent ops of a batch in one call",
    .help =
        "A batch is executed before submit returns, one call after the other: use more "
        "workers or streams for ops at the same time. Ops of a batch that follow each other "
        "in one file, with the same flags, share a call and its stamps.",
    .opts = vsync_opts,
    .conf_size = sizeof(struct vsync_conf),
    .ops = BLOCKING_OPS,
    .flags = ENGINE_STAMPS,
    .open = vsync_open,
    .submit = vsync_submit,
    .reap = vsync_reap,
    .close = free,
    .counter = vsync_counter,
};
