/* SPDX-License-Identifier: MIT */
/*
 * Operations of block devices that wait for their completion.
 *
 * An operation waits as one or more pieces, each a run of sectors still to complete. A
 * completion is laid over the pieces from its first sector on: exact fits first, then the
 * oldest that fits, then part of a larger one. The operation is delivered with its last piece.
 * One thread. Bounded: see blk_pending_new.
 */
#ifndef CONVERT_BLK_PENDING_H
#define CONVERT_BLK_PENDING_H

#include "convert/importer.h"

struct blk_pending;

struct blk_piece_key {
    uint64_t sector;
    uint32_t device; /* the caller's number for it */
    uint8_t lane;    /* requests of different lanes never complete each other */
};

/* How an operation's completion may look. */
enum blk_wait {
    BLK_WAIT_PLAIN,
    BLK_WAIT_SEQUENCE, /* a write that flushes before or after: an empty completion may end it
                        */
    BLK_WAIT_LOOSE, /* a discard, which may be one range of several in a request; or an append,
                       which completes at the sector it was given */
};

struct blk_completion {
    uint64_t time_ns;
    int32_t error; /* 0 or -errno */
    uint64_t bytes;
};

struct blk_pending_counts {
    uint64_t in_flight; /* delivered by finish, flagged TRACE_F_INFLIGHT */
    uint64_t given_up;  /* delivered without a completion for want of room or because too old */
};

/* At most `limit` pieces wait; adding one more delivers the oldest operation as it is. -ENOMEM.
 */
int blk_pending_new(struct blk_pending **ret_pending, struct import *import,
                    uint32_t limit) TRACE_MUST_CHECK;
void blk_pending_free(struct blk_pending *pending); /* NULL is fine */

/* An operation begins to wait for `bytes` from key on (0: for an empty completion). Delivers
 * others when there is no room: -errno of import_op. */
int blk_pending_add(struct blk_pending *pending, const struct blk_piece_key *key,
                    const struct trace_op *op, uint64_t bytes,
                    enum blk_wait wait) TRACE_MUST_CHECK;
/* A request of `bytes` went to the device whose first range begins at key. Its other ranges are
 * those that follow in place, then the oldest loose ones that wait and fit; they complete with
 * it. */
void blk_pending_issued(struct blk_pending *pending, const struct blk_piece_key *key,
                        uint64_t bytes);
/* An append of its size wrote at key's sector: the oldest of the nearest zone start before it.
 * 1, 0 when none waits, or -errno. */
int blk_pending_complete_append(struct blk_pending *pending, const struct blk_piece_key *key,
                                const struct blk_completion *done) TRACE_MUST_CHECK;
/* How many pieces the completion touched (0: none was found), or -errno of import_op. */
int blk_pending_complete(struct blk_pending *pending, const struct blk_piece_key *key,
                         const struct blk_completion *done) TRACE_MUST_CHECK;
/* A completion that carries no bytes: of a flush sequence's write whose data is done, else of
 * the oldest bare flush or pass-through request. 1, 0 when neither waits, or -errno. */
int blk_pending_complete_empty(struct blk_pending *pending, const struct blk_piece_key *key,
                               const struct blk_completion *done) TRACE_MUST_CHECK;

/* Marks the operation that was merged into a request. */
void blk_pending_merged(struct blk_pending *pending, const struct blk_piece_key *key,
                        uint64_t bytes);
/* Marks the operations of a request that went back to the queue. */
void blk_pending_requeued(struct blk_pending *pending, const struct blk_piece_key *key,
                          uint64_t bytes);
/* True when this issue is that of a requeued request again. */
bool blk_pending_reissue(struct blk_pending *pending, const struct blk_piece_key *key,
                         uint64_t bytes);
/* Cuts the piece at key in two: from new_sector on it completes by itself. */
void blk_pending_split(struct blk_pending *pending, const struct blk_piece_key *key,
                       uint64_t new_sector);

/* Delivers the rest; what was issued at or after since_ns is in flight. 0 or -errno. */
int blk_pending_finish(struct blk_pending *pending, uint64_t since_ns,
                       struct blk_pending_counts *ret_counts) TRACE_MUST_CHECK;

#endif
