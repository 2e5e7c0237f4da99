/* SPDX-License-Identifier: MIT */
/*
 * Where a capture's ops go: one tape, or with rotation or --ring several in a row (app.tape,
 * app.1.tape, app.2.tape ...). Each has only the files and streams that its ops name, and all
 * the metadata. Tapes share one time 0, the capture's start. One thread.
 */
#ifndef CAPTURE_TAPES_H
#define CAPTURE_TAPES_H

#include "capture/anonymise.h"
#include "capture/tables.h"
#include "traces/diag.h"
#include "traces/trace.h"

struct tapes;

struct tapes_conf {
    const char *path; /* of the first tape, or "-" */
    bool force;
    bool anonymise;
    const struct tables *tables; /* numbers in ops are this one's */
};

int tapes_new(struct tapes **ret_tapes, const struct tapes_conf *conf,
              struct diag *diag) TRACE_MUST_CHECK;
/* Opens the next tape. -EEXIST without force; the diag says it. */
int tapes_open(struct tapes *tapes) TRACE_MUST_CHECK;
bool tapes_is_open(const struct tapes *tapes);
/* Kept and given to this and each later tape; the last value of a key wins. */
int tapes_meta(struct tapes *tapes, const char *key, const char *value) TRACE_MUST_CHECK;
/* File, file2 and stream numbers are the tables's; ops is rewritten with the tape's. */
int tapes_ops(struct tapes *tapes, struct trace_op *ops, size_t count) TRACE_MUST_CHECK;
int tapes_lost(struct tapes *tapes, const char *kind, uint64_t count) TRACE_MUST_CHECK;
void tapes_wall(struct tapes *tapes, int64_t tape_ns, uint64_t wall_ns);
int tapes_flush(struct tapes *tapes) TRACE_MUST_CHECK;
/* Ends the open tape; end is a value of TRACE_META_END. */
int tapes_close(struct tapes *tapes, const char *end) TRACE_MUST_CHECK;
/* Removes the open tape. */
void tapes_abandon(struct tapes *tapes);
uint64_t tapes_bytes(const struct tapes *tapes);         /* of all of them */
uint64_t tapes_current_bytes(const struct tapes *tapes); /* of the open one */
uint64_t tapes_written_ops(const struct tapes *tapes); /* in whole blocks, of all tapes */
unsigned int tapes_count(const struct tapes *tapes);     /* opened so far */
const char *tapes_name(const struct tapes *tapes);       /* the last one opened */
void tapes_free(struct tapes *tapes);                    /* NULL is fine */

#endif
