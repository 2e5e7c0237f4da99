/* SPDX-License-Identifier: MIT */
/*
 * Strings of 64-bit numbers, coded: the layer below the columns of a block, which knows nothing
 * of operations. tape.5 ("Numbers") has the bytes.
 * Internal to traces/.
 *
 * A string of numbers becomes a coder byte, its parameters and its parts; a part is a byte string,
 * deflated where that helps. Reading goes piece by piece, so a block of any size is decoded in
 * the first-level cache.
 */
#ifndef TRACES_COLUMN_H
#define TRACES_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traces/buf.h"
#include "traces/bytes.h"

enum number_coder {
    NUMBER_CONST = 0,  /* all the same */
    NUMBER_VARINT = 1, /* 7 bits a byte */
    NUMBER_CODER_COUNT
};

/* ---- writing ---- */

struct part_packer; /* holds a deflate state and scratch memory; one a thread */

struct part_packer *part_packer_new(int level); /* NULL: no memory */
void part_packer_free(struct part_packer *packer);
/* Forgets what was packed so far; unpacked: bytes that the deflated parts since then take again. */
void part_packer_begin(struct part_packer *packer);
uint32_t part_packer_unpacked(const struct part_packer *packer);
/* Appends a part to out. */
void part_pack(struct part_packer *packer, struct buf *out, const uint8_t *data, size_t bytes);

/* Appends count numbers in the coding that fits best. small tries them all. */
void numbers_write(struct part_packer *packer, struct buf *out, const uint64_t *numbers,
                   size_t count, bool small);

/* ---- reading ---- */

struct part_unpacker; /* holds an inflate state */

struct part_unpacker *part_unpacker_new(void);
void part_unpacker_free(struct part_unpacker *unpacker);

/* Where deflated parts of a block are unpacked to: its size is the block's raw_bytes. */
struct part_arena {
    uint8_t *data;
    size_t used, capacity;
};

/* Reads a part; *ret_part points into in's bytes or into arena. False: damaged. */
bool part_unpack(struct part_unpacker *unpacker, struct part_arena *arena, struct cursor *in,
                 struct cursor *ret_part);

struct numbers_reader {
    enum number_coder coder;
    uint64_t constant;
    struct cursor bytes;
};

/* Starts reading a string that numbers_write wrote. False: damaged. */
bool numbers_open(struct numbers_reader *numbers, struct part_unpacker *unpacker,
                  struct part_arena *arena, struct cursor *in);
/* The next count numbers. False: damaged; ret_numbers is then undefined. */
bool numbers_read(struct numbers_reader *numbers, uint64_t *ret_numbers, size_t count);

#endif
