/* SPDX-License-Identifier: MIT */
#include "convert/outlet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEAD_BYTES (1u << 20)

void outlet_init(struct outlet *outlet, const struct outlet_conf *conf)
{
    memset(outlet, 0, sizeof(*outlet));
    outlet->conf = *conf;
}

static struct diag *diag_of(const struct outlet *outlet)
{
    return outlet->conf.import->diag;
}

/* ---- parts ---------------------------------------------------------------------------- */

/* "t.tape" and 7: "t.007.tape". */
static char *part_path(const char *path, size_t number)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t stem = dot && dot != name ? (size_t)(dot - path) : strlen(path);
    char *made;

    return asprintf(&made, "%.*s.%03zu%s", (int)stem, path, number, path + stem) < 0 ? NULL
                                                                                     : made;
}

static int part_new(struct outlet *outlet, uint32_t key, size_t *ret_part)
{
    bool split = outlet->conf.transform->split != SPLIT_NONE;
    size_t most = !split                                        ? 1
                  : outlet->conf.transform->split == SPLIT_TIME ? OUTLET_TIMES_MAX
                                                                : OUTLET_PARTS_MAX;
    struct outlet_part *part;

    if (outlet->count == most)
        return diag_set(diag_of(outlet), -E2BIG,
                        "--split: more than %zu outputs: filter first, or take longer times",
                        most);
    if (!outlet->parts) {
        outlet->parts = calloc(most, sizeof(*outlet->parts));
        if (!outlet->parts)
            return diag_errno(diag_of(outlet), -ENOMEM, "output");
    }
    part = &outlet->parts[outlet->count];
    part->key = key;
    if (outlet->conf.path)
        part->path =
            split ? part_path(outlet->conf.path, outlet->count) : strdup(outlet->conf.path);
    if (outlet->conf.path && !part->path)
        return diag_errno(diag_of(outlet), -ENOMEM, "output");
    *ret_part = outlet->count++;
    return 0;
}

static int set_number(struct outlet *outlet, const char *key, int64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long)value);
    import_meta_drop(outlet->conf.import, key);
    return import_meta(outlet->conf.import, key, text);
}

/* What the part is of the whole. */
static int split_meta(struct outlet *outlet, const struct outlet_part *part)
{
    struct import *import = outlet->conf.import;
    const struct trace_file *file = catalog_file_at(&import->tables, part->key);
    const struct trace_stream *stream = catalog_stream_at(&import->tables, part->key);
    char text[64];

    switch (outlet->conf.transform->split) {
    case SPLIT_FILE:
        import_meta_drop(import, "split");
        return import_meta(import, "split", file ? file->path : "-");
    case SPLIT_STREAM:
        if (stream)
            snprintf(text, sizeof(text), "%u/%u", stream->pid, stream->tid);
        import_meta_drop(import, "split");
        return import_meta(import, "split", stream ? text : "-");
    case SPLIT_TIME: return set_number(outlet, "split", (int64_t)part->key);
    default: return 0;
    }
}

/* Time 0 is known: what the metadata say of it moves with it. source_ns is on the source's
 * clock. */
static int part_meta(struct outlet *outlet, const struct outlet_part *part, int64_t source_ns,
                     int64_t capture_start_ns, bool has_capture_start)
{
    struct import *import = outlet->conf.import;
    int err = split_meta(outlet, part);

    if (err == 0 && has_capture_start)
        err = set_number(outlet, TRACE_META_CAPTURE_START,
                         transform_speed(outlet->conf.transform, capture_start_ns - source_ns));
    if (err == 0 && import->wall_known)
        err = set_number(outlet, TRACE_META_START_WALL, import->wall_ns + source_ns);
    if (err == 0 && outlet->conf.transform->split != SPLIT_NONE)
        err = set_number(
            outlet, "split_start_ns",
            transform_speed(outlet->conf.transform, part->base_ns - outlet->base_ns));
    return err;
}

/* The last reading of the wall clock up to last_ns goes with the ops. At another speed than the
 * recorded one it says nothing. */
static void part_wall(struct outlet *outlet, struct outlet_part *part, int64_t last_ns,
                      int64_t removed_ns)
{
    const struct import *import = outlet->conf.import;

    if (outlet->conf.transform->speed != 1)
        return;
    for (; part->next_wall < import->wall_count; part->next_wall++) {
        const struct import_wall *wall = &import->walls[part->next_wall];

        if (wall->at_ns - removed_ns > last_ns)
            return;
        part->export.has_wall = true;
        part->export.wall_tape_ns = wall->at_ns - removed_ns - part->base_ns;
        part->export.wall_ns = wall->wall_ns;
    }
}

static int part_leave(struct outlet *outlet, struct outlet_part *part, struct trace_op *ops,
                      size_t count)
{
    const struct transform_conf *transform = outlet->conf.transform;

    for (size_t i = 0; i < count; i++) {
        ops[i].issue_ns = transform_speed(transform, ops[i].issue_ns - part->base_ns);
        if (ops[i].due_ns != TRACE_UNKNOWN_I64)
            ops[i].due_ns = transform_speed(transform, ops[i].due_ns - part->base_ns);
    }
    return export_ops(&part->export, ops, count);
}

static int drain_lead(struct outlet *outlet, struct outlet_part *part)
{
    struct trace_op batch[IMPORT_BATCH];
    const struct trace_op *ops;
    size_t count;
    int err;

    if (!part->lead)
        return 0;
    err = trace_sorter_finish(part->lead);
    while (err >= 0 && (err = trace_sorter_next(part->lead, &ops, &count)) > 0)
        for (size_t done = 0; done < count && err >= 0;) {
            size_t some = count - done < IMPORT_BATCH ? count - done : IMPORT_BATCH;

            memcpy(batch, ops + done, some * sizeof(*batch));
            err = part_leave(outlet, part, batch, some);
            done += some;
        }
    trace_sorter_free(part->lead);
    part->lead = NULL;
    return err < 0 ? err : 0;
}

/* Opens the part's output with base_ns as its time 0; what was held back goes out first. */
static int part_open(struct outlet *outlet, struct outlet_part *part, int64_t base_ns,
                     int64_t removed_ns)
{
    struct import *import = outlet->conf.import;
    const char *start = import_meta_value(import, TRACE_META_CAPTURE_START);
    int64_t start_ns = start ? strtoll(start, NULL, 10) : 0;
    struct trace_sink sink;
    int err;

    if (!outlet->base_known) {
        outlet->base_known = true;
        outlet->base_ns = base_ns;
    }
    part->base_ns = base_ns;
    err = part_meta(outlet, part, base_ns + removed_ns, start_ns, start != NULL);
    if (err < 0)
        return err;
    if (outlet->conf.sink) {
        sink = *outlet->conf.sink;
        outlet->conf.sink = NULL;
    } else {
        err = trace_sink_path(&sink, part->path, TRACE_SINK_RENAME, true, import->diag);
        if (err < 0)
            return err;
    }
    part->opened = true;
    err = export_open(&part->export, import, outlet->conf.exporter, outlet->conf.exporter_conf,
                      &sink);
    /* The next part starts from what the source said. */
    if (err == 0 && start && outlet->conf.transform->split != SPLIT_NONE)
        err = set_number(outlet, TRACE_META_CAPTURE_START, start_ns);
    return err < 0 ? err : drain_lead(outlet, part);
}

static int hold(struct outlet *outlet, struct outlet_part *part, const struct trace_op *op)
{
    struct trace_sorter_conf conf = {.temp_dir = outlet->conf.temp_dir,
                                     .memory_bytes = LEAD_BYTES};
    int err = 0;

    if (!part->lead) {
        part->first_ns = op->issue_ns;
        err = trace_sorter_new(&part->lead, &conf, diag_of(outlet));
    }
    return err < 0 ? err : trace_sorter_add(part->lead, op, 1);
}

static int part_ops(struct outlet *outlet, struct outlet_part *part, struct trace_op *ops,
                    size_t count, int64_t removed_ns)
{
    size_t held = 0;
    int err = 0;

    for (; !part->opened && held < count && err == 0; held++) {
        if (trace_op_is_io(ops[held].kind)) {
            err = part_open(outlet, part, ops[held].issue_ns, removed_ns);
            break;
        }
        err = hold(outlet, part, &ops[held]);
    }
    if (err < 0 || held == count)
        return err;
    part_wall(outlet, part, ops[count - 1].issue_ns, removed_ns);
    return part_leave(outlet, part, ops + held, count - held);
}

static int part_close(struct outlet *outlet, struct outlet_part *part, bool keep)
{
    int err = 0;

    if (part->closed)
        return 0;
    if (keep && !part->opened) /* no I/O op in it: its first op is time 0 */
        err = part_open(outlet, part, part->first_ns, 0);
    trace_sorter_free(part->lead);
    part->lead = NULL;
    if (part->opened) {
        int closed = export_close(&part->export, keep && err == 0);

        part->closed = keep && err == 0 && closed == 0;
        if (err == 0)
            err = closed;
    }
    return err;
}

/* ---- routing -------------------------------------------------------------------------- */

static int keyed_part(struct outlet *outlet, uint32_t key, size_t *ret_part)
{
    size_t part;
    int err;

    if (key == TRACE_NONE_U32) {
        err = outlet->none_part ? 0 : part_new(outlet, key, &part);
        if (err == 0 && !outlet->none_part)
            outlet->none_part = part + 1;
        *ret_part = outlet->none_part - 1;
        return err;
    }
    if (key >= outlet->known) {
        uint32_t next = key + key / 2 + 64;
        uint32_t *grown = realloc(outlet->part_of, next * sizeof(*grown));

        if (!grown)
            return diag_errno(diag_of(outlet), -ENOMEM, "output");
        memset(grown + outlet->known, 0, (next - outlet->known) * sizeof(*grown));
        outlet->part_of = grown;
        outlet->known = next;
    }
    if (!outlet->part_of[key]) {
        err = part_new(outlet, key, &part);
        if (err < 0)
            return err;
        outlet->part_of[key] = (uint32_t)part + 1;
    }
    *ret_part = outlet->part_of[key] - 1;
    return 0;
}

/* The interval that the op falls in. */
static int timed_part(struct outlet *outlet, const struct trace_op *op, size_t *ret_part)
{
    int64_t since_ns, interval;

    if (!outlet->base_known && trace_op_is_io(op->kind)) {
        outlet->base_known = true;
        outlet->base_ns = op->issue_ns;
    }
    since_ns = outlet->base_known
                   ? transform_speed(outlet->conf.transform, op->issue_ns - outlet->base_ns)
                   : 0;
    interval = since_ns > 0 ? since_ns / (int64_t)outlet->conf.transform->split_ns : 0;
    if (interval > UINT32_MAX - 1)
        return diag_set(diag_of(outlet), -E2BIG, "--split: too many intervals");
    if (outlet->count && outlet->parts[outlet->count - 1].key == (uint32_t)interval) {
        *ret_part = outlet->count - 1;
        return 0;
    }
    return part_new(outlet, (uint32_t)interval, ret_part);
}

static int route(struct outlet *outlet, const struct trace_op *op, size_t *ret_part)
{
    switch (outlet->conf.transform->split) {
    case SPLIT_FILE: return keyed_part(outlet, op->file, ret_part);
    case SPLIT_STREAM: return keyed_part(outlet, op->stream, ret_part);
    case SPLIT_TIME: return timed_part(outlet, op, ret_part);
    default:
        *ret_part = 0;
        return outlet->count ? 0 : part_new(outlet, TRACE_NONE_U32, ret_part);
    }
}

int outlet_ops(struct outlet *outlet, struct trace_op *ops, size_t count, int64_t removed_ns)
{
    bool split = outlet->conf.transform->split != SPLIT_NONE;
    size_t part = 0, next = 0;
    int err;

    if (!count)
        return 0;
    err = route(outlet, &ops[0], &part);
    if (!split)
        return err < 0 ? err : part_ops(outlet, &outlet->parts[part], ops, count, removed_ns);
    for (size_t from = 0, to = 1; err == 0 && from < count; to++) {
        if (to < count) {
            err = route(outlet, &ops[to], &next);
            if (err == 0 && next == part)
                continue;
        }
        /* Intervals follow each other: the one before is whole. */
        if (err == 0 && outlet->conf.transform->split == SPLIT_TIME && part)
            err = part_close(outlet, &outlet->parts[part - 1], true);
        if (err == 0)
            err = part_ops(outlet, &outlet->parts[part], ops + from, to - from, removed_ns);
        from = to;
        part = next;
    }
    return err;
}

int outlet_close(struct outlet *outlet, bool keep)
{
    size_t part;
    int err = 0;

    if (keep && !outlet->count)
        err = part_new(outlet, TRACE_NONE_U32, &part);
    for (size_t i = 0; i < outlet->count; i++) {
        int closed = part_close(outlet, &outlet->parts[i], keep && err == 0);

        if (err == 0)
            err = closed;
    }
    for (size_t i = 1; i < outlet->count; i++) {
        kinds_merge(&outlet->parts[0].export.skipped, &outlet->parts[i].export.skipped);
        kinds_merge(&outlet->parts[0].export.lost_fields, &outlet->parts[i].export.lost_fields);
    }
    if (keep && err == 0)
        return 0;
    for (size_t i = 0; i < outlet->count; i++)
        if (outlet->parts[i].closed && strcmp(outlet->parts[i].path, "-"))
            unlink(outlet->parts[i].path);
    return err;
}

void outlet_release(struct outlet *outlet)
{
    for (size_t i = 0; i < outlet->count; i++) {
        trace_sorter_free(outlet->parts[i].lead);
        export_release(&outlet->parts[i].export);
        free(outlet->parts[i].path);
    }
    free(outlet->parts);
    free(outlet->part_of);
    memset(outlet, 0, sizeof(*outlet));
}
