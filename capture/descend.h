/* SPDX-License-Identifier: MIT */
/*
 * The running children of processes, and theirs: a server that is attached to by the number of
 * its first process does its work in others that it has already started.
 */
#ifndef CAPTURE_DESCEND_H
#define CAPTURE_DESCEND_H

#include <stddef.h>
#include <sys/types.h>

/* Called with each; what is not 0 ends the walk and is returned. */
typedef int descend_found(void *context, pid_t pid);
/* Tells every process that descends from pids now, by /proc, once each and none of pids. 0,
 * -errno of reading /proc, -ENOMEM, or what found said. */
int descend(const pid_t *pids, size_t count, descend_found *found, void *context);

#endif
