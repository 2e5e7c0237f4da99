/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of targets that are not held open for the whole run: there are too many of them,
 * or an operation of the tape gives their name to another file. Opened when needed, the least
 * recently used one that no operation is using is closed to make room. One worker's own.
 */
#ifndef REPLAY_FDCACHE_H
#define REPLAY_FDCACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "traces/trace.h"

struct fdcache;
struct target_set;

/* At most `capacity` open at once (at least 1). -ENOMEM. */
int fdcache_new(struct fdcache **ret_cache, const struct target_set *targets, uint32_t capacity)
    TRACE_MUST_CHECK;
/*
 * An open descriptor of the target and in *ret_handle what fdcache_put takes back; until then it
 * stays open. create: make the file if it is missing. -errno as open(2); -EMFILE when all are
 * in use.
 */
int fdcache_get(struct fdcache *cache, uint32_t target, bool create, uint32_t *ret_handle);
void fdcache_put(struct fdcache *cache, uint32_t handle);
uint64_t fdcache_opens(const struct fdcache *cache); /* how often a file was opened */
void fdcache_free(struct fdcache *cache);            /* NULL is fine */

#endif
