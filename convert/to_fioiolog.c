/* SPDX-License-Identifier: MIT */
/* fio's I/O log, versions 2 and 3. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/exporter.h"

#define US_NS        1000
#define NAME_MAX_FIO 255u /* fio's reader cuts names at 256 */
#define FIO_LENGTH   UINT32_MAX
/* fio takes time 0 as "no time yet" and would drop the gap behind it. */
#define FIRST_US 1

struct conf {
    uint64_t version;
};

struct state {
    unsigned int version;
    bool *opened; /* by file */
    uint32_t files;
    int64_t last_us;
    bool noted_long;
};

static int begin(struct export *export, const void *conf, void **ret_state)
{
    struct state *state = calloc(1, sizeof(*state));

    if (state == NULL)
        return -ENOMEM;
    *ret_state = state;
    state->version = (unsigned int)((const struct conf *)conf)->version;
    return export_printf(export, "fio version %u iolog\n", state->version);
}

static const char *action_of(const struct trace_op *op)
{
    switch (op->kind) {
    case TRACE_READ: return "read";
    case TRACE_WRITE: return "write";
    case TRACE_DISCARD: return "trim";
    case TRACE_FSYNC:
    case TRACE_FLUSH: return "sync";
    case TRACE_FDATASYNC: return "datasync";
    default: return NULL;
    }
}

/* Why a file cannot be named in a log; NULL when it can. */
static const char *unfit_name(const struct trace_file *file)
{
    if (file == NULL)
        return "op without a file";
    if (strlen(file->path) > NAME_MAX_FIO)
        return "op on a file whose name is above 255 bytes";
    return file->path[0] == '\0' || strpbrk(file->path, " \t\n\r\v\f")
               ? "op on a file with blanks in its name"
               : NULL;
}

static int open_file(struct state *state, struct export *export, uint32_t file,
                     const char *path, int64_t time_us)
{
    int err;

    if (file >= state->files) {
        uint32_t files = file + file / 2 + 16;
        bool *opened = realloc(state->opened, files * sizeof(*opened));

        if (opened == NULL)
            return -ENOMEM;
        memset(opened + state->files, 0, (files - state->files) * sizeof(*opened));
        state->opened = opened;
        state->files = files;
    }
    if (state->opened[file])
        return 0;
    state->opened[file] = true;
    if (state->version == 2) {
        err = export_printf(export, "%s add\n", path);
        return err < 0 ? err : export_printf(export, "%s open\n", path);
    }
    err = export_printf(export, "%lld %s add\n", (long long)time_us, path);
    return err < 0 ? err : export_printf(export, "%lld %s open\n", (long long)time_us, path);
}

static void count_lost(struct state *state, struct export *export, const struct trace_op *op)
{
    if (op->issue_ns % US_NS != 0)
        export_lost_field(export, "time below 1 us", 1);
    if (op->latency_ns != TRACE_UNKNOWN_U64)
        export_lost_field(export, "latency", 1);
    if (op->result != TRACE_UNKNOWN_I64)
        export_lost_field(export, "result", 1);
    if (op->stream != TRACE_NONE_U32)
        export_lost_field(export, "stream", 1);
    if (op->batch != TRACE_UNKNOWN_U64)
        export_lost_field(export, "batch", 1);
    if (op->flags != 0)
        export_lost_field(export, "flags", 1);
    if (op->kind == TRACE_FLUSH)
        export_lost_field(export, "flush, written as sync", 1);
    if (op->length > FIO_LENGTH && !state->noted_long) {
        export_note(export,
                    "some lengths are above 4 GiB: fio reads them modulo 2^32, iotape whole");
        state->noted_long = true;
    }
}

static int write_op(struct state *state, struct export *export, const struct trace_op *op)
{
    const struct trace_file *file =
        op->file != TRACE_NONE_U32 ? export_file(export, op->file) : NULL;
    const char *action = action_of(op), *unfit = unfit_name(file);
    bool ranged =
        op->kind == TRACE_READ || op->kind == TRACE_WRITE || op->kind == TRACE_DISCARD;
    int64_t time_us = op->issue_ns / US_NS + (op->issue_ns % US_NS >= US_NS / 2) + FIRST_US;
    int err;

    if (action == NULL)
        unfit = trace_op_name(op->kind);
    else if (unfit == NULL && ranged && op->offset == TRACE_UNKNOWN_U64)
        unfit = "op without an offset";
    else if (unfit == NULL && ranged && op->length == 0)
        unfit = "op of 0 bytes, which would end fio's replay";
    else if (unfit == NULL && op->issue_ns < 0)
        unfit = "op before time 0";
    if (unfit != NULL) {
        export_skip(export, unfit, 1);
        return 0;
    }
    count_lost(state, export, op);
    err = open_file(state, export, op->file, file->path, time_us);
    if (err == 0 && state->version == 2 && time_us - FIRST_US > state->last_us) {
        err = export_printf(export, "%s wait %lld 0\n", file->path,
                            (long long)(time_us - FIRST_US - state->last_us));
        state->last_us = time_us - FIRST_US;
    } else if (err == 0 && state->version == 3) {
        err = export_printf(export, "%lld ", (long long)time_us);
        state->last_us = time_us;
    }
    return err < 0 ? err
                   : export_printf(export, "%s %s %llu %llu\n", file->path, action,
                                   ranged ? (unsigned long long)op->offset : 0ull,
                                   ranged ? (unsigned long long)op->length : 0ull);
}

static int ops(void *state, struct export *export, const struct trace_op *list, size_t count)
{
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++)
        err = write_op(state, export, &list[i]);
    return err;
}

static int end(void *context, struct export *export)
{
    struct state *state = context;
    int err = 0;

    for (uint32_t file = 0; file < state->files && err == 0; file++) {
        if (!state->opened[file])
            continue;
        if (state->version == 3)
            err = export_printf(export, "%lld %s close\n", (long long)state->last_us,
                                export_file(export, file)->path);
        else
            err = export_printf(export, "%s close\n", export_file(export, file)->path);
    }
    return err;
}

static void release(void *context)
{
    struct state *state = context;

    if (state != NULL)
        free(state->opened);
    free(state);
}

static const struct opt options_table[] = {
    {"version", 0, OPT_COUNT, offsetof(struct conf, version), .def = "3", .min = 2, .max = 3,
     .arg = "N",
     .help = "3 has times (fio 3.31 and newer), 2 has wait lines, of which fio ignores those "
             "below 100 us"},
    {0},
};

const struct exporter exporter_fioiolog = {
    .name = "fioiolog",
    .summary = "fio's I/O log, version 3, or 2 with version=2",
    .help = "For fio --read_iolog. Kept: time in microseconds (from 1, which fio needs), file, "
            "reads, writes and "
            "discards with offset and length, fsync, fdatasync and, as sync, device flushes. "
            "Not kept, and counted: "
            "latencies, results, streams, batches, flags, other ops, ops of 0 bytes or without "
            "an offset, files whose "
            "names have blanks or are above 255 bytes.",
    .suffixes = ".iolog",
    .begin = begin,
    .ops = ops,
    .end = end,
    .release = release,
    .opts = options_table,
    .conf_size = sizeof(struct conf),
};
