/* SPDX-License-Identifier: MIT */
#include "replay/compare_restore.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replay/compare_conf.h"
#include "replay/compare_process.h"
#include "traces/diag.h"

#define FOLDER ".iotape-restore"

int compare_restore_folder(char **ret_folder, const struct compare_conf *conf,
                           const char *experiment, struct diag *diag)
{
    char *folder = NULL;
    int made = 0;

    if (conf->ab || !conf->writes || conf->reset || conf->restore_by == COMPARE_RESTORE_NONE) {
        *ret_folder = NULL;
        return 0;
    }
    if (conf->restore)
        made = asprintf(&folder, "%s", conf->restore);
    else if (conf->root)
        made = asprintf(&folder, "%s/" FOLDER, conf->root);
    else
        made = asprintf(&folder, "%s/restore", experiment);
    if (made < 0)
        return diag_set(diag, -ENOMEM, "not enough memory");
    *ret_folder = folder;
    return 0;
}

int compare_restore_check(const struct compare_conf *conf, const char *folder, struct diag *diag)
{
    char *journal;
    int err = 0;

    if (folder == NULL || conf->resume)
        return 0;
    if (asprintf(&journal, "%s/journal.jsonl", folder) < 0)
        return diag_set(diag, -ENOMEM, "not enough memory");
    if (access(journal, F_OK) == 0)
        err = diag_set(diag, -EEXIST,
                       "%s holds what a comparison that was killed had changed: --resume that one; or "
                       "put it back (iotape replay TAPE ... --writes --restore %s --restore-only); or "
                       "remove the folder", folder, folder);
    free(journal);
    return err;
}

int compare_restore_end(const struct trial_conf *trial, struct diag *diag)
{
    static const volatile sig_atomic_t never;
    struct process_cost cost = {0};
    char *out = NULL, *errors = NULL, line[300];
    int err = 0;

    if (trial->restore == NULL || access(trial->restore, F_OK) != 0)
        return 0;
    if (asprintf(&out, "%s/restore.out", trial->folder) < 0)
        out = NULL;
    if (asprintf(&errors, "%s/restore.err", trial->folder) < 0)
        errors = NULL;
    if (out == NULL || errors == NULL)
        err = diag_set(diag, -ENOMEM, "not enough memory");
    else
        err = trial_put_back(trial, out, errors, &never, &cost, diag);
    if (err == 0 && cost.status != 0) {
        process_error_line(errors, cost.status, line, sizeof line);
        err = diag_set(diag, -EIO, "the files could not be put back, %s holds what they were: %s",
                       trial->restore, line[0] ? line : "the replay failed");
    }
    free(out);
    free(errors);
    return err;
}
