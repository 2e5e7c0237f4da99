/* SPDX-License-Identifier: MIT */
#include "convert/csv_op.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* ---- fields --------------------------------------------------------------------------- */

static bool is_absent(const struct field *field)
{
    return field->length == 0 || (field->length == 1 && *field->at == '-');
}

/* Eight decimal digits at once, the first in the lowest byte: pairs, then fours, then all of them
 * are made one number by multiplying what lies beside each other in a word. False when a byte is
 * no digit. */
static inline bool eight_digits(uint64_t word, uint64_t *ret_number)
{
    if (((word & 0xf0f0f0f0f0f0f0f0) | ((word + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) >> 4) !=
        0x3333333333333333)
        return false;
    word = (word & 0x0f0f0f0f0f0f0f0f) * 2561 >> 8;
    word = (word & 0x00ff00ff00ff00ff) * 6553601 >> 16;
    *ret_number = (word & 0x0000ffff0000ffff) * 42949672960001 >> 32;
    return true;
}

static inline uint64_t eight_bytes(const char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    return le64toh(word);
}

/* Decimal digits alone, the most common field by far. */
static bool plain_u64(const struct field *field, uint64_t *ret_value)
{
    static const uint64_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    uint64_t value = 0, number;
    size_t length = field->length, i = 0;

    if (length == 0 || length > 19)
        return false;
    for (; i + 8 <= length; i += 8) {
        if (!eight_digits(eight_bytes(field->at + i), &number))
            return false;
        value = value * 100000000 + number;
    }
    if (i > 0 && i < length) {
        /* The last eight bytes, of which those that were read already count as zeros. */
        uint64_t read = (UINT64_C(1) << 8 * (8 - (length - i))) - 1;

        if (!eight_digits((eight_bytes(field->at + length - 8) & ~read) |
                              (0x3030303030303030 & read),
                          &number))
            return false;
        *ret_value = value * powers[length - i] + number;
        return true;
    }
    for (; i < length; i++) {
        unsigned int digit = (unsigned char)field->at[i] - '0';

        if (digit > 9)
            return false;
        value = value * 10 + digit;
    }
    *ret_value = value;
    return true;
}

static int bad(struct from_csv *csv, const struct field *field, const char *expected)
{
    int err = import_bad(csv->import, csv->input, field->column, "'%.*s' is not %s",
                         (int)(field->length < 40 ? field->length : 40), field->at, expected);

    return err ? err : 1;
}

/* ns from a time column: whole stamps are scaled exactly, the epoch taken off before. */
static int parse_time(const struct from_csv *csv, const struct csv_column *column,
                      const struct field *field, uint64_t epoch, int64_t *ret_ns)
{
    __int128 ns;
    int64_t scaled;
    uint64_t whole;

    if (plain_u64(field, &whole) && epoch == 0 && column->den == 1 &&
        !__builtin_mul_overflow(whole, column->num, &whole)) {
        ns = whole;
    } else if (plain_u64(field, &whole)) {
        ns = ((__int128)whole - epoch) * (__int128)column->num / (__int128)column->den;
    } else {
        int err = field_scaled(field, column->num, column->den, &scaled);

        if (err < 0)
            return err;
        ns = scaled - (__int128)epoch * (__int128)column->num / (__int128)column->den;
    }
    (void)csv;
    if (ns > INT64_MAX / 4 || ns < INT64_MIN / 4)
        return -ERANGE;
    *ret_ns = (int64_t)ns;
    return 0;
}

static int parse_size(const struct csv_column *column, const struct field *field,
                      uint64_t *ret_bytes)
{
    uint64_t value, bytes;

    if (!plain_u64(field, &value) && field_u64(field, &value) < 0 &&
        (field->length < 3 || field->at[0] != '0' || (field->at[1] | 32) != 'x' ||
         field_hex(field, &value) < 0))
        return -EINVAL;
    if (__builtin_mul_overflow(value, column->num, &bytes))
        return -ERANGE;
    *ret_bytes = column->den == 1 ? bytes : bytes / column->den; /* a division is slow */
    return 0;
}

/* Do the words that an option lists ("0|R") hold the field? */
static bool is_listed(const char *words, const struct field *field)
{
    while (words && *words) {
        size_t length = strcspn(words, "|");

        if (length == field->length && !strncasecmp(words, field->at, length))
            return true;
        words += length + (words[length] == '|');
    }
    return false;
}

int csv_parse_op(const struct from_csv *csv, const struct field *field)
{
    const struct from_csv_conf *conf = csv->conf;

    if (is_listed(conf->read, field))
        return TRACE_READ;
    if (is_listed(conf->write, field))
        return TRACE_WRITE;
    if (is_listed(conf->discard, field))
        return TRACE_DISCARD;
    if (is_listed(conf->flush, field))
        return TRACE_FLUSH;
    if (is_listed(conf->fsync, field))
        return TRACE_FSYNC;
    return trace_op_from_name(field->at, field->length);
}

static int parse_word(const struct from_csv *csv, int what, const struct field *field)
{
    return what == CSV_OP ? csv_parse_op(csv, field)
                          : trace_api_from_name(field->at, field->length);
}

/* The op or api of a word, which is most often that of a row just before. */
static int known_word(struct from_csv *csv, int what, const struct field *field)
{
    struct csv_word *word;
    int number;

    if (!field->length || field->length > sizeof(word->text))
        return parse_word(csv, what, field);
    for (unsigned int i = 0; i < CSV_WORDS; i++) {
        word = &csv->words[i];
        if (word->length == field->length && word->what == what &&
            !memcmp(word->text, field->at, field->length))
            return word->number;
    }
    number = parse_word(csv, what, field);
    if (number < 0)
        return number;
    word = &csv->words[csv->next_word++ % CSV_WORDS];
    memcpy(word->text, field->at, field->length);
    word->length = field->length;
    word->what = what;
    word->number = number;
    return number;
}

static int parse_flags(const struct field *field, uint32_t *ret_flags)
{
    uint32_t flags = 0, flag;

    for (size_t at = 0; at < field->length;) {
        const char *bar = memchr(field->at + at, '|', field->length - at);
        size_t length = bar ? (size_t)(bar - field->at) - at : field->length - at;

        if (trace_flag_from_name(field->at + at, length, &flag) < 0)
            return -EINVAL;
        flags |= flag;
        at += length + 1;
    }
    *ret_flags = flags;
    return 0;
}

static int parse_signed(const struct field *field, int64_t *ret_value)
{
    return field_scaled(field, 1, 1, ret_value);
}

/* ---- one column of a row: 0, 1 = bad and passed over, else -errno --------------------- */

static int take_number(struct from_csv *csv, int what, const struct field *field,
                       struct trace_op *op)
{
    uint64_t value;
    int64_t number;

    if (what == CSV_RESULT && plain_u64(field, &value) && value <= INT64_MAX) {
        op->result = (int64_t)value;
        return 0;
    }
    if (what == CSV_RESULT)
        return parse_signed(field, &op->result) < 0 ? bad(csv, field, "a result") : 0;
    if (what == CSV_ARG && parse_signed(field, &number) == 0 && number >= 0 &&
        number <= UINT32_MAX) {
        op->arg = (uint32_t)number;
        return 0;
    }
    if (what == CSV_ARG || (!plain_u64(field, &value) && field_u64(field, &value) < 0) ||
        (value > UINT32_MAX && (what == CSV_PID || what == CSV_TID)))
        return bad(csv, field, "a whole number that fits");
    switch (what) {
    case CSV_PID: csv->pid = value; break;
    case CSV_TID: csv->tid = value; break;
    case CSV_BATCH: op->batch = value; break;
    case CSV_REF: op->ref = value; break;
    }
    return 0;
}

static int take_word(struct from_csv *csv, int what, const struct field *field,
                     struct trace_op *op)
{
    static const char *const completions[] = {"unknown", "exact", "upper"};
    int number;

    switch (what) {
    case CSV_OP:
        number = known_word(csv, CSV_OP, field);
        if (number < 0)
            return bad(csv, field,
                       "an op (read, write, R, W ...; csv:read=0,write=1 names others)");
        op->kind = (uint8_t)number;
        return 0;
    case CSV_API:
        number = known_word(csv, CSV_API, field);
        if (number < 0)
            return bad(csv, field, "an api");
        op->api = (uint8_t)number;
        return 0;
    case CSV_FLAGS:
        return parse_flags(field, &op->flags) < 0 ? bad(csv, field, "a list of flags") : 0;
    case CSV_COMPLETION:
        for (unsigned int i = 0; i < 3; i++)
            if (field_is(field, completions[i])) {
                op->completion = (uint8_t)i;
                return 0;
            }
        return bad(csv, field, "exact, upper or unknown");
    case CSV_CAUSE:
        for (unsigned int i = 0; i < TRACE_CAUSE_COUNT; i++)
            if (field_is(field, trace_cause_name(i))) {
                op->cause = (uint8_t)i;
                return 0;
            }
        return bad(csv, field, "a cause");
    default: csv->comm = field; return 0;
    }
}

static int take_time(struct from_csv *csv, const struct csv_column *column,
                     const struct field *field, struct trace_op *op)
{
    bool absolute = column->what == CSV_TIME || column->what == CSV_COMPLETED;
    int64_t ns;

    if (parse_time(csv, column, field, absolute ? csv->epoch : 0, &ns) < 0)
        return bad(csv, field, "a time that fits (see --time-unit and --epoch)");
    switch (column->what) {
    case CSV_TIME: op->issue_ns = ns; break;
    case CSV_DUE: op->due_ns = ns; break;
    case CSV_LATENCY:
    case CSV_COMPLETED:
    case CSV_SUBMIT:
        if (column->what != CSV_COMPLETED && ns < 0)
            return bad(csv, field, "a duration: it is negative");
        if (column->what == CSV_SUBMIT)
            op->submit_ns = (uint64_t)ns;
        else
            op->latency_ns = (uint64_t)ns; /* completed: made a latency when the row is whole */
        break;
    }
    return 0;
}

static int take_column(struct from_csv *csv, const struct csv_column *column,
                       const struct field *field, struct trace_op *op)
{
    int err = 0;

    switch (column->what) {
    case CSV_IGNORE:
    case CSV_FILE_SIZE: return 0; /* known when the file is */
    case CSV_TIME:
        return field->length ? take_time(csv, column, field, op)
                             : bad(csv, field, "a time: it is empty");
    case CSV_OP: return take_word(csv, CSV_OP, field, op);
    case CSV_OFFSET:
    case CSV_LENGTH:
        if (is_absent(field))
            return 0;
        err = parse_size(column, field, column->what == CSV_OFFSET ? &op->offset : &op->length);
        return err < 0 ? bad(csv, field, "a number of bytes that fits") : 0;
    case CSV_FILE:
        if (!field->length)
            return 0;
        return import_file(csv->import, field->at, field->length, &op->file);
    case CSV_FILE2:
        if (is_absent(field))
            return 0;
        return import_file(csv->import, field->at, field->length, &op->file2);
    }
    if (is_absent(field))
        return 0;
    switch (column->what) {
    case CSV_COMPLETED:
    case CSV_LATENCY:
    case CSV_DUE:
    case CSV_SUBMIT: return take_time(csv, column, field, op);
    case CSV_RESULT:
    case CSV_PID:
    case CSV_TID:
    case CSV_BATCH:
    case CSV_ARG:
    case CSV_REF: return take_number(csv, column->what, field, op);
    default: return take_word(csv, column->what, field, op);
    }
}

/* ---- a row ---------------------------------------------------------------------------- */

static int row_file_size(struct from_csv *csv, const struct trace_op *op)
{
    int index = csv->column_of[CSV_FILE_SIZE];
    struct trace_file facts = {.size_bytes = TRACE_UNKNOWN_U64};
    const struct field *field = &csv->row.fields[index];

    if (is_absent(field) || op->file == TRACE_NONE_U32)
        return 0;
    /* Every row of a file says the same. */
    if (op->file == csv->sized_file && field->length == csv->size_length &&
        !memcmp(field->at, csv->size_text, field->length))
        return 0;
    if (parse_size(&csv->columns.items[index], field, &facts.size_bytes) < 0)
        return bad(csv, field, "a file size");
    csv->size_length = field->length <= sizeof(csv->size_text) ? field->length : 0;
    memcpy(csv->size_text, field->at, csv->size_length);
    csv->sized_file = op->file;
    return import_file_facts(csv->import, op->file, &facts);
}

static int finish_row(struct from_csv *csv, struct trace_op *op)
{
    int err = 0;

    if (csv->column_of[CSV_COMPLETED] >= 0 && op->latency_ns != TRACE_UNKNOWN_U64) {
        int64_t completed_ns = (int64_t)op->latency_ns;

        if (csv->column_of[CSV_TIME] < 0) {
            op->issue_ns = completed_ns; /* the only time there is */
            op->latency_ns = TRACE_UNKNOWN_U64;
        } else if (completed_ns < op->issue_ns) {
            return bad(csv, &csv->row.fields[csv->column_of[CSV_COMPLETED]],
                       "a completion: it is before the issue");
        } else {
            op->latency_ns = (uint64_t)completed_ns - (uint64_t)op->issue_ns;
        }
    }
    if (op->latency_ns == TRACE_UNKNOWN_U64)
        op->completion = TRACE_COMPLETION_UNKNOWN;
    if (csv->column_of[CSV_OP] < 0)
        op->kind = (uint8_t)csv->default_op;
    if (csv->column_of[CSV_FILE] < 0)
        op->file = csv->default_file;
    if (csv->pid != TRACE_UNKNOWN_U64 || csv->tid != TRACE_UNKNOWN_U64 || csv->comm)
        err = import_stream(csv->import, csv->pid != TRACE_UNKNOWN_U64 ? (uint32_t)csv->pid : 0,
                            csv->tid != TRACE_UNKNOWN_U64   ? (uint32_t)csv->tid
                            : csv->pid != TRACE_UNKNOWN_U64 ? (uint32_t)csv->pid
                                                            : 0,
                            csv->comm ? csv->comm->at : "", csv->comm ? csv->comm->length : 0,
                            &op->stream);
    if (err == 0 && csv->column_of[CSV_FILE_SIZE] >= 0)
        err = row_file_size(csv, op);
    return err;
}

int csv_take_row(struct from_csv *csv)
{
    struct trace_op op = TRACE_OP_INIT;
    int err = 0;

    if (csv->row.count < csv->needed) {
        if (csv->row.count == 0)
            return 0;
        return import_bad(csv->import, csv->input, 1, "%zu fields where %zu are needed",
                          csv->row.count, csv->needed);
    }
    csv->pid = csv->tid = TRACE_UNKNOWN_U64;
    csv->comm = NULL;
    for (size_t i = 0; i < csv->needed && err == 0; i++) {
        const struct csv_column *column = &csv->columns.items[i];
        const struct field *field = &csv->row.fields[i];

        /* What is empty is not known: only a time and an op must be there. */
        if (field->length || column->what == CSV_TIME || column->what == CSV_OP)
            err = take_column(csv, column, field, &op);
    }
    if (err == 0)
        err = finish_row(csv, &op);
    if (err == 0)
        err = import_op(csv->import, &op);
    return err == 1 ? 0 : err;
}
