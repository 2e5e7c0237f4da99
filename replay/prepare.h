/* SPDX-License-Identifier: MIT */
/*
 * --prepare: the file set that the tape needs, as it was when the tape began. Each file gets
 * the size it had at first touch; what is missing of it is written (not left as a hole, unless
 * it was sparse), files that the tape itself makes are removed, directories are made.
 *
 * Without --writes nothing that exists is changed: only missing files are made.
 */
#ifndef REPLAY_PREPARE_H
#define REPLAY_PREPARE_H

#include <stdint.h>

struct conf;
struct diag;
struct target_set;

struct prepare_report {
    uint64_t made, grown, cut, removed; /* files */
    uint64_t bytes;                     /* written */
};

/* Before targets_open. -errno with diag: what could not be made; -EEXIST: it exists with another
 * size and --writes was not given. */
int prepare(const struct target_set *set, const struct conf *conf,
            struct prepare_report *ret_report, struct diag *diag);

#endif
