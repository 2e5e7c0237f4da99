/* SPDX-License-Identifier: MIT */
#include "convert/info.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/input.h"
#include "traces/diag.h"

/* ---- depth ---------------------------------------------------------------------------- */

static void sift_down(struct info_flight *flight, uint32_t at)
{
    int64_t *ends = flight->ends_ns;

    for (;;) {
        uint32_t child = at * 2 + 1;
        int64_t swap;

        if (child >= flight->count)
            return;
        if (child + 1 < flight->count && ends[child + 1] < ends[child])
            child++;
        if (ends[at] <= ends[child])
            return;
        swap = ends[at];
        ends[at] = ends[child];
        ends[child] = swap;
        at = child;
    }
}

static void depth_until(struct info_flight *flight, int64_t ns)
{
    if (ns <= flight->at_ns)
        return;
    flight->depth_ns += (double)flight->count * (double)(ns - flight->at_ns);
    flight->at_ns = ns;
}

/* Ops that have completed by ns leave, in the order of their ends. */
static void complete_until(struct info_flight *flight, int64_t ns)
{
    while (flight->count && flight->ends_ns[0] <= ns) {
        depth_until(flight, flight->ends_ns[0]);
        flight->ends_ns[0] = flight->ends_ns[--flight->count];
        sift_down(flight, 0);
    }
    depth_until(flight, ns);
}

static int fly(struct info_flight *flight, const struct trace_op *op)
{
    uint32_t at;

    if (!flight->capacity)
        flight->at_ns = op->issue_ns;
    complete_until(flight, op->issue_ns);
    if (flight->count == INFO_DEPTH_MAX) {
        flight->unfollowed++;
        return 0;
    }
    if (flight->count == flight->capacity) {
        uint32_t capacity = flight->capacity ? flight->capacity * 2 : 256;
        int64_t *grown = realloc(flight->ends_ns, capacity * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        flight->ends_ns = grown;
        flight->capacity = capacity;
    }
    for (at = flight->count++; at; at = (at - 1) / 2) {
        int64_t parent = flight->ends_ns[(at - 1) / 2];

        if (parent <= op->issue_ns + (int64_t)op->latency_ns)
            break;
        flight->ends_ns[at] = parent;
    }
    flight->ends_ns[at] = op->issue_ns + (int64_t)op->latency_ns;
    if (flight->count > flight->max)
        flight->max = flight->count;
    return 0;
}

/* ---- ops ------------------------------------------------------------------------------ */

static struct hist *latency_hist(struct info *info, unsigned int kind)
{
    switch (kind) {
    case TRACE_READ: return info->latency[0];
    case TRACE_WRITE: return info->latency[1];
    case TRACE_FSYNC:
    case TRACE_FDATASYNC:
    case TRACE_SYNC_RANGE:
    case TRACE_SYNCFS:
    case TRACE_MSYNC:
    case TRACE_FLUSH: return info->latency[2];
    default: return NULL;
    }
}

static int file_entry(struct info *info, uint32_t file, struct info_file **ret_entry)
{
    if (file >= info->files_known) {
        uint32_t next = file + file / 2 + 64;
        struct info_file *grown = realloc(info->files, next * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        memset(grown + info->files_known, 0, (next - info->files_known) * sizeof(*grown));
        info->files = grown;
        info->files_known = next;
    }
    *ret_entry = &info->files[file];
    return 0;
}

static int add_transfer(struct info *info, const struct trace_op *op)
{
    bool write = op->kind == TRACE_WRITE;
    struct info_file *file;
    int err;

    hist_add(write ? info->write_size : info->read_size, op->length);
    if (op->flags & TRACE_F_DIRECT)
        info->direct++;
    if (op->result >= 0 && (uint64_t)op->result < op->length)
        info->short_transfers++;
    if (op->file == TRACE_NONE_U32)
        return 0;
    err = file_entry(info, op->file, &file);
    if (err < 0)
        return err;
    *(write ? &file->written_bytes : &file->read_bytes) += trace_op_bytes(op);
    if (op->offset == TRACE_UNKNOWN_U64)
        return 0;
    if ((write ? file->has_written : file->has_read) &&
        op->offset == (write ? file->write_end : file->read_end))
        *(write ? &info->sequential_writes : &info->sequential_reads) += 1;
    *(write ? &file->has_written : &file->has_read) = true;
    *(write ? &file->write_end : &file->read_end) = op->offset + op->length;
    workset_add(write ? &info->write_set : &info->read_set, op->file, op->offset, op->length);
    workset_add(&info->touched_set, op->file, op->offset, op->length);
    return 0;
}

static void end_batch(struct info *info)
{
    if (!info->batch_ops)
        return;
    info->batches++;
    info->batched_ops += info->batch_ops;
    if (info->batch_ops > info->largest_batch)
        info->largest_batch = info->batch_ops;
    info->batch_ops = 0;
}

static void add_batch(struct info *info, const struct trace_op *op)
{
    if (op->batch == TRACE_UNKNOWN_U64)
        return;
    if (info->batch_ops && op->batch != info->batch_id)
        end_batch(info);
    info->batch_id = op->batch;
    info->batch_ops++;
}

static void add_gap(struct info *info, const struct trace_op *op)
{
    int64_t gap_ns = op->issue_ns - info->previous_io_ns;

    if (info->has_io && gap_ns < 0)
        info->backward_steps++;
    if (info->has_io && gap_ns >= 0) {
        hist_add(info->gap, (uint64_t)gap_ns);
        if (gap_ns > INFO_GAP_NS)
            info->long_gaps++;
        if (gap_ns > info->largest_gap_ns) {
            info->largest_gap_ns = gap_ns;
            info->largest_gap_at_ns = info->previous_io_ns;
        }
    }
    info->previous_io_ns = op->issue_ns;
}

static int add_latency(struct info *info, const struct trace_op *op)
{
    struct hist *hist = latency_hist(info, op->kind);

    if (op->latency_ns == TRACE_UNKNOWN_U64) {
        info->latency_unknown++;
        return 0;
    }
    if (op->completion == TRACE_COMPLETION_UPPER)
        info->latency_upper++;
    else if (hist)
        hist_add(hist, op->latency_ns);
    return fly(&info->flight, op);
}

static void add_time(int64_t ns, bool *seen, int64_t *first_ns, int64_t *last_ns)
{
    if (!*seen || ns < *first_ns)
        *first_ns = ns;
    if (!*seen || ns > *last_ns)
        *last_ns = ns;
    *seen = true;
}

static int add_op(struct info *info, const struct trace_op *op)
{
    struct info_file *file;
    int err = 0;

    info->ops++;
    info->op_count[op->kind]++;
    add_time(op->issue_ns, &info->has_any, &info->first_ns, &info->last_ns);
    if (op->result != TRACE_UNKNOWN_I64 && op->result < 0)
        info->errors++;
    if (trace_op_is_io(op->kind)) {
        info->op_bytes[op->kind] += trace_op_bytes(op);
        add_gap(info, op);
        add_time(op->issue_ns, &info->has_io, &info->first_io_ns, &info->last_io_ns);
        add_batch(info, op);
        err = add_latency(info, op);
    }
    if (trace_op_has_range(op->kind) && op->offset != TRACE_UNKNOWN_U64 && op->length) {
        if (op->offset < info->min_offset)
            info->min_offset = op->offset;
        if (op->offset + op->length > info->max_end)
            info->max_end = op->offset + op->length;
    }
    if (err == 0 && (op->kind == TRACE_READ || op->kind == TRACE_WRITE))
        err = add_transfer(info, op);
    if (err == 0 && op->file != TRACE_NONE_U32) {
        err = file_entry(info, op->file, &file);
        if (err == 0)
            file->ops++;
    }
    return err;
}

/* ---- the pass ------------------------------------------------------------------------- */

static int info_init(struct info *info, bool quick)
{
    struct hist **all[] = {&info->read_size,  &info->write_size, &info->gap,
                           &info->latency[0], &info->latency[1], &info->latency[2]};
    int err = 0;

    memset(info, 0, sizeof(*info));
    info->quick = quick;
    info->min_offset = UINT64_MAX;
    if (quick)
        return 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        *all[i] = malloc(sizeof(**all[i]));
        if (!*all[i])
            return -ENOMEM;
        hist_init(*all[i]);
    }
    err = workset_init(&info->read_set);
    if (err == 0)
        err = workset_init(&info->write_set);
    if (err == 0)
        err = workset_init(&info->touched_set);
    return err;
}

void info_release(struct info *info)
{
    free(info->read_size);
    free(info->write_size);
    free(info->gap);
    for (unsigned int i = 0; i < 3; i++)
        free(info->latency[i]);
    workset_release(&info->read_set);
    workset_release(&info->write_set);
    workset_release(&info->touched_set);
    free(info->files);
    free(info->flight.ends_ns);
    memset(info, 0, sizeof(*info));
}

static int scan_ops(struct info *info, struct trace_reader *reader, struct diag *diag)
{
    const struct trace_op *ops;
    size_t count;
    int err;

    while ((err = trace_reader_next(reader, &ops, &count)) > 0) {
        if (input_interrupted())
            return diag_set(diag, -EINTR, "interrupted");
        for (size_t i = 0; i < count && err >= 0; i++)
            err = add_op(info, &ops[i]);
        if (err < 0)
            break;
    }
    end_batch(info);
    complete_until(&info->flight, INT64_MAX);
    return err;
}

/* Where the I/O ends: the last block is decoded, because headers speak of every op. */
static int last_io(struct info *info, struct trace_reader *reader)
{
    const struct trace_op *ops;
    size_t count;
    int err = trace_reader_seek_ns(reader, info->last_ns);

    while (err >= 0 && (err = trace_reader_next(reader, &ops, &count)) > 0)
        for (size_t i = 0; i < count; i++)
            if (trace_op_is_io(ops[i].kind))
                add_time(ops[i].issue_ns, &info->has_io, &info->first_io_ns, &info->last_io_ns);
    /* Time 0 of a normalised tape is its first I/O op. */
    info->first_io_ns = 0;
    return err;
}

static int scan_headers(struct info *info, struct trace_reader *reader)
{
    struct trace_block_summary summary;
    int err;

    while ((err = trace_reader_next_summary(reader, &summary)) > 0) {
        info->ops += summary.ops;
        for (unsigned int kind = 0; kind < TRACE_OP_COUNT; kind++) {
            info->op_count[kind] += summary.op_count[kind];
            if (trace_op_is_io(kind))
                info->op_bytes[kind] += summary.op_bytes[kind];
        }
        if (summary.min_offset < summary.max_end && summary.min_offset < info->min_offset)
            info->min_offset = summary.min_offset;
        if (summary.min_offset < summary.max_end && summary.max_end > info->max_end)
            info->max_end = summary.max_end;
        add_time(summary.first_ns, &info->has_any, &info->first_ns, &info->last_ns);
        add_time(summary.last_ns, &info->has_any, &info->first_ns, &info->last_ns);
    }
    return err < 0 || !info->has_any ? err : last_io(info, reader);
}

int info_scan(struct info *info, struct trace_reader *reader, bool quick, struct diag *diag)
{
    int err = info_init(info, quick);

    if (err == 0 && quick && (trace_reader_is_raw(reader) || !trace_reader_can_seek(reader)))
        return diag_set(diag, -EINVAL, "--quick: %s is raw or a pipe: convert it first",
                        trace_reader_name(reader));
    if (err == 0)
        err = quick ? scan_headers(info, reader) : scan_ops(info, reader, diag);
    return err < 0 ? diag_errno(diag, err, "%s", trace_reader_name(reader)) : 0;
}

/* ---- what both ways of printing need -------------------------------------------------- */

uint64_t info_duration_ns(const struct info *info)
{
    if (info->has_io)
        return (uint64_t)(info->last_io_ns - info->first_io_ns);
    return info->has_any ? (uint64_t)(info->last_ns - info->first_ns) : 0;
}

static uint64_t moved_bytes(const struct info *info, uint32_t file)
{
    return info->files[file].read_bytes + info->files[file].written_bytes;
}

static bool is_hotter(const struct info *info, uint32_t a, uint32_t b)
{
    if (moved_bytes(info, a) != moved_bytes(info, b))
        return moved_bytes(info, a) > moved_bytes(info, b);
    return info->files[a].ops > info->files[b].ops;
}

unsigned int info_hot_files(const struct info *info, uint32_t hot[INFO_HOT_FILES])
{
    unsigned int count = 0;

    for (uint32_t file = 0; file < info->files_known; file++) {
        unsigned int at;

        if (!info->files[file].ops)
            continue;
        for (at = count; at && is_hotter(info, file, hot[at - 1]); at--)
            if (at < INFO_HOT_FILES)
                hot[at] = hot[at - 1];
        if (at < INFO_HOT_FILES) {
            hot[at] = file;
            if (count < INFO_HOT_FILES)
                count++;
        }
    }
    return count;
}

int info_tape(struct trace_reader *reader, const struct convert_conf *conf, const char *format,
              FILE *out, struct diag *diag)
{
    struct info info;
    int err = info_scan(&info, reader, conf->quick, diag);

    if (err == 0 && conf->json)
        err = info_print_json(&info, reader, format, out);
    else if (err == 0)
        info_print(&info, reader, format, out);
    if (err == 0 && (fflush(out) == EOF || ferror(out)))
        err = diag_errno(diag, errno ? -errno : -EIO, "standard output");
    info_release(&info);
    return err;
}
