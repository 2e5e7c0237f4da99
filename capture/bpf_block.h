/* SPDX-License-Identifier: MIT */
/*
 * Block devices by name, and the running kernel's numbers of request operations and flags.
 */
#ifndef CAPTURE_BPF_BLOCK_H
#define CAPTURE_BPF_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/bpf_event.h"
#include "traces/diag.h"
#include "traces/trace.h"

/* A device the user named: a disk, or a part of one. */
struct block_target {
    char *path;
    uint32_t device;       /* kernel dev_t of what was named */
    uint32_t disk;         /* of the whole disk */
    uint64_t first_sector; /* 0 for a whole disk */
    uint64_t sectors;
    uint32_t mode; /* enum bpf_block_mode of the disk */
};

/* -ENOTBLK, -ENOENT and others with diag set. path is copied; release frees it. */
int block_target_init(struct block_target *self, const char *path, struct diag *diag);
void block_target_release(struct block_target *self);

enum {
    BLOCK_COMMANDS_MAX = 256,
    BLOCK_FLAGS_MAX = 16
};

/* What the low byte and the flag bits of a command mean on this kernel. */
struct block_words {
    uint8_t kind[BLOCK_COMMANDS_MAX]; /* enum trace_op_kind; TRACE_OP_COUNT = not known */
    struct {
        uint32_t bit, flag; /* enum trace_op_flags */
    } flags[BLOCK_FLAGS_MAX];
    unsigned int flag_count;
};

/* From the kernel's type information: value(context, "REQ_OP_READ") gives a number or -ENOENT.
 */
void block_words_init(struct block_words *self, int (*value)(void *context, const char *name),
                      void *context);
/*
 * Everything of the op but file, stream and the offset within a partition, which the caller
 * subtracts; done = false for one still under way. A request's flush flag is dropped, as the
 * flush is a request of its own; on a device without requests it is kept.
 */
void block_op_fill(const struct block_words *self, const struct bpf_event_block *event,
                   bool done, struct trace_op *ret_op);

#endif
