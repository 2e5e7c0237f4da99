/* SPDX-License-Identifier: MIT */
/*
 * Whole records of a strace, one after the other: which process each is of, calls that end in
 * another record than they began in, forks seen from either side. One thread.
 */
#ifndef CONVERT_STRACE_FOLLOW_H
#define CONVERT_STRACE_FOLLOW_H

#include "convert/strace_calls.h"

struct strace_follow {
    struct strace_trace *trace;
    /* Set before each record: when it happened, and the process of its file (0 = none). */
    int64_t now_ns;
    uint32_t file_pid;
    struct strace_process *main; /* of lines without a pid */
    struct strace_process *forking;
    uint32_t attached_pid; /* strace said so before the fork that made it was printed */
    bool main_named, any_duration;
    uint64_t resumed_alone, signals;
};

/* A record of any shape but partial and foreign. 0 or -errno. */
int strace_follow_take(struct strace_follow *follow,
                       const struct strace_line *line) TRACE_MUST_CHECK;
/* strace says it follows a new process. */
int strace_follow_attached(struct strace_follow *follow, uint32_t pid) TRACE_MUST_CHECK;

#endif
