/* SPDX-License-Identifier: MIT */
#include "replay/compare_side.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A heap of the completions to come, the earliest first. */
#define DEPTH_LIMIT (1u << 21)

struct side_depth {
    int64_t *ends;
    uint32_t count, room;
    int64_t at_ns; /* up to where time has been accounted for */
};

static void heap_sink(struct side_depth *heap, uint32_t at)
{
    int64_t end = heap->ends[at];
    uint32_t child;

    while ((child = 2 * at + 1) < heap->count) {
        if (child + 1 < heap->count && heap->ends[child + 1] < heap->ends[child])
            child++;
        if (heap->ends[child] >= end)
            break;
        heap->ends[at] = heap->ends[child];
        at = child;
    }
    heap->ends[at] = end;
}

static int heap_push(struct side_depth *heap, int64_t end_ns)
{
    uint32_t at, room;
    int64_t *grown;

    if (heap->count == heap->room) {
        room = heap->room ? heap->room * 2 : 256;
        grown = realloc(heap->ends, room * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        heap->ends = grown;
        heap->room = room;
    }
    at = heap->count++;
    while (at > 0 && heap->ends[(at - 1) / 2] > end_ns) {
        heap->ends[at] = heap->ends[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->ends[at] = end_ns;
    return 0;
}

static void depth_account(struct side *side, int64_t to_ns)
{
    struct side_depth *heap = side->inflight;

    if (to_ns <= heap->at_ns)
        return;
    curve_add_weighted(&side->depth_time, heap->count, (uint64_t)(to_ns - heap->at_ns));
    series_depth(&side->series, heap->at_ns, to_ns, heap->count);
    heap->at_ns = to_ns;
}

/* Time goes on to now_ns: what completed until then leaves. */
static void depth_advance(struct side *side, int64_t now_ns)
{
    struct side_depth *heap = side->inflight;

    while (heap->count > 0 && heap->ends[0] <= now_ns) {
        depth_account(side, heap->ends[0]);
        heap->ends[0] = heap->ends[--heap->count];
        if (heap->count > 0)
            heap_sink(heap, 0);
    }
}

int side_new(struct side **ret_side)
{
    struct side *side = calloc(1, sizeof *side);

    if (!side)
        return -ENOMEM;
    side->inflight = calloc(1, sizeof *side->inflight);
    if (!side->inflight) {
        free(side);
        return -ENOMEM;
    }
    hist_init(&side->latency);
    hist_init(&side->response);
    hist_init(&side->gap);
    hist_init(&side->size);
    hist_init(&side->depth_time);
    hist_init(&side->depth_issue);
    hist_init(&side->submit);
    curve_signed_init(&side->lag);
    side->last_batch = TRACE_UNKNOWN_U64;
    *ret_side = side;
    return 0;
}

int side_lay_files(struct side *side, const struct trace_reader *reader)
{
    uint32_t count = trace_reader_file_count(reader), i;
    uint64_t *base, at = 0, room;

    if (count == 0)
        return 0;
    base = calloc(count, sizeof *base);
    if (!base)
        return -ENOMEM;
    for (i = 0; i < count; i++) {
        const struct trace_file *file = trace_reader_file(reader, i);

        base[i] = at;
        room = file->max_end != TRACE_UNKNOWN_U64 ? file->max_end : file->size_bytes;
        if (room != TRACE_UNKNOWN_U64 && room < UINT64_MAX / 2 - at)
            at += room;
    }
    free(side->file_base_owned);
    side->file_base = side->file_base_owned = base;
    side->file_count = count;
    return 0;
}

static struct side_kind *side_kind_of(struct side *side, unsigned int kind)
{
    if (!side->kind[kind]) {
        side->kind[kind] = calloc(1, sizeof *side->kind[kind]);
        if (side->kind[kind])
            hist_init(&side->kind[kind]->latency);
    }
    return side->kind[kind];
}

static void side_add_result(struct side *side, struct side_kind *kind,
                            const struct trace_op *op)
{
    if (op->flags & TRACE_F_INFLIGHT)
        side->in_flight_at_end++;
    if (op->result == TRACE_UNKNOWN_I64) {
        side->results_unknown++;
    } else if (op->result < 0) {
        kind->errors++;
        side->errors++;
    } else if ((op->kind == TRACE_READ || op->kind == TRACE_WRITE) &&
               (uint64_t)op->result < op->length) {
        kind->shorts++;
        side->shorts++;
    }
}

static void side_add_due(struct side *side, const struct trace_op *op,
                         struct series_stretch *stretch)
{
    int64_t lag_ns;

    if (op->due_ns == TRACE_UNKNOWN_I64)
        return;
    lag_ns = op->issue_ns - op->due_ns;
    curve_signed_add(&side->lag, lag_ns);
    if (lag_ns > (int64_t)SIDE_LATE_NS)
        side->late++;
    side->cause[op->cause < TRACE_CAUSE_COUNT ? op->cause : 0]++;
    if (stretch->lag_count == 0 || lag_ns > stretch->lag_max_ns)
        stretch->lag_max_ns = lag_ns;
    stretch->lag_count++;
    stretch->lag_sum_ns += (double)lag_ns;
    if (op->completion == TRACE_COMPLETION_EXACT && lag_ns + (int64_t)op->latency_ns >= 0)
        hist_add(&side->response, (uint64_t)(lag_ns + (int64_t)op->latency_ns));
}

static int side_add_completion(struct side *side, struct side_kind *kind,
                               const struct trace_op *op, struct series_stretch *stretch)
{
    struct side_depth *heap = side->inflight;
    bool known = op->completion != TRACE_COMPLETION_UNKNOWN &&
                 op->latency_ns != TRACE_UNKNOWN_U64 &&
                 op->latency_ns < (uint64_t)(INT64_MAX - op->issue_ns);
    int64_t end_ns;
    int err;

    if (!known) {
        kind->unknown++;
        side->unknown++;
        return 0;
    }
    if (op->completion == TRACE_COMPLETION_EXACT) {
        kind->exact++;
        side->exact++;
        hist_add(&kind->latency, op->latency_ns);
        hist_add(&side->latency, op->latency_ns);
        stretch->latency_count++;
        stretch->latency_sum_ns += op->latency_ns;
        if (op->latency_ns > stretch->latency_max_ns)
            stretch->latency_max_ns = op->latency_ns;
    } else {
        kind->upper++;
        side->upper++;
    }
    end_ns = op->issue_ns + (int64_t)op->latency_ns;
    if (end_ns > side->end_ns)
        side->end_ns = end_ns;
    if (heap->count >= DEPTH_LIMIT) {
        side->depth_cut = true;
        return 0;
    }
    depth_account(side, op->issue_ns);
    err = heap_push(heap, end_ns);
    if (err == 0)
        hist_add(&side->depth_issue, heap->count);
    return err;
}

/* Where and how large, for the size distribution and the offset map. */
static void side_add_range(struct side *side, struct side_kind *kind, const struct trace_op *op,
                           struct series_stretch *stretch)
{
    uint64_t base = 0;

    if (!trace_op_has_range(op->kind))
        return;
    hist_add(&side->size, op->length);
    kind->bytes += op->length;
    side->bytes += op->length;
    stretch->bytes += op->length;
    if (op->offset == TRACE_UNKNOWN_U64)
        return;
    if (side->file_base && op->file < side->file_count)
        base = side->file_base[op->file];
    if (op->offset < UINT64_MAX / 2 - base)
        series_mark(&side->series, op->issue_ns, base + op->offset, op->kind != TRACE_READ);
}

static void side_add_batch(struct side *side, const struct trace_op *op)
{
    if (op->submit_ns != TRACE_UNKNOWN_U64)
        hist_add(&side->submit, op->submit_ns);
    if (op->batch == TRACE_UNKNOWN_U64 || op->batch != side->last_batch)
        side->batches++;
    side->batched++;
    side->last_batch = op->batch;
}

int side_add(struct side *side, const struct trace_op *op)
{
    struct side_kind *kind = side_kind_of(side, op->kind);
    struct series_stretch *stretch;

    if (!kind)
        return -ENOMEM;
    side->ops++;
    kind->ops++;
    side_add_result(side, kind, op);
    if (!trace_op_is_io(op->kind)) {
        /* Name-space calls have latencies of their own kind, and stay out of the rest. */
        if (op->completion == TRACE_COMPLETION_EXACT) {
            kind->exact++;
            hist_add(&kind->latency, op->latency_ns);
        } else {
            *(op->completion == TRACE_COMPLETION_UPPER ? &kind->upper : &kind->unknown) += 1;
        }
        return 0;
    }
    if (side->io_ops == 0) {
        series_init(&side->series, op->issue_ns);
        side->first_ns = side->last_ns = side->end_ns = op->issue_ns;
        side->inflight->at_ns = op->issue_ns;
    } else if (op->issue_ns < side->last_ns) {
        side->backward++;
    } else {
        hist_add(&side->gap, (uint64_t)(op->issue_ns - side->last_ns));
        side->last_ns = op->issue_ns;
    }
    side->io_ops++;
    depth_advance(side, op->issue_ns);
    stretch = series_at(&side->series, op->issue_ns);
    stretch->ops++;
    side_add_batch(side, op);
    side_add_due(side, op, stretch);
    side_add_range(side, kind, op, stretch);
    return side_add_completion(side, kind, op, series_at(&side->series, op->issue_ns));
}

void side_finish(struct side *side)
{
    if (side->io_ops == 0)
        return;
    if (side->end_ns < side->last_ns)
        side->end_ns = side->last_ns;
    depth_advance(side, INT64_MAX);
}

void side_free(struct side *side)
{
    unsigned int i;

    if (!side)
        return;
    for (i = 0; i < TRACE_OP_COUNT; i++)
        free(side->kind[i]);
    free(side->inflight->ends);
    free(side->inflight);
    free(side->file_base_owned);
    free(side);
}

uint64_t side_duration_ns(const struct side *side)
{
    return side->io_ops > 0 ? (uint64_t)(side->end_ns - side->first_ns) : 0;
}

double side_per_s(const struct side *side, uint64_t amount)
{
    uint64_t duration_ns = side_duration_ns(side);

    return duration_ns > 0 ? (double)amount * 1e9 / (double)duration_ns : 0;
}
