/* SPDX-License-Identifier: MIT */
/* Time stamps: the clock, and the processor's counter between two readings of it. */
#include "capture/preload.h"

#include <fcntl.h>
#include <string.h>

#define WINDOW_NS     1000000u  /* a reading is good for */
#define FIRST_SPAN_NS 20000000u /* the rate is first taken over this */
#define TRIES         3
#define LATER_SPAN_NS 100000000u /* and taken again over this, as the clock is steered */

uint64_t shim_tick_rate, shim_tick_window;
static uint64_t rate_from_ticks, rate_from_ns; /* where the rate is measured from */
static bool usable;

static uint64_t clock_read_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#if defined(__x86_64__)

/* Threads may do this at once: each result is as good as the other, and each word is whole. */
static void measure_rate(uint64_t ticks, uint64_t ns)
{
    uint64_t from_ns = rate_from_ns, from_ticks = rate_from_ticks;
    uint64_t span = shim_tick_rate ? LATER_SPAN_NS : FIRST_SPAN_NS, rate;

    if (from_ns == 0 || ns - from_ns > UINT64_C(1) << 31 || ticks <= from_ticks) {
        rate_from_ticks = ticks;
        rate_from_ns = ns;
        return;
    }
    if (ns - from_ns < span)
        return;
    rate = ((ns - from_ns) << 32) / (ticks - from_ticks);
    rate_from_ticks = ticks;
    rate_from_ns = ns;
    if (rate == 0)
        return;
    shim_tick_window = (((uint64_t)WINDOW_NS << 32) / rate);
    shim_tick_rate = rate;
}

uint64_t stamp_slow_ns(void)
{
    uint64_t ns = 0, ticks = 0, best = UINT64_MAX;

    if (!usable)
        return clock_read_ns();
    /* The counter at the moment of the reading is between two values: the closest pair of some.
     */
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = __builtin_ia32_rdtsc(), reading = clock_read_ns();
        uint64_t width = __builtin_ia32_rdtsc() - before;

        if (width < best) {
            best = width;
            ticks = before + width / 2;
            ns = reading;
        }
    }
    measure_rate(ticks, ns);
    /* A signal handler in between finds no reading, and makes its own. */
    shim_thread.read_ticks = 0;
    shim_thread.read_ns = ns;
    shim_thread.read_ticks = ticks;
    return ns;
}

/* The kernel keeps its own time by the counter only where that is steady and the same on every
 * processor. */
void stamp_start(void)
{
    static const char path[] =
        "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    char name[16];
    long fd = RAW(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), got;

    if (fd < 0)
        return;
    got = RAW(read, fd, name, sizeof(name));
    RAW(close, fd);
    usable = got >= 4 && !memcmp(name, "tsc\n", 4);
}

#else

uint64_t stamp_slow_ns(void)
{
    return clock_read_ns();
}

void stamp_start(void)
{
}

#endif
