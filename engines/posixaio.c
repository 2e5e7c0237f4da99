/* SPDX-License-Identifier: MIT */
/*
 * POSIX AIO as the C library does it: its own threads, aio_suspend to wait.
 */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engines/engine.h"
#include "traces/diag.h"

#if defined(__SANITIZE_THREAD__)
#define TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN 1
#endif
#endif

/* Idle threads of the C library end after so long; a replay's gaps are shorter. */
#define IDLE_S 3600

struct posixaio_conf {
    uint64_t threads;
    uint64_t requests;
    bool prestart;
};

#define FIELD(name) offsetof(struct posixaio_conf, name)
static const struct opt posixaio_opts[] = {
    {"threads", 0, OPT_COUNT, FIELD(threads), .arg = "N", .def = "20", .min = 1, .max = 4096,
     .help = "most threads of the C library's pool, for the whole process (aio_init)"},
    {"requests", 0, OPT_COUNT, FIELD(requests), .arg = "N", .def = "0", .max = 65536,
     .help = "requests expected at once (aio_init's aio_num); 0 = the depth"},
    {"prestart", 0, OPT_FLAG, FIELD(prestart), .def = "1",
     .help = "start the threads before the run, so that the first ops do not pay for it"},
    {0}};
#undef FIELD

struct posixaio_state {
    unsigned int count; /* in flight with the C library, oldest first */
    struct engine_op **ops;
    const struct aiocb **waits; /* waits[i] is the control block of ops[i] */
    unsigned int local_count;   /* refused at submission */
    struct engine_op **local;
    struct aiocb *blocks; /* one a slot */
};

/* ---- the process's pool ----------------------------------------------------------------- */

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t pool_threads; /* what aio_init was given; 0 = not yet */

/*
 * Makes the pool start count threads: each reads an empty pipe, which takes a thread of its
 * own, until all have one.
 */
static int pool_prestart(unsigned int count, struct diag *diag)
{
    int(*pipes)[2] = calloc(count, sizeof(pipes[0]));
    struct aiocb *blocks = calloc(count, sizeof(blocks[0]));
    char *bytes = calloc(count, 1);
    unsigned int started = 0;
    int err = pipes && blocks && bytes ? 0 : -ENOMEM;

    while (!err && started < count) {
        if (pipe2(pipes[started], O_CLOEXEC) < 0) {
            err = -errno;
            break;
        }
        blocks[started].aio_fildes = pipes[started][0];
        blocks[started].aio_buf = &bytes[started];
        blocks[started].aio_nbytes = 1;
        if (aio_read(&blocks[started]) < 0)
            err = -errno;
        started++;
    }
    for (unsigned int i = 0; i < started; i++) {
        const struct aiocb *wait = &blocks[i];

        if (write(pipes[i][1], "", 1) != 1 && !err)
            err = -errno;
        while (aio_error(wait) == EINPROGRESS)
            aio_suspend(&wait, 1, NULL);
        aio_return(&blocks[i]);
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
    free(pipes);
    free(blocks);
    free(bytes);
    return err ? diag_errno(diag, err, "engine posixaio: starting %u threads", count) : 0;
}

/* The pool is the process's: the first to open sets it up, the others share it. */
static int pool_setup(const struct posixaio_conf *conf, const struct engine_env *env)
{
    struct aioinit init = {
        .aio_threads = (int)conf->threads,
        .aio_num = (int)(conf->requests ? conf->requests : env->depth),
        .aio_idle_time = IDLE_S,
    };
    int err = 0;

    pthread_mutex_lock(&pool_lock);
    if (pool_threads == 0) {
        aio_init(&init);
        if (conf->prestart)
            err = pool_prestart((unsigned int)conf->threads, env->diag);
        pool_threads = conf->threads;
    } else if (pool_threads != conf->threads) {
        *env->ret_downgraded = true;
        diag_note(env->diag,
                  "engine posixaio: the process's pool has %llu threads already, not %llu",
                  (unsigned long long)pool_threads, (unsigned long long)conf->threads);
    }
    pthread_mutex_unlock(&pool_lock);
    return err;
}

/* ---- the engine ------------------------------------------------------------------------- */

static void posixaio_close(void *opaque)
{
    struct posixaio_state *state = opaque;

    if (!state)
        return;
    for (unsigned int i = 0; i < state->count; i++) {
        struct aiocb *block = &state->blocks[state->ops[i]->slot_index];

        /* One that is being executed cannot be cancelled: it is waited for. */
        aio_cancel(block->aio_fildes, block);
        while (aio_error(block) == EINPROGRESS)
            aio_suspend(&state->waits[i], 1, NULL);
        aio_return(block);
    }
    free(state->ops);
    free(state->waits);
    free(state->local);
    free(state->blocks);
    free(state);
}

static int posixaio_open(const void *conf, const struct engine_env *env, void **ret_state)
{
    struct posixaio_state *state = calloc(1, sizeof(*state));
    int err = -ENOMEM;

    if (!state)
        return diag_errno(env->diag, -ENOMEM, "engine posixaio");
    state->ops = calloc(env->depth, sizeof(state->ops[0]));
    state->waits = calloc(env->depth, sizeof(state->waits[0]));
    state->local = calloc(env->depth, sizeof(state->local[0]));
    state->blocks = calloc(env->depth, sizeof(state->blocks[0]));
    if (!state->ops || !state->waits || !state->local || !state->blocks)
        diag_errno(env->diag, err, "engine posixaio");
    else
        err = pool_setup(conf, env);
    if (err) {
        posixaio_close(state);
        return err;
    }
    *ret_state = state;
    return 0;
}

/* 0 or -errno: queued or refused. */
static int enqueue(struct aiocb *block, const struct engine_op *op)
{
    int result;

    /* The C library has no order between requests: the flush is a blocking call. */
    if (op->kind == TRACE_WRITE && (op->flags & TRACE_F_PREFLUSH) && fdatasync(op->fd) < 0)
        return -errno;
    memset(block, 0, sizeof(*block));
    block->aio_fildes = op->fd;
    block->aio_buf = op->buffer;
    block->aio_nbytes = op->length;
    block->aio_offset = (off_t)op->offset;
    block->aio_sigevent.sigev_notify = SIGEV_NONE;
    switch (op->kind) {
    case TRACE_READ: result = aio_read(block); break;
    case TRACE_WRITE: result = aio_write(block); break;
    case TRACE_FSYNC: result = aio_fsync(O_SYNC, block); break;
    default: result = aio_fsync(O_DSYNC, block); break;
    }
    return result < 0 ? -errno : 0;
}

static int posixaio_submit(void *opaque, struct engine_op **ops, unsigned int count)
{
    struct posixaio_state *state = opaque;

    for (unsigned int i = 0; i < count; i++) {
        struct aiocb *block = &state->blocks[ops[i]->slot_index];
        int err = enqueue(block, ops[i]);

        if (err == -EAGAIN && (state->count > 0 || i > 0))
            return i > 0 ? (int)i : -EAGAIN;
        if (err) {
            ops[i]->result = err;
            state->local[state->local_count++] = ops[i];
            continue;
        }
        state->ops[state->count] = ops[i];
        state->waits[state->count++] = block;
    }
    return (int)count;
}

/* Takes what is finished, keeping the rest in order. */
static unsigned int take_finished(struct posixaio_state *state, struct engine_op **done,
                                  unsigned int max)
{
    unsigned int count = 0, kept = 0, i;
    int err;

    while (state->local_count > 0 && count < max)
        done[count++] = state->local[--state->local_count];
    for (i = 0; i < state->count; i++) {
        struct engine_op *op = state->ops[i];

        err = count < max ? aio_error(state->waits[i]) : EINPROGRESS;
        if (err == EINPROGRESS) {
            if (count == 0 && kept == i) {
                kept++;
                continue; /* nothing to move yet */
            }
            state->ops[kept] = op;
            state->waits[kept++] = state->waits[i];
            continue;
        }
        op->result = aio_return(&state->blocks[op->slot_index]);
        if (err)
            op->result = -err;
        done[count++] = op;
    }
    state->count = kept;
    return count;
}

static int posixaio_reap(void *opaque, struct engine_op **done, unsigned int min,
                         unsigned int max, uint64_t timeout_ns)
{
    struct posixaio_state *state = opaque;
    bool timed = timeout_ns != UINT64_MAX;
    uint64_t deadline_ns = timed ? clock_now_ns(&clock_real) + timeout_ns : 0, now_ns;
    unsigned int count = take_finished(state, done, max);
    struct timespec left;

    while (count < min) {
        if (timed) {
            now_ns = clock_now_ns(&clock_real);
            if (now_ns >= deadline_ns)
                break;
            left.tv_sec = (time_t)((deadline_ns - now_ns) / 1000000000u);
            left.tv_nsec = (long)((deadline_ns - now_ns) % 1000000000u);
        }
        if (aio_suspend(state->waits, (int)state->count, timed ? &left : NULL) < 0 &&
            errno != EAGAIN)
            break; /* a signal: the caller looks at its flags */
        count += take_finished(state, done + count, max - count);
    }
    return (int)count;
}

const struct engine engine_posixaio = {
    .name = "posixaio",
    .summary = "POSIX AIO of the C library: its threads, aio_suspend to wait",
    .help =
        "glibc executes the requests of one descriptor one after another, whatever the depth: "
        "with one file this is a single thread. Its pool belongs to the process, so all "
        "workers share the threads. Flags of ops cannot be expressed, but for preflush (an "
        "fdatasync at submission); an op without an offset "
        "gives EINVAL.",
#ifdef TSAN
    .unavailable = "built with ThreadSanitizer, whose runtime fails in the C library's threads",
#endif
    .opts = posixaio_opts,
    .conf_size = sizeof(struct posixaio_conf),
    .ops = ENGINE_OPS_RW | ENGINE_OPS_SYNC,
    .open = posixaio_open,
    .submit = posixaio_submit,
    .reap = posixaio_reap,
    .close = posixaio_close,
};
