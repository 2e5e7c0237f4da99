/* SPDX-License-Identifier: MIT */
#include "traces/part.h"

#include <stdlib.h>
#include <zlib.h>

#define PART_STORED  0
#define PART_DEFLATE 1

/* Shorter strings do not shrink. */
#define DEFLATE_LEAST 24
/* By these many bytes from the middle it is decided whether looking for matches pays. */
#define SAMPLE_BYTES 2048

struct part_packer {
    z_stream literals, matches;
    struct buf packed;
    uint32_t unpacked_bytes;
};

struct part_unpacker {
    z_stream inflate;
};

struct part_packer *part_packer_new(int level)
{
    struct part_packer *packer = calloc(1, sizeof(*packer));

    if (!packer)
        return NULL;
    /* Raw deflate: the block's checksum covers it. */
    if (deflateInit2(&packer->literals, 1, Z_DEFLATED, -15, 8, Z_RLE) != Z_OK)
        goto out;
    if (deflateInit2(&packer->matches, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        deflateEnd(&packer->literals);
        goto out;
    }
    return packer;

out:
    free(packer);
    return NULL;
}

void part_packer_free(struct part_packer *packer)
{
    if (!packer)
        return;
    deflateEnd(&packer->literals);
    deflateEnd(&packer->matches);
    buf_release(&packer->packed);
    free(packer);
}

void part_packer_begin(struct part_packer *packer)
{
    packer->unpacked_bytes = 0;
}

uint32_t part_packer_unpacked(const struct part_packer *packer)
{
    return packer->unpacked_bytes;
}

/* Into packer->packed; false when it did not get shorter. z is NULL for bytes to be stored. */
static bool part_deflate(struct part_packer *packer, z_stream *z, const uint8_t *data,
                         size_t bytes)
{
    if (!z || bytes < DEFLATE_LEAST)
        return false;
    buf_clear(&packer->packed);
    if (!buf_reserve(&packer->packed, bytes) || deflateReset(z) != Z_OK)
        return false;
    z->next_in = (Bytef *)data;
    z->avail_in = (uInt)bytes;
    z->next_out = packer->packed.data;
    z->avail_out = (uInt)bytes - 1;
    if (deflate(z, Z_FINISH) != Z_STREAM_END)
        return false;
    packer->packed.length = bytes - 1 - z->avail_out;
    return true;
}

static z_stream *part_method(struct part_packer *packer, const uint8_t *data, size_t bytes,
                             enum part_effort effort)
{
    const uint8_t *sample = data;
    size_t literals = SAMPLE_BYTES, matches = SAMPLE_BYTES;

    if (effort == PART_STORE)
        return NULL;
    if (effort == PART_LITERALS)
        return &packer->literals;
    if (effort == PART_MATCHES || bytes < 2 * SAMPLE_BYTES)
        return &packer->matches;
    sample += (bytes - SAMPLE_BYTES) / 2;
    if (part_deflate(packer, &packer->literals, sample, SAMPLE_BYTES))
        literals = packer->packed.length;
    if (part_deflate(packer, &packer->matches, sample, SAMPLE_BYTES))
        matches = packer->packed.length;
    return literals <= matches + matches / 64 ? &packer->literals : &packer->matches;
}

static size_t varint_length(uint64_t value)
{
    uint8_t bytes[VARINT_MAX_BYTES];

    return store_varint(bytes, value);
}

size_t part_size(struct part_packer *packer, const uint8_t *data, size_t bytes,
                 enum part_effort effort)
{
    size_t size = 1 + varint_length(bytes);

    if (!part_deflate(packer, part_method(packer, data, bytes, effort), data, bytes))
        return size + bytes;
    return size + varint_length(packer->packed.length) + packer->packed.length;
}

void part_pack(struct part_packer *packer, struct buf *out, const uint8_t *data, size_t bytes,
               enum part_effort effort)
{
    if (!part_deflate(packer, part_method(packer, data, bytes, effort), data, bytes)) {
        buf_u8(out, PART_STORED);
        buf_varint(out, bytes);
        buf_append(out, data, bytes);
        return;
    }
    buf_u8(out, PART_DEFLATE);
    buf_varint(out, bytes);
    buf_varint(out, packer->packed.length);
    buf_append(out, packer->packed.data, packer->packed.length);
    packer->unpacked_bytes += (uint32_t)bytes;
}

struct part_unpacker *part_unpacker_new(void)
{
    struct part_unpacker *unpacker = calloc(1, sizeof(*unpacker));

    if (!unpacker)
        return NULL;
    if (inflateInit2(&unpacker->inflate, -15) != Z_OK) {
        free(unpacker);
        return NULL;
    }
    return unpacker;
}

void part_unpacker_free(struct part_unpacker *unpacker)
{
    if (!unpacker)
        return;
    inflateEnd(&unpacker->inflate);
    free(unpacker);
}

static bool part_inflate(z_stream *z, const uint8_t *data, size_t packed, uint8_t *to,
                         size_t bytes)
{
    if (inflateReset(z) != Z_OK)
        return false;
    z->next_in = (Bytef *)data;
    z->avail_in = (uInt)packed;
    z->next_out = to;
    z->avail_out = (uInt)bytes;
    return inflate(z, Z_FINISH) == Z_STREAM_END && z->avail_out == 0 && z->avail_in == 0;
}

bool part_unpack(struct part_unpacker *unpacker, struct part_arena *arena, struct cursor *in,
                 struct cursor *ret_part)
{
    uint8_t packing = cursor_u8(in);
    uint64_t bytes = cursor_varint(in), packed;
    const uint8_t *data;
    uint8_t *to;

    if (packing == PART_STORED) {
        data = cursor_bytes(in, bytes);
        if (!data || in->failed)
            return false;
        *ret_part = (struct cursor){.at = data, .end = data + bytes};
        return true;
    }
    packed = cursor_varint(in);
    data = cursor_bytes(in, packed);
    if (packing != PART_DEFLATE || !data || bytes > arena->capacity - arena->used)
        return false;
    to = arena->data + arena->used;
    if (!part_inflate(&unpacker->inflate, data, packed, to, bytes))
        return false;
    arena->used += bytes;
    *ret_part = (struct cursor){.at = to, .end = to + bytes};
    return true;
}
