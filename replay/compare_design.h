/* SPDX-License-Identifier: MIT */
/*
 * The design of an experiment: dimensions (engine, depth ...), the cells where they cross,
 * which cell each is compared with, and in what order the trials run.
 *
 * Trials come in blocks: each block runs every cell once, in a random order drawn from the
 * seed. A cell and its baseline are paired within a block, so what drifts slowly hits both
 * alike. The first warm-up blocks are run and not judged.
 *
 * Lifecycle: design_init, design_add for each dimension, design_cross, use, design_release.
 * After design_cross it is only read (but for design_exclude). One thread. Errors: -errno, in
 * diag.
 */
#ifndef REPLAY_COMPARE_DESIGN_H
#define REPLAY_COMPARE_DESIGN_H

#include <stddef.h>
#include <stdint.h>

struct diag;

#define DESIGN_DIMENSIONS 16
#define DESIGN_CELLS      4096

struct design_dimension {
    char *name;
    char **values;
    unsigned int count;
};

struct design_cell {
    unsigned int value[DESIGN_DIMENSIONS]; /* index in each dimension's values */
    unsigned int baseline; /* the cell it is compared with; its own index: with none */
    char *excluded;        /* why it cannot run, or NULL */
};

struct design {
    struct design_dimension dimension[DESIGN_DIMENSIONS];
    unsigned int dimensions;
    struct design_cell *cells;
    unsigned int count;
    unsigned int warmup, trials; /* blocks */
    uint64_t seed;
};

void design_init(struct design *design);
void design_release(struct design *design);

/*
 * Adds a dimension. text is values joined by commas ("\," is a comma within one). A name that
 * is there already gets the values appended. -EINVAL: no value, or too many dimensions.
 */
int design_add(struct design *design, const char *name, const char *text, struct diag *diag);
/* As design_add with text as one value, commas and all. */
int design_add_one(struct design *design, const char *name, const char *text,
                   struct diag *diag);
/*
 * As design_add for engines: a comma starts a new one only where an engine's name follows, so
 * that "io_uring:sqpoll=1,register=0,sync" is two. -EINVAL too when that cannot be read.
 */
int design_add_engines(struct design *design, const char *text, struct diag *diag);

/*
 * Makes the cells. baseline: "engine=sync,depth=1": each cell is compared with the one that has
 * those values and is else the same; "first": with the first cell; NULL: with the cell that has
 * the first value of the first dimension of more than one.
 */
int design_cross(struct design *design, const char *baseline, struct diag *diag);
/* The cell cannot run; the reason is copied. -ENOMEM. */
int design_exclude(struct design *design, unsigned int cell, const char *reason);

/* The value of a dimension in a cell; NULL: no such dimension. */
const char *design_value(const struct design *design, unsigned int cell, const char *name);
/* "engine sync, depth 32": dimensions of more than one value. Returns buf. */
const char *design_label(const struct design *design, unsigned int cell, char *buf,
                         size_t size);
/* Comparisons of cells that can run, with a baseline that can. */
unsigned int design_comparisons(const struct design *design);
/* The order of a block: ret_order has room for count cells; returns how many can run. */
unsigned int design_order(const struct design *design, unsigned int block, uint32_t *ret_order);
/* The seed a trial is given: the same for the same seed, block and cell. */
uint64_t design_trial_seed(const struct design *design, unsigned int block, unsigned int cell);

#endif
