/* SPDX-License-Identifier: MIT */
/*
 * One capture: its tape, its file and stream tables, its losses and its limits. What a recorder
 * calls is in recorder.h; this is what the program itself calls.
 *
 *     session_new -> [recorder delivers; session_tick every now and then] -> session_finish
 *     -> session_free
 *
 * Ops are put into issue order within a bounded window before they go to the tape; what comes
 * later than that stays late (the tape is raw, convert sorts it). Everything is on one thread.
 *
 * A write error of the tape ends recording, not the target: session_failed tells, further ops
 * are counted as lost, and the tape is valid up to its last block.
 */
#ifndef CAPTURE_SESSION_H
#define CAPTURE_SESSION_H

#include "capture/recorder.h"

struct session_conf {
    const char *tape; /* path, or "-" */
    bool force;       /* overwrite */
    struct capture_scope scope;
    const char *recorder;       /* its name, for the tape's metadata */
    const char *const *filters; /* see filter.h; all must let an op pass */
    size_t filter_count;
    uint64_t max_bytes;    /* stop when the tape has grown to this; 0 = never */
    uint64_t rotate_bytes; /* next tape when one has grown to this; 0 = never */
    uint64_t rotate_ns;    /* next tape after this long; 0 = never */
    uint64_t keep_ns;      /* --ring: keep the last of this in memory until session_dump */
    uint64_t keep_bytes;   /* memory for that; 0 = 256 MiB */
    bool anonymise;        /* names are replaced by keyed hashes; the key is never stored */
};

struct session_totals {
    uint64_t ops;      /* passed the filters */
    uint64_t bytes;    /* of reads and writes among them */
    uint64_t filtered; /* ops the filters held back */
    uint64_t passed;   /* ops of streams that are not in the sample, before any filter */
    uint64_t lost;
    uint64_t unseen;           /* I/O known to have happened that could not be given as ops */
    uint64_t tape_bytes;       /* of all tapes */
    unsigned int tapes;        /* written so far */
    uint64_t sampled_bytes;    /* --content: of writes looked at */
    uint64_t compressed_bytes; /* and what is left of them */
};

/* Opens the tape (except with keep_ns). The conf's strings must outlive the session. */
int session_new(struct session **ret_session, const struct session_conf *conf,
                struct diag *diag) TRACE_MUST_CHECK;
/* Writes out what is due: at most half a second of ops stays in memory. now_ns:
 * CLOCK_MONOTONIC. 0, or 1 when max_bytes has been reached, or the write error (described
 * once). */
int session_tick(struct session *session, uint64_t now_ns) TRACE_MUST_CHECK;
/* --ring: writes what is kept as a tape of its own (T.tape, then T.1.tape ...). */
int session_dump(struct session *session, const char *why) TRACE_MUST_CHECK;
/* The last ops, losses and metadata; end is a value of TRACE_META_END. The tape is closed. */
int session_finish(struct session *session, const char *end) TRACE_MUST_CHECK;
/* Nothing was recorded, for instance because the command could not be run: the tape goes. */
void session_abandon(struct session *session);
bool session_failed(const struct session *session);
/* Adds or replaces a metadata entry of this and every later tape. */
int session_meta(struct session *session, const char *key, const char *value) TRACE_MUST_CHECK;
/* From now_ns (CLOCK_MONOTONIC) on one stream in so many is recorded: the tape and every later one
 * say so. */
int session_sampled(struct session *session, unsigned int one_in, uint64_t now_ns) TRACE_MUST_CHECK;
void session_totals(const struct session *session, struct session_totals *ret_totals);
/* By how much of a hundred the sampled writes can be compressed; 0 without samples. */
static inline unsigned int session_compress_pct(const struct session_totals *totals)
{
    return totals->sampled_bytes == 0
               ? 0
               : (unsigned int)(100 - 100 * totals->compressed_bytes / totals->sampled_bytes);
}
/* One line a kind: "ring-full 12 (cpu3 10, cpu7 2)". each is called once a kind. */
void session_each_loss(const struct session *session,
                       void (*each)(void *context, const char *kind, uint64_t count,
                                    bool unseen),
                       void *context);
const char *session_tape_name(const struct session *session); /* the one being written */
void session_free(struct session *session);                   /* NULL is fine */

#endif
