/* SPDX-License-Identifier: MIT */
/*
 * An asynchronous op between its submission and its completion, and the list of those whose
 * submission call has not returned.
 */
#ifndef CAPTURE_BPF_FLIGHT_H
#define CAPTURE_BPF_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/bpf_table.h"
#include "traces/trace.h"

struct flight {
    struct trace_op op;
    struct bpf_table_key key;
    struct flight *next;
    char *from, *to; /* of a rename, else NULL; owned */
    uint32_t index;  /* in its submission call */
    bool submitting; /* io_submit has not returned: it may not have been taken */
    bool no_length;  /* its vector could not be read */
    bool done;       /* completed, and no longer in the table */
};

struct flight_list {
    struct flight *first;
};

static inline void flight_list_push(struct flight_list *self, struct flight *flight)
{
    flight->next = self->first;
    self->first = flight;
}

static inline struct flight *flight_list_pop(struct flight_list *self) /* NULL when empty */
{
    struct flight *flight = self->first;

    if (flight)
        self->first = flight->next;
    return flight;
}

#endif
