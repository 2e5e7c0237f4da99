/* SPDX-License-Identifier: MIT */
/*
 * Where an operation of the tape goes here: which target, at which offset and length, once
 * --target, --fit, --direct and --unaligned have had their say. The decoder asks, and whoever must
 * know beforehand what the replay will touch.
 */
#ifndef REPLAY_AIM_H
#define REPLAY_AIM_H

struct conf;
struct prepared;
struct target_set;
struct trace_op;

/*
 * Fills p's target and changes offset, length, flags and marks, which stand as recorded before.
 * Calls with two names get the second one's target in p->offset (see struct prepared). The targets
 * are open. Any thread.
 */
void aim(const struct conf *conf, const struct target_set *targets, const struct trace_op *op,
         struct prepared *p);

#endif
