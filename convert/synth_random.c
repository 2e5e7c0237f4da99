/* SPDX-License-Identifier: MIT */
#include "convert/synth_random.h"

#include <math.h>

#define ROUNDS 4u

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

void synth_rng_init(struct synth_rng *rng, uint64_t seed, uint64_t stream)
{
    uint64_t state = mix(seed + 0x9e3779b97f4a7c15u) ^ mix(stream * 0xd1342543de82ef95u + 1);

    for (unsigned int i = 0; i < 4; i++)
        rng->state[i] = mix(state += 0x9e3779b97f4a7c15u);
}

static uint64_t rotate(uint64_t value, unsigned int bits)
{
    return value << bits | value >> (64 - bits);
}

/* xoshiro256**, by its published recurrence. */
uint64_t synth_rng_next(struct synth_rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9, shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t synth_rng_below(struct synth_rng *rng, uint64_t limit)
{
    return (uint64_t)((unsigned __int128)synth_rng_next(rng) * limit >> 64);
}

double synth_rng_unit(struct synth_rng *rng)
{
    return ((double)(synth_rng_next(rng) >> 11) + 1) * 0x1p-53;
}

/* ---- permutation: a Feistel network over the next even power of two, walked until inside
 * ------ */

void synth_shuffle_init(struct synth_shuffle *shuffle, uint64_t count, uint64_t seed)
{
    shuffle->count = count;
    shuffle->half_bits = 1;
    while (shuffle->half_bits < 32 && (UINT64_C(1) << 2 * shuffle->half_bits) < count)
        shuffle->half_bits++;
    for (unsigned int i = 0; i < ROUNDS; i++)
        shuffle->keys[i] = mix(seed + (i + 1) * 0x9e3779b97f4a7c15u);
}

uint64_t synth_shuffle_at(const struct synth_shuffle *shuffle, uint64_t index)
{
    uint64_t mask = (UINT64_C(1) << shuffle->half_bits) - 1;

    do {
        uint64_t left = index >> shuffle->half_bits, right = index & mask;

        for (unsigned int i = 0; i < ROUNDS; i++) {
            uint64_t next = left ^ (mix(right ^ shuffle->keys[i]) & mask);

            left = right;
            right = next;
        }
        index = left << shuffle->half_bits | right;
    } while (index >= shuffle->count);
    return index;
}

/* ---- zipf ----------------------------------------------------------------------------- */

/* The integral of x^-theta, and its inverse. */
static double integral(double theta, double x)
{
    double power = log(x) * (1 - theta);

    return fabs(1 - theta) < 1e-9 ? log(x) : expm1(power) / (1 - theta);
}

static double inverse(double theta, double value)
{
    if (fabs(1 - theta) < 1e-9)
        return exp(value);
    return exp(log1p(fmax(value * (1 - theta), -1)) / (1 - theta));
}

void synth_zipf_init(struct synth_zipf *zipf, uint64_t count, double theta)
{
    zipf->count = count;
    zipf->theta = theta;
    zipf->low = integral(theta, 1.5) - 1;
    zipf->high = integral(theta, (double)count + 0.5);
    zipf->cut = 2 - inverse(theta, integral(theta, 2.5) - pow(2, -theta));
}

uint64_t synth_zipf_rank(const struct synth_zipf *zipf, struct synth_rng *rng)
{
    for (;;) {
        double u = zipf->high + synth_rng_unit(rng) * (zipf->low - zipf->high);
        double x = inverse(zipf->theta, u), rank = floor(x + 0.5);

        if (rank < 1)
            rank = 1;
        if (rank > (double)zipf->count)
            rank = (double)zipf->count;
        if (rank - x <= zipf->cut ||
            u >= integral(zipf->theta, rank + 0.5) - pow(rank, -zipf->theta))
            return (uint64_t)rank - 1;
    }
}
