/* SPDX-License-Identifier: MIT */
#include "replay/chunks.h"

#include <errno.h>
#include <stdlib.h>

#define REGION_SHIFT  22 /* 64 chunks: the bits of one word */
#define REGION_CHUNKS 64u
#define REGIONS_MAX   (1u << 24)

struct region {
    uint64_t number; /* offset >> REGION_SHIFT */
    uint64_t bits;   /* 0: a free slot of the table */
    uint64_t first;  /* sorted: touched chunks before its own */
    uint32_t file;
};

struct chunk_set {
    struct region *table; /* an open-addressed hash table */
    size_t count, size;
    struct region **sorted; /* NULL until chunks_sort */
};

struct chunk_set *chunks_new(void)
{
    return calloc(1, sizeof(struct chunk_set));
}

void chunks_free(struct chunk_set *set)
{
    if (set == NULL)
        return;
    free(set->sorted);
    free(set->table);
    free(set);
}

static struct region *region_slot(struct region *table, size_t size, uint32_t file,
                                  uint64_t number)
{
    uint64_t key = (number ^ (uint64_t)file << 40) * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(key >> 24) & (size - 1);

    while (table[at].bits != 0 && (table[at].file != file || table[at].number != number))
        at = (at + 1) & (size - 1);
    return &table[at];
}

static int table_grow(struct chunk_set *set)
{
    size_t size = set->size ? set->size * 2 : 64;
    struct region *table = calloc(size, sizeof *table);

    if (table == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < set->size; i++)
        if (set->table[i].bits != 0)
            *region_slot(table, size, set->table[i].file, set->table[i].number) = set->table[i];
    free(set->table);
    set->table = table;
    set->size = size;
    return 0;
}

static int region_touch(struct chunk_set *set, uint32_t file, uint64_t number, uint64_t bits)
{
    struct region *region;

    if (set->count * 2 >= set->size && table_grow(set) != 0)
        return -ENOMEM;
    region = region_slot(set->table, set->size, file, number);
    if (region->bits == 0) {
        if (set->count == REGIONS_MAX)
            return -E2BIG;
        region->file = file;
        region->number = number;
        set->count++;
    }
    region->bits |= bits;
    return 0;
}

/* Bits from..to, both included. */
static uint64_t bit_run(uint64_t from, uint64_t to)
{
    return (UINT64_MAX << from) & (UINT64_MAX >> (REGION_CHUNKS - 1 - to));
}

int chunks_touch(struct chunk_set *set, uint32_t file, uint64_t offset, uint64_t length)
{
    uint64_t first = offset >> CHUNK_SHIFT;
    uint64_t last = (offset + length - 1) >> CHUNK_SHIFT;
    int err = 0;

    free(set->sorted);
    set->sorted = NULL;
    for (uint64_t number = first / REGION_CHUNKS; number <= last / REGION_CHUNKS && err == 0;
         number++) {
        uint64_t from = number == first / REGION_CHUNKS ? first % REGION_CHUNKS : 0;
        uint64_t to = number == last / REGION_CHUNKS ? last % REGION_CHUNKS : REGION_CHUNKS - 1;

        err = region_touch(set, file, number, bit_run(from, to));
    }
    return err;
}

/* NULL: nothing of that region is touched. */
static const struct region *region_find(const struct chunk_set *set, uint32_t file,
                                        uint64_t offset)
{
    const struct region *region;

    if (set->size == 0)
        return NULL;
    region = region_slot(set->table, set->size, file, offset >> REGION_SHIFT);
    return region->bits != 0 ? region : NULL;
}

static uint64_t bit_of(uint64_t offset)
{
    return (offset >> CHUNK_SHIFT) % REGION_CHUNKS;
}

bool chunks_have(const struct chunk_set *set, uint32_t file, uint64_t offset)
{
    const struct region *region = region_find(set, file, offset);

    return region != NULL && (region->bits >> bit_of(offset) & 1);
}

static int region_order(const struct region *region, uint32_t file, uint64_t number)
{
    if (region->file != file)
        return region->file < file ? -1 : 1;
    return region->number < number ? -1 : region->number > number;
}

static int region_compare(const void *a, const void *b)
{
    const struct region *const *x = a, *const *y = b;

    return region_order(*x, (*y)->file, (*y)->number);
}

int chunks_sort(struct chunk_set *set, uint64_t *ret_count)
{
    size_t count = 0;
    uint64_t chunks = 0;

    free(set->sorted);
    set->sorted = calloc(set->count + 1, sizeof *set->sorted);
    if (set->sorted == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < set->size; i++)
        if (set->table[i].bits != 0)
            set->sorted[count++] = &set->table[i];
    qsort(set->sorted, count, sizeof *set->sorted, region_compare);
    for (size_t i = 0; i < count; i++) {
        set->sorted[i]->first = chunks;
        chunks += (uint64_t)__builtin_popcountll(set->sorted[i]->bits);
    }
    *ret_count = chunks;
    return 0;
}

uint64_t chunks_rank(const struct chunk_set *set, uint32_t file, uint64_t offset)
{
    const struct region *region = region_find(set, file, offset);
    uint64_t below;

    if (region == NULL)
        return 0;
    below = region->bits & ((1ull << bit_of(offset)) - 1);
    return region->first + (uint64_t)__builtin_popcountll(below);
}

/* Index of the first region that is not before file and number. */
static size_t lower_bound(const struct chunk_set *set, uint32_t file, uint64_t number)
{
    size_t low = 0, high = set->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (region_order(set->sorted[middle], file, number) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool chunks_next(const struct chunk_set *set, uint32_t file, uint64_t from, uint64_t *ret_from,
                 uint64_t *ret_to)
{
    size_t at = lower_bound(set, file, from >> REGION_SHIFT);
    uint64_t begin = UINT64_MAX, end = 0;

    for (; at < set->count && set->sorted[at]->file == file; at++) {
        const struct region *region = set->sorted[at];
        uint64_t base = region->number * REGION_CHUNKS;

        for (uint64_t bit = region->number == from >> REGION_SHIFT ? bit_of(from) : 0;
             bit < REGION_CHUNKS; bit++) {
            uint64_t chunk = base + bit;

            if (begin != UINT64_MAX && (chunk != end || !(region->bits >> bit & 1)))
                goto out;
            if (region->bits >> bit & 1) {
                begin = begin == UINT64_MAX ? chunk : begin;
                end = chunk + 1;
            }
        }
    }
out:
    if (begin == UINT64_MAX)
        return false;
    begin <<= CHUNK_SHIFT;
    *ret_from = begin < from ? from : begin;
    *ret_to = end << CHUNK_SHIFT;
    return true;
}
