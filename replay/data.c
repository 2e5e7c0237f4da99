/* SPDX-License-Identifier: MIT */
#include "replay/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "replay/area.h"
#include "replay/conf.h"
#include "replay/plan.h"
#include "replay/stats.h"
#include "replay/target.h"
#include "traces/diag.h"

#define PATTERN_BYTES (1u << 20)
#define PAGE          4096u
#define BLOCK         512u
#define MAGIC         0x65706174u /* "tape" */
#define FORGOTTEN     UINT64_MAX  /* in a map: may hold anything */

/* At the start of each verified block, little-endian, BLOCK bytes with the checksum over all but
 * the first eight. */
struct header {
    uint32_t magic;
    uint32_t checksum;
    uint64_t offset;
    uint64_t seq;
    uint32_t file;
    uint32_t target;
};

struct data {
    int fill;
    bool verify;
    unsigned char *pattern;
    uint32_t count;
    uint32_t *way;           /* target -> the first target of the same file: one map a file */
    _Atomic uint64_t **maps; /* by target: number + 1 of each block's last write */
    uint64_t *map_blocks;
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void pattern_make(struct data *data, const struct conf *conf)
{
    uint32_t zero_bytes = conf->fill == FILL_COMPRESS ? PAGE * conf->fill_pct / 100 : 0;

    if (conf->fill == FILL_ZERO)
        return;
    for (uint32_t at = 0; at < PATTERN_BYTES; at += 8) {
        uint64_t word = mix(conf->seed * 0x9e3779b97f4a7c15u + at + 1);

        if (at % PAGE < PAGE - zero_bytes)
            memcpy(data->pattern + at, &word, 8);
    }
}

static int maps_new(struct data *data, const struct target_set *targets, bool shared)
{
    data->maps = calloc(targets->count + 1ull, sizeof *data->maps);
    data->map_blocks = calloc(targets->count + 1ull, sizeof *data->map_blocks);
    data->way = calloc(targets->count + 1ull, sizeof *data->way);
    if (data->maps == NULL || data->map_blocks == NULL || data->way == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < targets->count; i++) {
        const struct target *target = &targets->items[i];
        uint64_t end = target->max_end > target->size_bytes ? target->max_end
                                                            : target->size_bytes;

        data->way[i] = i;
        if (i > 0 && targets->items[i - 1].file == target->file &&
            i / targets->per_clone == (i - 1) / targets->per_clone)
            data->way[i] = data->way[i - 1];
        /* What a name stands for may change under a volatile file. */
        if (data->way[i] != i || (target->plan_flags & PLAN_VOLATILE))
            continue;
        data->map_blocks[i] = end / BLOCK + 1;
        data->maps[i] = area_alloc(data->map_blocks[i] * sizeof(uint64_t), shared);
        if (data->maps[i] == NULL)
            return -ENOMEM;
    }
    return 0;
}

int data_new(struct data **ret_data, const struct conf *conf, const struct target_set *targets,
             struct diag *diag)
{
    struct data *data = calloc(1, sizeof *data);
    int err = 0;

    if (data == NULL)
        return diag_errno(diag, -ENOMEM, "data");
    data->fill = conf->fill;
    data->verify = conf->verify;
    data->count = targets->count;
    data->pattern = calloc(1, PATTERN_BYTES);
    if (data->pattern == NULL)
        err = -ENOMEM;
    else
        pattern_make(data, conf);
    if (err == 0 && conf->verify)
        err = maps_new(data, targets, conf->processes != 0);
    if (err != 0) {
        data_free(data);
        return diag_errno(diag, err, "data");
    }
    *ret_data = data;
    return 0;
}

void data_free(struct data *data)
{
    if (data == NULL)
        return;
    for (uint32_t i = 0; data->maps != NULL && i < data->count; i++)
        area_free((void *)data->maps[i], data->map_blocks[i] * sizeof(uint64_t));
    free(data->maps);
    free(data->map_blocks);
    free(data->way);
    free(data->pattern);
    free(data);
}

static uint32_t block_checksum(const unsigned char *block)
{
    return (uint32_t)crc32(0, block + 8, BLOCK - 8);
}

static void stamp_blocks(const struct data *data, unsigned char *buffer, const struct prepared *p,
                         uint64_t seq)
{
    uint64_t first = (p->offset + BLOCK - 1) & ~(uint64_t)(BLOCK - 1);

    for (uint64_t at = first; at + BLOCK <= p->offset + p->length; at += BLOCK) {
        unsigned char *block = buffer + (at - p->offset);
        struct header header = {.magic = MAGIC,
                                .offset = at,
                                .seq = seq,
                                .file = p->file,
                                .target = data->way[p->target]};

        memcpy(block, &header, sizeof header);
        header.checksum = block_checksum(block);
        memcpy(block, &header, sizeof header);
    }
}

void data_fill(struct data *data, void *buffer, const struct prepared *p, uint64_t seq)
{
    unsigned char *out = buffer;
    uint64_t done = 0;
    uint64_t from = mix(p->ref) % (PATTERN_BYTES / PAGE) * PAGE;

    if (data->fill == FILL_ZERO) {
        memset(out, 0, p->length);
    } else {
        while (done < p->length) {
            uint64_t run = PATTERN_BYTES - from;

            if (run > p->length - done)
                run = p->length - done;
            memcpy(out + done, data->pattern + from, run);
            done += run;
            from = 0;
        }
        for (uint64_t at = 0; at + 8 <= p->length; at += PAGE) {
            uint64_t unique = mix(p->ref ^ (at << 20));

            memcpy(out + at, &unique, 8);
        }
    }
    if (data->verify && p->offset != TRACE_UNKNOWN_U64)
        stamp_blocks(data, out, p, seq);
}

/* What a block must look like, by what the map says of it. */
static bool block_right(const struct data *data, const unsigned char *block,
                        const struct prepared *p, uint64_t at, uint64_t expected)
{
    struct header header;
    bool ours;

    if (expected == FORGOTTEN)
        return true;
    memcpy(&header, block, sizeof header);
    ours = header.magic == MAGIC;
    /* Not written in this run: whatever an earlier one left must be whole and in its place. */
    if (expected == 0 && !ours)
        return true;
    return ours && header.checksum == block_checksum(block) && header.offset == at &&
           (expected == 0 || (header.file == p->file && header.target == data->way[p->target] &&
                              header.seq + 1 == expected));
}

static _Atomic uint64_t *map_of(const struct data *data, const struct prepared *p,
                                uint64_t *ret_blocks)
{
    uint32_t way;

    if (p->target == TRACE_NONE_U32 || p->offset == TRACE_UNKNOWN_U64)
        return NULL;
    way = data->way[p->target];
    *ret_blocks = data->map_blocks[way];
    return data->maps[way];
}

/* From the block that holds `low` to the one that holds high - 1. */
static void forget(_Atomic uint64_t *map, uint64_t blocks, uint64_t low, uint64_t high)
{
    for (uint64_t index = low / BLOCK; index < blocks && index * BLOCK < high; index++)
        atomic_store_explicit(&map[index], FORGOTTEN, memory_order_release);
}

static void note_write(_Atomic uint64_t *map, uint64_t blocks, const struct prepared *p,
                       uint64_t seq, int64_t result)
{
    uint64_t first = (p->offset + BLOCK - 1) & ~(uint64_t)(BLOCK - 1);
    uint64_t end = p->offset + p->length;

    if (result != (int64_t)p->length) {
        forget(map, blocks, p->offset, end); /* who knows how far it got */
        return;
    }
    if (first > p->offset)
        forget(map, blocks, p->offset, first < end ? first : end);
    for (; first + BLOCK <= end && first / BLOCK < blocks; first += BLOCK)
        atomic_store_explicit(&map[first / BLOCK], seq + 1, memory_order_release);
    if (first < end)
        forget(map, blocks, first, end);
}

static uint64_t check_read(const struct data *data, _Atomic uint64_t *map, uint64_t blocks,
                           const unsigned char *buffer, const struct prepared *p, int64_t result,
                           uint64_t *ret_checked)
{
    uint64_t first = (p->offset + BLOCK - 1) & ~(uint64_t)(BLOCK - 1);
    uint64_t wrong = 0, checked = 0;

    for (uint64_t at = first; at + BLOCK <= p->offset + (uint64_t)result; at += BLOCK) {
        if (at / BLOCK >= blocks)
            break;
        checked++;
        wrong += !block_right(data, buffer + (at - p->offset), p, at,
                              atomic_load_explicit(&map[at / BLOCK], memory_order_acquire));
    }
    *ret_checked = checked;
    return wrong;
}

int64_t data_check(struct data *data, const void *buffer, const struct prepared *p, uint64_t seq,
                   int64_t result, struct stats *stats)
{
    uint64_t blocks = 0, checked, wrong;
    _Atomic uint64_t *map = map_of(data, p, &blocks);

    if (map == NULL)
        return result;
    switch (p->kind) {
    case TRACE_READ:
        if (result <= 0)
            return result;
        wrong = check_read(data, map, blocks, buffer, p, result, &checked);
        stats->verified_blocks += checked;
        stats->verify_errors += wrong;
        return wrong != 0 ? -EILSEQ : result;
    case TRACE_WRITE: note_write(map, blocks, p, seq, result); return result;
    case TRACE_TRUNCATE: forget(map, blocks, p->length, UINT64_MAX); return result;
    case TRACE_DISCARD:
    case TRACE_WRITE_ZEROES:
    case TRACE_FALLOCATE: forget(map, blocks, p->offset, p->offset + p->length); return result;
    default: return result;
    }
}
