/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traces/block.h"
#include "traces/column.h"
#include "traces/columns.h"
#include "traces/predict.h"

/* Operations decoded at once: their structs and a column's scratch stay in the near caches. */
#define PIECE_OPS 256

struct column {
    enum column_id id;
    enum predict_mode mode;
    enum predict_unknown unknown;
    bool is_signed;
    uint64_t unknown_kinds;
    struct cursor bitmap;
    uint64_t start, previous, unit;
    struct numbers_reader numbers;
    struct predict_ends *ends; /* when the mode needs them */
};

struct columns_reader {
    struct part_unpacker *unpacker;
    struct part_arena arena;
    struct column columns[COLUMN_COUNT]; /* those that vary */
    unsigned int column_count;
    struct trace_op blank; /* with the columns that do not */
    struct predict_ends *ends[COLUMN_COUNT];
    uint32_t left, done; /* operations of the block */
    uint32_t files, streams;
    uint64_t residuals[PIECE_OPS];
    uint64_t values[PIECE_OPS];
    bool unknown[PIECE_OPS];
    struct trace_op ops[PIECE_OPS];
};

struct columns_reader *columns_reader_new(void)
{
    struct columns_reader *reader = calloc(1, sizeof(*reader));

    if (!reader)
        return NULL;
    reader->unpacker = part_unpacker_new();
    if (!reader->unpacker) {
        free(reader);
        return NULL;
    }
    return reader;
}

void columns_reader_free(struct columns_reader *reader)
{
    if (!reader)
        return;
    for (unsigned int i = 0; i < COLUMN_COUNT; i++)
        free(reader->ends[i]);
    part_unpacker_free(reader->unpacker);
    free(reader->arena.data);
    free(reader);
}

/* Made when first needed, kept for the blocks to come. */
static struct predict_ends *ends_get(struct columns_reader *reader, enum column_id id)
{
    struct predict_ends **ends = &reader->ends[id];

    if (*ends)
        memset(*ends, 0, sizeof(**ends));
    else
        *ends = calloc(1, sizeof(**ends));
    return *ends;
}

static bool column_open(struct columns_reader *reader, struct column *column, struct cursor *in,
                        uint32_t count)
{
    uint64_t unknown;
    uint8_t mode;

    column->unknown = cursor_u8(in);
    if (column->unknown >= UNKNOWN_COUNT ||
        (column->unknown != UNKNOWN_NEVER && !column_unknown(column->id, &unknown)))
        return false;
    if (column->unknown == UNKNOWN_BY_KIND)
        column->unknown_kinds = cursor_varint(in);
    if (column->unknown == UNKNOWN_BITMAP) {
        if (!part_unpack(reader->unpacker, &reader->arena, in, &column->bitmap) ||
            cursor_left(&column->bitmap) < ((size_t)count + 7) / 8)
            return false;
    }
    mode = cursor_u8(in);
    column->is_signed = mode & 0x80;
    column->mode = mode & 0x7f;
    if (!predict_allowed(column->id, column->mode))
        return false;
    column->start = (uint64_t)zigzag_decode(cursor_varint(in));
    column->previous = column->mode == PREDICT_COMPLETION ? 0 : column->start;
    column->unit = cursor_varint(in);
    if (predict_has_slots(column->mode)) {
        column->ends = ends_get(reader, column->id);
        if (!column->ends)
            return false;
    }
    return numbers_open(&column->numbers, reader->unpacker, &reader->arena, in, count);
}

/* Fills reader->unknown for the piece; returns how many values are known. */
static size_t unknown_read(struct columns_reader *reader, struct column *column, size_t count)
{
    size_t known = 0;

    for (size_t i = 0; i < count; i++) {
        size_t bit = reader->done + i;

        if (column->unknown == UNKNOWN_BY_KIND)
            reader->unknown[i] = column->unknown_kinds >> reader->ops[i].kind & 1;
        else
            reader->unknown[i] = column->bitmap.at[bit / 8] >> bit % 8 & 1;
        known += !reader->unknown[i];
    }
    return known;
}

static void residuals_unfold(const struct column *column, uint64_t *residuals, size_t count)
{
    if (column->is_signed)
        for (size_t i = 0; i < count; i++)
            residuals[i] = (uint64_t)zigzag_decode(residuals[i]);
    if (column->unit != 1)
        for (size_t i = 0; i < count; i++)
            residuals[i] *= column->unit;
}

/* Spreads known residuals over the piece, so that entry i is of operation i. */
static void residuals_spread(struct columns_reader *reader, size_t count, size_t known)
{
    uint64_t *residuals = reader->residuals;

    for (size_t i = count; i-- > 0;)
        residuals[i] = reader->unknown[i] ? 0 : residuals[--known];
}

static unsigned int op_slot(enum predict_mode mode, const struct trace_op *op)
{
    return predict_slot(mode, op->kind, op->file, op->stream);
}

static void values_predict(struct columns_reader *reader, struct column *column, size_t count,
                           bool some_unknown)
{
    const uint64_t *residuals = reader->residuals;
    const struct trace_op *ops = reader->ops;
    uint64_t *values = reader->values;

    switch (column->mode) {
    case PREDICT_PREVIOUS:
        for (size_t i = 0; i < count; i++) {
            column->previous += residuals[i];
            values[i] = column->previous;
        }
        break;
    case PREDICT_COMPANION:
        for (size_t i = 0; i < count; i++)
            values[i] =
                residuals[i] +
                (column->id == COLUMN_RESULT ? ops[i].length : (uint64_t)ops[i].issue_ns);
        break;
    case PREDICT_COMPLETION:
        for (size_t i = 0; i < count; i++) {
            column->previous += residuals[i];
            values[i] = column->previous - (uint64_t)ops[i].issue_ns;
        }
        break;
    case PREDICT_SAME_KIND:
    case PREDICT_SAME_STREAM:
        for (size_t i = 0; i < count; i++) {
            uint64_t *last = &column->ends->end[op_slot(column->mode, &ops[i])];

            /* What an unknown value would be is overwritten, its difference is 0. */
            *last += residuals[i];
            values[i] = *last;
        }
        break;
    case PREDICT_END_FILE:
    case PREDICT_END_STREAM:
    case PREDICT_END_BOTH:
        for (size_t i = 0; i < count; i++) {
            uint64_t *end = &column->ends->end[op_slot(column->mode, &ops[i])];

            if (some_unknown && reader->unknown[i])
                continue;
            values[i] = residuals[i] + *end;
            *end = values[i] + ops[i].length;
        }
        break;
    default:
        for (size_t i = 0; i < count; i++)
            values[i] = residuals[i] + column->start;
        break;
    }
}

#define SCATTER(field, expression)                                                             \
    do {                                                                                       \
        for (size_t i = 0; i < count; i++) {                                                   \
            uint64_t v = values[i];                                                            \
            ops[i].field = (expression);                                                       \
        }                                                                                      \
    } while (0)

static bool all_below(const uint64_t *values, size_t count, uint64_t limit)
{
    uint64_t most = 0;

    for (size_t i = 0; i < count; i++)
        most = values[i] > most ? values[i] : most;
    return most < limit;
}

/* False: a value is out of its range. Table entries are stored plus one, 0 meaning none. */
static bool column_scatter(const struct columns_reader *reader, enum column_id id,
                           struct trace_op *ops, size_t count)
{
    const uint64_t *values = reader->values;
    uint64_t streams = (uint64_t)reader->streams + 1, files = (uint64_t)reader->files + 1;
    uint64_t limit = UINT64_MAX;

    switch (id) {
    case COLUMN_KIND:
        limit = TRACE_OP_COUNT;
        SCATTER(kind, (uint8_t)v);
        break;
    case COLUMN_API:
        limit = TRACE_API_COUNT;
        SCATTER(api, (uint8_t)v);
        break;
    case COLUMN_COMPLETION:
        limit = TRACE_COMPLETION_COUNT;
        SCATTER(completion, (uint8_t)v);
        break;
    case COLUMN_CAUSE:
        limit = TRACE_CAUSE_COUNT;
        SCATTER(cause, (uint8_t)v);
        break;
    case COLUMN_FLAGS:
        limit = 1ull << 32;
        SCATTER(flags, (uint32_t)v);
        break;
    case COLUMN_ARG:
        limit = 1ull << 32;
        SCATTER(arg, (uint32_t)v);
        break;
    case COLUMN_STREAM:
        limit = streams;
        SCATTER(stream, (uint32_t)v - 1);
        break;
    case COLUMN_FILE:
        limit = files;
        SCATTER(file, (uint32_t)v - 1);
        break;
    case COLUMN_FILE2:
        limit = files;
        SCATTER(file2, (uint32_t)v - 1);
        break;
    case COLUMN_LENGTH: SCATTER(length, v); return true;
    case COLUMN_OFFSET: SCATTER(offset, v); return true;
    case COLUMN_RESULT: SCATTER(result, (int64_t)v); return true;
    case COLUMN_ISSUE: SCATTER(issue_ns, (int64_t)v); return true;
    case COLUMN_LATENCY: SCATTER(latency_ns, v); return true;
    case COLUMN_BATCH: SCATTER(batch, v); return true;
    case COLUMN_DUE: SCATTER(due_ns, (int64_t)v); return true;
    case COLUMN_SUBMIT: SCATTER(submit_ns, v); return true;
    case COLUMN_REF: SCATTER(ref, v); return true;
    case COLUMN_COUNT: return false;
    }
    return all_below(values, count, limit);
}

static bool column_read(struct columns_reader *reader, struct column *column, size_t count)
{
    uint64_t unknown = 0;
    size_t known = count;

    if (column->unknown != UNKNOWN_NEVER)
        known = unknown_read(reader, column, count);
    if (!numbers_read(&column->numbers, reader->residuals, known))
        return false;
    residuals_unfold(column, reader->residuals, known);
    if (column->unknown != UNKNOWN_NEVER)
        residuals_spread(reader, count, known);
    values_predict(reader, column, count, column->unknown != UNKNOWN_NEVER);
    if (column->unknown != UNKNOWN_NEVER) {
        column_unknown(column->id, &unknown);
        for (size_t i = 0; i < count; i++)
            if (reader->unknown[i])
                reader->values[i] = unknown;
    }
    return column_scatter(reader, column->id, reader->ops, count);
}

static bool column_is_constant(const struct column *column, uint32_t count)
{
    return column->unknown == UNKNOWN_NEVER && column->mode == PREDICT_START &&
           column->numbers.coder == NUMBER_CONST && column->numbers.left >= count;
}

/* A column that is the same in the whole block is decoded once. */
static bool column_blank(struct columns_reader *reader, struct column *column)
{
    uint64_t residual = column->numbers.base;

    residuals_unfold(column, &residual, 1);
    reader->values[0] = residual + column->start;
    return column_scatter(reader, column->id, &reader->blank, 1);
}

int columns_reader_begin(struct columns_reader *reader, const uint8_t *payload, size_t bytes,
                         uint32_t raw_bytes, uint32_t count, uint32_t files, uint32_t streams)
{
    struct cursor in = {.at = payload, .end = payload + bytes};
    unsigned int columns;
    int last = -1;

    reader->left = 0;
    if (raw_bytes > reader->arena.capacity) {
        free(reader->arena.data);
        reader->arena.capacity = 0;
        reader->arena.data = malloc(raw_bytes);
        if (!reader->arena.data)
            return -ENOMEM;
        reader->arena.capacity = raw_bytes;
    }
    reader->arena.used = 0;
    reader->files = files;
    reader->streams = streams;
    reader->column_count = 0;
    reader->blank = (struct trace_op)TRACE_OP_INIT;
    columns = cursor_u8(&in);
    for (unsigned int i = 0; i < columns; i++) {
        struct column *column = &reader->columns[reader->column_count];

        memset(column, 0, sizeof(*column));
        column->id = cursor_u8(&in);
        /* In order: a column stands after those it is predicted from. */
        if (column->id >= COLUMN_COUNT || (int)column->id <= last ||
            !column_open(reader, column, &in, count))
            return -EBADMSG;
        last = (int)column->id;
        if (!column_is_constant(column, count))
            reader->column_count++;
        else if (!column_blank(reader, column))
            return -EBADMSG;
    }
    if (in.failed || in.at != in.end)
        return -EBADMSG;
    reader->left = count;
    reader->done = 0;
    return 0;
}

int columns_reader_next(struct columns_reader *reader, const struct trace_op **ret_ops,
                        size_t *ret_count)
{
    size_t count = reader->left < PIECE_OPS ? reader->left : PIECE_OPS;

    if (count == 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        reader->ops[i] = reader->blank;
    for (unsigned int i = 0; i < reader->column_count; i++)
        if (!column_read(reader, &reader->columns[i], count)) {
            reader->left = 0;
            return -EBADMSG;
        }
    reader->left -= (uint32_t)count;
    reader->done += (uint32_t)count;
    *ret_ops = reader->ops;
    *ret_count = count;
    return 1;
}
