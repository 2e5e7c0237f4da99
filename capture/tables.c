/* SPDX-License-Identifier: MIT */
#include "capture/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void tables_init(struct tables *tables)
{
    memset(tables, 0, sizeof(*tables));
}

void tables_release(struct tables *tables)
{
    for (uint32_t i = 0; i < tables->file_count; i++)
        free((char *)(uintptr_t)tables->files[i].path);
    for (uint32_t i = 0; i < tables->stream_count; i++)
        free((char *)(uintptr_t)tables->streams[i].comm);
    free(tables->files);
    free(tables->streams);
    free(tables->file_index.slots);
    free(tables->stream_index.slots);
    tables_init(tables);
}

/* FNV-1a: short keys, and nobody gains by making them collide but in their own capture. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t hash_file(const struct trace_file *file)
{
    uint64_t hash = 0xcbf29ce484222325u;

    hash = hash_bytes(hash, &file->device, sizeof(file->device));
    hash = hash_bytes(hash, &file->inode, sizeof(file->inode));
    return hash_bytes(hash, file->path, strlen(file->path));
}

static uint64_t hash_stream(const struct trace_stream *stream)
{
    uint64_t hash = 0xcbf29ce484222325u;

    hash = hash_bytes(hash, &stream->pid, sizeof(stream->pid));
    hash = hash_bytes(hash, &stream->tid, sizeof(stream->tid));
    return hash_bytes(hash, stream->comm, strlen(stream->comm));
}

static void index_put(struct tables_index *index, uint64_t hash, uint32_t entry)
{
    uint32_t mask = index->slot_count - 1, at = (uint32_t)hash & mask;

    while (index->slots[at])
        at = (at + 1) & mask;
    index->slots[at] = entry + 1;
}

/* Keeps the index at most half full. entry_hash gives the hash of entry i. */
static int index_grow(struct tables *tables, struct tables_index *index, uint32_t count,
                      uint64_t (*entry_hash)(const struct tables *tables, uint32_t entry))
{
    struct tables_index bigger;

    if (index->slot_count > 0 && count < index->slot_count / 2)
        return 0;
    if (index->slot_count >= UINT32_C(1) << 30)
        return -ENOMEM;
    bigger.slot_count = index->slot_count > 0 ? index->slot_count * 2 : 256;
    bigger.slots = calloc(bigger.slot_count, sizeof(*bigger.slots));
    if (!bigger.slots)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        index_put(&bigger, entry_hash(tables, i), i);
    free(index->slots);
    *index = bigger;
    return 0;
}

static uint64_t file_hash_at(const struct tables *tables, uint32_t entry)
{
    return hash_file(&tables->files[entry]);
}

static uint64_t stream_hash_at(const struct tables *tables, uint32_t entry)
{
    return hash_stream(&tables->streams[entry]);
}

/* Room for one more entry of size bytes. */
static int table_grow(void **table, uint32_t count, uint32_t *room, size_t size)
{
    uint32_t more = *room ? *room * 2 : 64;
    void *grown;

    if (count < *room)
        return 0;
    if (*room >= UINT32_C(1) << 29)
        return -ENOMEM;
    grown = realloc(*table, more * size);
    if (!grown)
        return -ENOMEM;
    *table = grown;
    *room = more;
    return 0;
}

int tables_file(struct tables *tables, const struct trace_file *facts, uint32_t *ret_file)
{
    struct tables_index *index = &tables->file_index;
    uint64_t hash = hash_file(facts);
    void *table = tables->files;
    struct trace_file *entry;
    char *path;
    int err;

    if (index->slot_count > 0) {
        uint32_t mask = index->slot_count - 1;

        for (uint32_t at = (uint32_t)hash & mask; index->slots[at]; at = (at + 1) & mask) {
            entry = &tables->files[index->slots[at] - 1];
            if (entry->device == facts->device && entry->inode == facts->inode &&
                !strcmp(entry->path, facts->path)) {
                *ret_file = index->slots[at] - 1;
                return 0;
            }
        }
    }
    err = table_grow(&table, tables->file_count, &tables->file_room, sizeof(*tables->files));
    tables->files = table;
    if (!err)
        err = index_grow(tables, index, tables->file_count, file_hash_at);
    if (err)
        return err;
    path = strdup(facts->path);
    if (!path)
        return -ENOMEM;
    entry = &tables->files[tables->file_count];
    *entry = *facts;
    entry->path = path;
    entry->ops = entry->bytes = entry->max_end = TRACE_UNKNOWN_U64;
    index_put(index, hash, tables->file_count);
    *ret_file = tables->file_count++;
    return 0;
}

int tables_stream(struct tables *tables, const struct trace_stream *facts, uint32_t *ret_stream)
{
    struct tables_index *index = &tables->stream_index;
    uint64_t hash = hash_stream(facts);
    void *table = tables->streams;
    struct trace_stream *entry;
    char *comm;
    int err;

    if (index->slot_count > 0) {
        uint32_t mask = index->slot_count - 1;

        for (uint32_t at = (uint32_t)hash & mask; index->slots[at]; at = (at + 1) & mask) {
            entry = &tables->streams[index->slots[at] - 1];
            if (entry->pid == facts->pid && entry->tid == facts->tid &&
                !strcmp(entry->comm, facts->comm)) {
                *ret_stream = index->slots[at] - 1;
                return 0;
            }
        }
    }
    err = table_grow(&table, tables->stream_count, &tables->stream_room,
                     sizeof(*tables->streams));
    tables->streams = table;
    if (!err)
        err = index_grow(tables, index, tables->stream_count, stream_hash_at);
    if (err)
        return err;
    comm = strdup(facts->comm);
    if (!comm)
        return -ENOMEM;
    entry = &tables->streams[tables->stream_count];
    *entry = *facts;
    entry->comm = comm;
    index_put(index, hash, tables->stream_count);
    *ret_stream = tables->stream_count++;
    return 0;
}
