/* SPDX-License-Identifier: MIT */
/*
 * Which ops of the source are kept. What can be told of one op alone is asked before sorting
 * (filter_early), what needs the order of time after it (filter_late). One thread.
 */
#ifndef CONVERT_FILTER_H
#define CONVERT_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "traces/opts.h"
#include "traces/trace.h"

enum filter_sample_by {
    SAMPLE_OP,
    SAMPLE_FILE,
    SAMPLE_STREAM,
    SAMPLE_REGION
};

struct filter_conf {
    bool timed, ranged;
    int64_t from_ns, to_ns;        /* of issue, from the first I/O op: from <= t < to */
    uint64_t from_bytes, to_bytes; /* ops that touch [from, to) */
    uint64_t kinds;                /* bit a kind; 0 = all */
    struct opt_list files;         /* globs of paths; any may match */
    struct opt_list streams;       /* PID, PID/TID or a command's glob */
    double sample_pct;             /* 0 or 100 = all */
    int sample_by;                 /* enum filter_sample_by */
    uint64_t sample_seed;
    uint64_t head; /* ops at most; 0 = all */
};

/* Where the tables are: a conversion's, or a tape's. */
struct filter_tables {
    const struct trace_file *(*file)(const void *context, uint32_t file);
    const struct trace_stream *(*stream)(const void *context, uint32_t stream);
    const void *context;
};

struct filter {
    const struct filter_conf *conf;
    struct filter_tables tables;
    bool early;                       /* anything to ask before sorting */
    uint8_t *file_keep, *stream_keep; /* by number: 0 not asked yet, 1 no, 2 yes */
    uint32_t file_known, stream_known;
    uint64_t sample_limit, op_number;
    uint64_t kept, dropped_early, dropped_late;
};

/* conf and the tables' context outlive the filter. */
int filter_init(struct filter *filter, const struct filter_conf *conf,
                const struct filter_tables *tables);
/* 1 keep, 0 drop, -ENOMEM. */
int filter_early(struct filter *filter, const struct trace_op *op);
/* since_first_ns: the op's issue after the first I/O op of the source. 1 keep, 0 drop, 2 drop
 * and nothing later is kept either. */
int filter_late(struct filter *filter, int64_t since_first_ns);
void filter_release(struct filter *filter);

/* Parsers for OPT_CALL rows whose offset is that of the struct filter_conf. */
int filter_parse_time(const struct opt *opt, void *conf, const char *text, struct diag *diag);
int filter_parse_range(const struct opt *opt, void *conf, const char *text, struct diag *diag);
int filter_parse_ops(const struct opt *opt, void *conf, const char *text, struct diag *diag);

/* "A..B", "A..", "..B" as two texts; either may be empty. -EINVAL without "..". */
int filter_split_range(const char *text, char from[64], char to[64]);

#endif
