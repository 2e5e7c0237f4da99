/* SPDX-License-Identifier: MIT */
/*
 * A bounded window that puts ops into issue order: recorders deliver an op when it has
 * completed, and thread by thread. One thread. Ops of equal time leave in the order of their
 * ref where they have one, then in the order they came.
 */
#ifndef CAPTURE_WINDOW_H
#define CAPTURE_WINDOW_H

#include "traces/trace.h"

struct window_entry {
    int64_t issue_ns;
    uint64_t ref, arrival;
    uint32_t op; /* slot in ops */
};

struct window {
    struct trace_op *ops;
    struct window_entry *heap;
    uint32_t *free_slots;
    uint32_t count, room;
    uint64_t arrivals;
};

/* room: ops held at most. -ENOMEM. */
int window_init(struct window *window, uint32_t room) TRACE_MUST_CHECK;
void window_release(struct window *window);
/* The window must not be full (window_full). */
void window_push(struct window *window, const struct trace_op *op);
static inline bool window_full(const struct window *window)
{
    return window->count == window->room;
}
/* Takes the oldest op out when it was issued before before_ns; false when there is none. */
bool window_pop(struct window *window, int64_t before_ns, struct trace_op *ret_op);

#endif
