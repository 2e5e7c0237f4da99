/* SPDX-License-Identifier: MIT */
/*
 * The tape to replay, as the replayer needs it: normalised and able to seek. A raw tape, and one
 * that comes through a pipe, is normalised to a temporary file first, and that is said.
 */
#ifndef REPLAY_TAPE_H
#define REPLAY_TAPE_H

#include <stdint.h>

#include "traces/trace.h"

struct diag;

struct tape {
    struct trace_reader *reader;
    uint64_t damaged_ops; /* lost in the tape as it was given */
    uint64_t lost;        /* events that its recorder lost */
    bool truncated;
    bool normalised;      /* to a temporary */
};

/* -EBADMSG, -EPROTONOSUPPORT ... as trace_reader_open; -ENODATA for a tape without operations is
 * the plan's to say. */
int tape_open(struct tape *ret_tape, const char *path, struct diag *diag) TRACE_MUST_CHECK;
void tape_close(struct tape *tape);

#endif
