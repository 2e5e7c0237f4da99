/* SPDX-License-Identifier: MIT */
/*
 * A set of chunks of 64 KiB, each of some file: which parts of a file set a tape touches.
 *
 * chunks_touch fills it; chunks_sort makes it ready for the questions that go by order, until the
 * next chunks_touch. One thread while it changes, any number while it is read. Memory: 32 bytes
 * and a hash slot for each 4 MiB of a file in which something is touched.
 */
#ifndef REPLAY_CHUNKS_H
#define REPLAY_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traces/trace.h"

#define CHUNK_SHIFT 16
#define CHUNK_BYTES (1ull << CHUNK_SHIFT)

struct chunk_set;

struct chunk_set *chunks_new(void); /* NULL without memory */
void chunks_free(struct chunk_set *set); /* NULL is fine */
/* Adds the chunks of length bytes at offset; length above 0, offset + length at most 2^63.
 * -ENOMEM; -E2BIG: more scattered than any real trace (2^24 places of 4 MiB). */
int chunks_touch(struct chunk_set *set, uint32_t file, uint64_t offset, uint64_t length)
    TRACE_MUST_CHECK;
/* Is the chunk that offset lies in touched? */
bool chunks_have(const struct chunk_set *set, uint32_t file, uint64_t offset);
/* -ENOMEM, else 0 and how many chunks there are. */
int chunks_sort(struct chunk_set *set, uint64_t *ret_count) TRACE_MUST_CHECK;
/* Sorted: how many touched chunks, by file and then offset, lie before that of offset. */
uint64_t chunks_rank(const struct chunk_set *set, uint32_t file, uint64_t offset);
/* Sorted: the first run of touched chunks of file that ends after `from`, in bytes; cut off at
 * from. false: there is none. */
bool chunks_next(const struct chunk_set *set, uint32_t file, uint64_t from, uint64_t *ret_from,
                 uint64_t *ret_to);

#endif
