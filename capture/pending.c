/* SPDX-License-Identifier: MIT */
#include "capture/pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void pending_init(struct pending *pending)
{
    memset(pending, 0, sizeof(*pending));
}

void pending_release(struct pending *pending)
{
    free(pending->halves);
    pending_init(pending);
}

static uint32_t home(const struct pending *pending, uint64_t id)
{
    return (uint32_t)((id * 0x9e3779b97f4a7c15u) >> 32) & (pending->room - 1);
}

static struct pending_half *find(struct pending *pending, uint64_t id)
{
    uint32_t at;

    if (pending->room == 0)
        return NULL;
    for (at = home(pending, id); pending->halves[at].id; at = (at + 1) & (pending->room - 1))
        if (pending->halves[at].id == id)
            return &pending->halves[at];
    return NULL;
}

static void put(struct pending *pending, const struct pending_half *half)
{
    uint32_t at = home(pending, half->id);

    while (pending->halves[at].id)
        at = (at + 1) & (pending->room - 1);
    pending->halves[at] = *half;
    pending->count++;
}

static int add(struct pending *pending, const struct pending_half *half)
{
    if (pending->count * 2 >= pending->room) {
        struct pending bigger = {NULL, 0, pending->room ? pending->room * 2 : 256};

        if (bigger.room > UINT32_C(1) << 26)
            return -ENOMEM;
        bigger.halves = calloc(bigger.room, sizeof(*bigger.halves));
        if (!bigger.halves)
            return -ENOMEM;
        for (uint32_t i = 0; i < pending->room; i++)
            if (pending->halves[i].id)
                put(&bigger, &pending->halves[i]);
        free(pending->halves);
        *pending = bigger;
    }
    put(pending, half);
    return 0;
}

/* Closes the gap, so that probing needs no marks for removed entries. */
static void take_out(struct pending *pending, struct pending_half *half)
{
    uint32_t mask = pending->room - 1, gap = (uint32_t)(half - pending->halves), at = gap;

    for (;;) {
        at = (at + 1) & mask;
        if (!pending->halves[at].id)
            break;
        if (((at - home(pending, pending->halves[at].id)) & mask) >= ((at - gap) & mask)) {
            pending->halves[gap] = pending->halves[at];
            gap = at;
        }
    }
    pending->halves[gap].id = 0;
    pending->count--;
}

static void complete(struct trace_op *op, uint64_t completed_ns, int64_t result,
                     unsigned int completion)
{
    op->result = result;
    if (completed_ns >= (uint64_t)op->issue_ns) {
        op->latency_ns = completed_ns - (uint64_t)op->issue_ns;
        op->completion = (uint8_t)completion;
    }
}

int pending_issue(struct pending *pending, uint64_t id, const struct trace_op *op,
                  struct trace_op *ret_op)
{
    struct pending_half *other = find(pending, id),
                        half = {.id = id, .issued = true, .op = *op};

    if (!other)
        return add(pending, &half);
    if (other->issued)
        return 0; /* the same id twice: the shim is not to be trusted */
    *ret_op = *op;
    complete(ret_op, other->completed_ns, other->result, other->completion);
    take_out(pending, other);
    return 1;
}

int pending_done(struct pending *pending, uint64_t id, uint64_t completed_ns, int64_t result,
                 unsigned int completion, struct trace_op *ret_op)
{
    struct pending_half *other = find(pending, id);
    struct pending_half half = {.id = id,
                                .completed_ns = completed_ns,
                                .result = result,
                                .completion = (uint8_t)completion};

    if (!other)
        return add(pending, &half);
    if (!other->issued)
        return 0;
    *ret_op = other->op;
    complete(ret_op, completed_ns, result, completion);
    take_out(pending, other);
    return 1;
}

int pending_take(struct pending *pending, uint32_t *cursor, struct trace_op *ret_op)
{
    for (uint32_t i = *cursor; i < pending->room; i++) {
        *cursor = i; /* what is taken out may be replaced by a later one */
        if (pending->halves[i].id && pending->halves[i].issued) {
            *ret_op = pending->halves[i].op;
            take_out(pending, &pending->halves[i]);
            return 1;
        }
    }
    return 0;
}
