/* SPDX-License-Identifier: MIT */
#include "convert/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/anonymise.h"
#include "convert/sniff.h"

/* ---- before sorting ------------------------------------------------------------------- */

static int early_ops(void *context, const struct trace_op *ops, size_t count)
{
    struct pipeline *pipeline = context;
    struct trace_op kept[IMPORT_BATCH];
    bool all = !pipeline->filter.early && pipeline->conf->transform.fit.mode == FIT_NONE;
    size_t kept_count = 0;
    int err = 0;

    for (size_t i = 0; i < count && err >= 0; i++) {
        const struct trace_op *op = &ops[i];

        if (trace_op_is_io(op->kind) &&
            (!pipeline->has_io || op->issue_ns < pipeline->first_io_ns)) {
            pipeline->has_io = true;
            pipeline->first_io_ns = op->issue_ns;
        }
        if (all)
            continue;
        err = filter_early(&pipeline->filter, op);
        if (err <= 0)
            continue;
        err = fit_observe(&pipeline->fit, op);
        kept[kept_count++] = *op;
    }
    if (all)
        err = trace_sorter_add(pipeline->sorter, ops, count);
    else if (err >= 0 && kept_count)
        err = trace_sorter_add(pipeline->sorter, kept, kept_count);
    return err < 0 ? diag_errno(pipeline->diag, err, "sorting") : 0;
}

/* ---- after sorting -------------------------------------------------------------------- */

static void account_times(struct pipeline *pipeline, const struct trace_op *op)
{
    if (pipeline->out_ops++ &&
        op->issue_ns - pipeline->last_out_ns > pipeline->largest_gap_ns) {
        pipeline->largest_gap_ns = op->issue_ns - pipeline->last_out_ns;
        pipeline->largest_gap_at_ns = pipeline->last_out_ns;
    }
    pipeline->last_out_ns = op->issue_ns;
    if (!trace_op_is_io(op->kind))
        return;
    if (!pipeline->out_has_io)
        pipeline->first_out_io_ns = op->issue_ns;
    pipeline->out_has_io = true;
    pipeline->last_io_ns = op->issue_ns;
}

static void account(struct pipeline *pipeline, const struct trace_op *op)
{
    struct trace_file *file = catalog_file_at(&pipeline->import.tables, op->file);
    uint64_t end;

    account_times(pipeline, op);
    pipeline->out_count[op->kind]++;
    if (trace_op_is_io(op->kind))
        pipeline->out_bytes[op->kind] += trace_op_bytes(op);
    if (!trace_op_has_range(op->kind) || op->offset == TRACE_UNKNOWN_U64 || !op->length)
        return;
    end = op->offset + op->length;
    if (file && (file->max_end == TRACE_UNKNOWN_U64 || end > file->max_end))
        file->max_end = end;
    if (op->offset < pipeline->min_offset)
        pipeline->min_offset = op->offset;
    if (end > pipeline->max_end)
        pipeline->max_end = end;
}

/* Ops on their way out, all after the same clamped gaps. */
struct late_batch {
    struct trace_op ops[IMPORT_BATCH];
    size_t count;
    int64_t removed_ns;
};

static int leave(struct pipeline *pipeline, struct late_batch *batch)
{
    size_t count = batch->count;

    batch->count = 0;
    for (size_t i = 0; i < count; i++)
        account(pipeline, &batch->ops[i]);
    return outlet_ops(&pipeline->outlet, batch->ops, count, batch->removed_ns);
}

/* One sorted op; puts it into batch when it is to leave. 2: nothing after it is kept. */
static int late_op(struct pipeline *pipeline, const struct trace_op *source,
                   struct late_batch *batch)
{
    struct trace_op op = *source;
    int verdict, err = 0;

    if (!pipeline->has_io) { /* no I/O op at all: times count from the first op */
        pipeline->has_io = true;
        pipeline->first_io_ns = source->issue_ns;
    }
    verdict = filter_late(&pipeline->filter, source->issue_ns - pipeline->first_io_ns);
    if (verdict != 1)
        return verdict;
    op.issue_ns = transform_time(&pipeline->times, source->issue_ns);
    if (op.due_ns != TRACE_UNKNOWN_I64)
        op.due_ns += op.issue_ns - source->issue_ns;
    if (!fit_apply(&pipeline->fit, &op))
        return 0;
    if (batch->count == IMPORT_BATCH || batch->removed_ns != pipeline->times.removed_ns)
        err = leave(pipeline, batch);
    batch->removed_ns = pipeline->times.removed_ns;
    batch->ops[batch->count++] = op;
    return err;
}

static int write_out(struct pipeline *pipeline)
{
    struct late_batch batch = {.count = 0};
    const struct trace_op *ops;
    size_t count;
    int err = 0, verdict = 0;

    while (verdict != 2 && (err = trace_sorter_next(pipeline->sorter, &ops, &count)) > 0) {
        if (input_interrupted())
            return diag_set(pipeline->diag, -EINTR, "interrupted");
        for (size_t i = 0; i < count && verdict != 2; i++) {
            verdict = late_op(pipeline, &ops[i], &batch);
            if (verdict < 0)
                return verdict;
        }
    }
    return err < 0 && verdict != 2 ? err : leave(pipeline, &batch);
}

/* What every output's metadata hold. */
static int common_meta(struct pipeline *pipeline)
{
    struct import *import = &pipeline->import;
    int err = 0;

    if (!import_meta_value(import, TRACE_META_SOURCE))
        err = import_meta(import, TRACE_META_SOURCE, pipeline->importer->name);
    if (err == 0 && !import_meta_value(import, TRACE_META_TOOL))
        err = import_meta(import, TRACE_META_TOOL, "iotape " IOTAPE_VERSION);
    if (err == 0 && import->cannot_tell[0])
        err = import_meta(import, TRACE_META_CANNOT_TELL, import->cannot_tell);
    return err;
}

/* ---- the whole ------------------------------------------------------------------------ */

size_t pipeline_format_name(const char *text, const char **ret_opts)
{
    size_t length = strcspn(text, ":");

    *ret_opts = text[length] ? text + length + 1 : NULL;
    return length;
}

static int parse_conf(const struct opt *opts, size_t size, const char *text, const char *format,
                      void **ret_conf, char **ret_storage, struct diag *diag)
{
    int err;

    if (!opts && text)
        return diag_set(diag, -EINVAL, "format %s takes no options", format);
    *ret_conf = calloc(1, size ? size : 1);
    if (!*ret_conf)
        return diag_errno(diag, -ENOMEM, "options");
    if (!opts)
        return 0;
    err = opts_defaults(opts, *ret_conf, diag);
    if (err == 0 && text)
        err = opts_parse_text(opts, *ret_conf, text, NULL, ret_storage, diag);
    return err;
}

/* Every input in one format, by --from or by content. */
static int choose_importer(struct pipeline *pipeline, struct operands *operands)
{
    struct input_list *inputs = &operands->inputs;
    const char *opts = NULL;
    int err = 0;

    if (pipeline->conf->from) {
        size_t length = pipeline_format_name(pipeline->conf->from, &opts);

        pipeline->importer = importer_find(pipeline->conf->from, length);
    } else {
        pipeline->importer = operands->importer;
    }
    for (size_t i = 0;
         i < inputs->count && err == 0 && !pipeline->conf->from && !operands->importer; i++) {
        const struct importer *importer;
        const uint8_t *bytes;

        /* A CPU that did nothing leaves an empty file: run_importer knows who may have one. */
        if (i + 1 < inputs->count + (pipeline->importer != NULL) &&
            input_peek(inputs->items[i], &bytes, 1) == 0) {
            input_park(inputs->items[i]);
            continue;
        }
        err = sniff_input(inputs->items[i], &importer, pipeline->diag);
        input_park(inputs->items[i]);
        if (err == 0 && pipeline->importer && importer != pipeline->importer)
            err =
                diag_set(pipeline->diag, -EBADMSG,
                         "%s is %s but %s is %s: convert each to a tape, then merge the tapes",
                         input_name(inputs->items[0]), pipeline->importer->name,
                         input_name(inputs->items[i]), importer->name);
        if (err == 0)
            pipeline->importer = importer;
    }
    if (err < 0)
        return err;
    if (!pipeline->importer)
        return diag_set(pipeline->diag, -EINVAL, "--from: no format '%s' (--list-formats)",
                        pipeline->conf->from);
    if (pipeline->importer->unavailable)
        return diag_set(pipeline->diag, -EOPNOTSUPP, "format %s: %s", pipeline->importer->name,
                        pipeline->importer->unavailable);
    return parse_conf(pipeline->importer->opts, pipeline->importer->conf_size, opts,
                      pipeline->importer->name, &pipeline->import_conf, &pipeline->import_text,
                      pipeline->diag);
}

static bool has_suffix(const char *path, const char *suffixes)
{
    size_t path_length = strlen(path);

    while (suffixes && *suffixes) {
        size_t length = strcspn(suffixes, " ");

        if (length && path_length > length &&
            !strncmp(path + path_length - length, suffixes, length))
            return true;
        suffixes += length + (suffixes[length] == ' ');
    }
    return false;
}

static int choose_exporter(struct pipeline *pipeline)
{
    const struct convert_conf *conf = pipeline->conf;
    const struct exporter *exporter = NULL;
    const char *opts = NULL;

    if (conf->to) {
        size_t length = pipeline_format_name(conf->to, &opts);

        exporter = exporter_find(conf->to, length);
        if (!exporter)
            return diag_set(pipeline->diag, -EINVAL, "--to: no format '%s' (--list-formats)",
                            conf->to);
    }
    for (unsigned int i = 0; !exporter && conf->output && exporter_at(i); i++)
        if (has_suffix(conf->output, exporter_at(i)->suffixes))
            exporter = exporter_at(i);
    if (!exporter)
        exporter = exporter_find("tape", 4);
    pipeline->exporter = exporter;
    if (exporter->unavailable)
        return diag_set(pipeline->diag, -EOPNOTSUPP, "format %s: %s", exporter->name,
                        exporter->unavailable);
    return parse_conf(exporter->opts, exporter->conf_size, opts, exporter->name,
                      &pipeline->export_conf, &pipeline->export_text, pipeline->diag);
}

static const struct trace_file *file_of(const void *context, uint32_t file)
{
    const struct pipeline *pipeline = context;

    return catalog_file_at(&pipeline->import.tables, file);
}

static const struct trace_stream *stream_of(const void *context, uint32_t stream)
{
    const struct pipeline *pipeline = context;

    return catalog_stream_at(&pipeline->import.tables, stream);
}

int pipeline_init(struct pipeline *pipeline, const struct convert_conf *conf,
                  struct operands *operands, struct diag *diag)
{
    struct trace_sorter_conf sorter = {.memory_bytes = conf->memory_bytes,
                                       .temp_dir = conf->temp_dir};
    struct filter_tables tables = {file_of, stream_of, pipeline};
    int err;

    memset(pipeline, 0, sizeof(*pipeline));
    pipeline->conf = conf;
    pipeline->diag = diag;
    pipeline->min_offset = UINT64_MAX;
    pipeline->input_count = operands->inputs.count;
    import_init(&pipeline->import, &conf->import, conf->skip_bad, early_ops, pipeline, diag);
    transform_times_init(&pipeline->times, &conf->transform);
    err = choose_importer(pipeline, operands);
    if (err == 0)
        err = choose_exporter(pipeline);
    if (err == 0)
        err = filter_init(&pipeline->filter, &conf->filter, &tables);
    if (err == 0)
        err = fit_init(&pipeline->fit, &conf->transform.fit);
    if (err == 0)
        err = trace_sorter_new(&pipeline->sorter, &sorter, diag);
    return err < 0 ? diag_errno(diag, err, "starting") : 0;
}

void pipeline_release(struct pipeline *pipeline)
{
    outlet_release(&pipeline->outlet);
    trace_sorter_free(pipeline->sorter);
    filter_release(&pipeline->filter);
    fit_release(&pipeline->fit);
    import_release(&pipeline->import);
    free(pipeline->import_conf);
    free(pipeline->export_conf);
    free(pipeline->import_text);
    free(pipeline->export_text);
}

static int run_importer(struct pipeline *pipeline, struct operands *operands)
{
    struct input_list *inputs = &operands->inputs;
    const struct importer *importer = pipeline->importer;
    bool together = importer->flags & (IMPORTER_JOINS | IMPORTER_DIRECTORY);
    bool start = pipeline->conf->transform.align == ALIGN_START;
    int err = 0;

    for (size_t i = 0; i < inputs->count && err == 0; i++) {
        const uint8_t *bytes;
        int64_t got;

        /* The files of a per-CPU set may be empty, a single one may not. */
        got = together && inputs->count > 1 ? 1 : input_peek(inputs->items[i], &bytes, 1);
        if (got < 0)
            return (int)got;
        if (got == 0)
            return diag_set(pipeline->diag, -EBADMSG, "%s: is empty",
                            input_name(inputs->items[i]));
        import_begin_run(&pipeline->import, transform_shift_ns(&pipeline->conf->transform, i),
                         start);
        err = importer->run(&inputs->items[i], together ? inputs->count : 1, &pipeline->import,
                            pipeline->import_conf);
        if (err > 0)
            err = 0;
        if (together)
            break;
        input_close(inputs->items[i]);
    }
    return err < 0 ? diag_errno(pipeline->diag, err, "reading")
                   : import_flush(&pipeline->import);
}

/* Nothing was found: that is an error unless the source is a tape, which may be empty. */
static int check_found(struct pipeline *pipeline, const struct operands *operands)
{
    const struct import *import = &pipeline->import;

    if (import->ops || !strcmp(pipeline->importer->name, "tape"))
        return 0;
    return diag_set(pipeline->diag, -ENODATA, "%s: read as %s, there is no operation in it%s%s",
                    input_name(operands->inputs.items[0]), pipeline->importer->name,
                    import->skipped.count ? "; skipped: " : "",
                    import->skipped.count ? import->skipped.items[0].kind : "");
}

static int rename_files(struct pipeline *pipeline)
{
    int err = transform_rename(&pipeline->conf->transform, &pipeline->import.tables,
                               &pipeline->renamed, pipeline->diag);

    if (err == 0 && pipeline->conf->strip)
        err = strip_identity(&pipeline->import);
    if (err == 0 && pipeline->conf->anonymise)
        err = anonymise_tables(&pipeline->import);
    return err;
}

int pipeline_run(struct pipeline *pipeline, struct operands *operands, struct trace_sink *sink)
{
    struct outlet_conf outlet = {.import = &pipeline->import,
                                 .exporter = pipeline->exporter,
                                 .exporter_conf = pipeline->export_conf,
                                 .transform = &pipeline->conf->transform,
                                 .path = pipeline->conf->output,
                                 .sink = sink,
                                 .temp_dir = pipeline->conf->temp_dir};
    int err, closed;

    outlet_init(&pipeline->outlet, &outlet);

    err = run_importer(pipeline, operands);
    if (err == 0)
        err = check_found(pipeline, operands);
    if (err == 0)
        err = fit_finish(&pipeline->fit, &pipeline->import.tables, pipeline->diag);
    if (err == 0)
        err = rename_files(pipeline);
    if (err == 0)
        err = common_meta(pipeline);
    import_walls_sort(&pipeline->import);
    if (err == 0)
        err = trace_sorter_finish(pipeline->sorter);
    if (err == 0) {
        trace_sorter_disorder(pipeline->sorter, &pipeline->backward_steps,
                              &pipeline->largest_backward_ns);
        err = write_out(pipeline);
    }
    closed = outlet_close(&pipeline->outlet, err == 0);
    if (err == 0)
        err = closed;
    return err < 0 ? diag_errno(pipeline->diag, err, "converting") : 0;
}
