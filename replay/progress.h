/* SPDX-License-Identifier: MIT */
/* One line on a terminal while a replay runs; silent anywhere else and with --quiet. */
#ifndef REPLAY_PROGRESS_H
#define REPLAY_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct run;

struct progress {
    bool shown;
    bool terminal;
    uint64_t next_ns, last_ns, last_completed;
};

void progress_start(struct progress *progress, const struct run *run);
void progress_tick(struct progress *progress, const struct run *run); /* often; it paces itself */
void progress_end(struct progress *progress);                         /* clears the line */

#endif
