/* SPDX-License-Identifier: MIT */
#include "traces/units.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct unit {
    const char *name;
    uint64_t factor;
};

#define KIB 1024ull
static const struct unit binary_units[] = {
    {"", 1},
    {"k", KIB},
    {"m", KIB *KIB},
    {"g", KIB *KIB *KIB},
    {"t", KIB *KIB *KIB *KIB},
    {"p", KIB *KIB *KIB *KIB *KIB},
    {"kib", KIB},
    {"mib", KIB *KIB},
    {"gib", KIB *KIB *KIB},
    {"tib", KIB *KIB *KIB *KIB},
    {"pib", KIB *KIB *KIB *KIB *KIB},
    {"b", 1},
    {"kb", 1000},
    {"mb", 1000000},
    {"gb", 1000000000},
    {"tb", 1000000000000},
    {"pb", 1000000000000000},
    {NULL, 0},
};

static const struct unit time_units[] = {
    {"ns", 1},           {"us", 1000},       {"ms", 1000000},      {"s", 1000000000},
    {"sec", 1000000000}, {"m", 60000000000}, {"min", 60000000000}, {"h", 3600000000000},
    {NULL, 0},
};

static const struct unit count_units[] = {
    {"", 1}, {"k", 1000}, {"m", 1000000}, {"g", 1000000000}, {"t", 1000000000000}, {NULL, 0},
};

/*
 * value * 10^-digits * factor, in integers: a double would cut 64-bit sizes. The fraction may
 * only vanish by rounding ("1.5" of a unit of 1 is an error, "0.1k" is 102.4 and rounds).
 */
static int scale(uint64_t whole, uint64_t fraction, uint64_t fraction_unit, uint64_t factor,
                 uint64_t *ret_value)
{
    unsigned __int128 sum = (unsigned __int128)whole * factor;

    if (fraction && factor == 1)
        return -EINVAL;
    sum += ((unsigned __int128)fraction * factor + fraction_unit / 2) / fraction_unit;
    if (sum > UINT64_MAX)
        return -ERANGE;
    *ret_value = (uint64_t)sum;
    return 0;
}

static int parse_digits(const char **text, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (; isdigit((unsigned char)**text); (*text)++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(**text - '0'), &value))
            return -ERANGE;
    *ret_value = value;
    return 0;
}

static int parse(const char *text, const struct unit *units, uint64_t *ret_value)
{
    uint64_t whole, fraction = 0, fraction_unit = 1;
    const char *start = text;
    int err;

    if (*text == '-')
        return isdigit((unsigned char)text[1]) ? -ERANGE : -EINVAL;
    err = parse_digits(&text, &whole);
    if (err)
        return err;
    if (text == start)
        return -EINVAL;
    if (*text == '.') {
        if (!isdigit((unsigned char)*++text))
            return -EINVAL;
        for (; isdigit((unsigned char)*text); text++) {
            if (fraction_unit >= 1000000000000000ull)
                continue; /* digits past the 15th change nothing */
            fraction = fraction * 10 + (uint64_t)(*text - '0');
            fraction_unit *= 10;
        }
    }
    while (*text == ' ')
        text++;
    for (; units->name; units++)
        if (strcasecmp(text, units->name) == 0)
            return scale(whole, fraction, fraction_unit, units->factor, ret_value);
    return -EINVAL;
}

int units_parse_size(const char *text, uint64_t *ret_bytes)
{
    return parse(text, binary_units, ret_bytes);
}

int units_parse_time(const char *text, uint64_t *ret_ns)
{
    if (strcmp(text, "0") == 0) {
        *ret_ns = 0;
        return 0;
    }
    return parse(text, time_units, ret_ns);
}

int units_parse_count(const char *text, uint64_t *ret_count)
{
    return parse(text, count_units, ret_count);
}

int units_parse_double(const char *text, double *ret_value)
{
    static locale_t c_locale;
    double value;
    char *end;

    if (!*text || isspace((unsigned char)*text))
        return -EINVAL;
    if (!__atomic_load_n(&c_locale, __ATOMIC_ACQUIRE)) {
        locale_t made = newlocale(LC_ALL_MASK, "C", (locale_t)0), none = (locale_t)0;

        if (!made)
            return -ENOMEM;
        if (!__atomic_compare_exchange_n(&c_locale, &none, made, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE))
            freelocale(made);
    }
    value = strtod_l(text, &end, c_locale);
    if (*end || !isfinite(value))
        return -EINVAL;
    *ret_value = value;
    return 0;
}

const char *units_size(uint64_t bytes, char *buf)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t i = 0;

    while (value >= 1023.95 && i < 6) {
        value /= 1024;
        i++;
    }
    snprintf(buf, UNITS_TEXT, i ? "%.1f %s" : "%.0f %s", value, names[i]);
    return buf;
}

const char *units_time(uint64_t ns, char *buf)
{
    if (ns < 1000)
        snprintf(buf, UNITS_TEXT, "%u ns", (unsigned int)ns);
    else if (ns < 999950)
        snprintf(buf, UNITS_TEXT, "%.1f us", (double)ns / 1e3);
    else if (ns < 999950000)
        snprintf(buf, UNITS_TEXT, "%.1f ms", (double)ns / 1e6);
    else if (ns < 600000000000ull)
        snprintf(buf, UNITS_TEXT, "%.2f s", (double)ns / 1e9);
    else
        snprintf(buf, UNITS_TEXT, "%.1f min", (double)ns / 60e9);
    return buf;
}

const char *units_count(double count, char *buf)
{
    static const char *const names[] = {"", " k", " M", " G", " T"};
    size_t i = 0;

    while (fabs(count) >= 999.95 && i < 4) {
        count /= 1000;
        i++;
    }
    snprintf(buf, UNITS_TEXT, i ? "%.1f%s" : "%.4g%s", count, names[i]);
    return buf;
}
