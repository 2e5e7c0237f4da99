/* SPDX-License-Identifier: MIT */
/*
 * Before-images: a folder that holds what a replay is about to change, so that it can be put back,
 * also after the machine or the replay was killed. journal.jsonl says what each name was (a file of
 * so many bytes, a directory, a device, nothing) and which parts of it are kept; the file N beside
 * it holds them, at the offsets they have in the original.
 *
 * What is added counts from images_commit on, which returns once it is on disk: of a folder whose
 * writer was killed before that, the last committed state is read. Nothing may be changed before it
 * is committed.
 *
 * images_open -> images_find, images_add, images_keep ... -> images_commit -> images_close, or
 * images_remove once everything is put back. One thread; one process at a time (a lock). Errors:
 * -errno, in diag.
 */
#ifndef REPLAY_IMAGES_H
#define REPLAY_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "traces/trace.h"

struct chunk_set;
struct diag;

enum image_was { IMAGE_ABSENT, IMAGE_FILE, IMAGE_DIRECTORY, IMAGE_DEVICE };

struct image {
    char *path;     /* absolute, without links */
    int was;        /* enum image_was */
    uint32_t mode;  /* permission bits */
    uint64_t bytes; /* a file's length */
    uint64_t inode; /* a file's: of which parts are kept must be the same one */
    bool cloned;    /* file N is a reflink of all of it; else the sets say what is kept */
    bool whole;     /* all of it is kept */
};

struct images {
    char *folder;
    int dir_fd, journal_fd;
    struct image *items;
    uint32_t count, room;
    uint32_t committed; /* of count: the others go when it is closed */
    uint32_t *table; /* by path */
    uint32_t table_size;
    struct chunk_set *data;  /* kept parts with content; "file" is the image's number */
    struct chunk_set *holes; /* kept parts that hold nothing */
    char *pending;           /* lines not yet committed */
    size_t pending_bytes, pending_room;
};

/* Makes the folder where it is missing. -ENOTEMPTY: something else lies there; -EBUSY: another process has it; -EBADMSG: what is there is
 * no folder of before-images, or is damaged. */
int images_open(struct images **ret_images, const char *folder, struct diag *diag)
    TRACE_MUST_CHECK;
/* Removes what was added and never committed. NULL is fine. */
void images_close(struct images *images);

/* TRACE_NONE_U32: no image of that path. */
uint32_t images_find(const struct images *images, const char *path);
/* image->path is copied. */
int images_add(struct images *images, const struct image *image, uint32_t *ret_number,
               struct diag *diag) TRACE_MUST_CHECK;
/* from..to (multiples of the chunk) of image number are kept now: its data is in file N, or it is a
 * hole. */
int images_keep(struct images *images, uint32_t number, uint64_t from, uint64_t to, bool hole,
                struct diag *diag) TRACE_MUST_CHECK;
/* All of image number is kept: every part has been given to images_keep, or file N is a clone. */
int images_whole(struct images *images, uint32_t number, bool cloned, struct diag *diag)
    TRACE_MUST_CHECK;
/* File N: a descriptor of the caller's, opened as open(2) says. */
int images_data(const struct images *images, uint32_t number, int flags, struct diag *diag);
int images_commit(struct images *images, struct diag *diag) TRACE_MUST_CHECK;
/* Deletes the folder and all in it that is ours. */
int images_remove(struct images *images, struct diag *diag);

#endif
