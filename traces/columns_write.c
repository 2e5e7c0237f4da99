/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traces/block.h"
#include "traces/column.h"
#include "traces/columns.h"
#include "traces/predict.h"

struct columns_writer {
    enum numbers_effort effort;
    bool result;
    struct part_packer *packer;
    struct numbers_writer *numbers;
    struct predict_ends ends;
    struct buf bitmap;
    uint64_t values[BLOCK_OPS_MAX];
    uint64_t residuals[BLOCK_OPS_MAX]; /* of the known values only */
};

struct columns_writer *columns_writer_new(int level, enum numbers_effort effort, bool result)
{
    struct columns_writer *writer = calloc(1, sizeof(*writer));

    if (!writer)
        return NULL;
    writer->effort = effort;
    writer->result = result;
    writer->packer = part_packer_new(level);
    writer->numbers = writer->packer ? numbers_writer_new(writer->packer, effort) : NULL;
    if (!writer->numbers) {
        columns_writer_free(writer);
        return NULL;
    }
    return writer;
}

void columns_writer_free(struct columns_writer *writer)
{
    if (!writer)
        return;
    numbers_writer_free(writer->numbers);
    part_packer_free(writer->packer);
    buf_release(&writer->bitmap);
    free(writer);
}

/* One loop a column, so that each is a plain strided copy. */
#define GATHER(expression)                                                                     \
    do {                                                                                       \
        for (size_t i = 0; i < count; i++)                                                     \
            values[i] = (uint64_t)(expression);                                                \
    } while (0)

static void column_gather(enum column_id id, const struct trace_op *ops, size_t count,
                          uint64_t *values)
{
    switch (id) {
    case COLUMN_KIND: GATHER(ops[i].kind); break;
    case COLUMN_API: GATHER(ops[i].api); break;
    case COLUMN_COMPLETION: GATHER(ops[i].completion); break;
    case COLUMN_CAUSE: GATHER(ops[i].cause); break;
    case COLUMN_FLAGS: GATHER(ops[i].flags); break;
    case COLUMN_ARG: GATHER(ops[i].arg); break;
    case COLUMN_STREAM: GATHER((uint32_t)(ops[i].stream + 1)); break;
    case COLUMN_FILE: GATHER((uint32_t)(ops[i].file + 1)); break;
    case COLUMN_FILE2: GATHER((uint32_t)(ops[i].file2 + 1)); break;
    case COLUMN_LENGTH: GATHER(ops[i].length); break;
    case COLUMN_OFFSET: GATHER(ops[i].offset); break;
    case COLUMN_RESULT: GATHER(ops[i].result); break;
    case COLUMN_ISSUE: GATHER(ops[i].issue_ns); break;
    case COLUMN_LATENCY: GATHER(ops[i].latency_ns); break;
    case COLUMN_BATCH: GATHER(ops[i].batch); break;
    case COLUMN_DUE: GATHER(ops[i].due_ns); break;
    case COLUMN_SUBMIT: GATHER(ops[i].submit_ns); break;
    case COLUMN_REF: GATHER(ops[i].ref); break;
    case COLUMN_COUNT: break;
    }
}

/* Marks which values are unknown; returns how many are known. */
static size_t unknown_write(struct columns_writer *writer, enum column_id id,
                            const struct trace_op *ops, size_t count, struct buf *out)
{
    uint64_t unknown_kinds = 0, known_kinds = 0;
    uint64_t unknown;
    size_t known = 0;
    uint8_t *bits;

    if (!column_unknown(id, &unknown)) {
        buf_u8(out, UNKNOWN_NEVER);
        return count;
    }
    for (size_t i = 0; i < count; i++) {
        if (writer->values[i] == unknown) {
            unknown_kinds |= 1ull << ops[i].kind;
        } else {
            known_kinds |= 1ull << ops[i].kind;
            known++;
        }
    }
    if (known == count) {
        buf_u8(out, UNKNOWN_NEVER);
    } else if (!(unknown_kinds & known_kinds)) {
        buf_u8(out, UNKNOWN_BY_KIND);
        buf_varint(out, unknown_kinds);
    } else {
        buf_u8(out, UNKNOWN_BITMAP);
        buf_clear(&writer->bitmap);
        bits = buf_reserve(&writer->bitmap, (count + 7) / 8);
        if (!bits) {
            out->failed = true;
            return known;
        }
        memset(bits, 0, (count + 7) / 8);
        for (size_t i = 0; i < count; i++)
            if (writer->values[i] == unknown)
                bits[i / 8] |= (uint8_t)(1u << i % 8);
        part_pack(writer->packer, out, bits, (count + 7) / 8, PART_MATCHES);
    }
    return known;
}

static uint64_t companion(enum column_id id, const struct trace_op *op)
{
    return id == COLUMN_RESULT ? op->length : (uint64_t)op->issue_ns;
}

/* Differences of the known values to their predictions, wrapping. */
static void residuals_make(struct columns_writer *writer, enum column_id id,
                           enum predict_mode mode, uint64_t start, const struct trace_op *ops,
                           size_t count)
{
    uint64_t unknown = 0, previous = start, *to = writer->residuals;
    bool nullable = column_unknown(id, &unknown);

    if (mode >= PREDICT_END_FILE)
        memset(&writer->ends, 0, sizeof(writer->ends));
    for (size_t i = 0; i < count; i++) {
        uint64_t value = writer->values[i];
        uint64_t *end;

        if (nullable && value == unknown)
            continue;
        switch (mode) {
        case PREDICT_PREVIOUS:
            *to++ = value - previous;
            previous = value;
            break;
        case PREDICT_SAME_KIND:
        case PREDICT_SAME_STREAM:
            end = &writer->ends.end[predict_slot(mode, &ops[i])];
            *to++ = value - *end;
            *end = value;
            break;
        case PREDICT_COMPANION: *to++ = value - companion(id, &ops[i]); break;
        case PREDICT_END_FILE:
        case PREDICT_END_STREAM:
        case PREDICT_END_BOTH:
            end = &writer->ends.end[predict_slot(mode, &ops[i])];
            *to++ = value - *end;
            *end = value + ops[i].length;
            break;
        default: *to++ = value - start; break;
        }
    }
}

static uint64_t start_value(const struct columns_writer *writer, enum column_id id,
                            enum predict_mode mode, size_t count)
{
    uint64_t unknown = 0, least = UINT64_MAX;
    bool nullable = column_unknown(id, &unknown);

    if (mode > PREDICT_PREVIOUS)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (nullable && writer->values[i] == unknown)
            continue;
        if (mode == PREDICT_PREVIOUS)
            return writer->values[i];
        if (writer->values[i] < least)
            least = writer->values[i];
    }
    return least;
}

/* The greatest number that divides all differences: sectors, pages, microseconds. */
static uint64_t unit_find(const uint64_t *residuals, size_t count)
{
    uint64_t unit = 0;

    for (size_t i = 0; i < count && unit != 1; i++) {
        uint64_t a = (int64_t)residuals[i] < 0 ? 0 - residuals[i] : residuals[i];

        if (unit != 0 && ((a & (unit - 1)) == 0) && (unit & (unit - 1)) == 0)
            continue;
        while (a != 0) {
            uint64_t rest = unit % a;

            unit = a;
            a = rest;
        }
    }
    return unit == 0 || unit > INT64_MAX ? 1 : unit;
}

static bool residuals_negative(const uint64_t *residuals, size_t count)
{
    uint64_t any = 0;

    for (size_t i = 0; i < count; i++)
        any |= residuals[i];
    return any >> 63;
}

/* Divides by the common unit, and folds the sign away where there is one. */
static void residuals_fold(uint64_t *residuals, size_t count, uint64_t unit, bool is_signed)
{
    bool is_shift = (unit & (unit - 1)) == 0;
    unsigned int shift = (unsigned int)__builtin_ctzll(unit);

    if (is_shift && is_signed)
        for (size_t i = 0; i < count; i++)
            residuals[i] = zigzag_encode((int64_t)residuals[i] >> shift);
    else if (is_shift)
        for (size_t i = 0; i < count; i++)
            residuals[i] >>= shift;
    else if (is_signed)
        for (size_t i = 0; i < count; i++)
            residuals[i] = zigzag_encode((int64_t)residuals[i] / (int64_t)unit);
    else
        for (size_t i = 0; i < count; i++)
            residuals[i] /= unit;
}

/* How a column is coded, and about what that costs. */
struct plan {
    enum predict_mode mode;
    uint64_t start, unit;
    bool is_signed;
    enum number_coder coder;
    uint64_t cost;
};

/* Leaves the column's differences by this prediction in writer->residuals. */
static void plan_make(struct columns_writer *writer, enum column_id id, enum predict_mode mode,
                      const struct trace_op *ops, size_t count, size_t known, struct plan *plan)
{
    plan->mode = mode;
    plan->start = start_value(writer, id, mode, count);
    residuals_make(writer, id, mode, plan->start, ops, count);
    plan->is_signed = residuals_negative(writer->residuals, known);
    plan->unit = unit_find(writer->residuals, known);
    residuals_fold(writer->residuals, known, plan->unit, plan->is_signed);
}

/* Predictions worth trying. Without small, those that hold for what is usual. */
static bool mode_tried(const struct columns_writer *writer, enum column_id id, unsigned int mode)
{
    bool small = writer->effort == NUMBERS_SMALL;

    if (!predict_allowed(id, mode))
        return false;
    switch (id) {
    case COLUMN_KIND: return mode == PREDICT_START;
    case COLUMN_API:
    case COLUMN_COMPLETION:
    case COLUMN_CAUSE:
    case COLUMN_FLAGS:
    case COLUMN_ARG: return mode == PREDICT_START || (small && mode == PREDICT_SAME_KIND);
    case COLUMN_ISSUE:
    case COLUMN_REF: return mode == PREDICT_PREVIOUS;
    case COLUMN_DUE: return mode == PREDICT_COMPANION;
    case COLUMN_RESULT: return mode == PREDICT_COMPANION || small;
    case COLUMN_BATCH: return mode == PREDICT_PREVIOUS || small;
    case COLUMN_OFFSET:
        return mode == PREDICT_START || small ||
               (mode == PREDICT_END_BOTH && writer->effort == NUMBERS_USUAL);
    default: return mode == PREDICT_START || small;
    }
}

static void plan_choose(struct columns_writer *writer, enum column_id id,
                        const struct trace_op *ops, size_t count, size_t known,
                        struct plan *ret_plan)
{
    struct plan plan, best = {.cost = UINT64_MAX};
    enum predict_mode last = PREDICT_COUNT;

    for (unsigned int mode = 0; mode < PREDICT_COUNT; mode++) {
        /* Below a hundredth of a bit each there is nothing to gain. */
        if (!mode_tried(writer, id, mode) || best.cost < 64 + count / 128)
            continue;
        last = mode;
        plan_make(writer, id, mode, ops, count, known, &plan);
        plan.coder = numbers_choose(writer->numbers, writer->residuals, known, &plan.cost);
        if (plan.cost < best.cost)
            best = plan;
    }
    if (best.mode != last)
        plan_make(writer, id, best.mode, ops, count, known, &best);
    *ret_plan = best;
}

static bool column_is_default(enum column_id id, const uint64_t *values, size_t count)
{
    uint64_t absent = column_default(id), differ = 0;

    for (size_t i = 0; i < count; i++)
        differ |= values[i] ^ absent;
    return differ == 0;
}

static void column_write(struct columns_writer *writer, enum column_id id,
                         const struct trace_op *ops, size_t count, struct buf *out)
{
    struct plan plan;
    size_t known;

    buf_u8(out, (uint8_t)id);
    known = unknown_write(writer, id, ops, count, out);
    plan_choose(writer, id, ops, count, known, &plan);
    buf_u8(out, (uint8_t)(plan.mode | (plan.is_signed ? 0x80 : 0)));
    buf_varint(out, zigzag_encode((int64_t)plan.start));
    buf_varint(out, plan.unit);
    numbers_write(writer->numbers, out, writer->residuals, known, plan.coder);
}

int columns_write(struct columns_writer *writer, const struct trace_op *ops, size_t count,
                  struct buf *out, uint32_t *ret_raw_bytes)
{
    size_t columns_at = out->length;
    uint8_t columns = 0;

    part_packer_begin(writer->packer);
    buf_u8(out, 0);
    for (enum column_id id = 0; id < COLUMN_COUNT; id++) {
        if (id >= COLUMN_DUE && !writer->result)
            continue;
        column_gather(id, ops, count, writer->values);
        if (column_is_default(id, writer->values, count))
            continue;
        column_write(writer, id, ops, count, out);
        columns++;
    }
    if (out->failed)
        return -ENOMEM;
    out->data[columns_at] = columns;
    *ret_raw_bytes = part_packer_unpacked(writer->packer);
    return 0;
}
