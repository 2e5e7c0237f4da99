/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traces/column.h"
#include "traces/columns.h"
#include "traces/predict.h"

/* Operations turned into columns at once: they stay in the first-level cache meanwhile. */
#define TILE_OPS 128

/* What was chosen for a column, and what it came to. */
struct remembered {
    enum predict_mode mode;
    enum number_coder coder;
    unsigned int left; /* blocks that may still use it */
    double bits_each;
};

struct columns_writer {
    enum numbers_effort effort;
    bool result;
    struct part_packer *packer;
    struct numbers_writer *numbers;
    struct predict_ends ends;
    struct buf bitmap;
    size_t capacity;                 /* operations that the arrays hold */
    uint64_t *columns[COLUMN_COUNT]; /* of the block; one allocation */
    uint64_t differ[COLUMN_COUNT];   /* 0: the column is all absent values */
    uint64_t vary[COLUMN_COUNT];     /* 0: the column is one value throughout */
    uint64_t *residuals;             /* of the known values of one column */
    bool remembers;
    struct remembered remembered[COLUMN_COUNT];
};

/* A column being coded. */
struct column {
    enum column_id id;
    const uint64_t *values;
    size_t count, known;
    uint64_t unknown; /* the value that means so, when known < count */
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
    free(writer->columns[0]);
    free(writer->residuals);
    free(writer);
}

void columns_writer_remember(struct columns_writer *writer)
{
    writer->remembers = true;
}

/* ---- operations into columns ---- */

static int columns_room(struct columns_writer *writer, size_t count)
{
    if (count <= writer->capacity)
        return 0;
    writer->capacity = 0;
    free(writer->columns[0]);
    free(writer->residuals);
    writer->columns[0] = malloc(COLUMN_COUNT * count * sizeof(uint64_t));
    writer->residuals = malloc(count * sizeof(uint64_t));
    if (!writer->columns[0] || !writer->residuals)
        return -ENOMEM;
    for (unsigned int id = 1; id < COLUMN_COUNT; id++)
        writer->columns[id] = writer->columns[0] + id * count;
    writer->capacity = count;
    return 0;
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

static void columns_gather(struct columns_writer *writer, const struct trace_op *ops,
                           size_t count)
{
    unsigned int columns = writer->result ? COLUMN_COUNT : COLUMN_DUE;

    memset(writer->vary, 0, sizeof(writer->vary));
    memset(writer->differ, 0, sizeof(writer->differ));
    for (size_t at = 0; at < count; at += TILE_OPS) {
        size_t now = count - at < TILE_OPS ? count - at : TILE_OPS;

        for (enum column_id id = 0; id < columns; id++) {
            uint64_t *values = writer->columns[id] + at, first, vary = 0;

            column_gather(id, ops + at, now, values);
            first = writer->columns[id][0];
            for (size_t i = 0; i < now; i++)
                vary |= values[i] ^ first;
            writer->vary[id] |= vary;
            writer->differ[id] |= vary | (first ^ column_default(id));
        }
    }
}

/* ---- one column ---- */

/* Marks which values are unknown and counts those that are known. */
static void unknown_write(struct columns_writer *writer, struct column *column, struct buf *out)
{
    const uint64_t *values = column->values, *kinds = writer->columns[COLUMN_KIND];
    uint64_t unknown_kinds = 0, known_kinds = 0;
    size_t count = column->count, unknowns = 0;
    uint8_t *bits;

    if (column_unknown(column->id, &column->unknown))
        for (size_t i = 0; i < count; i++)
            unknowns += values[i] == column->unknown;
    column->known = count - unknowns;
    if (unknowns == 0) {
        buf_u8(out, UNKNOWN_NEVER);
        return;
    }
    for (size_t i = 0; i < count; i++)
        *(values[i] == column->unknown ? &unknown_kinds : &known_kinds) |= 1ull << kinds[i];
    if (!(unknown_kinds & known_kinds)) {
        buf_u8(out, UNKNOWN_BY_KIND);
        buf_varint(out, unknown_kinds);
        return;
    }
    buf_u8(out, UNKNOWN_BITMAP);
    buf_clear(&writer->bitmap);
    bits = buf_reserve(&writer->bitmap, (count + 7) / 8);
    if (!bits) {
        out->failed = true;
        return;
    }
    memset(bits, 0, (count + 7) / 8);
    for (size_t i = 0; i < count; i++)
        if (values[i] == column->unknown)
            bits[i / 8] |= (uint8_t)(1u << i % 8);
    part_pack(writer->packer, out, bits, (count + 7) / 8,
              writer->effort == NUMBERS_QUICK ? PART_STORE : PART_MATCHES);
}

#define EACH_KNOWN                                                                             \
    for (size_t i = 0; i < column->count; i++)                                                 \
        if (all || column->values[i] != column->unknown)

/* Differences to predictions that slots hold. */
static void residuals_slots(struct columns_writer *writer, const struct column *column,
                            enum predict_mode mode)
{
    const uint64_t *kinds = writer->columns[COLUMN_KIND], *files = writer->columns[COLUMN_FILE];
    const uint64_t *streams = writer->columns[COLUMN_STREAM];
    const uint64_t *lengths = writer->columns[COLUMN_LENGTH];
    bool ends = mode <= PREDICT_END_BOTH, all = column->known == column->count;
    uint64_t *to = writer->residuals;

    memset(&writer->ends, 0, sizeof(writer->ends));
    EACH_KNOWN
    {
        unsigned int slot = predict_slot(mode, (uint32_t)kinds[i], (uint32_t)files[i] - 1,
                                         (uint32_t)streams[i] - 1);
        uint64_t *last = &writer->ends.end[slot], value = column->values[i];

        *to++ = value - *last;
        *last = ends ? value + lengths[i] : value;
    }
}

/* Differences of the known values to their predictions, wrapping. */
static void residuals_make(struct columns_writer *writer, const struct column *column,
                           enum predict_mode mode, uint64_t start)
{
    const uint64_t *values = column->values, *companions;
    uint64_t *to = writer->residuals, previous = start;
    bool all = column->known == column->count;

    switch (mode) {
    case PREDICT_START:
        EACH_KNOWN
        *to++ = values[i] - start;
        break;
    case PREDICT_PREVIOUS:
        EACH_KNOWN
        {
            *to++ = values[i] - previous;
            previous = values[i];
        }
        break;
    case PREDICT_COMPANION:
        companions =
            writer->columns[column->id == COLUMN_RESULT ? COLUMN_LENGTH : COLUMN_ISSUE];
        EACH_KNOWN
        *to++ = values[i] - companions[i];
        break;
    case PREDICT_COMPLETION:
        companions = writer->columns[COLUMN_ISSUE];
        previous = 0;
        EACH_KNOWN
        {
            *to++ = values[i] + companions[i] - previous;
            previous = values[i] + companions[i];
        }
        break;
    default: residuals_slots(writer, column, mode); break;
    }
}

/* The least value, or the first: from there the differences are small. */
static uint64_t start_value(const struct column *column, enum predict_mode mode)
{
    bool all = column->known == column->count;
    uint64_t least = UINT64_MAX;

    if (mode > PREDICT_PREVIOUS)
        return 0;
    EACH_KNOWN
    {
        if (mode == PREDICT_PREVIOUS)
            return column->values[i];
        least = column->values[i] < least ? column->values[i] : least;
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
static void plan_make(struct columns_writer *writer, const struct column *column,
                      enum predict_mode mode, struct plan *plan)
{
    plan->mode = mode;
    plan->start = start_value(column, mode);
    residuals_make(writer, column, mode, plan->start);
    plan->is_signed = residuals_negative(writer->residuals, column->known);
    plan->unit =
        writer->effort == NUMBERS_QUICK ? 1 : unit_find(writer->residuals, column->known);
    residuals_fold(writer->residuals, column->known, plan->unit, plan->is_signed);
}

/* Predictions worth trying. Without small, those that hold for what is usual. */
static bool mode_tried(const struct columns_writer *writer, enum column_id id,
                       unsigned int mode)
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

/* Enough values to tell which predictions are worth all of a block; how many of those to try. */
#define HEAD_OPS    4096
#define HEAD_CHOSEN 2

/* Leaves in *modes, a bit each, those predictions worth trying that do best on the head. */
static void modes_narrow(struct columns_writer *writer, const struct column *column,
                         unsigned int *modes)
{
    bool all = column->known == column->count;
    struct column head = *column;
    uint64_t estimates[PREDICT_COUNT] = {0};
    unsigned int tried = *modes;
    struct plan plan;

    head.count = HEAD_OPS;
    head.known = 0;
    for (size_t i = 0; i < head.count; i++)
        head.known += all || column->values[i] != column->unknown;
    if (head.known == head.count && !all)
        return; /* the column's unknown values are all behind it: no picture of the rest */
    for (unsigned int mode = 0; mode < PREDICT_COUNT; mode++) {
        if (!(tried & 1u << mode))
            continue;
        plan_make(writer, &head, mode, &plan);
        estimates[mode] = numbers_estimate(writer->residuals, head.known);
    }
    for (unsigned int mode = 0, better; mode < PREDICT_COUNT; mode++) {
        better = 0;
        for (unsigned int other = 0; other < PREDICT_COUNT; other++)
            if (tried & 1u << mode && tried & 1u << other)
                better += other < mode ? estimates[other] <= estimates[mode]
                                       : estimates[other] < estimates[mode];
        if (better >= HEAD_CHOSEN)
            *modes &= ~(1u << mode);
    }
}

static unsigned int modes_find(struct columns_writer *writer, const struct column *column)
{
    unsigned int modes = 0;

    for (unsigned int mode = 0; mode < PREDICT_COUNT; mode++)
        modes |= (unsigned int)mode_tried(writer, column->id, mode) << mode;
    if (__builtin_popcount(modes) > HEAD_CHOSEN && column->count > 2 * HEAD_OPS)
        modes_narrow(writer, column, &modes);
    return modes;
}

static void plan_choose(struct columns_writer *writer, const struct column *column,
                        unsigned int modes, struct plan *ret_plan)
{
    uint64_t estimate, best_estimate = UINT64_MAX;
    struct plan plan, best = {.cost = UINT64_MAX};
    enum predict_mode last = PREDICT_COUNT;

    for (unsigned int mode = 0; mode < PREDICT_COUNT; mode++) {
        /* Below a hundredth of a bit each there is nothing to gain. */
        if (!(modes & 1u << mode) || best.cost < 64 + column->count / 128)
            continue;
        last = mode;
        plan_make(writer, column, mode, &plan);
        if (writer->effort == NUMBERS_SMALL) {
            estimate = numbers_estimate(writer->residuals, column->known);
            if (estimate / 3 > best_estimate / 2)
                continue;
            best_estimate = estimate < best_estimate ? estimate : best_estimate;
        }
        plan.coder =
            numbers_choose(writer->numbers, writer->residuals, column->known, &plan.cost);
        if (plan.cost < best.cost)
            best = plan;
    }
    if (best.mode != last)
        plan_make(writer, column, best.mode, &best);
    *ret_plan = best;
}

/* A choice is made afresh after so many blocks, or when a value takes this much more or less
 * than it did; blocks of fewer values are no guide to others. */
#define REMEMBER_BLOCKS 8
#define REMEMBER_VALUES 8192
#define REMEMBER_MORE   1.02
#define REMEMBER_LESS   0.8

/* The plan of the block before, made for this one: false when it does not suit. */
static bool plan_recall(struct columns_writer *writer, const struct column *column,
                        unsigned int modes, struct plan *ret_plan)
{
    struct remembered *remembered = &writer->remembered[column->id];

    if (remembered->left == 0 || column->known < REMEMBER_VALUES ||
        !(modes & 1u << remembered->mode))
        return false;
    remembered->left--;
    ret_plan->coder = remembered->coder;
    plan_make(writer, column, remembered->mode, ret_plan);
    return numbers_suit(writer->numbers, writer->residuals, column->known, ret_plan->coder);
}

/* Differences by the plan, coded. */
static void plan_write(struct columns_writer *writer, const struct column *column,
                       const struct plan *plan, struct buf *out)
{
    buf_u8(out, (uint8_t)(plan->mode | (plan->is_signed ? 0x80 : 0)));
    buf_varint(out, zigzag_encode((int64_t)plan->start));
    buf_varint(out, plan->unit);
    numbers_write(writer->numbers, out, writer->residuals, column->known, plan->coder);
}

/* A column of one value needs no look at the others: many are so in most blocks. False: its
 * form is not this one. */
static bool constant_write(struct columns_writer *writer, enum column_id id, size_t count,
                           struct buf *out)
{
    const struct column column = {.id = id, .known = count};
    const struct plan plan = {.mode = PREDICT_START,
                              .start = writer->columns[id][0],
                              .unit = 1,
                              .coder = NUMBER_CONST};
    uint64_t unknown;

    if (writer->vary[id] != 0 || !predict_allowed(id, PREDICT_START) ||
        (column_unknown(id, &unknown) && plan.start == unknown))
        return false;
    buf_u8(out, (uint8_t)id);
    buf_u8(out, UNKNOWN_NEVER);
    writer->residuals[0] = 0;
    plan_write(writer, &column, &plan, out);
    return true;
}

static void column_write(struct columns_writer *writer, enum column_id id, size_t count,
                         struct buf *out)
{
    struct column column = {.id = id, .values = writer->columns[id], .count = count};
    struct remembered *remembered = &writer->remembered[id];
    unsigned int modes;
    struct plan plan;
    double bits_each;
    size_t start;

    buf_u8(out, (uint8_t)id);
    unknown_write(writer, &column, out);
    start = out->length;
    modes = modes_find(writer, &column);
    if (plan_recall(writer, &column, modes, &plan)) {
        plan_write(writer, &column, &plan, out);
        bits_each = (double)(out->length - start) * 8 / (double)column.known;
        if (bits_each <= remembered->bits_each * REMEMBER_MORE &&
            bits_each >= remembered->bits_each * REMEMBER_LESS)
            return;
        out->length = start;
    }
    plan_choose(writer, &column, modes, &plan);
    plan_write(writer, &column, &plan, out);
    *remembered = (struct remembered){.mode = plan.mode, .coder = plan.coder};
    if (writer->remembers && column.known >= REMEMBER_VALUES) {
        remembered->left = REMEMBER_BLOCKS;
        remembered->bits_each = (double)(out->length - start) * 8 / (double)column.known;
    }
}

int columns_write(struct columns_writer *writer, const struct trace_op *ops, size_t count,
                  struct buf *out, uint32_t *ret_raw_bytes)
{
    size_t columns_at = out->length;
    uint8_t columns = 0;
    int err;

    err = columns_room(writer, count);
    if (err < 0)
        return err;
    columns_gather(writer, ops, count);
    part_packer_begin(writer->packer);
    buf_u8(out, 0);
    for (enum column_id id = 0; id < COLUMN_COUNT; id++) {
        if (writer->differ[id] == 0)
            continue;
        if (!constant_write(writer, id, count, out))
            column_write(writer, id, count, out);
        columns++;
    }
    if (out->failed)
        return -ENOMEM;
    out->data[columns_at] = columns;
    *ret_raw_bytes = part_packer_unpacked(writer->packer);
    return 0;
}
