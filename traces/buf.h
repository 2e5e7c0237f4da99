/* SPDX-License-Identifier: MIT */
/*
 * A growing byte string. Running out of memory is remembered in failed, further appends do
 * nothing: check once, when the string is whole.
 */
#ifndef TRACES_BUF_H
#define TRACES_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    uint8_t *data;
    size_t length, capacity;
    bool failed;
};

#define BUF_INIT                                                                               \
    {                                                                                          \
        0                                                                                      \
    }

/* Room for bytes more; the place to write them, or NULL. Does not change length. */
uint8_t *buf_reserve(struct buf *buf, size_t bytes);
void buf_append(struct buf *buf, const void *data, size_t bytes);
void buf_u8(struct buf *buf, uint8_t value);
void buf_varint(struct buf *buf, uint64_t value);
void buf_clear(struct buf *buf);   /* empty, memory kept, failed forgotten */
void buf_release(struct buf *buf); /* memory given back; may be used again */

#endif
