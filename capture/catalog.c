/* SPDX-License-Identifier: MIT */
#include "capture/catalog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void catalog_init(struct catalog *catalog)
{
    memset(catalog, 0, sizeof(*catalog));
}

void catalog_release(struct catalog *catalog)
{
    for (uint32_t i = 0; i < catalog->file_count; i++)
        free((char *)(uintptr_t)catalog->files[i].path);
    for (uint32_t i = 0; i < catalog->stream_count; i++)
        free((char *)(uintptr_t)catalog->streams[i].comm);
    free(catalog->files);
    free(catalog->streams);
    free(catalog->file_index.slots);
    free(catalog->stream_index.slots);
    catalog_init(catalog);
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

static void index_put(struct catalog_index *index, uint64_t hash, uint32_t entry)
{
    uint32_t mask = index->slot_count - 1, at = (uint32_t)hash & mask;

    while (index->slots[at])
        at = (at + 1) & mask;
    index->slots[at] = entry + 1;
}

/* Keeps the index at most half full. entry_hash gives the hash of entry i. */
static int index_grow(struct catalog *catalog, struct catalog_index *index, uint32_t count,
                      uint64_t (*entry_hash)(const struct catalog *catalog, uint32_t entry))
{
    struct catalog_index bigger;

    if (index->slot_count > 0 && count < index->slot_count / 2)
        return 0;
    if (index->slot_count >= UINT32_C(1) << 30)
        return -ENOMEM;
    bigger.slot_count = index->slot_count > 0 ? index->slot_count * 2 : 256;
    bigger.slots = calloc(bigger.slot_count, sizeof(*bigger.slots));
    if (!bigger.slots)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        index_put(&bigger, entry_hash(catalog, i), i);
    free(index->slots);
    *index = bigger;
    return 0;
}

static uint64_t file_hash_at(const struct catalog *catalog, uint32_t entry)
{
    return hash_file(&catalog->files[entry]);
}

static uint64_t stream_hash_at(const struct catalog *catalog, uint32_t entry)
{
    return hash_stream(&catalog->streams[entry]);
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

int catalog_file(struct catalog *catalog, const struct trace_file *facts, uint32_t *ret_file)
{
    struct catalog_index *index = &catalog->file_index;
    uint64_t hash = hash_file(facts);
    void *table = catalog->files;
    struct trace_file *entry;
    char *path;
    int err;

    if (index->slot_count > 0) {
        uint32_t mask = index->slot_count - 1;

        for (uint32_t at = (uint32_t)hash & mask; index->slots[at]; at = (at + 1) & mask) {
            entry = &catalog->files[index->slots[at] - 1];
            if (entry->device == facts->device && entry->inode == facts->inode &&
                !strcmp(entry->path, facts->path)) {
                *ret_file = index->slots[at] - 1;
                return 0;
            }
        }
    }
    err = table_grow(&table, catalog->file_count, &catalog->file_room, sizeof(*catalog->files));
    catalog->files = table;
    if (!err)
        err = index_grow(catalog, index, catalog->file_count, file_hash_at);
    if (err)
        return err;
    path = strdup(facts->path);
    if (!path)
        return -ENOMEM;
    entry = &catalog->files[catalog->file_count];
    *entry = *facts;
    entry->path = path;
    entry->ops = entry->bytes = entry->max_end = TRACE_UNKNOWN_U64;
    index_put(index, hash, catalog->file_count);
    *ret_file = catalog->file_count++;
    return 0;
}

int catalog_stream(struct catalog *catalog, const struct trace_stream *facts,
                   uint32_t *ret_stream)
{
    struct catalog_index *index = &catalog->stream_index;
    uint64_t hash = hash_stream(facts);
    void *table = catalog->streams;
    struct trace_stream *entry;
    char *comm;
    int err;

    if (index->slot_count > 0) {
        uint32_t mask = index->slot_count - 1;

        for (uint32_t at = (uint32_t)hash & mask; index->slots[at]; at = (at + 1) & mask) {
            entry = &catalog->streams[index->slots[at] - 1];
            if (entry->pid == facts->pid && entry->tid == facts->tid &&
                !strcmp(entry->comm, facts->comm)) {
                *ret_stream = index->slots[at] - 1;
                return 0;
            }
        }
    }
    err = table_grow(&table, catalog->stream_count, &catalog->stream_room,
                     sizeof(*catalog->streams));
    catalog->streams = table;
    if (!err)
        err = index_grow(catalog, index, catalog->stream_count, stream_hash_at);
    if (err)
        return err;
    comm = strdup(facts->comm);
    if (!comm)
        return -ENOMEM;
    entry = &catalog->streams[catalog->stream_count];
    *entry = *facts;
    entry->comm = comm;
    index_put(index, hash, catalog->stream_count);
    *ret_stream = catalog->stream_count++;
    return 0;
}
