/* SPDX-License-Identifier: MIT */
/*
 * What a replay of this tape under these options will do, found by reading the whole tape once
 * before anything is opened or issued: files and how far they reach, what is skipped and why,
 * bytes to be written, expected duration.
 *
 * One thread. Memory grows with the number of files and streams, not of operations.
 */
#ifndef REPLAY_PLAN_H
#define REPLAY_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "replay/prepared.h"

struct conf;
struct diag;
struct pack;
struct trace_reader;

enum plan_file_flags {
    PLAN_USED = 1u << 0,     /* some operation on it will be issued */
    PLAN_WRITTEN = 1u << 1,  /* some operation changes it */
    PLAN_VOLATILE = 1u << 2, /* some operation makes, removes or renames it */
    PLAN_MADE = 1u << 3,     /* not there at first: the tape makes it, or never finds it */
    PLAN_DIRECTORY = 1u << 4,
    PLAN_BUFFERED = 1u << 5, /* some transfer is not O_DIRECT */
    PLAN_DIRECT = 1u << 6,   /* some transfer is */
    PLAN_BARRIERS = 1u << 7, /* some operation on it is one that the others wait for */
};

struct plan_file {
    uint32_t flags;
    uint64_t max_end;    /* of every ranged operation that will be issued */
    uint64_t need_bytes; /* size it must have before the replay starts */
    uint64_t write_end;  /* how far the tape itself has written */
    uint64_t write_bytes;
    uint64_t align_bits; /* OR of all offsets and lengths of direct transfers */
};

struct plan {
    uint64_t ops; /* of the tape */
    uint64_t issue_ops; /* will be issued, in one loop */
    uint64_t kind_ops[TRACE_OP_COUNT];   /* that will be issued */
    uint64_t kind_bytes[TRACE_OP_COUNT];
    uint64_t skipped[SKIP_REASON_COUNT];
    uint64_t mapped_ops; /* of those: fills and write-backs of mapped files */
    uint64_t core_ops; /* carried out by the replayer itself */
    int64_t first_ns, last_ns;  /* recorded issue times inside the window */
    int64_t origin_ns;          /* the tape time that is the run's time 0 */
    uint64_t last_end_ns;       /* latest recorded completion, from origin; 0 = unknown */
    uint64_t max_transfer;      /* longest read or write */
    uint64_t no_latency;        /* operations without a latency */
    uint64_t unmapped;          /* would be issued, but no file says where */
    uint64_t unmapped_first;    /* its index in the tape */
    bool any_writes;
    bool barriers;              /* some file has PLAN_BARRIERS */
    uint32_t file_count, stream_count;
    struct plan_file *files;
    struct plan_file no_file;   /* --target: operations that name no file */
    uint64_t used_files;
    uint64_t lost;          /* events the recorder lost */
    struct trace_sample sample; /* one_in 0: the tape is whole */
    uint64_t damaged_ops;
    bool truncated;
    struct pack *pack;      /* --fit pack: the parts touched; else NULL */
};

/*
 * Reads the tape from where the reader stands (its beginning) to the end. 0, or -errno with
 * diag: what cannot be replayed as asked (an operation that names no file, a transfer too long,
 * no latencies where the order or pace needs them) is found here.
 */
int plan_new(struct plan **ret_plan, struct trace_reader *reader, const struct conf *conf,
             struct diag *diag) TRACE_MUST_CHECK;
void plan_free(struct plan *plan); /* NULL is fine */
/* Recorded duration as replayed: speed and window applied, ns; gaps as they are. */
uint64_t plan_duration_ns(const struct plan *plan, const struct conf *conf);

#endif
