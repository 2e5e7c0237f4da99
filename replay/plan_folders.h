/* SPDX-License-Identifier: MIT */
/*
 * Which files of a plan are directories though the tape does not say so: a log of calls shows an
 * open and an fsync of "/var/lib/db" alike, whatever it is. What other files lie below is one.
 */
#ifndef REPLAY_PLAN_FOLDERS_H
#define REPLAY_PLAN_FOLDERS_H

struct plan;
struct trace_reader;

/* Marks them with PLAN_DIRECTORY; a file that is read or written stays one. 0 or -ENOMEM. */
int plan_folders(struct plan *plan, const struct trace_reader *reader);

#endif
