/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a blktrace record, protocols 7 and 8.
 *
 * A file is records one after another, in the byte order of the recording machine: a header of
 * 48 (version 7) or 64 bytes (version 8), then pdu_len bytes of payload. The first four bytes
 * of each record are the magic with the version in the low byte, so a reader can tell order and
 * layout record by record. Version 7 is what <linux/blktrace_api.h> describes; version 8 widens
 * the action to 64 bits and pads the header. Remap and split payloads are big-endian whatever
 * the header is.
 */
#ifndef CONVERT_BLKTRACE_FORMAT_H
#define CONVERT_BLKTRACE_FORMAT_H

#include <linux/blktrace_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BLKTRACE_MAGIC_V7 0x65617407u
#define BLKTRACE_MAGIC_V8 0x65617408u

enum blktrace_layout {
    BLKTRACE_SEQUENCE = 4,
    BLKTRACE_TIME = 8,
    BLKTRACE_SECTOR = 16,
    BLKTRACE_BYTES = 24,
    BLKTRACE_V7_ACTION = 28, /* u32 */
    BLKTRACE_V7_PID = 32,
    BLKTRACE_V7_DEVICE = 36,
    BLKTRACE_V7_CPU = 40,
    BLKTRACE_V7_ERROR = 44,
    BLKTRACE_V7_PDU_LEN = 46,
    BLKTRACE_V7_HEADER = 48,
    BLKTRACE_V8_PID = 28,
    BLKTRACE_V8_ACTION = 32, /* u64 */
    BLKTRACE_V8_DEVICE = 40,
    BLKTRACE_V8_CPU = 44,
    BLKTRACE_V8_ERROR = 48,
    BLKTRACE_V8_PDU_LEN = 50,
    BLKTRACE_V8_HEADER = 64,
    BLKTRACE_RECORD_MAX = BLKTRACE_V8_HEADER + 65535,
};

/* Version 8 as the kernel lays it out, to check the numbers above; never cast onto bytes. */
struct blktrace_v8 {
    uint32_t magic, sequence;
    uint64_t time, sector;
    uint32_t bytes, pid;
    uint64_t action;
    uint32_t device, cpu;
    uint16_t error, pdu_len;
    uint8_t pad[12];
};

_Static_assert(sizeof(struct blk_io_trace) == BLKTRACE_V7_HEADER, "version 7 header");
_Static_assert(offsetof(struct blk_io_trace, sequence) == BLKTRACE_SEQUENCE, "sequence");
_Static_assert(offsetof(struct blk_io_trace, time) == BLKTRACE_TIME, "time");
_Static_assert(offsetof(struct blk_io_trace, sector) == BLKTRACE_SECTOR, "sector");
_Static_assert(offsetof(struct blk_io_trace, bytes) == BLKTRACE_BYTES, "bytes");
_Static_assert(offsetof(struct blk_io_trace, action) == BLKTRACE_V7_ACTION, "action");
_Static_assert(offsetof(struct blk_io_trace, pid) == BLKTRACE_V7_PID, "pid");
_Static_assert(offsetof(struct blk_io_trace, device) == BLKTRACE_V7_DEVICE, "device");
_Static_assert(offsetof(struct blk_io_trace, cpu) == BLKTRACE_V7_CPU, "cpu");
_Static_assert(offsetof(struct blk_io_trace, error) == BLKTRACE_V7_ERROR, "error");
_Static_assert(offsetof(struct blk_io_trace, pdu_len) == BLKTRACE_V7_PDU_LEN, "pdu_len");
_Static_assert(sizeof(struct blktrace_v8) == BLKTRACE_V8_HEADER, "version 8 header");
_Static_assert(offsetof(struct blktrace_v8, pid) == BLKTRACE_V8_PID, "pid");
_Static_assert(offsetof(struct blktrace_v8, action) == BLKTRACE_V8_ACTION, "action");
_Static_assert(offsetof(struct blktrace_v8, device) == BLKTRACE_V8_DEVICE, "device");
_Static_assert(offsetof(struct blktrace_v8, cpu) == BLKTRACE_V8_CPU, "cpu");
_Static_assert(offsetof(struct blktrace_v8, error) == BLKTRACE_V8_ERROR, "error");
_Static_assert(offsetof(struct blktrace_v8, pdu_len) == BLKTRACE_V8_PDU_LEN, "pdu_len");
_Static_assert((BLK_IO_TRACE_MAGIC | BLK_IO_TRACE_VERSION) == BLKTRACE_MAGIC_V7, "magic");

/* swap: the record's byte order is not the host's. */
static inline uint16_t blktrace_u16(const uint8_t *bytes, bool swap)
{
    uint16_t value;

    memcpy(&value, bytes, sizeof(value));
    return swap ? __builtin_bswap16(value) : value;
}

static inline uint32_t blktrace_u32(const uint8_t *bytes, bool swap)
{
    uint32_t value;

    memcpy(&value, bytes, sizeof(value));
    return swap ? __builtin_bswap32(value) : value;
}

static inline uint64_t blktrace_u64(const uint8_t *bytes, bool swap)
{
    uint64_t value;

    memcpy(&value, bytes, sizeof(value));
    return swap ? __builtin_bswap64(value) : value;
}

static inline uint32_t blktrace_be32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
           bytes[3];
}

static inline uint64_t blktrace_be64(const uint8_t *bytes)
{
    return (uint64_t)blktrace_be32(bytes) << 32 | blktrace_be32(bytes + 4);
}

/* The version (7 or 8) of the record whose first four bytes these are, 0 when they are none. */
static inline unsigned int blktrace_version(const uint8_t *bytes, bool *ret_swap)
{
    uint32_t magic = blktrace_u32(bytes, false);

    *ret_swap = false;
    if (magic == BLKTRACE_MAGIC_V7)
        return 7;
    if (magic == BLKTRACE_MAGIC_V8)
        return 8;
    *ret_swap = true;
    magic = __builtin_bswap32(magic);
    return magic == BLKTRACE_MAGIC_V7 ? 7 : magic == BLKTRACE_MAGIC_V8 ? 8 : 0;
}

#endif
