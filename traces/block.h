/* SPDX-License-Identifier: MIT */
/*
 * The two headers of a tape: the file's and each block's, as tape.5 lays them out.
 * Internal to traces/: programs use trace.h.
 */
#ifndef TRACES_BLOCK_H
#define TRACES_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traces/trace.h"

#define TAPE_VERSION      1
#define TAPE_HEADER_BYTES 64
#define TAPE_MAGIC_BYTES  8

#define TAPE_FLAG_RAW    1u
#define TAPE_FLAG_RESULT 2u

#define BLOCK_HEADER_MIN 124 /* no kinds */
#define BLOCK_HEADER_MAX (BLOCK_HEADER_MIN + 12 * 64)

/* Limits a reader refuses to go beyond, so that no tape can ask for much memory. */
#define BLOCK_OPS_MAX     131072u
#define BLOCK_PAYLOAD_MAX (32u << 20) /* stored, and unpacked */
#define TABLE_ENTRIES_MAX (1u << 28)

enum block_type {
    BLOCK_OPS = 1,
    BLOCK_FILES = 2,
    BLOCK_STREAMS = 3,
    BLOCK_META = 4,
    BLOCK_TOTALS = 5,
    BLOCK_INDEX = 6,
    BLOCK_END = 7,
    BLOCK_TYPE_COUNT
};

enum block_codec {
    BLOCK_STORED = 0,
    BLOCK_DEFLATE = 1,
    BLOCK_COLUMNS = 2, /* operations: each column says how it is packed */
    BLOCK_CODEC_COUNT
};

struct block_header {
    uint8_t type, codec;
    uint16_t flags;         /* TAPE_FLAG_ */
    uint16_t header_bytes;  /* filled by store and load */
    uint32_t payload_bytes; /* as stored */
    uint32_t raw_bytes;     /* unpacked */
    uint32_t payload_crc;
    uint32_t number;         /* of the block in the tape, from 0 */
    uint64_t first_index;    /* operations in the blocks before this one */
    uint32_t entries;        /* operations, table entries or keys in it */
    uint32_t first_entry;    /* tables: number of its first entry */
    uint32_t files, streams; /* entries of the tables when it was written, itself included */
    uint64_t lost;           /* events lost so far */
    int64_t first_ns, last_ns;
    uint64_t min_offset, max_end;
    int64_t wall_tape_ns; /* TRACE_UNKNOWN_I64: no pair */
    uint64_t wall_ns;
    uint64_t op_count[TRACE_OP_COUNT];
    uint64_t op_bytes[TRACE_OP_COUNT];
};

void block_header_init(struct block_header *header, enum block_type type);
/* Counts, times and offsets of ops into the header. */
void block_header_sum(struct block_header *header, const struct trace_op *ops, size_t count);
/* Writes at most BLOCK_HEADER_MAX bytes; returns how many. */
size_t block_header_store(const struct block_header *header, uint8_t *bytes);
/* Of bytes that hold at least BLOCK_HEADER_MAX or all that is left: 0, -EAGAIN when it is cut
 * short, -EBADMSG when it is not a block header or damaged, -EPROTONOSUPPORT when whole but of
 * a newer version. */
int block_header_load(struct block_header *ret_header, const uint8_t *bytes, size_t length);
/* Where in bytes a block header may begin, at or after from; length when nowhere. A magic cut
 * off by the end counts. */
size_t block_magic_find(const uint8_t *bytes, size_t length, size_t from);

void tape_header_store(uint8_t *bytes, uint32_t flags);
bool tape_magic_is(const uint8_t *bytes, size_t length);
/* 0, -EBADMSG (not one, or damaged), -EPROTONOSUPPORT with *ret_version set. */
int tape_header_load(const uint8_t *bytes, uint32_t *ret_flags, uint32_t *ret_version);

#endif
