/* SPDX-License-Identifier: MIT */
/*
 * Names replaced by keyed hashes while recording: each path component on its own, so that the
 * shape of the tree, equal names and the extension stay. The key is random, lives only in
 * memory and dies with the capture.
 */
#ifndef CAPTURE_ANONYMISE_H
#define CAPTURE_ANONYMISE_H

#include <stddef.h>
#include <stdint.h>

struct anonymiser {
    uint64_t key[2];
};

/* Draws the key. 0, or -errno when the system has no randomness to give. */
int anonymiser_init(struct anonymiser *anonymiser);
/* "/home/eve/letter.db" -> "/3f0c../a91e../77d2...db". The caller frees it; NULL without
 * memory. */
char *anonymiser_path(const struct anonymiser *anonymiser, const char *path);

#endif
