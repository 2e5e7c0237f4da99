/* SPDX-License-Identifier: MIT */
/*
 * One conversion from start to end:
 *
 *     importer -> early filters -> sorter -> late filters -> times -> offsets -> exporter(s)
 *
 * Memory is bounded by the sorter's, whatever the number of ops. One thread.
 */
#ifndef CONVERT_PIPELINE_H
#define CONVERT_PIPELINE_H

#include "convert/conf.h"
#include "convert/export.h"
#include "convert/filter.h"
#include "convert/import.h"
#include "convert/operands.h"
#include "convert/outlet.h"
#include "traces/sort.h"

/* What came of it, for the report. Valid until pipeline_release. */
struct pipeline {
    const struct convert_conf *conf;
    struct diag *diag;
    struct import import;
    struct filter filter;
    struct fit fit;
    struct transform_times times;
    const struct importer *importer;
    const struct exporter *exporter;
    void *import_conf, *export_conf;
    char *import_text, *export_text; /* what the confs' strings point into */
    struct trace_sorter *sorter;
    struct outlet outlet;
    /* figures */
    size_t input_count;
    uint64_t out_ops;
    uint64_t out_count[TRACE_OP_COUNT], out_bytes[TRACE_OP_COUNT];
    int64_t
        first_io_ns; /* lowest issue of an I/O op on the source's clock, before any change */
    bool has_io;
    /* of what is written: on the clock after gaps were clamped, before --speed */
    bool out_has_io;
    int64_t first_out_io_ns, last_io_ns, last_out_ns, largest_gap_ns, largest_gap_at_ns;
    uint64_t backward_steps, largest_backward_ns;
    uint64_t min_offset, max_end;
    uint64_t renamed;
};

/* Sets everything up: formats chosen, options of formats parsed. operands outlive the run. */
int pipeline_init(struct pipeline *pipeline, const struct convert_conf *conf,
                  struct operands *operands, struct diag *diag);
/* Converts into conf->output, or into sink when it is not NULL (it stays the caller's when the
 * run fails early). On failure no output is left. */
int pipeline_run(struct pipeline *pipeline, struct operands *operands, struct trace_sink *sink);
void pipeline_release(struct pipeline *pipeline);

/* "NAME" or "NAME:opts": the length of NAME; *ret_opts the rest or NULL. */
size_t pipeline_format_name(const char *text, const char **ret_opts);

#endif
