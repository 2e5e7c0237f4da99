/* SPDX-License-Identifier: MIT */
/* stdio's streams: opening, closing, flushing and seeking. */
#include "capture/preload_stdio.h"

#include <dlfcn.h>
#include <fcntl.h>

#include "capture/preload_open.h"
#include "capture/preload_uring.h"

DEFINE_REAL(fopen64);
DEFINE_REAL(freopen64);
DEFINE_REAL(tmpfile64);
DEFINE_REAL(fclose);
DEFINE_REAL(fflush);
DEFINE_REAL(fseeko64);
DEFINE_REAL(rewind);
DEFINE_REAL(fsetpos64);

/* ---- open and close ---------------------------------------------------------------------- */

/* The flags that fopen opens with; -1 for a mode it refuses. */
static int flags_of_mode(const char *mode)
{
    int flags;

    switch (mode[0]) {
    case 'r': flags = O_RDONLY; break;
    case 'w': flags = O_WRONLY | O_CREAT | O_TRUNC; break;
    case 'a': flags = O_WRONLY | O_CREAT | O_APPEND; break;
    default: return -1;
    }
    for (const char *at = mode + 1; *at && *at != ','; at++) {
        if (*at == '+')
            flags = (flags & ~O_ACCMODE) | O_RDWR;
        else if (*at == 'x')
            flags |= O_EXCL;
        else if (*at == 'e')
            flags |= O_CLOEXEC;
    }
    return flags;
}

static struct ring_record *stream_open_begin(struct open_call *call, const char *path,
                                             const char *mode)
{
    int flags = path && mode ? flags_of_mode(mode) : -1;
    struct ring_record *record = flags == -1 ? NULL : open_begin(call, AT_FDCWD, path, flags);

    if (record) {
        record->api = TRACE_API_STDIO;
        record->flags |= TRACE_F_DERIVED;
    }
    return record;
}

static void stream_open_end(struct ring_record *record, struct open_call *call, FILE *file)
{
    if (record)
        open_end(record, call, file ? file->_fileno : -1);
    else if (file)
        file_forget(file->_fileno);
}

static FILE *open_stream(const char *path, const char *mode)
{
    struct open_call call;
    struct ring_record *record = stream_open_begin(&call, path, mode);
    FILE *file = REAL(fopen64)(path, mode);

    stream_open_end(record, &call, file);
    return file;
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
    return open_stream(path, mode);
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
    return open_stream(path, mode);
}

/* The close that fclose and freopen make, after writing out the buffer. */
static struct ring_record *stream_close_begin(FILE *file)
{
    struct ring_record *record;

    if (!file || file->_fileno < 0)
        return NULL;
    stdio_flushing(file, false);
    record = op_begin(file->_fileno, TRACE_CLOSE, TRACE_API_STDIO, TRACE_UNKNOWN_U64, 0);
    if (record)
        record->flags |= TRACE_F_DERIVED;
    file_forget(file->_fileno);
    return record;
}

EXPORT int fclose(FILE *file)
{
    struct ring_record *record = stream_close_begin(file);
    int result = REAL(fclose)(file);

    if (record)
        op_end(record, result);
    return result;
}

static FILE *reopen_stream(const char *path, const char *mode, FILE *file)
{
    struct open_call call;
    struct ring_record *closed = stream_close_begin(file), *opened;
    FILE *result;

    if (closed)
        op_end_at(closed, 0, stamp_ns());
    opened = stream_open_begin(&call, path, mode);
    result = REAL(freopen64)(path, mode, file);
    stream_open_end(opened, &call, result);
    return result;
}

EXPORT FILE *freopen(const char *path, const char *mode, FILE *file)
{
    return reopen_stream(path, mode, file);
}

EXPORT FILE *freopen64(const char *path, const char *mode, FILE *file)
{
    return reopen_stream(path, mode, file);
}

static FILE *temp_stream(void)
{
    FILE *file = REAL(tmpfile64)();

    if (file)
        file_forget(file->_fileno); /* told at its first use */
    return file;
}

EXPORT FILE *tmpfile(void)
{
    return temp_stream();
}

EXPORT FILE *tmpfile64(void)
{
    return temp_stream();
}

/* ---- flushing ---------------------------------------------------------------------------- */

/* Every open stream: glibc's list, which has been its ABI since 2.0. */
static FILE *all_streams(void)
{
    static FILE **list;

    if (!list)
        list = dlsym(RTLD_DEFAULT, "_IO_list_all");
    return list ? *list : NULL;
}

EXPORT int fflush(FILE *file)
{
    int result;

    if (!file) {
        for (FILE *at = all_streams(); at; at = at->_chain)
            stdio_flushing(at, false);
        return REAL(fflush)(NULL);
    }
    STDIO_CALL(call, file);
    result = REAL(fflush)(file);
    if (call.file && call.pending)
        stdio_end(&call, 0, 0, 0, true);
    return result;
}

/* exit writes out what is left after the last destructor, where nobody can watch. */
static void __attribute__((destructor)) streams_at_exit(void)
{
    uring_account_all();
    for (FILE *at = all_streams(); at; at = at->_chain)
        stdio_flushing(at, true);
}

/* ---- seeking ----------------------------------------------------------------------------- */

static int seek(FILE *file, off64_t offset, int whence)
{
    STDIO_CALL(call, file);
    uint64_t before = call.file ? stdio_position(&call) : 0;
    int result = REAL(fseeko64)(file, offset, whence);

    if (call.file)
        stdio_end_seek(&call, before);
    return result;
}

EXPORT int fseek(FILE *file, long offset, int whence)
{
    return seek(file, offset, whence);
}

EXPORT int fseeko(FILE *file, off_t offset, int whence)
{
    return seek(file, offset, whence);
}

EXPORT int fseeko64(FILE *file, off64_t offset, int whence)
{
    return seek(file, offset, whence);
}

EXPORT void rewind(FILE *file)
{
    STDIO_CALL(call, file);
    uint64_t before = call.file ? stdio_position(&call) : 0;

    REAL(rewind)(file);
    if (call.file)
        stdio_end_seek(&call, before);
}

static int set_position(FILE *file, const fpos64_t *position)
{
    STDIO_CALL(call, file);
    uint64_t before = call.file ? stdio_position(&call) : 0;
    int result = REAL(fsetpos64)(file, position);

    if (call.file)
        stdio_end_seek(&call, before);
    return result;
}

EXPORT int fsetpos(FILE *file, const fpos_t *position)
{
    return set_position(file, (const fpos64_t *)position);
}

EXPORT int fsetpos64(FILE *file, const fpos64_t *position)
{
    return set_position(file, position);
}
