/* SPDX-License-Identifier: MIT */
#include "capture/bpf_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct bpf_table_slot {
    struct bpf_table_key key;
    void *value; /* NULL = empty, &removed = removed */
};

static char removed;

static uint64_t key_hash(struct bpf_table_key key)
{
    uint64_t h = key.a * 0x9e3779b97f4a7c15u;

    h = (h ^ (h >> 29) ^ key.b) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 32) ^ key.c) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

static bool key_equal(const struct bpf_table_key *x, const struct bpf_table_key *y)
{
    return x->a == y->a && x->b == y->b && x->c == y->c;
}

void bpf_table_init(struct bpf_table *self)
{
    memset(self, 0, sizeof(*self));
}

void bpf_table_release(struct bpf_table *self)
{
    free(self->slots);
    memset(self, 0, sizeof(*self));
}

static struct bpf_table_slot *slot_find(const struct bpf_table *self, struct bpf_table_key key)
{
    size_t mask = self->size - 1, at = key_hash(key) & mask;

    if (!self->size)
        return NULL;
    while (self->slots[at].value) {
        if (self->slots[at].value != &removed && key_equal(&self->slots[at].key, &key))
            return &self->slots[at];
        at = (at + 1) & mask;
    }
    return NULL;
}

void *bpf_table_find(const struct bpf_table *self, struct bpf_table_key key)
{
    struct bpf_table_slot *slot = slot_find(self, key);

    return slot ? slot->value : NULL;
}

static void slot_insert(struct bpf_table *self, struct bpf_table_key key, void *value)
{
    size_t mask = self->size - 1, at = key_hash(key) & mask;

    while (self->slots[at].value)
        at = (at + 1) & mask;
    self->slots[at].key = key;
    self->slots[at].value = value;
    self->used++;
    self->count++;
}

/* Rehashing also clears removed slots, so the size follows the live entries. */
static int table_grow(struct bpf_table *self)
{
    struct bpf_table old = *self;
    size_t size = 256;

    while (size < self->count * 4)
        size *= 2;
    self->slots = calloc(size, sizeof(*self->slots));
    if (!self->slots) {
        *self = old;
        return -ENOMEM;
    }
    self->size = size;
    self->count = self->used = 0;
    for (size_t i = 0; i < old.size; i++)
        if (old.slots[i].value && old.slots[i].value != &removed)
            slot_insert(self, old.slots[i].key, old.slots[i].value);
    free(old.slots);
    return 0;
}

int bpf_table_put(struct bpf_table *self, struct bpf_table_key key, void *value)
{
    struct bpf_table_slot *slot = slot_find(self, key);
    int rc;

    if (slot) {
        slot->value = value;
        return 0;
    }
    if (self->used * 2 >= self->size) {
        rc = table_grow(self);
        if (rc)
            return rc;
    }
    slot_insert(self, key, value);
    return 0;
}

void *bpf_table_remove(struct bpf_table *self, struct bpf_table_key key)
{
    struct bpf_table_slot *slot = slot_find(self, key);
    void *value;

    if (!slot)
        return NULL;
    value = slot->value;
    slot->value = &removed;
    self->count--;
    return value;
}

void *bpf_table_next(const struct bpf_table *self, size_t *at, struct bpf_table_key *ret_key)
{
    while (*at < self->size) {
        const struct bpf_table_slot *slot = &self->slots[(*at)++];

        if (slot->value && slot->value != &removed) {
            if (ret_key)
                *ret_key = slot->key;
            return slot->value;
        }
    }
    return NULL;
}
