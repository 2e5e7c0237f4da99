/* SPDX-License-Identifier: MIT */
/*
 * The ops a blocking engine has executed in submit and not yet handed over in reap: a ring as
 * large as the depth, oldest first. The last member of the engine's state; one thread.
 */
#ifndef ENGINES_DONE_H
#define ENGINES_DONE_H

#include <stddef.h>
#include <stdint.h>

struct engine_op;

struct done {
    uint32_t depth, head, count;
    struct engine_op *ops[];
};

/* Bytes that a state of state_bytes, done included, needs in all for depth ops. */
static inline size_t done_state_bytes(size_t state_bytes, uint32_t depth)
{
    return state_bytes + depth * sizeof(struct engine_op *);
}

/* At most depth are held: the core never has more in flight. */
static inline void done_put(struct done *done, struct engine_op *op)
{
    done->ops[(done->head + done->count++) % done->depth] = op;
}

/* Up to max, oldest first: how many. */
static inline int done_take(struct done *done, struct engine_op **ret_ops, unsigned int max)
{
    unsigned int count = done->count < max ? done->count : max;

    for (unsigned int i = 0; i < count; i++) {
        ret_ops[i] = done->ops[done->head];
        done->head = (done->head + 1) % done->depth;
    }
    done->count -= count;
    return (int)count;
}

#endif
