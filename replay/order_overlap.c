/* SPDX-License-Identifier: MIT */
#include "replay/order_overlap.h"

#include <errno.h>
#include <stdlib.h>

#define GRANULE_SHIFT 18
#define BUCKETS       65536u
#define WIDE_GRANULES 64u /* longer ones are kept in one list that everybody walks */
#define NONE          UINT32_MAX

struct node {
    struct overlap_op op;
    uint32_t next;
};

struct overlap_index {
    bool (*done)(void *context, uint64_t seq);
    void *context;
    struct node *nodes;
    uint32_t count, size; /* in use from the front; free ones are chained */
    uint32_t free_list;
    uint32_t wide;
    uint32_t buckets[BUCKETS];
};

struct overlap_index *overlap_new(bool (*done)(void *context, uint64_t seq), void *context)
{
    struct overlap_index *index = calloc(1, sizeof *index);

    if (index == NULL)
        return NULL;
    index->done = done;
    index->context = context;
    index->free_list = NONE;
    index->wide = NONE;
    for (uint32_t i = 0; i < BUCKETS; i++)
        index->buckets[i] = NONE;
    return index;
}

void overlap_free(struct overlap_index *index)
{
    if (index == NULL)
        return;
    free(index->nodes);
    free(index);
}

static uint32_t *bucket_of(struct overlap_index *index, uint32_t target, uint64_t granule)
{
    uint64_t hash = (granule + ((uint64_t)target << 40)) * 0x9e3779b97f4a7c15u;

    return &index->buckets[hash >> 48];
}

/* Walks a chain newest first, dropping what is complete. */
static void chain_visit(struct overlap_index *index, uint32_t *link, const struct overlap_op *op,
                        void (*conflict)(void *context, uint64_t seq), void *context)
{
    bool covered = false;

    while (*link != NONE) {
        struct node *node = &index->nodes[*link];

        if (index->done(index->context, node->op.seq)) {
            uint32_t dead = *link;

            *link = node->next;
            node->next = index->free_list;
            index->free_list = dead;
            continue;
        }
        if (!covered && node->op.target == op->target && node->op.seq != op->seq &&
            node->op.low < op->high && op->low < node->op.high &&
            (node->op.write || op->write)) {
            conflict(context, node->op.seq);
            /* That write waits for everything older on these bytes. */
            covered = node->op.write && node->op.low <= op->low && node->op.high >= op->high;
        }
        if (covered)
            return;
        link = &node->next;
    }
}

static int chain_push(struct overlap_index *index, uint32_t *head, const struct overlap_op *op)
{
    uint32_t at = index->free_list;

    if (at != NONE) {
        index->free_list = index->nodes[at].next;
    } else {
        if (index->count == index->size) {
            uint32_t size = index->size ? index->size * 2 : 4096;
            struct node *nodes = realloc(index->nodes, size * sizeof *nodes);

            if (nodes == NULL)
                return -ENOMEM;
            index->nodes = nodes;
            index->size = size;
        }
        at = index->count++;
    }
    index->nodes[at] = (struct node){.op = *op, .next = *head};
    *head = at;
    return 0;
}

int overlap_add(struct overlap_index *index, const struct overlap_op *op,
                void (*conflict)(void *context, uint64_t seq), void *context)
{
    uint64_t first = op->low >> GRANULE_SHIFT;
    uint64_t last = (op->high - 1) >> GRANULE_SHIFT;
    int err = 0;

    chain_visit(index, &index->wide, op, conflict, context);
    if (last - first >= WIDE_GRANULES) {
        /* A granule's chain holds other targets and places too; the comparison sorts them out. */
        for (uint32_t i = 0; i < BUCKETS; i++)
            chain_visit(index, &index->buckets[i], op, conflict, context);
        return chain_push(index, &index->wide, op);
    }
    for (uint64_t g = first; g <= last && err == 0; g++) {
        uint32_t *bucket = bucket_of(index, op->target, g);

        chain_visit(index, bucket, op, conflict, context);
        err = chain_push(index, bucket, op);
    }
    return err;
}
