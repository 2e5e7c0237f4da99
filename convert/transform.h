/* SPDX-License-Identifier: MIT */
/*
 * What is changed of the ops that are kept, in the order of time: gaps clamped, speed, other
 * names for files. convert/fit.h moves offsets. One thread.
 */
#ifndef CONVERT_TRANSFORM_H
#define CONVERT_TRANSFORM_H

#include <stdbool.h>
#include <stdint.h>

#include "convert/fit.h"
#include "convert/catalog.h"
#include "traces/opts.h"

enum transform_split {
    SPLIT_NONE,
    SPLIT_FILE,
    SPLIT_STREAM,
    SPLIT_TIME
};
enum transform_align {
    ALIGN_WALL,
    ALIGN_START
};

struct transform_conf {
    double speed;          /* times are divided by it */
    uint64_t clamp_gap_ns; /* a longer time between two issues becomes this; 0 = off */
    struct opt_list maps;  /* "A=B": the file A, or all files below the folder A, are named B */
    struct opt_list shifts; /* "N:TIME": input N (from 1) is TIME later; -TIME is earlier */
    int align;              /* enum transform_align: how several inputs meet */
    int split;              /* enum transform_split */
    uint64_t split_ns;      /* SPLIT_TIME */
    struct fit_conf fit;
};

struct transform_times {
    const struct transform_conf *conf;
    bool begun;
    int64_t last_ns;
    int64_t removed_ns; /* by clamping, so far */
    uint64_t clamped;   /* gaps */
};

void transform_times_init(struct transform_times *times, const struct transform_conf *conf);
/* The new issue time of the next op in the order of time. */
int64_t transform_time(struct transform_times *times, int64_t issue_ns);
/* ns after base, at the conf's speed. Rounded once, from the absolute distance. */
int64_t transform_speed(const struct transform_conf *conf, int64_t since_base_ns);

/* Renames the table's files by the --map rules, the longest matching A first; *ret_renamed
 * counts. -EEXIST (diag set) when two files would get one name. */
int transform_rename(const struct transform_conf *conf, struct catalog *tables,
                     uint64_t *ret_renamed, struct diag *diag);
/* Shift of input number index (from 0) by --shift; 0 when there is none. */
int64_t transform_shift_ns(const struct transform_conf *conf, size_t index);

int transform_parse_split(const struct opt *opt, void *conf, const char *text,
                          struct diag *diag);
/* The shapes of maps and shifts. -EINVAL with the diag set. */
int transform_conf_check(const struct transform_conf *conf, struct diag *diag);

#endif
