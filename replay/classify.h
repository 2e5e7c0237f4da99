/* SPDX-License-Identifier: MIT */
/*
 * What becomes of a recorded operation under the options given: issued by the engine, carried
 * out by the replayer itself, or skipped and why. The plan and the decoder ask the same function,
 * so what --plan says is what happens.
 */
#ifndef REPLAY_CLASSIFY_H
#define REPLAY_CLASSIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/prepared.h"

struct conf;

/* Longest read or write that is issued. */
#define CLASSIFY_MAX_TRANSFER (1ull << 30)

/*
 * The operation as it is replayed, op itself or a changed copy in *room: what a program's loads and
 * stores did to the page cache of a mapped file (fill, writeback) is done by reads and writes, unless
 * --mapped skip says otherwise. Whoever looks at a tape's operations for the replay asks this first.
 */
const struct trace_op *classify_op(const struct conf *conf, const struct trace_op *op,
                                   struct trace_op *room);
/* The kind that a recorded one is compared as: that of what classify_op makes of it. */
unsigned int classify_kind(unsigned int kind);
/* file is NULL where the operation names none. */
enum prepared_action classify(const struct conf *conf, const struct trace_file *file,
                              const struct trace_op *op, enum skip_reason *ret_skip);
/* Is it within --start and --end? issue_ns is tape time. */
bool classify_in_window(const struct conf *conf, int64_t issue_ns);
/* Does it change data or names? */
bool classify_mutates(const struct trace_op *op);
/* Must the operations on its file before it be complete, and those after it wait for it? arg as in
 * struct trace_op. */
bool classify_barrier(unsigned int kind, uint32_t arg);
/* Does it change which file a name stands for (so that open descriptors go stale)? */
bool classify_renames(unsigned int kind);

#endif
