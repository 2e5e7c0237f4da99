/* SPDX-License-Identifier: MIT */
/* Values inside strace's arguments: numbers, descriptors, strings, flags, error names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/strace_text.h"

#define ERRNO_MAX 4095

static bool magnitude(struct strace_slice slice, size_t at, uint64_t *ret_value)
{
    unsigned int base = 10;
    uint64_t value = 0;
    size_t from;

    if (at + 2 < slice.length + 0 && slice.at[at] == '0' && (slice.at[at + 1] | 0x20) == 'x') {
        base = 16;
        at += 2;
    } else if (at + 1 < slice.length && slice.at[at] == '0' && slice.at[at + 1] >= '0' &&
               slice.at[at + 1] <= '7') {
        base = 8;
    }
    for (from = at; at < slice.length; at++) {
        char c = slice.at[at];
        unsigned int digit = c >= '0' && c <= '9'   ? (unsigned int)(c - '0')
                             : c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a') + 10
                             : c >= 'A' && c <= 'F' ? (unsigned int)(c - 'A') + 10
                                                    : 99;

        if (digit >= base)
            break;
        if (value > (UINT64_MAX - digit) / base)
            return false;
        value = value * base + digit;
    }
    *ret_value = value;
    return at > from;
}

bool strace_unsigned(struct strace_slice slice, uint64_t *ret_value)
{
    return slice.length > 0 && magnitude(slice, 0, ret_value);
}

bool strace_number(struct strace_slice slice, int64_t *ret_value)
{
    bool negative = slice.length > 0 && slice.at[0] == '-';
    uint64_t value;

    if (slice.length == 0 || !magnitude(slice, negative ? 1 : 0, &value))
        return false;
    /* 64-bit addresses and -1 printed as 0xffffffffffffffff wrap, as in the kernel. */
    *ret_value = negative ? -(int64_t)(value & INT64_MAX) : (int64_t)value;
    return true;
}

bool strace_fd_parse(struct strace_slice slice, struct strace_fd *ret)
{
    const char *open, *end, *inner;
    int64_t number;

    *ret = (struct strace_fd){.fd = -1};
    if (slice.length == 0)
        return false;
    end = slice.at + slice.length;
    if (slice.length >= 8 && memcmp(slice.at, "AT_FDCWD", 8) == 0)
        ret->fd = -100;
    else if (strace_number(slice, &number) && number >= -1 && number <= INT32_MAX)
        ret->fd = (int)number;
    else
        return false;
    open = memchr(slice.at, '<', slice.length);
    if (open == NULL || slice.at[0] == '-')
        return true;
    if (end - open > 9 && memcmp(end - 9, "(deleted)", 9) == 0) {
        ret->deleted = true;
        end -= 9;
    }
    if (end[-1] != '>')
        return true;
    ret->shown = (struct strace_slice){open + 1, (size_t)(end - 1 - (open + 1))};
    if (ret->shown.length > 2 && end[-2] == '>') {
        for (inner = end - 3; inner > open && *inner != '<'; inner--)
            ;
        if (inner > open &&
            (memcmp(inner, "<char", 5) == 0 || memcmp(inner, "<bloc", 5) == 0)) {
            ret->device = (struct strace_slice){inner + 1, (size_t)(end - 2 - (inner + 1))};
            ret->shown.length = (size_t)(inner - ret->shown.at);
        }
    }
    if (ret->shown.length > 10 &&
        memcmp(ret->shown.at + ret->shown.length - 10, " (deleted)", 10) == 0) {
        ret->deleted = true;
        ret->shown.length -= 10;
    }
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

/* The byte behind a backslash; *at is on the byte after the backslash and is moved past it. */
static char unescape_one(const char **at, const char *end)
{
    static const char names[] = "abfnrtve", bytes[] = "\a\b\f\n\r\t\v\033";
    char c = *(*at)++;
    const char *name = strchr(names, c);
    int value = 0, digits = 0;

    if (c >= '0' && c <= '7') {
        for (--*at; *at < end && digits < 3 && **at >= '0' && **at <= '7'; (*at)++, digits++)
            value = value * 8 + (**at - '0');
        return (char)value;
    }
    if (c == 'x') {
        for (; *at < end && digits < 2 && hex_digit(**at) >= 0; (*at)++, digits++)
            value = value * 16 + hex_digit(**at);
        return (char)value;
    }
    return name != NULL && c != '\0' ? bytes[name - names] : c;
}

int strace_unescape(struct strace_slice slice, char *buffer, size_t size)
{
    const char *at = slice.at, *end;
    size_t length = 0;

    if (slice.length == 0)
        return 0;
    end = slice.at + slice.length;
    while (at < end) {
        char c = *at++;

        if (length == size)
            return -1;
        if (c == '\\' && at < end)
            c = unescape_one(&at, end);
        buffer[length++] = c;
    }
    return (int)length;
}

int strace_unquote(struct strace_slice slice, char *buffer, size_t size)
{
    size_t close = 1;

    if (slice.length < 2 || slice.at[0] != '"')
        return -1;
    while (close < slice.length && slice.at[close] != '"')
        close += slice.at[close] == '\\' ? 2 : 1;
    if (close >= slice.length || close + 1 != slice.length)
        return -1; /* "..."... was cut */
    return strace_unescape((struct strace_slice){slice.at + 1, close - 1}, buffer, size);
}

bool strace_is_absolute(struct strace_slice path)
{
    const char *at = path.at + 2, *end = path.at + path.length;

    if (path.length < 2 || path.at[0] != '"')
        return false;
    return path.at[1] == '/' ||
           (path.at[1] == '\\' && at < end && unescape_one(&at, end) == '/'); /* -xx */
}

uint32_t strace_open_flags(struct strace_slice slice)
{
    static const struct {
        const char *name;
        uint32_t value;
    } flags[] = {
        {"O_WRONLY", 1},         {"O_RDWR", 2},           {"O_CREAT", 0x40},
        {"O_EXCL", 0x80},        {"O_NOCTTY", 0x100},     {"O_TRUNC", 0x200},
        {"O_APPEND", 0x400},     {"O_NONBLOCK", 0x800},   {"O_DSYNC", 0x1000},
        {"O_DIRECT", 0x4000},    {"O_LARGEFILE", 0x8000}, {"O_DIRECTORY", 0x10000},
        {"O_NOFOLLOW", 0x20000}, {"O_NOATIME", 0x40000},  {"O_CLOEXEC", 0x80000},
        {"O_SYNC", 0x101000},    {"O_PATH", 0x200000},    {"O_TMPFILE", 0x410000},
    };
    const char *at = slice.at, *end;
    uint32_t value = 0;
    uint64_t number;

    if (slice.length == 0)
        return 0;
    end = slice.at + slice.length;
    while (at < end) {
        const char *bar = memchr(at, '|', (size_t)(end - at));
        struct strace_slice word = {at, (size_t)((bar ? bar : end) - at)};

        for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
            if (strace_is(word, flags[i].name))
                value |= flags[i].value;
        if (word.length > 0 && word.at[0] >= '0' && word.at[0] <= '9' &&
            strace_unsigned(word, &number))
            value |= (uint32_t)number;
        at = bar ? bar + 1 : end;
    }
    return value;
}

int strace_errno(struct strace_slice after)
{
    size_t from = 0, length;

    while (from < after.length && after.at[from] != 'E')
        from++;
    for (length = 0; from + length < after.length; length++) {
        char c = after.at[from + length];

        if (!((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')))
            break;
    }
    for (int number = 1; number <= ERRNO_MAX && length > 1; number++) {
        const char *name = strerrorname_np(number);

        if (name != NULL && strlen(name) == length &&
            memcmp(name, after.at + from, length) == 0)
            return -number;
        if (number > 200)
            break;
    }
    return -EIO;
}
