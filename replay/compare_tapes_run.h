/* SPDX-License-Identifier: MIT */
/*
 * iotape compare of two tapes, from the options to the reports.
 */
#ifndef REPLAY_COMPARE_TAPES_RUN_H
#define REPLAY_COMPARE_TAPES_RUN_H

#include "replay/compare_conf.h"
#include "replay/compare_matrix.h"

/* 0 and *ret_outcome, else -errno with diag. -EINVAL: what was asked cannot be. */
int tapes_run(const struct compare_conf *conf, enum compare_outcome *ret_outcome,
              struct diag *diag);

#endif
