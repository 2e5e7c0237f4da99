/* SPDX-License-Identifier: MIT */
/*
 * Which operations are the trouble: a second reading of the tape, made only to say how many there
 * are and which is the first when the plan's sums do not fit the targets.
 */
#ifndef REPLAY_LOCATE_H
#define REPLAY_LOCATE_H

#include <stdint.h>

struct conf;
struct diag;
struct target_set;
struct trace_reader;

enum locate_what {
    LOCATE_BEYOND,    /* reaches past the end of its target */
    LOCATE_UNALIGNED, /* direct, and not a multiple of its target's alignment */
};

struct located {
    uint64_t count;
    uint64_t first;        /* index in the tape */
    uint64_t offset, length; /* of the first */
};

/* Reads the tape from its beginning; leaves the reader at its end. What reading gives. */
int locate(struct trace_reader *reader, const struct conf *conf, const struct target_set *targets,
           enum locate_what what, struct located *ret_located, struct diag *diag);

#endif
