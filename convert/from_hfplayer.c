/* SPDX-License-Identifier: MIT */
/*
 * hfplayer's CSV: the header names the columns, each with its type behind a dot. The direction
 * is in CMD; the column called OP is something else in raw files.
 */
#include <stdio.h>
#include <string.h>

#include "convert/rows.h"

/* Raw captures hold only ticks; theirs are half a nanosecond. */
#define HFPLAYER_TICK_NUM 1
#define HFPLAYER_TICK_DEN 2
#define HFPLAYER_SECTOR   512

struct hfplayer_columns {
    int usecs, ticks, command, lba, blocks, latency_usecs, host, lun;
};

static int hfplayer_column(const struct field *fields, size_t count, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < count; i++)
        if (fields[i].length == length + 2 && memcmp(fields[i].at, name, length) == 0 &&
            fields[i].at[length] == '.')
            return (int)i;
    return ROWS_NONE;
}

static bool hfplayer_header(const struct field *fields, size_t count,
                            struct hfplayer_columns *columns)
{
    columns->usecs = hfplayer_column(fields, count, "ELAPSED_USECS");
    columns->ticks = hfplayer_column(fields, count, "ELAPSED_TICKS");
    if (columns->ticks == ROWS_NONE)
        columns->ticks = hfplayer_column(fields, count, "TS");
    columns->command = hfplayer_column(fields, count, "CMD");
    columns->lba = hfplayer_column(fields, count, "LBA");
    columns->blocks = hfplayer_column(fields, count, "NBLKS");
    columns->latency_usecs = hfplayer_column(fields, count, "LATENCY_USECS");
    columns->host = hfplayer_column(fields, count, "HOST_ID");
    columns->lun = hfplayer_column(fields, count, "LUN_SSID");
    return columns->command != ROWS_NONE && columns->lba != ROWS_NONE &&
           columns->blocks != ROWS_NONE &&
           (columns->usecs != ROWS_NONE || columns->ticks != ROWS_NONE);
}

static int hfplayer_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    struct field fields[ROWS_MAX_FIELDS];
    struct hfplayer_columns columns;
    const char *line;
    size_t at = 0, line_length, count;

    if (!rows_next_line(bytes, length, at_end, &at, &line, &line_length))
        return IMPORT_NO;
    count = fields_split(line, line_length, ',', fields, ROWS_MAX_FIELDS);
    return count <= ROWS_MAX_FIELDS && hfplayer_header(fields, count, &columns) ? IMPORT_SURE
                                                                                : IMPORT_NO;
}

/* 1: not a request of its own (RD_OUT, WR_OUT: the reply half of a raw capture). */
static int hfplayer_kind(const struct field *field)
{
    if (field_is(field, "RD") || field_is(field, "RD_IN"))
        return TRACE_READ;
    if (field_is(field, "WR") || field_is(field, "WR_IN"))
        return TRACE_WRITE;
    if (field_is(field, "RD_OUT") || field_is(field, "WR_OUT"))
        return TRACE_OP_COUNT;
    return -1;
}

static int hfplayer_names(struct import *import, const struct field *fields,
                          const struct hfplayer_columns *columns, struct trace_op *op)
{
    char name[64];
    int length =
        snprintf(name, sizeof(name), "lun%.*s",
                 columns->lun == ROWS_NONE ? 0 : (int)(fields[columns->lun].length & 31),
                 columns->lun == ROWS_NONE ? "" : fields[columns->lun].at);
    uint64_t host;
    int err = import_file(import, name, (size_t)length, &op->file);

    if (!err && columns->host != ROWS_NONE && field_u64(&fields[columns->host], &host) == 0 &&
        host <= UINT32_MAX)
        err = import_stream(import, 0, (uint32_t)host, "host", 4, &op->stream);
    return err;
}

static int hfplayer_row(struct input *input, struct import *import, const struct field *fields,
                        const struct hfplayer_columns *columns)
{
    const struct field *wrong = NULL, *time;
    struct trace_op op = TRACE_OP_INIT;
    int kind = hfplayer_kind(&fields[columns->command]);
    uint64_t lba = 0, blocks = 0, sector = import_options(import)->sector_bytes;
    int64_t latency;
    bool micros = columns->usecs != ROWS_NONE;
    int err;

    if (!sector)
        sector = HFPLAYER_SECTOR;
    time = &fields[micros ? columns->usecs : columns->ticks];
    if (kind < 0)
        wrong = &fields[columns->command];
    else if (field_scaled(time, micros ? 1000 : HFPLAYER_TICK_NUM,
                          micros ? 1 : HFPLAYER_TICK_DEN, &op.issue_ns) < 0)
        wrong = time;
    else if (field_u64(&fields[columns->lba], &lba) < 0 ||
             __builtin_mul_overflow(lba, sector, &op.offset))
        wrong = &fields[columns->lba];
    else if (field_u64(&fields[columns->blocks], &blocks) < 0 ||
             __builtin_mul_overflow(blocks, sector, &op.length))
        wrong = &fields[columns->blocks];
    if (wrong)
        return import_bad(import, input, wrong->column, "'%.*s' is not what its column says",
                          (int)(wrong->length < 40 ? wrong->length : 40), wrong->at);
    if (kind == TRACE_OP_COUNT) {
        import_skip(import, "reply record", 1);
        return 0;
    }
    op.kind = (uint8_t)kind;
    op.api = TRACE_API_BLOCK;
    if (columns->latency_usecs != ROWS_NONE &&
        field_scaled(&fields[columns->latency_usecs], 1000, 1, &latency) == 0 && latency >= 0) {
        op.latency_ns = (uint64_t)latency;
        op.completion = TRACE_COMPLETION_EXACT;
    }
    err = hfplayer_names(import, fields, columns, &op);
    return err ? err : import_op(import, &op);
}

static int hfplayer_input(struct input *input, struct import *import)
{
    struct field fields[ROWS_MAX_FIELDS];
    struct hfplayer_columns columns;
    size_t length, count, wanted = 0;
    char *line;
    int err;

    while ((err = input_line(input, &line, &length)) > 0) {
        count = fields_split(line, length, ',', fields, ROWS_MAX_FIELDS);
        err = 0;
        if (!count)
            continue;
        if (!wanted) {
            if (count > ROWS_MAX_FIELDS || !hfplayer_header(fields, count, &columns))
                return import_bad(import, input, 1,
                                  "expected a header with CMD, LBA, NBLKS and a time column");
            wanted = count;
        } else if (count != wanted) {
            err = import_bad(import, input, length + 1,
                             "the header has %zu columns, the line %zu", wanted, count);
        } else {
            err = hfplayer_row(input, import, fields, &columns);
        }
        if (err)
            return err;
    }
    return err;
}

static int hfplayer_run(struct input **inputs, size_t count, struct import *import,
                        const void *conf)
{
    int err = import_cannot_tell(import, "result");

    for (size_t i = 0; i < count && !err; i++)
        err = hfplayer_input(inputs[i], import);
    return err;
}

const struct importer importer_hfplayer = {
    .name = "hfplayer",
    .summary = "hfplayer CSV traces",
    .help = "The header names the columns. ELAPSED_USECS is the time (else ELAPSED_TICKS or "
            "TS, half a "
            "nanosecond each), CMD the direction, LBA and NBLKS 512-byte sectors, "
            "LATENCY_USECS the service "
            "time. Kept: time, latency, op, LUN as file, host as stream, offset, length.",
    .sniff = hfplayer_sniff,
    .run = hfplayer_run,
};
