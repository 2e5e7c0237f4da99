/* SPDX-License-Identifier: MIT */
/*
 * The file and stream catalog of one conversion, with look-up by what names an entry. Entries
 * never move once made, and their strings live as long as the catalog. Memory grows with the
 * number of different files and streams, never with the ops.
 */
#ifndef CONVERT_CATALOG_H
#define CONVERT_CATALOG_H

#include <stddef.h>
#include <stdint.h>

#include "traces/trace.h"

#define CATALOG_PATH_MAX (64u << 10)

struct catalog_slots {
    uint32_t *slots; /* entry + 1; 0 = empty */
    uint32_t *hashes;
    uint32_t mask, used;
};

struct catalog {
    struct trace_file **file_pages;
    struct trace_stream **stream_pages;
    uint32_t file_count, stream_count;
    struct catalog_slots file_slots, stream_slots;
    uint32_t last_file, last_stream; /* most ops name what the one before named */
};

void catalog_init(struct catalog *catalog);
void catalog_release(struct catalog *catalog);

/* The entry of that path (a NUL inside becomes '?'), made when new. -ENOMEM, or -E2BIG: path
 * longer than CATALOG_PATH_MAX, or 2^32 - 2 entries. */
int catalog_file(struct catalog *catalog, const char *path, size_t length, uint32_t *ret_file);
int catalog_stream(struct catalog *catalog, uint32_t pid, uint32_t tid, const char *comm,
                   size_t comm_length, uint32_t *ret_stream);

/* NULL when there is none of that number. */
struct trace_file *catalog_file_at(const struct catalog *catalog, uint32_t file);
struct trace_stream *catalog_stream_at(const struct catalog *catalog, uint32_t stream);

#endif
