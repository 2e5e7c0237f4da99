/* SPDX-License-Identifier: MIT */
/*
 * Which paths of a trace must be folders: those that others lie in. A program that opens a
 * folder to sync it shows nothing else that tells it from a file. One thread.
 */
#ifndef CONVERT_STRACE_PATHS_H
#define CONVERT_STRACE_PATHS_H

#include "convert/importer.h"

struct strace_paths;

struct strace_paths *strace_paths_new(void);        /* NULL: no memory */
void strace_paths_free(struct strace_paths *paths); /* NULL is fine */
/* A path with its number in the tape. Calls folder for every number that is now known to be a
 * folder: its own, or those of paths it lies in. 0, -ENOMEM, or what folder returned. */
int strace_paths_add(struct strace_paths *paths, const char *path, size_t length, uint32_t file,
                     int (*folder)(void *context, uint32_t file),
                     void *context) TRACE_MUST_CHECK;

#endif
