/* SPDX-License-Identifier: MIT */
/*
 * Parts: byte strings inside a block's payload, deflated where that helps (tape.5, "Parts").
 * Internal to traces/.
 */
#ifndef TRACES_PART_H
#define TRACES_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traces/buf.h"
#include "traces/bytes.h"

struct part_packer; /* deflate states and scratch memory; one a thread */

enum part_effort {
    PART_STORE,    /* as it is */
    PART_LITERALS, /* single bytes and runs of one byte: what numbers without repeats want */
    PART_MATCHES,  /* repeated strings too */
    PART_TRY,      /* whichever is smaller by a sample */
};

struct part_packer *part_packer_new(int level); /* NULL: no memory */
void part_packer_free(struct part_packer *packer);
/* Begins a block. */
void part_packer_begin(struct part_packer *packer);
/* Room that the deflated parts since begin take when they are unpacked. */
uint32_t part_packer_unpacked(const struct part_packer *packer);
/* Appends a part to out. */
void part_pack(struct part_packer *packer, struct buf *out, const uint8_t *data, size_t bytes,
               enum part_effort effort);
/* Bytes that part_pack would append, without doing so. */
size_t part_size(struct part_packer *packer, const uint8_t *data, size_t bytes,
                 enum part_effort effort);

struct part_unpacker; /* an inflate state; one a thread */

struct part_unpacker *part_unpacker_new(void); /* NULL: no memory */
void part_unpacker_free(struct part_unpacker *unpacker);

/* Where deflated parts of a block are unpacked to: capacity is the block's raw_bytes. */
struct part_arena {
    uint8_t *data;
    size_t used, capacity;
};

/* Reads a part; *ret_part points into in's bytes or into arena. False: damaged. */
bool part_unpack(struct part_unpacker *unpacker, struct part_arena *arena, struct cursor *in,
                 struct cursor *ret_part);

#endif
