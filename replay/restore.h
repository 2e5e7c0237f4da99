/* SPDX-License-Identifier: MIT */
/*
 * --restore: every replay with the same folder of before-images starts from the same files. What a
 * replay is about to change is kept there first (a reflink of the file where the file system can,
 * else the 64 KiB chunks that the tape writes), and the next replay puts it back before it begins:
 * contents, lengths, names that the tape made, removed or renamed, holes. So do trials of an
 * experiment see the same data and, on a file system that overwrites in place, the same extents.
 *
 *     restore_open -> targets_new -> restore_put_back -> [prepare] -> targets_open -> restore_keep
 *
 * restore_put_back acts on everything in the folder, also on what this tape does not touch; a
 * block device only where --destroy names it. Both leave what they read or wrote out of the page
 * cache. A kill at any point loses nothing: keeping is committed before anything is changed, and
 * putting back can be done again. One thread; -errno with diag.
 */
#ifndef REPLAY_RESTORE_H
#define REPLAY_RESTORE_H

#include <stdbool.h>
#include <stdint.h>

#include "traces/trace.h"

struct conf;
struct diag;
struct restore;
struct target_set;
struct trace_reader;

struct restore_report {
    bool used;
    uint64_t cloned, copied;    /* files (or devices) that are kept as a reflink, by extents */
    uint64_t files, bytes;      /* put back */
    uint64_t removed;           /* names that were not there */
    uint64_t kept_files, kept_bytes;
    uint64_t time_ns;           /* putting back, until it is on disk */
    uint64_t keep_time_ns;
};

int restore_open(struct restore **ret_restore, const struct conf *conf, struct diag *diag)
    TRACE_MUST_CHECK;
int restore_put_back(struct restore *restore, struct restore_report *report, struct diag *diag)
    TRACE_MUST_CHECK;
/* Reads the tape from its beginning; leaves the reader at its end. -ENOSPC: no room to keep it. */
int restore_keep(struct restore *restore, const struct target_set *set,
                 struct trace_reader *reader, struct restore_report *report, struct diag *diag)
    TRACE_MUST_CHECK;
/* All is put back: deletes the folder. */
int restore_forget(struct restore *restore, struct diag *diag);
void restore_free(struct restore *restore); /* NULL is fine */
/* "reflink", "extents", "reflink and extents"; "nothing" where the tape changes nothing. */
const char *restore_method(const struct restore_report *report);

#endif
