/* SPDX-License-Identifier: MIT */
/*
 * biosnoop of bcc and of libbpf-tools. The process name may hold blanks and the disk may be
 * empty, so a line is read from its right end; the header says which latency columns there are.
 */
#include <errno.h>
#include <string.h>

#include "convert/rows.h"
#include "convert/rwbs.h"

#define BIOSNOOP_SECTOR 512

struct biosnoop {
    bool header_seen, queued, pattern, clock; /* QUE(ms), P, TIMESTAMP columns */
    uint64_t day_ns;                          /* added at each midnight that -t stamps pass */
    int64_t last_ns;
};

static bool is_header(const struct field *fields, size_t count, struct biosnoop *state)
{
    bool sector = false, latency = false;

    if (count < 7 || (!field_is(&fields[0], "TIME(s)") && !field_is(&fields[0], "TIMESTAMP")))
        return false;
    state->clock = field_is(&fields[0], "TIMESTAMP");
    state->queued = state->pattern = false;
    for (size_t i = 1; i < count; i++) {
        sector |= field_is(&fields[i], "SECTOR");
        latency |= field_is(&fields[i], "LAT(ms)");
        state->queued |= field_is(&fields[i], "QUE(ms)");
        state->pattern |= field_is(&fields[i], "P");
    }
    return sector && latency;
}

static int biosnoop_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    struct field fields[16];
    struct biosnoop state = {0};
    const char *line;
    size_t at = 0, line_length, lines = 0;

    /* The tool may have printed "Tracing..." first. */
    while (lines++ < 4 && rows_next_line(bytes, length, at_end, &at, &line, &line_length))
        if (is_header(fields, fields_split(line, line_length, ' ', fields, 16), &state))
            return IMPORT_SURE;
    return IMPORT_NO;
}

/* HH:MM:SS.mmm */
static int clock_time(const struct field *field, struct biosnoop *state, int64_t *ret_ns)
{
    struct field part = *field;
    int64_t seconds = 0, ns;

    for (int i = 0; i < 2; i++) {
        const char *colon = memchr(part.at, ':', part.length);
        struct field number = part;
        uint64_t value;

        if (!colon)
            return -EINVAL;
        number.length = (size_t)(colon - part.at);
        if (field_u64(&number, &value) < 0 || value > 59)
            return -EINVAL;
        seconds = seconds * 60 + (int64_t)value;
        part.length -= number.length + 1;
        part.at = colon + 1;
    }
    if (field_scaled(&part, 1000000000, 1, &ns) < 0 || ns < 0 || ns >= 61000000000)
        return -EINVAL;
    ns += seconds * 60 * 1000000000 + (int64_t)state->day_ns;
    if (ns + 43200ll * 1000000000 < state->last_ns) {
        state->day_ns += 86400ull * 1000000000;
        ns += 86400ll * 1000000000;
    }
    state->last_ns = ns;
    *ret_ns = ns;
    return 0;
}

struct biosnoop_row {
    struct trace_op op;
    struct field comm, disk;
    uint64_t pid;
    bool nothing; /* a request that moves no data and is no flush */
};

static const struct field *parse_numbers(const struct field *right,
                                         const struct biosnoop *state, struct biosnoop_row *row)
{
    /* right: T SECTOR BYTES [P] [QUE] LAT */
    const struct field *latency = &right[3 + state->pattern + state->queued];
    int64_t latency_ns, queued_ns = 0;
    uint64_t sector;
    unsigned int kind;

    /* The kernel's number for "nowhere", as some versions print it. */
    if (right[1].length == 2 && memcmp(right[1].at, "-1", 2) == 0)
        sector = UINT64_MAX;
    else if (field_u64(&right[1], &sector) < 0)
        return &right[1];
    if (field_u64(&right[2], &row->op.length) < 0)
        return &right[2];
    if (rwbs_parse(right->at, right->length, row->op.length, &kind, &row->op.flags) < 0)
        return &right[0];
    if (field_scaled(latency, 1000000, 1, &latency_ns) < 0 || latency_ns < 0)
        return latency;
    if (state->queued && field_scaled(&latency[-1], 1000000, 1, &queued_ns) < 0)
        return &latency[-1];
    if (kind == TRACE_WRITE && sector == UINT64_MAX && row->op.length == 0)
        kind = TRACE_FLUSH; /* versions that print no more than R or W */
    row->nothing = kind == TRACE_OP_COUNT || (kind != TRACE_FLUSH && sector == UINT64_MAX);
    row->op.kind = row->nothing ? TRACE_READ : (uint8_t)kind;
    if (kind == TRACE_FLUSH || sector >= INT64_MAX / BIOSNOOP_SECTOR)
        row->op.offset = TRACE_UNKNOWN_U64;
    else
        row->op.offset = sector * BIOSNOOP_SECTOR;
    row->op.latency_ns = (uint64_t)latency_ns;
    row->op.completion = TRACE_COMPLETION_EXACT;
    row->op.issue_ns -= latency_ns; /* the printed time is the completion's */
    return NULL;
}

/* The field that is wrong, or NULL. */
static const struct field *parse_row(const struct field *fields, size_t count,
                                     struct biosnoop *state, struct biosnoop_row *row)
{
    size_t tail = 4u + state->pattern + state->queued; /* T SECTOR BYTES .. LAT */
    const struct field *right, *last;
    const char *comm_end;
    uint64_t number;

    if (count < tail + 3 || count > ROWS_MAX_FIELDS)
        return &fields[count < ROWS_MAX_FIELDS ? count - 1 : 0];
    right = &fields[count - tail];
    if (state->clock ? clock_time(&fields[0], state, &row->op.issue_ns) < 0
                     : field_scaled(&fields[0], 1000000000, 1, &row->op.issue_ns) < 0)
        return &fields[0];
    /* COMM... PID DISK, or COMM... PID where the disk is blank */
    last = right - 1;
    row->disk = *last;
    if (field_u64(last, &number) == 0 &&
        (last - fields < 3 || field_u64(last - 1, &row->pid) < 0))
        row->disk.length = 0;
    else
        last--;
    if (last - fields < 2 || field_u64(last, &row->pid) < 0 || row->pid > UINT32_MAX)
        return last;
    comm_end = last[-1].at + last[-1].length;
    row->comm = fields[1];
    row->comm.length = (size_t)(comm_end - fields[1].at);
    return parse_numbers(right, state, row);
}

static int take_row(struct import *import, struct biosnoop_row *row)
{
    struct trace_file facts = {.size_bytes = TRACE_UNKNOWN_U64,
                               .ops = TRACE_UNKNOWN_U64,
                               .bytes = TRACE_UNKNOWN_U64,
                               .max_end = TRACE_UNKNOWN_U64,
                               .kind = TRACE_FILE_BLOCK};
    bool named = row->disk.length > 0;
    int err;

    if (row->nothing) {
        import_skip(import, "request that moves nothing", 1);
        return 0;
    }
    row->op.api = TRACE_API_BLOCK;
    err = import_file(import, named ? row->disk.at : "unknown-disk",
                      named ? row->disk.length : 12, &row->op.file);
    if (!err)
        err = import_file_facts(import, row->op.file, &facts);
    if (!err)
        err = import_stream(import, (uint32_t)row->pid, (uint32_t)row->pid, row->comm.at,
                            row->comm.length, &row->op.stream);
    return err ? err : import_op(import, &row->op);
}

static int take_line(struct input *input, struct import *import, struct biosnoop *state,
                     const char *line, size_t length)
{
    struct biosnoop_row row = {.op = TRACE_OP_INIT};
    struct field fields[ROWS_MAX_FIELDS];
    size_t count = fields_split(line, length, ' ', fields, ROWS_MAX_FIELDS);
    const struct field *wrong;

    if (!count)
        return 0;
    if (is_header(fields, count < ROWS_MAX_FIELDS ? count : ROWS_MAX_FIELDS, state)) {
        state->header_seen = true;
        return 0;
    }
    if (!state->header_seen) {
        import_skip(import, "line before the header", 1);
        return 0;
    }
    wrong = parse_row(fields, count, state, &row);
    if (wrong)
        return import_bad(import, input, wrong->column, "not a biosnoop line at '%.*s'",
                          (int)(wrong->length < 40 ? wrong->length : 40), wrong->at);
    return take_row(import, &row);
}

static int biosnoop_run(struct input **inputs, size_t count, struct import *import,
                        const void *conf)
{
    int err = import_cannot_tell(import, "result");

    for (size_t i = 0; i < count && !err; i++) {
        struct biosnoop state = {.last_ns = INT64_MIN};
        size_t length;
        char *line;

        while (!err && (err = input_line(inputs[i], &line, &length)) > 0)
            err = take_line(inputs[i], import, &state, line, length);
    }
    return err;
}

const struct importer importer_biosnoop = {
    .name = "biosnoop",
    .summary = "biosnoop of bcc or libbpf-tools",
    .help = "The printed time is the completion's: issue = time - latency. bcc prints only R "
            "or W, so its "
            "flushes and discards show as those. A blank disk becomes unknown-disk. Kept: "
            "time, latency, "
            "op and flags, disk, offset, length, pid and process name.",
    .sniff = biosnoop_sniff,
    .run = biosnoop_run,
};
