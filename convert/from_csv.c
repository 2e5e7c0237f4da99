/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/csv_columns.h"
#include "convert/csv_row.h"
#include "convert/importer.h"

#define WINDOWS_EPOCH "116444736000000000" /* 100 ns ticks from 1601 to 1970 */
#define BOM           "\xef\xbb\xbf"

struct from_csv_conf {
    const char *separator, *comment, *file, *op;
    const char *read, *write, *discard, *flush, *fsync;
    int header;
};

enum { HEADER_AUTO, HEADER_YES, HEADER_NO };
static const char *const header_values[] = {"auto", "yes", "no", NULL};

struct from_csv {
    const struct from_csv_conf *conf;
    struct input *input;
    struct import *import;
    struct csv_columns columns;
    struct csv_row row;
    char separator;
    int column_of[CSV_WHAT_COUNT]; /* its index, or -1 */
    size_t needed;                 /* fields a row must have */
    uint64_t epoch;                /* in units of the time column */
    uint32_t default_file;
    int default_op;
    /* the row's stream */
    uint64_t pid, tid;
    const struct field *comm;
};

/* The first line that is neither blank nor a comment: its length (0: there is none) and where it
 * begins. */
static size_t first_line(const uint8_t *bytes, size_t length, const char *comment, size_t *ret_at)
{
    size_t at = 0, comment_length = strlen(comment);

    if (length >= 3 && !memcmp(bytes, BOM, 3))
        at = 3;
    while (at < length) {
        const uint8_t *newline = memchr(bytes + at, '\n', length - at);
        size_t line = newline ? (size_t)(newline - bytes) - at : length - at;
        size_t text = line && bytes[at + line - 1] == '\r' ? line - 1 : line;

        if (text && (!comment_length || text < comment_length ||
                     memcmp(bytes + at, comment, comment_length))) {
            *ret_at = at;
            return text;
        }
        at += line + 1;
    }
    return 0;
}

/* ---- fields --------------------------------------------------------------------------- */

static bool is_absent(const struct field *field)
{
    return field->length == 0 || (field->length == 1 && *field->at == '-');
}

/* Decimal digits alone, the most common field by far. */
static bool plain_u64(const struct field *field, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (field->length == 0 || field->length > 19)
        return false;
    for (size_t i = 0; i < field->length; i++) {
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

    if (plain_u64(field, &whole)) {
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
    *ret_bytes = bytes / column->den;
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

static int parse_op(const struct from_csv *csv, const struct field *field)
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

    if (what == CSV_RESULT)
        return parse_signed(field, &op->result) < 0 ? bad(csv, field, "a result") : 0;
    if (what == CSV_ARG && parse_signed(field, &number) == 0 && number >= 0 &&
        number <= UINT32_MAX) {
        op->arg = (uint32_t)number;
        return 0;
    }
    if (what == CSV_ARG || field_u64(field, &value) < 0 ||
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
        number = parse_op(csv, field);
        if (number < 0)
            return bad(csv, field, "an op (read, write, R, W ...; csv:read=0,write=1 names others)");
        op->kind = (uint8_t)number;
        return 0;
    case CSV_API:
        number = trace_api_from_name(field->at, field->length);
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
    if (parse_size(&csv->columns.items[index], field, &facts.size_bytes) < 0)
        return bad(csv, field, "a file size");
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
        err = import_stream(csv->import,
                            csv->pid != TRACE_UNKNOWN_U64 ? (uint32_t)csv->pid : 0,
                            csv->tid != TRACE_UNKNOWN_U64   ? (uint32_t)csv->tid
                            : csv->pid != TRACE_UNKNOWN_U64 ? (uint32_t)csv->pid
                                                            : 0,
                            csv->comm ? csv->comm->at : "", csv->comm ? csv->comm->length : 0,
                            &op->stream);
    if (err == 0 && csv->column_of[CSV_FILE_SIZE] >= 0)
        err = row_file_size(csv, op);
    return err;
}

static int take_row(struct from_csv *csv)
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
    for (size_t i = 0; i < csv->columns.count && err == 0; i++)
        if (csv->columns.items[i].what != CSV_IGNORE && i < csv->row.count)
            err = take_column(csv, &csv->columns.items[i], &csv->row.fields[i], &op);
    if (err == 0)
        err = finish_row(csv, &op);
    if (err == 0)
        err = import_op(csv->import, &op);
    return err == 1 ? 0 : err;
}

/* ---- setting up ----------------------------------------------------------------------- */

static char guess_separator(const char *line, size_t length)
{
    static const char candidates[] = ",;\t|";

    for (const char *c = candidates; *c; c++)
        if (memchr(line, *c, length))
            return *c;
    return ' ';
}

static int set_separator(struct from_csv *csv, const char *line, size_t length)
{
    const char *text = csv->conf->separator;

    if (!strcmp(text, "auto"))
        csv->separator = guess_separator(line, length);
    else if (!strcmp(text, "tab"))
        csv->separator = '\t';
    else if (!strcmp(text, "space"))
        csv->separator = ' ';
    else if (!strcmp(text, "comma"))
        csv->separator = ',';
    else if (strlen(text) == 1)
        csv->separator = *text;
    else
        return diag_set(import_diag(csv->import), -EINVAL,
                        "csv: separator '%s' is not auto, comma, tab, space or one character",
                        text);
    return 0;
}

static int set_columns(struct from_csv *csv)
{
    const struct import_options *options = import_options(csv->import);

    for (int i = 0; i < CSV_WHAT_COUNT; i++)
        csv->column_of[i] = -1;
    csv->needed = 0;
    for (size_t i = 0; i < csv->columns.count; i++) {
        struct csv_column *column = &csv->columns.items[i];

        csv->column_of[column->what] = (int)i;
        if (column->what != CSV_IGNORE)
            csv->needed = i + 1;
        if (!column->default_unit)
            continue;
        if (options->time_unit_ns_num &&
            (column->what == CSV_TIME || column->what == CSV_COMPLETED ||
             column->what == CSV_LATENCY)) {
            column->num = options->time_unit_ns_num;
            column->den = options->time_unit_ns_den;
        }
        if (options->sector_bytes && column->num == 512)
            column->num = options->sector_bytes;
    }
    return 0;
}

static int set_epoch(struct from_csv *csv)
{
    const char *epoch = import_options(csv->import)->epoch;
    int index = csv->column_of[CSV_TIME];
    struct field field;
    int err = 0;

    if (!epoch)
        return 0;
    if (!strcmp(epoch, "unix") || !strcmp(epoch, "windows"))
        err = import_meta(csv->import, TRACE_META_START_WALL, "0");
    if (!strcmp(epoch, "unix"))
        return err;
    if (!strcmp(epoch, "windows")) {
        epoch = WINDOWS_EPOCH;
        if (index >= 0 && csv->columns.items[index].default_unit)
            csv->columns.items[index].num = 100, csv->columns.items[index].den = 1;
    }
    field = (struct field){epoch, strlen(epoch), 1};
    if (err == 0 && field_u64(&field, &csv->epoch) < 0)
        err = diag_set(import_diag(csv->import), -EINVAL,
                       "csv: --epoch '%s' is not unix, windows or a whole number of time units",
                       epoch);
    return err;
}

static int set_defaults(struct from_csv *csv)
{
    struct field op = {csv->conf->op ? csv->conf->op : "", 0, 1};
    int err = 0;

    op.length = strlen(op.at);
    if (csv->column_of[CSV_OP] < 0) {
        csv->default_op = op.length ? parse_op(csv, &op) : -EINVAL;
        if (csv->default_op < 0)
            return diag_set(import_diag(csv->import), -EINVAL,
                            "%s: no column says what the op is: name one in --columns, or say "
                            "--from csv:op=read", input_name(csv->input));
    }
    if (csv->column_of[CSV_FILE] < 0)
        err = import_file(csv->import, csv->conf->file, strlen(csv->conf->file),
                          &csv->default_file);
    if (err == 0 && csv->column_of[CSV_TIME] < 0 && csv->column_of[CSV_COMPLETED] < 0)
        err = import_cannot_tell(csv->import, "time");
    if (err == 0 && csv->column_of[CSV_LATENCY] < 0 && csv->column_of[CSV_COMPLETED] < 0)
        err = import_cannot_tell(csv->import, "latency");
    if (err == 0 && csv->column_of[CSV_RESULT] < 0)
        err = import_cannot_tell(csv->import, "result");
    if (err == 0 && csv->column_of[CSV_PID] < 0 && csv->column_of[CSV_TID] < 0 &&
        csv->column_of[CSV_COMM] < 0)
        err = import_cannot_tell(csv->import, "stream");
    if (err == 0 && csv->column_of[CSV_BATCH] < 0)
        err = import_cannot_tell(csv->import, "batch");
    if (err == 0 && csv->column_of[CSV_DUE] >= 0)
        err = import_meta(csv->import, TRACE_META_RESULT_OF, "-");
    return err;
}

/* Does the row look like names rather than values? */
static bool is_header(const struct csv_row *row, struct csv_columns *ret_columns)
{
    const char *names[CSV_COLUMNS_MAX];
    size_t lengths[CSV_COLUMNS_MAX], known, count;

    count = row->count < CSV_COLUMNS_MAX ? row->count : CSV_COLUMNS_MAX;
    for (size_t i = 0; i < count; i++) {
        names[i] = row->fields[i].at;
        lengths[i] = row->fields[i].length;
        if (lengths[i] && *names[i] >= '0' && *names[i] <= '9')
            return false;
    }
    csv_columns_header(ret_columns, names, lengths, count, &known);
    return known >= 2;
}

/* The first row: a header, or the first op. 1 when it was an op. */
static int first_row(struct from_csv *csv)
{
    const char *given = import_options(csv->import)->columns;
    struct csv_columns header;
    bool named = csv->conf->header == HEADER_YES ||
                 (csv->conf->header == HEADER_AUTO && is_header(&csv->row, &header));

    if (csv->conf->header == HEADER_YES)
        (void)is_header(&csv->row, &header);
    if (given) {
        int err = csv_columns_parse(&csv->columns, given, import_diag(csv->import));

        return err < 0 ? err : !named;
    }
    if (!named || !csv_columns_enough(&header))
        return diag_set(import_diag(csv->import), -EBADMSG,
                        "%s:1:1: no header that names the columns: say --columns "
                        "time:s,op,offset,length ...", input_name(csv->input));
    csv->columns = header;
    return 0;
}

static int skip_bom(struct input *input)
{
    const uint8_t *bytes;
    int64_t got = input_peek(input, &bytes, 3);

    if (got == 3 && !memcmp(bytes, BOM, 3))
        input_skip(input, 3);
    return got < 0 ? (int)got : 0;
}

static int start(struct from_csv *csv)
{
    const uint8_t *bytes;
    size_t at = 0, length;
    int64_t got;
    int err = skip_bom(csv->input), first;

    got = err < 0 ? err : input_peek(csv->input, &bytes, 65536);
    if (got < 0)
        return (int)got;
    length = first_line(bytes, (size_t)got, csv->conf->comment, &at);
    err = set_separator(csv, (const char *)bytes + at, length);
    if (err < 0)
        return err;
    err = csv_row_next(&csv->row, csv->input, csv->import, csv->separator, csv->conf->comment);
    if (err <= 0)
        return err;
    first = first_row(csv);
    if (first < 0)
        return first;
    err = set_columns(csv);
    if (err == 0)
        err = set_epoch(csv);
    if (err == 0)
        err = set_defaults(csv);
    if (err == 0 && first)
        err = take_row(csv);
    return err < 0 ? err : 1;
}

static int run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    struct from_csv csv = {.conf = conf, .input = inputs[0], .import = import};
    int err = start(&csv);

    (void)count;
    while (err > 0) {
        err = csv_row_next(&csv.row, csv.input, import, csv.separator, csv.conf->comment);
        if (err <= 0)
            break;
        err = take_row(&csv);
        if (err == 0)
            err = 1;
    }
    csv_row_release(&csv.row);
    return err;
}

static int sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    size_t own = strlen(csv_own_header), line_length, at = 0;
    struct csv_columns columns;
    struct csv_row row = {0};
    char line[1024];

    (void)at_end;
    if (length >= own && !memcmp(bytes, csv_own_header, own))
        return IMPORT_SURE;
    line_length = first_line(bytes, length, "#", &at);
    if (line_length == 0 || line_length >= sizeof(line))
        return IMPORT_NO;
    memcpy(line, bytes + at, line_length);
    row.count = csv_row_split(row.fields, line, line_length, guess_separator(line, line_length));
    if (row.count < 3 || !is_header(&row, &columns) || !csv_columns_enough(&columns))
        return IMPORT_NO;
    return IMPORT_LIKELY;
}

#define CONF(member) offsetof(struct from_csv_conf, member)
static const struct opt opts[] = {
    {"separator", 0, OPT_STRING, CONF(separator), .arg = "C", .def = "auto",
     .help = "between fields: auto, comma, tab, space (runs of blanks) or a character"},
    {"header", 0, OPT_ENUM, CONF(header), .arg = "WHEN", .def = "auto", .values = header_values,
     .help = "the first line names the columns: auto, yes, no"},
    {"comment", 0, OPT_STRING, CONF(comment), .arg = "TEXT", .def = "#",
     .help = "lines that begin so are passed over"},
    {"file", 0, OPT_STRING, CONF(file), .arg = "PATH", .def = "disk",
     .help = "name of the file when no column has it"},
    {"op", 0, OPT_STRING, CONF(op), .arg = "OP", .help = "what every row is when no column says"},
    {"read", 0, OPT_STRING, CONF(read), .arg = "A|B", .def = "r|read|rd|rs|ra",
     .help = "what the op column says for a read, any case"},
    {"write", 0, OPT_STRING, CONF(write), .arg = "A|B", .def = "w|write|wr|ws|wsf",
     .help = "likewise for a write"},
    {"discard", 0, OPT_STRING, CONF(discard), .arg = "A|B", .def = "d|discard|trim|unmap|ds",
     .help = "likewise for a discard"},
    {"flush", 0, OPT_STRING, CONF(flush), .arg = "A|B", .def = "f|flush|ff|fn",
     .help = "likewise for a flush of a device"},
    {"fsync", 0, OPT_STRING, CONF(fsync), .arg = "A|B", .def = "fsync|sync",
     .help = "likewise for an fsync"},
    {0},
};

const struct importer importer_csv = {
    .name = "csv",
    .summary = "tables of any columns, by their header or --columns",
    .help = "Columns are named by a header line, or by --columns NAME[:UNIT],... where NAME is\n"
            "time (of issue), completed, latency, op, file, offset, length, result, pid, tid,\n"
            "comm, api, flags, batch ... or - for a column to ignore, and UNIT is s, ms, us, ns,\n"
            "100ns for times and bytes, sectors, k, 4k or a number of bytes for sizes. Times are\n"
            "in seconds and sizes in bytes unless said. A header may carry units: time_us,\n"
            "\"Offset (sectors)\". --epoch N is taken off each time first; --epoch unix or\n"
            "windows says what the stamps count from.\n"
            "The table that --to csv writes is recognised and read back exactly.",
    .sniff = sniff,
    .run = run,
    .opts = opts,
    .conf_size = sizeof(struct from_csv_conf),
};
