/* SPDX-License-Identifier: MIT */
/*
 * Where converted ops leave: one output, or the parts that --split makes of it. Each part is
 * normalised for itself: its time 0 is its first I/O op, found here. One thread.
 */
#ifndef CONVERT_OUTLET_H
#define CONVERT_OUTLET_H

#include "convert/export.h"
#include "convert/transform.h"
#include "traces/sort.h"

#define OUTLET_PARTS_MAX 64u   /* by file or stream: open together */
#define OUTLET_TIMES_MAX 9999u /* by time: one after the other */

struct outlet_part {
    struct export export;
    char *path;
    uint32_t key;              /* file or stream number, or the interval */
    bool opened, closed;       /* an output exists; it was put in place */
    int64_t base_ns;           /* what becomes 0, on the clock of the ops given */
    int64_t first_ns;          /* of its first op of any kind */
    size_t next_wall;          /* of the import's readings of the wall clock */
    struct trace_sorter *lead; /* name-space calls before the first I/O op */
};

struct outlet_conf {
    struct import *import;
    const struct exporter *exporter;
    const void *exporter_conf;
    const struct transform_conf *transform;
    const char *path;        /* "-" is standard output */
    struct trace_sink *sink; /* instead of path; taken over; or NULL */
    const char *temp_dir;
};

struct outlet {
    struct outlet_conf conf;
    struct outlet_part *parts;
    size_t count;
    uint32_t *part_of; /* by file or stream number: part + 1 */
    uint32_t known;
    size_t none_part; /* of ops without a file or stream: part + 1 */
    bool base_known;
    int64_t base_ns; /* the first I/O op of all */
};

/* conf is copied; what it points to outlives the outlet. */
void outlet_init(struct outlet *outlet, const struct outlet_conf *conf);
/* Ops in the order of time. Their times are changed in place. removed_ns is how much of the
 * source's time was taken out before them. */
int outlet_ops(struct outlet *outlet, struct trace_op *ops, size_t count, int64_t removed_ns);
/*
 * keep: the rest is written and every part put in place; a conversion without ops leaves an
 * empty output. keep false, or an error: nothing is left. Counts (the first part's: of all)
 * stay readable until outlet_release.
 */
int outlet_close(struct outlet *outlet, bool keep);
void outlet_release(struct outlet *outlet);

#endif
