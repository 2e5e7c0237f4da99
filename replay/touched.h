/* SPDX-License-Identifier: MIT */
/*
 * What a replay will change of each of its targets, by a reading of the tape made after they were
 * opened (only then is it known where --fit puts an operation).
 */
#ifndef REPLAY_TOUCHED_H
#define REPLAY_TOUCHED_H

#include <stdint.h>

#include "traces/trace.h"

struct chunk_set;
struct conf;
struct diag;
struct target_set;
struct trace_reader;

enum touched_how {
    TOUCHED_CHUNKS = 1u << 0, /* those in the set, or only beyond its end */
    TOUCHED_WHOLE = 1u << 1,  /* it is cut, removed, replaced: any of it may change */
    TOUCHED_NAME = 1u << 2,   /* it may be made */
};

struct touched {
    uint8_t *how;             /* enum touched_how, by target of clone 0 */
    struct chunk_set *chunks; /* sorted; "file" is the target */
};

/* Reads the tape from its beginning; leaves the reader at its end. -errno with diag. */
int touched_read(struct touched *touched, const struct conf *conf, const struct target_set *set,
                 struct trace_reader *reader, struct diag *diag) TRACE_MUST_CHECK;
void touched_release(struct touched *touched); /* a zeroed one is fine */

#endif
