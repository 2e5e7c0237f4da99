/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "traces/column.h"
#include "traces/columns.h"
#include "traces/diag.h"
#include "traces/index.h"
#include "traces/table.h"
#include "traces/walk.h"

#define END_BLOCK_BYTES (BLOCK_HEADER_MIN + 8)

struct trace_reader {
    struct walk walk;
    struct diag *diag;
    struct tables tables;
    struct columns_reader *columns;
    struct buf unpacked; /* payload of a deflated table block */
    uint32_t flags;
    uint64_t lost;
    uint64_t tables_to; /* table blocks before this offset were taken */
    /* The block being delivered, or met and not yet begun. */
    struct block_header block;
    bool have_header; /* the walk stands at its header */
    uint32_t left;    /* operations not yet delivered */
    uint64_t first_index, block_offset;
    /* From the end block, of a seekable tape that has one. */
    bool end_known;
    uint64_t end_ops;
    struct index index;
    uint64_t told_missing;
};

static const char *reader_name(const struct trace_reader *reader)
{
    return reader->walk.feed.source.name;
}

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
    *ret_in = (struct cursor){.at = reader->unpacked.data, .end = reader->unpacked.data + bytes};
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
    case BLOCK_FILES: return tables_take_files(tables, &in, header->first_entry, header->entries);
    case BLOCK_STREAMS:
        return tables_take_streams(tables, &in, header->first_entry, header->entries);
    case BLOCK_META: return tables_take_meta(tables, &in, header->entries);
    case BLOCK_TOTALS: return tables_take_totals(tables, &in, header->entries);
    default: return 0; /* an index is found through the end block */
    }
}

/* Reads a block that holds no operations; the walk stands behind it afterwards. */
static int table_read(struct trace_reader *reader, struct walk *walk,
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

/* Entries whose table block was lost, made up so that the operations still come out. */
static int tables_complete(struct trace_reader *reader, const struct block_header *header)
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

/* The end block of a seekable tape, when it is where it should be: never needed, so nothing that
 * is wrong here is an error. */
static void end_read(struct trace_reader *reader)
{
    struct trace_source source = reader->walk.feed.source;
    uint64_t size = source.size_bytes, index_offset;
    struct block_header header;
    struct walk walk = {0};
    const uint8_t *payload;

    if (!source.pread || size == TRACE_UNKNOWN_U64 || size < TAPE_HEADER_BYTES + END_BLOCK_BYTES)
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
        err = table_read(reader, &reader->walk, &header);
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

int trace_reader_open_path(struct trace_reader **ret_reader, const char *path, struct diag *diag)
{
    struct trace_source source;
    int err;

    err = trace_source_path(&source, path, diag);
    if (err < 0)
        return err;
    return trace_reader_open(ret_reader, &source, diag);
}

/* ---- operations ---- */

/* The next header of a block of operations, tables on the way taken: 1, or 0 at the end. */
static int ops_header_next(struct trace_reader *reader)
{
    struct block_header *header = &reader->block;
    int got, err;

    for (;;) {
        if (!reader->have_header) {
            got = walk_next(&reader->walk, header);
            if (got <= 0)
                return got;
        }
        reader->have_header = false;
        if (header->lost > reader->lost)
            reader->lost = header->lost;
        if (header->type == BLOCK_OPS)
            return 1;
        err = table_read(reader, &reader->walk, header);
        if (err < 0)
            return err;
        if (header->type == BLOCK_END) {
            reader->walk.ended = true;
            return 0;
        }
    }
}

/* Leaves the block that was being delivered. */
static int block_leave(struct trace_reader *reader)
{
    if (reader->block_offset == 0)
        return 0;
    reader->block_offset = 0;
    reader->left = 0;
    return walk_skip(&reader->walk, &reader->block);
}

/* Begins delivering the block whose header was met: 1; 0 when it is damaged. */
static int block_begin(struct trace_reader *reader)
{
    const struct block_header *header = &reader->block;
    uint64_t offset = reader->walk.feed.offset;
    const uint8_t *payload;
    int err;

    err = walk_payload(&reader->walk, header, &payload);
    if (err <= 0)
        return err;
    err = tables_complete(reader, header);
    if (err == 0)
        err = columns_reader_begin(reader->columns, payload, header->payload_bytes,
                                   header->raw_bytes, header->entries, header->files,
                                   header->streams);
    if (err == -EBADMSG) {
        walk_damaged(&reader->walk, header, offset, header->entries, "contents make no sense");
        return walk_skip(&reader->walk, header);
    }
    if (err < 0)
        return diag_errno(reader->diag, err, "%s", reader_name(reader));
    reader->block_offset = offset;
    reader->left = header->entries;
    reader->first_index = header->first_index;
    return 1;
}

int trace_reader_next(struct trace_reader *reader, const struct trace_op **ret_ops,
                      size_t *ret_count)
{
    int got;

    for (;;) {
        if (reader->left > 0) {
            got = columns_reader_next(reader->columns, ret_ops, ret_count);
            if (got == 1) {
                reader->first_index =
                    reader->block.first_index + (reader->block.entries - reader->left);
                reader->left -= (uint32_t)*ret_count;
                return 1;
            }
            /* The checksum was right, so the writer was wrong: what is left of it is lost. */
            walk_damaged(&reader->walk, &reader->block, reader->block_offset, reader->left,
                         "contents make no sense");
        }
        got = block_leave(reader);
        if (got < 0)
            return got;
        got = ops_header_next(reader);
        if (got <= 0)
            return got;
        got = block_begin(reader);
        if (got < 0)
            return got;
    }
}

int trace_reader_next_summary(struct trace_reader *reader,
                              struct trace_block_summary *ret_summary)
{
    const struct block_header *header = &reader->block;
    int got;

    got = block_leave(reader);
    if (got < 0)
        return got;
    got = ops_header_next(reader);
    if (got <= 0)
        return got;
    *ret_summary = (struct trace_block_summary){
        .offset_bytes = reader->walk.feed.offset,
        .stored_bytes = (uint64_t)header->header_bytes + header->payload_bytes,
        .first_index = header->first_index,
        .ops = header->entries,
        .first_ns = header->first_ns,
        .last_ns = header->last_ns,
        .min_offset = header->min_offset,
        .max_end = header->max_end,
    };
    memcpy(ret_summary->op_count, header->op_count, sizeof(header->op_count));
    memcpy(ret_summary->op_bytes, header->op_bytes, sizeof(header->op_bytes));
    got = walk_skip(&reader->walk, header);
    return got < 0 ? got : 1;
}

/* ---- moving about ---- */

/* A second, silent walk over a seekable tape. */
static int scan_begin(struct trace_reader *reader, struct walk *walk, uint64_t offset)
{
    struct trace_source source = reader->walk.feed.source;
    int err;

    if (!source.pread)
        return -ESPIPE;
    source.close = NULL;
    err = walk_init(walk, &source, NULL);
    if (err == 0)
        err = walk_seek(walk, offset);
    if (err < 0)
        return diag_errno(reader->diag, err, "%s", reader_name(reader));
    return 0;
}

int trace_reader_load_tables(struct trace_reader *reader)
{
    struct block_header header;
    struct walk walk;
    int got, err;

    if (reader->tables_to == UINT64_MAX)
        return 0;
    err = scan_begin(reader, &walk, TAPE_HEADER_BYTES);
    if (err < 0)
        return err;
    while ((got = walk_next(&walk, &header)) > 0 && header.type != BLOCK_END) {
        if (header.lost > reader->lost)
            reader->lost = header.lost;
        err = header.type == BLOCK_OPS || header.type == BLOCK_INDEX
                  ? walk_skip(&walk, &header)
                  : table_read(reader, &walk, &header);
        if (err < 0)
            break;
    }
    walk_release(&walk);
    if (got < 0)
        err = got;
    if (err < 0)
        return diag_errno(reader->diag, err, "%s: cannot read its tables", reader_name(reader));
    reader->tables_to = UINT64_MAX;
    return 0;
}

uint64_t trace_reader_op_count(struct trace_reader *reader)
{
    struct block_header header;
    uint64_t ops = 0;
    struct walk walk;
    int got = 0;

    if (reader->end_known)
        return reader->end_ops;
    if (!trace_reader_can_seek(reader))
        return reader->walk.ended ? reader->walk.next_index : TRACE_UNKNOWN_U64;
    if (scan_begin(reader, &walk, TAPE_HEADER_BYTES) < 0)
        return TRACE_UNKNOWN_U64;
    while ((got = walk_next(&walk, &header)) > 0 && walk_skip(&walk, &header) == 0)
        ops = walk.next_index;
    walk_release(&walk);
    if (got < 0)
        return TRACE_UNKNOWN_U64;
    reader->end_known = true;
    reader->end_ops = ops;
    return ops;
}

static int reader_move(struct trace_reader *reader, uint64_t offset)
{
    int err;

    reader->left = 0;
    reader->block_offset = 0;
    reader->have_header = false;
    err = walk_seek(&reader->walk, offset);
    return err < 0 ? diag_errno(reader->diag, err, "%s", reader_name(reader)) : 0;
}

int trace_reader_rewind(struct trace_reader *reader)
{
    if (!trace_reader_can_seek(reader))
        return -ESPIPE;
    return reader_move(reader, TAPE_HEADER_BYTES);
}

int trace_reader_seek_ns(struct trace_reader *reader, int64_t time_ns)
{
    uint64_t offset = TAPE_HEADER_BYTES, end;
    struct block_header header;
    struct walk walk;
    int got, err;

    if (!trace_reader_can_seek(reader))
        return -ESPIPE;
    /* Names met only in the blocks that are passed over are needed too. */
    err = trace_reader_load_tables(reader);
    if (err < 0)
        return err;
    if (reader->index.count > 0)
        offset = index_find(&reader->index, time_ns);
    if (offset == TRACE_UNKNOWN_U64 || offset < TAPE_HEADER_BYTES)
        offset = reader->index.entries[reader->index.count - 1].offset;
    err = scan_begin(reader, &walk, offset);
    if (err < 0)
        return err;
    end = offset;
    while ((got = walk_next(&walk, &header)) > 0) {
        end = walk.feed.offset;
        if ((header.type == BLOCK_OPS && header.last_ns >= time_ns) || header.type == BLOCK_END)
            break;
        got = walk_skip(&walk, &header);
        if (got < 0)
            break;
    }
    walk_release(&walk);
    if (got < 0)
        return diag_errno(reader->diag, got, "%s: cannot read", reader_name(reader));
    return reader_move(reader, end);
}

/* ---- facts ---- */

bool trace_reader_is_raw(const struct trace_reader *reader)
{
    return reader->flags & TAPE_FLAG_RAW;
}

bool trace_reader_is_result(const struct trace_reader *reader)
{
    return reader->flags & TAPE_FLAG_RESULT;
}

bool trace_reader_can_seek(const struct trace_reader *reader)
{
    return reader->walk.feed.source.pread != NULL;
}

const char *trace_reader_name(const struct trace_reader *reader)
{
    return reader_name(reader);
}

uint64_t trace_reader_first_index(const struct trace_reader *reader)
{
    return reader->first_index;
}

uint64_t trace_reader_lost(const struct trace_reader *reader)
{
    return reader->lost;
}

bool trace_reader_wall(const struct trace_reader *reader, int64_t *ret_tape_ns,
                       uint64_t *ret_wall_ns)
{
    if (reader->block.wall_tape_ns == TRACE_UNKNOWN_I64)
        return false;
    *ret_tape_ns = reader->block.wall_tape_ns;
    *ret_wall_ns = reader->block.wall_ns;
    return true;
}

void trace_reader_damage(const struct trace_reader *reader, struct trace_damage *ret_damage)
{
    *ret_damage = reader->walk.damage;
}

uint32_t trace_reader_file_count(const struct trace_reader *reader)
{
    return reader->tables.file_count;
}

const struct trace_file *trace_reader_file(const struct trace_reader *reader, uint32_t index)
{
    return tables_file(&reader->tables, index);
}

uint32_t trace_reader_stream_count(const struct trace_reader *reader)
{
    return reader->tables.stream_count;
}

const struct trace_stream *trace_reader_stream(const struct trace_reader *reader, uint32_t index)
{
    return tables_stream(&reader->tables, index);
}

const char *trace_reader_meta(const struct trace_reader *reader, const char *key)
{
    return tables_meta(&reader->tables, key);
}

const char *trace_reader_meta_at(const struct trace_reader *reader, size_t index,
                                 const char **ret_value)
{
    if (index >= reader->tables.meta_count)
        return NULL;
    *ret_value = reader->tables.meta[index].value;
    return reader->tables.meta[index].key;
}
