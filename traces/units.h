/* SPDX-License-Identifier: MIT */
/*
 * Sizes, times and counts as people write them, and back.
 *
 * Sizes: a number and k, m, g, t, p, KiB, MiB ... (powers of 1024) or kB, MB, GB ... (powers of
 * 1000); no unit is bytes. Times: a number and ns, us, ms, s, m, min, h; a unit is needed except
 * for 0. Counts: a number and k, m, g (powers of 1000). Fractions are allowed where the result is
 * whole to within rounding. All parsers take the whole string, leave the output alone on failure
 * and return -EINVAL (not a number, unknown unit) or -ERANGE (does not fit, negative).
 */
#ifndef TRACES_UNITS_H
#define TRACES_UNITS_H

#include <stddef.h>
#include <stdint.h>

int units_parse_size(const char *text, uint64_t *ret_bytes);
int units_parse_time(const char *text, uint64_t *ret_ns);
int units_parse_count(const char *text, uint64_t *ret_count);
int units_parse_double(const char *text, double *ret_value); /* finite, '.' whatever the locale */

#define UNITS_TEXT 32
/* Short forms for people: "4.0 KiB", "12.3 us", "1.2 M". buf holds UNITS_TEXT; returned. */
const char *units_size(uint64_t bytes, char *buf);
const char *units_time(uint64_t ns, char *buf);
const char *units_count(double count, char *buf);

#endif
