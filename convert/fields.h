/* SPDX-License-Identifier: MIT */
/*
 * A text line as fields, and the exact integers in them. Times are never held as floating
 * point: 18-digit stamps would lose their last digits.
 */
#ifndef CONVERT_FIELDS_H
#define CONVERT_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct field {
    const char *at; /* into the line; not NUL-terminated */
    size_t length;
    size_t column; /* of its first byte in the line, from 1 */
};

/*
 * Splits line at separator, or at runs of blanks and tabs when it is ' ' (blanks around fields
 * are dropped either way). Stores up to max fields, returns how many there are (which may be
 * more than max). An empty line has none.
 */
size_t fields_split(const char *line, size_t length, char separator, struct field *ret_fields,
                    size_t max);

bool field_is(const struct field *field, const char *text);      /* exactly */
bool field_is_word(const struct field *field, const char *text); /* whatever the case */

/* Each takes the whole field, leaves the output alone on failure and returns 0, -EINVAL (not
 * such a number) or -ERANGE (does not fit). */
int field_u64(const struct field *field, uint64_t *ret_value);
int field_hex(const struct field *field, uint64_t *ret_value); /* 0x in front is allowed */
/* "8,0": major below 2^12, minor below 2^20, as the kernel's dev_t. */
int field_device(const struct field *field, uint32_t *ret_major, uint32_t *ret_minor);
/*
 * A decimal number with an optional fraction and sign, times num/den, to the nearest integer:
 * num = 1000000000, den = 1 turns seconds into ns. Up to 18 digits of fraction are used.
 */
int field_scaled(const struct field *field, uint64_t num, uint64_t den, int64_t *ret_value);

#endif
