/* SPDX-License-Identifier: MIT */
/*
 * A tape that reaches beyond its target, made to fit.
 *
 * wrap:  offset modulo the target's size; an operation never straddles the end.
 * scale: offset times size / reach, aligned down to 4096.
 * pack:  the chunks (64 KiB) that the tape touches, laid side by side in their order, file after
 *        file: a trace of 2 TB that touches 8 GB replays on 10 GB with adjacency kept.
 *
 * pack_new and pack_touch while the plan is made, pack_seal once, then fit_offset from the decoder
 * thread. Memory for pack: see chunks.h.
 */
#ifndef REPLAY_FIT_H
#define REPLAY_FIT_H

#include <stdint.h>

#include "traces/trace.h"

struct diag;
struct pack;

struct pack *pack_new(void); /* NULL without memory */
int pack_touch(struct pack *pack, uint32_t file, uint64_t offset, uint64_t length,
               struct diag *diag) TRACE_MUST_CHECK;
/* No more touches; returns how many bytes the parts take side by side. */
uint64_t pack_seal(struct pack *pack);
/* Where offset of file lies now. It was touched. */
uint64_t pack_offset(const struct pack *pack, uint32_t file, uint64_t offset);
void pack_free(struct pack *pack); /* NULL is fine */

struct fit {
    int how;                 /* enum conf_fit */
    uint64_t size_bytes;     /* of the target */
    uint64_t reach_bytes;    /* max_end of what goes there */
    const struct pack *pack; /* sealed */
};
/* The new place of length bytes at offset; length <= size_bytes. */
uint64_t fit_offset(const struct fit *fit, uint32_t file, uint64_t offset, uint64_t length);

#endif
