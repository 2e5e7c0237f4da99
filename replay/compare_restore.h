/* SPDX-License-Identifier: MIT */
/*
 * The before-images of an experiment whose trials write (see restore.h): every trial starts from
 * the same files, and after the last one they are as they were before the first.
 */
#ifndef REPLAY_COMPARE_RESTORE_H
#define REPLAY_COMPARE_RESTORE_H

#include <stdbool.h>

#include "replay/compare_trial.h"

struct compare_conf;
struct diag;

/*
 * Where they are kept: --restore, else a folder in --root, where reflinks can be, else one in the
 * experiment's. *ret_folder is the caller's; NULL: there is nothing to restore, or --reset does it,
 * or the user said not to.
 */
int compare_restore_folder(char **ret_folder, const struct compare_conf *conf,
                           const char *experiment, struct diag *diag);
/* -EEXIST: an experiment that was killed left its before-images in folder, and this is not its
 * --resume: what was changed since would be lost. NULL is fine. */
int compare_restore_check(const struct compare_conf *conf, const char *folder, struct diag *diag);
/* Puts everything back and removes the folder, by a run of the replay. 0 where there is none. */
int compare_restore_end(const struct trial_conf *trial, struct diag *diag);

#endif
