/* SPDX-License-Identifier: MIT */
/*
 * Faults asked for by the environment variable IOTAPE_FAULT, so that tests reach the error paths
 * of a replay. The grammar is at the end of engine.h.
 *
 * The plan and its counters are the whole process's: "the 7th op" is one op, whichever worker
 * hands it over. fault_load is called by every engine_open; the same text again keeps the
 * counters, another text starts afresh. The fault_* queries are safe from any thread once loaded.
 */
#ifndef ENGINES_FAULT_H
#define ENGINES_FAULT_H

#include <stdbool.h>
#include <stdint.h>

struct diag;

/* 1 = a plan is in force, 0 = none is, -EINVAL with diag for text that cannot be understood. */
int fault_load(const char *text, struct diag *diag) __attribute__((warn_unused_result));
/* Forgets the plan and the counters: the next fault_load starts at 0. */
void fault_reset(void);

/* Each counts one event and returns what is to go wrong with it: 0 = nothing. */
int fault_open(void);               /* -errno for this open */
int fault_submit_op(void);          /* -errno for this op */
int fault_reap(void);               /* -errno for this reap; -EINTR = return early */
bool fault_short(void);             /* this transfer comes out short */
uint64_t fault_stall_ns(void);      /* this submit returns so much late */

/* The negative number of an errno by name ("EIO"), or 0. For messages and tests. */
int fault_errno(const char *name);

#endif
