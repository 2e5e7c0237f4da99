/* SPDX-License-Identifier: MIT */
/* The command line of iotape capture. */
#ifndef CAPTURE_OPTIONS_H
#define CAPTURE_OPTIONS_H

#include "capture/session.h"
#include "traces/opts.h"

enum overhead_action {
    OVERHEAD_STOP = 0,
    OVERHEAD_SAMPLE = 1
};

struct options {
    const char *tape;
    const char *recorder; /* NULL: the first that can */
    bool force, list, quiet, verbose, help, version;
    struct opt_list pids, devices, filters;
    const char *cgroup, *comm;
    bool system, all_fds, content, anonymise;
    uint64_t ring_bytes, max_bytes, duration_ns, keep_ns, keep_bytes;
    uint64_t rotate_bytes, rotate_ns;
    double max_overhead_pct; /* 0 = no limit */
    int overhead_action;     /* enum overhead_action */
    uint64_t sample;         /* one stream in so many; 1 = all */
    const char *trigger;
    /* Made from the above by options_parse: */
    struct session_conf session;
    pid_t *pid_numbers;
};

/* -EINVAL with diag set for a usage error. options_release in any case. argv must stay. */
int options_parse(struct options *options, int argc, char **argv, struct diag *diag);
void options_help(FILE *out);
void options_release(struct options *options);
/* The table, for the man page check. */
const struct opt *options_table(void);

#endif
