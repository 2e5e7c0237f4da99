/* SPDX-License-Identifier: MIT */
/*
 * --max-overhead: what recording takes of one CPU, second by second. Two figures that only grow are
 * given to it: the collector's own CPU time, and what seeing ops has cost the programs recorded.
 * One thread; no clock of its own.
 */
#ifndef CAPTURE_OVERHEAD_H
#define CAPTURE_OVERHEAD_H

#include <stdbool.h>
#include <stdint.h>

struct overhead {
    double limit_pct;                   /* 0: none */
    uint64_t from_ns, own_ns, added_ns; /* where this second began */
    double last_pct, most_pct;          /* of a whole second */
};

/* limit_pct is of one CPU: 150 is one and a half. All of ns. */
void overhead_init(struct overhead *overhead, double limit_pct, uint64_t now_ns, uint64_t own_ns,
                   uint64_t added_ns);
/* Has a second passed? Only then are the figures needed. */
bool overhead_due(const struct overhead *overhead, uint64_t now_ns);
/* Takes the figures of now, and says whether that second was above the limit. */
bool overhead_exceeded(struct overhead *overhead, uint64_t now_ns, uint64_t own_ns,
                       uint64_t added_ns);
/* Above the limit with one stream in one_in recorded: in how many it should be one, by how far
 * above it was and at least twice as many. 0: more than most will be needed. */
unsigned int overhead_sample(const struct overhead *overhead, unsigned int one_in,
                             unsigned int most);

#endif
