/* SPDX-License-Identifier: MIT */
/*
 * What is in a tape: one pass, memory that does not grow with the ops. --quick reads the
 * headers of the blocks alone and leaves out what they cannot say.
 */
#ifndef CONVERT_INFO_H
#define CONVERT_INFO_H

#include <stdio.h>

#include "convert/conf.h"
#include "convert/workset.h"
#include "traces/hist.h"
#include "traces/trace.h"

#define INFO_HOT_FILES 10u
#define INFO_GAP_NS    INT64_C(1000000000)
#define INFO_DEPTH_MAX (1u << 20) /* ops in flight that are followed */

extern const struct opt info_opts[];
extern const struct opt dump_opts[];

struct info_file {
    uint64_t ops, read_bytes, written_bytes;
    bool has_read, has_written;
    uint64_t read_end, write_end; /* where the last one ended */
};

/* Completion times of the ops in flight, a binary heap. */
struct info_flight {
    int64_t *ends_ns;
    uint32_t count, capacity, max;
    int64_t at_ns;       /* up to which depth was accounted */
    double depth_ns;     /* depth times ns */
    uint64_t unfollowed; /* ops beyond INFO_DEPTH_MAX */
};

struct info {
    bool quick;
    uint64_t ops, op_count[TRACE_OP_COUNT], op_bytes[TRACE_OP_COUNT];
    uint64_t min_offset, max_end;
    bool has_io, has_any;
    int64_t first_io_ns, last_io_ns, first_ns, last_ns;
    /* not with --quick */
    struct hist *read_size, *write_size, *gap; /* bytes, bytes, ns between I/O issues */
    struct hist *latency[3];                   /* ns: read, write, sync; exact ones only */
    uint64_t latency_upper, latency_unknown;   /* of I/O ops */
    uint64_t sequential_reads, sequential_writes;
    uint64_t direct, errors, short_transfers;
    uint64_t long_gaps; /* above INFO_GAP_NS */
    int64_t largest_gap_ns, largest_gap_at_ns, previous_io_ns;
    uint64_t batches, batched_ops, largest_batch, batch_id, batch_ops;
    struct workset read_set, write_set, touched_set;
    struct info_file *files;
    uint32_t files_known;
    struct info_flight flight;
    uint64_t backward_steps;
};

/* Fills in info from the rest of reader. -errno with the diag set. */
int info_scan(struct info *info, struct trace_reader *reader, bool quick, struct diag *diag);
void info_release(struct info *info);
/* Scans and prints, as text or JSON. format is that of the source ("tape", "msr"). */
int info_tape(struct trace_reader *reader, const struct convert_conf *conf, const char *format,
              FILE *out, struct diag *diag);

void info_print(const struct info *info, struct trace_reader *reader, const char *format,
                FILE *out);
int info_print_json(const struct info *info, struct trace_reader *reader, const char *format,
                    FILE *out);

/* For both: sums and the files with the most bytes moved, most first; the count found. */
uint64_t info_duration_ns(const struct info *info);
unsigned int info_hot_files(const struct info *info, uint32_t hot[INFO_HOT_FILES]);

#endif
