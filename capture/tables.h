/* SPDX-License-Identifier: MIT */
/*
 * The files and streams of a capture, each numbered once. One thread.
 *
 * A file is known by (device, inode, path); the facts of its first sight stay. A stream is
 * known by (pid, tid, comm). Entries never move in number; pointers are valid until the next
 * addition.
 */
#ifndef CAPTURE_TABLES_H
#define CAPTURE_TABLES_H

#include "traces/trace.h"

struct tables_index {
    uint32_t *slots; /* entry + 1, 0 = empty; a power of two of them */
    uint32_t slot_count;
};

struct tables {
    struct trace_file *files;
    uint32_t file_count, file_room;
    struct tables_index file_index;
    struct trace_stream *streams;
    uint32_t stream_count, stream_room;
    struct tables_index stream_index;
};

void tables_init(struct tables *tables);
void tables_release(struct tables *tables);
/* The number of the file with these facts, added when it is new. -ENOMEM. */
int tables_file(struct tables *tables, const struct trace_file *facts,
                uint32_t *ret_file) TRACE_MUST_CHECK;
int tables_stream(struct tables *tables, const struct trace_stream *facts,
                  uint32_t *ret_stream) TRACE_MUST_CHECK;

#endif
