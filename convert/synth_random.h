/* SPDX-License-Identifier: MIT */
/* Reproducible random numbers: the same seed gives the same sequence on every machine. */
#ifndef CONVERT_SYNTH_RANDOM_H
#define CONVERT_SYNTH_RANDOM_H

#include <stdint.h>

struct synth_rng {
    uint64_t state[4];
};

void synth_rng_init(struct synth_rng *rng, uint64_t seed, uint64_t stream);
uint64_t synth_rng_next(struct synth_rng *rng);
uint64_t synth_rng_below(struct synth_rng *rng, uint64_t limit); /* 0 .. limit - 1; limit > 0 */
double synth_rng_unit(struct synth_rng *rng);                    /* above 0, at most 1 */

/* A permutation of 0 .. count - 1 without a table. */
struct synth_shuffle {
    uint64_t count, keys[4];
    unsigned int half_bits;
};

void synth_shuffle_init(struct synth_shuffle *shuffle, uint64_t count, uint64_t seed);
uint64_t synth_shuffle_at(const struct synth_shuffle *shuffle, uint64_t index);

/* Zipf ranks: P(rank) proportional to 1 / rank^theta, rank 1 .. count; theta > 0. By rejection
 * and inversion, so that count costs neither time nor memory. */
struct synth_zipf {
    uint64_t count;
    double theta, low, high, cut;
};

void synth_zipf_init(struct synth_zipf *zipf, uint64_t count, double theta);
uint64_t synth_zipf_rank(const struct synth_zipf *zipf, struct synth_rng *rng); /* from 0 */

#endif
