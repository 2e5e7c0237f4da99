/* SPDX-License-Identifier: MIT */
/*
 * Where calls at a shared file position took place. Processes that share an open file (fork,
 * dup, threads) move one position; a recorder reads it when a call has returned, when another
 * may have moved it on. The kernel lets one call at a time use the position, so the calls tile
 * the file: one whose place is taken already belongs into a gap that the others have left.
 */
#ifndef CAPTURE_BPF_POSITION_H
#define CAPTURE_BPF_POSITION_H

#include <stdint.h>

#include "capture/bpf_table.h"

struct bpf_positions {
    struct bpf_table files; /* address of the kernel's open file -> struct position_file */
};

void bpf_positions_init(struct bpf_positions *self);
void bpf_positions_release(struct bpf_positions *self);
/*
 * A contended call: its position before and after do not fit together. It moved `bytes` (> 0),
 * and the position was `before` when it began and `after` when it had returned. *ret_offset
 * gets where it was. 0 or -ENOMEM.
 */
int bpf_positions_place(struct bpf_positions *self, uint64_t file, uint64_t before,
                        uint64_t after, uint64_t bytes, uint64_t *ret_offset);
/* A call that nobody came in between: its place is known, and no gap any more. 0 or -ENOMEM. */
int bpf_positions_taken(struct bpf_positions *self, uint64_t file, uint64_t offset,
                        uint64_t bytes);

#endif
