/* SPDX-License-Identifier: MIT */
/*
 * Workloads made from a specification: everything aio-stress and iozone can set, and open-loop
 * arrivals. Deterministic by seed, streaming: memory grows with streams x files only.
 *
 *     'rw=randread,bs=4k,size=1g,ops=1m,depth=32,seed=1'
 *     'stages=write:rewrite:read:reread,bs=64k,size=1g,fsync_end'              (iozone -i 0 -i
 * 1)
 *
 * With a rate, issue times are exact arrivals. With think, a stream issues a batch every think.
 * With neither every op is due at 0: meant for replay at pace asap. Latencies are unknown.
 */
#ifndef CONVERT_SYNTH_H
#define CONVERT_SYNTH_H

#include <stdbool.h>
#include <stdint.h>

#include "convert/importer.h"
#include "convert/synth_random.h"
#include "traces/opts.h"

#define SYNTH_STAGES_MAX  32u
#define SYNTH_SIZES_MAX   32u
#define SYNTH_CURSORS_MAX (1u << 24) /* streams x files x contexts */

enum synth_rw {
    SYNTH_READ,
    SYNTH_WRITE,
    SYNTH_RANDREAD,
    SYNTH_RANDWRITE,
    SYNTH_RW,
    SYNTH_RANDRW,
    SYNTH_TRIM,
    SYNTH_RANDTRIM,
    /* iozone's further stages */
    SYNTH_REWRITE,
    SYNTH_REREAD,
    SYNTH_BACKREAD,
    SYNTH_RERECORD,
    SYNTH_STRIDEREAD,
    /* each place is discarded, then written */
    SYNTH_TRIMWRITE,
    SYNTH_RANDTRIMWRITE,
    SYNTH_RW_COUNT
};

enum synth_arrival {
    SYNTH_CONSTANT,
    SYNTH_POISSON,
    SYNTH_BURST
};
enum synth_file_order {
    SYNTH_FILES_TURN,
    SYNTH_FILES_RANDOM,
    SYNTH_FILES_ONE_BY_ONE /* each to its end */
};
enum synth_sync {
    SYNTH_FSYNC,
    SYNTH_FDATASYNC
};

struct synth_spec {
    /* what */
    int rw;              /* enum synth_rw, when there are no stages */
    const char *stages;  /* "write:rewrite:read" */
    uint64_t rwmix;      /* percent of reads in rw and randrw */
    const char *bs;      /* "4k", or "4k-64k": uniform over multiples of the smaller */
    const char *bssplit; /* "4k/60:64k/40": sizes and their percent */
    const char *bs_write, *bssplit_write; /* of writes and discards; NULL = as the above */
    uint64_t size_bytes; /* of each file */
    uint64_t offset_bytes, align_bytes, stride_bytes;
    const char *random; /* "uniform", "once", "zipf:1.1" */
    uint64_t follow_pct; /* of random ops that follow the one before in place */
    uint64_t run_ops;    /* random: a new place only every run_ops ops; 0 = each */
    bool run_identical;  /* ... and the others at the same place, not behind it */
    uint64_t hole_bytes; /* sequential: left out between ops */
    uint64_t back_bytes; /* sequential: from an op's end back to the next; 0: on from there */
    bool own_places;     /* sequential: reads and writes each go through the file by themselves */
    /* where */
    const char *path; /* a file's name; with several, a number is appended */
    uint64_t files, contexts, context_offset_bytes, switch_ops;
    int file_order; /* enum synth_file_order */
    uint64_t streams;
    bool processes;     /* streams are processes, else threads of one */
    bool private_files; /* each stream has files of its own */
    bool device;        /* path is a block device */
    bool opens;         /* name-space calls around each stage */
    /* how much */
    uint64_t ops;        /* of a stage, over all streams; 0 = each file once */
    uint64_t runtime_ns; /* with rate or think: ops issued before it */
    /* when */
    double rate;    /* ops a second over all streams; 0 = none */
    int arrival;    /* enum synth_arrival */
    uint64_t burst; /* ops arriving at once */
    uint64_t think_ns;
    uint64_t depth, batch;
    /* sync */
    uint64_t fsync_every; /* writes of a stream to a file; 0 = never */
    bool fsync_end;
    int sync; /* enum synth_sync */
    /* how */
    bool direct, osync, dsync, nowait, append;
    int api; /* enum trace_api */
    uint64_t seed;
    /* for importers that make several workloads; no options of synth */
    const char *const *names; /* of all files, in place of path and numbers; NULL = none */
    const char *comm;         /* of the streams; NULL = "synth" */
    uint32_t first_pid;       /* 0 = 1000 */
    uint64_t first_batch;
    int64_t start_ns; /* when the first stage begins */
    bool silent; /* no note on how to replay it */
};

extern const struct opt synth_opts[];

/* Generates all ops of spec into import; *ret_end_ns (NULL is fine) is when its last stage ends.
 * -EBADMSG with the diag set when spec makes no sense. */
int synth_generate(const struct synth_spec *spec, struct import *import,
                   int64_t *ret_end_ns) TRACE_MUST_CHECK;
/* The mean size of spec's ops; 0 when its sizes make no sense. */
double synth_mean_bytes(const struct synth_spec *spec, struct import *import);

#endif
