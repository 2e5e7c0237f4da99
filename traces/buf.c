/* SPDX-License-Identifier: MIT */
#include "traces/buf.h"

#include <stdlib.h>
#include <string.h>

#include "traces/bytes.h"

uint8_t *buf_reserve(struct buf *buf, size_t bytes)
{
    size_t capacity = buf->capacity ? buf->capacity : 256;
    uint8_t *data;

    if (buf->failed)
        return NULL;
    if (bytes <= buf->capacity - buf->length)
        return buf->data + buf->length;
    if (bytes > SIZE_MAX / 4 - buf->length) {
        buf->failed = true;
        return NULL;
    }
    while (capacity - buf->length < bytes)
        capacity += capacity / 2;
    data = realloc(buf->data, capacity);
    if (!data) {
        buf->failed = true;
        return NULL;
    }
    buf->data = data;
    buf->capacity = capacity;
    return data + buf->length;
}

void buf_append(struct buf *buf, const void *data, size_t bytes)
{
    uint8_t *to = buf_reserve(buf, bytes);

    if (!to || bytes == 0)
        return;
    memcpy(to, data, bytes);
    buf->length += bytes;
}

void buf_u8(struct buf *buf, uint8_t value)
{
    uint8_t *to = buf_reserve(buf, 1);

    if (!to)
        return;
    *to = value;
    buf->length++;
}

void buf_varint(struct buf *buf, uint64_t value)
{
    uint8_t *to = buf_reserve(buf, VARINT_MAX_BYTES);

    if (to)
        buf->length += store_varint(to, value);
}

void buf_clear(struct buf *buf)
{
    buf->length = 0;
    buf->failed = false;
}

void buf_release(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf)BUF_INIT;
}
