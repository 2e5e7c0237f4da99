/* SPDX-License-Identifier: MIT */
#include "capture/losses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void losses_init(struct losses *losses)
{
    memset(losses, 0, sizeof(*losses));
}

void losses_release(struct losses *losses)
{
    free(losses->items);
    losses_init(losses);
}

void losses_add(struct losses *losses, const char *kind, int cpu, uint64_t count, bool unseen)
{
    struct loss *grown;

    for (size_t i = 0; i < losses->count; i++) {
        struct loss *loss = &losses->items[i];

        if (loss->cpu == cpu && loss->unseen == unseen && !strcmp(loss->kind, kind)) {
            loss->count += count;
            return;
        }
    }
    grown = realloc(losses->items, (losses->count + 1) * sizeof(*grown));
    if (!grown)
        return;
    losses->items = grown;
    grown += losses->count++;
    snprintf(grown->kind, sizeof(grown->kind), "%s", kind);
    grown->cpu = cpu;
    grown->count = count;
    grown->unseen = unseen;
}

void losses_each(const struct losses *losses,
                 void (*each)(void *context, const char *kind, uint64_t count, bool unseen),
                 void *context)
{
    for (size_t i = 0; i < losses->count; i++) {
        const struct loss *loss = &losses->items[i];
        uint64_t count = 0;
        bool first = true;

        for (size_t j = 0; j < losses->count; j++) {
            const struct loss *other = &losses->items[j];

            if (other->unseen != loss->unseen || strcmp(other->kind, loss->kind))
                continue;
            first &= j >= i;
            count += other->count;
        }
        if (first)
            each(context, loss->kind, count, loss->unseen);
    }
}
