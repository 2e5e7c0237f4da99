/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traces/diag.h"
#include "traces/reader.h"

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
        err = reader_table(reader, &reader->walk, header);
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
    err = reader_complete_tables(reader, header);
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
    struct trace_block_summary summary;
    int got;

    got = block_leave(reader);
    if (got < 0)
        return got;
    got = ops_header_next(reader);
    if (got <= 0)
        return got;
    summary = (struct trace_block_summary){
        .offset_bytes = reader->walk.feed.offset,
        .stored_bytes = (uint64_t)header->header_bytes + header->payload_bytes,
        .first_index = header->first_index,
        .ops = header->entries,
        .first_ns = header->first_ns,
        .last_ns = header->last_ns,
        .min_offset = header->min_offset,
        .max_end = header->max_end,
    };
    memcpy(summary.op_count, header->op_count, sizeof(header->op_count));
    memcpy(summary.op_bytes, header->op_bytes, sizeof(header->op_bytes));
    got = walk_pass(&reader->walk, header);
    if (got > 0)
        *ret_summary = summary;
    return got;
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
                  : reader_table(reader, &walk, &header);
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

bool trace_reader_sample(const struct trace_reader *reader, struct trace_sample *ret_sample)
{
    const char *one_in = trace_reader_meta(reader, TRACE_META_SAMPLE);
    const char *passed = trace_reader_meta(reader, TRACE_META_SAMPLE_PASSED);

    if (!one_in)
        return false;
    ret_sample->one_in = strtoull(one_in, NULL, 10);
    ret_sample->passed_ops = passed ? strtoull(passed, NULL, 10) : 0;
    return true;
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

const struct trace_stream *trace_reader_stream(const struct trace_reader *reader,
                                               uint32_t index)
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
