/* SPDX-License-Identifier: MIT */
/*
 * What a replay counted. Each worker (and each slot thread of a blocking engine) owns one and is
 * its only writer; they are merged when all have ended. Lives in zeroed memory from area_alloc.
 */
#ifndef REPLAY_STATS_H
#define REPLAY_STATS_H

#include <stdatomic.h>
#include <stdint.h>

#include "replay/prepared.h"
#include "traces/hist.h"

/* Kinds that share a service-time distribution. */
enum stats_class { STATS_READ = 0, STATS_WRITE, STATS_SYNC, STATS_OTHER, STATS_CLASS_COUNT };
extern const char *const stats_class_words[STATS_CLASS_COUNT];
enum stats_class stats_class(unsigned int kind);

#define STATS_ERRNOS  136 /* 0 .. 134, and one slot for anything else */
#define STATS_BUCKETS 512

/* One slice of the run. */
struct stats_bucket {
    uint64_t completed, bytes;
    uint64_t depth_ns;   /* integral of the depth over the slice */
    uint64_t service_ns; /* sum */
    uint64_t lag_ns;     /* sum */
    uint64_t lag_max_ns;
    uint64_t issued;
};

/* The run in slices; when it outgrows them neighbours are joined and the width doubles. */
struct stats_timeline {
    uint64_t width_ns;
    struct stats_bucket buckets[STATS_BUCKETS];
};

struct stats {
    uint64_t issued, completed, failed;
    uint64_t kind_ops[TRACE_OP_COUNT];
    uint64_t kind_bytes[TRACE_OP_COUNT]; /* really transferred */
    uint64_t kind_failed[TRACE_OP_COUNT];
    uint64_t errnos[TRACE_OP_COUNT][STATS_ERRNOS];
    uint64_t short_transfers;
    uint64_t unexpected;
    uint64_t verified_blocks, verify_errors;
    uint64_t late, late_by[TRACE_CAUSE_COUNT];
    uint64_t holds;
    uint64_t held_by_order;
    uint64_t skipped[SKIP_REASON_COUNT];
    uint64_t submit_calls, submit_ns;
    uint64_t eagain;
    uint64_t depth_ns; /* integral of ops in flight over time */
    uint32_t depth_max;
    uint32_t batch_max;
    uint64_t first_issue_ns; /* clock; 0 = nothing was issued */
    uint64_t last_completion_ns;
    uint64_t starved, starved_ns;          /* times the decoder's ring was empty */
    uint64_t result_full, result_full_ns;  /* times the result ring was full */
    uint64_t sleeps, slept_ns, spun_ns, overshoot_max_ns, margin_ns;
    uint64_t cpu_user_ns, cpu_sys_ns, voluntary, involuntary;
    uint64_t opens; /* files opened during the run */
    struct hist lag, response, batch;
    struct hist service[STATS_CLASS_COUNT];
    struct stats_timeline timeline;
};

/* stats points to zeroed memory. */
void stats_init(struct stats *stats);
void stats_merge(struct stats *into, const struct stats *from);
void stats_count_error(struct stats *stats, unsigned int kind, int64_t result);
/* The CPU time and context switches of the calling thread so far, subtracted (sign -1) when it
 * starts and added (sign 1) when it ends. */
void stats_thread_usage(struct stats *stats, int sign);
/* The bucket for a moment at_ns after the run's start. */
struct stats_bucket *stats_bucket(struct stats_timeline *timeline, uint64_t at_ns);
/* Adds ns that `depth` operations were in flight, from from_ns on. */
void stats_depth(struct stats *stats, uint64_t start_ns, uint64_t from_ns, uint64_t to_ns,
                 uint32_t depth);

/* In flight over all workers; one for the run, in shared memory. */
struct stats_depth {
    _Alignas(64) _Atomic uint32_t now;
    _Atomic uint32_t max;
};
void stats_depth_add(struct stats_depth *depth, uint32_t count);
void stats_depth_sub(struct stats_depth *depth, uint32_t count);

#endif
