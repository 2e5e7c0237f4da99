/* SPDX-License-Identifier: MIT */
/*
 * Offsets moved so that a trace of a large device fits a small one.
 *
 *   wrap   the remainder of the offset by the size; what crosses the end is pulled back
 *   scale  offsets shrink in proportion, keeping their alignment (up to 4 KiB)
 *   pack   grains of a file that were touched are laid side by side in order: neighbours stay
 *          neighbours, untouched space vanishes. Discards are clipped to what was touched.
 *
 * Ops are observed before any is moved. Memory: a pack keeps at most FIT_GRAINS_MAX grains;
 * when more are touched the grain doubles. One thread.
 */
#ifndef CONVERT_FIT_H
#define CONVERT_FIT_H

#include <stdint.h>

#include "traces/trace.h"

struct diag;
struct catalog;

#define FIT_GRAINS_MAX (1u << 20)

enum fit_mode {
    FIT_NONE,
    FIT_WRAP,
    FIT_SCALE,
    FIT_PACK
};

struct fit_conf {
    int mode;             /* enum fit_mode */
    uint64_t size_bytes;  /* each file must fit in it; 0 with pack: as large as it gets */
    uint64_t grain_bytes; /* pack; a power of two */
};

struct fit_grain {
    uint64_t number;         /* offset >> grain_bits */
    uint32_t file, position; /* position: sorted rank within the file; before: used mark */
};

struct fit {
    const struct fit_conf *conf;
    unsigned int grain_bits;
    struct fit_grain *grains; /* a hash set, then sorted */
    uint32_t grain_count, mask;
    uint64_t *max_ends; /* by file number: of the source */
    uint32_t max_ends_known;
    uint64_t moved, shortened, dropped; /* ops */
    uint64_t largest_bytes;             /* of a packed file */
};

int fit_conf_check(const struct fit_conf *conf, struct diag *diag);
int fit_init(struct fit *fit, const struct fit_conf *conf);
int fit_observe(struct fit *fit, const struct trace_op *op); /* 0 or -ENOMEM */
/* After the last observe. -ENOSPC with the diag set when a packed file is larger than the size;
 * sets the sizes of the files that were fitted. */
int fit_finish(struct fit *fit, struct catalog *tables, struct diag *diag);
/* Moves the op; 1, or 0 when nothing of it is left (a discard of untouched space). */
int fit_apply(struct fit *fit, struct trace_op *op);
void fit_release(struct fit *fit);

#endif
