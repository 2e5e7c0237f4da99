/* SPDX-License-Identifier: MIT */
/* Mappings of files. What is loaded and stored through them makes no call: that there are some
 * is noted, and counted as unseen. */
#include "capture/preload_uring.h"

#include <sys/mman.h>

#define MAPPINGS 1024 /* remembered at once, for munmap and msync; others are not recorded */

DEFINE_REAL(mmap64);
DEFINE_REAL(munmap);
DEFINE_REAL(msync);

struct mapping {
    uintptr_t start, end; /* start 0 = free */
    uint64_t offset;
    uint32_t file;
    uint16_t generation;
};

static struct mapping mappings[MAPPINGS];
static int mappings_lock;

/* Never waits: a mapping that cannot be looked at at once is let go. */
static bool mappings_take(void)
{
    return !__atomic_exchange_n(&mappings_lock, 1, __ATOMIC_ACQUIRE);
}

static void mappings_give(void)
{
    __atomic_store_n(&mappings_lock, 0, __ATOMIC_RELEASE);
}

static void mapping_add(const struct mapping *mapping)
{
    if (!mappings_take())
        return;
    for (unsigned int i = 0; i < MAPPINGS; i++) {
        if (!mappings[i].start) {
            mappings[i] = *mapping;
            break;
        }
    }
    mappings_give();
}

/* The mapping that address is in; forget: when it begins there and ends by end. */
static bool mapping_find(uintptr_t address, uintptr_t end, bool forget,
                         struct mapping *ret_mapping)
{
    bool found = false;

    if (!mappings_take())
        return false;
    for (unsigned int i = 0; i < MAPPINGS && !found; i++) {
        struct mapping *mapping = &mappings[i];

        if (!mapping->start || address < mapping->start || address >= mapping->end)
            continue;
        found = mapping->generation == shim_generation();
        *ret_mapping = *mapping;
        if (forget && address == mapping->start && end >= mapping->end)
            mapping->start = 0;
        break;
    }
    mappings_give();
    return found;
}

static void *map(void *address, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
    struct ring_record *record = NULL;
    struct mapping mapping;
    void *mapped;

    if (fd >= 0 && !(flags & MAP_ANONYMOUS))
        record = op_begin(fd, TRACE_MMAP, TRACE_API_MMAP, (uint64_t)offset, bytes);
    mapped = REAL(mmap64)(address, bytes, protection, flags, fd, offset);
    if (mapped != MAP_FAILED && UNLIKELY(uring_is(fd)))
        uring_mapped(fd, (uint64_t)offset, mapped);
    if (!record)
        return mapped;
    record->arg = (uint32_t)protection;
    mapping = (struct mapping){(uintptr_t)mapped, (uintptr_t)mapped + bytes, (uint64_t)offset,
                               record->file, shim_generation()};
    op_end(record, mapped == MAP_FAILED ? -1 : 0);
    if (mapped != MAP_FAILED) {
        mapping_add(&mapping);
        shim_unseen("mapped file", 1);
    }
    return mapped;
}

EXPORT void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return map(address, bytes, protection, flags, fd, offset);
}

EXPORT void *mmap64(void *address, size_t bytes, int protection, int flags, int fd,
                    off64_t offset)
{
    return map(address, bytes, protection, flags, fd, offset);
}

/* An op on a part of a mapping; NULL when it is not one of a recorded file. */
static struct ring_record *map_begin(unsigned int kind, void *address, size_t bytes)
{
    struct mapping mapping;
    struct ring_record *record;
    uintptr_t start = (uintptr_t)address;

    if (!shim_ready() || !mapping_find(start, start + bytes, kind == TRACE_MUNMAP, &mapping))
        return NULL;
    record = op_reserve(kind, TRACE_API_MMAP);
    if (record) {
        record->file = mapping.file;
        record->offset = mapping.offset + (start - mapping.start);
        record->length = bytes;
    }
    return record;
}

EXPORT int munmap(void *address, size_t bytes)
{
    struct ring_record *record = map_begin(TRACE_MUNMAP, address, bytes);
    int result;

    uring_unmapped(address);
    result = REAL(munmap)(address, bytes);

    if (record)
        op_end(record, result);
    return result;
}

EXPORT int msync(void *address, size_t bytes, int flags)
{
    struct ring_record *record = map_begin(TRACE_MSYNC, address, bytes);
    int result;

    if (record)
        record->arg = (uint32_t)flags;
    result = REAL(msync)(address, bytes, flags);
    if (record)
        op_end(record, result);
    return result;
}
