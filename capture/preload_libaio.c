/* SPDX-License-Identifier: MIT */
/* libaio, and the same system calls made by hand. */
#include "capture/preload_libaio.h"

#include <linux/aio_abi.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>

#include "capture/preload_async.h"

#define BATCH_MAX 256 /* ops remembered on the stack; larger batches are handed over in parts  \
                       */
#define CONTEXTS       64
#define AIO_RING_MAGIC 0xa10a10a1u

/* As the kernel maps it at a context's address; programs may take events from it themselves. */
struct aio_ring {
    uint32_t id, nr, head, tail, magic, compat, incompat, header_bytes;
    struct io_event events[];
};

/* How far the events of a context's ring have been looked at. */
static struct {
    uint64_t context;
    uint32_t head;
} contexts[CONTEXTS];

static const struct aio_ring *ring_of(uint64_t context)
{
    const struct aio_ring *ring = (const struct aio_ring *)(uintptr_t)context;

    return context && ring->magic == AIO_RING_MAGIC && ring->nr ? ring : NULL;
}

static uint32_t *context_head(uint64_t context)
{
    for (unsigned int i = 0; i < CONTEXTS; i++) {
        uint64_t expected = 0;

        if (contexts[i].context == context)
            return &contexts[i].head;
        if (!contexts[i].context &&
            __atomic_compare_exchange_n(&contexts[i].context, &expected, context, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return &contexts[i].head;
    }
    return NULL;
}

/* The kernel vouches for a context before its memory is looked at. */
static bool context_is_good(uint64_t context)
{
    for (unsigned int i = 0; i < CONTEXTS; i++)
        if (contexts[i].context == context && context)
            return true;
    return RAW(io_submit, context, 0, 0) == 0 && ring_of(context);
}

/* Completions that the program took out of the ring without a call: they happened before now.
 */
static void reaped_by_hand(uint64_t context)
{
    const struct aio_ring *ring = ring_of(context);
    uint32_t *seen = ring ? context_head(context) : NULL, head;
    uint64_t now;

    if (!seen || *seen == (head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE)))
        return;
    now = stamp_ns();
    for (uint32_t at = *seen % ring->nr; at != head % ring->nr; at = (at + 1) % ring->nr)
        async_done(context, ring->events[at].obj, ring->events[at].res, now,
                   TRACE_COMPLETION_UPPER);
    *seen = head;
}

static bool op_of_iocb(const struct iocb *iocb, struct async_op *op)
{
    memset(op, 0, sizeof(*op));
    op->api = TRACE_API_LIBAIO;
    op->offset = (uint64_t)iocb->aio_offset;
    op->length = iocb->aio_nbytes;
    switch (iocb->aio_lio_opcode) {
    case IOCB_CMD_PREAD:
    case IOCB_CMD_PREADV: op->kind = TRACE_READ; break;
    case IOCB_CMD_PWRITE:
    case IOCB_CMD_PWRITEV: op->kind = TRACE_WRITE; break;
    case IOCB_CMD_FSYNC: op->kind = TRACE_FSYNC; break;
    case IOCB_CMD_FDSYNC: op->kind = TRACE_FDATASYNC; break;
    default: return false;
    }
    if (op->kind == TRACE_FSYNC || op->kind == TRACE_FDATASYNC) {
        op->offset = TRACE_UNKNOWN_U64;
        op->length = 0;
    }
    op->flags = rwf_op_flags((int)iocb->aio_rw_flags);
    op->slot = file_slot((int)iocb->aio_fildes);
    if (op->kind == TRACE_WRITE && (op->slot & SLOT_APPEND)) {
        op->flags |= TRACE_F_APPEND;
        op->offset = TRACE_UNKNOWN_U64; /* the end of the file, wherever that is then */
    }
    return true;
}

static void add_vector_bytes(const struct iocb *iocb, struct async_op *op)
{
    const struct iovec *vector = (const struct iovec *)(uintptr_t)iocb->aio_buf;

    if (iocb->aio_lio_opcode != IOCB_CMD_PREADV && iocb->aio_lio_opcode != IOCB_CMD_PWRITEV)
        return;
    op->length = 0;
    for (uint64_t i = 0; i < iocb->aio_nbytes; i++)
        op->length += vector[i].iov_len;
}

/* At most BATCH_MAX of them. Everything is read before the call: a program may free an iocb
 * once it has completed, which another thread may see first. */
static long submit_part(uint64_t context, long count, struct iocb **iocbs, uint32_t batch)
{
    struct async_op ops[BATCH_MAX];
    uint64_t ids[BATCH_MAX], begin_ns;
    long taken;

    for (long i = 0; i < count; i++) {
        ids[i] = 0;
        if (op_of_iocb(iocbs[i], &ops[i])) {
            add_vector_bytes(iocbs[i], &ops[i]);
            ids[i] = async_add(context, (uint64_t)(uintptr_t)iocbs[i], &ops[i]);
            if (ids[i] && iocbs[i]->aio_lio_opcode == IOCB_CMD_PWRITE)
                content_written((const void *)(uintptr_t)iocbs[i]->aio_buf, ops[i].length);
        }
    }
    begin_ns = stamp_ns();
    taken = RAW(io_submit, context, count, iocbs);
    for (long i = 0; i < count; i++) {
        uint64_t key = (uint64_t)(uintptr_t)iocbs[i];

        if (i < taken)
            async_issued(context, key, ids[i], &ops[i], begin_ns, batch);
        else
            async_remove(context, key, ids[i]);
    }
    return taken;
}

long libaio_submit(uint64_t context, long count, struct iocb **iocbs)
{
    uint32_t batch;
    long done = 0, taken;

    /* What the kernel would refuse is left to it: those pointers cannot be followed here. */
    if (!shim_ready() || count <= 0 || !context_is_good(context))
        return RAW(io_submit, context, count, iocbs);
    reaped_by_hand(context);
    batch = count > 1 ? async_batch() : 0;
    while (done < count) {
        long part = count - done < BATCH_MAX ? count - done : BATCH_MAX;

        taken = submit_part(context, part, iocbs + done, batch);
        if (taken < 0)
            return done ? done : taken;
        done += taken;
        if (taken < part)
            break;
    }
    return done;
}

/* number is SYS_io_getevents or SYS_io_pgetevents. */
long libaio_getevents(long number, uint64_t context, long min, long max,
                      struct io_event *events, struct timespec *timeout, void *mask)
{
    const struct aio_ring *ring;
    uint32_t *seen;
    uint64_t now;
    long got;

    if (!shim_ready() || !context_is_good(context))
        return raw_syscall(number, (long)context, min, max, (long)events, (long)timeout,
                           (long)mask);
    reaped_by_hand(context);
    got = raw_syscall(number, (long)context, min, max, (long)events, (long)timeout, (long)mask);
    now = stamp_ns();
    for (long i = 0; i < got; i++)
        async_done(context, events[i].obj, events[i].res, now, TRACE_COMPLETION_UPPER);
    ring = ring_of(context);
    seen = ring ? context_head(context) : NULL;
    if (seen)
        *seen = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
    return got;
}

long libaio_destroy(uint64_t context)
{
    if (shim_ready() && context_is_good(context)) {
        reaped_by_hand(context);
        for (unsigned int i = 0; i < CONTEXTS; i++)
            if (contexts[i].context == context)
                contexts[i].context = contexts[i].head = 0;
    }
    return RAW(io_destroy, context);
}

/* ---- libaio's functions, which return -errno --------------------------------------------- */

EXPORT int io_submit(uint64_t context, long count, struct iocb **iocbs);
EXPORT int io_getevents(uint64_t context, long min, long max, struct io_event *events,
                        struct timespec *timeout);
EXPORT int io_pgetevents(uint64_t context, long min, long max, struct io_event *events,
                         struct timespec *timeout, sigset_t *mask);
EXPORT int io_destroy(uint64_t context);

EXPORT int io_submit(uint64_t context, long count, struct iocb **iocbs)
{
    return (int)libaio_submit(context, count, iocbs);
}

EXPORT int io_getevents(uint64_t context, long min, long max, struct io_event *events,
                        struct timespec *timeout)
{
    return (int)libaio_getevents(SYS_io_getevents, context, min, max, events, timeout, NULL);
}

EXPORT int io_pgetevents(uint64_t context, long min, long max, struct io_event *events,
                         struct timespec *timeout, sigset_t *mask)
{
    struct {
        sigset_t *mask;
        size_t bytes;
    } wanted = {mask, 8};

    return (int)libaio_getevents(SYS_io_pgetevents, context, min, max, events, timeout,
                                 &wanted);
}

EXPORT int io_destroy(uint64_t context)
{
    return (int)libaio_destroy(context);
}
