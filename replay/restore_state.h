/* SPDX-License-Identifier: MIT */
/* Shared by restore.c and restore_keep.c alone. */
#ifndef REPLAY_RESTORE_STATE_H
#define REPLAY_RESTORE_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct conf;
struct images;
struct restore_report;

struct restore {
    const struct conf *conf;
    struct images *images;
    int slash_fd;    /* "/": paths of images are taken below it, no links followed */
    char *buffer;    /* RESTORE_BUFFER */
};

#define RESTORE_BUFFER (1u << 20)

/* Copies from..to between two files at the same place; may_end: the first may be shorter, else that
 * is -EIO. */
int restore_copy(const struct restore *restore, int from_fd, int to_fd, uint64_t from,
                 uint64_t to, bool may_end);
/* What the folder holds now, into cloned and copied. */
void restore_count(const struct restore *restore, struct restore_report *report);

/* Takes what is kept out of the page cache, in which it would be in one trial and not in another.
 * What is dirty stays. */
void restore_cool(const struct restore *restore);

#endif
