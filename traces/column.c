/* SPDX-License-Identifier: MIT */
#include "traces/column.h"

#include <stdlib.h>
#include <zlib.h>

#define PART_STORED  0
#define PART_DEFLATE 1

/* Shorter strings never shrink. */
#define PART_DEFLATE_LEAST 24

struct part_packer {
    z_stream deflate;
    struct buf scratch;
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
    if (deflateInit2(&packer->deflate, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(packer);
        return NULL;
    }
    return packer;
}

void part_packer_free(struct part_packer *packer)
{
    if (!packer)
        return;
    deflateEnd(&packer->deflate);
    buf_release(&packer->scratch);
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

/* Into packer->packed; false when it did not get shorter. */
static bool part_deflate(struct part_packer *packer, const uint8_t *data, size_t bytes)
{
    z_stream *z = &packer->deflate;

    if (bytes < PART_DEFLATE_LEAST)
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

void part_pack(struct part_packer *packer, struct buf *out, const uint8_t *data, size_t bytes)
{
    if (part_deflate(packer, data, bytes)) {
        buf_u8(out, PART_DEFLATE);
        buf_varint(out, bytes);
        buf_varint(out, packer->packed.length);
        buf_append(out, packer->packed.data, packer->packed.length);
        packer->unpacked_bytes += (uint32_t)bytes;
        return;
    }
    buf_u8(out, PART_STORED);
    buf_varint(out, bytes);
    buf_append(out, data, bytes);
}

static void varints_write(struct part_packer *packer, struct buf *out, const uint64_t *numbers,
                          size_t count)
{
    struct buf *scratch = &packer->scratch;

    buf_clear(scratch);
    for (size_t i = 0; i < count; i++)
        buf_varint(scratch, numbers[i]);
    if (scratch->failed)
        out->failed = true;
    buf_u8(out, NUMBER_VARINT);
    part_pack(packer, out, scratch->data, scratch->length);
}

void numbers_write(struct part_packer *packer, struct buf *out, const uint64_t *numbers,
                   size_t count, bool small)
{
    size_t same = 1;

    while (same < count && numbers[same] == numbers[0])
        same++;
    if (same >= count) {
        buf_u8(out, NUMBER_CONST);
        buf_varint(out, count ? numbers[0] : 0);
        return;
    }
    varints_write(packer, out, numbers, count);
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

bool part_unpack(struct part_unpacker *unpacker, struct part_arena *arena, struct cursor *in,
                 struct cursor *ret_part)
{
    uint8_t packing = cursor_u8(in);
    uint64_t bytes = cursor_varint(in), packed;
    z_stream *z = &unpacker->inflate;
    const uint8_t *data;

    if (packing == PART_STORED) {
        data = cursor_bytes(in, bytes);
        if (!data)
            return false;
        *ret_part = (struct cursor){.at = data, .end = data + bytes};
        return true;
    }
    packed = cursor_varint(in);
    data = cursor_bytes(in, packed);
    if (packing != PART_DEFLATE || !data || bytes > arena->capacity - arena->used ||
        inflateReset(z) != Z_OK)
        return false;
    z->next_in = (Bytef *)data;
    z->avail_in = (uInt)packed;
    z->next_out = arena->data + arena->used;
    z->avail_out = (uInt)bytes;
    if (inflate(z, Z_FINISH) != Z_STREAM_END || z->avail_out > 0 || z->avail_in > 0)
        return false;
    data = arena->data + arena->used;
    arena->used += bytes;
    *ret_part = (struct cursor){.at = data, .end = data + bytes};
    return true;
}

bool numbers_open(struct numbers_reader *numbers, struct part_unpacker *unpacker,
                  struct part_arena *arena, struct cursor *in)
{
    uint8_t coder = cursor_u8(in);

    *numbers = (struct numbers_reader){.coder = coder};
    switch (coder) {
    case NUMBER_CONST: numbers->constant = cursor_varint(in); return !in->failed;
    case NUMBER_VARINT: return part_unpack(unpacker, arena, in, &numbers->bytes);
    default: return false;
    }
}

bool numbers_read(struct numbers_reader *numbers, uint64_t *ret_numbers, size_t count)
{
    if (numbers->coder == NUMBER_CONST) {
        for (size_t i = 0; i < count; i++)
            ret_numbers[i] = numbers->constant;
        return true;
    }
    for (size_t i = 0; i < count; i++)
        ret_numbers[i] = cursor_varint(&numbers->bytes);
    return !numbers->bytes.failed;
}
