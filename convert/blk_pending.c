/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/blk_pending.h"

#define NONE UINT32_MAX
/* Pieces of one sector and lane that are looked through; more is a trace without completions.
 */
#define CHAIN_MAX   512u
#define NODES_FIRST 1024u /* a power of two */
/* Writes of flush sequences whose data is done and whose end is awaited. */
#define CLOSING_MAX 64u
/* Pieces that may complete at another sector than their own. */
#define LOOSE_MAX 1024u

struct node {
    struct trace_op op; /* of a root */
    struct blk_piece_key key;
    uint64_t bytes; /* of this piece still to complete; 0 = waits for an empty completion */
    uint64_t first_sector, done_ns;
    int64_t done_bytes;
    int32_t error;
    uint32_t chain;        /* next in the hash bucket, older first */
    uint32_t root;         /* the operation it is a piece of; itself when it is the operation */
    uint32_t open;         /* of a root: pieces that still wait, itself included */
    uint32_t older, newer; /* age list of roots; newer links the free list */
    uint32_t request; /* of a loose piece: number of the request it was issued in; 0 = none */
    bool hashed, requeued, sequence, empty, loose;
};

struct blk_pending {
    struct import *import;
    struct node *nodes;
    uint32_t limit, size, used, free, live;
    uint32_t oldest, newest;
    uint32_t *buckets;
    uint32_t mask;
    uint32_t closing[CLOSING_MAX]; /* roots, oldest first */
    uint32_t closing_count;
    uint32_t loose[LOOSE_MAX]; /* hashed nodes, oldest first */
    uint32_t loose_count, requests;
    uint64_t given_up;
};

void blk_pending_free(struct blk_pending *pending)
{
    if (pending == NULL)
        return;
    free(pending->nodes);
    free(pending->buckets);
    free(pending);
}

static uint32_t *bucket_of(struct blk_pending *pending, const struct blk_piece_key *key)
{
    uint64_t hash =
        key->sector * 0x9e3779b97f4a7c15ull + key->device * 0xc2b2ae3d27d4eb4full + key->lane;

    hash ^= hash >> 29;
    hash *= 0xbf58476d1ce4e5b9ull;
    return &pending->buckets[(hash >> 32) & pending->mask];
}

static bool same_key(const struct blk_piece_key *a, const struct blk_piece_key *b)
{
    return a->sector == b->sector && a->device == b->device && a->lane == b->lane;
}

/* Twice the room; the chains keep their order, older first. Moves every node. */
static int grow(struct blk_pending *pending)
{
    uint32_t size = pending->size ? 2 * pending->size : NODES_FIRST,
             old_count = pending->buckets ? pending->mask + 1 : 0;
    uint32_t *old = pending->buckets, *buckets = malloc(size * sizeof(*buckets));
    struct node *nodes = realloc(pending->nodes, size * sizeof(*nodes));

    if (nodes != NULL)
        pending->nodes = nodes;
    if (nodes == NULL || buckets == NULL) {
        free(buckets);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < size; i++)
        buckets[i] = NONE;
    pending->buckets = buckets;
    pending->mask = size - 1;
    pending->size = size;
    for (uint32_t i = 0; i < old_count; i++) {
        for (uint32_t index = old[i], next; index != NONE; index = next) {
            uint32_t *link = bucket_of(pending, &nodes[index].key);

            next = nodes[index].chain;
            nodes[index].chain = NONE;
            while (*link != NONE)
                link = &nodes[*link].chain;
            *link = index;
        }
    }
    free(old);
    return 0;
}

int blk_pending_new(struct blk_pending **ret_pending, struct import *import, uint32_t limit)
{
    struct blk_pending *pending = calloc(1, sizeof(*pending));

    if (pending == NULL)
        return -ENOMEM;
    pending->import = import;
    pending->limit = limit;
    pending->free = pending->oldest = pending->newest = NONE;
    if (grow(pending) < 0) {
        blk_pending_free(pending);
        return -ENOMEM;
    }
    *ret_pending = pending;
    return 0;
}

/* A node, or NONE when there is no memory. Nodes may move. */
static uint32_t node_take(struct blk_pending *pending)
{
    uint32_t index = pending->free;

    if (index == NONE && pending->used == pending->size && grow(pending) < 0)
        return NONE;
    if (index != NONE)
        pending->free = pending->nodes[index].newer;
    else
        index = pending->used++;
    pending->live++;
    return index;
}

static void node_give(struct blk_pending *pending, uint32_t index)
{
    pending->nodes[index].newer = pending->free;
    pending->free = index;
    pending->live--;
}

/* Links at the end of its bucket; *ret_same is how many of its key were there before. */
static void hash_in(struct blk_pending *pending, uint32_t index, uint32_t *ret_same,
                    uint32_t *ret_oldest)
{
    struct node *node = &pending->nodes[index];
    uint32_t *link = bucket_of(pending, &node->key), same = 0, oldest = NONE;

    while (*link != NONE) {
        if (same_key(&pending->nodes[*link].key, &node->key) && same++ == 0)
            oldest = *link;
        link = &pending->nodes[*link].chain;
    }
    node->chain = NONE;
    node->hashed = true;
    *link = index;
    if (ret_same != NULL) {
        *ret_same = same;
        *ret_oldest = oldest;
    }
}

static void loose_drop(struct blk_pending *pending, uint32_t at)
{
    pending->loose_count--;
    memmove(&pending->loose[at], &pending->loose[at + 1],
            (pending->loose_count - at) * sizeof(pending->loose[0]));
}

/* Where there is no room the oldest becomes an ordinary piece. */
static void loose_in(struct blk_pending *pending, uint32_t index)
{
    if (pending->loose_count == LOOSE_MAX) {
        pending->nodes[pending->loose[0]].loose = false;
        loose_drop(pending, 0);
    }
    pending->loose[pending->loose_count++] = index;
    pending->nodes[index].loose = true;
}

static void loose_out(struct blk_pending *pending, uint32_t index)
{
    uint32_t at = 0;

    while (pending->loose[at] != index) {
        at++;
        assert(at < pending->loose_count);
    }
    pending->nodes[index].loose = false;
    loose_drop(pending, at);
}

static void hash_out(struct blk_pending *pending, uint32_t index)
{
    struct node *node = &pending->nodes[index];
    uint32_t *link = bucket_of(pending, &node->key);

    if (!node->hashed)
        return;
    if (node->loose)
        loose_out(pending, index);
    while (*link != index) {
        assert(*link != NONE);
        link = &pending->nodes[*link].chain;
    }
    *link = node->chain;
    node->hashed = false;
}

static void age_in(struct blk_pending *pending, uint32_t index)
{
    struct node *node = &pending->nodes[index];

    node->older = pending->newest;
    node->newer = NONE;
    if (pending->newest != NONE)
        pending->nodes[pending->newest].newer = index;
    else
        pending->oldest = index;
    pending->newest = index;
}

static void age_out(struct blk_pending *pending, uint32_t index)
{
    struct node *node = &pending->nodes[index];

    if (node->older != NONE)
        pending->nodes[node->older].newer = node->newer;
    else
        pending->oldest = node->newer;
    if (node->newer != NONE)
        pending->nodes[node->newer].older = node->older;
    else
        pending->newest = node->older;
}

static void closing_drop(struct blk_pending *pending, uint32_t at)
{
    pending->closing_count--;
    for (; at < pending->closing_count; at++)
        pending->closing[at] = pending->closing[at + 1];
}

/* Hands a complete operation on and forgets it. */
static int deliver(struct blk_pending *pending, uint32_t index)
{
    struct node *node = &pending->nodes[index];
    uint64_t issue_ns = (uint64_t)node->op.issue_ns;
    int err;

    node->op.latency_ns = node->done_ns > issue_ns ? node->done_ns - issue_ns : 0;
    node->op.completion = TRACE_COMPLETION_EXACT;
    node->op.result = node->error ? node->error : node->done_bytes;
    err = import_op(pending->import, &node->op);
    age_out(pending, index);
    node_give(pending, index);
    return err;
}

/* Hands an operation on that has no completion, with all its pieces. */
static int give_up(struct blk_pending *pending, uint32_t index, bool in_flight)
{
    struct node *node = &pending->nodes[index];
    int err;

    for (uint32_t i = 0; i < pending->closing_count; i++) {
        if (pending->closing[i] == index) {
            closing_drop(pending, i);
            return deliver(pending, index);
        }
    }
    /* Its pieces: rare enough to look for them. */
    if (node->open > (node->hashed ? 1u : 0u)) {
        for (uint32_t i = 0; i < pending->used; i++) {
            if (i != index && pending->nodes[i].hashed && pending->nodes[i].root == index) {
                hash_out(pending, i);
                node_give(pending, i);
            }
        }
    }
    hash_out(pending, index);
    if (in_flight)
        node->op.flags |= TRACE_F_INFLIGHT;
    else
        pending->given_up++;
    err = import_op(pending->import, &node->op);
    age_out(pending, index);
    node_give(pending, index);
    return err;
}

int blk_pending_add(struct blk_pending *pending, const struct blk_piece_key *key,
                    const struct trace_op *op, uint64_t bytes, enum blk_wait wait)
{
    uint32_t index, same, oldest;
    struct node *node;
    int err = 0;

    if (pending->live == pending->limit)
        err = give_up(pending, pending->oldest, false);
    if (err < 0)
        return err;
    index = node_take(pending);
    if (index == NONE)
        return -ENOMEM;
    node = &pending->nodes[index];
    *node = (struct node){.op = *op,
                          .key = *key,
                          .bytes = bytes,
                          .first_sector = key->sector,
                          .root = index,
                          .open = 1,
                          .sequence = wait == BLK_WAIT_SEQUENCE,
                          .empty = bytes == 0};
    age_in(pending, index);
    hash_in(pending, index, &same, &oldest);
    if (wait == BLK_WAIT_LOOSE)
        loose_in(pending, index);
    if (same >= CHAIN_MAX && pending->nodes[oldest].root == oldest)
        return give_up(pending, oldest, false);
    return 0;
}

/* The piece at key that a completion of `left` bytes is for, or NONE. */
static uint32_t find(struct blk_pending *pending, const struct blk_piece_key *key,
                     uint64_t left)
{
    uint32_t fits = NONE, larger = NONE, index = *bucket_of(pending, key);

    for (; index != NONE; index = pending->nodes[index].chain) {
        const struct node *node = &pending->nodes[index];

        if (!same_key(&node->key, key) || node->empty)
            continue;
        if (node->bytes == left)
            return index;
        if (node->bytes < left && fits == NONE)
            fits = index;
        if (node->bytes > left && larger == NONE)
            larger = index;
    }
    return fits != NONE ? fits : larger;
}

static int root_done(struct blk_pending *pending, uint32_t root)
{
    struct node *node = &pending->nodes[root];
    int err = 0;

    if (!node->sequence)
        return deliver(pending, root);
    if (pending->closing_count == CLOSING_MAX) {
        err = deliver(pending, pending->closing[0]);
        closing_drop(pending, 0);
    }
    pending->closing[pending->closing_count++] = root;
    return err;
}

/* take bytes of a piece are done. */
static int piece_done(struct blk_pending *pending, uint32_t index, uint64_t take,
                      const struct blk_completion *done)
{
    struct node *node = &pending->nodes[index];
    uint32_t root = node->root;
    struct node *whole = &pending->nodes[root];

    bool loose = node->loose;

    if (done->error != 0)
        whole->error = done->error;
    whole->done_bytes += (int64_t)take;
    if (done->time_ns > whole->done_ns)
        whole->done_ns = done->time_ns;
    hash_out(pending, index);
    node->bytes -= take;
    node->key.sector += take >> 9;
    if (node->bytes > 0) {
        hash_in(pending, index, NULL, NULL);
        if (loose)
            loose_in(pending, index);
        return 0;
    }
    if (index != root)
        node_give(pending, index);
    if (--whole->open > 0)
        return 0;
    return root_done(pending, root);
}

/* The oldest loose piece of the key's device and lane that is of `request` and fits into left.
 */
static uint32_t find_loose(const struct blk_pending *pending, const struct blk_piece_key *key,
                           uint32_t request, uint64_t left)
{
    for (uint32_t i = 0; i < pending->loose_count; i++) {
        const struct node *node = &pending->nodes[pending->loose[i]];

        if (node->request == request && node->key.device == key->device &&
            node->key.lane == key->lane && node->bytes <= left)
            return pending->loose[i];
    }
    return NONE;
}

/* The next piece of a request: at the key, or any range of the request that lies elsewhere. */
static uint32_t find_next(struct blk_pending *pending, const struct blk_piece_key *key,
                          uint32_t request, uint64_t left)
{
    uint32_t index = find(pending, key, left);

    if (index != NONE && pending->nodes[index].request == request)
        return index;
    return find_loose(pending, key, request, left);
}

void blk_pending_issued(struct blk_pending *pending, const struct blk_piece_key *key,
                        uint64_t bytes)
{
    struct blk_piece_key at = *key;
    uint32_t index = find(pending, &at, bytes);

    if (index == NONE || !pending->nodes[index].loose || pending->nodes[index].request != 0)
        return;
    if (++pending->requests == 0)
        pending->requests = 1;
    for (; index != NONE && pending->nodes[index].bytes <= bytes && bytes > 0;
         index = find_next(pending, &at, 0, bytes)) {
        struct node *node = &pending->nodes[index];

        node->request = pending->requests;
        bytes -= node->bytes;
        at.sector = node->key.sector + (node->bytes >> 9);
    }
}

int blk_pending_complete_append(struct blk_pending *pending, const struct blk_piece_key *key,
                                const struct blk_completion *done)
{
    uint32_t best = NONE;
    int err;

    for (uint32_t i = 0; i < pending->loose_count; i++) {
        const struct node *node = &pending->nodes[pending->loose[i]];

        if (node->key.device == key->device && node->key.lane == key->lane &&
            node->bytes == done->bytes && node->key.sector <= key->sector &&
            (best == NONE || node->key.sector > pending->nodes[best].key.sector))
            best = pending->loose[i];
    }
    if (best == NONE)
        return 0;
    err = piece_done(pending, best, done->bytes, done);
    return err < 0 ? err : 1;
}

int blk_pending_complete(struct blk_pending *pending, const struct blk_piece_key *key,
                         const struct blk_completion *done)
{
    struct blk_piece_key at = *key;
    uint64_t left = done->bytes;
    uint32_t request = 0;
    int pieces = 0, err;

    while (left > 0) {
        uint32_t index =
            pieces == 0 ? find(pending, &at, left) : find_next(pending, &at, request, left);
        uint64_t take;

        if (index == NONE)
            break;
        if (pieces == 0)
            request = pending->nodes[index].request;
        at.sector = pending->nodes[index].key.sector;
        take = pending->nodes[index].bytes < left ? pending->nodes[index].bytes : left;
        err = piece_done(pending, index, take, done);
        if (err < 0)
            return err;
        at.sector += take >> 9;
        left -= take;
        pieces++;
    }
    return pieces;
}

int blk_pending_complete_empty(struct blk_pending *pending, const struct blk_piece_key *key,
                               const struct blk_completion *done)
{
    struct blk_piece_key zero = {0, key->device, key->lane};
    uint32_t index;
    int err;

    for (uint32_t i = 0; i < pending->closing_count; i++) {
        struct node *node = &pending->nodes[pending->closing[i]];

        if (node->key.device == key->device && node->key.lane == key->lane &&
            (node->first_sector == key->sector || node->key.sector == key->sector)) {
            index = pending->closing[i];
            closing_drop(pending, i);
            node->done_ns = done->time_ns;
            if (done->error != 0)
                node->error = done->error;
            err = deliver(pending, index);
            return err < 0 ? err : 1;
        }
    }
    for (index = *bucket_of(pending, &zero); index != NONE;
         index = pending->nodes[index].chain) {
        if (same_key(&pending->nodes[index].key, &zero) && pending->nodes[index].empty) {
            err = piece_done(pending, index, 0, done);
            return err < 0 ? err : 1;
        }
    }
    return 0;
}

void blk_pending_merged(struct blk_pending *pending, const struct blk_piece_key *key,
                        uint64_t bytes)
{
    uint32_t index = find(pending, key, bytes);

    if (index != NONE && pending->nodes[index].bytes == bytes)
        pending->nodes[pending->nodes[index].root].op.flags |= TRACE_F_MERGED;
}

void blk_pending_requeued(struct blk_pending *pending, const struct blk_piece_key *key,
                          uint64_t bytes)
{
    struct blk_piece_key at = *key;

    while (bytes > 0) {
        uint32_t index = find(pending, &at, bytes);
        uint64_t take;

        if (index == NONE || pending->nodes[index].bytes > bytes)
            return;
        take = pending->nodes[index].bytes;
        pending->nodes[index].requeued = true;
        pending->nodes[pending->nodes[index].root].op.flags |= TRACE_F_REQUEUED;
        at.sector += take >> 9;
        bytes -= take;
    }
}

bool blk_pending_reissue(struct blk_pending *pending, const struct blk_piece_key *key,
                         uint64_t bytes)
{
    uint32_t index = *bucket_of(pending, key);

    for (; index != NONE; index = pending->nodes[index].chain) {
        struct node *node = &pending->nodes[index];

        if (node->requeued && node->bytes == bytes && same_key(&node->key, key)) {
            node->requeued = false;
            return true;
        }
    }
    return false;
}

void blk_pending_split(struct blk_pending *pending, const struct blk_piece_key *key,
                       uint64_t new_sector)
{
    uint32_t index = *bucket_of(pending, key), cut;
    uint64_t front;

    if (new_sector <= key->sector || new_sector - key->sector > UINT32_MAX)
        return;
    front = (new_sector - key->sector) << 9;
    for (; index != NONE; index = pending->nodes[index].chain)
        if (same_key(&pending->nodes[index].key, key) && pending->nodes[index].bytes > front)
            break;
    if (index == NONE || pending->live == pending->limit)
        return;
    cut = node_take(pending);
    if (cut == NONE)
        return; /* it completes as a whole, then */
    pending->nodes[cut] = (struct node){.key = *key,
                                        .bytes = pending->nodes[index].bytes - front,
                                        .root = pending->nodes[index].root};
    pending->nodes[cut].key.sector = new_sector;
    pending->nodes[index].bytes = front;
    pending->nodes[pending->nodes[index].root].open++;
    hash_in(pending, cut, NULL, NULL);
    if (pending->nodes[index].loose)
        loose_in(pending, cut);
}

int blk_pending_finish(struct blk_pending *pending, uint64_t since_ns,
                       struct blk_pending_counts *ret_counts)
{
    struct blk_pending_counts counts = {0};

    while (pending->oldest != NONE) {
        struct node *node = &pending->nodes[pending->oldest];
        bool in_flight = (uint64_t)node->op.issue_ns >= since_ns;
        uint64_t before = pending->given_up;
        bool closing = node->open == 0;
        int err = give_up(pending, pending->oldest, in_flight);

        if (err < 0)
            return err;
        if (in_flight && !closing && pending->given_up == before)
            counts.in_flight++;
    }
    counts.given_up = pending->given_up;
    *ret_counts = counts;
    return 0;
}
