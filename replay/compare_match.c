/* SPDX-License-Identifier: MIT */
#include "replay/compare_match.h"

#include <errno.h>
#include <stdlib.h>

#define NONE UINT32_MAX

/* A node is in its bucket's chain (by age, so that the oldest of a key is met first) and in the
 * list of all that wait; or in the list of free ones, linked by chain_next. */
struct node {
    struct match_entry entry;
    uint32_t chain_next, chain_prev;
    uint32_t older, newer;
};

struct bucket {
    uint32_t first, last;
};

struct match {
    struct node *nodes;
    struct bucket *buckets;
    uint32_t bucket_mask;
    uint32_t free_first;
    uint32_t oldest, newest;
    uint32_t waiting[2];
    uint32_t most;
    struct match_entry out; /* a copy for the caller of the node just freed */
};

int match_new(struct match **ret_match, uint32_t window)
{
    struct match *match;
    uint32_t buckets = 16, i;

    if (window == 0 || window > 1u << 28)
        return -EINVAL;
    while (buckets < window)
        buckets *= 2;
    match = calloc(1, sizeof *match);
    if (!match)
        return -ENOMEM;
    /* One more than the window: the newcomer is placed before the oldest leaves. */
    match->nodes = calloc((size_t)window + 1, sizeof *match->nodes);
    match->buckets = malloc(buckets * sizeof *match->buckets);
    if (!match->nodes || !match->buckets) {
        match_free(match);
        return -ENOMEM;
    }
    match->bucket_mask = buckets - 1;
    for (i = 0; i < buckets; i++)
        match->buckets[i] = (struct bucket){NONE, NONE};
    for (i = 0; i <= window; i++)
        match->nodes[i].chain_next = i < window ? i + 1 : NONE;
    match->oldest = match->newest = NONE;
    *ret_match = match;
    return 0;
}

void match_free(struct match *match)
{
    if (!match)
        return;
    free(match->nodes);
    free(match->buckets);
    free(match);
}

static struct bucket *match_bucket(struct match *match, uint64_t key)
{
    uint64_t mixed = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15u;

    return &match->buckets[(mixed >> 32) & match->bucket_mask];
}

static void match_insert(struct match *match, const struct match_entry *entry)
{
    struct bucket *bucket = match_bucket(match, entry->key);
    uint32_t at = match->free_first;
    struct node *node = &match->nodes[at];

    match->free_first = node->chain_next;
    node->entry = *entry;
    node->chain_next = NONE;
    node->chain_prev = bucket->last;
    if (bucket->last != NONE)
        match->nodes[bucket->last].chain_next = at;
    else
        bucket->first = at;
    bucket->last = at;
    node->newer = NONE;
    node->older = match->newest;
    if (match->newest != NONE)
        match->nodes[match->newest].newer = at;
    else
        match->oldest = at;
    match->newest = at;
    match->waiting[entry->side]++;
    if (match->waiting[0] + match->waiting[1] > match->most)
        match->most = match->waiting[0] + match->waiting[1];
}

/* Takes a node out of both lists, copies its entry to match->out and frees it. */
static const struct match_entry *match_take(struct match *match, uint32_t at)
{
    struct node *node = &match->nodes[at];
    struct bucket *bucket = match_bucket(match, node->entry.key);

    if (node->chain_prev != NONE)
        match->nodes[node->chain_prev].chain_next = node->chain_next;
    else
        bucket->first = node->chain_next;
    if (node->chain_next != NONE)
        match->nodes[node->chain_next].chain_prev = node->chain_prev;
    else
        bucket->last = node->chain_prev;
    if (node->older != NONE)
        match->nodes[node->older].newer = node->newer;
    else
        match->oldest = node->newer;
    if (node->newer != NONE)
        match->nodes[node->newer].older = node->older;
    else
        match->newest = node->older;
    match->waiting[node->entry.side]--;
    match->out = node->entry;
    node->chain_next = match->free_first;
    match->free_first = at;
    return &match->out;
}

int match_offer(struct match *match, const struct match_entry *entry,
                const struct match_entry **ret_partner, const struct match_entry **ret_given_up)
{
    const struct node *node;
    uint32_t at;

    *ret_given_up = NULL;
    for (at = match_bucket(match, entry->key)->first; at != NONE; at = node->chain_next) {
        node = &match->nodes[at];
        if (node->entry.key != entry->key)
            continue;
        /* All that wait with one key are of one side, or they would have met. */
        if (node->entry.side == entry->side)
            break;
        *ret_partner = match_take(match, at);
        return 1;
    }
    match_insert(match, entry);
    if (match->free_first == NONE)
        *ret_given_up = match_take(match, match->oldest);
    return 0;
}

const struct match_entry *match_drain(struct match *match)
{
    return match->oldest == NONE ? NULL : match_take(match, match->oldest);
}

uint32_t match_waiting(const struct match *match, enum match_side side)
{
    return match->waiting[side];
}

uint32_t match_most_waiting(const struct match *match)
{
    return match->most;
}
