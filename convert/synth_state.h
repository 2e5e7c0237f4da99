/* SPDX-License-Identifier: MIT */
/* A workload being generated: what synth_spec.c makes of the specification and synth.c works on. */
#ifndef CONVERT_SYNTH_STATE_H
#define CONVERT_SYNTH_STATE_H

#include "convert/synth.h"

enum pick { PICK_UNIFORM, PICK_ONCE, PICK_ZIPF, PICK_ZONED };

#define SYNTH_ZONES_MAX 64

/* A part of the places that gets a share of the ops; cumulative, to 1. */
struct zone {
    double ops, places;
};

enum way { WAY_READ, WAY_WRITE, WAY_TRIM, WAYS };

/* Where a stream stands in a file; places from spec->offset. */
struct cursor {
    uint64_t next_bytes[WAYS]; /* only the first, unless each way has its own place */
    uint64_t last_bytes, last_length;
    uint64_t ops; /* placed in this stage */
    bool trimmed; /* trimwrite: the last place is to be written next */
};

/* The sizes of one way's ops. */
struct sizes {
    uint64_t sizes[SYNTH_SIZES_MAX];
    double shares[SYNTH_SIZES_MAX]; /* cumulative, to 1 */
    unsigned int count;
    uint64_t least, most; /* most > least without shares: a range */
    double mean;
};

struct stream {
    struct synth_rng rng;
    uint32_t table;
    uint32_t file, context; /* in turn */
    uint64_t until_switch;
    uint64_t run_left; /* ops that still follow in place */
    uint64_t *writes; /* by file: since its last sync */
    struct cursor *cursors; /* files x contexts */
};

struct synth {
    const struct synth_spec *spec;
    struct import *import;
    uint32_t *file_tables; /* by file number, private ones after each other */
    uint64_t file_count;
    struct stream *streams;
    struct cursor *cursors;
    uint64_t *writes;
    struct sizes sizes[WAYS];
    uint64_t least, most; /* of all ways */
    uint64_t align, span; /* bytes that ops fall in, from spec->offset */
    int stages[SYNTH_STAGES_MAX];
    unsigned int stage_count;
    int pick;
    struct synth_zipf zipf;
    struct synth_shuffle shuffle;
    struct zone zones[SYNTH_ZONES_MAX];
    unsigned int zone_count;
    struct synth_rng arrivals;
    int rw; /* of the present stage */
    uint64_t batch_id, issued; /* over all stages */
    int64_t stage_start_ns;
    long double poisson_ns;
};

/* Fills in what follows from spec. -EBADMSG with the diag set when it makes no sense. */
int synth_check(struct synth *synth);
/* The mean size of the ops of a stage. */
double synth_stage_mean(const struct synth *synth, int rw);
/* True when a stage's ops write or discard, all of them. */
bool synth_rw_writes(int rw);
/* Sets the diag to "synth: WHAT"; -EBADMSG. */
int synth_wrong(const struct synth *synth, const char *what);

#endif
