/* SPDX-License-Identifier: MIT */
#include "convert/inflight.h"

#include <stdlib.h>

#define NONE UINT32_MAX

struct entry {
    struct inflight_key key;
    struct trace_op op;
    uint32_t next;         /* in the bucket, oldest first; or in the free list */
    uint32_t older, newer; /* in order of put */
};

struct inflight {
    struct entry *entries;
    uint32_t *buckets;
    uint32_t mask, most, oldest, newest;
    uint32_t free_list, fresh; /* entries given back; the first never used: untouched memory */
};

struct inflight *inflight_new(uint32_t most)
{
    struct inflight *inflight = calloc(1, sizeof(*inflight));
    uint32_t buckets = 16;

    if (!inflight || !most || most > 1u << 28)
        goto fail;
    while (buckets < most)
        buckets *= 2;
    inflight->entries = calloc(most, sizeof(*inflight->entries));
    inflight->buckets = malloc(buckets * sizeof(*inflight->buckets));
    if (!inflight->entries || !inflight->buckets)
        goto fail;
    for (uint32_t i = 0; i < buckets; i++)
        inflight->buckets[i] = NONE;
    inflight->mask = buckets - 1;
    inflight->most = most;
    inflight->oldest = inflight->newest = inflight->free_list = NONE;
    return inflight;
fail:
    inflight_free(inflight);
    return NULL;
}

void inflight_free(struct inflight *inflight)
{
    if (!inflight)
        return;
    free(inflight->entries);
    free(inflight->buckets);
    free(inflight);
}

static uint32_t *bucket_of(struct inflight *inflight, const struct inflight_key *key)
{
    uint64_t hash = (key->sector ^ key->device << 40) * 0x9e3779b97f4a7c15ull;

    hash ^= (uint64_t)key->kind * 0xc2b2ae3d27d4eb4full;
    return &inflight->buckets[(hash >> 32 ^ hash) & inflight->mask];
}

static bool same_key(const struct inflight_key *a, const struct inflight_key *b)
{
    return a->sector == b->sector && a->device == b->device && a->kind == b->kind;
}

/* *link is the bucket link that names the entry. */
static void entry_remove(struct inflight *inflight, uint32_t *link, struct trace_op *ret_op)
{
    uint32_t index = *link;
    struct entry *entry = &inflight->entries[index];

    *ret_op = entry->op;
    *link = entry->next;
    if (entry->older != NONE)
        inflight->entries[entry->older].newer = entry->newer;
    else
        inflight->oldest = entry->newer;
    if (entry->newer != NONE)
        inflight->entries[entry->newer].older = entry->older;
    else
        inflight->newest = entry->older;
    entry->next = inflight->free_list;
    inflight->free_list = index;
}

bool inflight_take(struct inflight *inflight, const struct inflight_key *key,
                   struct trace_op *ret_op)
{
    uint32_t *link = bucket_of(inflight, key);

    while (*link != NONE && !same_key(&inflight->entries[*link].key, key))
        link = &inflight->entries[*link].next;
    if (*link == NONE)
        return false;
    entry_remove(inflight, link, ret_op);
    return true;
}

bool inflight_take_any(struct inflight *inflight, struct trace_op *ret_op)
{
    uint32_t *link;

    if (inflight->oldest == NONE)
        return false;
    link = bucket_of(inflight, &inflight->entries[inflight->oldest].key);
    while (*link != inflight->oldest)
        link = &inflight->entries[*link].next;
    entry_remove(inflight, link, ret_op);
    return true;
}

bool inflight_put(struct inflight *inflight, const struct inflight_key *key,
                  const struct trace_op *op, struct trace_op *ret_evicted)
{
    bool evicted = inflight->free_list == NONE && inflight->fresh == inflight->most &&
                   inflight_take_any(inflight, ret_evicted);
    uint32_t index = inflight->free_list != NONE ? inflight->free_list : inflight->fresh++;
    uint32_t *link = bucket_of(inflight, key);
    struct entry *entry = &inflight->entries[index];

    if (index == inflight->free_list)
        inflight->free_list = entry->next;
    entry->key = *key;
    entry->op = *op;
    entry->next = NONE;
    entry->newer = NONE;
    entry->older = inflight->newest;
    if (inflight->newest != NONE)
        inflight->entries[inflight->newest].newer = index;
    else
        inflight->oldest = index;
    inflight->newest = index;
    while (*link != NONE)
        link = &inflight->entries[*link].next;
    *link = index;
    return evicted;
}
