/* SPDX-License-Identifier: MIT */
/*
 * --trigger CMD: a shell command that is started again and again; each time it exits with 0 the
 * ring is to be written. After that it rests for the ring's span, so that a condition that
 * stays true writes each moment once; after a failure it rests for a second. One thread.
 */
#ifndef CAPTURE_TRIGGER_H
#define CAPTURE_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct trigger {
    const char *command;    /* NULL: there is none, and everything below does nothing */
    pid_t pid;              /* 0 = not running */
    uint64_t rest_ns;       /* after it has fired */
    uint64_t not_before_ns; /* when it may be started again */
    uint64_t rest_due_ns;   /* it has ended and is to rest so long; 0 = no */
    bool fired;
};

void trigger_init(struct trigger *trigger, const char *command, uint64_t rest_ns);
/* Starts the command when it is due. */
void trigger_run(struct trigger *trigger, uint64_t now_ns);
/* Takes note when pid, which ended with status, is the trigger's command; true then. */
bool trigger_ended(struct trigger *trigger, pid_t pid, int status);
/* Collects the command when it has ended, for programs without a target. */
void trigger_reap(struct trigger *trigger);
/* True once for each time it exited with 0. */
bool trigger_fired(struct trigger *trigger);
/* Kills the command with what it started, and stays stopped. */
void trigger_stop(struct trigger *trigger);

#endif
