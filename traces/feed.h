/* SPDX-License-Identifier: MIT */
/*
 * A window on a source that moves forward over files and pipes alike, and anywhere on files.
 * Internal to traces/.
 */
#ifndef TRACES_FEED_H
#define TRACES_FEED_H

#include "traces/trace.h"

struct feed {
    struct trace_source source; /* name is owned */
    uint8_t *data;
    size_t start, length, capacity; /* data[start .. start + length) is the window */
    uint64_t offset;                /* of the window's first byte in the source */
    bool ended;                     /* nothing comes after the window */
};

/* Takes the source over, also on failure (-ENOMEM). */
int feed_init(struct feed *feed, const struct trace_source *source);
void feed_release(struct feed *feed);
/* Tries to make the window hold bytes; *ret_length tells what it holds (less only at the end of
 * the source). The returned place is valid until the next call. -errno of the source, -ENOMEM.
 */
int feed_need(struct feed *feed, size_t bytes, const uint8_t **ret_data, size_t *ret_length);
/* Moves forward by bytes, past the window too. */
int feed_skip(struct feed *feed, uint64_t bytes);
/* -ESPIPE on a pipe. */
int feed_seek(struct feed *feed, uint64_t offset);

#endif
