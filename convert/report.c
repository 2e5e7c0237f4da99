/* SPDX-License-Identifier: MIT */
#include "convert/report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "convert/pipeline.h"
#include "traces/units.h"

/* A gap this long, and this many times the rest of the trace, deserves a word. */
#define GAP_NOTE_NS    INT64_C(3600000000000)
#define GAP_NOTE_TIMES 10

static const struct export *first_export(const struct pipeline *pipeline)
{
    return pipeline->outlet.count ? &pipeline->outlet.parts[0].export : NULL;
}

/* Times are accounted before --speed. */
static int64_t scaled(const struct pipeline *pipeline, int64_t ns)
{
    return transform_speed(&pipeline->conf->transform, ns);
}

static int64_t duration_ns(const struct pipeline *pipeline)
{
    return scaled(pipeline, pipeline->last_io_ns - pipeline->first_out_io_ns);
}

static int64_t gap_ns(const struct pipeline *pipeline)
{
    return scaled(pipeline, pipeline->largest_gap_ns);
}

static int64_t gap_at_ns(const struct pipeline *pipeline)
{
    return scaled(pipeline, pipeline->largest_gap_at_ns - pipeline->first_out_io_ns);
}

static bool gap_is_suspicious(const struct pipeline *pipeline)
{
    int64_t gap = gap_ns(pipeline);

    return gap > GAP_NOTE_NS && gap / GAP_NOTE_TIMES > duration_ns(pipeline) - gap;
}

static void print_kinds(FILE *out, const char *label, const struct kinds *kinds)
{
    for (size_t i = 0; i < kinds->count; i++)
        if (kinds->items[i].count)
            fprintf(out, "  %-12s %" PRIu64 " %s\n", i ? "" : label, kinds->items[i].count,
                    kinds->items[i].kind);
    if (kinds->beyond)
        fprintf(out, "  %-12s %" PRIu64 " of further kinds\n", "", kinds->beyond);
}

static void print_ops(const struct pipeline *pipeline, FILE *out)
{
    char text[UNITS_TEXT];
    bool first = true;

    for (unsigned int kind = 0; kind < TRACE_OP_COUNT; kind++) {
        if (!pipeline->out_count[kind])
            continue;
        fprintf(out, "  %-12s %-11s %12" PRIu64, first ? "ops" : "", trace_op_name(kind),
                pipeline->out_count[kind]);
        if (pipeline->out_bytes[kind])
            fprintf(out, "   %s (%" PRIu64 " bytes)",
                    units_size(pipeline->out_bytes[kind], text), pipeline->out_bytes[kind]);
        fputc('\n', out);
        first = false;
    }
}

static void print_times(const struct pipeline *pipeline, FILE *out)
{
    char text[UNITS_TEXT];

    fprintf(out, "  %-12s %s\n", "duration", units_time((uint64_t)duration_ns(pipeline), text));
    if (pipeline->largest_gap_ns > 0)
        fprintf(out, "  %-12s %s, from %.3f s%s\n", "largest gap",
                units_time((uint64_t)gap_ns(pipeline), text), (double)gap_at_ns(pipeline) / 1e9,
                gap_is_suspicious(pipeline)
                    ? ": most of the duration is this gap; --clamp-gaps T shortens it"
                    : "");
    if (pipeline->backward_steps)
        fprintf(out, "  %-12s %" PRIu64 " times back, by up to %s: sorted\n", "order",
                pipeline->backward_steps, units_time(pipeline->largest_backward_ns, text));
    if (pipeline->times.clamped)
        fprintf(out, "  %-12s %" PRIu64 " gaps shortened, %s taken out\n", "clamped",
                pipeline->times.clamped,
                units_time((uint64_t)pipeline->times.removed_ns, text));
}

static void print_changes(const struct pipeline *pipeline, FILE *out)
{
    uint64_t dropped = pipeline->import.ops - pipeline->out_ops - pipeline->fit.dropped;
    char text[UNITS_TEXT];

    if (dropped)
        fprintf(out, "  %-12s %" PRIu64 " ops left out\n", "filters", dropped);
    if (pipeline->fit.moved || pipeline->fit.dropped)
        fprintf(out,
                "  %-12s %" PRIu64 " ops moved, %" PRIu64 " shortened, %" PRIu64 " left out\n",
                "fit", pipeline->fit.moved, pipeline->fit.shortened, pipeline->fit.dropped);
    if (pipeline->fit.largest_bytes)
        fprintf(out, "  %-12s the largest file takes %s (grains of %s)\n", "packed",
                units_size(pipeline->fit.largest_bytes, text),
                units_size(UINT64_C(1) << pipeline->fit.grain_bits, (char[UNITS_TEXT]){0}));
    if (pipeline->renamed)
        fprintf(out, "  %-12s %" PRIu64 " files\n", "renamed", pipeline->renamed);
}

/* A device that is smaller than what was read or written of it: the unit is wrong. */
static void print_sizes(const struct pipeline *pipeline, FILE *out)
{
    const struct catalog *tables = &pipeline->import.tables;

    for (uint32_t i = 0; i < tables->file_count; i++) {
        const struct trace_file *file = catalog_file_at(tables, i);

        if (file->kind == TRACE_FILE_BLOCK && file->size_bytes != TRACE_UNKNOWN_U64 &&
            file->size_bytes && file->max_end != TRACE_UNKNOWN_U64 &&
            file->max_end > file->size_bytes)
            fprintf(out,
                    "  %-12s %s has %" PRIu64 " bytes, but ops reach byte %" PRIu64
                    ": is --sector-size right?\n",
                    "size", file->path, file->size_bytes, file->max_end);
    }
}

static void print_notes(const struct pipeline *pipeline, const struct operands *operands,
                        FILE *out)
{
    const struct export *export = first_export(pipeline);

    for (size_t i = 0; i < operands->note_count; i++)
        fprintf(out, "  %-12s %s\n", "note", operands->notes[i]);
    for (size_t i = 0; i < pipeline->import.note_count; i++)
        fprintf(out, "  %-12s %s\n", "note", pipeline->import.notes[i]);
    for (size_t i = 0; export && i < export->note_count; i++)
        fprintf(out, "  %-12s %s\n", "note", export->notes[i]);
    if (pipeline->import.cannot_tell[0])
        fprintf(out, "  %-12s %s\n", "cannot tell", pipeline->import.cannot_tell);
}

static uint64_t output_bytes(const struct pipeline *pipeline)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < pipeline->outlet.count; i++)
        bytes += pipeline->outlet.parts[i].export.bytes;
    return bytes;
}

static void print_outputs(const struct pipeline *pipeline, FILE *out)
{
    fprintf(out, "  %-12s %" PRIu64 " bytes", "output", output_bytes(pipeline));
    if (pipeline->outlet.count > 1)
        fprintf(out, " in %zu files, %s to %s", pipeline->outlet.count,
                pipeline->outlet.parts[0].path,
                pipeline->outlet.parts[pipeline->outlet.count - 1].path);
    fputc('\n', out);
}

void report_print(const struct pipeline *pipeline, const struct operands *operands, FILE *out)
{
    const struct import *import = &pipeline->import;
    const struct export *export = first_export(pipeline);
    const char *event = import_meta_value(import, TRACE_META_EVENT);
    const char *unit = import_meta_value(import, TRACE_META_TIME_UNIT_NS);

    fprintf(out, "%s (%s) -> %s (%s)\n",
            operands->inputs.count ? input_name(operands->inputs.items[0]) : "",
            pipeline->importer->name, pipeline->conf->output ? pipeline->conf->output : "",
            pipeline->exporter->name);
    if (operands->inputs.count > 1)
        fprintf(out, "  %-12s %zu files\n", "inputs", operands->inputs.count);
    fprintf(out, "  %-12s %" PRIu64 " ops found, %" PRIu64 " written", "records", import->ops,
            pipeline->out_ops);
    if (kinds_total(&import->skipped))
        fprintf(out, ", %" PRIu64 " other records skipped", kinds_total(&import->skipped));
    fputc('\n', out);
    print_ops(pipeline, out);
    if (pipeline->max_end)
        fprintf(out, "  %-12s %" PRIu64 " .. %" PRIu64 "\n", "bytes from", pipeline->min_offset,
                pipeline->max_end);
    print_times(pipeline, out);
    if (event)
        fprintf(out, "  %-12s %s stands for the I/O\n", "event", event);
    if (unit)
        fprintf(out, "  %-12s the source's stamps are %s ns apart at best\n", "time unit",
                unit);
    fprintf(out, "  %-12s %u files, %u streams\n", "tables", import->tables.file_count,
            import->tables.stream_count);
    print_changes(pipeline, out);
    print_kinds(out, "skipped", &import->skipped);
    print_kinds(out, "lost", &import->lost);
    if (import->bad)
        fprintf(out, "  %-12s %" PRIu64 " could not be parsed, first: %s\n", "bad", import->bad,
                import->first_bad);
    if (export) {
        print_kinds(out, "not written", &export->skipped);
        print_kinds(out, "not kept", &export->lost_fields);
        print_outputs(pipeline, out);
    }
    print_sizes(pipeline, out);
    print_notes(pipeline, operands, out);
}

/* ---- JSON ----------------------------------------------------------------------------- */

static json_t *kinds_json(const struct kinds *kinds)
{
    json_t *object = json_object();

    for (size_t i = 0; i < kinds->count; i++)
        json_object_set_new(object, kinds->items[i].kind,
                            json_integer((json_int_t)kinds->items[i].count));
    if (kinds->beyond)
        json_object_set_new(object, "further kinds", json_integer((json_int_t)kinds->beyond));
    return object;
}

static json_t *notes_json(const struct pipeline *pipeline, const struct operands *operands)
{
    const struct export *export = first_export(pipeline);
    json_t *notes = json_array();

    for (size_t i = 0; i < operands->note_count; i++)
        json_array_append_new(notes, json_string(operands->notes[i]));
    for (size_t i = 0; i < pipeline->import.note_count; i++)
        json_array_append_new(notes, json_string(pipeline->import.notes[i]));
    for (size_t i = 0; export && i < export->note_count; i++)
        json_array_append_new(notes, json_string(export->notes[i]));
    return notes;
}

static json_t *ops_json(const struct pipeline *pipeline)
{
    json_t *by_op = json_object();

    for (unsigned int kind = 0; kind < TRACE_OP_COUNT; kind++)
        if (pipeline->out_count[kind])
            json_object_set_new(by_op, trace_op_name(kind),
                                json_pack("{s:I,s:I}", "count",
                                          (json_int_t)pipeline->out_count[kind], "bytes",
                                          (json_int_t)pipeline->out_bytes[kind]));
    return by_op;
}

static json_t *build_json(const struct pipeline *pipeline, const struct operands *operands)
{
    const struct import *import = &pipeline->import;
    const struct export *export = first_export(pipeline);
    static const struct kinds none;
    json_t *root = json_object(), *inputs = json_array();
    const char *event = import_meta_value(import, TRACE_META_EVENT);

    for (size_t i = 0; i < operands->inputs.count; i++)
        json_array_append_new(inputs, json_string(input_name(operands->inputs.items[i])));
    json_object_set_new(root, "inputs", inputs);
    json_object_set_new(root, "from", json_string(pipeline->importer->name));
    json_object_set_new(root, "to", json_string(pipeline->exporter->name));
    json_object_set_new(root, "ops_in", json_integer((json_int_t)import->ops));
    json_object_set_new(root, "ops_out", json_integer((json_int_t)pipeline->out_ops));
    json_object_set_new(root, "by_op", ops_json(pipeline));
    json_object_set_new(root, "duration_ns", json_integer(duration_ns(pipeline)));
    json_object_set_new(root, "largest_gap_ns", json_integer(gap_ns(pipeline)));
    json_object_set_new(root, "largest_gap_at_ns", json_integer(gap_at_ns(pipeline)));
    json_object_set_new(root, "backward_steps",
                        json_integer((json_int_t)pipeline->backward_steps));
    json_object_set_new(root, "largest_backward_ns",
                        json_integer((json_int_t)pipeline->largest_backward_ns));
    json_object_set_new(root, "min_offset",
                        pipeline->max_end ? json_integer((json_int_t)pipeline->min_offset)
                                          : json_null());
    json_object_set_new(root, "max_end",
                        pipeline->max_end ? json_integer((json_int_t)pipeline->max_end)
                                          : json_null());
    json_object_set_new(root, "event", event ? json_string(event) : json_null());
    json_object_set_new(root, "files", json_integer(import->tables.file_count));
    json_object_set_new(root, "streams", json_integer(import->tables.stream_count));
    json_object_set_new(root, "bad", json_integer((json_int_t)import->bad));
    json_object_set_new(root, "skipped", kinds_json(&import->skipped));
    json_object_set_new(root, "lost", kinds_json(&import->lost));
    json_object_set_new(root, "not_written", kinds_json(export ? &export->skipped : &none));
    json_object_set_new(root, "not_kept", kinds_json(export ? &export->lost_fields : &none));
    json_object_set_new(root, "output_bytes", json_integer((json_int_t)output_bytes(pipeline)));
    json_object_set_new(root, "outputs", json_integer((json_int_t)pipeline->outlet.count));
    json_object_set_new(root, "cannot_tell", json_string(import->cannot_tell));
    json_object_set_new(root, "notes", notes_json(pipeline, operands));
    return root;
}

int report_json(const struct pipeline *pipeline, const struct operands *operands,
                const char *path, struct diag *diag)
{
    json_t *root = build_json(pipeline, operands);
    FILE *out = strcmp(path, "-") ? fopen(path, "we") : stdout;
    int err = 0;

    if (!out) {
        err = diag_errno(diag, -errno, "%s", path);
        json_decref(root);
        return err;
    }
    if (json_dumpf(root, out, JSON_INDENT(2)) < 0 || fputc('\n', out) == EOF ||
        fflush(out) == EOF)
        err = diag_errno(diag, -EIO, "%s", path);
    if (out != stdout && fclose(out) == EOF && err == 0)
        err = diag_errno(diag, -errno, "%s", path);
    json_decref(root);
    return err;
}
