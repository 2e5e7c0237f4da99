/* SPDX-License-Identifier: MIT */
/*
 * Operations that the replayer carries out itself, in the worker's thread: name-space calls, and
 * the kinds that the chosen engine does not issue. One worker's own.
 */
#ifndef REPLAY_CORE_OP_H
#define REPLAY_CORE_OP_H

#include <stdint.h>

#include "engines/engine.h"
#include "replay/prepared.h"

struct fdcache;
struct target_set;

struct core_op {
    const struct target_set *targets;
    struct fdcache *cache;         /* for targets that are not held open */
    const struct engine_env *env;  /* of the worker's engine */
};

/* Carries p out and returns its result: 0, bytes or -errno. Blocks. */
int64_t core_op_run(const struct core_op *core, const struct prepared *p);
/* A descriptor for p's target; *ret_handle is for core_op_put. -errno. */
int core_op_fd(const struct core_op *core, const struct prepared *p, uint32_t *ret_handle);
void core_op_put(const struct core_op *core, uint32_t handle);

#endif
