/* SPDX-License-Identifier: MIT */
/*
 * Compressed bytes read ahead: a thread of its own decompresses while the importer parses. Used
 * by one thread at a time; the thread inside shares nothing but the chunks handed over.
 */
#ifndef CONVERT_AHEAD_H
#define CONVERT_AHEAD_H

#include <stddef.h>
#include <stdint.h>

#include "convert/unpack.h"

struct ahead;

/*
 * Reads on from unpack (taken over, also on failure). The bytes are the same as without a
 * thread, and so are the errors, which come where the bytes before them end. -ENOMEM.
 */
int ahead_start(struct ahead **ret_ahead, struct unpack *unpack, struct diag *diag);
/* A count, 0 at the end, else -errno with the diag given to open set. May be short. */
int64_t ahead_read(struct ahead *ahead, void *buffer, size_t bytes);
/* Ends the thread and gives the unpack back, somewhere behind what was read; NULL after an
 * error. */
struct unpack *ahead_end(struct ahead *ahead);
void ahead_free(struct ahead *ahead); /* NULL is fine */

#endif
