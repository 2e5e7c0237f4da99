/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/exporter.h"

#define BATCH 256u

struct to_tape_conf {
    uint64_t level, block_ops, threads;
};

/* What a file or stream of the conversion became in the tape, and a file's totals. */
struct entry {
    uint32_t number; /* + 1; 0 = not used yet */
    uint64_t ops, bytes, max_end;
};

struct to_tape {
    struct trace_writer *writer;
    struct entry *files;
    uint32_t *streams;
    uint32_t files_known, streams_known;
    struct trace_op batch[BATCH];
};

static int sink_write(void *context, const void *buffer, size_t bytes)
{
    return export_write(context, buffer, bytes);
}

static int write_meta(struct trace_writer *writer, const struct export *export)
{
    const char *key, *value = NULL;
    uint64_t count = 0;
    int err = 0;

    for (size_t i = 0; err == 0 && (key = export_meta_at(export, i, &value)); i++)
        if (strncmp(key, "lost.", 5)) /* the writer sums these itself */
            err = trace_writer_meta(writer, key, value);
    for (size_t i = 0; err == 0 && (key = export_lost_at(export, i, &count)); i++)
        err = trace_writer_lost(writer, key, count);
    return err;
}

static int begin(struct export *export, const void *conf, void **ret_state)
{
    const struct to_tape_conf *options = conf;
    struct trace_sink sink = {.write = sink_write, .context = export, .name = "output"};
    struct trace_writer_conf writer = {
        .result = export_meta(export, TRACE_META_RESULT_OF) != NULL,
        .block_ops = (uint32_t)options->block_ops,
        .level = (int)options->level,
        .small = true,
        .threads = (unsigned int)options->threads,
    };
    struct to_tape *state = calloc(1, sizeof(*state));
    int err;

    if (!state)
        return diag_errno(export_diag(export), -ENOMEM, "tape");
    *ret_state = state;
    err = trace_writer_open(&state->writer, &sink, &writer, export_diag(export));
    return err < 0 ? err : write_meta(state->writer, export);
}

static int grow_files(struct to_tape *state, uint32_t file)
{
    uint32_t next = file + file / 2 + 64;
    struct entry *grown;

    if (file < state->files_known)
        return 0;
    grown = realloc(state->files, next * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    memset(grown + state->files_known, 0, (next - state->files_known) * sizeof(*grown));
    state->files = grown;
    state->files_known = next;
    return 0;
}

/* The file's number in the tape: given at its first use, so that the table has no gaps. */
static int use_file(struct to_tape *state, struct export *export, uint32_t *file)
{
    uint32_t number;
    int err;

    if (*file == TRACE_NONE_U32)
        return 0;
    err = grow_files(state, *file);
    if (err < 0)
        return err;
    if (!state->files[*file].number) {
        struct trace_file entry = *export_file(export, *file);

        entry.ops = entry.bytes = entry.max_end = TRACE_UNKNOWN_U64;
        err = trace_writer_file(state->writer, &entry, &number);
        if (err < 0)
            return err;
        state->files[*file].number = number + 1;
    }
    *file = state->files[*file].number - 1;
    return 0;
}

static int use_stream(struct to_tape *state, struct export *export, uint32_t *stream)
{
    uint32_t number;
    int err;

    if (*stream == TRACE_NONE_U32)
        return 0;
    if (*stream >= state->streams_known) {
        uint32_t next = *stream + *stream / 2 + 64;
        uint32_t *grown = realloc(state->streams, next * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        memset(grown + state->streams_known, 0, (next - state->streams_known) * sizeof(*grown));
        state->streams = grown;
        state->streams_known = next;
    }
    if (!state->streams[*stream]) {
        err = trace_writer_stream(state->writer, export_stream(export, *stream), &number);
        if (err < 0)
            return err;
        state->streams[*stream] = number + 1;
    }
    *stream = state->streams[*stream] - 1;
    return 0;
}

static void add_totals(struct to_tape *state, const struct trace_op *op)
{
    struct entry *entry;

    if (op->file == TRACE_NONE_U32)
        return;
    entry = &state->files[op->file];
    entry->ops++;
    if (!trace_op_has_range(op->kind))
        return;
    entry->bytes += trace_op_bytes(op);
    if (op->offset != TRACE_UNKNOWN_U64 && op->length &&
        op->offset + op->length > entry->max_end)
        entry->max_end = op->offset + op->length;
}

/* Numbers of the conversion become those of the tape, BATCH ops at a time. */
static int ops(void *context, struct export *export, const struct trace_op *ops, size_t count)
{
    struct to_tape *state = context;
    uint64_t wall_ns;
    int64_t tape_ns;
    int err = 0;

    if (export_wall(export, &tape_ns, &wall_ns))
        trace_writer_wall(state->writer, tape_ns, wall_ns);
    for (size_t done = 0; done < count && err == 0;) {
        size_t some = count - done < BATCH ? count - done : BATCH;

        memcpy(state->batch, ops + done, some * sizeof(*ops));
        for (size_t i = 0; i < some && err == 0; i++) {
            struct trace_op *op = &state->batch[i];

            err = use_file(state, export, &op->file);
            if (err == 0)
                err = use_file(state, export, &op->file2);
            if (err == 0)
                err = use_stream(state, export, &op->stream);
            if (err == 0)
                add_totals(state, &ops[done + i]);
        }
        if (err == 0)
            err = trace_writer_ops(state->writer, state->batch, some);
        done += some;
    }
    return err < 0 ? diag_errno(export_diag(export), err, "tape") : 0;
}

static int end(void *context, struct export *export)
{
    struct to_tape *state = context;
    struct trace_writer *writer = state->writer;
    int err = 0, closed;

    for (uint32_t i = 0; i < state->files_known && err == 0; i++) {
        const struct entry *entry = &state->files[i];

        if (entry->number)
            err = trace_writer_file_totals(writer, entry->number - 1, entry->ops, entry->bytes,
                                           entry->max_end);
    }
    state->writer = NULL;
    closed = trace_writer_close(writer);
    if (err == 0)
        err = closed;
    return err < 0 ? diag_errno(export_diag(export), err, "tape") : 0;
}

static void release(void *context)
{
    struct to_tape *state = context;

    if (!state)
        return;
    trace_writer_abort(state->writer);
    free(state->files);
    free(state->streams);
    free(state);
}

static const struct opt opts[] = {
    {"level", 0, OPT_COUNT, offsetof(struct to_tape_conf, level), .arg = "N", .def = "6",
     .min = 1, .max = 9, .help = "zlib level"},
    {"block", 0, OPT_COUNT, offsetof(struct to_tape_conf, block_ops), .arg = "N",
     .def = "32768", .min = 16, .max = 1u << 20, .help = "ops in a block"},
    {"threads", 0, OPT_COUNT, offsetof(struct to_tape_conf, threads), .arg = "N", .def = "1",
     .max = 64, .help = "threads that code blocks, beside the one that reads"},
    {0},
};

const struct exporter exporter_tape = {
    .name = "tape",
    .summary = "a normalised tape: sorted, small, indexed, with totals of each file",
    .suffixes = ".tape",
    .begin = begin,
    .ops = ops,
    .end = end,
    .release = release,
    .opts = opts,
    .conf_size = sizeof(struct to_tape_conf),
};
