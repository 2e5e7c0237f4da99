/* SPDX-License-Identifier: MIT */
#include "convert/strace_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 256u

struct entry {
    char *path;
    size_t length;
    uint32_t file; /* TRACE_NONE_U32: only a folder above others */
    bool folder;
};

struct strace_paths {
    struct entry *slots;
    size_t size, count;
};

struct strace_paths *strace_paths_new(void)
{
    struct strace_paths *paths = calloc(1, sizeof(*paths));

    if (paths != NULL) {
        paths->slots = calloc(SLOTS_FIRST, sizeof(*paths->slots));
        paths->size = SLOTS_FIRST;
    }
    if (paths == NULL || paths->slots == NULL) {
        free(paths);
        return NULL;
    }
    return paths;
}

void strace_paths_free(struct strace_paths *paths)
{
    if (paths == NULL)
        return;
    for (size_t i = 0; i < paths->size; i++)
        free(paths->slots[i].path);
    free(paths->slots);
    free(paths);
}

static struct entry *probe(struct entry *slots, size_t size, const char *path, size_t length)
{
    uint64_t hash = 14695981039346656037ull;
    size_t at;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)path[i]) * 1099511628211ull;
    at = (size_t)(hash ^ hash >> 32) & (size - 1);
    while (slots[at].path != NULL &&
           (slots[at].length != length || memcmp(slots[at].path, path, length) != 0))
        at = (at + 1) & (size - 1);
    return &slots[at];
}

/* The entry of a path, made if need be; NULL: no memory. */
static struct entry *entry_of(struct strace_paths *paths, const char *path, size_t length)
{
    struct entry *entry = probe(paths->slots, paths->size, path, length), *slots;

    if (entry->path != NULL)
        return entry;
    if (paths->count >= paths->size / 2) {
        slots = calloc(2 * paths->size, sizeof(*slots));
        if (slots == NULL)
            return NULL;
        for (size_t i = 0; i < paths->size; i++)
            if (paths->slots[i].path != NULL)
                *probe(slots, 2 * paths->size, paths->slots[i].path, paths->slots[i].length) =
                    paths->slots[i];
        free(paths->slots);
        paths->slots = slots;
        paths->size *= 2;
        entry = probe(slots, paths->size, path, length);
    }
    entry->path = strndup(path, length);
    if (entry->path == NULL)
        return NULL;
    entry->length = length;
    entry->file = TRACE_NONE_U32;
    paths->count++;
    return entry;
}

int strace_paths_add(struct strace_paths *paths, const char *path, size_t length, uint32_t file,
                     int (*folder)(void *context, uint32_t file), void *context)
{
    struct entry *entry = entry_of(paths, path, length);
    int err = 0;

    if (entry == NULL)
        return -ENOMEM;
    if (entry->file == TRACE_NONE_U32) {
        entry->file = file;
        if (entry->folder)
            err = folder(context, file);
    }
    /* The folders above it, up to one that is known as such: those above that one are too. */
    while (err == 0 && length > 1) {
        const char *slash = memrchr(path, '/', length);

        if (slash == NULL || slash == path)
            break;
        length = (size_t)(slash - path);
        entry = entry_of(paths, path, length);
        if (entry == NULL)
            return -ENOMEM;
        if (entry->folder)
            break;
        entry->folder = true;
        if (entry->file != TRACE_NONE_U32)
            err = folder(context, entry->file);
    }
    return err;
}
