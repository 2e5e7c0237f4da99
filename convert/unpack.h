/* SPDX-License-Identifier: MIT */
/*
 * Raw bytes: a file, a pipe, memory, or what libarchive makes of another such (the
 * decompressed bytes, or one member of a tar).
 *
 * One thread at a time. The diag given to open outlives it and receives every error.
 */
#ifndef CONVERT_UNPACK_H
#define CONVERT_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traces/diag.h"

struct unpack;

#define UNPACK_HEAD 512u

/* "-" is standard input. A directory is -EISDIR. */
int unpack_open_path(struct unpack **ret_unpack, const char *path, struct diag *diag);
/* The bytes are not copied and are there until it is freed. */
int unpack_open_memory(struct unpack **ret_unpack, const char *name, const void *bytes,
                       size_t length, struct diag *diag);

/* A count, 0 at the end, else -errno with the diag set. May be short. */
int64_t unpack_read(struct unpack *unpack, void *buffer, size_t bytes);
/* The first bytes, up to UNPACK_HEAD, before anything was read; they stay to be read. */
int64_t unpack_head(struct unpack *unpack, const uint8_t **ret_bytes);
/* A regular file: it can be opened again and read from its start. */
/* Errors from now on go to diag, those of what it reads from too. */
void unpack_set_diag(struct unpack *unpack, struct diag *diag);
bool unpack_is_seekable(const struct unpack *unpack);
void unpack_free(struct unpack *unpack); /* NULL is fine */

/* The first bytes are those of a compressed file or of a tar. */
bool unpack_head_is_packed(const uint8_t *head, size_t length);

/*
 * Opens what is packed in inner (taken over, also on failure): its regular member number
 * `member` from 0, where a compressed file that is not an archive has one member. -ENOENT
 * (diag not set) past the last; *ret_name, when not NULL, is the member's name, valid until
 * free, or NULL when the format has no names. Members that are compressed in turn are
 * decompressed.
 */
int unpack_open_packed(struct unpack **ret_unpack, struct unpack *inner, size_t member,
                       const char **ret_name, struct diag *diag);
/* From the member just read to the next one of the same archive; as unpack_open_packed. */
int unpack_next_member(struct unpack *unpack, const char **ret_name);

#endif
