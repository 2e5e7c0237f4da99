/* SPDX-License-Identifier: MIT */
/*
 * The page cache of the files before a replay: cold, warm, or as it is, and how much of them was
 * resident in the end. cachestat(2) where the kernel has it, else mincore(2) on a mapping.
 */
#ifndef REPLAY_CACHE_H
#define REPLAY_CACHE_H

#include <stdint.h>

struct conf;
struct diag;
struct target_set;

struct cache_report {
    uint64_t pages, resident; /* of all files, just before the start */
    int measured;             /* 0: nothing to measure, or no way to */
};

/*
 * cold: writes back and drops each file's pages, and as root all clean pages, until at most 1 % is
 * resident; else -EBUSY. warm: reads each file, until at least 99 % is; else -EBUSY (memory is
 * short). Files are those of the set that can be opened; devices too.
 */
int cache_set(const struct target_set *set, const struct conf *conf,
              struct cache_report *ret_report, struct diag *diag);

#endif
