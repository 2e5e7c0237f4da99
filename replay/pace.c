/* SPDX-License-Identifier: MIT */
#include "replay/pace.h"

#include <math.h>

void pace_init(struct pace *pace, double speed, uint64_t max_gap_ns, int64_t origin_ns)
{
    *pace = (struct pace){.speed = speed, .max_gap_ns = max_gap_ns, .origin_ns = origin_ns};
}

static int64_t scale(double speed, int64_t ns)
{
    /* long double: whole ns stay exact over centuries, where a double ends at 104 days. */
    return speed == 1.0 ? ns : (int64_t)floorl((long double)ns / (long double)speed);
}

uint64_t pace_scale(const struct pace *pace, uint64_t ns)
{
    return (uint64_t)scale(pace->speed, (int64_t)ns);
}

int64_t pace_due(struct pace *pace, int64_t issue_ns)
{
    if (!pace->started) {
        pace->started = 1;
        pace->last_ns = issue_ns;
    }
    if (issue_ns < pace->last_ns) {
        issue_ns = pace->last_ns;
    } else if (pace->max_gap_ns != 0) {
        uint64_t gap_ns = (uint64_t)(issue_ns - pace->last_ns);

        if (gap_ns > pace->max_gap_ns)
            pace->cut_ns += (int64_t)(gap_ns - pace->max_gap_ns);
    }
    pace->last_ns = issue_ns;
    /* From the origin each time, never gap by gap: rounding does not add up. */
    pace->last_due_ns = pace->loop_base_ns +
                        scale(pace->speed, issue_ns - pace->origin_ns - pace->cut_ns);
    return pace->last_due_ns;
}

void pace_next_loop(struct pace *pace, uint64_t tail_ns)
{
    pace->loop_base_ns = pace->last_due_ns + (int64_t)tail_ns;
    pace->cut_ns = 0;
    pace->started = 0;
}
