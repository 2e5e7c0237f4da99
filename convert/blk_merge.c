/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/blk_event.h"

/* CPUs beyond this share queues: only order within a CPU is at stake. */
#define MERGE_CPUS_MAX 8192u
/* How far back an event is moved to its place within its own CPU's queue. */
#define MERGE_STEP_MAX  4096u
#define MERGE_SHARE_MIN 4096u

struct queue {
    struct blk_event *ring;
    size_t head, count, size; /* size is a power of two, or 0 */
    uint64_t head_ns;         /* time of the head: what the heap compares */
    uint64_t last_ns;         /* of the last event pushed: where names go */
    size_t input;
    uint32_t heap_at; /* place in the heap, UINT32_MAX when empty */
};

struct merge_input {
    struct queue **cpus; /* by CPU number */
    uint32_t cpu_count;
    size_t held;
};

struct blk_merge {
    struct merge_input *inputs;
    size_t input_count, share;
    struct queue **heap;
    uint32_t heap_count, heap_size;
    struct blk_event popped;
};

int blk_merge_new(struct blk_merge **ret_merge, size_t inputs, size_t window)
{
    struct blk_merge *merge = calloc(1, sizeof(*merge));

    if (merge != NULL)
        merge->inputs = calloc(inputs ? inputs : 1, sizeof(*merge->inputs));
    if (merge == NULL || merge->inputs == NULL) {
        free(merge);
        return -ENOMEM;
    }
    merge->input_count = inputs;
    merge->share = window / (inputs ? inputs : 1);
    if (merge->share < MERGE_SHARE_MIN)
        merge->share = MERGE_SHARE_MIN;
    *ret_merge = merge;
    return 0;
}

void blk_merge_free(struct blk_merge *merge)
{
    if (merge == NULL)
        return;
    for (size_t i = 0; i < merge->input_count; i++) {
        for (uint32_t cpu = 0; cpu < merge->inputs[i].cpu_count; cpu++) {
            if (merge->inputs[i].cpus[cpu] != NULL)
                free(merge->inputs[i].cpus[cpu]->ring);
            free(merge->inputs[i].cpus[cpu]);
        }
        free(merge->inputs[i].cpus);
    }
    free(merge->inputs);
    free(merge->heap);
    free(merge);
}

size_t blk_merge_room(const struct blk_merge *merge, size_t input)
{
    size_t held = merge->inputs[input].held;

    return held < merge->share ? merge->share - held : 0;
}

static void heap_put(struct blk_merge *merge, uint32_t at, struct queue *queue)
{
    merge->heap[at] = queue;
    queue->heap_at = at;
}

static void heap_up(struct blk_merge *merge, uint32_t at)
{
    struct queue *queue = merge->heap[at];

    while (at > 0 && merge->heap[(at - 1) / 2]->head_ns > queue->head_ns) {
        heap_put(merge, at, merge->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_put(merge, at, queue);
}

static void heap_down(struct blk_merge *merge, uint32_t at)
{
    struct queue *queue = merge->heap[at];

    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child >= merge->heap_count)
            break;
        if (child + 1 < merge->heap_count &&
            merge->heap[child + 1]->head_ns < merge->heap[child]->head_ns)
            child++;
        if (merge->heap[child]->head_ns >= queue->head_ns)
            break;
        heap_put(merge, at, merge->heap[child]);
        at = child;
    }
    heap_put(merge, at, queue);
}

static int heap_add(struct blk_merge *merge, struct queue *queue)
{
    if (merge->heap_count == merge->heap_size) {
        uint32_t size = merge->heap_size ? 2 * merge->heap_size : 16;
        struct queue **heap = realloc(merge->heap, size * sizeof(*heap));

        if (heap == NULL)
            return -ENOMEM;
        merge->heap = heap;
        merge->heap_size = size;
    }
    heap_put(merge, merge->heap_count++, queue);
    heap_up(merge, queue->heap_at);
    return 0;
}

static struct queue *queue_of(struct merge_input *input, size_t index, uint32_t cpu)
{
    struct queue *queue;

    cpu %= MERGE_CPUS_MAX;
    if (cpu >= input->cpu_count) {
        uint32_t count = cpu + 1 < 16 ? 16 : cpu + 1;
        struct queue **cpus = realloc(input->cpus, count * sizeof(*cpus));

        if (cpus == NULL)
            return NULL;
        memset(cpus + input->cpu_count, 0, (count - input->cpu_count) * sizeof(*cpus));
        input->cpus = cpus;
        input->cpu_count = count;
    }
    queue = input->cpus[cpu];
    if (queue == NULL) {
        queue = calloc(1, sizeof(*queue));
        if (queue == NULL)
            return NULL;
        queue->input = index;
        queue->heap_at = UINT32_MAX;
        input->cpus[cpu] = queue;
    }
    return queue;
}

static int queue_grow(struct queue *queue)
{
    size_t size = queue->size ? 2 * queue->size : 256;
    struct blk_event *ring = malloc(size * sizeof(*ring));

    if (ring == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < queue->count; i++)
        ring[i] = queue->ring[(queue->head + i) & (queue->size - 1)];
    free(queue->ring);
    queue->ring = ring;
    queue->head = 0;
    queue->size = size;
    return 0;
}

int blk_merge_push(struct blk_merge *merge, size_t index, const struct blk_event *event)
{
    struct merge_input *input = &merge->inputs[index];
    struct queue *queue = queue_of(input, index, event->cpu);
    size_t mask, at, steps = 0;
    uint64_t time_ns;
    int err;

    if (queue == NULL)
        return -ENOMEM;
    time_ns = event->act == BLK_ACT_NAME ? queue->last_ns : event->time_ns;
    if (queue->count == queue->size && (err = queue_grow(queue)) < 0)
        return err;
    mask = queue->size - 1;
    at = queue->count;
    while (at > 0 && steps++ < MERGE_STEP_MAX &&
           queue->ring[(queue->head + at - 1) & mask].time_ns > time_ns) {
        queue->ring[(queue->head + at) & mask] = queue->ring[(queue->head + at - 1) & mask];
        at--;
    }
    queue->ring[(queue->head + at) & mask] = *event;
    queue->ring[(queue->head + at) & mask].time_ns = time_ns;
    queue->count++;
    input->held++;
    queue->last_ns = time_ns;
    if (at > 0)
        return 0;
    queue->head_ns = time_ns;
    if (queue->heap_at == UINT32_MAX)
        return heap_add(merge, queue);
    heap_up(merge, queue->heap_at);
    return 0;
}

const struct blk_event *blk_merge_pop(struct blk_merge *merge, size_t *ret_input)
{
    struct queue *queue;

    if (merge->heap_count == 0)
        return NULL;
    queue = merge->heap[0];
    merge->popped = queue->ring[queue->head];
    queue->head = (queue->head + 1) & (queue->size - 1);
    queue->count--;
    merge->inputs[queue->input].held--;
    *ret_input = queue->input;
    if (queue->count > 0) {
        queue->head_ns = queue->ring[queue->head].time_ns;
        heap_down(merge, 0);
    } else {
        queue->heap_at = UINT32_MAX;
        if (--merge->heap_count > 0) {
            heap_put(merge, 0, merge->heap[merge->heap_count]);
            heap_down(merge, 0);
        }
    }
    return &merge->popped;
}
