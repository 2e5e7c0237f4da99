/* SPDX-License-Identifier: MIT */
/*
 * The experiment itself: checks the cells, runs the trials that are not done yet block by
 * block, and keeps the journal. What it learns it leaves in the design (cells that cannot run)
 * and the journal; judging comes after.
 */
#ifndef REPLAY_COMPARE_EXPERIMENT_H
#define REPLAY_COMPARE_EXPERIMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/compare_trial.h"

struct experiment {
    struct design *design;
    struct journal *journal;
    struct trial_conf trial;
    uint64_t cool_down_ns; /* between trials */
    const char *reset;     /* a shell command before each trial, or NULL */
    bool progress;         /* a line on standard error that rewrites itself */
    bool notes;            /* after the first block, a note of how long the rest will take */
    /* private */
    bool noted;
    unsigned int ran; /* trials run by this process */
    double ran_ns;
};

/*
 * Excludes the cells that cannot run here: an engine that is not available, a depth that the
 * engine, the kernel or memory does not allow. Only for replays. -ENOMEM with diag.
 */
int experiment_check(struct design *design, struct diag *diag);
/*
 * Runs what is left to run. A cell whose trial fails is excluded from then on, the reason kept;
 * but where earlier trials worked it is run again a few times first, and the record counts
 * those. 0; -EINTR: stopped (the journal is whole); another -errno with diag.
 */
int experiment_run(struct experiment *experiment, struct diag *diag);

#endif
