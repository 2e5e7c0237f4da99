/* SPDX-License-Identifier: MIT */
/*
 * One replay from its options to its report: plan, guards, targets, workers, decoder, result
 * tape, signals.
 *
 * run_replay uses the calling thread, starts others and ends them. It prints nothing; it blocks
 * SIGINT, SIGTERM and SIGHUP for the process and takes them itself: the first one ends the run in good
 * order with a partial report.
 */
#ifndef REPLAY_RUN_H
#define REPLAY_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/cache.h"
#include "replay/conf.h"
#include "replay/prepare.h"
#include "replay/restore.h"
#include "replay/stats.h"
#include "replay/worker.h"

struct diag;
struct plan;
struct target_set;
struct trace_reader;

enum run_end { RUN_CLEAN, RUN_RUNTIME, RUN_SIGNAL, RUN_ERROR_STOP, RUN_FAILED };
extern const char *const run_end_words[];

/* Everything a report says. */
struct run_report {
    const char *tape;
    const char *engine;
    char granted[WORKER_GRANTED];
    char notes[512];
    bool downgraded;
    int priority;                     /* enum conf_priority: what the workers got */
    const struct plan *plan;
    const struct target_set *targets;
    const struct stats *stats;        /* of all workers */
    const struct worker_report *counters; /* summed */
    struct prepare_report prepared;
    struct restore_report restore;
    struct cache_report cache;
    uint64_t tape_ops;   /* all that had to be issued or skipped: ops x loops x clones */
    uint64_t not_reached;
    uint64_t duration_ns;            /* first issue to last completion */
    uint64_t duration_with_flush_ns; /* and the fsync of every written file */
    uint64_t start_ns;               /* the run's clock at time 0: CLOCK_MONOTONIC when real */
    uint64_t wall_ns;                /* from the start to the end of the last worker */
    uint64_t cpu_user_ns, cpu_sys_ns, ctx_switches;          /* of all our threads */
    uint64_t worker_user_ns, worker_sys_ns;                  /* of those that issue */
    uint64_t machine_busy_ns;        /* of all CPUs, whoever used them */
    uint64_t max_rss_bytes;
    uint32_t depth, batch, workers, depth_max;
    double depth_mean;
    enum run_end end;
    int signal;
    bool simulated;
    char config[8192]; /* the options as JSON */
};

/*
 * 0 with *report filled (its pointers last until run_release), also when operations failed or a
 * signal ended it; -errno with diag when there is nothing to report or the engine broke: then
 * report->stats is NULL or tells how far it got. *ret_usage: the error is the command line's.
 */
struct run;
int run_replay(struct run **ret_run, const struct conf *conf, struct run_report *report,
               bool *ret_usage, struct diag *diag);
void run_release(struct run *run); /* NULL is fine */

#endif
