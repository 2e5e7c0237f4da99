/* SPDX-License-Identifier: MIT */
/*
 * How many more threads this process may start: for the capacity callback of engines that need
 * one for each op in flight. Looks at kernel.threads-max, kernel.pid_max, ulimit -u (not for
 * root) and the cgroup's pids.max.
 */
#ifndef ENGINES_THREAD_LIMIT_H
#define ENGINES_THREAD_LIMIT_H

#include <stdint.h>

#include "engines/engine.h"

/* Fills capacity for an engine that needs count threads at depth in each of states (from 1); a
 * limit below what they need together is named in reason. */
void thread_limit_capacity(uint32_t depth, uint32_t count, uint32_t states,
                           struct engine_capacity *ret_capacity);

#endif
