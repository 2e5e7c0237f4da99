/* SPDX-License-Identifier: MIT */
/*
 * darshan-dxt-parser's text: grouped by file and rank, writes before reads, on a grid of 100
 * us. X_MPIIO rows have no offset and repeat the POSIX I/O.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "convert/rows.h"

struct darshan {
    uint32_t file;
    bool file_known;
};

static const char file_id[] = "# DXT, file_id:";
static const char file_name[] = "file_name: ";

static bool starts_with(const char *line, size_t length, const char *prefix)
{
    return length >= strlen(prefix) && memcmp(line, prefix, strlen(prefix)) == 0;
}

static int darshan_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    if (memmem(bytes, length, "DXT_POSIX module data", 21) ||
        memmem(bytes, length, file_id, sizeof(file_id) - 1))
        return IMPORT_SURE;
    return IMPORT_NO;
}

static int take_header(struct darshan *state, struct import *import, const char *line,
                       size_t length)
{
    const char *name;
    int err;

    if (!starts_with(line, length, file_id))
        return 0;
    name = memmem(line, length, file_name, sizeof(file_name) - 1);
    if (!name)
        return 0;
    name += sizeof(file_name) - 1;
    err = import_file(import, name, (size_t)(line + length - name), &state->file);
    state->file_known = !err;
    return err;
}

static const struct field *parse_row(const struct field *fields, struct trace_op *op,
                                     uint64_t *ret_rank)
{
    int64_t end;

    /* X_POSIX rank write|read segment offset length start end */
    if (field_u64(&fields[1], ret_rank) < 0 || *ret_rank > UINT32_MAX)
        return &fields[1];
    if (field_is(&fields[2], "write"))
        op->kind = TRACE_WRITE;
    else if (field_is(&fields[2], "read"))
        op->kind = TRACE_READ;
    else
        return &fields[2];
    if (field_u64(&fields[4], &op->offset) < 0)
        return &fields[4];
    if (field_u64(&fields[5], &op->length) < 0)
        return &fields[5];
    if (field_scaled(&fields[6], 1000000000, 1, &op->issue_ns) < 0)
        return &fields[6];
    if (field_scaled(&fields[7], 1000000000, 1, &end) < 0)
        return &fields[7];
    if (end >= op->issue_ns) {
        op->latency_ns = (uint64_t)(end - op->issue_ns);
        op->completion = TRACE_COMPLETION_EXACT;
    }
    return NULL;
}

static int take_row(struct input *input, struct import *import, const struct darshan *state,
                    const char *line, size_t length)
{
    struct field fields[12];
    size_t count = fields_split(line, length, ' ', fields, 12);
    struct trace_op op = TRACE_OP_INIT;
    const struct field *wrong;
    char comm[32];
    uint64_t rank;
    int err;

    if (!count)
        return 0;
    if (field_is(&fields[0], "X_MPIIO")) {
        import_skip(import, "X_MPIIO row (repeats the POSIX I/O)", 1);
        return 0;
    }
    if (!field_is(&fields[0], "X_POSIX"))
        return import_bad(import, input, fields[0].column,
                          "expected X_POSIX or X_MPIIO, not '%.*s'",
                          (int)(fields[0].length < 40 ? fields[0].length : 40), fields[0].at);
    if (count < 8)
        return import_bad(import, input, length + 1, "expected 8 fields, the line has %zu",
                          count);
    wrong = parse_row(fields, &op, &rank);
    if (wrong)
        return import_bad(import, input, wrong->column, "not a DXT row at '%.*s'",
                          (int)(wrong->length < 40 ? wrong->length : 40), wrong->at);
    if (!state->file_known)
        return import_bad(import, input, 1, "a row before any file_name");
    op.file = state->file;
    op.api = TRACE_API_SYNC;
    snprintf(comm, sizeof(comm), "rank %u", (unsigned int)rank);
    err = import_stream(import, 0, (uint32_t)rank, comm, strlen(comm), &op.stream);
    return err ? err : import_op(import, &op);
}

static int darshan_run(struct input **inputs, size_t count, struct import *import,
                       const void *conf)
{
    int err = import_cannot_tell(import, "result");

    if (!err)
        err = import_meta(import, TRACE_META_TIME_UNIT_NS, "100000");
    import_note(import, "DXT records reads and writes only: no open, close or fsync");
    for (size_t i = 0; i < count && !err; i++) {
        struct darshan state = {0};
        size_t length;
        char *line;

        while (!err && (err = input_line(inputs[i], &line, &length)) > 0)
            err = line[0] == '#' ? take_header(&state, import, line, length)
                                 : take_row(inputs[i], import, &state, line, length);
    }
    return err;
}

const struct importer importer_darshan = {
    .name = "darshan",
    .summary = "Darshan DXT text (darshan-dxt-parser)",
    .help = "X_POSIX rows; X_MPIIO rows repeat them without offsets and are left out, counted. "
            "Times are on a "
            "grid of 100 us. Kept: time, latency, op, file, rank as stream, offset, length.",
    .sniff = darshan_sniff,
    .run = darshan_run,
};
