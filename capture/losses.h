/* SPDX-License-Identifier: MIT */
/*
 * Counts of events that were lost, or known to have happened but not seen, by kind and CPU.
 * One thread.
 */
#ifndef CAPTURE_LOSSES_H
#define CAPTURE_LOSSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loss {
    char kind[96];
    int cpu; /* -1 = none */
    uint64_t count;
    bool unseen;
};

struct losses {
    struct loss *items;
    size_t count;
};

void losses_init(struct losses *losses);
void losses_release(struct losses *losses);
/* Without memory for a new kind the count is left out here; totals are kept elsewhere. */
void losses_add(struct losses *losses, const char *kind, int cpu, uint64_t count, bool unseen);
/* each is called once a kind, with the sum over CPUs. */
void losses_each(const struct losses *losses,
                 void (*each)(void *context, const char *kind, uint64_t count, bool unseen),
                 void *context);

#endif
