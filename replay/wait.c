/* SPDX-License-Identifier: MIT */
#include "replay/wait.h"

#include <sys/prctl.h>

#define SLICE_NS 50000000u /* longest sleep, so that a stop is noticed */

void waiter_init(struct waiter *waiter, const struct clock *clock, enum conf_wait how,
                 const atomic_int *stop)
{
    *waiter = (struct waiter){
        .clock = clock, .how = how, .stop = stop, .margin_ns = WAIT_MARGIN_START_NS};
    if (how == WAIT_SLEEP)
        waiter->margin_ns = 0;
    waiter->awake_since_ns = clock_now_ns(clock);
    /* The default slack lets every sleep end 50 us late. */
    prctl(PR_SET_TIMERSLACK, 1);
}

void waiter_learn(struct waiter *waiter, uint64_t wanted_ns, uint64_t woke_ns)
{
    uint64_t late_ns = woke_ns > wanted_ns ? woke_ns - wanted_ns : 0;
    uint64_t margin_ns = waiter->margin_ns;

    waiter->sleeps++;
    waiter->awake_since_ns = woke_ns;
    if (late_ns > waiter->overshoot_max_ns)
        waiter->overshoot_max_ns = late_ns;
    if (waiter->how != WAIT_HYBRID)
        return;
    /* Steps up and down in the proportion 49 : 1 settle at the 98th percentile. */
    if (late_ns > margin_ns)
        margin_ns += margin_ns / 4 + 490;
    else
        margin_ns -= margin_ns / 196 + 10;
    if (margin_ns < WAIT_MARGIN_MIN_NS)
        margin_ns = WAIT_MARGIN_MIN_NS;
    if (margin_ns > WAIT_MARGIN_MAX_NS)
        margin_ns = WAIT_MARGIN_MAX_NS;
    waiter->margin_ns = margin_ns;
}

uint64_t waiter_budget(const struct waiter *waiter, uint64_t now_ns, uint64_t deadline_ns)
{
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

    if (waiter->how == WAIT_HYBRID && left_ns <= waiter->margin_ns &&
        left_ns > WAIT_NAP_GAP_NS && now_ns - waiter->awake_since_ns > WAIT_AWAKE_MAX_NS)
        return left_ns - WAIT_NAP_MARGIN_NS;
    if (waiter->how == WAIT_SPIN || left_ns <= waiter->margin_ns)
        return 0;
    left_ns -= waiter->margin_ns;
    return left_ns < SLICE_NS ? left_ns : SLICE_NS;
}

static inline void spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* One sleep; returns the time. */
static uint64_t sleep_until(struct waiter *waiter, uint64_t now_ns, uint64_t wake_ns)
{
    uint64_t woke_ns;

    waiter->clock->wait_until(waiter->clock, wake_ns);
    woke_ns = clock_now_ns(waiter->clock);
    waiter->slept_ns += woke_ns - now_ns;
    if (woke_ns >= wake_ns)
        waiter_learn(waiter, wake_ns, woke_ns);
    return woke_ns;
}

static bool may_spin(struct waiter *waiter)
{
    if (waiter->spinners == NULL ||
        atomic_fetch_add_explicit(waiter->spinners, 1, memory_order_relaxed) <
            waiter->spinners_max)
        return true;
    atomic_fetch_sub_explicit(waiter->spinners, 1, memory_order_relaxed);
    return false;
}

static uint64_t spin_until(struct waiter *waiter, uint64_t now_ns, uint64_t deadline_ns)
{
    const uint64_t from_ns = now_ns;

    while (now_ns < deadline_ns) {
        if (atomic_load_explicit(waiter->stop, memory_order_relaxed))
            break;
        spin_pause();
        now_ns = clock_now_ns(waiter->clock);
    }
    waiter->spun_ns += now_ns - from_ns;
    if (waiter->spinners != NULL)
        atomic_fetch_sub_explicit(waiter->spinners, 1, memory_order_relaxed);
    return now_ns;
}

uint64_t waiter_until(struct waiter *waiter, uint64_t now_ns, uint64_t deadline_ns)
{
    uint64_t budget_ns;

    if (waiter->clock->simulated) {
        if (now_ns < deadline_ns)
            waiter->clock->wait_until(waiter->clock, deadline_ns);
        return clock_now_ns(waiter->clock);
    }
    while ((budget_ns = waiter_budget(waiter, now_ns, deadline_ns)) > 0) {
        if (atomic_load_explicit(waiter->stop, memory_order_relaxed))
            return now_ns;
        now_ns = sleep_until(waiter, now_ns, now_ns + budget_ns);
    }
    if (now_ns >= deadline_ns)
        return now_ns;
    if (may_spin(waiter))
        return spin_until(waiter, now_ns, deadline_ns);
    return sleep_until(waiter, now_ns, deadline_ns);
}
