/* SPDX-License-Identifier: MIT */
/* Numbers back from bytes. */
#include "traces/column.h"

#define PACKED_BITS_MAX 56

static uint64_t bits_load(const struct bit_cursor *bits)
{
    size_t byte = (size_t)(bits->position >> 3);
    uint64_t word = 0;

    if (byte + 8 <= bits->bytes)
        return load_le64(bits->data + byte);
    for (size_t i = 0; byte + i < bits->bytes; i++)
        word |= (uint64_t)bits->data[byte + i] << 8 * i;
    return word;
}

/* width 0 .. 57 */
static inline uint64_t bits_take(struct bit_cursor *bits, unsigned int width)
{
    uint64_t word = bits_load(bits) >> (bits->position & 7);

    bits->position += width;
    return word & ((1ull << width) - 1);
}

/* Whether so many bits can be taken without looking for the end each time. */
static bool bits_ample(const struct bit_cursor *bits, uint64_t count)
{
    return (bits->position + count) / 8 + 16 <= bits->bytes;
}

/* As bits_take, of bits that are ample. */
static inline uint64_t bits_take_fast(struct bit_cursor *bits, unsigned int width)
{
    uint64_t word = load_le64(bits->data + (bits->position >> 3)) >> (bits->position & 7);

    bits->position += width;
    return word & ((1ull << width) - 1);
}

static bool bits_open(struct bit_cursor *bits, struct cursor *in, uint64_t bytes)
{
    *bits = (struct bit_cursor){.data = cursor_bytes(in, bytes), .bytes = (size_t)bytes};
    return bits->data != NULL;
}

static bool dict_open(struct numbers_reader *numbers, struct cursor *in)
{
    uint64_t count = cursor_varint(in), number = 0;

    if (count == 0 || count > 256)
        return false;
    numbers->dict_count = (unsigned int)count;
    for (uint64_t i = 0; i < count; i++) {
        number += cursor_varint(in);
        numbers->dict[i] = number;
    }
    return !in->failed;
}

bool numbers_open(struct numbers_reader *numbers, struct part_unpacker *unpacker,
                  struct part_arena *arena, struct cursor *in, size_t most)
{
    uint64_t count;

    numbers->coder = cursor_u8(in);
    count = cursor_varint(in);
    if (in->failed || count > most)
        return false;
    numbers->left = (size_t)count;
    switch (numbers->coder) {
    case NUMBER_CONST: numbers->base = cursor_varint(in); return !in->failed;
    case NUMBER_VARINT: return part_unpack(unpacker, arena, in, &numbers->bytes);
    case NUMBER_PACKED:
        numbers->width = cursor_u8(in);
        numbers->base = cursor_varint(in);
        return !in->failed && numbers->width <= PACKED_BITS_MAX &&
               bits_open(&numbers->bits, in, (count * numbers->width + 7) / 8);
    case NUMBER_CLASSES:
        return part_unpack(unpacker, arena, in, &numbers->bytes) &&
               cursor_left(&numbers->bytes) == count &&
               bits_open(&numbers->bits, in, cursor_varint(in));
    case NUMBER_DICT:
        return dict_open(numbers, in) && part_unpack(unpacker, arena, in, &numbers->bytes) &&
               cursor_left(&numbers->bytes) == count;
    default: return false;
    }
}

static bool varints_read(struct numbers_reader *numbers, uint64_t *ret_numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ret_numbers[i] = cursor_varint(&numbers->bytes);
    return !numbers->bytes.failed;
}

static bool packed_read(struct numbers_reader *numbers, uint64_t *ret_numbers, size_t count)
{
    struct bit_cursor bits = numbers->bits;
    unsigned int width = numbers->width;
    uint64_t base = numbers->base;

    if (bits_ample(&bits, count * width))
        for (size_t i = 0; i < count; i++)
            ret_numbers[i] = base + bits_take_fast(&bits, width);
    else
        for (size_t i = 0; i < count; i++)
            ret_numbers[i] = base + bits_take(&bits, width);
    numbers->bits = bits;
    return true;
}

/* The bits below a class; width up to 61. */
static uint64_t class_below(struct bit_cursor *bits, unsigned int width)
{
    uint64_t below;

    if (width <= 57)
        return bits_take(bits, width);
    below = bits_take(bits, 32);
    return below | bits_take(bits, width - 32) << 32;
}

static bool classes_read(struct numbers_reader *numbers, uint64_t *ret_numbers, size_t count)
{
    const uint8_t *classes = numbers->bytes.at;
    struct bit_cursor bits = numbers->bits;
    unsigned int most = 0;

    for (size_t i = 0; i < count; i++)
        most = classes[i] > most ? classes[i] : most;
    if (most > CLASS_LAST)
        return false;
    if (class_bits(most) <= 57 && bits_ample(&bits, count * class_bits(most)))
        for (size_t i = 0; i < count; i++)
            ret_numbers[i] =
                class_low(classes[i]) + bits_take_fast(&bits, class_bits(classes[i]));
    else
        for (size_t i = 0; i < count; i++)
            ret_numbers[i] = class_low(classes[i]) + class_below(&bits, class_bits(classes[i]));
    numbers->bits = bits;
    numbers->bytes.at += count;
    return bits.position <= (uint64_t)bits.bytes * 8;
}

static bool dict_read(struct numbers_reader *numbers, uint64_t *ret_numbers, size_t count)
{
    const uint8_t *places = numbers->bytes.at;
    unsigned int most = 0;

    for (size_t i = 0; i < count; i++) {
        most = places[i] > most ? places[i] : most;
        ret_numbers[i] = numbers->dict[places[i]];
    }
    numbers->bytes.at += count;
    return most < numbers->dict_count;
}

bool numbers_read(struct numbers_reader *numbers, uint64_t *ret_numbers, size_t count)
{
    if (count > numbers->left)
        return false;
    numbers->left -= count;
    switch (numbers->coder) {
    case NUMBER_CONST:
        for (size_t i = 0; i < count; i++)
            ret_numbers[i] = numbers->base;
        return true;
    case NUMBER_VARINT: return varints_read(numbers, ret_numbers, count);
    case NUMBER_PACKED: return packed_read(numbers, ret_numbers, count);
    case NUMBER_CLASSES: return classes_read(numbers, ret_numbers, count);
    case NUMBER_DICT: return dict_read(numbers, ret_numbers, count);
    default: return false;
    }
}
