/* SPDX-License-Identifier: MIT */
#include "replay/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/classify.h"
#include "replay/conf.h"
#include "replay/fit.h"
#include "replay/plan_folders.h"
#include "traces/diag.h"

struct scan {
    struct plan *plan;
    const struct conf *conf;
    struct trace_reader *reader;
    struct diag *diag;
    uint32_t files_size;
    bool started;
};

static int files_grow(struct scan *scan)
{
    struct plan *plan = scan->plan;
    uint32_t count = trace_reader_file_count(scan->reader);

    if (count > scan->files_size) {
        uint32_t size = count + count / 2 + 16;
        struct plan_file *files = realloc(plan->files, size * sizeof *files);

        if (files == NULL)
            return diag_errno(scan->diag, -ENOMEM, "%u files", count);
        memset(files + scan->files_size, 0, (size - scan->files_size) * sizeof *files);
        plan->files = files;
        scan->files_size = size;
    }
    plan->file_count = count;
    plan->stream_count = trace_reader_stream_count(scan->reader);
    return 0;
}

static void need(struct plan_file *file, uint64_t bytes)
{
    if (bytes > file->need_bytes)
        file->need_bytes = bytes;
}

static void file_range(struct plan_file *file, const struct trace_op *op)
{
    uint64_t end = op->offset + op->length;

    if (end > file->max_end)
        file->max_end = end;
    if (op->kind == TRACE_READ) {
        /* What the recording could not read need not be there. */
        if (op->result >= 0 && (uint64_t)op->result < op->length)
            end = op->offset + (uint64_t)op->result;
        if (end > file->write_end && !(file->flags & PLAN_MADE))
            need(file, end);
    } else if (end > file->write_end) {
        file->write_end = end;
    }
}

static void file_direct(struct plan_file *file, const struct conf *conf,
                        const struct trace_op *op)
{
    bool direct = conf->direct || (!conf->buffered && (op->flags & TRACE_F_DIRECT));

    file->flags |= direct ? PLAN_DIRECT : PLAN_BUFFERED;
    if (direct)
        file->align_bits |= (op->offset == TRACE_UNKNOWN_U64 ? 0 : op->offset) | op->length;
}

/* Does the operation make the file? One that failed did not; mkdir -p tries what is there. */
static bool makes(const struct trace_op *op, uint32_t index)
{
    if (op->result < 0 && op->result != TRACE_UNKNOWN_I64)
        return false;
    return op->kind == TRACE_CREATE || op->kind == TRACE_MKDIR ||
           ((op->kind == TRACE_RENAME || op->kind == TRACE_LINK) && index == op->file2);
}

/* The first operation on a file tells what was there before the tape. */
static void file_first(struct scan *scan, uint32_t index, const struct trace_op *op)
{
    const struct trace_file *entry = trace_reader_file(scan->reader, index);
    struct plan_file *file = &scan->plan->files[index];

    scan->plan->used_files++;
    if (entry->kind == TRACE_FILE_DIRECTORY || op->kind == TRACE_MKDIR ||
        op->kind == TRACE_RMDIR)
        file->flags |= PLAN_DIRECTORY;
    /* A first touch that found nothing says that there was nothing. */
    if ((entry->flags & TRACE_FILE_CREATED) || op->result == -ENOENT || makes(op, index))
        file->flags |= PLAN_MADE;
    else if (entry->size_bytes != TRACE_UNKNOWN_U64)
        need(file, entry->size_bytes);
}

static void file_use(struct scan *scan, uint32_t index, const struct trace_op *op)
{
    struct plan_file *file =
        index == TRACE_NONE_U32 ? &scan->plan->no_file : &scan->plan->files[index];

    if (!(file->flags & PLAN_USED) && index != TRACE_NONE_U32)
        file_first(scan, index, op);
    file->flags |= PLAN_USED;
    if (classify_mutates(op))
        file->flags |= PLAN_WRITTEN;
    if (classify_renames(op->kind))
        file->flags |= PLAN_VOLATILE;
    if (classify_barrier(op->kind, op->arg)) {
        file->flags |= PLAN_BARRIERS;
        scan->plan->barriers = true;
    }
}

static int scan_transfer(struct scan *scan, const struct trace_op *op, uint64_t index)
{
    if (trace_op_has_range(op->kind) && op->offset != TRACE_UNKNOWN_U64 &&
        (op->length > INT64_MAX || op->offset > (uint64_t)INT64_MAX - op->length))
        return diag_set(scan->diag, -EOVERFLOW, "op %llu: offset %llu is beyond any file",
                        (unsigned long long)index, (unsigned long long)op->offset);
    if (op->kind != TRACE_READ && op->kind != TRACE_WRITE)
        return 0;
    if (op->length > CLASSIFY_MAX_TRANSFER)
        return diag_set(scan->diag, -E2BIG,
                        "op %llu: a %s of %llu bytes is more than can be issued at once (%llu)",
                        (unsigned long long)index, trace_op_name(op->kind),
                        (unsigned long long)op->length,
                        (unsigned long long)CLASSIFY_MAX_TRANSFER);
    if (op->length > scan->plan->max_transfer)
        scan->plan->max_transfer = op->length;
    return 0;
}

static int scan_issued(struct scan *scan, const struct trace_op *op, uint64_t index,
                       enum prepared_action action)
{
    struct plan *plan = scan->plan;
    struct plan_file *file;
    int err = scan_transfer(scan, op, index);

    if (err != 0)
        return err;
    plan->issue_ops++;
    plan->kind_ops[op->kind]++;
    plan->kind_bytes[op->kind] += trace_op_has_range(op->kind) ? op->length : 0;
    plan->core_ops += action == PREPARED_CORE;
    if (classify_mutates(op))
        plan->any_writes = true;
    if (op->file == TRACE_NONE_U32 && scan->conf->target == NULL) {
        if (plan->unmapped++ == 0)
            plan->unmapped_first = index;
        return 0;
    }
    file_use(scan, op->file, op);
    if (op->file2 != TRACE_NONE_U32)
        file_use(scan, op->file2, op);
    file = op->file == TRACE_NONE_U32 ? &plan->no_file : &plan->files[op->file];
    if (op->kind == TRACE_READ || op->kind == TRACE_WRITE)
        file_direct(file, scan->conf, op);
    if (!trace_op_has_range(op->kind) || op->offset == TRACE_UNKNOWN_U64 || op->length == 0)
        return 0;
    file_range(file, op);
    if (op->kind != TRACE_READ)
        file->write_bytes += op->length;
    return plan->pack ? pack_touch(plan->pack, op->file, op->offset, op->length, scan->diag) : 0;
}

static int scan_op(struct scan *scan, const struct trace_op *recorded, uint64_t index)
{
    struct trace_op room;
    const struct trace_op *op = classify_op(scan->conf, recorded, &room);
    struct plan *plan = scan->plan;
    const struct trace_file *file =
        op->file == TRACE_NONE_U32 ? NULL : trace_reader_file(scan->reader, op->file);
    enum prepared_action action;
    enum skip_reason skip;

    plan->ops++;
    if (!classify_in_window(scan->conf, op->issue_ns)) {
        plan->skipped[SKIP_WINDOW]++;
        return 0;
    }
    if (!scan->started) {
        scan->started = true;
        plan->first_ns = op->issue_ns;
        plan->last_ns = op->issue_ns;
        plan->origin_ns = scan->conf->start_ns ? (int64_t)scan->conf->start_ns : 0;
        if (scan->conf->start_ns == 0 && op->issue_ns > 0)
            plan->origin_ns = op->issue_ns;
    }
    if (op->issue_ns > plan->last_ns)
        plan->last_ns = op->issue_ns;
    if (op->latency_ns == TRACE_UNKNOWN_U64) {
        plan->no_latency += !(op->flags & TRACE_F_INFLIGHT);
    } else {
        uint64_t end_ns = (uint64_t)(op->issue_ns - plan->origin_ns) + op->latency_ns;

        if (op->issue_ns >= plan->origin_ns && end_ns > plan->last_end_ns)
            plan->last_end_ns = end_ns;
    }
    action = classify(scan->conf, file, op, &skip);
    if (action == PREPARED_SKIP) {
        plan->skipped[skip]++;
        return 0;
    }
    plan->mapped_ops += op != recorded;
    return scan_issued(scan, op, index, action);
}

static int plan_check(const struct plan *plan, const struct conf *conf, const char *name,
                      struct diag *diag)
{
    if (plan->ops == 0)
        return diag_set(diag, -ENODATA, "%s: no operations", name);
    if (plan->unmapped != 0 && !(conf->engine.engine->flags & ENGINE_NO_TARGET))
        return diag_set(diag, -ENXIO,
                        "%s: %llu operations name no file (the first is op %llu): they go nowhere "
                        "unless --target FILE takes everything", name,
                        (unsigned long long)plan->unmapped,
                        (unsigned long long)plan->unmapped_first);
    if (plan->no_latency != 0 && !conf->latency_assumed &&
        (conf->pace == PACE_THINK || (conf->order & ORDER_RANKED)))
        return diag_set(diag, -ENODATA,
                        "%s: %llu of %llu operations have no recorded latency, which %s needs; "
                        "--assume-latency T takes T for those", name,
                        (unsigned long long)plan->no_latency, (unsigned long long)plan->ops,
                        conf->pace == PACE_THINK ? "--pace think" : "this --order");
    return 0;
}

int plan_new(struct plan **ret_plan, struct trace_reader *reader, const struct conf *conf,
             struct diag *diag)
{
    struct plan *plan = calloc(1, sizeof *plan);
    struct scan scan = {.plan = plan, .conf = conf, .reader = reader, .diag = diag};
    struct trace_damage damage;
    const struct trace_op *ops;
    size_t count;
    int err = 0;

    if (plan == NULL)
        return diag_errno(diag, -ENOMEM, "plan");
    if (conf->fit == FIT_PACK) {
        plan->pack = pack_new();
        if (plan->pack == NULL) {
            err = diag_errno(diag, -ENOMEM, "plan");
            goto out;
        }
    }
    while ((err = trace_reader_next(reader, &ops, &count)) > 0) {
        err = files_grow(&scan);
        for (size_t i = 0; err == 0 && i < count; i++)
            err = scan_op(&scan, &ops[i], plan->ops);
        if (err != 0)
            goto out;
    }
    if (err == 0)
        err = files_grow(&scan);
    if (err == 0 && (err = plan_folders(plan, reader)) != 0)
        diag_errno(diag, err, "plan");
    if (err == 0)
        err = plan_check(plan, conf, trace_reader_name(reader), diag);
    trace_reader_damage(reader, &damage);
    plan->lost = trace_reader_lost(reader);
    if (!trace_reader_sample(reader, &plan->sample))
        plan->sample.one_in = 0;
    plan->damaged_ops = damage.ops;
    plan->truncated = damage.truncated;
out:
    if (err != 0) {
        plan_free(plan);
        return err;
    }
    *ret_plan = plan;
    return 0;
}

void plan_free(struct plan *plan)
{
    if (plan == NULL)
        return;
    pack_free(plan->pack);
    free(plan->files);
    free(plan);
}

uint64_t plan_duration_ns(const struct plan *plan, const struct conf *conf)
{
    uint64_t span_ns = (uint64_t)(plan->last_ns - plan->first_ns);

    return (uint64_t)((double)span_ns / conf->speed) * conf->loops;
}
