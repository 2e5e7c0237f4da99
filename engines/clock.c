/* SPDX-License-Identifier: MIT */
#include "engines/clock.h"

#include <errno.h>
#include <stdlib.h>

#define NS_PER_S 1000000000u

static uint64_t real_now_ns(const struct clock *self)
{
    struct timespec now;

    (void)self;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void real_wait_until(const struct clock *self, uint64_t deadline_ns)
{
    struct timespec at = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
                          .tv_nsec = (long)(deadline_ns % NS_PER_S)};

    (void)self;
    /* An absolute deadline: whatever delays the call does not move it. EINTR returns early on
     * purpose, the caller looks at its stop flag. */
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

const struct clock clock_real = {
    .now_ns = real_now_ns,
    .wait_until = real_wait_until,
};

struct simulated {
    struct clock clock;
    uint64_t now_ns;
};

static uint64_t simulated_now_ns(const struct clock *self)
{
    return ((const struct simulated *)self->context)->now_ns;
}

static void simulated_wait_until(const struct clock *self, uint64_t deadline_ns)
{
    struct simulated *simulated = self->context;

    if (deadline_ns > simulated->now_ns)
        simulated->now_ns = deadline_ns;
}

struct clock *clock_simulated_new(uint64_t start_ns)
{
    struct simulated *simulated = calloc(1, sizeof(*simulated));

    if (!simulated)
        return NULL;
    simulated->now_ns = start_ns;
    simulated->clock = (struct clock){
        .now_ns = simulated_now_ns,
        .wait_until = simulated_wait_until,
        .simulated = true,
        .context = simulated,
    };
    return &simulated->clock;
}

void clock_simulated_free(struct clock *clock)
{
    if (clock)
        free(clock->context);
}
