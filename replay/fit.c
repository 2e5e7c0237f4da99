/* SPDX-License-Identifier: MIT */
#include "replay/fit.h"

#include <errno.h>
#include <stdlib.h>

#include "replay/chunks.h"
#include "replay/conf.h"
#include "traces/diag.h"

struct pack {
    struct chunk_set *chunks;
};

struct pack *pack_new(void)
{
    struct pack *pack = calloc(1, sizeof *pack);

    if (pack == NULL)
        return NULL;
    pack->chunks = chunks_new();
    if (pack->chunks == NULL) {
        free(pack);
        return NULL;
    }
    return pack;
}

int pack_touch(struct pack *pack, uint32_t file, uint64_t offset, uint64_t length,
               struct diag *diag)
{
    int err = chunks_touch(pack->chunks, file, offset, length);

    if (err == -E2BIG)
        return diag_set(diag, err, "--fit pack: the tape touches more than 16,777,216 places of "
                                   "4 MiB");
    return err < 0 ? diag_errno(diag, err, "--fit pack") : 0;
}

uint64_t pack_seal(struct pack *pack)
{
    uint64_t chunks;

    return chunks_sort(pack->chunks, &chunks) == 0 ? chunks << CHUNK_SHIFT : UINT64_MAX;
}

uint64_t pack_offset(const struct pack *pack, uint32_t file, uint64_t offset)
{
    return chunks_rank(pack->chunks, file, offset) << CHUNK_SHIFT |
           (offset & (CHUNK_BYTES - 1));
}

void pack_free(struct pack *pack)
{
    if (pack == NULL)
        return;
    chunks_free(pack->chunks);
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
