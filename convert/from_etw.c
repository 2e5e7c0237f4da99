/* SPDX-License-Identifier: MIT */
/*
 * Windows xperf / ETW dumps: a header names the columns of each row type between BeginHeader
 * and EndHeader, so that dumps with more or fewer columns are read alike. The stamp is of
 * completion.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/rows.h"

enum {
    ROW_READ,
    ROW_WRITE,
    ROW_FLUSH,
    ROW_TYPES
};
static const char *const row_names[ROW_TYPES] = {"DiskRead", "DiskWrite", "DiskFlush"};
static const unsigned int row_kinds[ROW_TYPES] = {TRACE_READ, TRACE_WRITE, TRACE_FLUSH};

struct etw_columns {
    size_t count; /* of the header line; 0 = not seen */
    int time, process, thread, offset, size, elapsed, disk;
};

struct etw {
    struct import *import;
    struct etw_columns columns[ROW_TYPES];
    bool in_header, done_header;
};

static int column(const struct field *fields, size_t count, const char *name)
{
    for (size_t i = 1; i < count; i++)
        if (field_is(&fields[i], name))
            return (int)i;
    return ROWS_NONE;
}

static int row_type(const struct field *field)
{
    for (int i = 0; i < ROW_TYPES; i++)
        if (field_is(field, row_names[i]))
            return i;
    return ROWS_NONE;
}

static void take_header(struct etw *etw, const struct field *fields, size_t count)
{
    int type = row_type(&fields[0]);
    struct etw_columns *columns;

    if (type == ROWS_NONE)
        return;
    columns = &etw->columns[type];
    columns->time = column(fields, count, "TimeStamp");
    columns->process = column(fields, count, "Process Name ( PID)");
    columns->thread = column(fields, count, "ThreadID");
    columns->offset = column(fields, count, "ByteOffset");
    columns->size = column(fields, count, "IOSize");
    columns->elapsed = column(fields, count, "ElapsedTime");
    columns->disk = column(fields, count, "DiskNum");
    if (columns->time != ROWS_NONE && columns->elapsed != ROWS_NONE &&
        (type == ROW_FLUSH || (columns->offset != ROWS_NONE && columns->size != ROWS_NONE)))
        columns->count = count;
}

/* "sqlservr.exe (1234)" */
static int take_stream(struct etw *etw, const struct etw_columns *columns,
                       const struct field *fields, struct trace_op *op)
{
    const struct field *process;
    const char *open;
    struct field number;
    uint64_t pid = 0, tid = 0;

    if (columns->process == ROWS_NONE)
        return 0;
    process = &fields[columns->process];
    open = memrchr(process->at, '(', process->length);
    number.at = open ? open + 1 : process->at;
    number.length = open ? (size_t)(process->at + process->length - open - 1) : 0;
    if (number.length && number.at[number.length - 1] == ')')
        number.length--;
    while (number.length && *number.at == ' ') {
        number.at++;
        number.length--;
    }
    if (!open || field_u64(&number, &pid) < 0 || pid > UINT32_MAX)
        return 0;
    if (columns->thread != ROWS_NONE &&
        (field_u64(&fields[columns->thread], &tid) < 0 || tid > UINT32_MAX))
        tid = 0;
    while (open > process->at && open[-1] == ' ')
        open--;
    return import_stream(etw->import, (uint32_t)pid, (uint32_t)tid, process->at,
                         (size_t)(open - process->at), &op->stream);
}

static int take_file(struct etw *etw, const struct etw_columns *columns,
                     const struct field *fields, struct trace_op *op)
{
    char name[64] = "disk";
    size_t length = 4;

    if (columns->disk != ROWS_NONE && fields[columns->disk].length < 32) {
        memcpy(name + 4, fields[columns->disk].at, fields[columns->disk].length);
        length += fields[columns->disk].length;
    }
    return import_file(etw->import, name, length, &op->file);
}

static int take_row(struct etw *etw, struct input *input, const struct field *fields,
                    size_t count, int type)
{
    const struct etw_columns *columns = &etw->columns[type];
    struct trace_op op = TRACE_OP_INIT;
    int64_t elapsed_ns;
    int err;

    if (!columns->count)
        return import_bad(etw->import, input, 1, "a %s row, but the header names no such row",
                          row_names[type]);
    /* A file name may hold commas: more fields than columns are its. */
    if (count < columns->count)
        return import_bad(etw->import, input, 1, "the header has %zu columns, the row %zu",
                          columns->count, count);
    if (field_scaled(&fields[columns->time], 1000, 1, &op.issue_ns) < 0)
        return import_bad(etw->import, input, fields[columns->time].column, "not a time stamp");
    if (field_scaled(&fields[columns->elapsed], 1000, 1, &elapsed_ns) < 0 || elapsed_ns < 0)
        return import_bad(etw->import, input, fields[columns->elapsed].column,
                          "not a duration");
    if (type != ROW_FLUSH && (field_hex(&fields[columns->offset], &op.offset) < 0 ||
                              field_hex(&fields[columns->size], &op.length) < 0))
        return import_bad(etw->import, input, fields[columns->offset].column,
                          "expected offset and size in hexadecimal");
    op.issue_ns -= elapsed_ns; /* the stamp is of completion */
    op.latency_ns = (uint64_t)elapsed_ns;
    op.completion = TRACE_COMPLETION_EXACT;
    op.kind = (uint8_t)row_kinds[type];
    op.api = TRACE_API_BLOCK;
    err = take_file(etw, columns, fields, &op);
    if (!err)
        err = take_stream(etw, columns, fields, &op);
    return err ? err : import_op(etw->import, &op);
}

static int take_line(struct etw *etw, struct input *input, const char *line, size_t length)
{
    struct field fields[ROWS_MAX_FIELDS];
    size_t count = fields_split(line, length, ',', fields, ROWS_MAX_FIELDS);
    int type;

    if (!count)
        return 0;
    if (count > ROWS_MAX_FIELDS)
        count = ROWS_MAX_FIELDS;
    if (field_is(&fields[0], "BeginHeader"))
        etw->in_header = true;
    else if (field_is(&fields[0], "EndHeader"))
        etw->in_header = false, etw->done_header = true;
    else if (etw->in_header)
        take_header(etw, fields, count);
    else if (!etw->done_header)
        return import_bad(etw->import, input, 1, "expected BeginHeader");
    else if ((type = row_type(&fields[0])) != ROWS_NONE)
        return take_row(etw, input, fields, count, type);
    else
        import_skip(etw->import, "row of another type", 1);
    return 0;
}

static int etw_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    return length >= 11 && memcmp(bytes, "BeginHeader", 11) == 0 ? IMPORT_SURE : IMPORT_NO;
}

static int etw_run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    int err = import_cannot_tell(import, "result");

    if (!err)
        err = import_meta(import, TRACE_META_TIME_UNIT_NS, "1000");
    for (size_t i = 0; i < count && !err; i++) {
        struct etw etw = {.import = import};
        size_t length;
        char *line;

        while (!err && (err = input_line(inputs[i], &line, &length)) > 0)
            err = take_line(&etw, inputs[i], line, length);
    }
    return err;
}

const struct importer importer_etw = {
    .name = "etw",
    .summary = "Windows xperf / ETW disk dumps",
    .help = "DiskRead, DiskWrite and DiskFlush rows, by the columns that the header between "
            "BeginHeader and "
            "EndHeader names. Microseconds; offset and size in hexadecimal; issue = TimeStamp "
            "- ElapsedTime. "
            "Kept: time, latency, op, disk as file, offset, length, process and thread.",
    .sniff = etw_sniff,
    .run = etw_run,
};
