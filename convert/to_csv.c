/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "convert/csv_columns.h"
#include "convert/exporter.h"

#define ROW_MAX 2048u /* of a row without its texts */

/* A row being put together; numbers are written by hand: this is most of the work. */
struct row {
    char text[ROW_MAX];
    size_t used;
};

static void put_char(struct row *row, char c)
{
    row->text[row->used++] = c;
}

static void put_text(struct row *row, const char *text)
{
    size_t length = strlen(text);

    if (row->used + length > ROW_MAX - 64)
        length = ROW_MAX - 64 - row->used;
    memcpy(row->text + row->used, text, length);
    row->used += length;
}

static void put_u64(struct row *row, uint64_t value)
{
    char digits[24];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    memcpy(row->text + row->used, digits + at, sizeof(digits) - at);
    row->used += sizeof(digits) - at;
}

static void put_i64(struct row *row, int64_t value)
{
    if (value < 0)
        put_char(row, '-');
    put_u64(row, value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value);
}

/* A comma, then the value when it is known. */
static void next_u64(struct row *row, uint64_t value)
{
    put_char(row, ',');
    if (value != TRACE_UNKNOWN_U64)
        put_u64(row, value);
}

static void next_i64(struct row *row, int64_t value)
{
    put_char(row, ',');
    if (value != TRACE_UNKNOWN_I64)
        put_i64(row, value);
}

static int flush_row(struct row *row, struct export *export)
{
    size_t used = row->used;

    row->used = 0;
    return export_write(export, row->text, used);
}

/* A text field: quoted when it must be, or would be taken for "not known". */
static int next_text(struct row *row, struct export *export, const char *text)
{
    bool quote = strpbrk(text, ",\"\n\r# ") != NULL || (text[0] == '-' && !text[1]);

    put_char(row, ',');
    if (!quote && strlen(text) < 128) {
        put_text(row, text);
        return 0;
    }
    flush_row(row, export);
    if (quote)
        export_write(export, "\"", 1);
    while (*text) {
        size_t span = strcspn(text, "\"");

        export_write(export, text, span);
        text += span;
        if (*text)
            export_write(export, "\"\"", 2), text++;
    }
    return quote ? export_write(export, "\"", 1) : 0;
}

static void count_lost(struct export *export, const struct trace_file *file)
{
    if (file->inode || file->device || file->mode || file->flags || file->kind)
        export_lost_field(export, "kind, mode, device and inode of the op's file", 1);
}

static int begin(struct export *export, const void *conf, void **ret_state)
{
    (void)conf;
    (void)ret_state;
    return export_printf(export, "%s\n", csv_own_header);
}

static int put_op(struct row *row, struct export *export, const struct trace_op *op)
{
    static const char *const completions[] = {"", "exact", "upper"};
    const struct trace_file *file = export_file(export, op->file);
    const struct trace_file *file2 = export_file(export, op->file2);
    const struct trace_stream *stream = export_stream(export, op->stream);
    char flags[512];

    put_i64(row, op->issue_ns);
    put_char(row, ',');
    put_text(row, trace_op_name(op->kind));
    next_text(row, export, file ? file->path : "");
    next_u64(row, op->offset);
    next_u64(row, op->length);
    next_i64(row, op->result);
    next_u64(row, op->latency_ns);
    put_char(row, ',');
    put_text(row, completions[op->completion]);
    next_u64(row, stream ? stream->pid : TRACE_UNKNOWN_U64);
    next_u64(row, stream ? stream->tid : TRACE_UNKNOWN_U64);
    next_text(row, export, stream ? stream->comm : "");
    put_char(row, ',');
    put_text(row, op->api ? trace_api_name(op->api) : "");
    next_u64(row, op->batch);
    put_char(row, ',');
    put_text(row, trace_flags_text(op->flags, flags, sizeof(flags)));
    next_u64(row, op->arg ? op->arg : TRACE_UNKNOWN_U64);
    next_text(row, export, file2 ? file2->path : "");
    next_u64(row, file ? file->size_bytes : TRACE_UNKNOWN_U64);
    next_i64(row, op->due_ns);
    next_u64(row, op->submit_ns);
    next_u64(row, op->ref);
    put_char(row, ',');
    put_text(row, op->cause ? trace_cause_name(op->cause) : "");
    put_char(row, '\n');
    if (file)
        count_lost(export, file);
    if (stream && stream->ppid)
        export_lost_field(export, "parent of the op's process", 1);
    return flush_row(row, export);
}

static int ops(void *state, struct export *export, const struct trace_op *ops, size_t count)
{
    struct row row = {.used = 0};
    int err = 0;

    (void)state;
    for (size_t i = 0; i < count && err == 0; i++)
        err = put_op(&row, export, &ops[i]);
    return err;
}

static int end(void *state, struct export *export)
{
    const char *key, *value;
    uint64_t count = 0;

    (void)state;
    for (size_t i = 0; (key = export_meta_at(export, i, &value)); i++)
        count++;
    if (count)
        export_lost_field(export, "metadata of the tape", count);
    return 0;
}

static void release(void *state)
{
    (void)state;
}

const struct exporter exporter_csv = {
    .name = "csv",
    .summary = "a table of every field of every op, with a header",
    .help =
        "Times are ns since the first I/O op, sizes bytes; an empty field is not known.\n"
        "Kept: all fields of an op, its file's path and size, its stream's pid, tid and comm.\n"
        "Not kept: metadata, other facts of files. --from csv reads it back exactly.",
    .suffixes = ".csv",
    .begin = begin,
    .ops = ops,
    .end = end,
    .release = release,
};
