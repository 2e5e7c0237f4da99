/* SPDX-License-Identifier: MIT */
/*
 * Tape against tape: both are read in step, once, in bounded memory.
 *
 * How ops are matched:
 *   ref       B is a result tape of A: its ops carry their index in A. Two result tapes of one
 *             tape are matched by the index that both carry.
 *   content   else: the k-th op of a kind, file, offset and length in A is the k-th such in B.
 *             What one of the tapes cannot tell (its cannot_tell) is left out.
 * Files are the same when their paths are; else when their last components are; else by number.
 *
 * Lifecycle: tapes_compare, read the fields, tapes_release. One thread. Errors: -errno,
 * described in diag, which must live until release.
 */
#ifndef REPLAY_COMPARE_TAPES_H
#define REPLAY_COMPARE_TAPES_H

#include "replay/compare_feed.h"
#include "replay/compare_pairs.h"
#include "replay/compare_side.h"

enum tapes_how {
    TAPES_AUTO = 0,
    TAPES_REF,
    TAPES_CONTENT
};
enum tapes_files {
    TAPES_FILES_AUTO = 0,
    TAPES_FILES_PATH,
    TAPES_FILES_BASE,
    TAPES_FILES_NUMBER
};
/* Words for the above, NULL-ended: option values and JSON. */
extern const char *const tapes_how_names[];
extern const char *const tapes_files_names[];

#define TAPES_WINDOW 131072u

struct tapes_conf {
    enum tapes_how how;
    enum tapes_files files;
    uint32_t window; /* ops that may wait for their partner; 0 = TAPES_WINDOW */
};

/* Ops of one tape without a partner in the other. */
struct tapes_unmatched {
    uint64_t ops;
    uint64_t by_kind[TRACE_OP_COUNT];
    uint64_t given_up; /* of them: the window was full before the other tape's end was seen */
    uint64_t too_late; /* of them: came after the partner had been given up (ref alone) */
};

struct tapes {
    struct tape_feed feed[2];
    struct side *side[2];
    struct pairs *pairs;
    struct tapes_unmatched unmatched[2]; /* [0]: lost in B; [1]: extra in B */
    enum tapes_how how;
    enum tapes_files files;
    uint32_t window, window_used;
    double speed;       /* of B against A, from the configuration that result tapes carry */
    bool asap;          /* B was not meant to follow A's times */
    bool other_tape;    /* B says it is the result of another tape than A */
    bool no_offsets;    /* matched without offsets */
    bool no_times[2];   /* cannot_tell has "time" */
    bool no_latency[2]; /* no exact completion at all */
    uint64_t bad_ref;   /* ops of a result tape without an index */
};

int tapes_compare(struct tapes *tapes, const char *path_a, const char *path_b,
                  const struct tapes_conf *conf, struct diag *diag) TRACE_MUST_CHECK;
void tapes_release(struct tapes *tapes); /* a zeroed one is fine */

/* Is word in the tape's cannot_tell? */
bool tapes_cannot_tell(const struct tapes *tapes, unsigned int which, const char *word);

#endif
