/* SPDX-License-Identifier: MIT */
/* POSIX aio. glibc does the I/O on threads of its own by calls no shim sees; an op's end is
 * known to have passed when the program asks for it. */
#include "capture/preload.h"

#include <aio.h>
#include <fcntl.h>
#include <string.h>

#include "capture/preload_async.h"

#define SPACE    1 /* of keys: aiocb addresses */
#define LIST_MAX 256

DEFINE_REAL(aio_read64);
DEFINE_REAL(aio_write64);
DEFINE_REAL(aio_fsync64);
DEFINE_REAL(aio_error64);
DEFINE_REAL(aio_return64);
DEFINE_REAL(aio_suspend64);
DEFINE_REAL(lio_listio64);

/* On 64-bit machines the two are one layout. */
_Static_assert(sizeof(struct aiocb) == sizeof(struct aiocb64), "one aiocb");

static uint64_t key_of(const struct aiocb64 *block)
{
    return (uint64_t)(uintptr_t)block;
}

static void op_of_block(const struct aiocb64 *block, unsigned int kind, struct async_op *op)
{
    memset(op, 0, sizeof(*op));
    op->api = TRACE_API_POSIX_AIO;
    op->kind = (uint8_t)kind;
    op->slot = file_slot(block->aio_fildes);
    op->offset = TRACE_UNKNOWN_U64;
    if (kind == TRACE_READ || kind == TRACE_WRITE) {
        op->length = block->aio_nbytes;
        if (kind == TRACE_WRITE && (op->slot & SLOT_APPEND))
            op->flags |= TRACE_F_APPEND;
        else
            op->offset = (uint64_t)block->aio_offset;
    }
}

/* Notes the op's end once: what the program asks afterwards finds it gone. */
static void block_ended(const struct aiocb64 *block, int error)
{
    int saved = errno;
    int64_t result = error ? -error : REAL(aio_return64)((struct aiocb64 *)(uintptr_t)block);

    async_done(SPACE, key_of(block), result, stamp_ns(), TRACE_COMPLETION_UPPER);
    errno = saved;
}

static int start(unsigned int kind, struct aiocb64 *block, int fsync_op)
{
    struct async_op op;
    uint64_t id = 0, begin_ns;
    int result;

    if (block && shim_ready()) {
        op_of_block(block, kind, &op);
        id = async_add(SPACE, key_of(block), &op);
    }
    begin_ns = stamp_ns();
    if (kind == TRACE_READ)
        result = REAL(aio_read64)(block);
    else if (kind == TRACE_WRITE)
        result = REAL(aio_write64)(block);
    else
        result = REAL(aio_fsync64)(fsync_op, block);
    if (id && result == 0 && kind == TRACE_WRITE)
        content_written((const void *)(uintptr_t)block->aio_buf, op.length);
    if (id && result == 0)
        async_issued(SPACE, key_of(block), id, &op, begin_ns, 0);
    else if (id)
        async_remove(SPACE, key_of(block), id);
    return result;
}

static int error_of(const struct aiocb64 *block)
{
    int error = REAL(aio_error64)(block);

    if (error != EINPROGRESS && error != -1)
        block_ended(block, error);
    return error;
}

static ssize_t return_of(struct aiocb64 *block)
{
    int error = REAL(aio_error64)(block);

    if (error != EINPROGRESS && error != -1)
        block_ended(block, error);
    return REAL(aio_return64)(block);
}

static void look_at_all(const struct aiocb64 *const list[], int count)
{
    int saved = errno;

    for (int i = 0; i < count; i++)
        if (list[i])
            error_of(list[i]);
    errno = saved;
}

static int suspend(const struct aiocb64 *const list[], int count,
                   const struct timespec *timeout)
{
    int result = REAL(aio_suspend64)(list, count, timeout);

    if (result == 0 && shim_ready())
        look_at_all(list, count);
    return result;
}

/* The list's ops are one batch. Those past LIST_MAX are counted, not recorded. */
static int list_start(int mode, struct aiocb64 *const list[], int count, struct sigevent *event)
{
    struct async_op ops[LIST_MAX];
    uint64_t ids[LIST_MAX], begin_ns;
    int seen = count < LIST_MAX ? count : LIST_MAX, result;
    uint32_t batch;

    if (!shim_ready() || count <= 0)
        return REAL(lio_listio64)(mode, list, count, event);
    for (int i = 0; i < seen; i++) {
        int code = list[i] ? list[i]->aio_lio_opcode : LIO_NOP;

        ids[i] = 0;
        if (code != LIO_READ && code != LIO_WRITE)
            continue;
        op_of_block(list[i], code == LIO_READ ? TRACE_READ : TRACE_WRITE, &ops[i]);
        ids[i] = async_add(SPACE, key_of(list[i]), &ops[i]);
    }
    batch = count > 1 ? async_batch() : 0;
    begin_ns = stamp_ns();
    result = REAL(lio_listio64)(mode, list, count, event);
    if (count > seen)
        shim_unseen("lio_listio beyond 256", (uint64_t)(count - seen));
    for (int i = 0; i < seen; i++)
        if (ids[i])
            async_issued(SPACE, key_of(list[i]), ids[i], &ops[i], begin_ns, batch);
    if (mode == LIO_WAIT)
        look_at_all((const struct aiocb64 *const *)list, seen);
    return result;
}

#define WRAP(name, type)                                                                       \
    EXPORT int aio_read##name(type *block)                                                     \
    {                                                                                          \
        return start(TRACE_READ, (struct aiocb64 *)block, 0);                                  \
    }                                                                                          \
    EXPORT int aio_write##name(type *block)                                                    \
    {                                                                                          \
        return start(TRACE_WRITE, (struct aiocb64 *)block, 0);                                 \
    }                                                                                          \
    EXPORT int aio_fsync##name(int operation, type *block)                                     \
    {                                                                                          \
        return start(operation == O_DSYNC ? TRACE_FDATASYNC : TRACE_FSYNC,                     \
                     (struct aiocb64 *)block, operation);                                      \
    }                                                                                          \
    EXPORT int aio_error##name(const type *block)                                              \
    {                                                                                          \
        return error_of((const struct aiocb64 *)block);                                        \
    }                                                                                          \
    EXPORT ssize_t aio_return##name(type *block)                                               \
    {                                                                                          \
        return return_of((struct aiocb64 *)block);                                             \
    }                                                                                          \
    EXPORT int aio_suspend##name(const type *const list[], int count,                          \
                                 const struct timespec *timeout)                               \
    {                                                                                          \
        return suspend((const struct aiocb64 *const *)list, count, timeout);                   \
    }                                                                                          \
    EXPORT int lio_listio##name(int mode, type *const list[], int count,                       \
                                struct sigevent *event)                                        \
    {                                                                                          \
        return list_start(mode, (struct aiocb64 *const *)list, count, event);                  \
    }

WRAP(, struct aiocb)
WRAP(64, struct aiocb64)
