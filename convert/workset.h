/* SPDX-License-Identifier: MIT */
/*
 * How many different 4 KiB blocks were touched, in bounded memory: blocks whose hash falls
 * below a limit are kept exactly; when more than WORKSET_MAX are, the limit halves. The
 * estimate is the kept count over the share that the limit keeps: exact up to WORKSET_MAX
 * blocks, and beyond within about 1 percent (1 / sqrt(WORKSET_MAX / 2) at one standard
 * deviation).
 */
#ifndef CONVERT_WORKSET_H
#define CONVERT_WORKSET_H

#include <stdint.h>

#define WORKSET_MAX        (1u << 16)
#define WORKSET_BLOCK_BITS 12

struct workset {
    uint64_t *slots; /* hashes, 0 = free; 4 * WORKSET_MAX of them */
    uint32_t count;
    unsigned int halvings;
};

int workset_init(struct workset *set); /* 0 or -ENOMEM */
void workset_add(struct workset *set, uint32_t file, uint64_t offset, uint64_t length);
uint64_t workset_bytes(const struct workset *set);
static inline int workset_is_exact(const struct workset *set)
{
    return set->halvings == 0;
}
void workset_release(struct workset *set);

#endif
