/* SPDX-License-Identifier: MIT */
/*
 * Which files a process has mapped where, so that munmap and msync, which only name addresses,
 * can be told by file. One list a process; one thread.
 */
#ifndef CAPTURE_BPF_MAPS_H
#define CAPTURE_BPF_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_map_range {
    uint64_t start, end; /* addresses, end not included */
    uint64_t offset;     /* in the file, of start */
    uint32_t file;
};

struct bpf_maps {
    struct bpf_map_range *ranges; /* no two overlap; in no order */
    size_t count, room;
};

void bpf_maps_init(struct bpf_maps *self);
void bpf_maps_release(struct bpf_maps *self);
/* What was mapped there before is no longer. length is rounded up to pages of page_bytes. */
int bpf_maps_add(struct bpf_maps *self, uint64_t start, uint64_t length, uint32_t file,
                 uint64_t offset, uint64_t page_bytes);
/* The part of the index-th mapping that lies in the range; index counts those that do, from 0.
 * False when there are no more. */
bool bpf_maps_find(const struct bpf_maps *self, uint64_t start, uint64_t length, size_t index,
                   struct bpf_map_range *ret_part);
int bpf_maps_remove(struct bpf_maps *self, uint64_t start, uint64_t length);
int bpf_maps_copy(struct bpf_maps *self, const struct bpf_maps *from); /* a fork */

#endif
