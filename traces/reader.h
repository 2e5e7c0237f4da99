/* SPDX-License-Identifier: MIT */
/*
 * What a reader is made of, for reader.c and reader_open.c. Internal to traces/.
 */
#ifndef TRACES_READER_H
#define TRACES_READER_H

#include "traces/columns.h"
#include "traces/index.h"
#include "traces/table.h"
#include "traces/walk.h"

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

static inline const char *reader_name(const struct trace_reader *reader)
{
    return reader->walk.feed.source.name;
}

/* Reads a block that holds no operations; the walk stands behind it afterwards. */
int reader_table(struct trace_reader *reader, struct walk *walk,
                 const struct block_header *header) TRACE_MUST_CHECK;
/* Makes up the entries whose table block was lost, so that the operations still come out. */
int reader_complete_tables(struct trace_reader *reader,
                           const struct block_header *header) TRACE_MUST_CHECK;

#endif
