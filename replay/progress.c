/* SPDX-License-Identifier: MIT */
#include "replay/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "replay/plan.h"
#include "replay/run_state.h"
#include "replay/target.h"
#include "traces/units.h"

#define EVERY_NS 250000000u

void progress_start(struct progress *progress, const struct run *run)
{
    *progress = (struct progress){
        .terminal = isatty(STDERR_FILENO) && !run->conf->quiet,
        .last_ns = run->wall_from_ns,
        .next_ns = run->wall_from_ns + EVERY_NS,
    };
}

/* The part done, 0 to 1: of the recorded time when there is one, else of the operations. */
static double part_done(const struct run *run, uint64_t completed, uint64_t elapsed_ns)
{
    uint64_t whole_ns = plan_duration_ns(run->plan, run->conf);
    double ops = (double)run->plan->ops * (double)run->conf->loops *
                 (double)run->targets->clones;

    if (run->conf->pace == PACE_RECORDED && run->conf->max_gap_ns == 0 && whole_ns > 0)
        return (double)elapsed_ns / (double)whole_ns;
    return ops > 0 ? (double)completed / ops : 1;
}

void progress_tick(struct progress *progress, const struct run *run)
{
    uint64_t now_ns = clock_now_ns(&clock_real);
    uint64_t completed, elapsed_ns;
    char rate[UNITS_TEXT], lag[UNITS_TEXT], left[UNITS_TEXT];
    double part;

    if (!progress->terminal || now_ns < progress->next_ns)
        return;
    completed = atomic_load_explicit(&run->control->completed, memory_order_relaxed);
    elapsed_ns = now_ns - run->wall_from_ns;
    part = part_done(run, completed, elapsed_ns);
    if (part > 1)
        part = 1;
    fprintf(stderr, "\r\033[K%5.1f%%  %s ops/s", part * 100,
            units_count((double)(completed - progress->last_completed) * 1e9 /
                            (double)(now_ns - progress->last_ns), rate));
    if (run->conf->pace != PACE_ASAP)
        fprintf(stderr, "  lag %s",
                units_time(atomic_load_explicit(&run->control->lag_ns, memory_order_relaxed),
                           lag));
    if (part > 0.001)
        fprintf(stderr, "  %s left",
                units_time((uint64_t)((double)elapsed_ns * (1 - part) / part), left));
    fflush(stderr);
    progress->shown = true;
    progress->last_completed = completed;
    progress->last_ns = now_ns;
    progress->next_ns = now_ns + EVERY_NS;
}

void progress_end(struct progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    fflush(stderr);
}
