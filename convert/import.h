/* SPDX-License-Identifier: MIT */
/*
 * One conversion's import side as the core makes it: convert/importer.h is what an importer
 * sees.
 *
 * Ops are checked, counted and handed to the sink in batches; tables, metadata and counts are
 * read from the struct afterwards. One thread.
 */
#ifndef CONVERT_IMPORT_H
#define CONVERT_IMPORT_H

#include "convert/importer.h"
#include "convert/kinds.h"
#include "convert/catalog.h"

#define IMPORT_BATCH     512u
#define IMPORT_NOTES_MAX 64u
#define IMPORT_WALLS_MAX 4096u /* even; beyond it every second reading is forgotten */
/* Times are within 73 years of the source's zero, so that shifted ones may be subtracted. */
#define IMPORT_TIME_MAX (INT64_C(1) << 62)

struct import_pair {
    char *key, *value;
};

struct import_wall {
    int64_t at_ns;
    uint64_t wall_ns;
};

struct import {
    struct diag *diag;
    struct import_options options;
    struct catalog tables;
    struct trace_op batch[IMPORT_BATCH];
    size_t batch_count;
    int (*sink)(void *context, const struct trace_op *ops, size_t count);
    void *sink_context;
    uint64_t skip_bad; /* bad lines still allowed */
    /* the run: one input, or all of a format that joins them */
    unsigned int runs;
    uint64_t run_ops;
    int64_t shift_ns; /* added to every issue time of the run */
    bool align_start; /* the run's first op becomes 0 */
    uint64_t batch_base, batch_next;
    bool wall_known; /* of the first run that had one */
    int64_t wall_ns; /* Unix ns at time 0 of that run */
    struct import_wall *walls; /* readings of the wall clock, as they came */
    size_t wall_count;
    unsigned int wall_stride, wall_skipped;
    /* what happened */
    uint64_t ops, bad;
    uint64_t op_count[TRACE_OP_COUNT], op_bytes[TRACE_OP_COUNT];
    struct kinds skipped, lost;
    char first_bad[256]; /* where and why, when bad > 0 */
    char *notes[IMPORT_NOTES_MAX];
    size_t note_count;
    struct import_pair *meta;
    size_t meta_count;
    char cannot_tell[256]; /* comma list */
};

void import_init(struct import *import, const struct import_options *options, uint64_t skip_bad,
                 int (*sink)(void *context, const struct trace_op *ops, size_t count),
                 void *sink_context, struct diag *diag);
/*
 * Before each call of an importer. Its times are moved by shift_ns; those of a second run also
 * by the difference of the wall clocks, when both are known and align_start is false.
 */
void import_begin_run(struct import *import, int64_t shift_ns, bool align_start);
/* Hands the last batch to the sink. */
int import_flush(struct import *import);
void import_meta_drop(struct import *import, const char *key);
/* By time, once nothing more is imported. */
void import_walls_sort(struct import *import);
const char *import_meta_value(const struct import *import, const char *key); /* or NULL */
void import_release(struct import *import);

#endif
