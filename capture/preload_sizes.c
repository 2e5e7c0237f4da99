/* SPDX-License-Identifier: MIT */
/* Making durable, allocating, cutting, reading ahead and copying. */
#include "capture/preload.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/sendfile.h>
#include <unistd.h>

DEFINE_REAL(fsync);
DEFINE_REAL(fdatasync);
DEFINE_REAL(sync_file_range);
DEFINE_REAL(syncfs);
DEFINE_REAL(sync);
DEFINE_REAL(ftruncate64);
DEFINE_REAL(truncate64);
DEFINE_REAL(fallocate64);
DEFINE_REAL(posix_fallocate64);
DEFINE_REAL(posix_fadvise64);
DEFINE_REAL(readahead);
DEFINE_REAL(sendfile64);
DEFINE_REAL(splice);
DEFINE_REAL(copy_file_range);

EXPORT int fsync(int fd)
{
    struct ring_record *record =
        op_begin(fd, TRACE_FSYNC, TRACE_API_SYNC, TRACE_UNKNOWN_U64, 0);
    int result = REAL(fsync)(fd);

    if (record)
        op_end(record, result);
    return result;
}

EXPORT int fdatasync(int fd)
{
    struct ring_record *record =
        op_begin(fd, TRACE_FDATASYNC, TRACE_API_SYNC, TRACE_UNKNOWN_U64, 0);
    int result = REAL(fdatasync)(fd);

    if (record)
        op_end(record, result);
    return result;
}

EXPORT int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned int flags)
{
    struct ring_record *record =
        op_begin(fd, TRACE_SYNC_RANGE, TRACE_API_SYNC, (uint64_t)offset, (uint64_t)bytes);
    int result = REAL(sync_file_range)(fd, offset, bytes, flags);

    if (record) {
        record->arg = flags;
        op_end(record, result);
    }
    return result;
}

EXPORT int syncfs(int fd)
{
    struct ring_record *record =
        op_begin(fd, TRACE_SYNCFS, TRACE_API_SYNC, TRACE_UNKNOWN_U64, 0);
    int result = REAL(syncfs)(fd);

    if (record)
        op_end(record, result);
    return result;
}

EXPORT void sync(void)
{
    struct ring_record *record = op_reserve(TRACE_SYNCFS, TRACE_API_SYNC);

    REAL(sync)();
    if (record)
        op_end(record, 0);
}

static int truncate_fd(int fd, off64_t bytes)
{
    struct ring_record *record =
        op_begin(fd, TRACE_TRUNCATE, TRACE_API_SYNC, TRACE_UNKNOWN_U64, (uint64_t)bytes);
    int result = REAL(ftruncate64)(fd, bytes);

    if (record)
        op_end(record, result);
    return result;
}

EXPORT int ftruncate(int fd, off_t bytes)
{
    return truncate_fd(fd, bytes);
}

EXPORT int ftruncate64(int fd, off64_t bytes)
{
    return truncate_fd(fd, bytes);
}

static int truncate_path(const char *path, off64_t bytes)
{
    struct ring_record *record = NULL;
    uint32_t file;
    int result;

    if (shim_ready() && !shim_in_vfork()) {
        file = file_named(AT_FDCWD, path, true);
        record = op_reserve(TRACE_TRUNCATE, TRACE_API_SYNC);
        if (record) {
            record->file = file;
            record->length = (uint64_t)bytes;
        }
    }
    result = REAL(truncate64)(path, bytes);
    if (record)
        op_end(record, result);
    return result;
}

EXPORT int truncate(const char *path, off_t bytes)
{
    return truncate_path(path, bytes);
}

EXPORT int truncate64(const char *path, off64_t bytes)
{
    return truncate_path(path, bytes);
}

static unsigned int allocation_kind(int mode)
{
    if (mode & FALLOC_FL_PUNCH_HOLE)
        return TRACE_DISCARD;
    if (mode & FALLOC_FL_ZERO_RANGE)
        return TRACE_WRITE_ZEROES;
    return TRACE_FALLOCATE;
}

static int allocate(int fd, int mode, off64_t offset, off64_t bytes)
{
    struct ring_record *record =
        op_begin(fd, allocation_kind(mode), TRACE_API_SYNC, (uint64_t)offset, (uint64_t)bytes);
    int result;

    if (record)
        record->arg = (uint32_t)mode;
    result = REAL(fallocate64)(fd, mode, offset, bytes);
    if (record)
        op_end(record, result);
    return result;
}

EXPORT int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    return allocate(fd, mode, offset, bytes);
}

EXPORT int fallocate64(int fd, int mode, off64_t offset, off64_t bytes)
{
    return allocate(fd, mode, offset, bytes);
}

/* Returns the error, leaves errno alone. */
static int posix_allocate(int fd, off64_t offset, off64_t bytes)
{
    struct ring_record *record =
        op_begin(fd, TRACE_FALLOCATE, TRACE_API_SYNC, (uint64_t)offset, (uint64_t)bytes);
    int err = REAL(posix_fallocate64)(fd, offset, bytes);

    if (record)
        op_end_at(record, -err, stamp_ns());
    return err;
}

EXPORT int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    return posix_allocate(fd, offset, bytes);
}

EXPORT int posix_fallocate64(int fd, off64_t offset, off64_t bytes)
{
    return posix_allocate(fd, offset, bytes);
}

static int advise(int fd, off64_t offset, off64_t bytes, int advice)
{
    struct ring_record *record = NULL;
    int err;

    if (advice == POSIX_FADV_WILLNEED)
        record =
            op_begin(fd, TRACE_READAHEAD, TRACE_API_SYNC, (uint64_t)offset, (uint64_t)bytes);
    err = REAL(posix_fadvise64)(fd, offset, bytes, advice);
    if (record)
        op_end_at(record, -err, stamp_ns());
    return err;
}

EXPORT int posix_fadvise(int fd, off_t offset, off_t bytes, int advice)
{
    return advise(fd, offset, bytes, advice);
}

EXPORT int posix_fadvise64(int fd, off64_t offset, off64_t bytes, int advice)
{
    return advise(fd, offset, bytes, advice);
}

EXPORT ssize_t readahead(int fd, off64_t offset, size_t bytes)
{
    struct ring_record *record =
        op_begin(fd, TRACE_READAHEAD, TRACE_API_SYNC, (uint64_t)offset, bytes);
    ssize_t result = REAL(readahead)(fd, offset, bytes);

    if (record)
        op_end(record, result);
    return result;
}

/* ---- copies in the kernel ---------------------------------------------------------------- */

/* File to file is a copy; what goes to or comes from a pipe or socket is a read or write of the
 * file. The offset is the file's that it is an op of: the source's, for a copy. */
struct copy_call {
    int in, out;
    bool in_position, out_position; /* the descriptor's own position is used and moved */
    uint64_t in_slot, out_slot;
};

static struct ring_record *copy_begin(struct copy_call *call, const off64_t *in_offset,
                                      const off64_t *out_offset, size_t bytes)
{
    struct ring_record *record;
    bool in, out;

    if (!shim_ready())
        return NULL;
    call->in_slot = file_slot(call->in);
    call->out_slot = file_slot(call->out);
    in = !(call->in_slot & SLOT_IGNORED);
    out = !(call->out_slot & SLOT_IGNORED);
    if (!in && !out)
        return NULL;
    if ((in && (call->in_slot & SLOT_LOST)) || (out && (call->out_slot & SLOT_LOST))) {
        shim_thread.ring->dropped_files++;
        return NULL;
    }
    record = op_reserve(in && out ? TRACE_COPY : in ? TRACE_READ : TRACE_WRITE, TRACE_API_SYNC);
    if (!record)
        return NULL;
    call->in_position = in && !in_offset;
    call->out_position = !in && !out_offset;
    record->file = slot_file(in ? call->in_slot : call->out_slot);
    record->other = in && out ? slot_file(call->out_slot) : 0;
    record->flags = slot_op_flags(in ? call->in_slot : call->out_slot);
    record->length = bytes;
    return record;
}

/* Offsets given by pointer are read after the call: by then the kernel has vouched for them,
 * and moved them on by what was copied. */
static void copy_end(struct ring_record *record, const struct copy_call *call,
                     const off64_t *in_offset, const off64_t *out_offset, ssize_t got)
{
    const off64_t *offset = record->kind == TRACE_WRITE ? out_offset : in_offset;

    if (call->in_position) {
        op_end_position(record, call->in, got);
    } else if (call->out_position) {
        op_end_position(record, call->out, got);
    } else {
        if (got >= 0 && offset)
            record->offset = (uint64_t)*offset - (uint64_t)got;
        op_end(record, got);
    }
}

static ssize_t send_file(int out, int in, off64_t *offset, size_t bytes)
{
    struct copy_call call = {.in = in, .out = out};
    struct ring_record *record = copy_begin(&call, offset, NULL, bytes);
    ssize_t got = REAL(sendfile64)(out, in, offset, bytes);

    if (record)
        copy_end(record, &call, offset, NULL, got);
    return got;
}

EXPORT ssize_t sendfile(int out, int in, off_t *offset, size_t bytes)
{
    return send_file(out, in, offset, bytes);
}

EXPORT ssize_t sendfile64(int out, int in, off64_t *offset, size_t bytes)
{
    return send_file(out, in, offset, bytes);
}

EXPORT ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t bytes,
                      unsigned int flags)
{
    struct copy_call call = {.in = in, .out = out};
    struct ring_record *record = copy_begin(&call, in_offset, out_offset, bytes);
    ssize_t got = REAL(splice)(in, in_offset, out, out_offset, bytes, flags);

    if (record)
        copy_end(record, &call, in_offset, out_offset, got);
    return got;
}

EXPORT ssize_t copy_file_range(int in, off64_t *in_offset, int out, off64_t *out_offset,
                               size_t bytes, unsigned int flags)
{
    struct copy_call call = {.in = in, .out = out};
    struct ring_record *record = copy_begin(&call, in_offset, out_offset, bytes);
    ssize_t got = REAL(copy_file_range)(in, in_offset, out, out_offset, bytes, flags);

    if (record)
        copy_end(record, &call, in_offset, out_offset, got);
    return got;
}
