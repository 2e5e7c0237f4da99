/* SPDX-License-Identifier: MIT */
/* A fio job file being read: its sections become workloads one by one. */
#ifndef CONVERT_FIOJOB_H
#define CONVERT_FIOJOB_H

#include "convert/fiojob_conf.h"
#include "convert/importer.h"
#include "convert/input.h"

struct fiojob {
    struct import *import;
    struct input *input;
    struct fiojob_conf global, section;
    bool in_global, in_job;
    uint64_t asked_file_bytes;   /* of files whose section does not say; 0 = not asked */
    uint64_t section_file_bytes; /* of the section's files; 0 = as far as its I/O reaches */
    uint32_t jobs, next_pid;
    char **texts; /* that confs point into */
    size_t text_count;
    /* what the replay command needs */
    const char *engine;
    uint64_t depth, batch, loops, workers, complete_min, complete_max, depth_low, runtime_ns;
    int64_t group_start_ns, group_end_ns; /* of the jobs since the last stonewall */
    uint64_t group_workers;
    bool staged; /* some job waited for earlier ones */
    bool writes, direct, all_direct, timed, processes, device;
};

/* A copy of text that lives as long as job; NULL when there is no memory. */
char *fiojob_keep(struct fiojob *job, const char *text, size_t length);
/* Makes the ops of job->section. -EBADMSG with the diag set where fio's option has no likeness.
 */
int fiojob_generate(struct fiojob *job) TRACE_MUST_CHECK;

#endif
