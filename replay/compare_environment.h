/* SPDX-License-Identifier: MIT */
/*
 * The machine an experiment ran on, as far as it bears on I/O: kernel, CPUs and their governor,
 * memory, and of the place the I/O goes to: file system, mount options, device, scheduler.
 */
#ifndef REPLAY_COMPARE_ENVIRONMENT_H
#define REPLAY_COMPARE_ENVIRONMENT_H

#include <jansson.h>

/* place: a file, folder or device; NULL: none is known. What cannot be read is left out. A new
 * reference, or NULL without memory. */
json_t *environment_read(const char *place);
/* Each fact as "name: value" in turn, in the order read. */
void environment_each(const json_t *environment,
                      void (*each)(void *context, const char *name, const char *value),
                      void *context);

#endif
