/* SPDX-License-Identifier: MIT */
/*
 * Counts by kind, where a kind is a short text: what was skipped, lost, not kept. In the order
 * of first appearance. Few kinds, counted often: the same string constant is found by address.
 */
#ifndef CONVERT_KINDS_H
#define CONVERT_KINDS_H

#include <stddef.h>
#include <stdint.h>

#define KINDS_MAX 256u

struct kinds {
    struct kinds_item {
        const char *constant; /* as given, compared by address only */
        char *kind;           /* owned copy */
        uint64_t count;
    } * items;
    size_t count;
    uint64_t beyond; /* counted for kinds past KINDS_MAX, or when memory ran out */
};

void kinds_add(struct kinds *kinds, const char *kind, uint64_t count);
void kinds_merge(struct kinds *into, const struct kinds *from);
uint64_t kinds_total(const struct kinds *kinds);
void kinds_release(struct kinds *kinds);

#endif
