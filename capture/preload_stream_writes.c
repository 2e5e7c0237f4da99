/* SPDX-License-Identifier: MIT */
/* stdio's writing functions. */
#include "capture/preload_stdio.h"

#include <stdarg.h>
#include <string.h>

DEFINE_REAL(fwrite);
DEFINE_REAL(fputs);
DEFINE_REAL(fputc);
DEFINE_REAL(vfprintf);

/* What programs built with _FORTIFY_SOURCE, C99 scanf or inline getc call instead. */
EXPORT int __fprintf_chk(FILE *file, int flag, const char *format, ...);
EXPORT int __vfprintf_chk(FILE *file, int flag, const char *format, va_list arguments);
EXPORT int __printf_chk(int flag, const char *format, ...);
EXPORT int __vprintf_chk(int flag, const char *format, va_list arguments);
EXPORT int __overflow(FILE *file, int byte);
DEFINE_REAL(__vfprintf_chk);
DEFINE_REAL(__overflow);

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
