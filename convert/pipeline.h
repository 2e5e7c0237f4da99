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
    struct trace_sorter *sorter, *lead; /* lead: name-space calls before the first I/O op */
    struct outlet outlet;
    struct trace_sink *given_sink; /* or NULL: the sink of conf->output is opened */
    /* figures */
    size_t input_count;
    uint64_t out_ops;
    uint64_t out_count[TRACE_OP_COUNT], out_bytes[TRACE_OP_COUNT];
    int64_t first_io_ns; /* lowest issue of an I/O op on the source's clock, before any change */
    bool has_io, base_known;
    int64_t base_ns; /* what becomes 0 */
    int64_t base_source_ns; /* the same before gaps were clamped */
    int64_t last_out_ns, last_io_ns, largest_gap_ns, largest_gap_at_ns;
    uint64_t backward_steps, largest_backward_ns;
    uint64_t min_offset, max_end;
    uint64_t renamed;
};

/* Sets everything up: formats chosen, options of formats parsed. operands outlive the run. */
int pipeline_init(struct pipeline *pipeline, const struct convert_conf *conf,
                  struct operands *operands, struct diag *diag);
/* Converts. On failure no output is left. */
int pipeline_run(struct pipeline *pipeline, struct operands *operands);
/* As pipeline_run with one output that is given: a tape into a sink (info, dump). */
int pipeline_run_to(struct pipeline *pipeline, struct operands *operands,
                    struct trace_sink *sink);
void pipeline_release(struct pipeline *pipeline);

/* "NAME" or "NAME:opts": the length of NAME; *ret_opts the rest or NULL. */
size_t pipeline_format_name(const char *text, const char **ret_opts);

#endif
