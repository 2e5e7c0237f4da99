/* SPDX-License-Identifier: MIT */
#include "replay/fit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/conf.h"
#include "traces/diag.h"

#define CHUNK_SHIFT  16
#define REGION_SHIFT 30 /* 16384 chunks */
#define REGIONS_MAX  (1u << 20) /* 1 PiB touched: more is no trace, and would eat the memory */
#define REGION_WORDS ((1u << (REGION_SHIFT - CHUNK_SHIFT)) / 64)

struct region {
    uint32_t file;
    uint32_t number;   /* offset >> REGION_SHIFT */
    uint64_t first;    /* sealed: packed index of its first touched chunk */
    uint64_t *bits;    /* REGION_WORDS */
    uint32_t *ranks;   /* sealed: touched chunks before each word */
};

struct pack {
    struct region *regions; /* an open-addressed hash table until sealed, then sorted */
    size_t count, size;
    struct region **sorted;
};

struct pack *pack_new(void)
{
    return calloc(1, sizeof(struct pack));
}

static size_t region_hash(uint32_t file, uint32_t number)
{
    uint64_t key = ((uint64_t)file << 32 | number) * 0x9e3779b97f4a7c15u;

    return (size_t)(key >> 20);
}

static struct region *region_slot(struct region *table, size_t size, uint32_t file,
                                  uint32_t number)
{
    size_t at = region_hash(file, number) & (size - 1);

    while (table[at].bits != NULL && (table[at].file != file || table[at].number != number))
        at = (at + 1) & (size - 1);
    return &table[at];
}

static int regions_grow(struct pack *pack)
{
    size_t size = pack->size ? pack->size * 2 : 64;
    struct region *table = calloc(size, sizeof *table);

    if (table == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < pack->size; i++)
        if (pack->regions[i].bits != NULL)
            *region_slot(table, size, pack->regions[i].file, pack->regions[i].number) =
                pack->regions[i];
    free(pack->regions);
    pack->regions = table;
    pack->size = size;
    return 0;
}

static struct region *region_get(struct pack *pack, uint32_t file, uint32_t number)
{
    struct region *region;

    if (pack->count * 2 >= pack->size && regions_grow(pack) != 0)
        return NULL;
    region = region_slot(pack->regions, pack->size, file, number);
    if (region->bits == NULL) {
        region->bits = calloc(REGION_WORDS, sizeof *region->bits);
        if (region->bits == NULL)
            return NULL;
        region->file = file;
        region->number = number;
        pack->count++;
    }
    return region;
}

int pack_touch(struct pack *pack, uint32_t file, uint64_t offset, uint64_t length,
               struct diag *diag)
{
    uint64_t first = offset >> CHUNK_SHIFT;
    uint64_t last = (offset + length - 1) >> CHUNK_SHIFT;

    for (uint64_t chunk = first; chunk <= last; chunk++) {
        struct region *region =
            region_get(pack, file, (uint32_t)(chunk >> (REGION_SHIFT - CHUNK_SHIFT)));
        uint64_t bit = chunk & ((1u << (REGION_SHIFT - CHUNK_SHIFT)) - 1);

        if (region == NULL)
            return diag_errno(diag, -ENOMEM, "--fit pack");
        if (pack->count > REGIONS_MAX)
            return diag_set(diag, -E2BIG, "--fit pack: the tape touches more than 1 PiB");
        region->bits[bit / 64] |= 1ull << (bit % 64);
    }
    return 0;
}

static int region_compare(const void *a, const void *b)
{
    const struct region *const *x = a, *const *y = b;

    if ((*x)->file != (*y)->file)
        return (*x)->file < (*y)->file ? -1 : 1;
    return (*x)->number < (*y)->number ? -1 : (*x)->number > (*y)->number;
}

uint64_t pack_seal(struct pack *pack)
{
    uint64_t chunks = 0;
    size_t count = 0;

    pack->sorted = calloc(pack->count ? pack->count : 1, sizeof *pack->sorted);
    if (pack->sorted == NULL)
        return UINT64_MAX;
    for (size_t i = 0; i < pack->size; i++)
        if (pack->regions[i].bits != NULL)
            pack->sorted[count++] = &pack->regions[i];
    qsort(pack->sorted, count, sizeof *pack->sorted, region_compare);
    for (size_t i = 0; i < count; i++) {
        struct region *region = pack->sorted[i];
        uint32_t rank = 0;

        region->first = chunks;
        region->ranks = calloc(REGION_WORDS, sizeof *region->ranks);
        if (region->ranks == NULL)
            return UINT64_MAX;
        for (uint32_t w = 0; w < REGION_WORDS; w++) {
            region->ranks[w] = rank;
            rank += (uint32_t)__builtin_popcountll(region->bits[w]);
        }
        chunks += rank;
    }
    return chunks << CHUNK_SHIFT;
}

uint64_t pack_offset(const struct pack *pack, uint32_t file, uint64_t offset)
{
    uint64_t chunk = offset >> CHUNK_SHIFT;
    const struct region *region = region_slot(pack->regions, pack->size, file,
                                              (uint32_t)(offset >> REGION_SHIFT));
    uint64_t bit = chunk & ((1u << (REGION_SHIFT - CHUNK_SHIFT)) - 1);
    uint64_t below = region->bits[bit / 64] & ((1ull << (bit % 64)) - 1);
    uint64_t packed = region->first + region->ranks[bit / 64] +
                      (uint64_t)__builtin_popcountll(below);

    return (packed << CHUNK_SHIFT) | (offset & ((1u << CHUNK_SHIFT) - 1));
}

void pack_free(struct pack *pack)
{
    if (pack == NULL)
        return;
    for (size_t i = 0; i < pack->size; i++) {
        free(pack->regions[i].bits);
        free(pack->regions[i].ranks);
    }
    free(pack->sorted);
    free(pack->regions);
    free(pack);
}

uint64_t fit_offset(const struct fit *fit, uint32_t file, uint64_t offset, uint64_t length)
{
    uint64_t room = fit->size_bytes - length;
    uint64_t at;

    switch (fit->how) {
    case FIT_WRAP:
        /* Whole blocks of the target, so that aligned places stay aligned. */
        at = offset % (fit->size_bytes & ~4095ull ? fit->size_bytes & ~4095ull
                                                  : fit->size_bytes);
        break;
    case FIT_SCALE:
        if (fit->reach_bytes <= fit->size_bytes)
            return offset;
        at = (uint64_t)((__uint128_t)offset * fit->size_bytes / fit->reach_bytes);
        at = (at & ~4095ull) | (offset & 4095);
        break;
    case FIT_PACK: at = pack_offset(fit->pack, file, offset); break;
    default: return offset;
    }
    if (at > room)
        at = (room & ~4095ull) + (offset & 4095) <= room ? (room & ~4095ull) + (offset & 4095)
             : room >= 4096 ? (room & ~4095ull) - 4096 + (offset & 4095)
                            : room;
    return at;
}
