/* SPDX-License-Identifier: MIT */
/*
 * Linux native AIO: io_submit in batches, completions taken from the ring the kernel shares
 * with user space, io_getevents only to sleep.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engines/blocking.h"
#include "engines/engine.h"
#include "traces/diag.h"

#if HAVE_LIB
#include <libaio.h>
#endif

#define AIO_OPS (ENGINE_OPS_RW | ENGINE_OPS_SYNC)

struct libaio_conf {
    bool user_reap;
};

static const struct opt libaio_opts[] = {
    {"user-reap", 0, OPT_FLAG, offsetof(struct libaio_conf, user_reap), .def = "1",
     .help = "take completions from the shared ring without a system call; 0 = always "
             "io_getevents"},
    {0}};

#if HAVE_LIB

/* The head of the ring that io_setup maps; the io_context_t is its address. */
struct aio_ring {
    uint32_t id;
    uint32_t slots;
    uint32_t head; /* user space moves it */
    uint32_t tail; /* the kernel moves it */
    uint32_t magic;
    uint32_t compat_features;
    uint32_t incompat_features;
    uint32_t header_bytes;
    struct io_event events[];
};
_Static_assert(sizeof(struct aio_ring) == 32, "the kernel's layout");
#define AIO_RING_MAGIC 0xa10a10a1u

struct libaio_state {
    io_context_t context;
    struct aio_ring *ring; /* NULL: io_getevents only */
    unsigned int depth;
    unsigned int in_kernel;
    unsigned int local_count; /* ops the kernel refused at submission */
    struct engine_op **local;
    struct iocb *iocbs;        /* one a slot */
    struct iocb **submissions; /* one a batch place */
    struct io_event *events;
};

static uint64_t proc_number(const char *path)
{
    unsigned long long value = 0;
    FILE *file = fopen(path, "re");

    if (!file)
        return 0;
    if (fscanf(file, "%llu", &value) != 1)
        value = 0;
    fclose(file);
    return value;
}

static void libaio_capacity(const void *conf, uint32_t depth, uint32_t states,
                            struct engine_capacity *ret)
{
    uint64_t limit = proc_number("/proc/sys/fs/aio-max-nr");
    uint64_t used = proc_number("/proc/sys/fs/aio-nr");
    uint64_t left = limit > used ? limit - used : 0, wanted = (uint64_t)depth * states;

    ret->memory_bytes =
        wanted * (sizeof(struct iocb) + 4 * sizeof(struct io_event) + 192);
    if (limit == 0)
        return;
    ret->max_depth = left / states > UINT32_MAX ? UINT32_MAX : (uint32_t)(left / states);
    if (left < wanted)
        snprintf(ret->reason, sizeof(ret->reason),
                 "fs.aio-max-nr is %llu and %llu are in use: depth %llu needs sysctl -w "
                 "fs.aio-max-nr=%llu or more",
                 (unsigned long long)limit, (unsigned long long)used,
                 (unsigned long long)wanted, (unsigned long long)(used + wanted));
}

static void libaio_close(void *opaque)
{
    struct libaio_state *state = opaque;

    if (!state)
        return;
    /* Waits for what is in flight: no buffer is written to afterwards. */
    if (state->context)
        io_destroy(state->context);
    free(state->local);
    free(state->iocbs);
    free(state->submissions);
    free(state->events);
    free(state);
}

static int setup_failed(const struct engine_env *env, int err)
{
    struct engine_capacity capacity = {0};

    libaio_capacity(NULL, env->depth, 1, &capacity);
    if (err == -EAGAIN && capacity.reason[0])
        return diag_set(env->diag, err, "engine libaio: %s", capacity.reason);
    return diag_errno(env->diag, err, "engine libaio: io_setup for depth %u", env->depth);
}

static int libaio_open(const void *opaque_conf, const struct engine_env *env, void **ret_state)
{
    const struct libaio_conf *conf = opaque_conf;
    struct libaio_state *state = calloc(1, sizeof(*state));
    struct aio_ring *ring;
    int err = -ENOMEM;

    if (!state)
        return diag_errno(env->diag, -ENOMEM, "engine libaio");
    state->depth = env->depth;
    state->local = calloc(env->depth, sizeof(state->local[0]));
    state->iocbs = calloc(env->depth, sizeof(state->iocbs[0]));
    state->submissions = calloc(env->batch, sizeof(state->submissions[0]));
    state->events = calloc(env->depth, sizeof(state->events[0]));
    if (!state->local || !state->iocbs || !state->submissions || !state->events) {
        diag_errno(env->diag, err, "engine libaio");
        goto out;
    }
    err = io_setup((int)env->depth, &state->context);
    if (err) {
        state->context = NULL;
        err = setup_failed(env, err);
        goto out;
    }
    ring = (struct aio_ring *)state->context;
    if (conf->user_reap && ring->magic == AIO_RING_MAGIC && ring->incompat_features == 0) {
        state->ring = ring;
        snprintf(env->granted, env->granted_size, "user_reap");
    } else if (conf->user_reap) {
        *env->ret_downgraded = true;
        diag_note(env->diag, "engine libaio: the completion ring is not laid out as known: "
                             "io_getevents is used");
    }
    *ret_state = state;
    state = NULL;
    err = 0;
out:
    libaio_close(state);
    return err;
}

/* io_submit has no order between ops: the flush before such a write is a blocking call. */
static bool preflush(const struct engine_op *op)
{
    return op->kind == TRACE_WRITE && (op->flags & TRACE_F_PREFLUSH);
}

/* 0, or the op's result when io_submit cannot express it. */
static int prepare(struct iocb *iocb, struct engine_op *op)
{
    bool append = op->flags & TRACE_F_APPEND;

    memset(iocb, 0, sizeof(*iocb));
    iocb->data = op;
    iocb->aio_fildes = op->fd;
    if (op->kind == TRACE_FSYNC || op->kind == TRACE_FDATASYNC) {
        iocb->aio_lio_opcode = op->kind == TRACE_FSYNC ? IO_CMD_FSYNC : IO_CMD_FDSYNC;
        return 0;
    }
    if (op->offset == TRACE_UNKNOWN_U64 && !(append && op->kind == TRACE_WRITE))
        return -EINVAL;
    if (preflush(op) && fdatasync(op->fd) < 0)
        return -errno;
    iocb->aio_lio_opcode = op->kind == TRACE_READ ? IO_CMD_PREAD : IO_CMD_PWRITE;
    iocb->aio_rw_flags = (unsigned int)blocking_rwf(op);
    iocb->u.c.buf = op->buffer;
    iocb->u.c.nbytes = op->length;
    iocb->u.c.offset = op->offset == TRACE_UNKNOWN_U64 ? 0 : (long long)op->offset;
    return 0;
}

static void refuse(struct libaio_state *state, struct engine_op *op, int error)
{
    op->result = error;
    state->local[state->local_count++] = op;
}

/* Hands over submissions[0 .. count-1]; returns how many were taken, by the kernel or refused.
 */
static unsigned int hand_over(struct libaio_state *state, unsigned int count)
{
    unsigned int taken = 0;
    int n;

    while (taken < count) {
        n = io_submit(state->context, (long)(count - taken), state->submissions + taken);
        if (n > 0) {
            state->in_kernel += (unsigned int)n;
            taken += (unsigned int)n;
        } else if (n == -EINTR) {
            continue;
        } else if (n == 0 || (n == -EAGAIN && state->in_kernel > 0)) {
            break;
        } else {
            /* It is about the first of them: EBADF, EINVAL, EFAULT. */
            refuse(state, state->submissions[taken]->data, n);
            taken++;
        }
    }
    return taken;
}

static int libaio_submit(void *opaque, struct engine_op **ops, unsigned int count)
{
    struct libaio_state *state = opaque;
    unsigned int taken = 0, prepared;
    bool flushed = false;
    int err;

    /* A flush blocks: it is the first thing a call does, or is left to the next, and the ops
     * after it are too. So each has the stamp of the call that really carried it. */
    while (taken < count && !flushed) {
        err = 0;
        for (prepared = 0; taken + prepared < count && !flushed; prepared++) {
            struct engine_op *op = ops[taken + prepared];
            struct iocb *iocb = &state->iocbs[op->slot_index];

            flushed = preflush(op);
            if (flushed && taken + prepared > 0)
                break;
            err = prepare(iocb, op);
            if (err)
                break;
            state->submissions[prepared] = iocb;
        }
        if (prepared > 0) {
            unsigned int handed = hand_over(state, prepared);

            taken += handed;
            if (handed < prepared)
                break;
        }
        if (err)
            refuse(state, ops[taken++], err);
    }
    return taken > 0 ? (int)taken : -EAGAIN;
}

static void event_done(const struct io_event *event, struct engine_op **done)
{
    struct engine_op *op = event->data;

    /* res is an unsigned long that carries a long. */
    op->result = (int64_t)(long)event->res;
    *done = op;
}

static unsigned int ring_reap(struct libaio_state *state, struct engine_op **done,
                              unsigned int max)
{
    struct aio_ring *ring = state->ring;
    uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
    unsigned int count = 0;

    while (count < max) {
        /* The kernel writes the event, then the tail. */
        if (head == __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE))
            break;
        event_done(&ring->events[head], &done[count++]);
        head = head + 1 == ring->slots ? 0 : head + 1;
    }
    /* The events must be read before the kernel may write there again. */
    if (count > 0)
        __atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
    return count;
}

static int kernel_reap(struct libaio_state *state, struct engine_op **done, unsigned int min,
                       unsigned int max, uint64_t timeout_ns)
{
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
                               .tv_nsec = (long)(timeout_ns % 1000000000u)};
    int n = io_getevents(state->context, (long)min, (long)max, state->events,
                         timeout_ns == UINT64_MAX ? NULL : &timeout);

    if (n == -EINTR)
        return 0;
    for (int i = 0; i < n; i++)
        event_done(&state->events[i], &done[i]);
    return n;
}

static int libaio_reap(void *opaque, struct engine_op **done, unsigned int min,
                       unsigned int max, uint64_t timeout_ns)
{
    struct libaio_state *state = opaque;
    unsigned int count = 0, got;
    int n;

    while (state->local_count > 0 && count < max)
        done[count++] = state->local[--state->local_count];
    if (state->ring) {
        got = ring_reap(state, done + count, max - count);
        state->in_kernel -= got;
        count += got;
    }
    if (count >= min && (state->ring || count == max))
        return (int)count;
    if (timeout_ns == 0 && state->ring)
        return (int)count;
    n = kernel_reap(state, done + count, count < min ? min - count : 0, max - count,
                    timeout_ns);
    if (n < 0)
        return n;
    state->in_kernel -= (unsigned int)n;
    return (int)(count + (unsigned int)n);
}

#endif

const struct engine engine_libaio = {
    .name = "libaio",
    .summary = "Linux native AIO: io_submit batches, completions reaped in user space",
    .help =
        "Ops with flags use RWF_ flags. fsync and fdatasync are asynchronous ops too. An op "
        "without an offset gives EINVAL unless it appends. The flush before a write with "
        "preflush "
        "is an fdatasync at submission. On "
        "buffered files the kernel executes the op inside io_submit. The depth of all "
        "workers together is limited by fs.aio-max-nr.",
    .opts = libaio_opts,
    .conf_size = sizeof(struct libaio_conf),
    .ops = AIO_OPS,
#if HAVE_LIB
    .open = libaio_open,
    .submit = libaio_submit,
    .reap = libaio_reap,
    .close = libaio_close,
    .capacity = libaio_capacity,
#else
    .unavailable = "built without libaio",
#endif
};
