/* SPDX-License-Identifier: MIT */
/*
 * When an operation is due, from when it was recorded: the window, the speed, shortened gaps and
 * repetitions, in whole nanoseconds so that nothing drifts. Used by the decoder thread alone.
 */
#ifndef REPLAY_PACE_H
#define REPLAY_PACE_H

#include <stdint.h>

struct pace {
    double speed;         /* recorded ns a replayed ns; 1 keeps whole ns exactly */
    uint64_t max_gap_ns;  /* 0 = gaps stay */
    int64_t origin_ns;    /* tape time that is due at 0 */
    int64_t last_ns;      /* latest recorded issue so far in this loop */
    int64_t cut_ns;       /* shortened away so far in this loop */
    int64_t loop_base_ns; /* due time at which this loop's origin falls */
    int64_t last_due_ns;
    int started;
};

/* origin_ns is the tape time that becomes the run's time 0. */
void pace_init(struct pace *pace, double speed, uint64_t max_gap_ns, int64_t origin_ns);
/*
 * The due time of the operation recorded at issue_ns. Calls follow the tape's order; an issue
 * time below an earlier one is due with it (never earlier, and no later operation moves).
 */
int64_t pace_due(struct pace *pace, int64_t issue_ns);
/* A recorded duration, scaled. */
uint64_t pace_scale(const struct pace *pace, uint64_t ns);
/* The next loop's origin is due tail_ns after the last operation. */
void pace_next_loop(struct pace *pace, uint64_t tail_ns);

#endif
