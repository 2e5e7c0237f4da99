/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/csv_op.h"
#include "convert/importer.h"

#define WINDOWS_EPOCH "116444736000000000" /* 100 ns ticks from 1601 to 1970 */
#define BOM           "\xef\xbb\xbf"

enum {
    HEADER_AUTO,
    HEADER_YES,
    HEADER_NO
};
static const char *const header_values[] = {"auto", "yes", "no", NULL};

/* The first line that is neither blank nor a comment: its length (0: there is none) and where
 * it begins. */
static size_t first_line(const uint8_t *bytes, size_t length, const char *comment,
                         size_t *ret_at)
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
        csv->default_op = op.length ? csv_parse_op(csv, &op) : -EINVAL;
        if (csv->default_op < 0)
            /* What was asked for is wrong, or the file is none that can be read by itself. */
            return diag_set(import_diag(csv->import),
                            op.length || import_options(csv->import)->columns ? -EINVAL
                                                                              : -EBADMSG,
                            "%s: no column says what the op is: name one in --columns, or say "
                            "--from csv:op=read",
                            input_name(csv->input));
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
    if (named && csv->row.fields[0].length < sizeof(csv->first_name))
        memcpy(csv->first_name, csv->row.fields[0].at, csv->row.fields[0].length);
    if (given) {
        int err = csv_columns_parse(&csv->columns, given, import_diag(csv->import));

        return err < 0 ? err : !named;
    }
    if (!named || !csv_columns_enough(&header))
        return diag_set(import_diag(csv->import), -EBADMSG,
                        "%s:1:1: no header that names the columns: say --columns "
                        "time:s,op,offset,length ...",
                        input_name(csv->input));
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
        err = csv_take_row(csv);
    return err < 0 ? err : 1;
}

/* The header again: tables put behind one another bring theirs along. */
static bool is_header_again(struct from_csv *csv)
{
    const struct field *first = csv->row.fields;
    struct csv_columns header;

    return csv->first_name[0] && csv->row.count > 0 && field_is(first, csv->first_name) &&
           is_header(&csv->row, &header) && header.count == csv->columns.count;
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
        err = is_header_again(&csv) ? 0 : csv_take_row(&csv);
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
    row.count =
        csv_row_split(row.fields, line, line_length, guess_separator(line, line_length));
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
    {"op", 0, OPT_STRING, CONF(op), .arg = "OP",
     .help = "what every row is when no column says"},
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
    .help =
        "Columns are named by a header line, or by --columns NAME[:UNIT],... where NAME is\n"
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
