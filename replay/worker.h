/* SPDX-License-Identifier: MIT */
/*
 * A worker takes prepared operations from its ring, waits until they are due and allowed, hands
 * them to its engine and accounts for each that comes back. It is a thread or a process; for an
 * engine with ENGINE_CORE_THREADS (sync) it is one thread for each depth slot.
 *
 * Between the first and the last operation a worker allocates, locks and formats nothing.
 */
#ifndef REPLAY_WORKER_H
#define REPLAY_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engines/engine.h"
#include "replay/feed.h"
#include "replay/order.h"
#include "replay/result.h"
#include "replay/stats.h"

struct conf;
struct data;
struct diag;
struct target_set;

/* What control->go says to those that wait for it. */
enum worker_go {
    WORKER_GO_WAIT = 0,
    WORKER_GO_RUN, /* the start has been set */
    WORKER_GO_END  /* the run does not take place */
};

/* What all workers of a run share; in shared memory when they are processes. */
struct worker_control {
    atomic_int stop;             /* issue nothing more: a signal, the runtime, an error */
    atomic_int go;               /* enum worker_go, a futex */
    atomic_int results_broken;   /* the result tape cannot be written: its rings are not emptied */
    _Atomic uint32_t ready;      /* workers that are prepared */
    _Atomic uint32_t running;    /* workers that have not ended */
    uint64_t start_ns;           /* clock: time 0 of the due times; written before go */
    uint64_t deadline_ns;        /* clock: issue nothing at or after it; UINT64_MAX = none */
    _Atomic uint64_t completed;  /* progress: operations accounted for, in steps */
    _Atomic uint64_t lag_ns;     /* progress: the latest lag of some worker */
    struct stats_depth depth;
};

#define WORKER_GRANTED 192
#define WORKER_COUNTERS 16

/* What a worker leaves behind besides its stats; in shared memory. */
struct worker_report {
    int error; /* -errno of the engine or of setting up; text says more */
    char text[512];
    char granted[WORKER_GRANTED];
    bool downgraded;
    _Atomic int priority; /* enum conf_priority: what its threads got; 0 = normal */
    char notes[512]; /* lines from the engine */
    struct {
        char name[32];
        uint64_t value;
    } counters[WORKER_COUNTERS];
};

struct worker_conf {
    const struct conf *conf;
    const struct clock *clock;
    const struct target_set *targets;
    const struct engine_target *engine_targets;
    struct worker_control *control;
    struct feed_ring *ring;
    struct order *order;         /* NULL when not ordered */
    struct result_ring *results; /* NULL without a result tape; one a slot thread for sync */
    uint32_t result_rings;       /* how many belong to this worker */
    struct stats *stats;         /* this worker's, then one more for each further slot thread */
    struct worker_report *report;
    struct data *data;           /* what is written and how it is checked; NULL for no data */
    uint32_t depth, batch;
    uint32_t fd_capacity;        /* descriptors this worker may open */
    uint32_t park_capacity;
    uint64_t stride_bytes;       /* buffer of a slot; 0 = the replay moves no data */
    uint64_t max_length;
    bool writes, all_direct, targets_fixed;
    uint32_t index, workers;     /* this one's number, and how many there are */
    int cpu;                     /* to run on; -1 = anywhere */
};

/* How many stats, and result rings, the worker needs: 1, or depth for sync. */
uint32_t worker_threads(const struct conf *conf, uint32_t depth);

/*
 * Runs to the end in the calling thread: sets up, reports ready, waits for go, works. 0, or
 * -errno with report filled.
 */
int worker_run(const struct worker_conf *conf);

#endif
