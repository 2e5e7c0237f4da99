/* SPDX-License-Identifier: MIT */
#include "traces/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The least that is asked of the source at once: a block header, and small blocks whole. */
#define FEED_READ_BYTES 8192

int feed_init(struct feed *feed, const struct trace_source *source)
{
    *feed = (struct feed){.source = *source};
    feed->source.name = strdup(source->name ? source->name : "tape");
    if (feed->source.name)
        return 0;
    if (source->close)
        source->close(source->context);
    return -ENOMEM;
}

void feed_release(struct feed *feed)
{
    if (feed->source.close)
        feed->source.close(feed->source.context);
    free((char *)feed->source.name);
    free(feed->data);
    *feed = (struct feed){0};
}

static int feed_room(struct feed *feed, size_t bytes)
{
    size_t capacity = feed->capacity ? feed->capacity : FEED_READ_BYTES;
    uint8_t *data;

    if (feed->start > 0 && feed->capacity - feed->start < bytes) {
        memmove(feed->data, feed->data + feed->start, feed->length);
        feed->start = 0;
    }
    if (feed->capacity - feed->start >= bytes)
        return 0;
    while (capacity < bytes)
        capacity *= 2;
    data = realloc(feed->data, capacity);
    if (!data)
        return -ENOMEM;
    feed->data = data;
    feed->capacity = capacity;
    return 0;
}

/* One read behind the window. A pipe gets its room bit by bit, so that a length which only
 * claims to be large costs nothing. */
static int feed_more(struct feed *feed, size_t bytes)
{
    size_t want = bytes - feed->length;
    int64_t got;
    int err;

    if (want < FEED_READ_BYTES)
        want = FEED_READ_BYTES;
    if (!feed->source.pread && want > feed->length + FEED_READ_BYTES)
        want = feed->length + FEED_READ_BYTES;
    err = feed_room(feed, feed->length + want);
    if (err < 0)
        return err;
    if (feed->source.pread)
        got = feed->source.pread(feed->source.context, feed->data + feed->start + feed->length,
                                 want, feed->offset + feed->length);
    else
        got = feed->source.read(feed->source.context, feed->data + feed->start + feed->length,
                                want);
    if (got < 0)
        return (int)got;
    if (got == 0)
        feed->ended = true;
    feed->length += (size_t)got;
    return 0;
}

/* A file's size is known: no room is made for what cannot come. */
static size_t feed_clamp(const struct feed *feed, size_t bytes)
{
    uint64_t size = feed->source.size_bytes;

    if (!feed->source.pread || size == TRACE_UNKNOWN_U64)
        return bytes;
    if (feed->offset >= size)
        return bytes < FEED_READ_BYTES ? bytes : FEED_READ_BYTES;
    return bytes < size - feed->offset ? bytes : (size_t)(size - feed->offset);
}

int feed_need(struct feed *feed, size_t bytes, const uint8_t **ret_data, size_t *ret_length)
{
    int err;

    bytes = feed_clamp(feed, bytes);
    while (feed->length < bytes && !feed->ended) {
        err = feed_more(feed, bytes);
        if (err < 0)
            return err;
    }
    *ret_data = feed->data + feed->start;
    *ret_length = feed->length;
    return 0;
}

int feed_skip(struct feed *feed, uint64_t bytes)
{
    const uint8_t *data;
    size_t length;
    int err;

    while (bytes > feed->length && !feed->source.pread && !feed->ended) {
        bytes -= feed->length;
        feed->offset += feed->length;
        feed->start = feed->length = 0;
        err = feed_need(feed, 1, &data, &length);
        if (err < 0)
            return err;
    }
    if (bytes > feed->length) {
        feed->offset += feed->source.pread ? bytes : feed->length;
        feed->start = feed->length = 0;
        return 0;
    }
    feed->offset += bytes;
    feed->start += (size_t)bytes;
    feed->length -= (size_t)bytes;
    return 0;
}

int feed_seek(struct feed *feed, uint64_t offset)
{
    if (!feed->source.pread)
        return -ESPIPE;
    if (offset >= feed->offset && offset - feed->offset <= feed->length)
        return feed_skip(feed, offset - feed->offset);
    feed->start = feed->length = 0;
    feed->offset = offset;
    feed->ended = false;
    return 0;
}
