/* SPDX-License-Identifier: MIT */
/*
 * Zeroed memory that the parent makes before the workers start and that workers which are
 * processes share with it. Pages are not touched until used, so a generous size costs nothing.
 */
#ifndef REPLAY_AREA_H
#define REPLAY_AREA_H

#include <stdbool.h>
#include <stddef.h>

/* bytes of zeroed, page-aligned memory, or NULL. shared: seen by processes forked later. */
void *area_alloc(size_t bytes, bool shared);
void area_free(void *area, size_t bytes); /* NULL is fine */

#endif
