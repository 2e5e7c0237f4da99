/* SPDX-License-Identifier: MIT */
/*
 * iotape compare with a matrix or with commands, from the options to the reports.
 */
#ifndef REPLAY_COMPARE_MATRIX_H
#define REPLAY_COMPARE_MATRIX_H

#include <signal.h>

#include "replay/compare_conf.h"

struct diag;

/* What the conditions and --require-decision came to. */
enum compare_outcome {
    COMPARE_FINE,
    COMPARE_CONDITION_TRUE,
    COMPARE_NOT_DECIDED
};

/*
 * Runs what is left to run of the experiment, judges it and writes the reports. 0 and
 * *ret_outcome; -EINTR with diag: *stop rose, the folder can be resumed; -EINVAL and others
 * with diag.
 */
int matrix_run(const struct compare_conf *conf, const volatile sig_atomic_t *stop,
               enum compare_outcome *ret_outcome, struct diag *diag);

#endif
