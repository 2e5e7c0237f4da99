/* SPDX-License-Identifier: MIT */
/*
 * From block header to block header through a tape, over what is damaged, with an exact account
 * of what was lost. Internal to traces/.
 *
 * Every header carries its number and how many operations stand before it. So when blocks
 * cannot be read, the next good header tells how many operations were in them.
 */
#ifndef TRACES_WALK_H
#define TRACES_WALK_H

#include "traces/block.h"
#include "traces/feed.h"

struct walk {
    struct feed feed;  /* stands at the header that walk_next returned */
    struct diag *diag; /* for notes and errors; NULL: silent */
    bool placed;       /* next_number and next_index are known */
    uint32_t next_number;
    uint64_t next_index;
    uint64_t bad_from; /* where unreadable bytes began, TRACE_UNKNOWN_U64: nowhere */
    uint64_t noted_to; /* damage before this offset was told already */
    bool ended;
    struct trace_damage damage;
};

/* Takes the source over, also on failure. */
int walk_init(struct walk *walk, const struct trace_source *source,
              struct diag *diag) TRACE_MUST_CHECK;
void walk_release(struct walk *walk);
/* To a block header's offset; what came before is unknown, so nothing is counted as lost there.
 * At the first block (TAPE_HEADER_BYTES) everything is known, and damage starts from zero. */
int walk_seek(struct walk *walk, uint64_t offset) TRACE_MUST_CHECK;
/* The next good header: 1. 0 at the end of the tape. -errno of the source, -EPROTONOSUPPORT. */
int walk_next(struct walk *walk, struct block_header *ret_header) TRACE_MUST_CHECK;
/*
 * The payload of the block whose header was returned: 1, valid until the walk moves on. 0: it
 * is cut off or its checksum is wrong, which is counted; the walk has moved past it.
 */
int walk_payload(struct walk *walk, const struct block_header *header,
                 const uint8_t **ret_payload) TRACE_MUST_CHECK;
/* Past the block whose header was returned, unread: 1. 0: it is cut off, which is counted. */
int walk_pass(struct walk *walk, const struct block_header *header) TRACE_MUST_CHECK;
/* Past the block whose header was returned. */
int walk_skip(struct walk *walk, const struct block_header *header) TRACE_MUST_CHECK;
/* Counts a block whose contents make no sense, ops of which were not delivered. */
void walk_damaged(struct walk *walk, const struct block_header *header, uint64_t offset,
                  uint64_t ops, const char *why);

#endif
