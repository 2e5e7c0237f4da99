/* SPDX-License-Identifier: MIT */
/* Opening a tape, and its tables. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <zlib.h>

#include "traces/diag.h"
#include "traces/reader.h"

#define END_BLOCK_BYTES (BLOCK_HEADER_MIN + 8)

void trace_reader_free(struct trace_reader *reader)
{
    if (!reader)
        return;
    walk_release(&reader->walk);
    tables_release(&reader->tables);
    columns_reader_free(reader->columns);
    buf_release(&reader->unpacked);
    index_release(&reader->index);
    free(reader);
}

/* ---- table blocks ---- */

static int table_unpack(struct trace_reader *reader, const struct block_header *header,
                        const uint8_t *payload, struct cursor *ret_in)
{
    uLongf bytes = header->raw_bytes;

    if (header->codec == BLOCK_STORED) {
        *ret_in = (struct cursor){.at = payload, .end = payload + header->payload_bytes};
        return 0;
    }
    buf_clear(&reader->unpacked);
    if (!buf_reserve(&reader->unpacked, bytes + 1))
        return -ENOMEM;
    if (uncompress(reader->unpacked.data, &bytes, payload, header->payload_bytes) != Z_OK ||
        bytes != header->raw_bytes)
        return -EBADMSG;
    *ret_in =
        (struct cursor){.at = reader->unpacked.data, .end = reader->unpacked.data + bytes};
    return 0;
}

static int table_take(struct trace_reader *reader, const struct block_header *header,
                      const uint8_t *payload)
{
    struct tables *tables = &reader->tables;
    struct cursor in;
    int err;

    err = table_unpack(reader, header, payload, &in);
    if (err < 0)
        return err;
    switch (header->type) {
    case BLOCK_FILES:
        return tables_take_files(tables, &in, header->first_entry, header->entries);
    case BLOCK_STREAMS:
        return tables_take_streams(tables, &in, header->first_entry, header->entries);
    case BLOCK_META: return tables_take_meta(tables, &in, header->entries);
    case BLOCK_TOTALS: return tables_take_totals(tables, &in, header->entries);
    default: return 0; /* an index is found through the end block */
    }
}

int reader_table(struct trace_reader *reader, struct walk *walk,
                 const struct block_header *header)
{
    uint64_t offset = walk->feed.offset;
    const uint8_t *payload;
    int err;

    err = walk_payload(walk, header, &payload);
    if (err <= 0)
        return err;
    err = 0;
    if (offset >= reader->tables_to) {
        err = table_take(reader, header, payload);
        reader->tables_to = offset + 1;
    }
    if (err == -EBADMSG)
        walk_damaged(walk, header, offset, 0, "contents make no sense");
    else if (err < 0)
        return diag_errno(walk->diag, err, "%s", reader_name(reader));
    return walk_skip(walk, header);
}

int reader_complete_tables(struct trace_reader *reader, const struct block_header *header)
{
    int err;

    err = tables_fill(&reader->tables, header->files, header->streams);
    if (err < 0)
        return err;
    if (reader->tables.missing > reader->told_missing) {
        diag_note(reader->diag,
                  "%s: %" PRIu64 " file or stream names were in damaged blocks: placeholders "
                  "stand for them",
                  reader_name(reader), reader->tables.missing - reader->told_missing);
        reader->told_missing = reader->tables.missing;
    }
    return 0;
}

/* ---- opening ---- */

static int header_read(struct trace_reader *reader)
{
    struct block_header block;
    const uint8_t *data;
    uint32_t version;
    size_t length;
    int err;

    err = feed_need(&reader->walk.feed, TAPE_HEADER_BYTES + BLOCK_HEADER_MAX, &data, &length);
    if (err < 0)
        return diag_errno(reader->diag, err, "%s: cannot read", reader_name(reader));
    if (length >= TAPE_HEADER_BYTES) {
        err = tape_header_load(data, &reader->flags, &version);
        if (err == -EPROTONOSUPPORT)
            return diag_set(reader->diag, err,
                            "%s: version %" PRIu32 " of the tape format; this program reads "
                            "version %d",
                            reader_name(reader), version, TAPE_VERSION);
        if (err == 0)
            return feed_skip(&reader->walk.feed, TAPE_HEADER_BYTES);
    }
    /* A damaged header: every block repeats what it said. */
    if (length > TAPE_HEADER_BYTES &&
        block_header_load(&block, data + TAPE_HEADER_BYTES, length - TAPE_HEADER_BYTES) == 0)
        reader->flags = block.flags;
    else if (!tape_magic_is(data, length))
        return diag_set(reader->diag, -EBADMSG, "%s: not a tape", reader_name(reader));
    if (length >= TAPE_HEADER_BYTES) {
        diag_note(reader->diag, "%s: the tape's header is damaged, no ops lost",
                  reader_name(reader));
        reader->walk.damage.blocks = 1;
        reader->walk.damage.first_offset = 0;
    }
    return feed_skip(&reader->walk.feed, TAPE_HEADER_BYTES);
}

/* The end block of a seekable tape, when it is where it should be: never needed, so nothing
 * that is wrong here is an error. */
static void end_read(struct trace_reader *reader)
{
    struct trace_source source = reader->walk.feed.source;
    uint64_t size = source.size_bytes, index_offset;
    struct block_header header;
    struct walk walk = {0};
    const uint8_t *payload;

    if (!source.pread || size == TRACE_UNKNOWN_U64 ||
        size < TAPE_HEADER_BYTES + END_BLOCK_BYTES)
        return;
    source.close = NULL;
    if (walk_init(&walk, &source, NULL) < 0)
        return;
    if (walk_seek(&walk, size - END_BLOCK_BYTES) < 0 || walk_next(&walk, &header) != 1 ||
        walk.feed.offset != size - END_BLOCK_BYTES || header.type != BLOCK_END ||
        header.payload_bytes != 8 || walk_payload(&walk, &header, &payload) != 1)
        goto out;
    reader->end_known = true;
    reader->end_ops = header.first_index;
    reader->lost = header.lost;
    index_offset = load_le64(payload);
    if (index_offset >= size || walk_seek(&walk, index_offset) < 0 ||
        walk_next(&walk, &header) != 1 || walk.feed.offset != index_offset ||
        header.type != BLOCK_INDEX || walk_payload(&walk, &header, &payload) != 1)
        goto out;
    {
        struct cursor in;

        if (table_unpack(reader, &header, payload, &in) == 0 &&
            index_take(&reader->index, &in, header.entries) < 0)
            index_release(&reader->index);
    }
out:
    walk_release(&walk);
}

/* Up to the first header of a block that is not a table; tables on the way are taken. */
static int front_read(struct trace_reader *reader)
{
    struct block_header header;
    int got, err;

    while ((got = walk_next(&reader->walk, &header)) > 0) {
        if (header.type == BLOCK_OPS || header.type >= BLOCK_INDEX) {
            reader->block = header;
            reader->have_header = true;
            return 0;
        }
        err = reader_table(reader, &reader->walk, &header);
        if (err < 0)
            return err;
    }
    return got;
}

int trace_reader_open(struct trace_reader **ret_reader, struct trace_source *source,
                      struct diag *diag)
{
    struct trace_reader *reader = calloc(1, sizeof(*reader));
    int err;

    if (!reader) {
        if (source->close)
            source->close(source->context);
        return diag_errno(diag, -ENOMEM, "%s", source->name);
    }
    reader->diag = diag;
    reader->index = (struct index)INDEX_INIT;
    err = walk_init(&reader->walk, source, diag);
    if (err == 0) {
        reader->columns = columns_reader_new();
        err = reader->columns ? header_read(reader) : -ENOMEM;
    }
    if (err == 0) {
        end_read(reader);
        err = front_read(reader);
    }
    if (err < 0) {
        diag_errno(diag, err, "%s", source->name ? source->name : "tape");
        trace_reader_free(reader);
        return err;
    }
    *ret_reader = reader;
    return 0;
}

int trace_reader_open_path(struct trace_reader **ret_reader, const char *path,
                           struct diag *diag)
{
    struct trace_source source;
    int err;

    err = trace_source_path(&source, path, diag);
    if (err < 0)
        return err;
    return trace_reader_open(ret_reader, &source, diag);
}
