/* SPDX-License-Identifier: MIT */
/* What run.c and run_setup.c share of a replay under way. Not for others. */
#ifndef REPLAY_RUN_STATE_H
#define REPLAY_RUN_STATE_H

#include <pthread.h>
#include <sys/resource.h>

#include "replay/run.h"
#include "replay/tape.h"

struct run {
    const struct conf *conf;
    struct tape tape;
    struct plan *plan;
    struct target_set *targets;
    struct restore *restore;         /* NULL without --restore */
    struct engine_target *engine_targets;
    struct order **orders;
    uint32_t order_count;
    struct feed *feed;
    struct results *results;
    struct data *data;
    const struct clock *clock;
    struct clock *simulated;
    struct worker_control *control;
    struct stats *stats;             /* worker_count x threads_per_worker */
    struct stats *sum;
    struct worker_report *reports;
    struct worker_conf *worker_confs;
    pthread_t *threads;
    pid_t *pids;
    bool processes;
    uint32_t worker_count, threads_per_worker, started;
    uint32_t depth, batch;
    uint64_t go_ns, wall_from_ns, wall_ns, flush_ns;
    uint64_t machine_before_ns;
    struct rusage usage_before;
    int signal;
};

/* Tape, plan, guards, targets, file set, cache: everything before memory is taken. */
int run_open(struct run *run, struct run_report *report, bool *ret_usage, struct diag *diag);
/* Rings, stats, order, result tape, worker configurations. */
int run_alloc(struct run *run, struct run_report *report, struct diag *diag);
/* After the workers have ended. */
void run_report_fill(struct run *run, struct run_report *report);
/* Busy time of all CPUs since boot, ns; 0 when /proc/stat cannot be read. */
uint64_t run_machine_busy_ns(void);

#endif
