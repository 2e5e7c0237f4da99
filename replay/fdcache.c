/* SPDX-License-Identifier: MIT */
#include "replay/fdcache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "replay/target.h"

#define NONE UINT32_MAX

struct entry {
    uint32_t target;
    uint32_t generation; /* of the target when it was opened */
    int fd;
    uint32_t uses;       /* operations that hold it */
    uint32_t newer, older; /* by last use */
    uint32_t chain;      /* next of the same hash */
};

struct fdcache {
    const struct target_set *targets;
    struct entry *entries;
    uint32_t *buckets;
    uint32_t bucket_mask;
    uint32_t count, capacity;
    uint32_t newest, oldest;
    uint64_t opens;
};

int fdcache_new(struct fdcache **ret_cache, const struct target_set *targets, uint32_t capacity)
{
    struct fdcache *cache = calloc(1, sizeof *cache);
    uint32_t buckets = 16;

    if (cache == NULL)
        return -ENOMEM;
    cache->capacity = capacity > targets->count && targets->count > 0 ? targets->count * 2
                                                                      : capacity;
    if (cache->capacity > capacity)
        cache->capacity = capacity;
    if (cache->capacity == 0)
        cache->capacity = 1;
    while (buckets < cache->capacity * 2)
        buckets *= 2;
    cache->targets = targets;
    cache->bucket_mask = buckets - 1;
    cache->newest = cache->oldest = NONE;
    cache->entries = calloc(cache->capacity, sizeof *cache->entries);
    cache->buckets = malloc(buckets * sizeof *cache->buckets);
    if (cache->entries == NULL || cache->buckets == NULL) {
        fdcache_free(cache);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < buckets; i++)
        cache->buckets[i] = NONE;
    *ret_cache = cache;
    return 0;
}

void fdcache_free(struct fdcache *cache)
{
    if (cache == NULL)
        return;
    for (uint32_t i = 0; i < cache->count; i++)
        if (cache->entries[i].fd >= 0)
            close(cache->entries[i].fd);
    free(cache->entries);
    free(cache->buckets);
    free(cache);
}

static uint32_t *bucket(struct fdcache *cache, uint32_t target)
{
    return &cache->buckets[(target * 2654435761u >> 7) & cache->bucket_mask];
}

static void unlink_use(struct fdcache *cache, uint32_t at)
{
    struct entry *entry = &cache->entries[at];

    if (entry->newer != NONE)
        cache->entries[entry->newer].older = entry->older;
    else
        cache->newest = entry->older;
    if (entry->older != NONE)
        cache->entries[entry->older].newer = entry->newer;
    else
        cache->oldest = entry->newer;
}

static void link_newest(struct fdcache *cache, uint32_t at)
{
    struct entry *entry = &cache->entries[at];

    entry->newer = NONE;
    entry->older = cache->newest;
    if (cache->newest != NONE)
        cache->entries[cache->newest].newer = at;
    else
        cache->oldest = at;
    cache->newest = at;
}

static void unlink_chain(struct fdcache *cache, uint32_t at)
{
    uint32_t *link = bucket(cache, cache->entries[at].target);

    while (*link != at)
        link = &cache->entries[*link].chain;
    *link = cache->entries[at].chain;
}

/* An entry that is in no list: a new one, or the least recently used that is not in use. */
static uint32_t entry_take(struct fdcache *cache)
{
    uint32_t at;

    if (cache->count < cache->capacity) {
        cache->entries[cache->count].fd = -1;
        return cache->count++;
    }
    for (at = cache->oldest; at != NONE; at = cache->entries[at].newer)
        if (cache->entries[at].uses == 0)
            break;
    if (at == NONE)
        return NONE;
    unlink_use(cache, at);
    unlink_chain(cache, at);
    if (cache->entries[at].fd >= 0)
        close(cache->entries[at].fd);
    cache->entries[at].fd = -1;
    return at;
}

/* Closes what an earlier generation of the name stood for: a removed file keeps its space. */
static void drop_stale(struct fdcache *cache, uint32_t target, uint32_t generation)
{
    for (uint32_t at = *bucket(cache, target); at != NONE; at = cache->entries[at].chain) {
        struct entry *entry = &cache->entries[at];

        if (entry->target == target && entry->generation != generation && entry->uses == 0 &&
            entry->fd >= 0) {
            close(entry->fd);
            entry->fd = -1;
        }
    }
}

static uint32_t lookup(struct fdcache *cache, uint32_t target, uint32_t generation)
{
    uint32_t at = *bucket(cache, target);

    while (at != NONE && (cache->entries[at].target != target ||
                          cache->entries[at].generation != generation))
        at = cache->entries[at].chain;
    return at;
}

int fdcache_get(struct fdcache *cache, uint32_t target, bool create, uint32_t *ret_handle)
{
    uint32_t generation =
        atomic_load_explicit(&cache->targets->generation[target], memory_order_acquire);
    uint32_t at = lookup(cache, target, generation);

    if (at == NONE) {
        const struct target *file = &cache->targets->items[target];
        int fd;

        drop_stale(cache, target, generation);
        at = entry_take(cache);
        if (at == NONE)
            return -EMFILE;
        fd = target_open(cache->targets, file, create ? O_CREAT : 0, file->mode);
        /* A failed open still occupies the entry, to be evicted in its turn: fd -1, no name. */
        cache->entries[at] = (struct entry){.target = fd < 0 ? NONE : target,
                                            .generation = generation,
                                            .fd = fd < 0 ? -1 : fd,
                                            .chain = *bucket(cache, fd < 0 ? NONE : target)};
        *bucket(cache, cache->entries[at].target) = at;
        link_newest(cache, at);
        cache->opens++;
        if (fd < 0)
            return fd;
    } else {
        unlink_use(cache, at);
        link_newest(cache, at);
    }
    cache->entries[at].uses++;
    *ret_handle = at;
    return cache->entries[at].fd;
}

void fdcache_put(struct fdcache *cache, uint32_t handle)
{
    cache->entries[handle].uses--;
}

uint64_t fdcache_opens(const struct fdcache *cache)
{
    return cache->opens;
}
