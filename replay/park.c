/* SPDX-License-Identifier: MIT */
#include "replay/park.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct queue {
    uint32_t head, tail;
};

struct park {
    struct order *order;
    bool think;
    uint64_t start_ns;
    struct parked *slots;
    uint32_t capacity, count, free_list;
    struct queue *queues; /* by order_queue; NULL when there are no queue numbers */
    uint64_t *last_due;   /* think: by queue, the latest due time given */
    uint32_t queue_count;
    uint32_t *waiting;    /* heads that are not ready */
    uint32_t waiting_count;
    uint32_t *heap;       /* ready heads, by due time, then number */
    uint32_t heap_count;
    uint64_t version;     /* of the order when the waiting were last looked at */
};

int park_new(struct park **ret_park, struct order *order, uint32_t capacity, bool think)
{
    struct park *park = calloc(1, sizeof *park);
    uint32_t queues = order_queues(order);

    if (park == NULL)
        return -ENOMEM;
    park->order = order;
    park->think = think;
    park->capacity = capacity;
    park->queue_count = queues;
    park->slots = calloc(capacity, sizeof *park->slots);
    park->waiting = calloc(capacity, sizeof *park->waiting);
    park->heap = calloc(capacity, sizeof *park->heap);
    park->queues = malloc((queues + 1ull) * sizeof *park->queues);
    park->last_due = calloc(queues + 1ull, sizeof *park->last_due);
    if (park->slots == NULL || park->waiting == NULL || park->heap == NULL ||
        park->queues == NULL || park->last_due == NULL) {
        park_free(park);
        return -ENOMEM;
    }
    memset(park->queues, 0xff, (queues + 1ull) * sizeof *park->queues);
    for (uint32_t i = 0; i < capacity; i++)
        park->slots[i].next = i + 1 < capacity ? i + 1 : NONE;
    *ret_park = park;
    return 0;
}

void park_free(struct park *park)
{
    if (park == NULL)
        return;
    free(park->slots);
    free(park->waiting);
    free(park->heap);
    free(park->queues);
    free(park->last_due);
    free(park);
}

void park_start(struct park *park, uint64_t start_ns)
{
    park->start_ns = start_ns;
}

bool park_full(const struct park *park)
{
    return park->count == park->capacity;
}

uint32_t park_count(const struct park *park)
{
    return park->count;
}

/* ---- the heap of ready heads ------------------------------------------------------------ */

static bool before(const struct park *park, uint32_t a, uint32_t b)
{
    const struct parked *x = &park->slots[a], *y = &park->slots[b];

    return x->due_ns != y->due_ns ? x->due_ns < y->due_ns : x->tag.seq < y->tag.seq;
}

static void heap_push(struct park *park, uint32_t slot)
{
    uint32_t at = park->heap_count++;

    while (at > 0 && before(park, slot, park->heap[(at - 1) / 2])) {
        park->heap[at] = park->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    park->heap[at] = slot;
}

static uint32_t heap_pop(struct park *park)
{
    uint32_t top = park->heap[0];
    uint32_t last = park->heap[--park->heap_count];
    uint32_t at = 0;

    while (2 * at + 1 < park->heap_count) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < park->heap_count && before(park, park->heap[child + 1], park->heap[child]))
            child++;
        if (!before(park, park->heap[child], last))
            break;
        park->heap[at] = park->heap[child];
        at = child;
    }
    if (park->heap_count > 0)
        park->heap[at] = last;
    return top;
}

/* ---- heads ------------------------------------------------------------------------------ */

/* Moves a head to the heap if what it waits for is done. */
static bool head_try(struct park *park, uint32_t slot, uint64_t now_ns)
{
    struct parked *parked = &park->slots[slot];
    uint32_t queue = order_queue(park->order, &parked->op);
    uint64_t from_ns;

    if (!order_ready(park->order, &parked->op, &parked->tag, &from_ns))
        return false;
    parked->ready_ns = now_ns;
    if (park->think) {
        if (from_ns != 0)
            parked->due_ns = from_ns + parked->tag.think_ns;
        else
            parked->due_ns = park->start_ns + (uint64_t)parked->op.due_ns;
        /* A thread issues its operations one after the other. */
        if (parked->due_ns < park->last_due[queue])
            parked->due_ns = park->last_due[queue];
        park->last_due[queue] = parked->due_ns;
    }
    heap_push(park, slot);
    return true;
}

static void head_new(struct park *park, uint32_t slot, uint64_t now_ns)
{
    if (head_try(park, slot, now_ns))
        return;
    park->slots[slot].waited = true;
    park->waiting[park->waiting_count++] = slot;
}

void park_add(struct park *park, const struct prepared *op, const struct order_tag *tag,
              uint64_t due_ns, uint64_t now_ns)
{
    uint32_t slot = park->free_list;
    uint32_t queue = order_queue(park->order, op);

    park->free_list = park->slots[slot].next;
    park->count++;
    park->slots[slot] =
        (struct parked){.op = *op, .tag = *tag, .due_ns = due_ns, .next = NONE};
    if (queue == UINT32_MAX) {
        head_new(park, slot, now_ns);
        return;
    }
    if (park->queues[queue].head == NONE) {
        park->queues[queue] = (struct queue){slot, slot};
        head_new(park, slot, now_ns);
    } else {
        park->slots[slot].waited = true;
        park->slots[park->queues[queue].tail].next = slot;
        park->queues[queue].tail = slot;
    }
}

/* Looks at the waiting heads, if any operation anywhere has completed since the last look. */
static void heads_poll(struct park *park, uint64_t now_ns)
{
    uint64_t version;

    if (park->waiting_count == 0)
        return;
    version = order_version(park->order);
    if (version == park->version)
        return;
    park->version = version;
    for (uint32_t i = 0; i < park->waiting_count;) {
        if (head_try(park, park->waiting[i], now_ns))
            park->waiting[i] = park->waiting[--park->waiting_count];
        else
            i++;
    }
}

struct parked *park_peek(struct park *park, uint64_t now_ns)
{
    heads_poll(park, now_ns);
    if (park->heap_count == 0 || park->slots[park->heap[0]].due_ns > now_ns)
        return NULL;
    return &park->slots[park->heap[0]];
}

void park_drop(struct park *park, uint64_t now_ns)
{
    uint32_t slot = heap_pop(park);
    struct parked *parked = &park->slots[slot];
    uint32_t queue = order_queue(park->order, &parked->op);
    uint32_t next = parked->next;

    parked->next = park->free_list;
    park->free_list = slot;
    park->count--;
    if (queue == UINT32_MAX)
        return;
    park->queues[queue].head = next;
    if (next == NONE) {
        park->queues[queue].tail = NONE;
        return;
    }
    head_new(park, next, now_ns);
}

uint64_t park_next_due(struct park *park, uint64_t now_ns)
{
    heads_poll(park, now_ns);
    return park->heap_count == 0 ? UINT64_MAX : park->slots[park->heap[0]].due_ns;
}
