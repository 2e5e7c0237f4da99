/* SPDX-License-Identifier: MIT */
#include "traces/hist.h"

#include <math.h>
#include <string.h>

void hist_init(struct hist *hist)
{
    memset(hist, 0, sizeof(*hist));
    hist->min = UINT64_MAX;
}

void hist_merge(struct hist *into, const struct hist *from)
{
    /* Between the extremes alone: the rest is zero, and perhaps no page yet. */
    if (from->count != 0)
        for (unsigned int i = hist_slot(from->min); i <= hist_slot(from->max); i++)
            into->slots[i] += from->slots[i];
    into->count += from->count;
    into->sum += from->sum;
    into->sum_squares += from->sum_squares;
    if (from->min < into->min)
        into->min = from->min;
    if (from->max > into->max)
        into->max = from->max;
}

double hist_mean(const struct hist *hist)
{
    return hist->count ? hist->sum / (double)hist->count : 0;
}

double hist_stddev(const struct hist *hist)
{
    double mean = hist_mean(hist), variance;

    if (!hist->count)
        return 0;
    variance = hist->sum_squares / (double)hist->count - mean * mean;
    return variance > 0 ? sqrt(variance) : 0; /* rounding may leave it just below 0 */
}

uint64_t hist_slot_low(unsigned int slot)
{
    unsigned int shift;

    if (slot < (1u << HIST_SUB_BITS))
        return slot;
    shift = (slot >> HIST_SUB_BITS) - 1;
    return ((uint64_t)(slot & ((1u << HIST_SUB_BITS) - 1)) | (1u << HIST_SUB_BITS)) << shift;
}

uint64_t hist_slot_high(unsigned int slot)
{
    if (slot + 1 >= HIST_SLOTS)
        return UINT64_MAX;
    return hist_slot_low(slot + 1) - 1;
}

uint64_t hist_quantile(const struct hist *hist, double fraction)
{
    uint64_t rank, seen = 0;

    if (!hist->count)
        return 0;
    if (fraction >= 1)
        return hist->max;
    rank = (uint64_t)ceil(fraction * (double)hist->count);
    if (rank == 0)
        return hist->min;
    for (unsigned int i = 0; i < HIST_SLOTS; i++) {
        seen += hist->slots[i];
        if (seen >= rank) {
            uint64_t high = hist_slot_high(i);

            return high < hist->max ? high : hist->max;
        }
    }
    return hist->max;
}
