/* SPDX-License-Identifier: MIT */
/* read, write and their vectored, positioned and checked forms. */
#include "capture/preload.h"

#include <sys/uio.h>
#include <unistd.h>

DEFINE_REAL(read);
DEFINE_REAL(write);
DEFINE_REAL(pread64);
DEFINE_REAL(pwrite64);
DEFINE_REAL(readv);
DEFINE_REAL(writev);
DEFINE_REAL(preadv64);
DEFINE_REAL(pwritev64);
DEFINE_REAL(preadv64v2);
DEFINE_REAL(pwritev64v2);

/* Exported by libc for programs built with _FORTIFY_SOURCE; no header declares them. */
EXPORT ssize_t __read_chk(int fd, void *buffer, size_t bytes, size_t room);
EXPORT ssize_t __pread_chk(int fd, void *buffer, size_t bytes, off_t offset, size_t room);
EXPORT ssize_t __pread64_chk(int fd, void *buffer, size_t bytes, off64_t offset, size_t room);
DEFINE_REAL(__read_chk);
DEFINE_REAL(__pread_chk);
DEFINE_REAL(__pread64_chk);

/* An O_APPEND write goes to the end whatever offset was given. */
static void mark_append(struct ring_record *record, int fd)
{
    if (file_slot(fd) & SLOT_APPEND)
        record->flags |= TRACE_F_APPEND;
}

EXPORT ssize_t read(int fd, void *buffer, size_t bytes)
{
    struct ring_record *record =
        op_begin(fd, TRACE_READ, TRACE_API_SYNC, TRACE_UNKNOWN_U64, bytes);
    ssize_t got = REAL(read)(fd, buffer, bytes);

    if (record)
        op_end_position(record, fd, got);
    return got;
}

EXPORT ssize_t __read_chk(int fd, void *buffer, size_t bytes, size_t room)
{
    struct ring_record *record =
        op_begin(fd, TRACE_READ, TRACE_API_SYNC, TRACE_UNKNOWN_U64, bytes);
    ssize_t got = REAL(__read_chk)(fd, buffer, bytes, room);

    if (record)
        op_end_position(record, fd, got);
    return got;
}

EXPORT ssize_t write(int fd, const void *buffer, size_t bytes)
{
    struct ring_record *record =
        op_begin(fd, TRACE_WRITE, TRACE_API_SYNC, TRACE_UNKNOWN_U64, bytes);
    ssize_t got;

    if (record)
        mark_append(record, fd);
    got = REAL(write)(fd, buffer, bytes);
    if (record) {
        op_end_position(record, fd, got);
        content_written(buffer, got > 0 ? (size_t)got : 0);
    }
    return got;
}

static inline ssize_t read_at(int fd, void *buffer, size_t bytes, off64_t offset)
{
    struct ring_record *record =
        op_begin(fd, TRACE_READ, TRACE_API_SYNC, (uint64_t)offset, bytes);
    ssize_t got = REAL(pread64)(fd, buffer, bytes, offset);

    if (record)
        op_end(record, got);
    return got;
}

EXPORT ssize_t pread(int fd, void *buffer, size_t bytes, off_t offset)
{
    return read_at(fd, buffer, bytes, offset);
}

EXPORT ssize_t pread64(int fd, void *buffer, size_t bytes, off64_t offset)
{
    return read_at(fd, buffer, bytes, offset);
}

EXPORT ssize_t __pread_chk(int fd, void *buffer, size_t bytes, off_t offset, size_t room)
{
    struct ring_record *record =
        op_begin(fd, TRACE_READ, TRACE_API_SYNC, (uint64_t)offset, bytes);
    ssize_t got = REAL(__pread_chk)(fd, buffer, bytes, offset, room);

    if (record)
        op_end(record, got);
    return got;
}

EXPORT ssize_t __pread64_chk(int fd, void *buffer, size_t bytes, off64_t offset, size_t room)
{
    struct ring_record *record =
        op_begin(fd, TRACE_READ, TRACE_API_SYNC, (uint64_t)offset, bytes);
    ssize_t got = REAL(__pread64_chk)(fd, buffer, bytes, offset, room);

    if (record)
        op_end(record, got);
    return got;
}

/* A positioned write to an O_APPEND descriptor lands at the end of the file and moves nothing:
 * where exactly, another writer may have changed by the time it can be asked. */
static void end_write_at(struct ring_record *record, int fd, ssize_t got)
{
    uint64_t end_ns = stamp_ns(), size;
    int64_t result = got == -1 ? -errno : got;

    mark_append(record, fd);
    if ((record->flags & TRACE_F_APPEND) && got > 0) {
        size = file_size(fd);
        record->offset = size == TRACE_UNKNOWN_U64 ? size : size - (uint64_t)got;
        record->flags |= TRACE_F_DERIVED;
    }
    op_end_at(record, result, end_ns);
}

static inline ssize_t write_at(int fd, const void *buffer, size_t bytes, off64_t offset)
{
    struct ring_record *record =
        op_begin(fd, TRACE_WRITE, TRACE_API_SYNC, (uint64_t)offset, bytes);
    ssize_t got = REAL(pwrite64)(fd, buffer, bytes, offset);

    if (record) {
        end_write_at(record, fd, got);
        content_written(buffer, got > 0 ? (size_t)got : 0);
    }
    return got;
}

EXPORT ssize_t pwrite(int fd, const void *buffer, size_t bytes, off_t offset)
{
    return write_at(fd, buffer, bytes, offset);
}

EXPORT ssize_t pwrite64(int fd, const void *buffer, size_t bytes, off64_t offset)
{
    return write_at(fd, buffer, bytes, offset);
}

/* The vector may be anywhere, so it is read only after a call that the kernel did not find
 * fault with. */
static uint64_t vector_bytes(const struct iovec *vector, int count, ssize_t got)
{
    uint64_t bytes = 0;

    if (got == -1 && (errno == EFAULT || errno == EINVAL || errno == EBADF))
        return 0;
    for (int i = 0; i < count; i++)
        bytes += vector[i].iov_len;
    return bytes;
}

/* The first piece stands for the whole. */
static void vector_written(const struct iovec *vector, ssize_t got)
{
    if (got > 0)
        content_written(vector[0].iov_base,
                        vector[0].iov_len < (size_t)got ? vector[0].iov_len : (size_t)got);
}

EXPORT ssize_t readv(int fd, const struct iovec *vector, int count)
{
    struct ring_record *record =
        op_begin(fd, TRACE_READ, TRACE_API_VECTORED, TRACE_UNKNOWN_U64, 0);
    ssize_t got = REAL(readv)(fd, vector, count);

    if (record) {
        record->length = vector_bytes(vector, count, got);
        op_end_position(record, fd, got);
    }
    return got;
}

EXPORT ssize_t writev(int fd, const struct iovec *vector, int count)
{
    struct ring_record *record =
        op_begin(fd, TRACE_WRITE, TRACE_API_VECTORED, TRACE_UNKNOWN_U64, 0);
    ssize_t got = REAL(writev)(fd, vector, count);

    if (record) {
        mark_append(record, fd);
        record->length = vector_bytes(vector, count, got);
        op_end_position(record, fd, got);
        vector_written(vector, got);
    }
    return got;
}

static inline ssize_t readv_at(int fd, const struct iovec *vector, int count, off64_t offset)
{
    struct ring_record *record =
        op_begin(fd, TRACE_READ, TRACE_API_VECTORED, (uint64_t)offset, 0);
    ssize_t got = REAL(preadv64)(fd, vector, count, offset);

    if (record) {
        record->length = vector_bytes(vector, count, got);
        op_end(record, got);
    }
    return got;
}

EXPORT ssize_t preadv(int fd, const struct iovec *vector, int count, off_t offset)
{
    return readv_at(fd, vector, count, offset);
}

EXPORT ssize_t preadv64(int fd, const struct iovec *vector, int count, off64_t offset)
{
    return readv_at(fd, vector, count, offset);
}

static inline ssize_t writev_at(int fd, const struct iovec *vector, int count, off64_t offset)
{
    struct ring_record *record =
        op_begin(fd, TRACE_WRITE, TRACE_API_VECTORED, (uint64_t)offset, 0);
    ssize_t got = REAL(pwritev64)(fd, vector, count, offset);

    if (record) {
        record->length = vector_bytes(vector, count, got);
        end_write_at(record, fd, got);
        vector_written(vector, got);
    }
    return got;
}

EXPORT ssize_t pwritev(int fd, const struct iovec *vector, int count, off_t offset)
{
    return writev_at(fd, vector, count, offset);
}

EXPORT ssize_t pwritev64(int fd, const struct iovec *vector, int count, off64_t offset)
{
    return writev_at(fd, vector, count, offset);
}

uint32_t rwf_op_flags(int rwf)
{
    uint32_t flags = 0;

    if (rwf & RWF_HIPRI)
        flags |= TRACE_F_POLLED;
    if (rwf & RWF_DSYNC)
        flags |= TRACE_F_DSYNC;
    if (rwf & RWF_SYNC)
        flags |= TRACE_F_SYNC;
    if (rwf & RWF_NOWAIT)
        flags |= TRACE_F_NOWAIT;
    if (rwf & RWF_APPEND)
        flags |= TRACE_F_APPEND;
    return flags;
}

static inline ssize_t readv_flags(int fd, const struct iovec *vector, int count, off64_t offset,
                                  int rwf)
{
    struct ring_record *record =
        op_begin(fd, TRACE_READ, TRACE_API_VECTORED, (uint64_t)offset, 0);
    ssize_t got = REAL(preadv64v2)(fd, vector, count, offset, rwf);

    if (record) {
        record->flags |= rwf_op_flags(rwf);
        record->length = vector_bytes(vector, count, got);
        if (offset == -1)
            op_end_position(record, fd, got);
        else
            op_end(record, got);
    }
    return got;
}

EXPORT ssize_t preadv2(int fd, const struct iovec *vector, int count, off_t offset, int rwf)
{
    return readv_flags(fd, vector, count, offset, rwf);
}

EXPORT ssize_t preadv64v2(int fd, const struct iovec *vector, int count, off64_t offset,
                          int rwf)
{
    return readv_flags(fd, vector, count, offset, rwf);
}

static inline ssize_t writev_flags(int fd, const struct iovec *vector, int count,
                                   off64_t offset, int rwf)
{
    struct ring_record *record =
        op_begin(fd, TRACE_WRITE, TRACE_API_VECTORED, (uint64_t)offset, 0);
    ssize_t got = REAL(pwritev64v2)(fd, vector, count, offset, rwf);

    if (record) {
        record->flags |= rwf_op_flags(rwf);
        record->length = vector_bytes(vector, count, got);
        if (offset == -1) {
            mark_append(record, fd);
            op_end_position(record, fd, got);
        } else {
            end_write_at(record, fd, got);
        }
    }
    return got;
}

EXPORT ssize_t pwritev2(int fd, const struct iovec *vector, int count, off_t offset, int rwf)
{
    return writev_flags(fd, vector, count, offset, rwf);
}

EXPORT ssize_t pwritev64v2(int fd, const struct iovec *vector, int count, off64_t offset,
                           int rwf)
{
    return writev_flags(fd, vector, count, offset, rwf);
}
