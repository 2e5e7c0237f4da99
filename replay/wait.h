/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a moment. A sleep ends late, by an amount that depends on the machine and the hour:
 * so the hybrid wait sleeps until a margin before the deadline, then spins. The margin is learnt
 * from how late the sleeps of this very thread ended (their 98th percentile, tracked), within
 * bounds that keep the spinning a small part of a long gap. Where gaps are shorter than the margin
 * it would spin for ever; it then sleeps through one of them now and then, so that a thread of
 * real-time priority leaves its CPU before the kernel takes it away. One waiter a thread.
 */
#ifndef REPLAY_WAIT_H
#define REPLAY_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engines/clock.h"
#include "replay/conf.h"

#define WAIT_MARGIN_MIN_NS   3000u
#define WAIT_MARGIN_START_NS 60000u
#define WAIT_MARGIN_MAX_NS   120000u
#define WAIT_AWAKE_MAX_NS    20000000u /* without a sleep */
#define WAIT_NAP_GAP_NS      45000u    /* then the first gap of this length ... */
#define WAIT_NAP_MARGIN_NS   30000u    /* ... is slept through, but for this */

struct waiter {
    const struct clock *clock;
    enum conf_wait how;
    const atomic_int *stop; /* ends a wait early when it turns non-zero */
    uint64_t margin_ns;
    uint64_t awake_since_ns;
    uint64_t sleeps;
    uint64_t slept_ns, spun_ns;
    uint64_t overshoot_max_ns;
    /* Where many threads wait: how many may spin at once; the others sleep to the deadline. NULL:
     * this one may always. */
    _Atomic uint32_t *spinners;
    uint32_t spinners_max;
};

/* Also asks the kernel for exact timers in the calling thread. */
void waiter_init(struct waiter *waiter, const struct clock *clock, enum conf_wait how,
                 const atomic_int *stop);
/*
 * Returns the time, at or after deadline_ns; or earlier, when *stop turned non-zero (noticed
 * within 50 ms). now_ns is the caller's latest reading.
 */
uint64_t waiter_until(struct waiter *waiter, uint64_t now_ns, uint64_t deadline_ns);
/* How long a blocking call may last so that the deadline is met by spinning after it; 0 = spin
 * now. For waits that happen inside an engine's reap. */
uint64_t waiter_budget(const struct waiter *waiter, uint64_t now_ns, uint64_t deadline_ns);
/* A sleep that was to end at wanted_ns ended at woke_ns. */
void waiter_learn(struct waiter *waiter, uint64_t wanted_ns, uint64_t woke_ns);

#endif
