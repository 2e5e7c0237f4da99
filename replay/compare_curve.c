/* SPDX-License-Identifier: MIT */
#include "replay/compare_curve.h"

#include <errno.h>
#include <math.h>

const double curve_fraction[CURVE_POINTS] = {
    0.001, 0.01, 0.02, 0.05, 0.10, 0.15,  0.20,  0.25,  0.30,   0.35,   0.40,
    0.45,  0.50, 0.55, 0.60, 0.65, 0.70,  0.75,  0.80,  0.85,   0.90,   0.925,
    0.95,  0.96, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999, 0.99999,
};

void curve_add_weighted(struct hist *hist, uint64_t value, uint64_t weight)
{
    if (weight == 0)
        return;
    hist->slots[hist_slot(value)] += weight;
    hist->count += weight;
    if (value < hist->min)
        hist->min = value;
    if (value > hist->max)
        hist->max = value;
    hist->sum += (double)value * (double)weight;
    hist->sum_squares += (double)value * (double)value * (double)weight;
}

void curve_signed_init(struct curve_signed *curve)
{
    hist_init(&curve->below);
    hist_init(&curve->above);
}

void curve_signed_add(struct curve_signed *curve, int64_t value)
{
    if (value < 0)
        hist_add(&curve->below, -(uint64_t)value);
    else
        hist_add(&curve->above, (uint64_t)value);
}

uint64_t curve_signed_count(const struct curve_signed *curve)
{
    return curve->below.count + curve->above.count;
}

int64_t curve_signed_min(const struct curve_signed *curve)
{
    if (curve->below.count > 0)
        return -(int64_t)curve->below.max;
    return curve->above.count > 0 ? (int64_t)curve->above.min : 0;
}

int64_t curve_signed_max(const struct curve_signed *curve)
{
    if (curve->above.count > 0)
        return (int64_t)curve->above.max;
    return curve->below.count > 0 ? -(int64_t)curve->below.min : 0;
}

double curve_signed_mean(const struct curve_signed *curve)
{
    uint64_t count = curve_signed_count(curve);

    return count > 0 ? (curve->above.sum - curve->below.sum) / (double)count : 0;
}

double curve_signed_stddev(const struct curve_signed *curve)
{
    uint64_t count = curve_signed_count(curve);
    double mean = curve_signed_mean(curve), variance;

    if (count == 0)
        return 0;
    variance =
        (curve->above.sum_squares + curve->below.sum_squares) / (double)count - mean * mean;
    return variance > 0 ? sqrt(variance) : 0;
}

int64_t curve_signed_quantile(const struct curve_signed *curve, double fraction)
{
    uint64_t count = curve_signed_count(curve);
    double below = (double)curve->below.count, rank = fraction * (double)count;

    if (count == 0)
        return 0;
    if (rank < below)
        return -(int64_t)hist_quantile(&curve->below, 1 - rank / below);
    if (curve->above.count == 0)
        return -(int64_t)curve->below.min;
    return (int64_t)hist_quantile(&curve->above, (rank - below) / (double)curve->above.count);
}

/* The middle of what the slot may hold, drawn in to the values really met. */
static double slot_value(const struct hist *hist, unsigned int slot)
{
    double low = (double)hist_slot_low(slot), high = (double)hist_slot_high(slot);

    if (low < (double)hist->min)
        low = (double)hist->min;
    if (high > (double)hist->max)
        high = (double)hist->max;
    return (low + high) / 2;
}

int curve_distance(const struct hist *a, const struct hist *b,
                   struct curve_distance *ret_distance)
{
    struct curve_distance distance = {0, 0, 0};
    double share_a = 0, share_b = 0, last = 0, value, gap;
    unsigned int slot;

    if (a->count == 0 || b->count == 0)
        return -ENODATA;
    for (slot = 0; slot < HIST_SLOTS; slot++) {
        if (a->slots[slot] == 0 && b->slots[slot] == 0)
            continue;
        if (a->slots[slot] == 0)
            value = slot_value(b, slot);
        else if (b->slots[slot] == 0)
            value = slot_value(a, slot);
        else
            value = (slot_value(a, slot) + slot_value(b, slot)) / 2;
        distance.mover += fabs(share_a - share_b) * (value - last);
        share_a += (double)a->slots[slot] / (double)a->count;
        share_b += (double)b->slots[slot] / (double)b->count;
        gap = fabs(share_a - share_b);
        if (gap > distance.ks) {
            distance.ks = gap;
            distance.ks_at = hist_slot_high(slot);
        }
        last = value;
    }
    /* What rounding of the running sums left is not a difference. */
    if (distance.ks < 1e-12)
        distance.ks = 0;
    if (distance.ks == 0)
        distance.mover = 0;
    *ret_distance = distance;
    return 0;
}
