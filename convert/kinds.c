/* SPDX-License-Identifier: MIT */
#include "convert/kinds.h"

#include <stdlib.h>
#include <string.h>

void kinds_add(struct kinds *kinds, const char *kind, uint64_t count)
{
    struct kinds_item *items;
    char *copy;

    for (size_t i = 0; i < kinds->count; i++)
        if (kinds->items[i].constant == kind && !strcmp(kinds->items[i].kind, kind)) {
            kinds->items[i].count += count;
            return;
        }
    for (size_t i = 0; i < kinds->count; i++)
        if (!strcmp(kinds->items[i].kind, kind)) {
            kinds->items[i].constant = kind;
            kinds->items[i].count += count;
            return;
        }
    copy = kinds->count < KINDS_MAX ? strdup(kind) : NULL;
    items = copy ? realloc(kinds->items, (kinds->count + 1) * sizeof(*items)) : NULL;
    if (!items) {
        free(copy);
        kinds->beyond += count;
        return;
    }
    kinds->items = items;
    items[kinds->count++] = (struct kinds_item){kind, copy, count};
}

uint64_t kinds_total(const struct kinds *kinds)
{
    uint64_t total = kinds->beyond;

    for (size_t i = 0; i < kinds->count; i++)
        total += kinds->items[i].count;
    return total;
}

void kinds_release(struct kinds *kinds)
{
    for (size_t i = 0; i < kinds->count; i++)
        free(kinds->items[i].kind);
    free(kinds->items);
    memset(kinds, 0, sizeof(*kinds));
}

void kinds_merge(struct kinds *into, const struct kinds *from)
{
    for (size_t i = 0; i < from->count; i++)
        kinds_add(into, from->items[i].kind, from->items[i].count);
    into->beyond += from->beyond;
}
