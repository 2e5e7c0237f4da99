/* SPDX-License-Identifier: MIT */
#include "capture/bpf_maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void bpf_maps_init(struct bpf_maps *self)
{
    memset(self, 0, sizeof(*self));
}

void bpf_maps_release(struct bpf_maps *self)
{
    free(self->ranges);
    memset(self, 0, sizeof(*self));
}

static uint64_t range_end(uint64_t start, uint64_t length)
{
    return length > UINT64_MAX - start ? UINT64_MAX : start + length;
}

static int ranges_push(struct bpf_maps *self, const struct bpf_map_range *range)
{
    if (self->count == self->room) {
        size_t room = self->room ? self->room * 2 : 16;
        struct bpf_map_range *grown = realloc(self->ranges, room * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        self->ranges = grown;
        self->room = room;
    }
    self->ranges[self->count++] = *range;
    return 0;
}

bool bpf_maps_find(const struct bpf_maps *self, uint64_t start, uint64_t length, size_t index,
                   struct bpf_map_range *ret_part)
{
    uint64_t end = range_end(start, length);

    for (size_t i = 0; i < self->count; i++) {
        struct bpf_map_range part = self->ranges[i];

        if (part.start >= end || part.end <= start || index-- > 0)
            continue;
        if (part.start < start) {
            part.offset += start - part.start;
            part.start = start;
        }
        if (part.end > end)
            part.end = end;
        *ret_part = part;
        return true;
    }
    return false;
}

int bpf_maps_remove(struct bpf_maps *self, uint64_t start, uint64_t length)
{
    uint64_t end = range_end(start, length);

    for (size_t i = 0; i < self->count;) {
        struct bpf_map_range *range = &self->ranges[i], right = *range;

        if (range->start >= end || range->end <= start) {
            i++;
            continue;
        }
        if (range->end > end &&
            range->start < start) { /* a hole: the right part is a new one */
            right.offset += end - right.start;
            right.start = end;
            range->end = start;
            return ranges_push(self, &right);
        }
        if (range->start < start) {
            range->end = start;
            i++;
        } else if (range->end > end) {
            range->offset += end - range->start;
            range->start = end;
            i++;
        } else {
            *range = self->ranges[--self->count];
        }
    }
    return 0;
}

int bpf_maps_add(struct bpf_maps *self, uint64_t start, uint64_t length, uint32_t file,
                 uint64_t offset, uint64_t page_bytes)
{
    struct bpf_map_range range = {.start = start, .offset = offset, .file = file};
    int rc;

    if (length % page_bytes)
        length += page_bytes - length % page_bytes;
    range.end = range_end(start, length);
    rc = bpf_maps_remove(self, start, length);
    return rc ? rc : ranges_push(self, &range);
}

int bpf_maps_copy(struct bpf_maps *self, const struct bpf_maps *from)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < from->count; i++)
        rc = ranges_push(self, &from->ranges[i]);
    return rc;
}
