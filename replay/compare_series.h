/* SPDX-License-Identifier: MIT */
/*
 * What happened when: figures of a tape by stretches of time, for plots. The stretches widen as
 * the tape goes on (each doubling joins two), so the memory is fixed and no length need be
 * known.
 *
 * One writer. Times are ns since an origin given at init; nothing before it may be added.
 */
#ifndef REPLAY_COMPARE_SERIES_H
#define REPLAY_COMPARE_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#define SERIES_STRETCHES 256
#define SERIES_ROWS      64 /* of the offset map */

struct series_stretch {
    uint64_t ops, bytes;
    uint64_t latency_count, latency_sum_ns, latency_max_ns; /* exact completions alone */
    uint64_t lag_count;
    double lag_sum_ns;
    int64_t lag_max_ns;
    double depth_ns; /* ops in flight, integrated over the stretch */
};

struct series {
    int64_t origin_ns;
    uint64_t width_ns;  /* of a stretch */
    unsigned int used;  /* stretches in use, from 0 */
    uint64_t row_bytes; /* height of a row of the offset map */
    unsigned int rows_used;
    struct series_stretch stretch[SERIES_STRETCHES];
    /* ops that begin there: reads (and the like), writes */
    uint32_t map[2][SERIES_ROWS][SERIES_STRETCHES];
};

void series_init(struct series *series, int64_t origin_ns);
/* The stretch that holds time_ns; widens them all first when it lies beyond the last. */
struct series_stretch *series_at(struct series *series, int64_t time_ns);
/* depth ops were in flight from from_ns to to_ns. */
void series_depth(struct series *series, int64_t from_ns, int64_t to_ns, uint64_t depth);
/* An op at a position (bytes; files laid end to end) on the offset map. */
void series_mark(struct series *series, int64_t time_ns, uint64_t position, bool writes);

#endif
