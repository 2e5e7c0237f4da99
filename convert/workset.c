/* SPDX-License-Identifier: MIT */
#include "convert/workset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS (4u * WORKSET_MAX)

int workset_init(struct workset *set)
{
    memset(set, 0, sizeof(*set));
    set->slots = calloc(SLOTS, sizeof(*set->slots));
    return set->slots ? 0 : -ENOMEM;
}

void workset_release(struct workset *set)
{
    free(set->slots);
    set->slots = NULL;
}

static uint64_t block_hash(uint32_t file, uint64_t block)
{
    uint64_t hash = block + (uint64_t)file * 0x9e3779b97f4a7c15u + 1;

    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
    hash ^= hash >> 31;
    return hash ? hash : 1;
}

/* The low bits place a hash, the high bits decide whether it is kept. */
static void insert(struct workset *set, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & (SLOTS - 1);

    while (set->slots[at] && set->slots[at] != hash)
        at = (at + 1) & (SLOTS - 1);
    if (!set->slots[at]) {
        set->slots[at] = hash;
        set->count++;
    }
}

static void halve(struct workset *set)
{
    uint64_t *kept = malloc((WORKSET_MAX + 1) * sizeof(*kept));
    uint32_t count = 0;

    if (!kept)
        return; /* the table has room for more: it is tried again at the next block */
    set->halvings++;
    for (uint32_t i = 0; i < SLOTS && count <= WORKSET_MAX; i++)
        if (set->slots[i] && !(set->slots[i] >> (64 - set->halvings)))
            kept[count++] = set->slots[i];
    memset(set->slots, 0, SLOTS * sizeof(*set->slots));
    set->count = 0;
    for (uint32_t i = 0; i < count; i++)
        insert(set, kept[i]);
    free(kept);
}

void workset_add(struct workset *set, uint32_t file, uint64_t offset, uint64_t length)
{
    uint64_t first = offset >> WORKSET_BLOCK_BITS;
    uint64_t last = length ? (offset + length - 1) >> WORKSET_BLOCK_BITS : first;

    if (!length)
        return;
    for (uint64_t block = first; block <= last; block++) {
        uint64_t hash = block_hash(file, block);

        if (set->halvings && hash >> (64 - set->halvings))
            continue;
        if (set->count < 3 * WORKSET_MAX)
            insert(set, hash);
        if (set->count > WORKSET_MAX)
            halve(set);
    }
}

uint64_t workset_bytes(const struct workset *set)
{
    return ((uint64_t)set->count << set->halvings) << WORKSET_BLOCK_BITS;
}
