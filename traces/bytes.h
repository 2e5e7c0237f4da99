/* SPDX-License-Identifier: MIT */
/*
 * Little-endian numbers in byte strings, and variable-length ones (7 bits a byte, low first).
 * Nothing here casts bytes to structs: any alignment, any machine.
 */
#ifndef TRACES_BYTES_H
#define TRACES_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BYTES_FROM_LE16(value) (value)
#define BYTES_FROM_LE32(value) (value)
#define BYTES_FROM_LE64(value) (value)
#else
#define BYTES_FROM_LE16(value) __builtin_bswap16(value)
#define BYTES_FROM_LE32(value) __builtin_bswap32(value)
#define BYTES_FROM_LE64(value) __builtin_bswap64(value)
#endif

static inline uint16_t load_le16(const uint8_t *bytes)
{
    uint16_t value;

    memcpy(&value, bytes, sizeof(value));
    return BYTES_FROM_LE16(value);
}

static inline uint32_t load_le32(const uint8_t *bytes)
{
    uint32_t value;

    memcpy(&value, bytes, sizeof(value));
    return BYTES_FROM_LE32(value);
}

static inline uint64_t load_le64(const uint8_t *bytes)
{
    uint64_t value;

    memcpy(&value, bytes, sizeof(value));
    return BYTES_FROM_LE64(value);
}

static inline void store_le16(uint8_t *bytes, uint16_t value)
{
    value = BYTES_FROM_LE16(value);
    memcpy(bytes, &value, sizeof(value));
}

static inline void store_le32(uint8_t *bytes, uint32_t value)
{
    value = BYTES_FROM_LE32(value);
    memcpy(bytes, &value, sizeof(value));
}

static inline void store_le64(uint8_t *bytes, uint64_t value)
{
    value = BYTES_FROM_LE64(value);
    memcpy(bytes, &value, sizeof(value));
}

/* Small magnitudes of either sign become small numbers: 0, -1, 1, -2 ... -> 0, 1, 2, 3 ... */
static inline uint64_t zigzag_encode(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int64_t zigzag_decode(uint64_t value)
{
    return (int64_t)((value >> 1) ^ (0 - (value & 1)));
}

#define VARINT_MAX_BYTES 10

/* Writes at most VARINT_MAX_BYTES; returns how many. */
static inline size_t store_varint(uint8_t *bytes, uint64_t value)
{
    size_t length = 0;

    while (value >= 0x80) {
        bytes[length++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    bytes[length++] = (uint8_t)value;
    return length;
}

/* A place in a byte string. After a read past the end or a malformed number, failed is set
 * and every read gives 0. */
struct cursor {
    const uint8_t *at, *end;
    bool failed;
};

static inline size_t cursor_left(const struct cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

static inline uint8_t cursor_u8(struct cursor *cursor)
{
    if (cursor->at == cursor->end) {
        cursor->failed = true;
        return 0;
    }
    return *cursor->at++;
}

static inline uint64_t cursor_varint(struct cursor *cursor)
{
    uint64_t value = 0;

    for (unsigned int shift = 0; shift < 64; shift += 7) {
        uint8_t byte = cursor_u8(cursor);

        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    cursor->failed = true;
    cursor->at = cursor->end;
    return 0;
}

/* The next length bytes, or NULL. */
static inline const uint8_t *cursor_bytes(struct cursor *cursor, uint64_t length)
{
    const uint8_t *bytes = cursor->at;

    if (length > cursor_left(cursor)) {
        cursor->failed = true;
        cursor->at = cursor->end;
        return NULL;
    }
    cursor->at += length;
    return bytes;
}

#endif
