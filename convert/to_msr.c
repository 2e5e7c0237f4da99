/* SPDX-License-Identifier: MIT */
/* The CSV of the MSR Cambridge traces. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/exporter.h"

#define TICK_NS 100
/* Ticks of 100 ns from 1601 to 1970. */
#define UNIX_TICKS 116444736000000000ll
/* Where a trace without a wall clock begins: 2007-02-22, as the published set does. */
#define BASE_TICKS 128166372000000000ll
#define HOST_MAX   32u

struct conf {
    const char *host;
};

struct state {
    const char *host;
    int64_t base_ticks;
    int64_t base_ns; /* of the wall clock, below a tick */
};

static int begin(struct export *export, const void *conf, void **ret_state)
{
    const char *wall = export_meta(export, TRACE_META_START_WALL);
    const struct conf *options = conf;
    struct state *state;
    long long wall_ns = wall ? strtoll(wall, NULL, 10) : 0;

    if (strpbrk(options->host, ",\n") != NULL || strlen(options->host) > HOST_MAX)
        return diag_set(export_diag(export), -EINVAL,
                        "host=%s: a name of at most %u bytes without commas", options->host,
                        HOST_MAX);
    state = calloc(1, sizeof(*state));
    if (state == NULL)
        return -ENOMEM;
    *ret_state = state;
    state->host = options->host;
    state->base_ticks = BASE_TICKS;
    if (wall_ns > 0) {
        state->base_ticks = UNIX_TICKS + wall_ns / TICK_NS;
        state->base_ns = wall_ns % TICK_NS;
    } else {
        export_note(export, "no wall clock in the source: times begin on 2007-02-22");
    }
    return 0;
}

static int write_op(const struct state *state, struct export *export, const struct trace_op *op)
{
    const char *unfit = op->kind != TRACE_READ && op->kind != TRACE_WRITE
                            ? trace_op_name(op->kind)
                        : op->offset == TRACE_UNKNOWN_U64 ? "op without an offset"
                        : op->file == TRACE_NONE_U32      ? "op without a file"
                                                          : NULL;
    int64_t time_ns = op->issue_ns + state->base_ns;
    int64_t ticks = time_ns / TICK_NS - (time_ns % TICK_NS < 0);
    unsigned long long response = 0;

    if (unfit != NULL) {
        export_skip(export, unfit, 1);
        return 0;
    }
    if (time_ns % TICK_NS != 0)
        export_lost_field(export, "time below 100 ns", 1);
    if (op->latency_ns != TRACE_UNKNOWN_U64) {
        response = op->latency_ns / TICK_NS;
        if (op->latency_ns % TICK_NS != 0)
            export_lost_field(export, "latency below 100 ns", 1);
    } else {
        export_lost_field(export, "unknown latency, written as 0", 1);
    }
    if (op->result != TRACE_UNKNOWN_I64 && op->result != (int64_t)op->length)
        export_lost_field(export, "result", 1);
    if (op->stream != TRACE_NONE_U32)
        export_lost_field(export, "stream", 1);
    if (op->flags != 0)
        export_lost_field(export, "flags", 1);
    if (op->batch != TRACE_UNKNOWN_U64)
        export_lost_field(export, "batch", 1);
    return export_printf(
        export, "%lld,%s,%u,%s,%llu,%llu,%llu\n", (long long)(state->base_ticks + ticks),
        state->host, op->file, op->kind == TRACE_READ ? "Read" : "Write",
        (unsigned long long)op->offset, (unsigned long long)op->length, response);
}

static int ops(void *state, struct export *export, const struct trace_op *list, size_t count)
{
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++)
        err = write_op(state, export, &list[i]);
    return err;
}

static int end(void *state, struct export *export)
{
    (void)state;
    (void)export;
    return 0;
}

static const struct opt options_table[] = {
    {"host", 0, OPT_STRING, offsetof(struct conf, host), .def = "iotape", .arg = "NAME",
     .help = "the host name of every line"},
    {0},
};

const struct exporter exporter_msr = {
    .name = "msr",
    .summary = "CSV as of the MSR Cambridge traces",
    .help = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime, times in 100 ns "
            "since 1601. Kept: time and "
            "latency in 100 ns, reads and writes with offset and length, the file as a disk "
            "number. Not kept, and "
            "counted: other ops, results, streams, flags, batches, file names; an unknown "
            "latency is written as 0.",
    .suffixes = ".msr",
    .begin = begin,
    .ops = ops,
    .end = end,
    .release = free,
    .opts = options_table,
    .conf_size = sizeof(struct conf),
};
