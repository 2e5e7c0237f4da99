/* SPDX-License-Identifier: MIT */
#include "traces/index.h"

#include <errno.h>
#include <stdlib.h>

static void index_thin(struct index *index)
{
    uint32_t to = 0;

    for (uint32_t from = 0; from < index->count; from += 2, to++) {
        struct index_entry *entry = &index->entries[from];

        if (from + 1 < index->count && entry[1].last_ns > entry->last_ns)
            entry->last_ns = entry[1].last_ns;
        index->entries[to] = *entry;
    }
    index->count = to;
    index->blocks_per_entry *= 2;
    index->blocks_in_last = index->blocks_per_entry;
}

int index_add(struct index *index, uint64_t offset, int64_t last_ns)
{
    struct index_entry *more;

    if (index->count > 0 && index->blocks_in_last < index->blocks_per_entry) {
        struct index_entry *last = &index->entries[index->count - 1];

        if (last_ns > last->last_ns)
            last->last_ns = last_ns;
        index->blocks_in_last++;
        return 0;
    }
    if (index->count == INDEX_ENTRIES_MAX)
        index_thin(index);
    if (index->count == index->capacity) {
        uint32_t capacity = index->capacity ? index->capacity * 2 : 64;

        more = realloc(index->entries, capacity * sizeof(*more));
        if (!more)
            return -ENOMEM;
        index->entries = more;
        index->capacity = capacity;
    }
    index->entries[index->count++] = (struct index_entry){.offset = offset, .last_ns = last_ns};
    index->blocks_in_last = 1;
    return 0;
}

void index_put(const struct index *index, struct buf *out)
{
    uint64_t offset = 0;
    int64_t last_ns = 0;

    for (uint32_t i = 0; i < index->count; i++) {
        const struct index_entry *entry = &index->entries[i];

        buf_varint(out, entry->offset - offset);
        buf_varint(out, zigzag_encode((int64_t)((uint64_t)entry->last_ns - (uint64_t)last_ns)));
        offset = entry->offset;
        last_ns = entry->last_ns;
    }
}

int index_take(struct index *ret_index, struct cursor *in, uint32_t count)
{
    struct index index = INDEX_INIT;
    uint64_t offset = 0, last_ns = 0;

    if (count > INDEX_ENTRIES_MAX)
        return -EBADMSG;
    index.entries = malloc((count ? count : 1) * sizeof(*index.entries));
    if (!index.entries)
        return -ENOMEM;
    index.count = index.capacity = count;
    for (uint32_t i = 0; i < count; i++) {
        offset += cursor_varint(in);
        last_ns += (uint64_t)zigzag_decode(cursor_varint(in));
        index.entries[i] = (struct index_entry){.offset = offset, .last_ns = (int64_t)last_ns};
    }
    if (in->failed) {
        index_release(&index);
        return -EBADMSG;
    }
    *ret_index = index;
    return 0;
}

uint64_t index_find(const struct index *index, int64_t time_ns)
{
    for (uint32_t i = 0; i < index->count; i++)
        if (index->entries[i].last_ns >= time_ns)
            return index->entries[i].offset;
    return TRACE_UNKNOWN_U64;
}

void index_release(struct index *index)
{
    free(index->entries);
    *index = (struct index)INDEX_INIT;
}
