/* SPDX-License-Identifier: MIT */
#include "convert/rows.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SNIFF_LINES        32
#define SNIFF_LINES_A_TORN 8 /* whole lines for each one that may be torn */

/* What the options make of a spec: worked out once an input. */
struct rows {
    const struct rows_spec *spec;
    struct input *input;
    struct import *import;
    uint64_t time_num, time_den, offset_unit, length_unit;
    const char *device;
    /* The last file name and stream seen: most rows repeat it. */
    char last_name[128];
    size_t last_name_length;
    uint32_t last_file, last_stream;
    uint64_t last_pid;
};

static bool is_comment(const struct rows_spec *spec, const char *line, size_t length)
{
    size_t prefix = spec->comment ? strlen(spec->comment) : 0;

    if (spec->preamble) {
        size_t at = 0;

        while (at < length && (line[at] == ' ' || line[at] == '\t'))
            at++;
        return at == length || !isdigit((unsigned char)line[at]);
    }
    return prefix && length >= prefix && memcmp(line, spec->comment, prefix) == 0;
}

static bool is_header(const struct rows_spec *spec, const struct field *fields, size_t count)
{
    size_t i;

    if (!spec->header)
        return false;
    for (i = 0; spec->header[i]; i++)
        if (i >= count || !field_is_word(&fields[i], spec->header[i]))
            return false;
    return i > 0;
}

static const struct rows_word *find_word(const struct rows_spec *spec,
                                         const struct field *field)
{
    for (const struct rows_word *word = spec->words; word->text; word++)
        if (spec->words_any_case ? field_is_word(field, word->text)
                                 : field_is(field, word->text))
            return word;
    return NULL;
}

static int bad_field(struct rows *rows, const struct field *field, const char *expected)
{
    return import_bad(rows->import, rows->input, field->column, "'%.*s' is not %s",
                      (int)(field->length < 40 ? field->length : 40), field->at, expected);
}

/* Whole stamps of another epoch: subtracted before scaling, so that nothing overflows. */
static int parse_time(const struct rows *rows, const struct field *field, int64_t *ret_ns)
{
    uint64_t whole;

    if (rows->spec->time_base && field_u64(field, &whole) == 0 &&
        whole >= rows->spec->time_base) {
        unsigned __int128 ns = (unsigned __int128)(whole - rows->spec->time_base) *
                               rows->time_num / rows->time_den;

        if (ns > INT64_MAX)
            return -ERANGE;
        *ret_ns = (int64_t)ns;
        return 0;
    }
    return field_scaled(field, rows->time_num, rows->time_den, ret_ns);
}

/* 1 when bad and --skip-bad allows it, 0 fine, else -errno. */
static int row_numbers(struct rows *rows, const struct field *fields, struct trace_op *op)
{
    const struct rows_spec *spec = rows->spec;
    uint64_t offset, length;
    int64_t latency;
    int err;

    if (spec->time != ROWS_NONE && parse_time(rows, &fields[spec->time], &op->issue_ns) < 0) {
        err = bad_field(rows, &fields[spec->time], "a time");
        return err ? err : 1;
    }
    if (field_u64(&fields[spec->offset], &offset) < 0 ||
        __builtin_mul_overflow(offset, rows->offset_unit, &op->offset)) {
        err = bad_field(rows, &fields[spec->offset], "an offset that fits");
        return err ? err : 1;
    }
    if (field_u64(&fields[spec->length], &length) < 0 ||
        __builtin_mul_overflow(length, rows->length_unit, &op->length)) {
        err = bad_field(rows, &fields[spec->length], "a length that fits");
        return err ? err : 1;
    }
    if (spec->latency != ROWS_NONE && fields[spec->latency].length) {
        if (field_scaled(&fields[spec->latency], spec->latency_num, spec->latency_den,
                         &latency) < 0) {
            err = bad_field(rows, &fields[spec->latency], "a response time");
            return err ? err : 1;
        }
        if (latency >= 0) {
            op->latency_ns = (uint64_t)latency;
            op->completion = TRACE_COMPLETION_EXACT;
            if (spec->time_is_completion)
                op->issue_ns -= latency;
        }
    }
    return 0;
}

static int row_kind(struct rows *rows, const struct field *fields, struct trace_op *op)
{
    const struct rows_word *word;
    int err;

    if (rows->spec->op == ROWS_NONE)
        return 0;
    word = find_word(rows->spec, &fields[rows->spec->op]);
    if (!word) {
        err = bad_field(rows, &fields[rows->spec->op], "an operation of this format");
        return err ? err : 1;
    }
    if (word->kind == ROWS_NONE) {
        import_skip(rows->import, word->skip, 1);
        return 1;
    }
    op->kind = (uint8_t)word->kind;
    return 0;
}

static int name_file(struct rows *rows, const char *name, size_t length, uint32_t *ret_file)
{
    struct trace_file facts = {.size_bytes = TRACE_UNKNOWN_U64,
                               .ops = TRACE_UNKNOWN_U64,
                               .bytes = TRACE_UNKNOWN_U64,
                               .max_end = TRACE_UNKNOWN_U64,
                               .kind = rows->spec->file_kind};
    uint32_t file;
    int err = import_file(rows->import, name, length, &file);

    if (!err)
        err = import_file_facts(rows->import, file, &facts);
    if (!err)
        *ret_file = file;
    return err;
}

static int row_file(struct rows *rows, const struct field *fields, struct trace_op *op)
{
    const struct field *field = &fields[rows->spec->file];
    char name[sizeof(rows->last_name) + 32];
    int length, err;

    if (rows->device && (strlen(rows->device) != field->length ||
                         memcmp(rows->device, field->at, field->length) != 0)) {
        import_skip(rows->import, "op of another device", 1);
        return 1;
    }
    if (rows->last_file != TRACE_NONE_U32 && field->length == rows->last_name_length &&
        memcmp(field->at, rows->last_name, field->length) == 0) {
        op->file = rows->last_file;
        return 0;
    }
    if (field->length >= sizeof(rows->last_name)) {
        err = bad_field(rows, field, "a device name of sane length");
        return err ? err : 1;
    }
    length = snprintf(name, sizeof(name), "%s%.*s", rows->spec->file_prefix, (int)field->length,
                      field->at);
    err = name_file(rows, name, (size_t)length, &op->file);
    if (err)
        return err;
    memcpy(rows->last_name, field->at, field->length);
    rows->last_name_length = field->length;
    rows->last_file = op->file;
    return 0;
}

static int row_stream(struct rows *rows, const struct field *field, struct trace_op *op)
{
    uint64_t pid;
    int err;

    if (field_u64(field, &pid) < 0 || pid > UINT32_MAX) {
        err = bad_field(rows, field, "a process number");
        return err ? err : 1;
    }
    if (rows->last_stream == TRACE_NONE_U32 || pid != rows->last_pid) {
        err = import_stream(rows->import, (uint32_t)pid, (uint32_t)pid, "", 0,
                            &rows->last_stream);
        if (err)
            return err;
        rows->last_pid = pid;
    }
    op->stream = rows->last_stream;
    return 0;
}

static int row_take(struct rows *rows, const struct field *fields, size_t count)
{
    const struct rows_spec *spec = rows->spec;
    struct trace_op op = TRACE_OP_INIT;
    int err;

    op.api = spec->api;
    err = row_kind(rows, fields, &op);
    if (!err)
        err = row_numbers(rows, fields, &op);
    if (!err && spec->file != ROWS_NONE)
        err = row_file(rows, fields, &op);
    else
        op.file = rows->last_file; /* the one file, named at the start; or spec->row knows */
    if (!err && spec->stream != ROWS_NONE)
        err = row_stream(rows, &fields[spec->stream], &op);
    if (!err && spec->row)
        err = spec->row(spec, fields, count, &op, rows->input, rows->import);
    if (err)
        return err > 0 ? 0 : err;
    return import_op(rows->import, &op);
}

static int rows_line(struct rows *rows, const char *line, size_t length)
{
    const struct rows_spec *spec = rows->spec;
    struct field fields[ROWS_MAX_FIELDS];
    size_t count;
    int err;

    if (is_comment(spec, line, length))
        return 0;
    count = fields_split(line, length, spec->separator, fields, ROWS_MAX_FIELDS);
    if (count == 0)
        return 0;
    /* Again in the middle where files were put behind one another. */
    if (is_header(spec, fields, count))
        return 0;
    if (count < spec->min_fields || (spec->max_fields && count > spec->max_fields)) {
        err = import_bad(rows->import, rows->input, length + 1,
                         "expected %u fields, the line has %zu", spec->min_fields, count);
        return err;
    }
    return row_take(rows, fields, count < ROWS_MAX_FIELDS ? count : ROWS_MAX_FIELDS);
}

static int rows_cannot_tell(const struct rows_spec *spec, struct import *import)
{
    int err = 0;

    if (spec->latency == ROWS_NONE)
        err = import_cannot_tell(import, "latency");
    if (!err)
        err = import_cannot_tell(import, "result");
    if (!err && spec->stream == ROWS_NONE)
        err = import_cannot_tell(import, "stream");
    if (!err && spec->time == ROWS_NONE)
        err = import_cannot_tell(import, "time");
    if (!err && spec->time_grid_ns > 1) {
        char text[32];

        snprintf(text, sizeof(text), "%" PRIu64, spec->time_grid_ns);
        err = import_meta(import, TRACE_META_TIME_UNIT_NS, text);
    }
    return err;
}

static int rows_input(const struct rows_spec *spec, struct input *input, struct import *import)
{
    const struct import_options *options = import_options(import);
    struct rows rows = {.spec = spec,
                        .input = input,
                        .import = import,
                        .last_file = TRACE_NONE_U32,
                        .last_stream = TRACE_NONE_U32};
    size_t length;
    char *line;
    int err;

    rows.time_num = options->time_unit_ns_den ? options->time_unit_ns_num : spec->time_num;
    rows.time_den = options->time_unit_ns_den ? options->time_unit_ns_den : spec->time_den;
    rows.offset_unit = options->sector_bytes && spec->offset_unit > 1 ? options->sector_bytes
                                                                      : spec->offset_unit;
    rows.length_unit = options->sector_bytes && spec->length_unit > 1 ? options->sector_bytes
                                                                      : spec->length_unit;
    rows.device = options->device;
    err = rows_cannot_tell(spec, import);
    if (!err && spec->file_name)
        err = name_file(&rows, spec->file_name, strlen(spec->file_name), &rows.last_file);
    while (!err) {
        err = input_line(input, &line, &length);
        if (err <= 0)
            break;
        err = rows_line(&rows, line, length);
    }
    return err;
}

int rows_run(const struct rows_spec *spec, struct input **inputs, size_t count,
             struct import *import)
{
    int err = 0;

    for (size_t i = 0; i < count && !err; i++)
        err = rows_input(spec, inputs[i], import);
    return err;
}

bool rows_next_line(const uint8_t *bytes, size_t length, bool at_end, size_t *at,
                    const char **ret_line, size_t *ret_length)
{
    const uint8_t *start = bytes + *at, *end;

    if (*at >= length)
        return false;
    end = memchr(start, '\n', length - *at);
    if (!end && !at_end)
        return false;
    *ret_line = (const char *)start;
    *ret_length = end ? (size_t)(end - start) : length - *at;
    *at += *ret_length + 1;
    if (*ret_length && (*ret_line)[*ret_length - 1] == '\r')
        --*ret_length;
    return true;
}

static bool sniff_time(const struct rows_spec *spec, const struct field *field)
{
    bool point = memchr(field->at, '.', field->length) != NULL;
    int64_t value;

    if (field_scaled(field, 1, 1, &value) < 0 || (spec->time_needs_point && !point) ||
        (spec->time_forbids_point && point))
        return false;
    return !spec->most_time ||
           ((uint64_t)value >= spec->least_time && (uint64_t)value <= spec->most_time);
}

static bool sniff_row(const struct rows_spec *spec, const struct field *fields, size_t count)
{
    uint64_t value;
    int64_t latency;

    if (count < spec->min_fields || (spec->max_fields && count > spec->max_fields))
        return false;
    if (spec->time != ROWS_NONE && !sniff_time(spec, &fields[spec->time]))
        return false;
    if (field_u64(&fields[spec->offset], &value) < 0 ||
        field_u64(&fields[spec->length], &value) < 0)
        return false;
    if (spec->latency != ROWS_NONE && fields[spec->latency].length &&
        field_scaled(&fields[spec->latency], 1, 1, &latency) < 0)
        return false;
    return spec->op == ROWS_NONE || find_word(spec, &fields[spec->op]);
}

int rows_sniff(const struct rows_spec *spec, const uint8_t *bytes, size_t length, bool at_end,
               int likely)
{
    struct field fields[ROWS_MAX_FIELDS];
    unsigned int fitting = 0, unfit = 0, header = 0;
    const char *line;
    size_t at = 0, line_length;

    while (fitting + unfit < SNIFF_LINES &&
           rows_next_line(bytes, length, at_end, &at, &line, &line_length)) {
        size_t count;

        if (memchr(line, '\0', line_length))
            return IMPORT_NO;
        if (is_comment(spec, line, line_length))
            continue;
        count = fields_split(line, line_length, spec->separator, fields, ROWS_MAX_FIELDS);
        if (!count)
            continue;
        if (is_header(spec, fields, count))
            header = 1;
        else if (sniff_row(spec, fields, count))
            fitting++;
        else
            unfit++;
    }
    if (header)
        return unfit ? IMPORT_LIKELY : IMPORT_SURE;
    /* One torn line among many does not make it another format: the import will name it. */
    return fitting && unfit <= fitting / SNIFF_LINES_A_TORN ? likely : IMPORT_NO;
}
