/* SPDX-License-Identifier: MIT */
#include "capture/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int window_init(struct window *window, uint32_t room)
{
    memset(window, 0, sizeof(*window));
    window->ops = malloc(room * sizeof(*window->ops));
    window->heap = malloc(room * sizeof(*window->heap));
    window->free_slots = malloc(room * sizeof(*window->free_slots));
    if (!window->ops || !window->heap || !window->free_slots) {
        window_release(window);
        return -ENOMEM;
    }
    window->room = room;
    for (uint32_t i = 0; i < room; i++)
        window->free_slots[i] = i;
    return 0;
}

void window_release(struct window *window)
{
    free(window->ops);
    free(window->heap);
    free(window->free_slots);
    memset(window, 0, sizeof(*window));
}

static inline bool entry_before(const struct window_entry *a, const struct window_entry *b)
{
    if (a->issue_ns != b->issue_ns)
        return a->issue_ns < b->issue_ns;
    if (a->ref != b->ref)
        return a->ref < b->ref;
    return a->arrival < b->arrival;
}

/* The op slots in use are those not in free_slots[count ..]. */
void window_push(struct window *window, const struct trace_op *op)
{
    struct window_entry entry = {op->issue_ns, op->ref, window->arrivals++,
                                 window->free_slots[window->count]};
    uint32_t at = window->count++;

    window->ops[entry.op] = *op;
    while (at > 0) {
        uint32_t up = (at - 1) / 2;

        if (!entry_before(&entry, &window->heap[up]))
            break;
        window->heap[at] = window->heap[up];
        at = up;
    }
    window->heap[at] = entry;
}

bool window_pop(struct window *window, int64_t before_ns, struct trace_op *ret_op)
{
    struct window_entry last;
    uint32_t at = 0;

    if (window->count == 0 || window->heap[0].issue_ns >= before_ns)
        return false;
    *ret_op = window->ops[window->heap[0].op];
    window->free_slots[--window->count] = window->heap[0].op;
    last = window->heap[window->count];
    for (;;) {
        uint32_t down = 2 * at + 1;

        if (down >= window->count)
            break;
        if (down + 1 < window->count &&
            entry_before(&window->heap[down + 1], &window->heap[down]))
            down++;
        if (!entry_before(&window->heap[down], &last))
            break;
        window->heap[at] = window->heap[down];
        at = down;
    }
    if (window->count > 0)
        window->heap[at] = last;
    return true;
}
