/* SPDX-License-Identifier: MIT */
/* stdio's reading functions. */
#include "capture/preload_stdio.h"

#include <stdarg.h>
#include <string.h>

DEFINE_REAL(fread);
DEFINE_REAL(fgets);
DEFINE_REAL(fgetc);
DEFINE_REAL(getdelim);

/* What programs built with _FORTIFY_SOURCE, C99 scanf or inline getc call instead. */
EXPORT size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *file);
EXPORT size_t __fread_unlocked_chk(void *to, size_t room, size_t size, size_t count,
                                   FILE *file);
EXPORT char *__fgets_chk(char *to, size_t room, int count, FILE *file);
EXPORT char *__fgets_unlocked_chk(char *to, size_t room, int count, FILE *file);
EXPORT int __isoc99_fscanf(FILE *file, const char *format, ...);
EXPORT int __isoc99_vfscanf(FILE *file, const char *format, va_list arguments);
EXPORT ssize_t __getdelim(char **line, size_t *room, int end, FILE *file);
EXPORT int __uflow(FILE *file);
EXPORT int __underflow(FILE *file);
DEFINE_REAL(__fread_chk);
DEFINE_REAL(__fgets_chk);
DEFINE_REAL(__isoc99_vfscanf);
DEFINE_REAL(__uflow);
DEFINE_REAL(__underflow);

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

    if (before == TRACE_UNKNOWN_U64 || after < before ||
        after - before + call->available < left)
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
