/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/import.h"
#include "convert/importer.h"

struct from_tape {
    struct import *import;
    struct trace_reader *reader;
    uint32_t *files, *streams; /* the tape's numbers to the conversion's */
    uint32_t file_count, stream_count;
    bool has_wall;
    int64_t wall_tape_ns; /* of the last reading of the wall clock */
};

static int64_t source_read(void *context, void *buffer, size_t bytes)
{
    struct input *input = context;
    const uint8_t *from;
    int64_t got = input_peek(input, &from, bytes < INPUT_PEEK_MAX ? bytes : INPUT_PEEK_MAX);

    if (got > 0) {
        memcpy(buffer, from, (size_t)got);
        input_skip(input, (size_t)got);
    }
    return got;
}

static int sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    (void)at_end;
    return length >= 8 && !memcmp(bytes, "\x89IOTAPE\n", 8) ? IMPORT_SURE : IMPORT_NO;
}

static int copy_meta(struct from_tape *from)
{
    const char *key, *value;
    int err = 0;

    for (size_t i = 0; err == 0 && (key = trace_reader_meta_at(from->reader, i, &value)); i++) {
        if (!strcmp(key, TRACE_META_CANNOT_TELL)) {
            char *words = strdup(value), *rest = NULL;

            for (char *word = words ? strtok_r(words, ",", &rest) : NULL; word && err == 0;
                 word = strtok_r(NULL, ",", &rest))
                err = import_cannot_tell(from->import, word);
            free(words);
        } else if (strncmp(key, "lost.", 5)) {
            err = import_meta(from->import, key, value);
        }
    }
    if (err == 0 && trace_reader_is_result(from->reader) &&
        !import_meta_value(from->import, TRACE_META_RESULT_OF))
        err = import_meta(from->import, TRACE_META_RESULT_OF, "-");
    return err;
}

/* Entries that the tape has told of since the last block. */
static int copy_tables(struct from_tape *from)
{
    uint32_t files = trace_reader_file_count(from->reader);
    uint32_t streams = trace_reader_stream_count(from->reader);
    uint32_t *grown;
    int err = 0;

    if (files > from->file_count) {
        grown = realloc(from->files, files * sizeof(*grown));
        if (!grown)
            return diag_errno(import_diag(from->import), -ENOMEM, "file table");
        from->files = grown;
    }
    if (streams > from->stream_count) {
        grown = realloc(from->streams, streams * sizeof(*grown));
        if (!grown)
            return diag_errno(import_diag(from->import), -ENOMEM, "stream table");
        from->streams = grown;
    }
    for (; from->file_count < files && err == 0; from->file_count++) {
        const struct trace_file *file = trace_reader_file(from->reader, from->file_count);

        err = import_file(from->import, file->path, strlen(file->path),
                          &from->files[from->file_count]);
        if (err == 0)
            err = import_file_facts(from->import, from->files[from->file_count], file);
    }
    for (; from->stream_count < streams && err == 0; from->stream_count++) {
        const struct trace_stream *stream =
            trace_reader_stream(from->reader, from->stream_count);

        err = import_stream(from->import, stream->pid, stream->tid, stream->comm,
                            strlen(stream->comm), &from->streams[from->stream_count]);
        if (err == 0)
            catalog_stream_at(&from->import->tables, from->streams[from->stream_count])->ppid =
                stream->ppid;
    }
    return err;
}

static int copy_ops(struct from_tape *from, const struct trace_op *ops, size_t count)
{
    int err = copy_tables(from);

    for (size_t i = 0; i < count && err == 0; i++) {
        struct trace_op op = ops[i];

        if (op.file != TRACE_NONE_U32)
            op.file = from->files[op.file];
        if (op.file2 != TRACE_NONE_U32)
            op.file2 = from->files[op.file2];
        if (op.stream != TRACE_NONE_U32)
            op.stream = from->streams[op.stream];
        err = import_op(from->import, &op);
    }
    return err;
}

/* A block's reading of the wall clock; the ops of one block may come in several pieces. */
static int copy_wall(struct from_tape *from, int64_t tape_ns, uint64_t wall_ns)
{
    if (from->has_wall && from->wall_tape_ns == tape_ns)
        return 0;
    from->has_wall = true;
    from->wall_tape_ns = tape_ns;
    return import_wall(from->import, tape_ns, wall_ns);
}

/* Losses that the recorder counted, by kind, and what damage took. */
static void copy_losses(struct from_tape *from)
{
    uint64_t total = trace_reader_lost(from->reader), named = 0;
    struct trace_damage damage;
    const char *key, *value;

    for (size_t i = 0; (key = trace_reader_meta_at(from->reader, i, &value)); i++)
        if (!strncmp(key, "lost.", 5)) {
            uint64_t count = strtoull(value, NULL, 10);

            import_lost(from->import, key + 5, count);
            named += count;
        }
    if (total > named)
        import_lost(from->import, "recorder", total - named);
    trace_reader_damage(from->reader, &damage);
    if (damage.blocks) {
        import_lost(from->import, "damaged block", damage.ops);
        import_note(from->import, "%llu damaged blocks, the first at byte %llu",
                    (unsigned long long)damage.blocks, (unsigned long long)damage.first_offset);
    }
    if (damage.truncated)
        import_note(from->import, "the tape ends abruptly: what follows its last whole block "
                                  "is not known");
}

static int run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    struct trace_source source = {.read = source_read,
                                  .size_bytes = TRACE_UNKNOWN_U64,
                                  .context = inputs[0],
                                  .name = input_name(inputs[0])};
    struct from_tape from = {.import = import};
    const struct trace_op *ops;
    uint64_t wall_ns;
    int64_t tape_ns;
    size_t op_count;
    int err;

    (void)count;
    (void)conf;
    err = trace_reader_open(&from.reader, &source, import_diag(import));
    if (err < 0)
        return err;
    err = copy_meta(&from);
    while (err == 0 && (err = trace_reader_next(from.reader, &ops, &op_count)) > 0) {
        err = copy_ops(&from, ops, op_count);
        if (err == 0 && trace_reader_wall(from.reader, &tape_ns, &wall_ns))
            err = copy_wall(&from, tape_ns, wall_ns);
    }
    if (err == 0)
        err = copy_meta(&from);
    if (err == 0)
        copy_losses(&from);
    trace_reader_free(from.reader);
    free(from.files);
    free(from.streams);
    return err;
}

const struct importer importer_tape = {
    .name = "tape",
    .summary = "a tape, raw or normalised, or the result of a replay",
    .sniff = sniff,
    .run = run,
};
