/* SPDX-License-Identifier: MIT */
/*
 * One op by the blocking system calls: what the sync engine and the pool engines' threads do.
 * No state; any thread. EINTR is retried. Flags as in engine.h.
 */
#ifndef ENGINES_BLOCKING_H
#define ENGINES_BLOCKING_H

#include <stdint.h>

#include "engines/engine.h"

/* The kinds blocking_run knows. */
#define BLOCKING_OPS                                                                           \
    (ENGINE_OPS_RW | ENGINE_OPS_SYNC | ENGINE_OP(TRACE_SYNC_RANGE) |                           \
     ENGINE_OP(TRACE_DISCARD) | ENGINE_OP(TRACE_WRITE_ZEROES) | ENGINE_OP(TRACE_FLUSH) |       \
     ENGINE_OP(TRACE_SYNCFS) | ENGINE_OP(TRACE_READAHEAD) | ENGINE_OP(TRACE_FALLOCATE) |       \
     ENGINE_OP(TRACE_TRUNCATE))

/*
 * Executes op and returns its result: bytes, 0 or -errno; a short transfer is returned as it is.
 * A plain read or write is one pread or pwrite; one with flags or without an offset is one
 * preadv2 or pwritev2. A write with preflush is preceded by fdatasync. Discard and write-zeroes
 * are BLKDISCARD and BLKZEROOUT on a block device, a punched hole and a zeroed range on a file.
 */
int64_t blocking_run(const struct engine_op *op, const struct engine_env *env);

/* The RWF_ bits for op's flags, of those its kind has a use for. */
int blocking_rwf(const struct engine_op *op);

#endif
