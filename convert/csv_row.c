/* SPDX-License-Identifier: MIT */
#include "convert/csv_row.h"

#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void csv_row_release(struct csv_row *row)
{
    free(row->joined);
    row->joined = NULL;
    row->joined_capacity = 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The quoted field at line[*at] (the quote): unquoted in place, *at behind its closing quote.
 */
static void unquote(char *line, size_t length, size_t *at, struct field *field)
{
    size_t from = *at + 1, to = from;

    field->at = line + from;
    while (from < length) {
        if (line[from] == '"') {
            if (from + 1 >= length || line[from + 1] != '"')
                break;
            from++;
        }
        line[to++] = line[from++];
    }
    field->length = (size_t)(line + to - field->at);
    *at = from < length ? from + 1 : from;
}

static void keep(struct field *fields, size_t index, const struct field *field)
{
    if (index < CSV_COLUMNS_MAX)
        fields[index] = *field;
}

/* Blanks around a field are no part of it. */
static struct field trimmed(const char *line, const char *from, const char *to)
{
    while (from < to && is_blank(*from))
        from++;
    while (from < to && is_blank(to[-1]))
        to--;
    return (struct field){from, (size_t)(to - from), (size_t)(from - line) + 1};
}

static inline void put_field(struct field *fields, size_t index, const char *line,
                             const char *from, const char *to)
{
    if (index >= CSV_COLUMNS_MAX)
        return;
    fields[index] = (struct field){from, (size_t)(to - from), (size_t)(from - line) + 1};
    if (from < to && (*from <= ' ' || to[-1] <= ' '))
        fields[index] = trimmed(line, from, to);
}

/* Most rows have no quotes and a separator that is no blank: eight bytes are looked at at once.
 */
static size_t split_plain(struct field *fields, const char *line, size_t length, char separator)
{
    const uint64_t ones = 0x0101010101010101, low = 0x7f7f7f7f7f7f7f7f;
    const uint64_t separators = ones * (unsigned char)separator;
    const char *from = line, *at = line, *end = line + length;
    size_t count = 0;

    for (; end - at >= 8; at += 8) {
        uint64_t word, found;

        memcpy(&word, at, sizeof(word));
        word = le64toh(word) ^ separators;
        /* The high bit of each byte that is 0. */
        found = ~(((word & low) + low) | word | low);
        for (; found != 0; found &= found - 1) {
            const char *to = at + __builtin_ctzll(found) / 8;

            put_field(fields, count++, line, from, to);
            from = to + 1;
        }
    }
    for (; at < end; at++) {
        if (*at == separator) {
            put_field(fields, count++, line, from, at);
            from = at + 1;
        }
    }
    put_field(fields, count++, line, from, end);
    return count;
}

static size_t split_quoted(struct field *fields, char *line, size_t length, char separator)
{
    size_t at = 0, count = 0;

    for (;;) {
        struct field field;
        size_t end;

        while (at < length && is_blank(line[at]) && line[at] != separator)
            at++;
        if (separator == ' ' && at < length)
            while (at < length && is_blank(line[at]))
                at++;
        if (at == length && (separator == ' ' || !count))
            break;
        field = (struct field){line + at, 0, at + 1};
        if (at < length && line[at] == '"') {
            unquote(line, length, &at, &field);
            while (at < length && line[at] != separator &&
                   !(separator == ' ' && is_blank(line[at])))
                at++;
        } else {
            end = at;
            if (separator == ' ')
                while (end < length && !is_blank(line[end]))
                    end++;
            else
                while (end < length && line[end] != separator)
                    end++;
            field.length = end - at;
            at = end;
            while (field.length && is_blank(field.at[field.length - 1]))
                field.length--;
        }
        keep(fields, count++, &field);
        if (at >= length)
            break;
        at++;
    }
    return count;
}

size_t csv_row_split(struct field *fields, char *line, size_t length, char separator)
{
    if (separator != ' ' && length && !memchr(line, '"', length))
        return split_plain(fields, line, length, separator);
    return split_quoted(fields, line, length, separator);
}

/* Are the quotes of text closed? A field is quoted when its first byte is a quote; inside, a
 * doubled quote toggles twice. */
static bool quotes_closed(const char *text, size_t length)
{
    bool open = false;

    for (const char *at = text; (at = memchr(at, '"', (size_t)(text + length - at))); at++)
        open = !open;
    return !open;
}

static int join(struct csv_row *row, const char *text, size_t length, size_t *used)
{
    if (*used + length + 1 > row->joined_capacity) {
        size_t capacity = (*used + length + 1) * 2;
        char *grown = realloc(row->joined, capacity);

        if (!grown)
            return -ENOMEM;
        row->joined = grown;
        row->joined_capacity = capacity;
    }
    memcpy(row->joined + *used, text, length);
    *used += length;
    return 0;
}

/* A row whose quoted field holds newlines: its further lines are joined to it. */
static int read_on(struct csv_row *row, struct input *input, struct import *import, char **line,
                   size_t *length)
{
    size_t used = 0;
    int err = join(row, *line, *length, &used);

    while (err == 0 && !quotes_closed(row->joined, used)) {
        int got = used < CSV_QUOTED_MAX ? input_line(input, line, length) : 0;

        if (got < 0)
            return got;
        if (got == 0)
            return import_bad(import, input, 1, "a quote that is not closed");
        err = join(row, "\n", 1, &used);
        if (err == 0)
            err = join(row, *line, *length, &used);
    }
    if (err < 0)
        return diag_errno(import_diag(import), err, "%s", input_name(input));
    *line = row->joined;
    *length = used;
    return 1;
}

int csv_row_next(struct csv_row *row, struct input *input, struct import *import,
                 char separator, const char *comment)
{
    size_t comment_length = strlen(comment), length;
    char *line;
    int got;

    do {
        got = input_line(input, &line, &length);
        if (got <= 0)
            return got;
    } while (length == 0 || (comment_length && length >= comment_length &&
                             !memcmp(line, comment, comment_length)));
    if (separator != ' ' && !memchr(line, '"', length)) {
        row->count = split_plain(row->fields, line, length, separator);
        return 1;
    }
    if (!quotes_closed(line, length)) {
        got = read_on(row, input, import, &line, &length);
        if (got <= 0) {
            row->count = 0;
            return got < 0 ? got : 1;
        }
    }
    row->count = csv_row_split(row->fields, line, length, separator);
    return 1;
}
