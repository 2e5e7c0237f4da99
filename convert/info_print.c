/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "convert/info.h"
#include "traces/plain.h"
#include "traces/units.h"

/* Longer text is cut; the JSON has it whole. */
#define INFO_TEXT_MAX 1000
#define META_TEXT_MAX 400

static const char *const latency_names[] = {"read", "write", "sync"};

/* ---- text ----------------------------------------------------------------------------- */

static void print_ops(const struct info *info, FILE *out)
{
    double seconds = (double)info_duration_ns(info) / 1e9;
    char text[UNITS_TEXT];

    for (unsigned int kind = 0; kind < TRACE_OP_COUNT; kind++) {
        if (!info->op_count[kind])
            continue;
        fprintf(out, "  %-12s %12" PRIu64 "  %5.1f%%", trace_op_name(kind),
                info->op_count[kind], 100.0 * (double)info->op_count[kind] / (double)info->ops);
        if (info->op_bytes[kind])
            fprintf(out, "  %10s", units_size(info->op_bytes[kind], text));
        if (info->op_bytes[kind] && seconds > 0)
            fprintf(out, "  %s/s",
                    units_size((uint64_t)((double)info->op_bytes[kind] / seconds), text));
        fputc('\n', out);
    }
}

static void print_quantiles(FILE *out, const char *label, const struct hist *hist, bool bytes)
{
    static const double quantiles[] = {0.5, 0.9, 0.99, 0.999};
    static const char *const names[] = {"p50", "p90", "p99", "p99.9"};
    char text[UNITS_TEXT];

    if (!hist->count)
        return;
    fprintf(out, "  %-20s mean %s", label,
            bytes ? units_size((uint64_t)(hist_mean(hist) + 0.5), text)
                  : units_time((uint64_t)(hist_mean(hist) + 0.5), text));
    for (unsigned int i = 0; i < 4; i++) {
        uint64_t value = hist_quantile(hist, quantiles[i]);

        fprintf(out, "  %s %s", names[i],
                bytes ? units_size(value, text) : units_time(value, text));
    }
    fprintf(out, "  max %s\n",
            bytes ? units_size(hist->max, text) : units_time(hist->max, text));
}

static void print_shape(const struct info *info, FILE *out)
{
    uint64_t reads = info->op_count[TRACE_READ], writes = info->op_count[TRACE_WRITE];
    char text[UNITS_TEXT], other[UNITS_TEXT];

    print_quantiles(out, "read size", info->read_size, true);
    print_quantiles(out, "write size", info->write_size, true);
    if (reads)
        fprintf(out, "  %-20s %.1f%% of reads begin where the file's last read ended\n",
                "sequential", 100.0 * (double)info->sequential_reads / (double)reads);
    if (writes)
        fprintf(out, "  %-20s %.1f%% of writes begin where the file's last write ended\n",
                reads ? "" : "sequential",
                100.0 * (double)info->sequential_writes / (double)writes);
    if (reads + writes)
        fprintf(out, "  %-20s read %s, written %s, touched %s%s\n", "working set (4 KiB)",
                units_size(workset_bytes(&info->read_set), text),
                units_size(workset_bytes(&info->write_set), other),
                units_size(workset_bytes(&info->touched_set), (char[UNITS_TEXT]){0}),
                workset_is_exact(&info->touched_set) ? "" : " (estimated, about 1%)");
    if (reads + writes)
        fprintf(out, "  %-20s %.1f%% direct\n", "mode",
                100.0 * (double)info->direct / (double)(reads + writes));
    if (info->batches)
        fprintf(out, "  %-20s %" PRIu64 " calls of %.1f ops, largest %" PRIu64 "\n", "batches",
                info->batches, (double)info->batched_ops / (double)info->batches,
                info->largest_batch);
}

static void print_times(const struct info *info, FILE *out)
{
    double seconds = (double)info_duration_ns(info);
    char text[UNITS_TEXT], label[32];

    print_quantiles(out, "between issues", info->gap, false);
    if (info->largest_gap_ns)
        fprintf(out, "  %-20s %s, from %.3f s; %" PRIu64 " gaps above 1 s\n", "largest gap",
                units_time((uint64_t)info->largest_gap_ns, text),
                (double)info->largest_gap_at_ns / 1e9, info->long_gaps);
    for (unsigned int i = 0; i < 3; i++) {
        snprintf(label, sizeof(label), "%s latency", latency_names[i]);
        print_quantiles(out, label, info->latency[i], false);
    }
    if (info->latency_upper)
        fprintf(out, "  %-20s %" PRIu64 " ops: an upper bound only, left out above\n",
                "latency", info->latency_upper);
    if (info->flight.max)
        fprintf(out, "  %-20s mean %.2f, most %u%s\n", "in flight",
                seconds > 0 ? info->flight.depth_ns / seconds : 0.0, info->flight.max,
                info->latency_unknown ? " (of the ops whose latency is known)" : "");
    if (info->errors || info->short_transfers)
        fprintf(out, "  %-20s %" PRIu64 " failed, %" PRIu64 " moved less than was asked\n",
                "results", info->errors, info->short_transfers);
}

/* Text of the tape: up to most bytes, nothing that steers a terminal. */
static void print_plain(const char *text, size_t most, FILE *out)
{
    char copy[1024];

    snprintf(copy, most < sizeof(copy) ? most + 1 : sizeof(copy), "%s", text);
    plain_clean(copy);
    fputs(copy, out);
}

static void print_hot(const struct info *info, const struct trace_reader *reader, FILE *out)
{
    uint32_t hot[INFO_HOT_FILES];
    unsigned int count = info_hot_files(info, hot);
    char read[UNITS_TEXT], written[UNITS_TEXT];

    for (unsigned int i = 0; i < count; i++) {
        const struct trace_file *file = trace_reader_file(reader, hot[i]);
        const struct info_file *totals = &info->files[hot[i]];

        fprintf(out, "  %-20s ", i ? "" : "hot files");
        print_plain(file ? file->path : "?", INFO_TEXT_MAX, out);
        fprintf(out, ": %" PRIu64 " ops, read %s, written %s\n", totals->ops,
                units_size(totals->read_bytes, read), units_size(totals->written_bytes, written));
    }
}

static void print_damage(struct trace_reader *reader, FILE *out)
{
    struct trace_damage damage;
    struct trace_sample sample;

    trace_reader_damage(reader, &damage);
    if (trace_reader_lost(reader))
        fprintf(out, "  %-20s %" PRIu64 " events, says the recorder\n", "lost",
                trace_reader_lost(reader));
    if (trace_reader_sample(reader, &sample))
        fprintf(out,
                "  %-20s one thread in %" PRIu64 " was recorded; %" PRIu64
                " ops of the others were passed over\n",
                "sample", sample.one_in, sample.passed_ops);
    if (damage.blocks)
        fprintf(out,
                "  %-20s %" PRIu64 " blocks, %" PRIu64 " ops with them; first at byte %" PRIu64
                "\n",
                "damaged", damage.blocks, damage.ops, damage.first_offset);
    if (damage.truncated)
        fprintf(out,
                "  %-20s the tape has no end block: it was cut, or its writer was killed\n",
                "truncated");
}

static void print_meta(const struct trace_reader *reader, FILE *out)
{
    const char *key, *value;

    for (size_t i = 0; (key = trace_reader_meta_at(reader, i, &value)); i++) {
        char name[64];

        snprintf(name, sizeof(name), "%s", key);
        plain_clean(name);
        fprintf(out, "  %-20s ", name);
        print_plain(value, META_TEXT_MAX, out);
        fputc('\n', out);
    }
}

void info_print(const struct info *info, struct trace_reader *reader, const char *format,
                FILE *out)
{
    char duration[UNITS_TEXT], rate[UNITS_TEXT];
    uint64_t ns = info_duration_ns(info);

    fprintf(out, "%s: %s%s\n", trace_reader_name(reader), format,
            strcmp(format, "tape")           ? ", seen as a tape"
            : trace_reader_is_result(reader) ? ", result of a replay"
            : trace_reader_is_raw(reader)    ? ", raw"
                                             : ", normalised");
    fprintf(out, "  %" PRIu64 " ops in %s", info->ops, units_time(ns, duration));
    if (ns)
        fprintf(out, ", %s ops/s", units_count((double)info->ops * 1e9 / (double)ns, rate));
    fprintf(out, ", %u files, %u streams\n", trace_reader_file_count(reader),
            trace_reader_stream_count(reader));
    print_ops(info, out);
    if (info->max_end)
        fprintf(out, "  %-20s %" PRIu64 " .. %" PRIu64 "\n", "bytes from", info->min_offset,
                info->max_end);
    if (!info->quick) {
        print_shape(info, out);
        print_times(info, out);
        print_hot(info, reader, out);
    }
    print_damage(reader, out);
    print_meta(reader, out);
}

/* ---- JSON ----------------------------------------------------------------------------- */

static json_t *whole(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *hist_json(const struct hist *hist)
{
    json_t *object = json_object();

    json_object_set_new(object, "count", whole(hist->count));
    json_object_set_new(object, "mean", json_real(hist_mean(hist)));
    json_object_set_new(object, "min", whole(hist->count ? hist->min : 0));
    json_object_set_new(object, "p50", whole(hist_quantile(hist, 0.5)));
    json_object_set_new(object, "p90", whole(hist_quantile(hist, 0.9)));
    json_object_set_new(object, "p99", whole(hist_quantile(hist, 0.99)));
    json_object_set_new(object, "p99_9", whole(hist_quantile(hist, 0.999)));
    json_object_set_new(object, "max", whole(hist->max));
    return object;
}

static json_t *ops_json(const struct info *info)
{
    json_t *by_op = json_object();

    for (unsigned int kind = 0; kind < TRACE_OP_COUNT; kind++) {
        json_t *object;

        /* Those that most readers ask for are there even when they are 0. */
        if (!info->op_count[kind] && kind > TRACE_FLUSH)
            continue;
        object = json_object();
        json_object_set_new(object, "count", whole(info->op_count[kind]));
        json_object_set_new(object, "bytes", whole(info->op_bytes[kind]));
        json_object_set_new(by_op, trace_op_name(kind), object);
    }
    return by_op;
}

static json_t *text_json(const char *text)
{
    json_t *string = json_string(text);

    /* Paths are bytes: what is not UTF-8 is shown as Latin-1. */
    if (!string) {
        size_t length = strlen(text), used = 0;
        char *wide = malloc(length * 2 + 1);

        for (size_t i = 0; wide && i < length; i++) {
            unsigned char c = (unsigned char)text[i];

            if (c < 0x80) {
                wide[used++] = (char)c;
            } else {
                wide[used++] = (char)(0xc0 | c >> 6);
                wide[used++] = (char)(0x80 | (c & 0x3f));
            }
        }
        string = wide ? json_stringn(wide, used) : json_null();
        free(wide);
    }
    return string;
}

static json_t *hot_json(const struct info *info, const struct trace_reader *reader)
{
    uint32_t hot[INFO_HOT_FILES];
    unsigned int count = info_hot_files(info, hot);
    json_t *array = json_array();

    for (unsigned int i = 0; i < count; i++) {
        const struct trace_file *file = trace_reader_file(reader, hot[i]);
        json_t *object = json_object();

        json_object_set_new(object, "path", text_json(file ? file->path : "?"));
        json_object_set_new(object, "ops", whole(info->files[hot[i]].ops));
        json_object_set_new(object, "read_bytes", whole(info->files[hot[i]].read_bytes));
        json_object_set_new(object, "written_bytes", whole(info->files[hot[i]].written_bytes));
        json_array_append_new(array, object);
    }
    return array;
}

static void add_shape(json_t *root, const struct info *info, const struct trace_reader *reader)
{
    double ns = (double)info_duration_ns(info);
    json_t *latency = json_object(), *set = json_object(), *depth = json_object();

    for (unsigned int i = 0; i < 3; i++)
        json_object_set_new(latency, latency_names[i], hist_json(info->latency[i]));
    json_object_set_new(set, "read", whole(workset_bytes(&info->read_set)));
    json_object_set_new(set, "write", whole(workset_bytes(&info->write_set)));
    json_object_set_new(set, "touched", whole(workset_bytes(&info->touched_set)));
    json_object_set_new(set, "exact", json_boolean(workset_is_exact(&info->touched_set)));
    json_object_set_new(depth, "mean", json_real(ns > 0 ? info->flight.depth_ns / ns : 0));
    json_object_set_new(depth, "max", whole(info->flight.max));
    json_object_set_new(root, "read_size_bytes", hist_json(info->read_size));
    json_object_set_new(root, "write_size_bytes", hist_json(info->write_size));
    json_object_set_new(root, "sequential_reads", whole(info->sequential_reads));
    json_object_set_new(root, "sequential_writes", whole(info->sequential_writes));
    json_object_set_new(root, "direct", whole(info->direct));
    json_object_set_new(root, "errors", whole(info->errors));
    json_object_set_new(root, "short_transfers", whole(info->short_transfers));
    json_object_set_new(root, "working_set_bytes", set);
    json_object_set_new(root, "depth", depth);
    json_object_set_new(root, "latency_ns", latency);
    json_object_set_new(root, "latency_unknown", whole(info->latency_unknown));
    json_object_set_new(root, "latency_upper", whole(info->latency_upper));
    json_object_set_new(root, "inter_arrival_ns", hist_json(info->gap));
    json_object_set_new(root, "largest_gap_ns", json_integer(info->largest_gap_ns));
    json_object_set_new(root, "largest_gap_at_ns", json_integer(info->largest_gap_at_ns));
    json_object_set_new(root, "gaps_above_1s", whole(info->long_gaps));
    json_object_set_new(root, "backward_steps", whole(info->backward_steps));
    json_object_set_new(root, "batches", whole(info->batches));
    json_object_set_new(root, "batched_ops", whole(info->batched_ops));
    json_object_set_new(root, "largest_batch", whole(info->largest_batch));
    json_object_set_new(root, "hot_files", hot_json(info, reader));
}

static void add_health(json_t *root, struct trace_reader *reader)
{
    json_t *meta = json_object(), *unknown = json_array(), *damaged = json_object();
    const char *key, *value;
    struct trace_damage damage;

    trace_reader_damage(reader, &damage);
    json_object_set_new(root, "lost", whole(trace_reader_lost(reader)));
    json_object_set_new(root, "truncated", json_boolean(damage.truncated));
    json_object_set_new(damaged, "blocks", whole(damage.blocks));
    json_object_set_new(damaged, "ops", whole(damage.ops));
    json_object_set_new(damaged, "first_offset",
                        damage.blocks ? whole(damage.first_offset) : json_null());
    json_object_set_new(root, "damage", damaged);
    for (size_t i = 0; (key = trace_reader_meta_at(reader, i, &value)); i++)
        json_object_set_new(meta, key, text_json(value));
    value = trace_reader_meta(reader, TRACE_META_CANNOT_TELL);
    for (const char *at = value ? value : ""; *at;) {
        size_t length = strcspn(at, ",");

        json_array_append_new(unknown, json_stringn(at, length));
        at += length + (at[length] == ',');
    }
    json_object_set_new(root, "cannot_tell", unknown);
    json_object_set_new(root, "meta", meta);
}

int info_print_json(const struct info *info, struct trace_reader *reader, const char *format,
                    FILE *out)
{
    json_t *root = json_object();
    int err = 0;

    json_object_set_new(root, "name", text_json(trace_reader_name(reader)));
    json_object_set_new(root, "format", json_string(format));
    json_object_set_new(root, "ops", whole(info->ops));
    json_object_set_new(root, "by_op", ops_json(info));
    json_object_set_new(root, "duration_ns", whole(info_duration_ns(info)));
    json_object_set_new(root, "min_offset",
                        info->max_end ? whole(info->min_offset) : json_null());
    json_object_set_new(root, "max_end", info->max_end ? whole(info->max_end) : json_null());
    json_object_set_new(root, "files", whole(trace_reader_file_count(reader)));
    json_object_set_new(root, "streams", whole(trace_reader_stream_count(reader)));
    json_object_set_new(root, "normalised", json_boolean(!trace_reader_is_raw(reader)));
    json_object_set_new(root, "result", json_boolean(trace_reader_is_result(reader)));
    if (!info->quick)
        add_shape(root, info, reader);
    add_health(root, reader);
    if (json_dumpf(root, out, JSON_INDENT(2)) < 0 || fputc('\n', out) == EOF)
        err = -EIO;
    json_decref(root);
    return err;
}
