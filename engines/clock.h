/* SPDX-License-Identifier: MIT */
/*
 * Time as engines and the replayer see it: the machine's CLOCK_MONOTONIC, or a simulated clock
 * that jumps to the next event. Everything that reads time in replay/ and engines/ does it
 * through this, so that a test or a user can replay a day in seconds, exactly.
 */
#ifndef ENGINES_CLOCK_H
#define ENGINES_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct clock {
    /* ns since an arbitrary start; never goes back. Any thread. */
    uint64_t (*now_ns)(const struct clock *self);
    /* Returns at or after deadline_ns (or when a signal handler ran). Any thread. The simulated
     * clock moves to the deadline at once. */
    void (*wait_until)(const struct clock *self, uint64_t deadline_ns);
    bool simulated;
    void *context;
};

/* The machine's clock. */
extern const struct clock clock_real;

/* A clock that starts at start_ns and moves only by wait_until: one thread. free with
 * clock_simulated_free. NULL without memory. */
struct clock *clock_simulated_new(uint64_t start_ns);
void clock_simulated_free(struct clock *clock);

/* The hot path reads the real clock without a call through the pointer. */
static inline uint64_t clock_now_ns(const struct clock *clock)
{
    struct timespec now;

    if (clock->simulated)
        return clock->now_ns(clock);
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
