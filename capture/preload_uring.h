/* SPDX-License-Identifier: MIT */
/*
 * io_uring as far as calls show it: submissions at the call that hands them over, completions
 * at the ring's next call, so as bounds. A ring is known by its descriptor; where its memory
 * is, its user shows: liburing, or a program by hand through syscall and mmap.
 */
#ifndef CAPTURE_PRELOAD_URING_H
#define CAPTURE_PRELOAD_URING_H

#include "capture/preload.h"

struct io_uring_params;

struct uring_memory {
    const uint32_t *sq_head, *sq_tail, *sq_mask, *sq_array;
    const uint32_t *cq_tail, *cq_mask;
    const unsigned char *sqes, *cqes;
};

struct uring {
    int fd;         /* -1 = free */
    uint64_t space; /* of its ops' keys */
    uint32_t setup_flags;
    struct uring_memory memory; /* all set, or sq_tail NULL */
    uint32_t submitted;         /* submission entries looked at, where the array is used */
    uint32_t completed;         /* completion entries looked at */
    struct io_uring_offsets *offsets; /* by hand: what io_uring_setup told */
    const void *mapped[3];            /* by hand: rings and entries */
    int registered;  /* number that io_uring_enter may be given for the descriptor; -1 = none */
    uint64_t *files; /* registered: the slots of their descriptors */
    uint32_t file_count;
};

/* True when fd is a ring; costs a comparison when there are none. */
bool uring_is(int fd);
/* The ring, when its memory is known; else NULL. */
struct uring *uring_find(int fd);
/* The ring of fd, added when it is new; NULL when there are too many, which is counted. */
struct uring *uring_learn(int fd, const struct uring_memory *memory, uint32_t setup_flags);
/* Set up by hand: the parameters say where in its mappings things are. */
void uring_made(int fd, const struct io_uring_params *params);
void uring_mapped(int fd, uint64_t offset, void *mapped);
/* This mapping is about to go: what has been handed over unseen is counted while it can be. */
void uring_unmapped(const void *mapped);
/* As uring_unmapped for all rings, at the program's end. */
void uring_account_all(void);
void uring_gone(int fd);
/* fds is NULL when all go; -1 in it is a hole. whole: a new table of count; else count from
 * first on are replaced. */
void uring_files(struct uring *ring, bool whole, uint32_t first, const int *fds,
                 uint32_t count);
/* count entries from at are about to be handed over: of the entries themselves, or (array) of
 * the submission array. */
void uring_submit(struct uring *ring, uint32_t at, uint32_t count, bool array);
/* The three system calls with what is recorded of them: a result or -errno. */
long uring_call_setup(uint32_t entries, struct io_uring_params *params);
long uring_call_enter(int fd, uint32_t to_submit, uint32_t min, uint32_t flags,
                      const void *extra, size_t extra_bytes);
long uring_call_register(int fd, uint32_t code, void *argument, uint32_t count);
/* Completions that have come since the last look. */
void uring_look(struct uring *ring);

#endif
