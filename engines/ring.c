/* SPDX-License-Identifier: MIT */
#if HAVE_LIB

#include "engines/ring.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engines/engine.h"

/* Younger than the headers this may be built with. */
#define REGISTER_RING_FDS   20
#define UNREGISTER_RING_FDS 21

#define MAX_ENTRIES 32768u

void ring_release(struct ring *ring)
{
    struct io_uring_rsrc_update update = {0};

    if (ring->fd < 0)
        return;
    if (ring->enter_flags & IORING_ENTER_REGISTERED_RING) {
        update.offset = (unsigned int)ring->enter_fd;
        io_uring_register((unsigned int)ring->fd, UNREGISTER_RING_FDS, &update, 1);
    }
    if (ring->sqes)
        munmap(ring->sqes, ring->sqe_bytes);
    if (ring->cq_map && ring->cq_map != ring->sq_map)
        munmap(ring->cq_map, ring->cq_bytes);
    if (ring->sq_map)
        munmap(ring->sq_map, ring->sq_bytes);
    close(ring->fd);
    ring->fd = -1;
}

static void *ring_map_part(const struct ring *ring, size_t bytes, off_t offset)
{
    void *map =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, offset);

    return map == MAP_FAILED ? NULL : map;
}

static int ring_map(struct ring *ring, const struct io_uring_params *params)
{
    bool sq_array = !(params->flags & RING_SETUP_NO_SQARRAY);
    unsigned int *at;

    ring->sq_bytes =
        params->sq_off.array + (sq_array ? params->sq_entries * sizeof(unsigned) : 0);
    ring->cq_bytes = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
    ring->sqe_bytes = params->sq_entries * sizeof(struct io_uring_sqe);
    if ((params->features & IORING_FEAT_SINGLE_MMAP) && ring->cq_bytes > ring->sq_bytes)
        ring->sq_bytes = ring->cq_bytes;
    ring->sq_map = ring_map_part(ring, ring->sq_bytes, IORING_OFF_SQ_RING);
    ring->cq_map = params->features & IORING_FEAT_SINGLE_MMAP
                       ? ring->sq_map
                       : ring_map_part(ring, ring->cq_bytes, IORING_OFF_CQ_RING);
    ring->sqes = ring_map_part(ring, ring->sqe_bytes, IORING_OFF_SQES);
    if (!ring->sq_map || !ring->cq_map || !ring->sqes)
        return -ENOMEM;
    at = ring->sq_map;
    ring->sq_head = at + params->sq_off.head / sizeof(*at);
    ring->sq_tail = at + params->sq_off.tail / sizeof(*at);
    ring->sq_flags = at + params->sq_off.flags / sizeof(*at);
    ring->sq_mask = at[params->sq_off.ring_mask / sizeof(*at)];
    ring->sq_entries = params->sq_entries;
    ring->sq_array = sq_array ? at + params->sq_off.array / sizeof(*at) : NULL;
    /* Entry i of the index array is submission i, for ever. */
    for (unsigned int i = 0; sq_array && i < params->sq_entries; i++)
        ring->sq_array[i] = i;
    at = ring->cq_map;
    ring->cq_head = at + params->cq_off.head / sizeof(*at);
    ring->cq_tail = at + params->cq_off.tail / sizeof(*at);
    ring->cq_mask = at[params->cq_off.ring_mask / sizeof(*at)];
    ring->cqes = (struct io_uring_cqe *)((char *)ring->cq_map + params->cq_off.cqes);
    return 0;
}

const struct ring_step ring_steps[RING_STEP_COUNT] = {
    {RING_SETUP_NO_SQARRAY, "no_sqarray", false},        /* 6.6 */
    {IORING_SETUP_DEFER_TASKRUN, "defer_taskrun", true}, /* 6.1 */
    {IORING_SETUP_SINGLE_ISSUER, "single_issuer", true}, /* 6.0 */
    {IORING_SETUP_COOP_TASKRUN, "coop_taskrun", true},   /* 5.19 */
    {IORING_SETUP_TASKRUN_FLAG, "taskrun_flag", false},  /* 5.19 */
    {IORING_SETUP_SUBMIT_ALL, "submit_all", false},      /* 5.18 */
    {IORING_SETUP_CLAMP, "clamp", false},                /* 5.6 */
    {IORING_SETUP_CQSIZE, "cqsize", false},              /* 5.5 */
};

static unsigned int power_of_two(unsigned int at_least)
{
    unsigned int n = 1;

    while (n < at_least)
        n *= 2;
    return n;
}

int ring_init(struct ring *ring, unsigned int entries, unsigned int depth, unsigned int wanted,
              const struct io_uring_params *base)
{
    struct io_uring_params params;
    int fd = -EINVAL, err;

    for (size_t step = 0; step <= RING_STEP_COUNT; step++) {
        params = *base;
        params.flags = wanted;
        /* No fewer than submission entries, or the kernel refuses both. */
        params.cq_entries = power_of_two(entries > depth ? entries : depth);
        /* Without CQSIZE the completion ring is twice the submission ring. */
        if (!(wanted & IORING_SETUP_CQSIZE) && entries < depth)
            entries = depth;
        fd = io_uring_setup(power_of_two(entries < MAX_ENTRIES ? entries : MAX_ENTRIES),
                            &params);
        if (fd != -EINVAL || step == RING_STEP_COUNT)
            break;
        wanted &= ~ring_steps[step].flag;
    }
    if (fd < 0)
        return fd;
    *ring = (struct ring){
        .fd = fd, .enter_fd = fd, .setup_flags = params.flags, .features = params.features};
    err = params.cq_entries < depth ? -E2BIG : ring_map(ring, &params);
    if (err)
        ring_release(ring);
    return err;
}

void ring_register_self(struct ring *ring)
{
    struct io_uring_rsrc_update update = {.offset = UINT32_MAX, .data = (uint64_t)ring->fd};

    if (io_uring_register((unsigned int)ring->fd, REGISTER_RING_FDS, &update, 1) != 1)
        return;
    ring->enter_fd = (int)update.offset;
    ring->enter_flags = IORING_ENTER_REGISTERED_RING;
}

static unsigned int ring_ready(const struct ring *ring)
{
    /* The kernel writes the entry, then the tail. */
    return __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE) - *ring->cq_head;
}

unsigned int ring_reap(struct ring *ring, struct engine_op **done, unsigned int max)
{
    unsigned int head = *ring->cq_head, first = head, ready = ring_ready(ring), count = 0;

    for (; ready > 0 && count < max; ready--, head++) {
        const struct io_uring_cqe *cqe = &ring->cqes[head & ring->cq_mask];
        struct engine_op *op =
            (struct engine_op *)(uintptr_t)(cqe->user_data & ~(uint64_t)RING_HELPER);

        if (cqe->user_data & RING_HELPER) {
            op->engine_u64 = (uint64_t)(int64_t)cqe->res;
            continue;
        }
        op->result = (int64_t)op->engine_u64 < 0 ? (int64_t)op->engine_u64 : cqe->res;
        done[count++] = op;
    }
    if (head != first) {
        __atomic_store_n(ring->cq_head, head, __ATOMIC_RELEASE);
        ring->in_flight -= count;
    }
    return count;
}

/* One io_uring_enter. timeout_ns as reap's. Submitted count or -errno. */
static int ring_enter(const struct ring *ring, unsigned int submit, unsigned int min,
                      unsigned int flags, uint64_t timeout_ns)
{
    struct __kernel_timespec ts = {.tv_sec = (int64_t)(timeout_ns / 1000000000u),
                                   .tv_nsec = (long long)(timeout_ns % 1000000000u)};
    struct io_uring_getevents_arg arg = {.ts = (uint64_t)(uintptr_t)&ts};
    void *extra = NULL;
    size_t extra_bytes = _NSIG / 8;

    flags |= ring->enter_flags;
    if (min > 0 && timeout_ns != UINT64_MAX) {
        flags |= IORING_ENTER_EXT_ARG;
        extra = &arg;
        extra_bytes = sizeof(arg);
    }
    return io_uring_enter2((unsigned int)ring->enter_fd, submit, min, flags, extra,
                           extra_bytes);
}

int ring_wait(const struct ring *ring, unsigned int min, uint64_t timeout_ns)
{
    struct timespec ts = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
                          .tv_nsec = (long)(timeout_ns % 1000000000u)};
    struct pollfd poll_fd = {.fd = ring->fd, .events = POLLIN};
    int n;

    if (min > 0 && timeout_ns != UINT64_MAX) {
        if (ring->setup_flags & IORING_SETUP_IOPOLL)
            min =
                0; /* a polling ring looks at no timeout: look once, the caller at the clock */
        else if (!(ring->features & IORING_FEAT_EXT_ARG)) /* before 5.11 */
            return ppoll(&poll_fd, 1, &ts, NULL) > 0 ? 0 : 1;
    }
    n = ring_enter(ring, 0, min, IORING_ENTER_GETEVENTS, timeout_ns);
    if (n >= 0 || n == -EAGAIN || n == -EBUSY)
        return 0;
    return n == -ETIME || n == -EINTR ? 1 : n;
}

unsigned int ring_space(const struct ring *ring)
{
    return ring->sq_entries - (ring->tail - __atomic_load_n(ring->sq_head, __ATOMIC_ACQUIRE));
}

/* Takes back what the kernel did not consume; not with SQPOLL, where all is consumed. */
static void ring_take_back(struct ring *ring)
{
    ring->tail = __atomic_load_n(ring->sq_head, __ATOMIC_ACQUIRE);
    __atomic_store_n(ring->sq_tail, ring->tail, __ATOMIC_RELEASE);
}

static int sqpoll_publish(struct ring *ring, unsigned int count)
{
    /* Sequentially consistent: the tail must be seen before the flag is read, or both sides
     * could sleep. */
    __atomic_store_n(ring->sq_tail, ring->tail, __ATOMIC_SEQ_CST);
    ring->in_flight += count;
    if (__atomic_load_n(ring->sq_flags, __ATOMIC_SEQ_CST) & IORING_SQ_NEED_WAKEUP)
        ring_enter(ring, count, 0, IORING_ENTER_SQ_WAKEUP, UINT64_MAX);
    return (int)count;
}

int ring_publish(struct ring *ring, unsigned int count, bool wait, unsigned int min,
                 uint64_t timeout_ns)
{
    unsigned int flags = wait ? IORING_ENTER_GETEVENTS : 0, consumed = 0;
    int n;

    if (ring->setup_flags & IORING_SETUP_SQPOLL)
        return sqpoll_publish(ring, count);
    __atomic_store_n(ring->sq_tail, ring->tail, __ATOMIC_RELEASE);
    while (consumed < count) {
        n = ring_enter(ring, count - consumed, min, flags, timeout_ns);
        if (n == -EINTR)
            continue;
        if (n <= 0) {
            ring_take_back(ring);
            if (n == 0 || n == -EAGAIN || n == -EBUSY || n == -ENOMEM || n == -ETIME ||
                consumed)
                break;
            return n;
        }
        consumed += (unsigned int)n;
        ring->in_flight += (unsigned int)n;
    }
    return (int)consumed;
}

bool ring_must_enter(const struct ring *ring)
{
    if (ring->in_flight == 0)
        return false;
    if (ring->setup_flags & IORING_SETUP_IOPOLL)
        return true;
    if (!(ring->setup_flags & (IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_COOP_TASKRUN)))
        return false;
    if (!(ring->setup_flags & IORING_SETUP_TASKRUN_FLAG))
        return true;
    return __atomic_load_n(ring->sq_flags, __ATOMIC_RELAXED) & IORING_SQ_TASKRUN;
}

#endif
