/* SPDX-License-Identifier: MIT */
#include "convert/catalog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BITS  10
#define PAGE_COUNT (1u << PAGE_BITS)
#define COMM_MAX   255u

void catalog_init(struct catalog *catalog)
{
    memset(catalog, 0, sizeof(*catalog));
    catalog->last_file = catalog->last_stream = TRACE_NONE_U32;
}

static void slots_release(struct catalog_slots *slots)
{
    free(slots->slots);
    free(slots->hashes);
}

void catalog_release(struct catalog *catalog)
{
    for (uint32_t i = 0; i < catalog->file_count; i++)
        free((char *)catalog_file_at(catalog, i)->path);
    for (uint32_t i = 0; i < catalog->file_count; i += PAGE_COUNT)
        free(catalog->file_pages[i >> PAGE_BITS]);
    for (uint32_t i = 0; i < catalog->stream_count; i++)
        free((char *)catalog_stream_at(catalog, i)->comm);
    for (uint32_t i = 0; i < catalog->stream_count; i += PAGE_COUNT)
        free(catalog->stream_pages[i >> PAGE_BITS]);
    free(catalog->file_pages);
    free(catalog->stream_pages);
    slots_release(&catalog->file_slots);
    slots_release(&catalog->stream_slots);
    catalog_init(catalog);
}

struct trace_file *catalog_file_at(const struct catalog *catalog, uint32_t file)
{
    if (file >= catalog->file_count)
        return NULL;
    return &catalog->file_pages[file >> PAGE_BITS][file & (PAGE_COUNT - 1)];
}

struct trace_stream *catalog_stream_at(const struct catalog *catalog, uint32_t stream)
{
    if (stream >= catalog->stream_count)
        return NULL;
    return &catalog->stream_pages[stream >> PAGE_BITS][stream & (PAGE_COUNT - 1)];
}

static uint32_t hash_bytes(const char *bytes, size_t length, uint64_t seed)
{
    uint64_t hash = seed ^ (length * 0x9e3779b97f4a7c15u);

    while (length >= 8) {
        uint64_t word;

        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
        bytes += 8;
        length -= 8;
    }
    while (length--)
        hash = (hash ^ (uint8_t)*bytes++) * 0x100000001b3u;
    hash *= 0xc4ceb9fe1a85ec53u;
    return (uint32_t)(hash >> 32);
}

/* Room for one more entry, at most three quarters full. */
static int slots_grow(struct catalog_slots *slots)
{
    uint32_t size = slots->slots ? (slots->mask + 1) * 2 : 256;
    struct catalog_slots next = {.mask = size - 1, .used = slots->used};

    if (slots->slots && (slots->used + 1) < (slots->mask + 1) / 4 * 3)
        return 0;
    if (size == 0)
        return -E2BIG;
    next.slots = calloc(size, sizeof(*next.slots));
    next.hashes = malloc(size * sizeof(*next.hashes));
    if (!next.slots || !next.hashes) {
        slots_release(&next);
        return -ENOMEM;
    }
    for (uint32_t i = 0; slots->slots && i <= slots->mask; i++) {
        uint32_t at;

        if (!slots->slots[i])
            continue;
        for (at = slots->hashes[i] & next.mask; next.slots[at]; at = (at + 1) & next.mask)
            ;
        next.slots[at] = slots->slots[i];
        next.hashes[at] = slots->hashes[i];
    }
    slots_release(slots);
    *slots = next;
    return 0;
}

static void slots_put(struct catalog_slots *slots, uint32_t at, uint32_t hash, uint32_t entry)
{
    slots->slots[at] = entry + 1;
    slots->hashes[at] = hash;
    slots->used++;
}

/* A zeroed entry of entry_bytes at the end of a paged table. */
static int page_append(void ***pages, uint32_t count, size_t entry_bytes)
{
    void **grown, *page;

    if (count >= TRACE_NONE_U32 - 1)
        return -E2BIG;
    if (count & (PAGE_COUNT - 1))
        return 0;
    grown = realloc(*pages, ((count >> PAGE_BITS) + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    *pages = grown;
    page = calloc(PAGE_COUNT, entry_bytes);
    if (!page)
        return -ENOMEM;
    grown[count >> PAGE_BITS] = page;
    return 0;
}

static char *copy_text(const char *text, size_t length)
{
    char *copy = malloc(length + 1);

    if (!copy)
        return NULL;
    for (size_t i = 0; i < length; i++)
        copy[i] = text[i] ? text[i] : '?';
    copy[length] = '\0';
    return copy;
}

static bool same_text(const char *stored, const char *text, size_t length)
{
    return !memcmp(stored, text, length) && stored[length] == '\0';
}

static bool file_is(const struct catalog *catalog, uint32_t file, const char *path,
                    size_t length)
{
    const char *stored = catalog_file_at(catalog, file)->path;

    return strlen(stored) == length && same_text(stored, path, length);
}

int catalog_file(struct catalog *catalog, const char *path, size_t length, uint32_t *ret_file)
{
    struct trace_file *file;
    uint32_t hash, at;
    int err;

    if (catalog->last_file != TRACE_NONE_U32 &&
        file_is(catalog, catalog->last_file, path, length)) {
        *ret_file = catalog->last_file;
        return 0;
    }
    if (length > CATALOG_PATH_MAX)
        return -E2BIG;
    err = slots_grow(&catalog->file_slots);
    if (err < 0)
        return err;
    hash = hash_bytes(path, length, 0);
    for (at = hash & catalog->file_slots.mask; catalog->file_slots.slots[at];
         at = (at + 1) & catalog->file_slots.mask) {
        uint32_t entry = catalog->file_slots.slots[at] - 1;

        if (catalog->file_slots.hashes[at] == hash && file_is(catalog, entry, path, length)) {
            *ret_file = catalog->last_file = entry;
            return 0;
        }
    }
    err = page_append((void ***)&catalog->file_pages, catalog->file_count, sizeof(*file));
    if (err < 0)
        return err;
    file = &catalog->file_pages[catalog->file_count >> PAGE_BITS]
                               [catalog->file_count & (PAGE_COUNT - 1)];
    file->path = copy_text(path, length);
    if (!file->path)
        return -ENOMEM;
    file->size_bytes = TRACE_UNKNOWN_U64;
    file->ops = file->bytes = file->max_end = TRACE_UNKNOWN_U64;
    slots_put(&catalog->file_slots, at, hash, catalog->file_count);
    *ret_file = catalog->last_file = catalog->file_count++;
    return 0;
}

static bool stream_is(const struct catalog *catalog, uint32_t stream, uint32_t pid,
                      uint32_t tid, const char *comm, size_t length)
{
    const struct trace_stream *stored = catalog_stream_at(catalog, stream);

    return stored->pid == pid && stored->tid == tid && strlen(stored->comm) == length &&
           same_text(stored->comm, comm, length);
}

int catalog_stream(struct catalog *catalog, uint32_t pid, uint32_t tid, const char *comm,
                   size_t comm_length, uint32_t *ret_stream)
{
    struct trace_stream *stream;
    uint32_t hash, at;
    int err;

    if (comm_length > COMM_MAX)
        comm_length = COMM_MAX;
    if (catalog->last_stream != TRACE_NONE_U32 &&
        stream_is(catalog, catalog->last_stream, pid, tid, comm, comm_length)) {
        *ret_stream = catalog->last_stream;
        return 0;
    }
    err = slots_grow(&catalog->stream_slots);
    if (err < 0)
        return err;
    hash = hash_bytes(comm, comm_length, (uint64_t)pid << 32 | tid);
    for (at = hash & catalog->stream_slots.mask; catalog->stream_slots.slots[at];
         at = (at + 1) & catalog->stream_slots.mask) {
        uint32_t entry = catalog->stream_slots.slots[at] - 1;

        if (catalog->stream_slots.hashes[at] == hash &&
            stream_is(catalog, entry, pid, tid, comm, comm_length)) {
            *ret_stream = catalog->last_stream = entry;
            return 0;
        }
    }
    err = page_append((void ***)&catalog->stream_pages, catalog->stream_count, sizeof(*stream));
    if (err < 0)
        return err;
    stream = &catalog->stream_pages[catalog->stream_count >> PAGE_BITS]
                                   [catalog->stream_count & (PAGE_COUNT - 1)];
    stream->comm = copy_text(comm, comm_length);
    if (!stream->comm)
        return -ENOMEM;
    stream->pid = pid;
    stream->tid = tid;
    slots_put(&catalog->stream_slots, at, hash, catalog->stream_count);
    *ret_stream = catalog->last_stream = catalog->stream_count++;
    return 0;
}
