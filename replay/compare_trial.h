/* SPDX-License-Identifier: MIT */
/*
 * One trial: a fresh process, and what it left. A replay leaves a JSON report and a result
 * tape; a command its output.
 */
#ifndef REPLAY_COMPARE_TRIAL_H
#define REPLAY_COMPARE_TRIAL_H

#include <signal.h>
#include <stdbool.h>

#include "replay/compare_design.h"
#include "replay/compare_journal.h"

struct process_cost;

struct trial_conf {
    const struct design *design;
    const char *folder; /* the trials' files go here */
    /* a replay: */
    const char *replay; /* the program; NULL: the first dimension's values are commands */
    const char *tape;
    const char *const *passed; /* options for every trial, NULL-ended */
    const char *restore;       /* the folder of before-images, or NULL */
    const char *restore_by;    /* a value of --restore-by */
    bool result_tapes;         /* keep each trial's result tape, and take curves from it */
    bool allow_fallback;       /* an engine that granted less than asked for is no failure */
    /* a command: */
    const char *capture;     /* iotape-capture, which each command runs under; or NULL */
    const char *value_regex; /* group 1 in its output is the figure "value"; or NULL */
    const char *value_json;  /* ".a.b[0].c" in its output; or NULL */
    const volatile sig_atomic_t *stop;
};

/*
 * Runs the cell's trial of that block and fills ret_record but for position. A trial that
 * failed is a record that says so (failed, allocated). 0; -EINTR: stopped, the trial is void;
 * another -errno with diag: nothing more can be run.
 */
int trial_run(const struct trial_conf *conf, unsigned int block, unsigned int cell,
              struct record *ret_record, struct diag *diag);
/*
 * Runs the replay with --restore-only: all that is in conf->restore is put back. Its outputs go to
 * the two files. -errno with diag: it could not be run; how it ended is in *ret_cost.
 */
int trial_put_back(const struct trial_conf *conf, const char *out_path, const char *err_path,
                   const volatile sig_atomic_t *stop, struct process_cost *ret_cost,
                   struct diag *diag);
/* Is the regular expression usable, with a group? -EINVAL with diag. */
int trial_check_regex(const char *regex, struct diag *diag);

#endif
