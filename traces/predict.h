/* SPDX-License-Identifier: MIT */
/*
 * What a column's next value is expected to be: only the difference is stored. Writer and
 * reader run the same predictions, so both sides share this page. tape.5 ("Predictions") has
 * the rules. Internal to traces/.
 */
#ifndef TRACES_PREDICT_H
#define TRACES_PREDICT_H

#include <stdint.h>

#include "traces/columns.h"

enum predict_mode {
    PREDICT_START = 0,       /* one value for the whole block */
    PREDICT_PREVIOUS = 1,    /* the value before */
    PREDICT_COMPANION = 2,   /* result: the length; due: the issue time */
    PREDICT_END_FILE = 3,    /* offset: where the last op of the same file ended */
    PREDICT_END_STREAM = 4,  /* ... of the same stream */
    PREDICT_END_BOTH = 5,    /* ... of the same file and stream */
    PREDICT_SAME_KIND = 6,   /* the value before, of an op of the same kind */
    PREDICT_SAME_STREAM = 7, /* ... of the same stream */
    PREDICT_COMPLETION = 8,  /* latency: completed together with the op before */
    PREDICT_COUNT
};

/* How a column marks values the source did not give. */
enum predict_unknown {
    UNKNOWN_NEVER = 0,
    UNKNOWN_BY_KIND = 1, /* exactly the ops of some kinds */
    UNKNOWN_BITMAP = 2,
    UNKNOWN_COUNT
};

#define PREDICT_SLOTS 4096

/* Ends, or values before, by hash of kind, file or stream. A collision costs a worse guess, on
 * both sides alike. */
struct predict_ends {
    uint64_t end[PREDICT_SLOTS];
};

static inline unsigned int predict_slot(enum predict_mode mode, uint32_t kind, uint32_t file,
                                        uint32_t stream)
{
    uint32_t key = 0;

    if (mode == PREDICT_SAME_KIND)
        return kind;
    if (mode == PREDICT_END_FILE || mode == PREDICT_END_BOTH)
        key = file * 2654435761u;
    if (mode != PREDICT_END_FILE)
        key ^= (stream * 2246822519u) >> 3;
    return (key ^ key >> 15) % PREDICT_SLOTS;
}

static inline bool predict_has_slots(enum predict_mode mode)
{
    return mode >= PREDICT_END_FILE && mode <= PREDICT_SAME_STREAM;
}

static inline bool predict_allowed(enum column_id id, unsigned int mode)
{
    if (mode <= PREDICT_PREVIOUS)
        return true;
    if (mode == PREDICT_COMPANION)
        return id == COLUMN_RESULT || id == COLUMN_DUE;
    /* Kinds and streams must have been read before the column. */
    if (mode == PREDICT_SAME_KIND)
        return id > COLUMN_KIND;
    if (mode == PREDICT_SAME_STREAM)
        return id > COLUMN_STREAM;
    if (mode == PREDICT_COMPLETION)
        return id == COLUMN_LATENCY;
    return mode < PREDICT_COUNT && id == COLUMN_OFFSET;
}

static inline bool column_is_64(enum column_id id)
{
    return id >= COLUMN_LENGTH;
}

/* The value that means unknown, of the columns that have one. */
static inline bool column_unknown(enum column_id id, uint64_t *ret_value)
{
    switch (id) {
    case COLUMN_OFFSET:
    case COLUMN_LATENCY:
    case COLUMN_BATCH:
    case COLUMN_SUBMIT:
    case COLUMN_REF: *ret_value = TRACE_UNKNOWN_U64; return true;
    case COLUMN_RESULT:
    case COLUMN_DUE: *ret_value = (uint64_t)TRACE_UNKNOWN_I64; return true;
    default: return false;
    }
}

/* What a column that is left out of a block holds. NONE_U32 is stored as 0, others plus one. */
static inline uint64_t column_default(enum column_id id)
{
    uint64_t value = 0;

    column_unknown(id, &value);
    return value;
}

#endif
