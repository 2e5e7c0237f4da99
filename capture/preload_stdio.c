/* SPDX-License-Identifier: MIT */
/*
 * stdio. glibc's own reads and writes are made by calls that no shim sees, so they are derived:
 * what a function moved between the program and the buffer is known from what it returned, what
 * is in the buffer before and after is known from the stream, and the difference went to or
 * came from the kernel. Where it did is the descriptor's position afterwards. How it was cut
 * into calls follows from the buffer's size by glibc's rules. All such ops carry
 * TRACE_F_DERIVED.
 */
#include "capture/preload_stdio.h"

#include <fcntl.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <unistd.h>
#include <wchar.h>

#define FLAG_EOF     0x0010 /* the bits of _flags that are part of glibc's interface to inline */
#define FLAG_ERROR   0x0020 /* code: struct _IO_FILE is public for getc_unlocked and the like */
#define FLAG_PUTTING 0x0800

static size_t span(const char *from, const char *to)
{
    return from && to > from ? (size_t)(to - from) : 0;
}

static size_t pending_of(const FILE *file)
{
    return file->_flags & FLAG_PUTTING ? span(file->_IO_write_base, file->_IO_write_ptr) : 0;
}

static size_t available_of(const FILE *file)
{
    return file->_flags & FLAG_PUTTING ? 0 : span(file->_IO_read_ptr, file->_IO_read_end);
}

static size_t buffer_of(const FILE *file)
{
    size_t bytes = span(file->_IO_buf_base, file->_IO_buf_end);

    return bytes ? bytes : BUFSIZ;
}

bool stdio_begin(struct stdio_call *call, FILE *file)
{
    uint64_t slot;

    call->file = NULL;
    if (!file || file->_fileno < 0 || !shim_ready())
        return false;
    slot = file_slot(file->_fileno);
    if (slot & SLOT_IGNORED)
        return false;
    if (!__libc_single_threaded)
        flockfile(file);
    call->file = file;
    call->slot = slot;
    call->flags = file->_flags;
    call->pending = pending_of(file);
    call->available = available_of(file);
    call->empty = file->_IO_read_base == file->_IO_read_end &&
                  file->_IO_write_base == file->_IO_write_ptr;
    call->room = file->_flags & FLAG_PUTTING ? span(file->_IO_write_ptr, file->_IO_buf_end) : 0;
    call->begin_ns = stamp_ns();
    return true;
}

void stdio_release(struct stdio_call *call)
{
    if (call->file && !__libc_single_threaded)
        funlockfile(call->file);
}

/* One derived transfer. */
static void emit(const struct stdio_call *call, unsigned int kind, uint64_t offset,
                 uint64_t length, int64_t result)
{
    struct ring_record *record;

    if (call->slot & SLOT_LOST) {
        shim_thread.ring->dropped_files++;
        return;
    }
    record = op_reserve(kind, TRACE_API_STDIO);
    if (!record)
        return;
    record->file = slot_file(call->slot);
    record->flags = slot_op_flags(call->slot) | TRACE_F_DERIVED | TRACE_F_POSITION;
    if (kind == TRACE_WRITE && (call->slot & SLOT_APPEND))
        record->flags |= TRACE_F_APPEND;
    record->offset = offset;
    record->length = length;
    record->begin_ns = call->begin_ns;
    record->completion = call->at_exit ? TRACE_COMPLETION_UNKNOWN : TRACE_COMPLETION_UPPER;
    op_end_at(record, result, call->end_ns);
}

static uint64_t position_of(int fd)
{
    long position = RAW(lseek, fd, 0, SEEK_CUR);

    return position < 0 ? TRACE_UNKNOWN_U64 : (uint64_t)position;
}

/* moved bytes have been written; position is the descriptor's after them. */
static void emit_writes(const struct stdio_call *call, size_t moved, size_t produced,
                        uint64_t position, bool whole)
{
    size_t fill = produced < call->room ? produced : call->room;
    size_t next = call->pending + fill, buffer = buffer_of(call->file);
    uint64_t offset = position == TRACE_UNKNOWN_U64 ? position : position - moved;

    if (buffer == 1) /* an unbuffered stream's functions write all they have at once */
        next = moved;
    if (next == 0 || next > moved)
        next = whole ? moved : buffer;
    while (moved > 0) {
        if (next > moved)
            next = moved;
        emit(call, TRACE_WRITE, offset, next, (int64_t)next);
        moved -= next;
        if (offset != TRACE_UNKNOWN_U64)
            offset += next;
        next = whole ? moved : buffer;
    }
}

/* moved bytes have been read for a function that wanted so many past the buffer. The end of the
 * file is seen by a read of nothing: requests that fill a buffer ask again each time, smaller
 * ones do not once the stream knows. */
static void emit_reads(const struct stdio_call *call, size_t moved, size_t wanted,
                       uint64_t position)
{
    size_t buffer = buffer_of(call->file);
    bool at_end = call->file->_flags & FLAG_EOF, news = at_end && !(call->flags & FLAG_EOF);
    uint64_t offset = position == TRACE_UNKNOWN_U64 ? position : position - moved;

    while (moved > 0 || news || (at_end && wanted >= buffer)) {
        size_t length = wanted >= buffer ? wanted - wanted % buffer : buffer;
        size_t got = moved < length ? moved : length;

        emit(call, TRACE_READ, offset, length, (int64_t)got);
        if (got == 0)
            break;
        moved -= got;
        wanted -= got < wanted ? got : wanted;
        if (offset != TRACE_UNKNOWN_U64)
            offset += got;
    }
}

void stdio_end(struct stdio_call *call, size_t produced, size_t consumed, size_t wanted,
               bool whole)
{
    FILE *file = call->file;
    size_t before, after, moved;
    int saved = errno;

    if (file->_mode > 0) { /* wide: another buffer altogether */
        shim_unseen("stdio wide", 1);
        goto out;
    }
    if ((file->_flags & FLAG_ERROR) && !(call->flags & FLAG_ERROR)) {
        shim_unseen("stdio error", 1);
        goto out;
    }
    before = call->pending + produced;
    after = pending_of(file);
    if (before > after) {
        moved = before - after;
        call->end_ns = stamp_ns();
        emit_writes(call, moved, produced, position_of(file->_fileno), whole);
    }
    before = call->available;
    after = available_of(file) + consumed;
    if (after > before || ((file->_flags & FLAG_EOF) && !(file->_flags & FLAG_PUTTING))) {
        moved = after > before ? after - before : 0;
        call->end_ns = stamp_ns();
        emit_reads(call, moved, wanted > before ? wanted - before : 0,
                   position_of(file->_fileno));
    }
out:
    errno = saved;
}

void stdio_end_seek(struct stdio_call *call, uint64_t position_before)
{
    FILE *file = call->file;
    uint64_t position = position_of(file->_fileno);
    size_t block = span(file->_IO_read_base, file->_IO_read_end);
    int saved = errno;

    call->end_ns = stamp_ns();
    if (call->pending > 0 && pending_of(file) == 0)
        emit(call, TRACE_WRITE, position_before, call->pending, (int64_t)call->pending);
    /* glibc reads the block that it has sought into, unless that is in the buffer; only as far
     * as the place sought when the buffer was empty. */
    else if (position != position_before && block > 0 && position != TRACE_UNKNOWN_U64)
        emit(call, TRACE_READ, position - block, call->empty ? block : buffer_of(file),
             (int64_t)block);
    errno = saved;
}

uint64_t stdio_position(const struct stdio_call *call)
{
    return position_of(call->file->_fileno);
}

void stdio_flushing(FILE *file, bool at_exit)
{
    struct stdio_call call;
    size_t pending;
    int saved = errno;

    /* Most streams have nothing, and most programs do no I/O: no ring is made for looking. */
    if (pending_of(file) == 0 || !stdio_begin(&call, file))
        return;
    pending = call.pending;
    if (pending > 0 && file->_mode <= 0) {
        call.at_exit = at_exit;
        call.end_ns = call.begin_ns;
        emit(&call, TRACE_WRITE, position_of(file->_fileno), pending, (int64_t)pending);
    }
    stdio_release(&call);
    errno = saved;
}
