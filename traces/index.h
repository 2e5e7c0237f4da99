/* SPDX-License-Identifier: MIT */
/*
 * Where the blocks of operations are and what times they hold: written at the end of a tape as
 * a shortcut for seeks. Beyond INDEX_ENTRIES_MAX neighbours are merged two by two, so that the
 * memory of a writer does not grow with the tape. Internal to traces/.
 */
#ifndef TRACES_INDEX_H
#define TRACES_INDEX_H

#include "traces/buf.h"
#include "traces/bytes.h"
#include "traces/trace.h"

#define INDEX_ENTRIES_MAX 65536u

struct index_entry {
    uint64_t offset; /* of the first block in the file */
    int64_t last_ns; /* highest issue time of its blocks */
};

struct index {
    struct index_entry *entries;
    uint32_t count, capacity;
    uint32_t blocks_per_entry; /* a power of two */
    uint32_t blocks_in_last;
};

#define INDEX_INIT                                                                             \
    {                                                                                          \
        .blocks_per_entry = 1                                                                  \
    }

int index_add(struct index *index, uint64_t offset, int64_t last_ns) TRACE_MUST_CHECK;
void index_put(const struct index *index, struct buf *out);
/* -EBADMSG, -ENOMEM; ret_index is untouched then. */
int index_take(struct index *ret_index, struct cursor *in, uint32_t count) TRACE_MUST_CHECK;
/* Offset of the first block from which on to look for time_ns, or TRACE_UNKNOWN_U64: all blocks
 * end before it. */
uint64_t index_find(const struct index *index, int64_t time_ns);
void index_release(struct index *index);

#endif
