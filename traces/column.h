/* SPDX-License-Identifier: MIT */
/*
 * Strings of 64-bit numbers, coded: the layer below the columns of a block, which knows nothing
 * of operations. tape.5 ("Numbers") has the bytes. Internal to traces/.
 *
 * Reading goes piece by piece, so that a block of any size is decoded in the near caches.
 */
#ifndef TRACES_COLUMN_H
#define TRACES_COLUMN_H

#include <stdbool.h>

#include "traces/part.h"

enum number_coder {
    NUMBER_CONST = 0,   /* all the same */
    NUMBER_VARINT = 1,  /* 7 bits a byte, deflated: numbers that come again in the same order */
    NUMBER_PACKED = 2,  /* least number, then so many bits each: even noise */
    NUMBER_CLASSES = 3, /* a byte of magnitude, deflated, and the bits below: uneven noise */
    NUMBER_DICT = 4,    /* at most 256 different ones, a byte each, deflated */
    NUMBER_CODER_COUNT
};

enum numbers_effort {
    NUMBERS_QUICK, /* packed bits, nothing deflated: for files that are soon read back */
    NUMBERS_USUAL, /* by frequencies */
    NUMBERS_SMALL, /* a sample coded in every way */
};

struct numbers_writer; /* scratch memory; one a thread */

struct numbers_writer *numbers_writer_new(struct part_packer *packer,
                                          enum numbers_effort effort);
void numbers_writer_free(struct numbers_writer *writer);
/* About how many bits the numbers take when no string of them comes again: a quick look. */
uint64_t numbers_estimate(const uint64_t *numbers, size_t count);
/* The coder to use, and in *ret_cost about how many bits it takes for all count. */
enum number_coder numbers_choose(struct numbers_writer *writer, const uint64_t *numbers,
                                 size_t count, uint64_t *ret_cost);
/* True when coder holds the numbers and nothing simpler does: it was chosen for others like them. */
bool numbers_suit(struct numbers_writer *writer, const uint64_t *numbers, size_t count,
                  enum number_coder coder);
/* Appends the numbers. coder must have been chosen for them. */
void numbers_write(struct numbers_writer *writer, struct buf *out, const uint64_t *numbers,
                   size_t count, enum number_coder coder);

/* Bits, lowest first; past the end they are 0 and position tells. */
struct bit_cursor {
    const uint8_t *data;
    size_t bytes;
    uint64_t position;
};

struct numbers_reader {
    enum number_coder coder;
    size_t left;
    unsigned int width; /* packed */
    uint64_t base;      /* packed: least; constant: the number */
    struct cursor bytes;
    struct bit_cursor bits;
    unsigned int dict_count;
    uint64_t dict[256];
};

/* Starts reading a string that numbers_write wrote, of at most most numbers. False: damaged. */
bool numbers_open(struct numbers_reader *numbers, struct part_unpacker *unpacker,
                  struct part_arena *arena, struct cursor *in, size_t most);
/* The next count numbers. False: damaged or not so many; ret_numbers is then undefined. */
bool numbers_read(struct numbers_reader *numbers, uint64_t *ret_numbers, size_t count);

/* The byte of magnitude: exact below 4, then four steps to each power of two. */
static inline unsigned int class_of(uint64_t number)
{
    unsigned int high;

    if (number < 4)
        return (unsigned int)number;
    high = 63 - (unsigned int)__builtin_clzll(number);
    return ((high - 1) << 2) + (unsigned int)(number >> (high - 2) & 3);
}

/* Bits below the class byte. */
static inline unsigned int class_bits(unsigned int class)
{
    return class < 8 ? 0 : (class >> 2) - 1;
}

static inline uint64_t class_low(unsigned int class)
{
    if (class < 4)
        return class;
    return (uint64_t)(4 | (class & 3)) << class_bits(class);
}

#define CLASS_LAST 251

#endif
