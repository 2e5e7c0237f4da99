/* SPDX-License-Identifier: MIT */
#include "convert/filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/diag.h"
#include "traces/units.h"

#define REGION_BITS 20 /* --sample-by region: 1 MiB */

int filter_init(struct filter *filter, const struct filter_conf *conf,
                const struct filter_tables *tables)
{
    memset(filter, 0, sizeof(*filter));
    filter->conf = conf;
    filter->tables = *tables;
    filter->sample_limit = UINT64_MAX;
    if (conf->sample_pct > 0 && conf->sample_pct < 100)
        filter->sample_limit = (uint64_t)(conf->sample_pct / 100 * 0x1p64);
    filter->early = conf->kinds || conf->files.count || conf->streams.count || conf->ranged ||
                    filter->sample_limit != UINT64_MAX;
    return 0;
}

void filter_release(struct filter *filter)
{
    free(filter->file_keep);
    free(filter->stream_keep);
    filter->file_keep = filter->stream_keep = NULL;
}

static int grow(uint8_t **verdicts, uint32_t *known, uint32_t index)
{
    uint32_t next = index < 1024 ? 1024 : index + index / 2 + 1;
    uint8_t *grown;

    if (index < *known)
        return 0;
    grown = realloc(*verdicts, next);
    if (!grown)
        return -ENOMEM;
    memset(grown + *known, 0, next - *known);
    *verdicts = grown;
    *known = next;
    return 0;
}

static bool any_glob(const struct opt_list *globs, const char *text)
{
    for (size_t i = 0; i < globs->count; i++)
        if (fnmatch(globs->items[i], text, 0) == 0)
            return true;
    return false;
}

static bool stream_matches(const struct opt_list *wanted, const struct trace_stream *stream)
{
    char pid[16], both[32];

    snprintf(pid, sizeof(pid), "%u", stream->pid);
    snprintf(both, sizeof(both), "%u/%u", stream->pid, stream->tid);
    for (size_t i = 0; i < wanted->count; i++)
        if (!strcmp(wanted->items[i], pid) || !strcmp(wanted->items[i], both) ||
            (*stream->comm && fnmatch(wanted->items[i], stream->comm, 0) == 0))
            return true;
    return false;
}

static const char *path_of(const struct filter *filter, uint32_t file)
{
    return filter->tables.file(filter->tables.context, file)->path;
}

static int keep_file(struct filter *filter, const struct trace_op *op)
{
    int err;

    if (op->file == TRACE_NONE_U32)
        return 0;
    err = grow(&filter->file_keep, &filter->file_known, op->file);
    if (err < 0)
        return err;
    if (!filter->file_keep[op->file])
        filter->file_keep[op->file] =
            any_glob(&filter->conf->files, path_of(filter, op->file)) ? 2 : 1;
    if (filter->file_keep[op->file] == 2)
        return 1;
    /* A rename into the set belongs to it. */
    return op->file2 != TRACE_NONE_U32 &&
           any_glob(&filter->conf->files, path_of(filter, op->file2));
}

static int keep_stream(struct filter *filter, const struct trace_op *op)
{
    int err;

    if (op->stream == TRACE_NONE_U32)
        return 0;
    err = grow(&filter->stream_keep, &filter->stream_known, op->stream);
    if (err < 0)
        return err;
    if (!filter->stream_keep[op->stream])
        filter->stream_keep[op->stream] =
            stream_matches(&filter->conf->streams,
                           filter->tables.stream(filter->tables.context, op->stream))
                ? 2
                : 1;
    return filter->stream_keep[op->stream] == 2;
}

static bool keep_range(const struct filter_conf *conf, const struct trace_op *op)
{
    if (!trace_op_has_range(op->kind) || op->offset == TRACE_UNKNOWN_U64)
        return !trace_op_has_range(op->kind);
    if (op->length == 0)
        return op->offset >= conf->from_bytes && op->offset < conf->to_bytes;
    return op->offset < conf->to_bytes && op->offset + op->length > conf->from_bytes;
}

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

/* What is kept depends on the seed and on what is sampled by, never on what came before. */
static bool keep_sample(struct filter *filter, const struct trace_op *op)
{
    uint64_t what = 0;

    switch (filter->conf->sample_by) {
    case SAMPLE_OP: what = filter->op_number++; break;
    case SAMPLE_FILE: what = op->file; break;
    case SAMPLE_STREAM: what = op->stream; break;
    case SAMPLE_REGION:
        what = op->offset == TRACE_UNKNOWN_U64 ? 0 : op->offset >> REGION_BITS;
        what ^= (uint64_t)op->file << 44;
        break;
    }
    return mix(mix(what + 0x9e3779b97f4a7c15u) ^ filter->conf->sample_seed) <
           filter->sample_limit;
}

int filter_early(struct filter *filter, const struct trace_op *op)
{
    const struct filter_conf *conf = filter->conf;
    int keep = 1;

    if (!filter->early)
        return 1;
    if (conf->kinds && !(conf->kinds >> op->kind & 1))
        keep = 0;
    if (keep == 1 && conf->ranged && !keep_range(conf, op))
        keep = 0;
    if (keep == 1 && conf->files.count)
        keep = keep_file(filter, op);
    if (keep == 1 && conf->streams.count)
        keep = keep_stream(filter, op);
    if (keep == 1 && filter->sample_limit != UINT64_MAX && !keep_sample(filter, op))
        keep = 0;
    if (keep == 0)
        filter->dropped_early++;
    return keep;
}

int filter_late(struct filter *filter, int64_t since_first_ns)
{
    const struct filter_conf *conf = filter->conf;

    if (conf->head && filter->kept == conf->head) {
        filter->dropped_late++;
        return 2;
    }
    if (conf->timed && since_first_ns >= conf->to_ns)
        return 2;
    if (conf->timed && since_first_ns < conf->from_ns) {
        filter->dropped_late++;
        return 0;
    }
    filter->kept++;
    return 1;
}

/* ---- option texts --------------------------------------------------------------------- */

int filter_split_range(const char *text, char from[64], char to[64])
{
    const char *dots = strstr(text, "..");

    if (!dots || dots - text >= 64 || strlen(dots + 2) >= 64)
        return -EINVAL;
    memcpy(from, text, (size_t)(dots - text));
    from[dots - text] = '\0';
    strcpy(to, dots + 2);
    return 0;
}

int filter_parse_time(const struct opt *opt, void *conf, const char *text, struct diag *diag)
{
    struct filter_conf *filter = (struct filter_conf *)((char *)conf + opt->offset);
    uint64_t from_ns = 0, to_ns = INT64_MAX;
    char from[64], to[64];

    if (filter_split_range(text, from, to) < 0 || (*from && units_parse_time(from, &from_ns)) ||
        (*to && units_parse_time(to, &to_ns)) || from_ns >= to_ns || to_ns > INT64_MAX)
        return diag_set(diag, -EINVAL,
                        "--%s: '%s' is not A..B, two times with their units (10s..1m, 5ms..)",
                        opt->name, text);
    filter->timed = true;
    /* Name-space calls before the first I/O op are at negative times: an open start has them.
     */
    filter->from_ns = *from ? (int64_t)from_ns : INT64_MIN;
    filter->to_ns = (int64_t)to_ns;
    return 0;
}

int filter_parse_range(const struct opt *opt, void *conf, const char *text, struct diag *diag)
{
    struct filter_conf *filter = (struct filter_conf *)((char *)conf + opt->offset);
    uint64_t from_bytes = 0, to_bytes = UINT64_MAX;
    char from[64], to[64];

    if (filter_split_range(text, from, to) < 0 ||
        (*from && units_parse_size(from, &from_bytes)) ||
        (*to && units_parse_size(to, &to_bytes)) || from_bytes >= to_bytes)
        return diag_set(diag, -EINVAL, "--%s: '%s' is not A..B, two sizes (0..10g, 1MiB..)",
                        opt->name, text);
    filter->ranged = true;
    filter->from_bytes = from_bytes;
    filter->to_bytes = to_bytes;
    return 0;
}

int filter_parse_ops(const struct opt *opt, void *conf, const char *text, struct diag *diag)
{
    struct filter_conf *filter = (struct filter_conf *)((char *)conf + opt->offset);
    uint64_t kinds = 0;

    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        int kind = trace_op_from_name(at, length);

        if (kind < 0)
            return diag_set(diag, -EINVAL, "--%s: '%.*s' is not an op (read, write, fsync ...)",
                            opt->name, (int)length, at);
        kinds |= UINT64_C(1) << kind;
        at += length + (at[length] == ',');
    }
    if (!kinds)
        return diag_set(diag, -EINVAL, "--%s: names no op", opt->name);
    filter->kinds = kinds;
    return 0;
}
