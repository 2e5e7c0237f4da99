/* SPDX-License-Identifier: MIT */
/*
 * The columns of a block of operations: which there are, how each is predicted, and back.
 * Internal to traces/.
 */
#ifndef TRACES_COLUMNS_H
#define TRACES_COLUMNS_H

#include "traces/column.h"
#include "traces/trace.h"

/* The numbers are part of the format. A column stands after those it is predicted from. */
enum column_id {
    COLUMN_KIND = 0,
    COLUMN_API = 1,
    COLUMN_COMPLETION = 2,
    COLUMN_CAUSE = 3,
    COLUMN_FLAGS = 4,
    COLUMN_ARG = 5,
    COLUMN_STREAM = 6,
    COLUMN_FILE = 7,
    COLUMN_FILE2 = 8,
    COLUMN_LENGTH = 9,
    COLUMN_OFFSET = 10,
    COLUMN_RESULT = 11,
    COLUMN_ISSUE = 12,
    COLUMN_LATENCY = 13,
    COLUMN_BATCH = 14,
    COLUMN_DUE = 15,
    COLUMN_SUBMIT = 16,
    COLUMN_REF = 17,
    COLUMN_COUNT
};

struct columns_writer; /* one a thread */

/* level: zlib's. result: the columns of result tapes are kept. */
struct columns_writer *columns_writer_new(int level, enum numbers_effort effort, bool result);
void columns_writer_free(struct columns_writer *writer);
/* What was chosen for a large block is tried on the next ones, while they shrink as well. Only
 * where one writer has all blocks, in order: else a tape's bytes would depend on chance. */
void columns_writer_remember(struct columns_writer *writer);
/* Appends the payload of a block of count (1 .. BLOCK_OPS_MAX) operations to out;
 * *ret_raw_bytes is what its deflated parts take unpacked. -ENOMEM. */
int columns_write(struct columns_writer *writer, const struct trace_op *ops, size_t count,
                  struct buf *out, uint32_t *ret_raw_bytes) TRACE_MUST_CHECK;

struct columns_reader;

struct columns_reader *columns_reader_new(void);
void columns_reader_free(struct columns_reader *reader);
/* Begins a block; payload stays the caller's until its last operation was read. Operations that
 * name a file or stream at or above files, streams are damage. -EBADMSG, -ENOMEM. */
int columns_reader_begin(struct columns_reader *reader, const uint8_t *payload, size_t bytes,
                         uint32_t raw_bytes, uint32_t count, uint32_t files,
                         uint32_t streams) TRACE_MUST_CHECK;
/* The next operations of the block, valid until the next call: 1; 0 when there are no more.
 * -EBADMSG: the rest is damaged. */
int columns_reader_next(struct columns_reader *reader, const struct trace_op **ret_ops,
                        size_t *ret_count) TRACE_MUST_CHECK;

#endif
