/* SPDX-License-Identifier: MIT */
/*
 * Where operations go: each file of the tape becomes a target, a file or device of this machine,
 * or there is one target for everything. Guards: without --writes everything is opened read-only;
 * a block device is opened for writing only when --destroy names it too, and is claimed (O_EXCL)
 * for the whole run, which fails while it is mounted or in use; recorded paths are resolved by
 * beneath.h and cannot leave their directory.
 *
 *     targets_guard -> targets_new -> [prepare] -> targets_open -> replay -> targets_free
 *
 * One thread, but for target_open and the counters, which any worker may use. Workers that are
 * processes inherit the descriptors.
 */
#ifndef REPLAY_TARGET_H
#define REPLAY_TARGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "replay/fit.h"

struct conf;
struct diag;
struct plan;
struct stat;
struct trace_reader;

struct target {
    char *path;           /* for messages */
    const char *relative; /* below roots[root]; NULL: path is the user's own */
    int root;             /* -1 where relative is NULL */
    int fd;               /* -1: opened when needed (too many files, or its name changes) */
    int open_flags;
    uint32_t file;        /* in the tape; TRACE_NONE_U32 for the one of --target */
    uint32_t align;       /* of direct transfers; 1 when buffered */
    uint64_t size_bytes;  /* when the replay starts */
    uint32_t plan_flags;  /* enum plan_file_flags */
    uint64_t need_bytes, max_end;
    uint64_t manifest_bytes; /* recorded size at first touch; TRACE_UNKNOWN_U64 */
    uint32_t mode;        /* permission bits to make it with */
    bool sparse;
    bool block, direct;
    struct fit fit;
};

struct target_root {
    int fd;
    char *path;
    const char *prefix; /* recorded directory it stands for; NULL = "/" */
    size_t prefix_length;
    bool owned_prefix;
};

struct target_set {
    struct target *items;
    uint32_t count;
    size_t most;         /* entries that the arrays have room for */
    uint32_t per_clone;  /* targets of one private copy; clone c adds c * per_clone */
    uint32_t clones;     /* 1 without --clones */
    uint32_t *buffered;  /* by the tape's file: target in clone 0, or TRACE_NONE_U32 */
    uint32_t *direct;
    uint32_t file_count;
    struct target_root *roots;
    uint32_t root_count;
    int *claims;         /* O_EXCL descriptors of devices that may be written */
    uint32_t claim_count;
    uint32_t *made;      /* directories that the tape makes; few */
    uint32_t made_count;
    bool lazy;           /* too many files to hold open at once */
    uint32_t fd_budget;  /* descriptors that workers may open between them */
    uint32_t open_count; /* held open */
    /* in shared memory, by target */
    _Atomic uint32_t *generation;     /* grows when its name stands for another file */
};

/* -EINVAL: a usage error (a device without --destroy, a --destroy that is no target). */
int targets_guard(const struct conf *conf, struct diag *diag);
/* Does --destroy name the device that st is of? */
bool target_may_destroy(const struct conf *conf, const struct stat *st);
/*
 * Finds a place for each file that the plan uses, opens the roots, claims the devices. No file
 * is opened or made. -ENXIO: a file of the tape has no place; -EXDEV: a path that leads out;
 * -EBUSY: a device in use.
 */
int targets_new(struct target_set **ret_set, const struct conf *conf, const struct plan *plan,
                const struct trace_reader *reader, bool shared, struct diag *diag)
    TRACE_MUST_CHECK;
/*
 * Opens the files and checks kind, size and alignment against the plan. Errors say how many files
 * or operations are concerned (the reader is for that), which is the first, and what would help.
 */
int targets_open(struct target_set *set, const struct conf *conf, const struct plan *plan,
                 struct trace_reader *reader, struct diag *diag) TRACE_MUST_CHECK;
void targets_free(struct target_set *set); /* NULL is fine */

/* Opens one target: a descriptor of the caller's, else -errno. extra: O_CREAT, O_TRUNC ... */
int target_open(const struct target_set *set, const struct target *target, int extra,
                uint32_t mode);
/* Is it a directory that the tape makes? */
bool target_is_made_directory(const struct target *target);
/* Is some directory above it made by the tape? Then it cannot be there before. */
bool target_below_made(const struct target_set *set, const struct target *target);
/* The target of a tape's file in clone 0; TRACE_NONE_U32 when there is none. */
uint32_t targets_find(const struct target_set *set, uint32_t file, bool direct);

#endif
