/* SPDX-License-Identifier: MIT */
/* Numbers into bytes. */
#include "traces/column.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* By so many numbers from the middle the coder is chosen. */
#define SAMPLE_NUMBERS  2048
#define DICT_MAX        256
#define DICT_SLOTS      1024
#define PACKED_BITS_MAX 56

struct numbers_writer {
    struct part_packer *packer;
    enum numbers_effort effort;
    struct buf bytes; /* of a part being made */
    struct buf bits;
    /* The different numbers, when there are few enough: a hash of their places in dict. */
    uint64_t dict[DICT_MAX];
    uint32_t dict_counts[DICT_MAX];
    unsigned int dict_count;
    uint16_t slots[DICT_SLOTS]; /* place + 1 */
};

struct numbers_writer *numbers_writer_new(struct part_packer *packer,
                                          enum numbers_effort effort)
{
    struct numbers_writer *writer = calloc(1, sizeof(*writer));

    if (!writer)
        return NULL;
    writer->packer = packer;
    writer->effort = effort;
    return writer;
}

void numbers_writer_free(struct numbers_writer *writer)
{
    if (!writer)
        return;
    buf_release(&writer->bytes);
    buf_release(&writer->bits);
    free(writer);
}

/* ---- bits ---- */

struct bit_sink {
    uint8_t *to;
    uint64_t word;
    unsigned int used; /* bits of word */
};

/* width 0 .. 64; bits above it are 0. The place must have room. */
static inline void bit_put(struct bit_sink *sink, uint64_t number, unsigned int width)
{
    sink->word |= number << sink->used;
    if (sink->used + width < 64) {
        sink->used += width;
        return;
    }
    store_le64(sink->to, sink->word);
    sink->to += 8;
    width -= 64 - sink->used;
    sink->word = width ? number >> (64 - sink->used) : 0;
    sink->used = width;
}

static size_t bit_finish(struct bit_sink *sink, const uint8_t *start)
{
    size_t bytes = (size_t)(sink->to - start) + (sink->used + 7) / 8;

    store_le64(sink->to, sink->word);
    return bytes;
}

/* ---- the different numbers ---- */

static unsigned int dict_slot(uint64_t number)
{
    return (unsigned int)((number * 0x9e3779b97f4a7c15u) >> 54) % DICT_SLOTS;
}

/* Its place, or the empty slot's place -1. */
static int dict_find(const struct numbers_writer *writer, uint64_t number,
                     unsigned int *ret_slot)
{
    unsigned int slot = dict_slot(number);

    while (writer->slots[slot] != 0) {
        if (writer->dict[writer->slots[slot] - 1] == number)
            break;
        slot = (slot + 1) % DICT_SLOTS;
    }
    *ret_slot = slot;
    return writer->slots[slot] - 1;
}

/* False: there are more than DICT_MAX. */
static bool dict_make(struct numbers_writer *writer, const uint64_t *numbers, size_t count)
{
    memset(writer->slots, 0, sizeof(writer->slots));
    writer->dict_count = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned int slot;
        int place = dict_find(writer, numbers[i], &slot);

        if (place < 0) {
            if (writer->dict_count == DICT_MAX)
                return false;
            place = (int)writer->dict_count++;
            writer->dict[place] = numbers[i];
            writer->dict_counts[place] = 0;
            writer->slots[slot] = (uint16_t)(place + 1);
        }
        writer->dict_counts[place]++;
    }
    return true;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x, y;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

/* Ascending, so that the list is small differences and the places keep the numbers' order. */
static void dict_sort(struct numbers_writer *writer)
{
    qsort(writer->dict, writer->dict_count, sizeof(writer->dict[0]), compare_numbers);
    memset(writer->slots, 0, sizeof(writer->slots));
    for (unsigned int place = 0; place < writer->dict_count; place++) {
        unsigned int slot;

        dict_find(writer, writer->dict[place], &slot);
        writer->slots[slot] = (uint16_t)(place + 1);
    }
}

/* ---- coding ---- */

static enum part_effort effort_of(const struct numbers_writer *writer, enum number_coder coder)
{
    if (writer->effort == NUMBERS_SMALL)
        return PART_TRY;
    if (writer->effort == NUMBERS_QUICK)
        return PART_STORE;
    return coder == NUMBER_CLASSES ? PART_LITERALS : PART_MATCHES;
}

static void varint_bytes(struct numbers_writer *writer, const uint64_t *numbers, size_t count)
{
    uint8_t *start, *to;

    buf_clear(&writer->bytes);
    start = to = buf_reserve(&writer->bytes, count * VARINT_MAX_BYTES);
    if (!start)
        return;
    for (size_t i = 0; i < count; i++)
        to += store_varint(to, numbers[i]);
    writer->bytes.length = (size_t)(to - start);
}

static void class_bytes(struct numbers_writer *writer, const uint64_t *numbers, size_t count)
{
    struct bit_sink sink = {0};
    uint8_t *classes, *start;

    buf_clear(&writer->bytes);
    buf_clear(&writer->bits);
    classes = buf_reserve(&writer->bytes, count);
    start = buf_reserve(&writer->bits, count * 8 + 16);
    if (!classes || !start)
        return;
    sink.to = start;
    for (size_t i = 0; i < count; i++) {
        unsigned int class = class_of(numbers[i]);

        classes[i] = (uint8_t) class;
        bit_put(&sink, numbers[i] - class_low(class), class_bits(class));
    }
    writer->bytes.length = count;
    writer->bits.length = bit_finish(&sink, start);
}

static void dict_bytes(struct numbers_writer *writer, const uint64_t *numbers, size_t count)
{
    uint8_t *places;
    unsigned int slot;

    buf_clear(&writer->bytes);
    places = buf_reserve(&writer->bytes, count);
    if (!places)
        return;
    for (size_t i = 0; i < count; i++)
        places[i] = (uint8_t)dict_find(writer, numbers[i], &slot);
    writer->bytes.length = count;
}

static void packed_write(struct numbers_writer *writer, struct buf *out,
                         const uint64_t *numbers, size_t count)
{
    uint64_t least = UINT64_MAX, most = 0;
    struct bit_sink sink = {0};
    unsigned int width;
    uint8_t *start;

    for (size_t i = 0; i < count; i++) {
        least = numbers[i] < least ? numbers[i] : least;
        most = numbers[i] > most ? numbers[i] : most;
    }
    width = most > least ? 64 - (unsigned int)__builtin_clzll(most - least) : 0;
    buf_u8(out, (uint8_t)width);
    buf_varint(out, least);
    start = buf_reserve(out, count * 8 + 16);
    if (!start)
        return;
    sink.to = start;
    for (size_t i = 0; i < count; i++)
        bit_put(&sink, numbers[i] - least, width);
    out->length += bit_finish(&sink, start);
}

void numbers_write(struct numbers_writer *writer, struct buf *out, const uint64_t *numbers,
                   size_t count, enum number_coder coder)
{
    enum part_effort effort = effort_of(writer, coder);

    buf_u8(out, (uint8_t)coder);
    buf_varint(out, count);
    switch (coder) {
    case NUMBER_CONST: buf_varint(out, count ? numbers[0] : 0); return;
    case NUMBER_PACKED: packed_write(writer, out, numbers, count); return;
    case NUMBER_VARINT: varint_bytes(writer, numbers, count); break;
    case NUMBER_CLASSES: class_bytes(writer, numbers, count); break;
    case NUMBER_DICT:
        dict_make(writer, numbers, count);
        dict_sort(writer);
        buf_varint(out, writer->dict_count);
        for (unsigned int i = 0; i < writer->dict_count; i++)
            buf_varint(out, writer->dict[i] - (i ? writer->dict[i - 1] : 0));
        dict_bytes(writer, numbers, count);
        break;
    default: break;
    }
    if (writer->bytes.failed || writer->bits.failed) {
        out->failed = true;
        return;
    }
    part_pack(writer->packer, out, writer->bytes.data, writer->bytes.length, effort);
    if (coder == NUMBER_CLASSES) {
        buf_varint(out, writer->bits.length);
        buf_append(out, writer->bits.data, writer->bits.length);
    }
}

/* ---- choosing ---- */

/* Bits that symbols of these frequencies take when each is coded alone. */
static double entropy_bits(const uint32_t *counts, size_t symbols, size_t total)
{
    double bits = 0;

    for (size_t i = 0; i < symbols; i++)
        if (counts[i] > 0)
            bits += counts[i] * log2((double)total / counts[i]);
    return bits;
}

static uint64_t class_cost(const uint64_t *numbers, size_t count, double scale)
{
    uint32_t counts[256] = {0};
    uint64_t below = 0;

    for (size_t i = 0; i < count; i++) {
        unsigned int class = class_of(numbers[i]);

        counts[class]++;
        below += class_bits(class);
    }
    return (uint64_t)(scale * ((double)below + entropy_bits(counts, 256, count))) + 512;
}

/* Bits of the list itself: about as many bytes each as the mean step takes. */
static uint64_t dict_list_cost(const struct numbers_writer *writer, uint64_t range)
{
    uint8_t bytes[VARINT_MAX_BYTES];

    return writer->dict_count * 8 * store_varint(bytes, range / writer->dict_count * 2);
}

static uint64_t dict_cost(const struct numbers_writer *writer, uint64_t range, size_t count)
{
    return (uint64_t)entropy_bits(writer->dict_counts, writer->dict_count, count) +
           dict_list_cost(writer, range) + 256;
}

/* What deflate makes of the sample. */
static uint64_t sample_cost(struct numbers_writer *writer, const uint64_t *sample,
                            size_t sample_count, enum number_coder coder)
{
    uint64_t bytes = 0;

    writer->bits.length = 0;
    switch (coder) {
    case NUMBER_VARINT: varint_bytes(writer, sample, sample_count); break;
    case NUMBER_CLASSES: class_bytes(writer, sample, sample_count); break;
    default: dict_bytes(writer, sample, sample_count); break;
    }
    bytes = part_size(writer->packer, writer->bytes.data, writer->bytes.length, PART_TRY);
    return (bytes + writer->bits.length) * 8;
}

struct choice {
    enum number_coder coder;
    uint64_t cost;
};

static void choice_offer(struct choice *best, enum number_coder coder, uint64_t cost)
{
    if (cost < best->cost)
        *best = (struct choice){.coder = coder, .cost = cost};
}

uint64_t numbers_estimate(const uint64_t *numbers, size_t count)
{
    size_t sample_count = count < SAMPLE_NUMBERS ? count : SAMPLE_NUMBERS;

    if (count == 0)
        return 0;
    return class_cost(numbers + (count - sample_count) / 2, sample_count,
                      (double)count / (double)sample_count);
}

enum number_coder numbers_choose(struct numbers_writer *writer, const uint64_t *numbers,
                                 size_t count, uint64_t *ret_cost)
{
    /* Whatever the numbers are, this holds them. */
    struct choice best = {.coder = NUMBER_VARINT, .cost = count * VARINT_MAX_BYTES * 8 + 64};
    size_t sample_count = count < SAMPLE_NUMBERS ? count : SAMPLE_NUMBERS;
    const uint64_t *sample = numbers + (count - sample_count) / 2;
    uint64_t least = UINT64_MAX, most = 0;
    double scale;
    bool few;

    for (size_t i = 0; i < count; i++) {
        least = numbers[i] < least ? numbers[i] : least;
        most = numbers[i] > most ? numbers[i] : most;
    }
    if (count == 0 || least == most) {
        *ret_cost = 16;
        return NUMBER_CONST;
    }
    if ((most - least) >> PACKED_BITS_MAX == 0)
        choice_offer(&best, NUMBER_PACKED,
                     count * (64 - (unsigned int)__builtin_clzll(most - least)) + 32);
    if (writer->effort == NUMBERS_QUICK) {
        *ret_cost = best.cost;
        return best.coder;
    }
    scale = (double)count / (double)sample_count;
    few = dict_make(writer, numbers, count);
    if (writer->effort == NUMBERS_USUAL) {
        choice_offer(&best, NUMBER_CLASSES, class_cost(sample, sample_count, scale));
        if (few)
            choice_offer(&best, NUMBER_DICT, dict_cost(writer, most - least, count));
    } else {
        for (enum number_coder coder = NUMBER_VARINT; coder <= NUMBER_DICT; coder++) {
            if (coder == NUMBER_PACKED || (coder == NUMBER_DICT && !few))
                continue;
            choice_offer(
                &best, coder,
                (uint64_t)(scale * (double)sample_cost(writer, sample, sample_count, coder)) +
                    (coder == NUMBER_DICT ? dict_list_cost(writer, most - least) : 0));
        }
    }
    *ret_cost = best.cost;
    return best.coder;
}

bool numbers_suit(struct numbers_writer *writer, const uint64_t *numbers, size_t count,
                  enum number_coder coder)
{
    uint64_t least = UINT64_MAX, most = 0;

    for (size_t i = 0; i < count; i++) {
        least = numbers[i] < least ? numbers[i] : least;
        most = numbers[i] > most ? numbers[i] : most;
    }
    if (count == 0 || least == most)
        return coder == NUMBER_CONST;
    switch (coder) {
    case NUMBER_CONST: return false;
    case NUMBER_PACKED: return (most - least) >> PACKED_BITS_MAX == 0;
    case NUMBER_DICT: return dict_make(writer, numbers, count);
    default: return true;
    }
}
