/* SPDX-License-Identifier: MIT */
/*
 * An operation ready to be issued: what the decoder thread hands to a worker. One cache line;
 * nothing in it is looked up or converted again.
 */
#ifndef REPLAY_PREPARED_H
#define REPLAY_PREPARED_H

#include <assert.h>
#include <stdint.h>

#include "traces/trace.h"

/* Who carries it out. */
enum prepared_action {
    PREPARED_ENGINE = 0, /* the engine */
    PREPARED_CORE = 1,   /* the replayer itself, in the worker's thread */
    PREPARED_SKIP = 2,   /* nobody: counted by reason, completes when due */
};

/* Why an operation is not issued. The words are in skip_words. */
enum skip_reason {
    SKIP_NONE = 0,
    SKIP_READ_ONLY,   /* it changes data and --writes was not given */
    SKIP_UNSUPPORTED, /* a kind that an engine without targets does not take */
    SKIP_NO_RANGE,    /* the tape does not say where or how much */
    SKIP_NAMES,       /* a name-space call, and there is one target for everything */
    SKIP_CLOSE,       /* the replay's own descriptors stay open */
    SKIP_NOT_A_FILE,  /* on a pipe, socket, character device or directory */
    SKIP_WINDOW,      /* outside --start and --end */
    SKIP_NOT_REACHED, /* the run ended first */
    SKIP_MAPPING,     /* mmap and munmap; with --mapped skip what was done through them too */
    SKIP_COPY,        /* copy_file_range, sendfile, splice between files */
    SKIP_SYMLINK,
    SKIP_ZONE,        /* zone append, reset, open, close, finish */
    SKIP_PASSTHROUGH, /* SCSI or NVMe commands: not known what they were */
    SKIP_REASON_COUNT
};
extern const char *const skip_words[SKIP_REASON_COUNT];

enum prepared_marks {
    PREPARED_SAME_BATCH = 1u << 0, /* was submitted together with the one before it */
    PREPARED_EXPECTED = 1u << 1,   /* expected holds a result worth comparing */
    PREPARED_FENCED = 1u << 2,     /* some operation on its file is a barrier */
    PREPARED_BARRIER = 1u << 3,    /* this one is */
};

struct prepared {
    int64_t due_ns;    /* from the run's time 0, scaled; pace think: the recorded time */
    uint64_t offset;   /* two-file calls: file2's target (low half) and file2 (high half) */
    uint64_t length;
    int64_t expected;  /* recorded result */
    uint64_t ref;      /* its index in the tape */
    uint32_t target;   /* in the target set; TRACE_NONE_U32 for none */
    uint32_t file;     /* in the tape's table */
    uint32_t stream;
    uint32_t flags;    /* enum trace_op_flags */
    uint32_t arg;
    uint8_t kind;      /* enum trace_op_kind */
    uint8_t action;    /* enum prepared_action */
    uint8_t skip;      /* enum skip_reason */
    uint8_t marks;     /* enum prepared_marks */
};
static_assert(sizeof(struct prepared) == 64, "one cache line");

#define ORDER_EDGES 4

/* What an operation must wait for; travels beside it when the replay is ordered. */
struct order_tag {
    uint64_t seq;               /* its own number, in issue order over the whole run */
    uint64_t think_ns;          /* pace think: from the last completion it waited for */
    uint64_t rank_stream;       /* completions of its stream that come first */
    uint64_t rank_file;
    uint64_t rank_all;
    uint64_t edge[ORDER_EDGES]; /* numbers of operations that must be complete ... */
    uint32_t edges;             /* ... this many */
    uint32_t file_issued;       /* barriers: operations on its file before it, or NONE */
    uint32_t file2_issued;      /* the same for the second file */
    uint32_t spare;
    uint64_t before;            /* every operation numbered below this must be complete */
};

#endif
