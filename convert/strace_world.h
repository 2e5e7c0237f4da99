/* SPDX-License-Identifier: MIT */
/*
 * What a strace implies about the traced processes: their descriptors, the open files behind
 * them (shared by dup, fork and CLONE_FILES), file positions and working folders. One thread.
 */
#ifndef CONVERT_STRACE_WORLD_H
#define CONVERT_STRACE_WORLD_H

#include "convert/importer.h"
#include "convert/strace_text.h"

#define STRACE_PATH_MAX 8192
/* Descriptors above this are not followed. */
#define STRACE_FD_MAX 65536

/* An open file description: what dup and fork share. */
struct strace_open {
    uint32_t refs;
    uint32_t file;       /* in the tape, TRACE_NONE_U32 until an op needs it */
    uint8_t kind;        /* enum trace_file_kind; UNKNOWN: not seen being opened */
    bool first;          /* nothing of the trace named its file before */
    bool seekable;       /* something was done to it that only a file allows */
    uint32_t flags;      /* O_ numbers */
    uint64_t position;   /* TRACE_UNKNOWN_U64 when it cannot be known */
    uint64_t size_bytes; /* as a stat showed it, TRACE_UNKNOWN_U64 */
    size_t path_length;
    char *path; /* NULL: unknown; for other kinds what -y showed: "pipe:[12]" */
};

struct strace_slot {
    struct strace_open *open;
    bool cloexec;
};

struct strace_fds {
    uint32_t refs;
    int count;
    struct strace_slot *slots;
};

struct strace_process {
    uint32_t pid, group; /* group: the process a thread belongs to */
    uint32_t stream;     /* TRACE_NONE_U32 until needed */
    char comm[16];
    struct strace_fds *fds;
    char *cwd; /* NULL: unknown */
    bool live;
    /* A call whose end has not come yet. */
    char *pending; /* its name and arguments, as "name(args" */
    size_t pending_length;
    int64_t pending_ns;
    bool pending_time;
    struct strace_open *pending_open; /* what its first argument was open on at entry */
    bool pending_done;                /* already carried out at entry (close) */
};

struct strace_world;

int strace_world_new(struct strace_world **ret_world, struct import *import) TRACE_MUST_CHECK;
void strace_world_free(struct strace_world *world); /* NULL is fine */

/* The process of a pid, made if need be (descriptors unknown); NULL: no memory, or over a
 * million. */
struct strace_process *strace_world_process(struct strace_world *world, uint32_t pid);
struct strace_process *strace_world_find(struct strace_world *world, uint32_t pid);
/* Calls each once for every process known. */
void strace_world_each(struct strace_world *world,
                       void (*each)(void *context, struct strace_process *process),
                       void *context);

/* Makes child a copy of parent: descriptors shared (CLONE_FILES) or copied. 0 or -ENOMEM. */
int strace_process_fork(struct strace_process *parent, struct strace_process *child,
                        bool share_files, bool thread) TRACE_MUST_CHECK;
/* exec: a table of its own, without the close-on-exec ones. 0 or -ENOMEM. */
int strace_process_exec(struct strace_process *process) TRACE_MUST_CHECK;
void strace_process_exit(struct strace_process *process);
/* What was one process's goes to another (exec by a thread). */
void strace_process_move(struct strace_process *from, struct strace_process *to);
int strace_process_unshare(struct strace_process *process) TRACE_MUST_CHECK;
int strace_process_stream(struct strace_world *world, struct strace_process *process,
                          uint32_t *ret_stream) TRACE_MUST_CHECK;
void strace_process_pending_clear(struct strace_process *process);

struct strace_open *strace_open_new(void); /* one reference; NULL: no memory */
struct strace_open *strace_open_ref(struct strace_open *open); /* NULL is fine */
void strace_open_unref(struct strace_open *open);              /* NULL is fine */
/* Copies the path. 0 or -ENOMEM. */
int strace_open_name(struct strace_open *open, const char *path,
                     size_t length) TRACE_MUST_CHECK;

/* The open file at fd, NULL when not known. */
struct strace_open *strace_fd_get(const struct strace_process *process, int fd);
/* Puts open (its reference taken over) at fd, closing what was there. 0 or -ENOMEM (open
 * released). A fd that is not followed releases it. */
int strace_fd_set(struct strace_process *process, int fd, struct strace_open *open,
                  bool cloexec) TRACE_MUST_CHECK;
void strace_fd_cloexec(struct strace_process *process, int fd, bool cloexec);
void strace_fd_close(struct strace_process *process, int fd);

/* The path as from the root: relative to dir (a descriptor argument, its length 0 for the
 * working folder), "." and ".." and doubled slashes gone; relative when that is not known. The
 * length, or -1 when it does not fit or path is no whole string. */
int strace_path(const struct strace_process *process, struct strace_slice dir,
                struct strace_slice path, char *buffer, size_t size);
/* Folds "." and ".." and doubled slashes of a path in place; the new length. */
size_t strace_path_fold(char *path, size_t length);

#endif
