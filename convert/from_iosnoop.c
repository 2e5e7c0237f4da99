/* SPDX-License-Identifier: MIT */
/*
 * iosnoop of perf-tools: start and end times only with -s and -t; without them the order of the
 * lines, which is that of completion, is all there is.
 */
#include <errno.h>
#include <string.h>

#include "convert/rows.h"
#include "convert/rwbs.h"

#define IOSNOOP_SECTOR 512

struct iosnoop {
    bool header_seen, starts, ends;
};

static bool is_header(const struct field *fields, size_t count, struct iosnoop *state)
{
    bool starts = count && field_is(&fields[0], "STARTs"), ends;

    ends = count > (starts ? 1u : 0u) && field_is(&fields[starts], "ENDs");
    if (count < 7u + starts + ends || !field_is(&fields[starts + ends], "COMM") ||
        !field_is(&fields[count - 1], "LATms") || !field_is(&fields[count - 3], "BLOCK"))
        return false;
    state->starts = starts;
    state->ends = ends;
    return true;
}

static int iosnoop_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    struct field fields[16];
    struct iosnoop state = {0};
    const char *line;
    size_t at = 0, line_length, lines = 0;

    while (lines++ < 4 && rows_next_line(bytes, length, at_end, &at, &line, &line_length))
        if (is_header(fields, fields_split(line, line_length, ' ', fields, 16), &state))
            return IMPORT_SURE;
    return IMPORT_NO;
}

struct iosnoop_row {
    struct trace_op op;
    struct field comm;
    uint64_t pid;
    uint32_t major, minor;
    unsigned int kind;
};

static const struct field *parse_row(const struct field *fields, size_t count,
                                     const struct iosnoop *state, struct iosnoop_row *row)
{
    size_t lead = (size_t)state->starts + state->ends;
    const struct field *tail = &fields[count - 6]; /* PID TYPE DEV BLOCK BYTES LATms */
    int64_t latency_ns;
    uint64_t block;

    if (state->starts
            ? field_scaled(&fields[0], 1000000000, 1, &row->op.issue_ns) < 0
            : state->ends && field_scaled(&fields[0], 1000000000, 1, &row->op.issue_ns) < 0)
        return &fields[0];
    if (field_u64(&tail[0], &row->pid) < 0 || row->pid > UINT32_MAX)
        return &tail[0];
    if (field_device(&tail[2], &row->major, &row->minor) < 0)
        return &tail[2];
    if (field_u64(&tail[3], &block) < 0)
        return &tail[3];
    if (field_u64(&tail[4], &row->op.length) < 0)
        return &tail[4];
    if (rwbs_parse(tail[1].at, tail[1].length, row->op.length, &row->kind, &row->op.flags) < 0)
        return &tail[1];
    if (field_scaled(&tail[5], 1000000, 1, &latency_ns) < 0 || latency_ns < 0)
        return &tail[5];
    if (block < INT64_MAX / IOSNOOP_SECTOR && row->kind != TRACE_FLUSH)
        row->op.offset = block * IOSNOOP_SECTOR;
    row->op.latency_ns = (uint64_t)latency_ns;
    row->op.completion = TRACE_COMPLETION_EXACT;
    if (state->ends && !state->starts)
        row->op.issue_ns -= latency_ns;
    row->comm = fields[lead];
    row->comm.length = (size_t)(tail[-1].at + tail[-1].length - fields[lead].at);
    return NULL;
}

/* "^C" of the terminal, and what iosnoop says when it is ended. */
static bool is_farewell(const struct field *first, size_t count)
{
    return (count == 1 && first->length == 2 && memcmp(first->at, "^C", 2) == 0) ||
           (count == 2 && first->length == 6 && memcmp(first->at, "Ending", 6) == 0);
}

static int take_line(struct input *input, struct import *import, struct iosnoop *state,
                     const char *line, size_t length)
{
    struct field fields[ROWS_MAX_FIELDS];
    size_t count = fields_split(line, length, ' ', fields, ROWS_MAX_FIELDS);
    struct iosnoop_row row = {.op = TRACE_OP_INIT};
    const struct field *wrong;
    int err;

    if (!count)
        return 0;
    if (count <= ROWS_MAX_FIELDS && is_header(fields, count, state)) {
        state->header_seen = true;
        return state->starts || state->ends ? 0 : import_cannot_tell(import, "time");
    }
    if (!state->header_seen) {
        import_skip(import, "line before the header", 1);
        return 0;
    }
    if (is_farewell(&fields[0], count)) {
        import_skip(import, "line of the end of tracing", 1);
        return 0;
    }
    if (count > ROWS_MAX_FIELDS || count < 7u + state->starts + state->ends)
        return import_bad(import, input, length + 1, "expected %u fields, the line has %zu",
                          7u + state->starts + state->ends, count);
    wrong = parse_row(fields, count, state, &row);
    if (wrong)
        return import_bad(import, input, wrong->column, "not an iosnoop line at '%.*s'",
                          (int)(wrong->length < 40 ? wrong->length : 40), wrong->at);
    if (row.kind == TRACE_OP_COUNT) {
        import_skip(import, "request that moves nothing", 1);
        return 0;
    }
    row.op.kind = (uint8_t)row.kind;
    row.op.api = TRACE_API_BLOCK;
    err = import_device(import, row.major, row.minor, &row.op.file);
    if (!err)
        err = import_stream(import, (uint32_t)row.pid, (uint32_t)row.pid, row.comm.at,
                            row.comm.length, &row.op.stream);
    return err ? err : import_op(import, &row.op);
}

static int iosnoop_run(struct input **inputs, size_t count, struct import *import,
                       const void *conf)
{
    int err = import_cannot_tell(import, "result");

    for (size_t i = 0; i < count && !err; i++) {
        struct iosnoop state = {0};
        size_t length;
        char *line;

        while (!err && (err = input_line(inputs[i], &line, &length)) > 0)
            err = take_line(inputs[i], import, &state, line, length);
    }
    return err;
}

const struct importer importer_iosnoop = {
    .name = "iosnoop",
    .summary = "iosnoop of perf-tools",
    .help = "Times need iosnoop -s (or -ts); without them every op is at time 0 and only the "
            "order of the lines "
            "is kept. Kept: time, latency, op and flags, device, offset, length, pid and "
            "process name.",
    .sniff = iosnoop_sniff,
    .run = iosnoop_run,
};
