/* SPDX-License-Identifier: MIT */
/*
 * Names taken out of a tape. anonymise: each component of a path becomes a keyed hash of it, so
 * that equal names stay equal and the tree keeps its shape; a short extension stays. The key is
 * random, used once and never stored. strip: commands, command lines and host names are
 * dropped.
 */
#ifndef CONVERT_ANONYMISE_H
#define CONVERT_ANONYMISE_H

#include <stddef.h>
#include <stdint.h>

struct import;

/* File names, and commands of streams. -ENOMEM, or what getrandom returned (diag set). */
int anonymise_tables(struct import *import);
/* The path under key, a new string or NULL. Device names "8,0" are kept. */
char *anonymise_path(const uint8_t key[16], const char *path);
int strip_identity(struct import *import);

/* SipHash-2-4 of bytes. */
uint64_t anonymise_hash(const uint8_t key[16], const void *bytes, size_t length);

#endif
