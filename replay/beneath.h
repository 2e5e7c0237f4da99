/* SPDX-License-Identifier: MIT */
/*
 * Files below a directory, and never outside it: recorded paths come from tapes that anybody may
 * have made. openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS) where the kernel has it, else a walk
 * of the components with O_NOFOLLOW. A path is taken relative to the directory: leading slashes
 * fall away; ".." is refused, wherever it would lead.
 *
 * All functions: any thread; 0 or a descriptor, else -errno. -EXDEV: the path holds "..", is
 * empty, or meets a symbolic link.
 */
#ifndef REPLAY_BENEATH_H
#define REPLAY_BENEATH_H

#include <stdbool.h>
#include <sys/types.h>

/* The path without leading slashes, or NULL where it is empty or has a ".." component. */
const char *beneath_relative(const char *path);
/* As openat(2) with O_CLOEXEC | O_NOFOLLOW. walk: do without openat2 (tests; old kernels). */
int beneath_open(int dirfd, const char *path, int flags, mode_t mode, bool walk);
/* Opens the directory that path's last component is in; *ret_name points into path. */
int beneath_parent(int dirfd, const char *path, const char **ret_name);
/* Makes the directories above path's last component. */
int beneath_make_parents(int dirfd, const char *path);

#endif
