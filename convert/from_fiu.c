/* SPDX-License-Identifier: MIT */
/*
 * FIU I/O deduplication traces (SNIA IOTTA 391): a process name may hold blanks, so the columns
 * are counted from the right.
 */
#include <string.h>

#include "convert/rows.h"

#define FIU_SECTOR_BYTES 512
/* ts pid process lba size op major minor md5 */
#define FIU_MIN_FIELDS 9

struct fiu_row {
    int64_t ns;
    uint64_t pid, lba, size, major, minor;
    char op;
    struct field comm; /* from the first to the last of its words */
};

/* Which field is wrong, or NULL. */
static const struct field *fiu_parse(const struct field *fields, size_t count,
                                     struct fiu_row *row)
{
    const struct field *tail = &fields[count - 6]; /* lba size op major minor md5 */

    if (field_scaled(&fields[0], 1, 1, &row->ns) < 0)
        return &fields[0];
    if (field_u64(&fields[1], &row->pid) < 0 || row->pid > UINT32_MAX)
        return &fields[1];
    if (field_u64(&tail[0], &row->lba) < 0 || row->lba > INT64_MAX / FIU_SECTOR_BYTES)
        return &tail[0];
    if (field_u64(&tail[1], &row->size) < 0 || row->size > INT64_MAX / FIU_SECTOR_BYTES)
        return &tail[1];
    if (!field_is_word(&tail[2], "R") && !field_is_word(&tail[2], "W"))
        return &tail[2];
    row->op = tail[2].at[0] | 0x20;
    if (field_u64(&tail[3], &row->major) < 0 || row->major > 0xfff)
        return &tail[3];
    if (field_u64(&tail[4], &row->minor) < 0 || row->minor > 0xfffff)
        return &tail[4];
    row->comm = fields[2];
    row->comm.length = (size_t)(tail[-1].at + tail[-1].length - fields[2].at);
    return NULL;
}

static int fiu_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    const char *line;
    size_t at = 0, line_length;
    unsigned int rows = 0;

    while (rows < 16 && rows_next_line(bytes, length, at_end, &at, &line, &line_length)) {
        struct field fields[ROWS_MAX_FIELDS];
        size_t count = fields_split(line, line_length, ' ', fields, ROWS_MAX_FIELDS);
        struct fiu_row row;

        if (count == 0)
            continue;
        if (count < FIU_MIN_FIELDS || count > ROWS_MAX_FIELDS || fiu_parse(fields, count, &row))
            return IMPORT_NO;
        rows++;
    }
    return rows ? IMPORT_LIKELY : IMPORT_NO;
}

static int fiu_row_take(struct import *import, const struct fiu_row *row)
{
    struct trace_op op = TRACE_OP_INIT;
    uint64_t sector = import_options(import)->sector_bytes;
    int err;

    if (!sector)
        sector = FIU_SECTOR_BYTES;
    op.issue_ns = row->ns;
    op.offset = row->lba * sector;
    op.length = row->size * sector;
    op.kind = row->op == 'w' ? TRACE_WRITE : TRACE_READ;
    op.api = TRACE_API_BLOCK;
    err = import_device(import, (uint32_t)row->major, (uint32_t)row->minor, &op.file);
    if (!err)
        err = import_stream(import, (uint32_t)row->pid, (uint32_t)row->pid, row->comm.at,
                            row->comm.length, &op.stream);
    return err ? err : import_op(import, &op);
}

static int fiu_run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    struct field fields[ROWS_MAX_FIELDS];
    const struct field *wrong;
    struct fiu_row row;
    size_t length;
    char *line;
    int err = import_cannot_tell(import, "latency");

    if (!err)
        err = import_cannot_tell(import, "result");
    for (size_t i = 0; i < count && !err; i++) {
        while (!err && (err = input_line(inputs[i], &line, &length)) > 0) {
            size_t found = fields_split(line, length, ' ', fields, ROWS_MAX_FIELDS);

            err = 0;
            if (!found)
                continue;
            if (found < FIU_MIN_FIELDS || found > ROWS_MAX_FIELDS) {
                err = import_bad(import, inputs[i], length + 1,
                                 "expected at least %d fields, the line has %zu",
                                 FIU_MIN_FIELDS, found);
                continue;
            }
            wrong = fiu_parse(fields, found, &row);
            if (wrong)
                err = import_bad(import, inputs[i], wrong->column,
                                 "'%.*s' is not what stands here in a FIU trace",
                                 (int)(wrong->length < 40 ? wrong->length : 40), wrong->at);
            else
                err = fiu_row_take(import, &row);
        }
    }
    return err;
}

const struct importer importer_fiu = {
    .name = "fiu",
    .summary = "FIU I/O deduplication traces",
    .help = "Blank-separated ts pid process lba size op major minor md5: nanoseconds, 512-byte "
            "units "
            "(--sector-size otherwise). The hash is not kept. Kept: time, op, device, offset, "
            "length, "
            "pid and process name.",
    .sniff = fiu_sniff,
    .run = fiu_run,
};
