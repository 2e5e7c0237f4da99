/* SPDX-License-Identifier: MIT */
/*
 * The loop of engines that block (sync): one thread and one engine state for each depth slot.
 * The threads take operations from the worker's ring one by one; each waits until its own is
 * due, issues it, and comes back for the next.
 */
#ifndef REPLAY_WORKER_THREADS_H
#define REPLAY_WORKER_THREADS_H

#include "replay/worker.h"

/* As worker_run. */
int run_threads(const struct worker_conf *conf);

#endif
