/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "traces/coder.h"
#include "traces/diag.h"
#include "traces/index.h"
#include "traces/table.h"

#define BLOCK_OPS_DEFAULT 32768u
/* A table block is written when this much waits, even without operations. */
#define TABLE_BLOCK_BYTES (1u << 20)
#define LOST_KINDS_MAX    256
#define THREADS_MAX       64

/* Entries of one table that wait for their block. */
struct pending {
    struct buf bytes;
    uint32_t first, count;
    uint64_t text_bytes; /* files: of the paths written out */
    char *previous;      /* files: path of the entry before in this block */
};

struct lost_kind {
    char *kind;
    uint64_t count;
};

struct trace_writer {
    struct trace_sink sink;
    char *name;
    struct diag *diag;
    struct trace_writer_conf conf;
    int error; /* the first of the sink: nothing is written after it */
    uint64_t bytes, op_count, given_ops; /* in the sink; taken; in blocks given to the coder */
    uint64_t written_ops;                /* in blocks in the sink */
    uint32_t number;
    struct coder *coder;
    struct trace_op *ops; /* the coder's room: the block being filled */
    uint32_t waiting;
    struct pending files, streams, meta, totals;
    uint32_t file_count, stream_count; /* appended */
    uint32_t files_out, streams_out;   /* in blocks given to the coder */
    uint64_t lost;
    struct lost_kind *lost_kinds;
    size_t lost_kind_count;
    int64_t wall_tape_ns;
    uint64_t wall_ns;
    struct index index;
    struct buf packed;
};

static int writer_error(struct trace_writer *writer, int err)
{
    if (writer->error == 0)
        writer->error = err;
    return diag_errno(writer->diag, err, "%s: cannot write", writer->name);
}

static void pending_release(struct pending *pending)
{
    buf_release(&pending->bytes);
    free(pending->previous);
}

static void writer_release(struct trace_writer *writer)
{
    pending_release(&writer->files);
    pending_release(&writer->streams);
    pending_release(&writer->meta);
    pending_release(&writer->totals);
    for (size_t i = 0; i < writer->lost_kind_count; i++)
        free(writer->lost_kinds[i].kind);
    free(writer->lost_kinds);
    coder_free(writer->coder);
    index_release(&writer->index);
    buf_release(&writer->packed);
    free(writer->name);
    free(writer);
}

static uint32_t writer_flags(const struct trace_writer *writer)
{
    return (writer->conf.raw ? TAPE_FLAG_RAW : 0) |
           (writer->conf.result ? TAPE_FLAG_RESULT : 0);
}

static int sink_put(struct trace_writer *writer, const void *data, size_t bytes)
{
    int err;

    if (writer->error < 0)
        return writer->error;
    err = writer->sink.write(writer->sink.context, data, bytes);
    if (err == 0 && writer->sink.flush)
        err = writer->sink.flush(writer->sink.context);
    if (err < 0)
        return writer_error(writer, err);
    writer->bytes += bytes;
    return 0;
}

/* A whole block goes out in one write, so a killed writer leaves whole blocks. */
static int block_out(void *context, const struct block_header *header, const uint8_t *bytes,
                     size_t length)
{
    struct trace_writer *writer = context;
    int err = 0;

    if (header->type == BLOCK_OPS)
        err = index_add(&writer->index, writer->bytes, header->last_ns);
    err = err < 0 ? writer_error(writer, err) : sink_put(writer, bytes, length);
    if (err == 0 && header->type == BLOCK_OPS)
        writer->written_ops += header->entries;
    return err;
}

/* What every header says of the tape so far. */
static void header_fill(struct trace_writer *writer, struct block_header *header)
{
    header->flags = (uint16_t)writer_flags(writer);
    header->number = writer->number++;
    header->first_index = writer->given_ops;
    header->files = writer->files_out;
    header->streams = writer->streams_out;
    header->lost = writer->lost;
}

static int block_put(struct trace_writer *writer, struct block_header *header,
                     const uint8_t *payload, size_t bytes)
{
    int err;

    header_fill(writer, header);
    err = coder_block(writer->coder, header, payload, bytes);
    writer->ops = coder_room(writer->coder);
    return err < 0 ? writer_error(writer, err) : 0;
}

/* A block of table entries, deflated when that helps. */
static int table_block_put(struct trace_writer *writer, enum block_type type,
                           const struct buf *bytes, uint32_t first, uint32_t count)
{
    uLongf packed = compressBound(bytes->length);
    struct block_header header;

    if (bytes->failed)
        return writer_error(writer, -ENOMEM);
    block_header_init(&header, type);
    header.codec = BLOCK_STORED;
    header.raw_bytes = (uint32_t)bytes->length;
    header.first_entry = first;
    header.entries = count;
    buf_clear(&writer->packed);
    if (!buf_reserve(&writer->packed, packed))
        return writer_error(writer, -ENOMEM);
    if (compress2(writer->packed.data, &packed, bytes->data, bytes->length,
                  writer->conf.level) != Z_OK ||
        packed >= bytes->length)
        return block_put(writer, &header, bytes->data, bytes->length);
    header.codec = BLOCK_DEFLATE;
    return block_put(writer, &header, writer->packed.data, packed);
}

static int pending_put(struct trace_writer *writer, enum block_type type,
                       struct pending *pending)
{
    int err;

    if (pending->count == 0)
        return 0;
    /* The counts of a header include its own block. */
    if (type == BLOCK_FILES)
        writer->files_out = pending->first + pending->count;
    if (type == BLOCK_STREAMS)
        writer->streams_out = pending->first + pending->count;
    err = table_block_put(writer, type, &pending->bytes, pending->first, pending->count);
    pending->first += pending->count;
    pending->count = 0;
    pending->text_bytes = 0;
    buf_clear(&pending->bytes);
    free(pending->previous);
    pending->previous = NULL;
    return err;
}

static int tables_put(struct trace_writer *writer)
{
    int err;

    err = pending_put(writer, BLOCK_META, &writer->meta);
    if (err == 0)
        err = pending_put(writer, BLOCK_FILES, &writer->files);
    if (err == 0)
        err = pending_put(writer, BLOCK_STREAMS, &writer->streams);
    return err;
}

static int ops_put(struct trace_writer *writer)
{
    struct block_header header;
    int err;

    err = writer->error < 0 ? writer->error : tables_put(writer);
    if (err < 0 || writer->waiting == 0)
        return err;
    block_header_init(&header, BLOCK_OPS);
    header.entries = writer->waiting;
    header.wall_tape_ns = writer->wall_tape_ns;
    header.wall_ns = writer->wall_ns;
    writer->wall_tape_ns = TRACE_UNKNOWN_I64;
    header_fill(writer, &header);
    err = coder_ops(writer->coder, &header);
    writer->ops = coder_room(writer->coder);
    writer->given_ops += writer->waiting;
    writer->waiting = 0;
    return err < 0 ? writer_error(writer, err) : 0;
}

static void conf_fill(struct trace_writer_conf *conf)
{
    if (conf->block_ops == 0)
        conf->block_ops = BLOCK_OPS_DEFAULT;
    if (conf->block_ops > BLOCK_OPS_MAX)
        conf->block_ops = BLOCK_OPS_MAX;
    if (conf->level <= 0 || conf->level > 9)
        conf->level = conf->raw ? 1 : 6;
    if (conf->threads > THREADS_MAX)
        conf->threads = THREADS_MAX;
}

int trace_writer_open(struct trace_writer **ret_writer, struct trace_sink *sink,
                      const struct trace_writer_conf *conf, struct diag *diag)
{
    struct trace_writer *writer = calloc(1, sizeof(*writer));
    uint8_t header[TAPE_HEADER_BYTES];
    int err = -ENOMEM;

    if (!writer)
        goto out;
    writer->sink = *sink;
    writer->diag = diag;
    writer->wall_tape_ns = TRACE_UNKNOWN_I64;
    writer->index = (struct index)INDEX_INIT;
    if (conf)
        writer->conf = *conf;
    conf_fill(&writer->conf);
    writer->name = strdup(sink->name ? sink->name : "tape");
    if (!writer->name)
        goto out;
    err = coder_new(&writer->coder, &writer->conf, block_out, writer);
    if (err < 0)
        goto out;
    writer->ops = coder_room(writer->coder);
    tape_header_store(header, writer_flags(writer));
    err = sink_put(writer, header, sizeof(header));
    if (err < 0)
        goto out;
    *ret_writer = writer;
    return 0;

out:
    diag_errno(diag, err, "%s", sink->name ? sink->name : "tape");
    if (sink->close)
        sink->close(sink->context, false);
    if (writer)
        writer_release(writer);
    return err;
}

int trace_writer_meta(struct trace_writer *writer, const char *key, const char *value)
{
    size_t key_length = strlen(key), value_length = strlen(value);

    if (key_length == 0 || key_length > TABLE_PATH_MAX || value_length > TABLE_VALUE_MAX)
        return diag_set(writer->diag, -EINVAL, "%s: metadata \"%.32s\" is empty or too long",
                        writer->name, key);
    table_put_meta(&writer->meta.bytes, key, value);
    writer->meta.count++;
    if (writer->meta.bytes.length >= TABLE_BLOCK_BYTES)
        return pending_put(writer, BLOCK_META, &writer->meta);
    return writer->meta.bytes.failed ? writer_error(writer, -ENOMEM) : 0;
}

int trace_writer_file(struct trace_writer *writer, const struct trace_file *file,
                      uint32_t *ret_index)
{
    struct pending *files = &writer->files;
    char *copy;

    if (strlen(file->path) > TABLE_PATH_MAX || file->kind >= TRACE_FILE_KIND_COUNT ||
        writer->file_count >= TABLE_ENTRIES_MAX)
        return diag_set(writer->diag, -EINVAL, "%s: file \"%.64s\": the entry is out of range",
                        writer->name, file->path);
    copy = strdup(file->path);
    if (!copy)
        return writer_error(writer, -ENOMEM);
    table_put_file(&files->bytes, file, files->previous ? files->previous : "");
    free(files->previous);
    files->previous = copy;
    files->count++;
    files->text_bytes += strlen(copy) + 1;
    *ret_index = writer->file_count++;
    if (files->bytes.length >= TABLE_BLOCK_BYTES ||
        files->text_bytes >= TABLE_BLOCK_TEXT_MAX - 2 * TABLE_PATH_MAX)
        return pending_put(writer, BLOCK_FILES, files);
    return files->bytes.failed ? writer_error(writer, -ENOMEM) : 0;
}

int trace_writer_stream(struct trace_writer *writer, const struct trace_stream *stream,
                        uint32_t *ret_index)
{
    struct pending *streams = &writer->streams;

    if ((stream->comm && strlen(stream->comm) > TABLE_PATH_MAX) ||
        writer->stream_count >= TABLE_ENTRIES_MAX)
        return diag_set(writer->diag, -EINVAL, "%s: stream %" PRIu32 " is out of range",
                        writer->name, writer->stream_count);
    table_put_stream(&streams->bytes, stream);
    streams->count++;
    *ret_index = writer->stream_count++;
    if (streams->bytes.length >= TABLE_BLOCK_BYTES)
        return pending_put(writer, BLOCK_STREAMS, streams);
    return streams->bytes.failed ? writer_error(writer, -ENOMEM) : 0;
}

int trace_writer_file_totals(struct trace_writer *writer, uint32_t index, uint64_t ops,
                             uint64_t bytes, uint64_t max_end)
{
    if (index >= writer->file_count)
        return diag_set(writer->diag, -EINVAL,
                        "%s: totals of file %" PRIu32 ", which is not there", writer->name,
                        index);
    table_put_totals(&writer->totals.bytes, index, ops, bytes, max_end);
    writer->totals.count++;
    if (writer->totals.bytes.length >= TABLE_BLOCK_BYTES) {
        int err = tables_put(writer);

        return err < 0 ? err : pending_put(writer, BLOCK_TOTALS, &writer->totals);
    }
    return writer->totals.bytes.failed ? writer_error(writer, -ENOMEM) : 0;
}

static bool op_valid(const struct trace_writer *writer, const struct trace_op *op)
{
    return op->kind < TRACE_OP_COUNT && op->api < TRACE_API_COUNT &&
           op->completion < TRACE_COMPLETION_COUNT && op->cause < TRACE_CAUSE_COUNT &&
           (op->file < writer->file_count || op->file == TRACE_NONE_U32) &&
           (op->file2 < writer->file_count || op->file2 == TRACE_NONE_U32) &&
           (op->stream < writer->stream_count || op->stream == TRACE_NONE_U32);
}

int trace_writer_ops(struct trace_writer *writer, const struct trace_op *ops, size_t count)
{
    int err;

    for (size_t i = 0; i < count; i++) {
        if (!op_valid(writer, &ops[i]))
            return diag_set(writer->diag, -EINVAL,
                            "%s: op %" PRIu64 ": its kind is unknown or it names a file or "
                            "stream that is not there",
                            writer->name, writer->op_count);
        writer->ops[writer->waiting++] = ops[i];
        writer->op_count++;
        if (writer->waiting < writer->conf.block_ops)
            continue;
        err = ops_put(writer);
        if (err < 0)
            return err;
    }
    return 0;
}

int trace_writer_lost(struct trace_writer *writer, const char *kind, uint64_t count)
{
    struct lost_kind *more;
    size_t i = 0;

    while (i < writer->lost_kind_count && strcmp(writer->lost_kinds[i].kind, kind) != 0)
        i++;
    if (i == writer->lost_kind_count) {
        if (i == LOST_KINDS_MAX)
            return diag_set(writer->diag, -EINVAL, "%s: too many kinds of lost events",
                            writer->name);
        more = realloc(writer->lost_kinds, (i + 1) * sizeof(*more));
        if (!more)
            return writer_error(writer, -ENOMEM);
        writer->lost_kinds = more;
        more[i] = (struct lost_kind){.kind = strdup(kind)};
        if (!more[i].kind)
            return writer_error(writer, -ENOMEM);
        writer->lost_kind_count++;
    }
    writer->lost_kinds[i].count += count;
    writer->lost += count;
    return 0;
}

void trace_writer_wall(struct trace_writer *writer, int64_t tape_ns, uint64_t wall_ns)
{
    writer->wall_tape_ns = tape_ns;
    writer->wall_ns = wall_ns;
}

int trace_writer_flush(struct trace_writer *writer)
{
    int err = ops_put(writer);

    if (err == 0)
        err = coder_drain(writer->coder);
    return err < 0 ? writer_error(writer, err) : 0;
}

uint64_t trace_writer_bytes(const struct trace_writer *writer)
{
    return writer->bytes;
}

uint64_t trace_writer_written_ops(const struct trace_writer *writer)
{
    return writer->written_ops;
}

static int lost_put(struct trace_writer *writer)
{
    int err = 0;

    for (size_t i = 0; i < writer->lost_kind_count && err == 0; i++) {
        const struct lost_kind *lost = &writer->lost_kinds[i];
        char count[24], key[256];

        snprintf(key, sizeof(key), "lost.%s", lost->kind);
        snprintf(count, sizeof(count), "%" PRIu64, lost->count);
        err = trace_writer_meta(writer, key, count);
    }
    return err;
}

static int end_put(struct trace_writer *writer)
{
    struct buf bytes = BUF_INIT;
    struct block_header header;
    uint64_t index_at;
    uint8_t payload[8];
    int err;

    err = coder_drain(writer->coder);
    if (err < 0)
        return writer_error(writer, err);
    index_at = writer->bytes;
    index_put(&writer->index, &bytes);
    err = table_block_put(writer, BLOCK_INDEX, &bytes, 0, writer->index.count);
    buf_release(&bytes);
    if (err < 0)
        return err;
    block_header_init(&header, BLOCK_END);
    header.codec = BLOCK_STORED;
    header.raw_bytes = sizeof(payload);
    store_le64(payload, index_at);
    err = block_put(writer, &header, payload, sizeof(payload));
    if (err == 0)
        err = coder_drain(writer->coder);
    return err < 0 ? writer_error(writer, err) : 0;
}

int trace_writer_close(struct trace_writer *writer)
{
    int err = writer->error, closed;

    if (err == 0)
        err = lost_put(writer);
    if (err == 0)
        err = ops_put(writer);
    if (err == 0)
        err = pending_put(writer, BLOCK_TOTALS, &writer->totals);
    if (err == 0)
        err = end_put(writer);
    closed = writer->sink.close ? writer->sink.close(writer->sink.context, err == 0) : 0;
    if (err == 0 && closed < 0)
        err = diag_errno(writer->diag, closed, "%s: cannot finish", writer->name);
    writer_release(writer);
    return err;
}

void trace_writer_abort(struct trace_writer *writer)
{
    if (!writer)
        return;
    if (writer->sink.close)
        writer->sink.close(writer->sink.context, false);
    writer_release(writer);
}
