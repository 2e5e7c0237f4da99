/* SPDX-License-Identifier: MIT */
#include "capture/preload_async.h"

#include <string.h>
#include <sys/mman.h>

#define BUCKETS    16384u
#define NODES_STEP 4096u      /* nodes mapped at a time */
#define HELD       UINT64_MAX /* an id: of what is not recorded */

struct node {
    struct node *next;
    uint64_t space, key, id;
};

/* After a fork the child starts empty: the ops are the parent's. */
static struct {
    int lock;
    uint16_t generation;
    struct node **heads, **tails;
    struct node *unused;
    uint32_t batches;
} table;

static void *map_zeroed(size_t bytes)
{
    long mapped =
        RAW(mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return mapped < 0 && mapped > -4096 ? NULL : (void *)mapped;
}

static void table_reset(void)
{
    if (!table.heads) {
        table.heads = map_zeroed(BUCKETS * 2 * sizeof(struct node *));
        table.tails = table.heads + BUCKETS;
    }
    if (table.heads)
        memset(table.heads, 0, BUCKETS * 2 * sizeof(struct node *));
    table.unused = NULL; /* the few nodes that were in use are given up */
    table.batches = 0;
    table.generation = shim_generation();
}

static void table_give(void)
{
    __atomic_store_n(&table.lock, 0, __ATOMIC_RELEASE);
    shim_thread.in_table = false;
}

/* The lock is only ever held for a moment, by another thread. A fork in such a moment leaves it
 * taken, which the generation tells. */
static bool table_take(void)
{
    if (shim_thread.in_table) /* a signal handler in the middle of it */
        return false;
    shim_thread.in_table = true;
    if (table.generation != shim_generation()) {
        __atomic_store_n(&table.lock, 1, __ATOMIC_RELAXED);
        table_reset();
    } else {
        while (__atomic_exchange_n(&table.lock, 1, __ATOMIC_ACQUIRE))
            RAW(sched_yield);
    }
    if (table.heads)
        return true;
    table_give();
    return false;
}

static uint32_t bucket_of(uint64_t space, uint64_t key)
{
    return (uint32_t)(((space ^ key) * 0x9e3779b97f4a7c15u) >> 40) % BUCKETS;
}

static struct node *node_new(void)
{
    struct node *node = table.unused;

    if (!node) {
        struct node *nodes = map_zeroed(NODES_STEP * sizeof(*nodes));

        if (!nodes)
            return NULL;
        for (uint32_t i = 0; i + 1 < NODES_STEP; i++)
            nodes[i].next = &nodes[i + 1];
        node = nodes;
    }
    table.unused = node->next;
    node->next = NULL;
    return node;
}

/* Unlinks the first node of that key (and id, unless 0); its id, or 0. */
static uint64_t node_take(uint64_t space, uint64_t key, uint64_t id)
{
    uint32_t bucket = bucket_of(space, key);
    struct node *before = NULL, *node = table.heads[bucket];

    for (; node; before = node, node = node->next) {
        if (node->space != space || node->key != key || (id && node->id != id))
            continue;
        if (before)
            before->next = node->next;
        else
            table.heads[bucket] = node->next;
        if (table.tails[bucket] == node)
            table.tails[bucket] = before;
        id = node->id;
        node->next = table.unused;
        table.unused = node;
        return id;
    }
    return 0;
}

static bool node_add(uint64_t space, uint64_t key, uint64_t id)
{
    uint32_t bucket = bucket_of(space, key);
    struct node *node;

    if (!table_take())
        return false;
    node = node_new();
    if (node) {
        *node = (struct node){NULL, space, key, id};
        if (table.tails[bucket])
            table.tails[bucket]->next = node;
        else
            table.heads[bucket] = node;
        table.tails[bucket] = node;
    }
    table_give();
    return node != NULL;
}

uint64_t async_add(uint64_t space, uint64_t key, const struct async_op *op)
{
    uint64_t id;

    if (!shim_ready() || (op->slot & SLOT_IGNORED))
        return 0;
    if (op->slot & SLOT_LOST) {
        shim_thread.ring->dropped_files++;
        return 0;
    }
    id = shim_next_id();
    if (node_add(space, key, id))
        return id;
    shim_thread.ring->dropped++;
    return 0;
}

void async_hold(uint64_t space, uint64_t key)
{
    if (shim_ready())
        node_add(space, key, HELD);
}

void async_remove(uint64_t space, uint64_t key, uint64_t id)
{
    if (id && table_take()) {
        node_take(space, key, id);
        table_give();
    }
}

void async_issued(uint64_t space, uint64_t key, uint64_t id, const struct async_op *op,
                  uint64_t begin_ns, uint32_t batch)
{
    struct ring_record *record = id ? op_reserve(op->kind, op->api) : NULL;

    if (!record) { /* the ring is full, and that is counted: its completion is not wanted */
        async_remove(space, key, id);
        return;
    }
    record->type = RING_ISSUE;
    record->file = slot_file(op->slot);
    record->offset = op->offset;
    record->length = op->length;
    record->flags = slot_op_flags(op->slot) | op->flags;
    record->arg = op->arg;
    record->other = batch;
    record->begin_ns = begin_ns;
    op_end_at(record, 0, id);
}

void async_done(uint64_t space, uint64_t key, int64_t result, uint64_t end_ns,
                unsigned int completion)
{
    struct ring_record *record;
    uint64_t id = 0;

    if (!shim_ready())
        return;
    if (table_take()) {
        id = node_take(space, key, 0);
        table_give();
    }
    record = id && id != HELD ? op_reserve_done() : NULL;
    if (!record)
        return;
    record->type = RING_DONE;
    record->completion = (uint8_t)completion;
    record->begin_ns = id;
    op_end_at(record, result, end_ns);
}

uint32_t async_batch(void)
{
    uint32_t batch = 0;

    if (table_take()) {
        batch = ++table.batches;
        table_give();
    }
    return batch;
}
