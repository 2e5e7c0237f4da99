/* SPDX-License-Identifier: MIT */
/*
 * Can a preload shim get into a program? Looked up in its file, so that what cannot be recorded
 * is named instead of silently missing.
 */
#ifndef CAPTURE_PROGRAM_H
#define CAPTURE_PROGRAM_H

#include <stddef.h>
#include <sys/types.h>

enum program_kind {
    PROGRAM_MISSING,    /* not found, or not readable: nothing is known */
    PROGRAM_DYNAMIC,    /* fine */
    PROGRAM_STATIC,     /* no dynamic linker: nothing is preloaded */
    PROGRAM_SETUID,     /* gains privileges: the dynamic linker ignores LD_PRELOAD */
    PROGRAM_FOREIGN,    /* another architecture or word size */
    PROGRAM_OTHER_LIBC, /* a dynamic linker that is not glibc's */
};

/* name is searched in PATH when it has no slash. pid: whose working folder a relative name is
 * from; 0 = ours. A script's interpreter is looked at in its place. The path that the answer is
 * about is written to path. */
enum program_kind program_look(const char *name, pid_t pid, char *path, size_t path_size);
/* "statically linked" ...; NULL for the kinds that are fine or unknown. */
const char *program_obstacle(enum program_kind kind);

#endif
