/* SPDX-License-Identifier: MIT */
/*
 * One program run from start to end, with what it cost: a trial.
 *
 * The child is the leader of a process group of its own, with standard input closed off and its
 * two outputs in files; it is told to end when this program dies. When the stop flag rises (the
 * doing of a handler of SIGINT or SIGTERM) the whole group is sent SIGTERM, and SIGKILL if it
 * lingers.
 *
 * One thread. Errors: -errno, in diag: the program could not be started or waited for.
 */
#ifndef REPLAY_COMPARE_PROCESS_H
#define REPLAY_COMPARE_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct diag;

struct process_cost {
    int status;   /* exit status, or 128 + the signal that ended it */
    bool stopped; /* by the stop flag: the trial is void */
    uint64_t wall_ns, user_ns, sys_ns, rss_bytes;
};

int process_run(char *const *argv, const char *out_path, const char *err_path,
                const volatile sig_atomic_t *stop, struct process_cost *ret_cost,
                struct diag *diag);
/* A program that lies beside this one: "/usr/bin/iotape-replay". The caller frees it. */
int process_beside(const char *name, char **ret_path, struct diag *diag);
/* The line of a program's standard error, kept in a file, that says why it failed: the last, or
 * for a usage error (status 2) the first. Without control characters; "" when there is none. */
void process_error_line(const char *path, int status, char *buf, unsigned int size);

#endif
