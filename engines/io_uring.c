/* SPDX-License-Identifier: MIT */
/*
 * io_uring at its best: registered files, buffers and ring, DEFER_TASKRUN, one call to submit
 * and wait; SQPOLL and IOPOLL on request. Each feature is tried at run time and its absence is
 * said.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engines/blocking.h"
#include "engines/engine.h"
#include "traces/diag.h"
#include "traces/units.h"

#if HAVE_LIB
#include <sched.h>
#include <unistd.h>

#include "engines/ring.h"
#include "engines/sqe.h"
#endif

#define URING_OPS                                                                              \
    (ENGINE_OPS_RW | ENGINE_OPS_SYNC | ENGINE_OP(TRACE_FLUSH) | ENGINE_OP(TRACE_SYNC_RANGE) |  \
     ENGINE_OP(TRACE_DISCARD) | ENGINE_OP(TRACE_WRITE_ZEROES) | ENGINE_OP(TRACE_FALLOCATE) |   \
     ENGINE_OP(TRACE_READAHEAD))

struct uring_conf {
    bool use_files, use_buffers, use_registered;
    bool defer, coop, async, vectored;
    bool sqpoll, iopoll;
    uint64_t pinned_bytes;
    uint64_t sqpoll_idle_ns;
    const char *sqpoll_cpu;
};

#define FIELD(name) offsetof(struct uring_conf, name)
static const struct opt uring_opts[] = {
    {"register", 0, OPT_FLAG, FIELD(use_registered), .def = "1",
     .help = "register files, buffers and the ring itself; 0 = none of them"},
    {"files", 0, OPT_FLAG, FIELD(use_files), .def = "1", .help = "register the files"},
    {"buffers", 0, OPT_FLAG, FIELD(use_buffers), .def = "1",
     .help = "register the buffers (pins them: limited by ulimit -l without CAP_IPC_LOCK)"},
    {"pinned", 0, OPT_SIZE, FIELD(pinned_bytes), .arg = "SIZE", .def = "64m", .min = 4096,
     .help = "most memory to register as buffers; slots beyond it, last to be used, go without"},
    {"defer", 0, OPT_FLAG, FIELD(defer), .def = "1",
     .help = "SINGLE_ISSUER and DEFER_TASKRUN: completions are worked on when asked for"},
    {"coop", 0, OPT_FLAG, FIELD(coop), .def = "1",
     .help = "COOP_TASKRUN: no interrupt of the worker for a completion"},
    {"async", 0, OPT_FLAG, FIELD(async),
     .help = "hand every op to a kernel worker thread "
             "(IOSQE_ASYNC)"},
    {"vectored", 0, OPT_FLAG, FIELD(vectored),
     .help = "READV and WRITEV, as kernels before 5.6 need; no registered buffers"},
    {"sqpoll", 0, OPT_FLAG, FIELD(sqpoll),
     .help = "a kernel thread takes submissions without a call; an op counts as issued when it "
             "is published"},
    {"sqpoll-idle", 0, OPT_TIME, FIELD(sqpoll_idle_ns), .arg = "TIME", .def = "50ms",
     .help = "how long that thread spins without work before it sleeps"},
    {"sqpoll-cpu", 0, OPT_STRING, FIELD(sqpoll_cpu), .arg = "CPU",
     .help = "CPU to bind that thread to"},
    {"iopoll", 0, OPT_FLAG, FIELD(iopoll),
     .help = "poll the device for completions: direct reads and writes only, the device needs "
             "poll queues; every other op goes through a second ring"},
    {0}};
#undef FIELD

#if HAVE_LIB

#define MAX_FILES        32768u
#define MAX_COMPLETIONS  65536u
#define MAX_BUFFERS      1024u
#define MAX_BUFFER_BYTES ((uint64_t)1 << 30) /* the kernel's limit for one */

struct uring_state {
    struct ring main;
    struct ring other; /* fd -1, or with iopoll the ring for what cannot be polled */
    const struct engine_env *env;
    struct sqe_form form;
    unsigned int local_count; /* ops executed or refused in submit */
    struct engine_op **local;
};

/* ---- features --------------------------------------------------------------------------- */

static void downgrade(const struct engine_env *env, const char *what, const char *why)
{
    *env->ret_downgraded = true;
    diag_note(env->diag, "engine io_uring: %s not used: %s", what, why);
}

static void grant(const struct engine_env *env, const char *what)
{
    size_t used = env->granted_size ? strlen(env->granted) : 0;

    if (used + strlen(what) + 2 <= env->granted_size)
        snprintf(env->granted + used, env->granted_size - used, "%s%s", used ? "," : "", what);
}

static void features_report(const struct ring *ring, const struct engine_env *env,
                            unsigned int wanted)
{
    for (size_t i = 0; i < RING_STEP_COUNT; i++) {
        if (ring->setup_flags & ring_steps[i].flag)
            grant(env, ring_steps[i].name);
        else if ((wanted & ring_steps[i].flag) && ring_steps[i].matters)
            downgrade(env, ring_steps[i].name, "this kernel does not have it");
    }
}

static int probe_ops(struct uring_state *state, const struct uring_conf *conf)
{
    struct io_uring_probe *probe = calloc(1, sizeof(*probe) + 256 * sizeof(probe->ops[0]));

    if (!probe)
        return diag_errno(state->env->diag, -ENOMEM, "engine io_uring");
    /* Came with 5.6, as READ and WRITE did. */
    if (io_uring_register((unsigned int)state->main.fd, IORING_REGISTER_PROBE, probe, 256) >=
        0) {
        state->form.has_read = !conf->vectored && probe->last_op >= IORING_OP_WRITE;
        state->form.has_fallocate = probe->last_op >= IORING_OP_FALLOCATE;
        state->form.has_fadvise = probe->last_op >= IORING_OP_FADVISE;
    }
    free(probe);
    return 0;
}

static int register_files(struct uring_state *state, struct ring *ring)
{
    const struct engine_env *env = state->env;
    int *fds, err;

    if (env->target_count > MAX_FILES)
        return -EMFILE;
    fds = calloc(env->target_count, sizeof(fds[0]));
    if (!fds)
        return -ENOMEM;
    for (uint32_t i = 0; i < env->target_count; i++)
        fds[i] = env->targets[i].fd;
    err = io_uring_register((unsigned int)ring->fd, IORING_REGISTER_FILES, fds,
                            env->target_count);
    free(fds);
    return err < 0 ? err : 0;
}

static void use_files(struct uring_state *state)
{
    const struct engine_env *env = state->env;
    int err;

    if (!env->targets_fixed || env->target_count == 0)
        return; /* files come and go in this replay: nothing to give up */
    err = register_files(state, &state->main);
    if (!err && state->other.fd >= 0)
        err = register_files(state, &state->other);
    if (err) {
        downgrade(env, "registered files", strerror(-err));
        return;
    }
    state->form.fixed_files = true;
    state->form.flags |= IOSQE_FIXED_FILE;
    grant(env, "files");
}

/* The area in as few buffers as the kernel's size limit allows, cut between slots. */
static void use_buffers(struct uring_state *state, uint64_t pinned_bytes)
{
    const struct engine_env *env = state->env;
    uint64_t total = env->buffer_bytes;
    struct iovec iovs[MAX_BUFFERS];
    unsigned int count = 0;
    uint64_t at = 0, bytes;
    char need[UNITS_TEXT], why[160];
    int err;

    if (!env->buffers || env->buffer_stride == 0 || env->buffer_stride > MAX_BUFFER_BYTES)
        return;
    if (total > pinned_bytes)
        total = pinned_bytes / env->buffer_stride * env->buffer_stride;
    if (total == 0)
        total = env->buffer_stride;
    state->form.chunk_bytes = MAX_BUFFER_BYTES / env->buffer_stride * env->buffer_stride;
    for (; at < total && count < MAX_BUFFERS; at += bytes, count++) {
        bytes = total - at;
        if (bytes > state->form.chunk_bytes)
            bytes = state->form.chunk_bytes;
        iovs[count] = (struct iovec){.iov_base = (char *)env->buffers + at, .iov_len = bytes};
    }
    err = at < total ? -E2BIG
                     : io_uring_register((unsigned int)state->main.fd, IORING_REGISTER_BUFFERS,
                                         iovs, count);
    if (err < 0) {
        snprintf(why, sizeof(why), "%s%s", units_size(total, need),
                 err == -ENOMEM
                     ? " do not fit the memory lock limit (ulimit -l, or CAP_IPC_LOCK)"
                     : ": ");
        if (err != -ENOMEM)
            snprintf(why + strlen(why), sizeof(why) - strlen(why), "%s", strerror(-err));
        downgrade(env, "registered buffers", why);
        return;
    }
    state->form.buffers = env->buffers;
    state->form.buffer_bytes = total;
    state->form.fixed_buffers = true;
    snprintf(why, sizeof(why), "buffers:%llu/%llu",
             (unsigned long long)(total / env->buffer_stride),
             (unsigned long long)(env->buffer_bytes / env->buffer_stride));
    grant(env, total == env->buffer_bytes ? "buffers" : why);
}

/* ---- open and close --------------------------------------------------------------------- */

static void uring_drain(struct ring *ring)
{
    struct engine_op *done[64];

    while (ring->fd >= 0 && ring->in_flight > 0) {
        if (ring_wait(ring, 1, UINT64_MAX) < 0)
            break;
        ring_reap(ring, done, 64);
    }
}

static void uring_close(void *opaque)
{
    struct uring_state *state = opaque;

    if (!state)
        return;
    /* No buffer may be written to after close: the kernel ends what is in flight. */
    uring_drain(&state->main);
    uring_drain(&state->other);
    ring_release(&state->main);
    ring_release(&state->other);
    free(state->local);
    free(state->form.iovs);
    free(state);
}

static int params_of(const struct uring_conf *conf, const struct engine_env *env,
                     struct io_uring_params *params, unsigned int *ret_wanted)
{
    unsigned int wanted = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL |
                          RING_SETUP_NO_SQARRAY;
    uint64_t cpu;

    if (conf->sqpoll) {
        wanted |= IORING_SETUP_SQPOLL;
        params->sq_thread_idle = (unsigned int)(conf->sqpoll_idle_ns / 1000000u);
        if (conf->sqpoll_cpu) {
            if (units_parse_count(conf->sqpoll_cpu, &cpu) || cpu > UINT32_MAX)
                return diag_set(env->diag, -EINVAL,
                                "engine io_uring: sqpoll-cpu: '%s' is not a "
                                "CPU number",
                                conf->sqpoll_cpu);
            wanted |= IORING_SETUP_SQ_AFF;
            params->sq_thread_cpu = (unsigned int)cpu;
        }
    } else {
        if (conf->coop)
            wanted |= IORING_SETUP_COOP_TASKRUN;
        if (conf->defer)
            wanted |= IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
        if (conf->coop || conf->defer)
            wanted |= IORING_SETUP_TASKRUN_FLAG;
    }
    if (conf->iopoll)
        wanted |= IORING_SETUP_IOPOLL;
    *ret_wanted = wanted;
    return 0;
}

static int open_failed(const struct engine_env *env, int err)
{
    if (err == -ENOSYS)
        return diag_set(env->diag, err, "engine io_uring: this kernel has no io_uring");
    if (err == -EPERM)
        return diag_set(env->diag, err,
                        "engine io_uring: not permitted (kernel.io_uring_disabled, "
                        "or a seccomp filter)");
    if (err == -ENOMEM)
        return diag_set(env->diag, err,
                        "engine io_uring: no memory for rings of depth %u, or "
                        "the memory lock limit (ulimit -l) is met",
                        env->depth);
    return diag_errno(env->diag, err, "engine io_uring: ring for depth %u", env->depth);
}

/* A device without poll queues refuses the first polled read: said before the run, not in it.
 */
static int iopoll_try(struct uring_state *state)
{
    const struct engine_env *env = state->env;
    struct ring *ring = &state->main;
    struct engine_op op = {0}, *done;
    void *buffer;
    int n;

    if (env->target_count == 0 || env->targets[0].fd < 0)
        return 0;
    buffer = aligned_alloc(4096, 4096);
    if (!buffer)
        return diag_errno(env->diag, -ENOMEM, "engine io_uring");
    memset(&ring->sqes[0], 0, sizeof(ring->sqes[0]));
    io_uring_prep_read(&ring->sqes[0], env->targets[0].fd, buffer, 4096, 0);
    ring->sqes[0].user_data = (uint64_t)(uintptr_t)&op;
    ring->tail++;
    n = ring_publish(ring, 1, true, 1, UINT64_MAX);
    while (n > 0 && ring_reap(ring, &done, 1) == 0)
        ring_wait(ring, 1, UINT64_MAX);
    free(buffer);
    if (n < 0)
        return diag_errno(env->diag, n, "engine io_uring: iopoll");
    if (op.result == -EOPNOTSUPP)
        return diag_set(env->diag, -EOPNOTSUPP,
                        "engine io_uring: iopoll: %s is on a device "
                        "without poll queues (nvme: module option poll_queues)",
                        env->targets[0].path);
    return 0;
}

static int open_rings(struct uring_state *state, const struct uring_conf *conf)
{
    const struct engine_env *env = state->env;
    struct io_uring_params params = {0}, plain = {0};
    /* The polling thread frees entries only after their ops may have completed: twice the depth
     * leaves room for the next ops meanwhile. */
    unsigned int wanted = 0, entries = conf->sqpoll ? 2 * env->depth : env->batch + 1;
    /* A write with preflush completes twice. */
    unsigned int completions =
        env->writes && 2 * env->depth <= MAX_COMPLETIONS ? 2 * env->depth : env->depth;
    int err = params_of(conf, env, &params, &wanted);

    if (err)
        return err;
    if (conf->iopoll && !env->all_direct)
        return diag_set(env->diag, -EINVAL,
                        "engine io_uring: iopoll needs direct I/O on every "
                        "target (--direct)");
    err = ring_init(&state->main, entries, completions, wanted, &params);
    if (err)
        return open_failed(env, err);
    if (conf->iopoll) {
        err = ring_init(&state->other, env->batch + 1, completions,
                        wanted & ~(unsigned int)(IORING_SETUP_IOPOLL | IORING_SETUP_SQPOLL |
                                                 IORING_SETUP_SQ_AFF),
                        &plain);
        if (err)
            return open_failed(env, err);
    }
    features_report(&state->main, env, wanted);
    if (conf->sqpoll)
        grant(env, "sqpoll");
    if (conf->iopoll) {
        grant(env, "iopoll");
        err = iopoll_try(state);
    }
    return err;
}

static int uring_open(const void *opaque_conf, const struct engine_env *env, void **ret_state)
{
    const struct uring_conf *conf = opaque_conf;
    struct uring_state *state = calloc(1, sizeof(*state));
    int err = -ENOMEM;

    if (!state)
        return diag_errno(env->diag, -ENOMEM, "engine io_uring");
    state->env = env;
    state->form.env = env;
    state->main.fd = state->other.fd = -1;
    state->local = calloc(env->depth, sizeof(state->local[0]));
    state->form.iovs = calloc(env->depth, sizeof(state->form.iovs[0]));
    if (!state->local || !state->form.iovs) {
        diag_errno(env->diag, err, "engine io_uring");
        goto out;
    }
    err = open_rings(state, conf);
    if (!err)
        err = probe_ops(state, conf);
    if (err)
        goto out;
    if (conf->async)
        state->form.flags |= IOSQE_ASYNC;
    if (conf->use_registered) {
        ring_register_self(&state->main);
        if (state->other.fd >= 0)
            ring_register_self(&state->other);
        if (state->main.enter_flags)
            grant(env, "ring_fd");
    }
    if (conf->use_registered && conf->use_files)
        use_files(state);
    if (conf->use_registered && conf->use_buffers && !conf->vectored)
        use_buffers(state, conf->pinned_bytes);
    err = 0;
    if (conf->sqpoll && !state->form.fixed_files &&
        !(state->main.features & IORING_FEAT_SQPOLL_NONFIXED))
        err = diag_set(env->diag, -EINVAL,
                       "engine io_uring: sqpoll before Linux 5.11 needs "
                       "registered files");
    if (!err) {
        *ret_state = state;
        state = NULL;
    }
out:
    uring_close(state);
    return err;
}

/* ---- submission ------------------------------------------------------------------------- */

static bool polled(const struct uring_state *state, const struct engine_op *op)
{
    return state->other.fd < 0 || op->kind == TRACE_READ || op->kind == TRACE_WRITE;
}

static void finish_locally(struct uring_state *state, struct engine_op *op)
{
    op->result = blocking_run(op, state->env);
    state->local[state->local_count++] = op;
}

/* What one call hands over: ops that go the same way, and the entries they take. */
struct run {
    struct ring *ring; /* NULL: executed here already */
    unsigned int ops;
    unsigned int entries;
};

static bool preflush(const struct engine_op *op)
{
    return op->kind == TRACE_WRITE && (op->flags & TRACE_F_PREFLUSH);
}

static struct io_uring_sqe *ring_next(struct ring *ring)
{
    return &ring->sqes[ring->tail & ring->sq_mask];
}

/* Room for need entries; with nothing in flight the caller could not reap first. */
static unsigned int wait_for_space(const struct ring *ring, unsigned int need)
{
    unsigned int space = ring_space(ring);

    while (space < need && ring->in_flight == 0) {
        sched_yield();
        space = ring_space(ring);
    }
    return space;
}

/* A write with preflush is a run of its own. */
static void run_flushed(struct uring_state *state, struct engine_op *op, struct run *run)
{
    struct ring *ring = run->ring;
    bool can_link = !(ring->setup_flags & IORING_SETUP_IOPOLL);

    if (wait_for_space(ring, 2) < 2)
        return;
    run->ops = 1;
    if (can_link) {
        sqe_fill_flush(&state->form, ring_next(ring), op);
        ring->tail++;
        run->entries++;
    } else if (fdatasync(op->fd) < 0) {
        op->result = -errno;
        state->local[state->local_count++] = op;
        run->ring = NULL;
        return;
    }
    (void)sqe_fill(&state->form, ring_next(ring), op); /* a write is never refused */
    ring->tail++;
    run->entries++;
}

/* Prepares the run that ops[0 .. count-1] begin with; no ops = no room. */
static struct run run_prepare(struct uring_state *state, struct engine_op **ops,
                              unsigned int count)
{
    struct run run = {.ring = polled(state, ops[0]) ? &state->main : &state->other};
    struct ring *ring = run.ring;
    unsigned int space;

    if (preflush(ops[0])) {
        run_flushed(state, ops[0], &run);
        return run;
    }
    space = wait_for_space(ring, 1);
    while (run.ops < count && run.ops < space && !preflush(ops[run.ops]) &&
           polled(state, ops[run.ops]) == (ring == &state->main)) {
        if (sqe_fill(&state->form, ring_next(ring), ops[run.ops])) {
            if (run.ops == 0) {
                finish_locally(state, ops[0]);
                return (struct run){.ops = 1};
            }
            break;
        }
        ring->tail++;
        run.ops++;
    }
    run.entries = run.ops;
    return run;
}

/* How many ops of run were taken, or -errno. */
static int run_publish(const struct run *run, bool wait, unsigned int min, uint64_t timeout_ns)
{
    int n = ring_publish(run->ring, run->entries, wait, min, timeout_ns);

    if (run->entries == run->ops || n <= 0)
        return n;
    run->ring->in_flight--; /* the flush is no op */
    return n - 1;
}

/* The call that hands over the last op also waits for min completions, unless min is 0. */
static int submit_runs(struct uring_state *state, struct engine_op **ops, unsigned int count,
                       unsigned int min, uint64_t timeout_ns)
{
    unsigned int taken = 0;
    bool wait;
    int n;

    while (taken < count) {
        struct run run = run_prepare(state, ops + taken, count - taken);

        if (run.ops == 0)
            break;
        if (!run.ring) {
            taken += run.ops;
            continue;
        }
        /* Those executed here are complete: only the others can be waited for. */
        wait = min > state->local_count && taken + run.ops == count;
        n = run_publish(&run, wait, wait ? min - state->local_count : 0, timeout_ns);
        if (n < 0)
            return n;
        taken += (unsigned int)n;
        if ((unsigned int)n < run.ops)
            break;
    }
    return taken > 0 || count == 0 ? (int)taken : -EAGAIN;
}

static int uring_submit(void *opaque, struct engine_op **ops, unsigned int count)
{
    return submit_runs(opaque, ops, count, 0, UINT64_MAX);
}

/* ---- completion ------------------------------------------------------------------------- */

static unsigned int take_ready(struct uring_state *state, struct engine_op **done,
                               unsigned int max)
{
    unsigned int count = 0;

    while (state->local_count > 0 && count < max)
        done[count++] = state->local[--state->local_count];
    count += ring_reap(&state->main, done + count, max - count);
    if (state->other.fd >= 0)
        count += ring_reap(&state->other, done + count, max - count);
    return count;
}

/* Makes completions appear that need a call for it. 0 or -errno. */
static int look(struct uring_state *state)
{
    int err = ring_must_enter(&state->main) ? ring_wait(&state->main, 0, 0) : 0;

    if (err >= 0 && state->other.fd >= 0 && ring_must_enter(&state->other))
        err = ring_wait(&state->other, 0, 0);
    return err < 0 ? err : 0;
}

/* As ring_wait, on whichever ring has ops; with both busy neither may be slept on alone. */
static int wait_some(struct uring_state *state, unsigned int min, uint64_t timeout_ns)
{
    bool other = state->other.fd >= 0 && state->other.in_flight > 0;

    if (other && state->main.in_flight > 0)
        return look(state);
    return ring_wait(other ? &state->other : &state->main, min, timeout_ns);
}

static int uring_reap(void *opaque, struct engine_op **done, unsigned int min, unsigned int max,
                      uint64_t timeout_ns)
{
    struct uring_state *state = opaque;
    const struct clock *clock = state->env->clock;
    bool timed = timeout_ns != UINT64_MAX;
    uint64_t now_ns = 0, deadline_ns = 0;
    unsigned int count = take_ready(state, done, max);
    int err;

    if (count > 0 && count >= min)
        return (int)count;
    if (min == 0 || timeout_ns == 0) {
        err = look(state);
        return err ? err : (int)(count + take_ready(state, done + count, max - count));
    }
    if (timed) {
        now_ns = clock_now_ns(clock);
        deadline_ns = now_ns + timeout_ns;
    }
    while (count < min && (!timed || now_ns < deadline_ns)) {
        err = wait_some(state, min - count, timed ? deadline_ns - now_ns : UINT64_MAX);
        if (err < 0)
            return err;
        count += take_ready(state, done + count, max - count);
        if (err > 0)
            break;
        if (timed)
            now_ns = clock_now_ns(clock);
    }
    return (int)count;
}

static int uring_submit_reap(void *opaque, struct engine_op **ops, unsigned int count,
                             int *ret_taken, struct engine_op **done, unsigned int min,
                             unsigned int max, uint64_t timeout_ns)
{
    struct uring_state *state = opaque;
    bool one_call = state->other.fd < 0 && !(state->main.setup_flags & IORING_SETUP_IOPOLL) &&
                    (timeout_ns == UINT64_MAX || (state->main.features & IORING_FEAT_EXT_ARG));
    bool timed = timeout_ns != UINT64_MAX && timeout_ns > 0;
    uint64_t now_ns, deadline_ns = timed ? clock_now_ns(state->env->clock) + timeout_ns : 0;
    int taken = submit_runs(state, ops, count, one_call ? min : 0, timeout_ns);

    *ret_taken = taken;
    if (taken < 0 && taken != -EAGAIN)
        return taken;
    if (timed) {
        now_ns = clock_now_ns(state->env->clock);
        timeout_ns = now_ns < deadline_ns ? deadline_ns - now_ns : 0;
    }
    /* With all there already this makes no second call. */
    return uring_reap(state, done, min, max, timeout_ns);
}

static int uring_probe(char *reason, size_t reason_size)
{
    struct io_uring_params params = {0};
    int fd = io_uring_setup(1, &params);

    if (fd >= 0) {
        close(fd);
        return 0;
    }
    snprintf(reason, reason_size, "%s",
             fd == -ENOSYS  ? "this kernel has no io_uring"
             : fd == -EPERM ? "not permitted (kernel.io_uring_disabled, or a seccomp filter)"
                            : strerror(-fd));
    return fd;
}

static void uring_capacity(const void *conf, uint32_t depth, uint32_t states,
                           struct engine_capacity *ret)
{
    ret->memory_bytes =
        2ull * depth * states * (sizeof(struct io_uring_sqe) + sizeof(struct io_uring_cqe) + 256);
}

#endif

const struct engine engine_io_uring = {
    .name = "io_uring",
    .summary = "io_uring: registered files and buffers, one call to submit and wait",
    .help = "What the kernel grants of the features below is in the report. Ops with flags use "
            "RWF_ flags; a write with preflush is linked to a flush. Discards and zeroes of "
            "files are "
            "fallocate ops; those of block devices are ioctls executed at submission.",
    .opts = uring_opts,
    .conf_size = sizeof(struct uring_conf),
    .ops = URING_OPS,
#if HAVE_LIB
    .probe = uring_probe,
    .open = uring_open,
    .submit = uring_submit,
    .reap = uring_reap,
    .close = uring_close,
    .submit_reap = uring_submit_reap,
    .capacity = uring_capacity,
#else
    .unavailable = "built without liburing",
#endif
};
