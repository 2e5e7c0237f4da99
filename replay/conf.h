/* SPDX-License-Identifier: MIT */
/*
 * What the user asked of a replay: the option table and the checks that need nothing but the
 * options themselves.
 *
 * Lifecycle: conf_parse, then read; conf_release at the end. One thread until the workers start,
 * then read-only.
 */
#ifndef REPLAY_CONF_H
#define REPLAY_CONF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engines/engine.h"
#include "traces/opts.h"

enum conf_pace { PACE_ASAP = 0, PACE_RECORDED = 1, PACE_THINK = 2 };
enum conf_wait { WAIT_HYBRID = 0, WAIT_SLEEP = 1, WAIT_SPIN = 2 };
enum conf_cache { CACHE_ASIS = 0, CACHE_COLD = 1, CACHE_WARM = 2 };
enum conf_fit { FIT_NONE = 0, FIT_WRAP = 1, FIT_SCALE = 2, FIT_PACK = 3 };
enum conf_unaligned { UNALIGNED_ERROR = 0, UNALIGNED_BUFFERED = 1, UNALIGNED_ROUND = 2 };
enum conf_on_error { ON_ERROR_CONTINUE = 0, ON_ERROR_STOP = 1 };
enum conf_priority { PRIORITY_AUTO = 0, PRIORITY_NORMAL, PRIORITY_HIGH, PRIORITY_REALTIME };
enum conf_mapped { MAPPED_REPLAY = 0, MAPPED_SKIP = 1 };
enum conf_restore { RESTORE_AUTO = 0, RESTORE_REFLINK = 1, RESTORE_EXTENTS = 2 };
enum conf_fill { FILL_ZERO = 0, FILL_RANDOM = 1, FILL_COMPRESS = 2 };

/* Bits of conf.order. */
enum conf_order {
    ORDER_OVERLAP = 1u << 0,
    ORDER_FILE = 1u << 1,
    ORDER_STREAM = 1u << 2,
    ORDER_ALL = 1u << 3,
};
#define CONF_NODES_MAX 1024
#define ORDER_RANKED (ORDER_FILE | ORDER_STREAM | ORDER_ALL)

struct conf {
    const char *engine_text;
    struct engine_choice engine;
    uint64_t depth;     /* 0 = not given */
    uint64_t depth_low; /* 0 = refill as soon as one is free */
    uint64_t batch;     /* 0 = the default */
    uint64_t complete_min, complete_max;
    bool batch_wait;
    bool recorded_batches;
    int pace; /* enum conf_pace */
    double speed;
    uint64_t max_gap_ns; /* 0 = keep every gap */
    uint64_t start_ns, end_ns;
    uint64_t loops;
    uint64_t runtime_ns;
    int wait; /* enum conf_wait */
    uint64_t late_ns;
    uint32_t order; /* enum conf_order bits */
    uint64_t assume_latency_ns;
    bool latency_assumed;
    uint64_t workers;
    uint64_t processes;
    uint32_t numa;   /* memory node of the workers */
    bool numa_given;
    int priority;    /* enum conf_priority */
    const char *pin; /* "0-3,6" or NULL */

    const char *root;
    const char *target;
    struct opt_list maps; /* "A=B" */
    uint64_t clones;
    bool writes;
    struct opt_list destroy;
    bool prepare;
    const char *restore; /* folder of before-images, or NULL */
    int restore_by;      /* enum conf_restore */
    bool restore_only;
    int fit; /* enum conf_fit */
    bool direct, buffered;
    int mapped;          /* enum conf_mapped */
    uint32_t drop_flags; /* enum trace_op_flags: recorded, not honoured */
    int unaligned; /* enum conf_unaligned */
    int cache;     /* enum conf_cache */
    int fill;      /* enum conf_fill */
    uint32_t fill_pct;
    bool verify;
    int on_error; /* enum conf_on_error */
    uint64_t seed;
    bool simulated;
    int clock; /* index of "real", "simulated" */

    const char *json;
    const char *html;
    const char *result;
    bool force;
    bool plan;
    bool quiet;
    bool help, version, list_engines;
    const char *help_engine;

    const char *tape; /* the operand */
};

extern const struct opt conf_table[];

/*
 * Fills conf from argv. 0, or -EINVAL with diag: a usage error. On success exactly one of help,
 * version, list_engines, help_engine is set, or tape and engine are.
 */
int conf_parse(struct conf *conf, int argc, char **argv, struct diag *diag);
void conf_release(struct conf *conf);
/* "overlap,file"; "none" when order is 0. buf holds 40. Returns buf. */
const char *conf_order_text(uint32_t order, char *buf);
/* The name of a value of an enumerated option: conf_word("pace", PACE_ASAP) is "asap". */
const char *conf_word(const char *option, int value);

#endif
