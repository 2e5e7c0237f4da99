/* SPDX-License-Identifier: MIT */
/*
 * The tables of a tape: files, streams, metadata, file totals. Their entries as bytes of a
 * table block, and the tables a reader gathers. Entries never move once they are there.
 * Internal to traces/.
 */
#ifndef TRACES_TABLE_H
#define TRACES_TABLE_H

#include "traces/buf.h"
#include "traces/bytes.h"
#include "traces/trace.h"

#define TABLE_PATH_MAX  65535u     /* bytes of a path, comm or key */
#define TABLE_VALUE_MAX (1u << 20) /* bytes of a metadata value */
#define TABLE_KEYS_MAX  4096u
/* Paths share their starts, so a block's may take far more memory than its bytes: the writer begins
 * another block before this, and all tables of a tape together are refused beyond the second. */
#define TABLE_BLOCK_TEXT_MAX (32u << 20)
#define TABLE_MEMORY_MAX     (2ull << 30)
/* Entries that a damaged tape may lack before the operations naming them are given up. */
#define TABLE_MISSING_MAX (1u << 20)

/* ---- entries as bytes ---- */

/* previous is the path of the entry before in the same block, "" for the first. */
void table_put_file(struct buf *out, const struct trace_file *file, const char *previous);
void table_put_stream(struct buf *out, const struct trace_stream *stream);
void table_put_meta(struct buf *out, const char *key, const char *value);
void table_put_totals(struct buf *out, uint32_t index, uint64_t ops, uint64_t bytes,
                      uint64_t max_end);

/* ---- tables ---- */

struct table_meta {
    char *key, *value;
};

struct table_chunk; /* strings */

struct tables {
    struct trace_file **files; /* chunks of TABLE_CHUNK */
    uint32_t file_count;
    struct trace_stream **streams;
    uint32_t stream_count;
    struct table_meta *meta;
    size_t meta_count;
    struct table_chunk *strings;
    uint64_t memory_bytes;
    uint64_t missing; /* entries made up because their block was damaged */
};

#define TABLES_INIT                                                                            \
    {                                                                                          \
        0                                                                                      \
    }

void tables_release(struct tables *tables);
const struct trace_file *tables_file(const struct tables *tables, uint32_t index);
const struct trace_stream *tables_stream(const struct tables *tables, uint32_t index);
const char *tables_meta(const struct tables *tables, const char *key);

/*
 * Take the entries of a block: count of them, the first numbered first. Entries there already
 * are passed over, a gap before them is filled. -EBADMSG (entries before the bad one stay),
 * -ENOMEM.
 */
int tables_take_files(struct tables *tables, struct cursor *in, uint32_t first,
                      uint32_t count) TRACE_MUST_CHECK;
int tables_take_streams(struct tables *tables, struct cursor *in, uint32_t first,
                        uint32_t count) TRACE_MUST_CHECK;
int tables_take_meta(struct tables *tables, struct cursor *in, uint32_t count) TRACE_MUST_CHECK;
int tables_take_totals(struct tables *tables, struct cursor *in,
                       uint32_t count) TRACE_MUST_CHECK;
/* Make the counts at least these, with placeholders ("unknown-file-7"): their blocks were lost.
 * 1 when some had to be made, 0 when not. -EBADMSG: too many. -ENOMEM. */
int tables_fill(struct tables *tables, uint32_t files, uint32_t streams) TRACE_MUST_CHECK;

#endif
