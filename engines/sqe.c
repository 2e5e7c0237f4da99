/* SPDX-License-Identifier: MIT */
#if HAVE_LIB

#include "engines/sqe.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "engines/blocking.h"

/* The registered buffer that op's lies in whole, or -1. */
static int fixed_buffer(const struct sqe_form *form, const struct engine_op *op)
{
    uint64_t at = (uint64_t)((char *)op->buffer - form->buffers), index;

    if (!form->fixed_buffers || at >= form->buffer_bytes ||
        op->length > form->buffer_bytes - at)
        return -1;
    if (form->buffer_bytes <= form->chunk_bytes)
        return 0;
    index = at / form->chunk_bytes;
    return (at + op->length - 1) / form->chunk_bytes == index || op->length == 0 ? (int)index
                                                                                 : -1;
}

static void fill_transfer(const struct sqe_form *form, struct io_uring_sqe *sqe,
                          struct engine_op *op)
{
    bool write = op->kind == TRACE_WRITE;
    int buffer = fixed_buffer(form, op);
    struct iovec *iov;

    sqe->off = op->offset; /* unknown is -1: the file position, or the end when appending */
    sqe->addr = (uint64_t)(uintptr_t)op->buffer;
    sqe->len = op->length > INT32_MAX ? INT32_MAX & ~4095u : (uint32_t)op->length;
    /* Whether completions are polled for is the ring's matter: asked of another, it is EINVAL.
     */
    sqe->rw_flags = blocking_rwf(op) & ~RWF_HIPRI;
    if (buffer >= 0) {
        sqe->opcode = write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
        sqe->buf_index = (uint16_t)buffer;
    } else if (form->has_read) {
        sqe->opcode = write ? IORING_OP_WRITE : IORING_OP_READ;
    } else {
        iov = &form->iovs[op->slot_index];
        *iov = (struct iovec){.iov_base = op->buffer, .iov_len = op->length};
        sqe->opcode = write ? IORING_OP_WRITEV : IORING_OP_READV;
        sqe->addr = (uint64_t)(uintptr_t)iov;
        sqe->len = 1;
    }
}

/* Ranges that a file takes as fallocate; a block device's need an ioctl: blocking_run's. */
static int fill_range(const struct sqe_form *form, struct io_uring_sqe *sqe,
                      const struct engine_op *op)
{
    bool device =
        op->target < form->env->target_count && form->env->targets[op->target].block_device;

    if (device || !form->has_fallocate)
        return -EOPNOTSUPP;
    sqe->opcode = IORING_OP_FALLOCATE;
    sqe->off = op->offset;
    sqe->addr = op->length;
    if (op->kind == TRACE_FALLOCATE)
        sqe->len = op->arg;
    else if (op->kind == TRACE_DISCARD)
        sqe->len = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    else
        sqe->len = FALLOC_FL_ZERO_RANGE | (op->arg & FALLOC_FL_KEEP_SIZE);
    return 0;
}

int sqe_fill(const struct sqe_form *form, struct io_uring_sqe *sqe, struct engine_op *op)
{
    int err = 0;

    memset(sqe, 0, sizeof(*sqe));
    sqe->fd = form->fixed_files ? (int)op->target : op->fd;
    sqe->flags = form->flags;
    sqe->user_data = (uint64_t)(uintptr_t)op;
    op->engine_u64 = 0;
    switch (op->kind) {
    case TRACE_READ:
    case TRACE_WRITE: fill_transfer(form, sqe, op); break;
    case TRACE_FSYNC:
    case TRACE_FLUSH: sqe->opcode = IORING_OP_FSYNC; break;
    case TRACE_FDATASYNC:
        sqe->opcode = IORING_OP_FSYNC;
        sqe->fsync_flags = IORING_FSYNC_DATASYNC;
        break;
    case TRACE_SYNC_RANGE:
        if (op->length > UINT32_MAX)
            return -EOPNOTSUPP;
        sqe->opcode = IORING_OP_SYNC_FILE_RANGE;
        sqe->off = op->offset;
        sqe->len = (uint32_t)op->length;
        sqe->sync_range_flags = op->arg ? op->arg
                                        : SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                              SYNC_FILE_RANGE_WAIT_AFTER;
        break;
    case TRACE_READAHEAD:
        if (!form->has_fadvise || op->length > UINT32_MAX)
            return -EOPNOTSUPP;
        sqe->opcode = IORING_OP_FADVISE;
        sqe->off = op->offset;
        sqe->len = (uint32_t)op->length;
        sqe->fadvise_advice = POSIX_FADV_WILLNEED;
        break;
    default: err = fill_range(form, sqe, op); break;
    }
    return err;
}

void sqe_fill_flush(const struct sqe_form *form, struct io_uring_sqe *sqe, struct engine_op *op)
{
    memset(sqe, 0, sizeof(*sqe));
    sqe->opcode = IORING_OP_FSYNC;
    sqe->fsync_flags = IORING_FSYNC_DATASYNC;
    sqe->fd = form->fixed_files ? (int)op->target : op->fd;
    sqe->user_data = (uint64_t)(uintptr_t)op | RING_HELPER;
    sqe->flags = (uint8_t)(form->flags | IOSQE_IO_LINK);
}

#endif
