/* SPDX-License-Identifier: MIT */
/* stdio's public functions. */
#include "capture/preload_stdio.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/preload_open.h"

DEFINE_REAL(fopen64);
DEFINE_REAL(freopen64);
DEFINE_REAL(tmpfile64);
DEFINE_REAL(fclose);
DEFINE_REAL(fflush);
DEFINE_REAL(fread);
DEFINE_REAL(fwrite);
DEFINE_REAL(fgets);
DEFINE_REAL(fputs);
DEFINE_REAL(fgetc);
DEFINE_REAL(fputc);
DEFINE_REAL(getdelim);
DEFINE_REAL(vfprintf);
DEFINE_REAL(fseeko64);
DEFINE_REAL(rewind);
DEFINE_REAL(fsetpos64);

/* What programs built with _FORTIFY_SOURCE, C99 scanf or inline getc call instead. */
EXPORT size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *file);
EXPORT size_t __fread_unlocked_chk(void *to, size_t room, size_t size, size_t count, FILE *file);
EXPORT char *__fgets_chk(char *to, size_t room, int count, FILE *file);
EXPORT char *__fgets_unlocked_chk(char *to, size_t room, int count, FILE *file);
EXPORT int __fprintf_chk(FILE *file, int flag, const char *format, ...);
EXPORT int __vfprintf_chk(FILE *file, int flag, const char *format, va_list arguments);
EXPORT int __printf_chk(int flag, const char *format, ...);
EXPORT int __vprintf_chk(int flag, const char *format, va_list arguments);
EXPORT int __isoc99_fscanf(FILE *file, const char *format, ...);
EXPORT int __isoc99_vfscanf(FILE *file, const char *format, va_list arguments);
EXPORT ssize_t __getdelim(char **line, size_t *room, int end, FILE *file);
EXPORT int __uflow(FILE *file);
EXPORT int __underflow(FILE *file);
EXPORT int __overflow(FILE *file, int byte);
DEFINE_REAL(__fread_chk);
DEFINE_REAL(__fgets_chk);
DEFINE_REAL(__vfprintf_chk);
DEFINE_REAL(__isoc99_vfscanf);
DEFINE_REAL(__uflow);
DEFINE_REAL(__underflow);
DEFINE_REAL(__overflow);

/* ---- open and close ---------------------------------------------------------------------------- */

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

/* ---- flushing -------------------------------------------------------------------------------------- */

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
    for (FILE *at = all_streams(); at; at = at->_chain)
        stdio_flushing(at, true);
}

/* ---- reading ------------------------------------------------------------------------------------------ */

static size_t read_stream(void *to, size_t size, size_t count, FILE *file)
{
    STDIO_CALL(call, file);
    size_t got = REAL(fread)(to, size, count, file);

    if (call.file)
        stdio_end(&call, 0, got * size, count * size, true);
    return got;
}

EXPORT size_t fread(void *to, size_t size, size_t count, FILE *file)
{
    return read_stream(to, size, count, file);
}

EXPORT size_t(fread_unlocked)(void *to, size_t size, size_t count, FILE *file)
{
    return read_stream(to, size, count, file);
}

EXPORT size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *file)
{
    STDIO_CALL(call, file);
    size_t got = REAL(__fread_chk)(to, room, size, count, file);

    if (call.file)
        stdio_end(&call, 0, got * size, count * size, true);
    return got;
}

EXPORT size_t __fread_unlocked_chk(void *to, size_t room, size_t size, size_t count, FILE *file)
{
    return __fread_chk(to, room, size, count, file);
}

static char *get_string(char *to, int count, FILE *file)
{
    STDIO_CALL(call, file);
    char *got = REAL(fgets)(to, count, file);

    if (call.file)
        stdio_end(&call, 0, got ? strlen(got) : 0, 0, false);
    return got;
}

EXPORT char *fgets(char *to, int count, FILE *file)
{
    return get_string(to, count, file);
}

EXPORT char *fgets_unlocked(char *to, int count, FILE *file)
{
    return get_string(to, count, file);
}

EXPORT char *__fgets_chk(char *to, size_t room, int count, FILE *file)
{
    STDIO_CALL(call, file);
    char *got = REAL(__fgets_chk)(to, room, count, file);

    if (call.file)
        stdio_end(&call, 0, got ? strlen(got) : 0, 0, false);
    return got;
}

EXPORT char *__fgets_unlocked_chk(char *to, size_t room, int count, FILE *file)
{
    return __fgets_chk(to, room, count, file);
}

/* A byte that is in the buffer costs nothing more than without us. */
static int get_byte(FILE *file)
{
    int got;

    if (!(file->_flags & 0x0800) && file->_IO_read_ptr < file->_IO_read_end)
        return REAL(fgetc)(file);
    STDIO_CALL(call, file);
    got = REAL(fgetc)(file);
    if (call.file)
        stdio_end(&call, 0, got != EOF, 0, false);
    return got;
}

EXPORT int fgetc(FILE *file)
{
    return get_byte(file);
}

EXPORT int(getc)(FILE *file)
{
    return get_byte(file);
}

EXPORT int(fgetc_unlocked)(FILE *file)
{
    return get_byte(file);
}

EXPORT int(getc_unlocked)(FILE *file)
{
    return get_byte(file);
}

EXPORT int(getchar)(void)
{
    return get_byte(stdin);
}

EXPORT int(getchar_unlocked)(void)
{
    return get_byte(stdin);
}

EXPORT int __uflow(FILE *file)
{
    STDIO_CALL(call, file);
    int got = REAL(__uflow)(file);

    if (call.file)
        stdio_end(&call, 0, got != EOF, 0, false);
    return got;
}

EXPORT int __underflow(FILE *file)
{
    STDIO_CALL(call, file);
    int got = REAL(__underflow)(file);

    if (call.file)
        stdio_end(&call, 0, 0, 0, false);
    return got;
}

static ssize_t get_line(char **line, size_t *room, int end, FILE *file)
{
    STDIO_CALL(call, file);
    ssize_t got = REAL(getdelim)(line, room, end, file);

    if (call.file)
        stdio_end(&call, 0, got > 0 ? (size_t)got : 0, 0, false);
    return got;
}

EXPORT ssize_t getdelim(char **line, size_t *room, int end, FILE *file)
{
    return get_line(line, room, end, file);
}

EXPORT ssize_t __getdelim(char **line, size_t *room, int end, FILE *file)
{
    return get_line(line, room, end, file);
}

EXPORT ssize_t(getline)(char **line, size_t *room, FILE *file)
{
    return get_line(line, room, '\n', file);
}

/* How much a scan took is not returned: it is the descriptor's position less what is left. */
static size_t scan_consumed(const struct stdio_call *call, uint64_t before)
{
    const FILE *file = call->file;
    uint64_t after = stdio_position(call);
    size_t left = file->_IO_read_end > file->_IO_read_ptr
                      ? (size_t)(file->_IO_read_end - file->_IO_read_ptr)
                      : 0;

    if (before == TRACE_UNKNOWN_U64 || after < before || after - before + call->available < left)
        return 0;
    return (size_t)(after - before) + call->available - left;
}

static int scan(FILE *file, const char *format, va_list arguments)
{
    STDIO_CALL(call, file);
    uint64_t before = call.file ? stdio_position(&call) : 0;
    int got = REAL(__isoc99_vfscanf)(file, format, arguments);

    if (call.file)
        stdio_end(&call, 0, scan_consumed(&call, before), 0, false);
    return got;
}

EXPORT int __isoc99_vfscanf(FILE *file, const char *format, va_list arguments)
{
    return scan(file, format, arguments);
}

EXPORT int __isoc99_fscanf(FILE *file, const char *format, ...)
{
    va_list arguments;
    int got;

    va_start(arguments, format);
    got = scan(file, format, arguments);
    va_end(arguments);
    return got;
}

/* ---- writing ---------------------------------------------------------------------------------------------- */

static size_t write_stream(const void *from, size_t size, size_t count, FILE *file)
{
    STDIO_CALL(call, file);
    size_t put = REAL(fwrite)(from, size, count, file);

    if (call.file)
        stdio_end(&call, put * size, 0, 0, true);
    return put;
}

EXPORT size_t fwrite(const void *from, size_t size, size_t count, FILE *file)
{
    return write_stream(from, size, count, file);
}

EXPORT size_t(fwrite_unlocked)(const void *from, size_t size, size_t count, FILE *file)
{
    return write_stream(from, size, count, file);
}

static int put_string(const char *text, FILE *file)
{
    STDIO_CALL(call, file);
    int result = REAL(fputs)(text, file);

    if (call.file)
        stdio_end(&call, result >= 0 ? strlen(text) : 0, 0, 0, true);
    return result;
}

EXPORT int fputs(const char *text, FILE *file)
{
    return put_string(text, file);
}

EXPORT int fputs_unlocked(const char *text, FILE *file)
{
    return put_string(text, file);
}

/* puts writes the text and the newline: two steps to the buffer, as here. */
EXPORT int puts(const char *text)
{
    if (put_string(text, stdout) < 0)
        return EOF;
    return fputc('\n', stdout) == EOF ? EOF : (int)strlen(text) + 1;
}

static int put_byte(int byte, FILE *file)
{
    STDIO_CALL(call, file);
    int result = REAL(fputc)(byte, file);

    if (call.file)
        stdio_end(&call, result != EOF, 0, 0, false);
    return result;
}

EXPORT int fputc(int byte, FILE *file)
{
    return put_byte(byte, file);
}

EXPORT int(putc)(int byte, FILE *file)
{
    return put_byte(byte, file);
}

EXPORT int(fputc_unlocked)(int byte, FILE *file)
{
    return put_byte(byte, file);
}

EXPORT int(putc_unlocked)(int byte, FILE *file)
{
    return put_byte(byte, file);
}

EXPORT int(putchar)(int byte)
{
    return put_byte(byte, stdout);
}

EXPORT int(putchar_unlocked)(int byte)
{
    return put_byte(byte, stdout);
}

/* Called when the buffer is full, with the byte that no longer fits; or EOF for none. */
EXPORT int __overflow(FILE *file, int byte)
{
    STDIO_CALL(call, file);
    int result = REAL(__overflow)(file, byte);

    if (call.file)
        stdio_end(&call, result != EOF && byte != EOF, 0, 0, false);
    return result;
}

static int print(FILE *file, const char *format, va_list arguments)
{
    STDIO_CALL(call, file);
    int put = REAL(vfprintf)(file, format, arguments);

    if (call.file)
        stdio_end(&call, put > 0 ? (size_t)put : 0, 0, 0, false);
    return put;
}

static int print_checked(FILE *file, int flag, const char *format, va_list arguments)
{
    STDIO_CALL(call, file);
    int put = REAL(__vfprintf_chk)(file, flag, format, arguments);

    if (call.file)
        stdio_end(&call, put > 0 ? (size_t)put : 0, 0, 0, false);
    return put;
}

#define PRINT_BODY(call_name, ...)                                                             \
    va_list arguments;                                                                         \
    int put;                                                                                   \
                                                                                               \
    va_start(arguments, format);                                                               \
    put = call_name(__VA_ARGS__, format, arguments);                                           \
    va_end(arguments);                                                                         \
    return put

EXPORT int(fprintf)(FILE *file, const char *format, ...)
{
    PRINT_BODY(print, file);
}

EXPORT int(vfprintf)(FILE *file, const char *format, va_list arguments)
{
    return print(file, format, arguments);
}

EXPORT int(printf)(const char *format, ...)
{
    PRINT_BODY(print, stdout);
}

EXPORT int(vprintf)(const char *format, va_list arguments)
{
    return print(stdout, format, arguments);
}

EXPORT int __fprintf_chk(FILE *file, int flag, const char *format, ...)
{
    PRINT_BODY(print_checked, file, flag);
}

EXPORT int __vfprintf_chk(FILE *file, int flag, const char *format, va_list arguments)
{
    return print_checked(file, flag, format, arguments);
}

EXPORT int __printf_chk(int flag, const char *format, ...)
{
    PRINT_BODY(print_checked, stdout, flag);
}

EXPORT int __vprintf_chk(int flag, const char *format, va_list arguments)
{
    return print_checked(stdout, flag, format, arguments);
}

/* ---- seeking -------------------------------------------------------------------------------------------------- */

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
