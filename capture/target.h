/* SPDX-License-Identifier: MIT */
/*
 * The command of `iotape capture -- CMD`: forked first, run only when the recorder is ready,
 * and followed with everything it starts.
 *
 * The program becomes the reaper of the command's orphans, so that target_reap can tell when
 * the last of them has ended. One thread; one target at a time.
 */
#ifndef CAPTURE_TARGET_H
#define CAPTURE_TARGET_H

#include <stdbool.h>
#include <sys/types.h>

#include "capture/trigger.h"
#include "traces/diag.h"

struct target {
    pid_t pid;      /* 0 = not started */
    int go_fd;      /* written to let it run; -1 afterwards */
    int error_fd;   /* brings the errno of a failed exec; -1 afterwards */
    bool ended;     /* the command itself */
    int status;     /* as waitpid gives it, once ended */
    bool all_ended; /* and all its descendants */
};

/* Runs in the child before it waits; 0 or -errno. */
typedef int target_prepare(void *context);

/* Forks; the child waits for target_run. -errno with diag set. */
int target_fork(struct target *target, char **argv, target_prepare *prepare, void *context,
                struct diag *diag);
/* Lets the command run. -ENOENT and the like, with diag set, when it cannot be executed: the
 * child is gone then. */
int target_run(struct target *target, char **argv, struct diag *diag);
/* Collects what has ended, without waiting; a trigger's command is told to it. While that runs,
 * all_ended is not found out. */
void target_reap(struct target *target, struct trigger *trigger);
/* Ends a child that has not been let run. Harmless otherwise. */
void target_cancel(struct target *target);
/* The status a shell would give: the exit status, or 128 + the signal. */
int target_exit_status(const struct target *target);

#endif
