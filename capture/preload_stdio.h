/* SPDX-License-Identifier: MIT */
/*
 * Deriving stdio's transfers, see preload_stdio.c. The pattern of a wrapper:
 *
 *     STDIO_CALL(call, file);
 *     got = REAL(fread)(...);
 *     if (call.file)
 *         stdio_end(&call, 0, got * size, count * size, true);
 */
#ifndef CAPTURE_PRELOAD_STDIO_H
#define CAPTURE_PRELOAD_STDIO_H

#include "capture/preload.h"

#include <stdio.h>

struct stdio_call {
    FILE *file; /* NULL: not recorded */
    uint64_t slot, begin_ns, end_ns;
    size_t pending, available, room; /* in the buffer before the call */
    int flags;
    bool empty; /* nothing was in the buffer either way */
    bool at_exit;
};

/* Locks the stream when there are other threads: stdio_release unlocks it, also when the thread
 * is cancelled in between. False, and call->file NULL, when the stream is not recorded. */
bool stdio_begin(struct stdio_call *call, FILE *file);
void stdio_release(struct stdio_call *call);
#define STDIO_CALL(name, stream)                                                               \
    struct stdio_call name __attribute__((cleanup(stdio_release))) = {.file = NULL};           \
    stdio_begin(&name, stream)

/* The function put produced bytes into the stream, or took consumed out of it of the wanted
 * that were asked for. whole: larger requests go past the buffer in one call (fread, fwrite).
 * errno is kept. */
void stdio_end(struct stdio_call *call, size_t produced, size_t consumed, size_t wanted,
               bool whole);
/* The descriptor's position; and the end of a function that seeks, with that from before it. */
uint64_t stdio_position(const struct stdio_call *call);
void stdio_end_seek(struct stdio_call *call, uint64_t position_before);
/* What is in the stream's buffer is about to be written: by fclose, or at_exit. */
void stdio_flushing(FILE *file, bool at_exit);

#endif
