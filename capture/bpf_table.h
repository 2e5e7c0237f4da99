/* SPDX-License-Identifier: MIT */
/*
 * A hash table from a fixed-size key of up to three words to a pointer, for the files, threads
 * and requests in flight of the bpf recorder. Grows as needed; one thread.
 */
#ifndef CAPTURE_BPF_TABLE_H
#define CAPTURE_BPF_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct bpf_table_key {
    uint64_t a, b, c;
};

struct bpf_table {
    struct bpf_table_slot *slots;
    size_t count, used, size; /* used counts removed slots too; size is a power of two */
};

void bpf_table_init(struct bpf_table *self);
/* Values are the caller's: release frees only the table. */
void bpf_table_release(struct bpf_table *self);
void *bpf_table_find(const struct bpf_table *self, struct bpf_table_key key); /* or NULL */
/* value is not NULL. Replaces an entry of the same key. 0 or -ENOMEM. */
int bpf_table_put(struct bpf_table *self, struct bpf_table_key key, void *value);
void *bpf_table_remove(struct bpf_table *self, struct bpf_table_key key); /* what was there */
/* Walks the entries: *at starts at 0; NULL at the end. The entry may be removed meanwhile. */
void *bpf_table_next(const struct bpf_table *self, size_t *at, struct bpf_table_key *ret_key);

#endif
