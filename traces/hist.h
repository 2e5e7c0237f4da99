/* SPDX-License-Identifier: MIT */
/*
 * Log-linear histogram of 64-bit values (HdrHistogram's layout): exact below 128, then 128
 * steps to each power of two, so a reported value is at most 0.8 % above the recorded one.
 * Covers the whole uint64_t range: nothing is ever out of range.
 *
 * One writer a histogram; merge at the end. init allocates nothing: the counters are inside
 * (about 58 KiB).
 */
#ifndef TRACES_HIST_H
#define TRACES_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS 7
#define HIST_SLOTS    ((64 - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
    uint64_t count;
    uint64_t min, max; /* exact; min is UINT64_MAX when empty */
    double sum, sum_squares;
    uint64_t slots[HIST_SLOTS];
};

void hist_init(struct hist *hist);
static inline unsigned int hist_slot(uint64_t value);
static inline void hist_add(struct hist *hist, uint64_t value);
void hist_merge(struct hist *into, const struct hist *from);
double hist_mean(const struct hist *hist);   /* 0 when empty */
double hist_stddev(const struct hist *hist); /* population; 0 when empty */
/* The value at or below which the fraction lies, 0 <= fraction <= 1: the highest value of its
 * slot, never above max; 0 when empty. */
uint64_t hist_quantile(const struct hist *hist, double fraction);
uint64_t hist_slot_low(unsigned int slot);  /* lowest value a slot holds */
uint64_t hist_slot_high(unsigned int slot); /* highest */

static inline unsigned int hist_slot(uint64_t value)
{
    unsigned int high, shift;

    if (value < (1u << HIST_SUB_BITS))
        return (unsigned int)value;
    high = 63 - (unsigned int)__builtin_clzll(value);
    shift = high - HIST_SUB_BITS;
    return ((shift + 1) << HIST_SUB_BITS) + (unsigned int)((value >> shift) & ((1u << HIST_SUB_BITS) - 1));
}

static inline void hist_add(struct hist *hist, uint64_t value)
{
    hist->slots[hist_slot(value)]++;
    hist->count++;
    if (value < hist->min)
        hist->min = value;
    if (value > hist->max)
        hist->max = value;
    hist->sum += (double)value;
    hist->sum_squares += (double)value * (double)value;
}

#endif
