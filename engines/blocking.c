/* SPDX-License-Identifier: MIT */
#include "engines/blocking.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

int blocking_rwf(const struct engine_op *op)
{
    int rwf = 0;

    if (op->flags & TRACE_F_NOWAIT)
        rwf |= RWF_NOWAIT;
    if (op->flags & TRACE_F_POLLED)
        rwf |= RWF_HIPRI;
    if (op->kind != TRACE_WRITE)
        return rwf;
    if (op->flags & (TRACE_F_DSYNC | TRACE_F_FUA))
        rwf |= RWF_DSYNC;
    if (op->flags & TRACE_F_SYNC)
        rwf |= RWF_SYNC;
    if (op->flags & TRACE_F_APPEND)
        rwf |= RWF_APPEND;
    return rwf;
}

static ssize_t transfer(const struct engine_op *op)
{
    struct iovec iov = {.iov_base = op->buffer, .iov_len = op->length};
    /* With RWF_APPEND the offset is not looked at, except that -1 moves the file position. */
    off_t offset = op->offset == TRACE_UNKNOWN_U64 ? -1 : (off_t)op->offset;
    int rwf = blocking_rwf(op);

    if (op->kind == TRACE_READ)
        return rwf || offset < 0 ? preadv2(op->fd, &iov, 1, offset, rwf)
                                 : pread(op->fd, op->buffer, op->length, offset);
    if ((op->flags & TRACE_F_PREFLUSH) && fdatasync(op->fd) < 0)
        return -1;
    return rwf || offset < 0 ? pwritev2(op->fd, &iov, 1, offset, rwf)
                             : pwrite(op->fd, op->buffer, op->length, offset);
}

static bool on_block_device(const struct engine_op *op, const struct engine_env *env)
{
    return op->target < env->target_count && env->targets[op->target].block_device;
}

static int range(const struct engine_op *op, const struct engine_env *env)
{
    bool zeroes = op->kind == TRACE_WRITE_ZEROES;
    uint64_t bytes[2] = {op->offset, op->length};
    int mode;

    if (on_block_device(op, env))
        return ioctl(op->fd, zeroes ? BLKZEROOUT : BLKDISCARD, bytes);
    mode = zeroes ? FALLOC_FL_ZERO_RANGE | (int)(op->arg & FALLOC_FL_KEEP_SIZE)
                  : FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    return fallocate(op->fd, mode, (off_t)op->offset, (off_t)op->length);
}

static int64_t once(const struct engine_op *op, const struct engine_env *env)
{
    unsigned int range_flags =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;

    switch (op->kind) {
    case TRACE_READ:
    case TRACE_WRITE: return transfer(op);
    case TRACE_FSYNC:
    case TRACE_FLUSH: return fsync(op->fd);
    case TRACE_FDATASYNC: return fdatasync(op->fd);
    case TRACE_SYNC_RANGE:
        return sync_file_range(op->fd, (off_t)op->offset, (off_t)op->length,
                               op->arg ? op->arg : range_flags);
    case TRACE_DISCARD:
    case TRACE_WRITE_ZEROES: return range(op, env);
    case TRACE_SYNCFS: return syncfs(op->fd);
    case TRACE_READAHEAD: return readahead(op->fd, (off_t)op->offset, op->length);
    case TRACE_FALLOCATE:
        return fallocate(op->fd, (int)op->arg, (off_t)op->offset, (off_t)op->length);
    case TRACE_TRUNCATE: return ftruncate(op->fd, (off_t)op->length);
    default: errno = EOPNOTSUPP; return -1;
    }
}

int64_t blocking_run(const struct engine_op *op, const struct engine_env *env)
{
    int64_t result;

    do {
        result = once(op, env);
    } while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : result;
}
