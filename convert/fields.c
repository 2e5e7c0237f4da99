/* SPDX-License-Identifier: MIT */
#include "convert/fields.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void field_set(struct field *field, const char *line, size_t start, size_t end)
{
    while (start < end && is_blank(line[start]))
        start++;
    while (end > start && is_blank(line[end - 1]))
        end--;
    field->at = line + start;
    field->length = end - start;
    field->column = start + 1;
}

static size_t split_blanks(const char *line, size_t length, struct field *fields, size_t max)
{
    size_t count = 0, at = 0;

    for (;;) {
        size_t start;

        while (at < length && is_blank(line[at]))
            at++;
        if (at >= length)
            return count;
        start = at;
        while (at < length && !is_blank(line[at]))
            at++;
        if (count < max)
            field_set(&fields[count], line, start, at);
        count++;
    }
}

size_t fields_split(const char *line, size_t length, char separator, struct field *ret_fields,
                    size_t max)
{
    size_t count = 0, start = 0;

    if (separator == ' ')
        return split_blanks(line, length, ret_fields, max);
    if (!length)
        return 0;
    for (;;) {
        const char *next = memchr(line + start, separator, length - start);
        size_t end = next ? (size_t)(next - line) : length;

        if (count < max)
            field_set(&ret_fields[count], line, start, end);
        count++;
        if (!next)
            return count;
        start = end + 1;
    }
}

bool field_is(const struct field *field, const char *text)
{
    return strlen(text) == field->length && memcmp(field->at, text, field->length) == 0;
}

bool field_is_word(const struct field *field, const char *text)
{
    return strlen(text) == field->length && strncasecmp(field->at, text, field->length) == 0;
}

static int digits(const char *at, const char *end, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (at == end)
        return -EINVAL;
    for (; at < end; at++) {
        if (!isdigit((unsigned char)*at))
            return -EINVAL;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return -ERANGE;
    }
    *ret_value = value;
    return 0;
}

int field_u64(const struct field *field, uint64_t *ret_value)
{
    return digits(field->at, field->at + field->length, ret_value);
}

int field_hex(const struct field *field, uint64_t *ret_value)
{
    const char *at = field->at, *end = at + field->length;
    uint64_t value = 0;

    if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
        at += 2;
    if (at == end)
        return -EINVAL;
    for (; at < end; at++) {
        int low = tolower((unsigned char)*at);

        if (!isxdigit(low))
            return -EINVAL;
        if (value >> 60)
            return -ERANGE;
        value = value << 4 | (uint64_t)(low <= '9' ? low - '0' : low - 'a' + 10);
    }
    *ret_value = value;
    return 0;
}

int field_device(const struct field *field, uint32_t *ret_major, uint32_t *ret_minor)
{
    struct field parts[2];
    uint64_t major, minor;

    if (fields_split(field->at, field->length, ',', parts, 2) != 2 ||
        field_u64(&parts[0], &major) < 0 || field_u64(&parts[1], &minor) < 0)
        return -EINVAL;
    if (major > 0xfff || minor > 0xfffff)
        return -ERANGE;
    *ret_major = (uint32_t)major;
    *ret_minor = (uint32_t)minor;
    return 0;
}

int field_scaled(const struct field *field, uint64_t num, uint64_t den, int64_t *ret_value)
{
    const char *at = field->at, *end = at + field->length, *point;
    uint64_t whole = 0, fraction = 0, power = 1;
    unsigned __int128 sum;
    bool negative;
    int err;

    negative = at < end && *at == '-';
    at += negative;
    point = memchr(at, '.', (size_t)(end - at));
    err = digits(at, point ? point : end, &whole);
    if (err)
        return err;
    if (point) {
        const char *last = end - point > 19 ? point + 19 : end;

        for (const char *rest = last; rest < end; rest++)
            if (!isdigit((unsigned char)*rest))
                return -EINVAL;
        err = digits(point + 1, last, &fraction);
        if (err)
            return err;
        for (const char *digit = point + 1; digit < last; digit++)
            power *= 10;
    }
    /* Every factor is below 2^64 and num is small (at most ns an hour), so neither product of
     * the sum can pass 2^128 before the check. */
    sum = (unsigned __int128)whole * num;
    if (sum >> 96)
        return -ERANGE;
    sum = (sum + den / 2) / den;
    if (fraction) {
        unsigned __int128 part = (unsigned __int128)fraction * num, unit;

        unit = (unsigned __int128)power * den;
        /* One rounding, from whole and fraction together. */
        sum = (unsigned __int128)whole * num / den;
        part += (unsigned __int128)((unsigned __int128)whole * num % den) * power;
        sum += (part + unit / 2) / unit;
    }
    if (sum > INT64_MAX)
        return -ERANGE;
    *ret_value = negative ? -(int64_t)sum : (int64_t)sum;
    return 0;
}
