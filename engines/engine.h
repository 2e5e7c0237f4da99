/* SPDX-License-Identifier: MIT */
/*
 * The contract between the replayer and an engine: the manual for engine authors.
 *
 * An engine issues operations through one kernel interface. It is the file engines/NAME.c that
 * defines
 *
 *     const struct engine engine_NAME = { .name = "NAME", ... };
 *
 * and nothing else: make writes the registry from the file names. A file that needs a library
 * adds `PKG_NAME := libfoo` to the Makefile; it is then compiled with HAVE_LIB=1 where the
 * library was found, and must compile without it, setting .unavailable.
 *
 *     open --> submit --> reap --> submit --> reap ... --> reap (until nothing is in flight) --> close
 *               |  ^________________________|
 *               '--> -EAGAIN or a short count: reap, then submit the rest again
 *
 * - One engine state belongs to one worker thread; every callback runs on that thread. Pool
 *   engines make their own threads in open and end them in close.
 * - The core owns the ops and their buffers. From a successful submit until reap hands it back
 *   an op belongs to the engine. At most env->depth ops are in flight.
 * - When submit returns k, the first k ops have been handed to the kernel (or executed, by a
 *   blocking engine): the core's stamps around the call are honest. For io_uring that means the
 *   io_uring_enter has returned, or with SQPOLL that the tail was published.
 * - Stamps: the core sets issued (just before submit) and returned (just after) for the ops of
 *   the call, and completed just after reap returned them. An engine with ENGINE_STAMPS sets
 *   op->issued_ns and op->completed_ns itself, from env->clock, in the thread that did the work.
 *   While an op is the engine's the core touches nothing of it but returned_ns, so a pool thread
 *   must not copy an op whole.
 * - Engines count nothing, print nothing and never exit. A failed op is a result, not an error
 *   of the engine: op->result = -EIO and it is reaped like any other. Short transfers are
 *   reported as they are.
 * - submit and reap allocate nothing, lock nothing (pool engines: only their queue) and format
 *   nothing.
 * - Op flags that are honoured, where the interface can: nowait, polled, append, dsync or fua
 *   (both as RWF_DSYNC) and sync (RWF_SYNC); a write with preflush follows a flush of its file
 *   (fdatasync), and has that flush's failure as its result. The core clears a flag that is not to be honoured
 *   (the "sync" of a block trace, a mode that the descriptor already has); an engine leaves one
 *   it cannot express alone and says so in its help. Other flags are ignored.
 * - An unknown offset (TRACE_UNKNOWN_U64) means the end of the file with flag append, else the
 *   file position; an engine whose interface has no position completes such an op with -EINVAL.
 * - Only the wrappers engine_open ... engine_close in engine.c call these callbacks. They check
 *   the contract (counts, states, results) and hold the fault points.
 */
#ifndef ENGINES_ENGINE_H
#define ENGINES_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engines/clock.h"
#include "traces/opts.h"
#include "traces/trace.h"

struct diag;

enum engine_op_state { ENGINE_OP_IDLE = 0, ENGINE_OP_INFLIGHT = 1 };

/* One operation in the core's hands or the engine's. */
struct engine_op {
    /* set by the core before submit; the engine leaves them alone */
    uint8_t kind;        /* enum trace_op_kind, one of the engine's ops */
    uint8_t state;       /* enum engine_op_state; set by the wrappers */
    uint16_t slot;       /* unused by engines; see slot_index */
    uint32_t flags;      /* enum trace_op_flags: direct, dsync, sync, nowait, append ... */
    int fd;              /* open descriptor of the target */
    uint32_t target;     /* index in env->targets, for registered files and mappings */
    uint32_t slot_index; /* 0 .. depth-1, unique among the ops in flight: buffer index */
    uint32_t arg;        /* as struct trace_op */
    uint64_t offset;     /* bytes; TRACE_UNKNOWN_U64 = append or at the file position */
    uint64_t length;     /* bytes */
    void *buffer;        /* length bytes for reads and writes; NULL for the rest */
    /* set by the engine by the time reap returns the op */
    int64_t result;      /* bytes, 0, or -errno */
    /* set by the core, or by an engine with ENGINE_STAMPS; ns of env->clock */
    uint64_t issued_ns;
    uint64_t returned_ns;
    uint64_t completed_ns;
    /* the engine's own, any use between submit and reap; kept across uses of the same op */
    uint64_t engine_u64;
    void *engine_ptr;
    /* the core's own; engines do not touch it */
    void *core;
};

struct engine_target {
    int fd;              /* -1 when the core opens files lazily: take op->fd */
    uint64_t size_bytes;
    bool block_device;
    bool direct;         /* opened O_DIRECT */
    const char *path;    /* for messages */
};

struct engine_env {
    const struct clock *clock;
    const struct engine_target *targets;
    uint32_t target_count;
    bool targets_fixed;       /* every fd is open now and stays: may be registered */
    uint32_t depth;           /* most ops in flight, 1 .. 65536 */
    uint32_t batch;           /* most ops in one submit, 1 .. depth */
    void *buffers;            /* the core's buffer area: slot i at i * buffer_stride, or NULL */
    uint64_t buffer_bytes;    /* whole area */
    uint64_t buffer_stride;
    uint64_t max_length;      /* longest read or write of the replay */
    bool writes;              /* some op may write */
    bool all_direct;          /* every target is O_DIRECT (iopoll needs it) */
    uint64_t seed;            /* for engines that draw numbers */
    struct diag *diag;        /* errors; and diag_note for each downgrade */
    /* Written by open, for the report: what was really granted, "single_issuer,defer_taskrun".
     * And whether it is less than was asked for. */
    char *granted;
    size_t granted_size;
    bool *ret_downgraded;
};

enum engine_flags {
    ENGINE_BLOCKING = 1u << 0, /* submit executes; it is handed one op at a time */
    ENGINE_STAMPS = 1u << 1,   /* sets issued_ns and completed_ns itself */
    ENGINE_NO_TARGET = 1u << 2, /* does no I/O: op->fd may be -1 (null, model) */
    ENGINE_SIMULATES = 1u << 3, /* may run on a simulated clock */
    ENGINE_CORE_THREADS = 1u << 4, /* the core runs one thread and one state per depth slot (sync) */
    ENGINE_BUFFERED_ONLY = 1u << 5, /* cannot do O_DIRECT (mmap) */
};

struct engine_capacity {
    uint32_t max_depth;     /* most that each of the states can hold at once, 0 = no limit */
    uint64_t memory_bytes;  /* rough memory for the depth asked about, of all states */
    char reason[160];       /* when max_depth is below the depth asked about: why, and the knob */
};

#define ENGINE_OP(kind) (1ull << (kind))
#define ENGINE_OPS_RW   (ENGINE_OP(TRACE_READ) | ENGINE_OP(TRACE_WRITE))
#define ENGINE_OPS_SYNC (ENGINE_OP(TRACE_FSYNC) | ENGINE_OP(TRACE_FDATASYNC))

struct engine {
    const char *name;        /* MUST be the file's name */
    const char *summary;     /* MUST: one line for --list-engines */
    const char *help;        /* MAY: paragraphs for --help-engine */
    const char *unavailable; /* why it cannot run in this build, or NULL */
    /* MAY: why it cannot run on this kernel or for this user (one line in reason), else 0. */
    int (*probe)(char *reason, size_t reason_size);
    const struct opt *opts;  /* MAY: its options; NULL = none */
    size_t conf_size;        /* bytes of the struct those options fill */
    uint64_t ops;            /* MUST: ENGINE_OP bits it issues itself; the core does the rest */
    unsigned int flags;      /* enum engine_flags */

    /* MUST. 0 and *ret_state, else -errno with env->diag set. conf was filled from opts. */
    int (*open)(const void *conf, const struct engine_env *env, void **ret_state);
    /* MUST. How many of ops[0 .. count-1] were taken (>= 0), or -EAGAIN (reap first), or another
     * -errno: the engine is broken, none was taken and the run ends. */
    int (*submit)(void *state, struct engine_op **ops, unsigned int count);
    /* MUST. Waits until min ops are complete or timeout_ns has passed (0 = do not wait,
     * UINT64_MAX = for ever), stores up to max in done, returns how many. min 0 polls. A signal,
     * or work the kernel has for the thread, may end the wait early with fewer, or none. -errno only when the engine is broken. */
    int (*reap)(void *state, struct engine_op **done, unsigned int min, unsigned int max,
                uint64_t timeout_ns);
    /* MUST, NULL state allowed. Nothing is in flight, or the run is being given up: then it
     * cancels or waits, so that no buffer is written to afterwards. */
    void (*close)(void *state);
    /* MAY: submit, then reap, in one kernel call. *ret_taken as submit's return (0 .. count, or
     * -EAGAIN); returns as reap. */
    int (*submit_reap)(void *state, struct engine_op **ops, unsigned int count, int *ret_taken,
                       struct engine_op **done, unsigned int min, unsigned int max,
                       uint64_t timeout_ns);
    /* MAY: name and value of counters of its own for the report (syslet: inline, would-block ...);
     * index from 0 until it returns NULL. Called after the last reap, before close. */
    const char *(*counter)(void *state, unsigned int index, uint64_t *ret_value);
    /* MAY: what depth in each of states (workers, from 1) would need or meet together
     * (aio-max-nr, memlock, threads). */
    void (*capacity)(const void *conf, uint32_t depth, uint32_t states,
                     struct engine_capacity *ret_capacity);
};

/* ---- registry --------------------------------------------------------------------------- */

/* All engines, sorted by name; NULL after the last. */
const struct engine *engine_at(unsigned int index);
const struct engine *engine_find(const char *name, size_t length); /* NULL = no such engine */

/* ---- the only callers of the callbacks -------------------------------------------------- */

struct engine_handle;

/* An engine chosen on the command line: "io_uring:sqpoll=1,register=0". */
struct engine_choice {
    const struct engine *engine;
    void *conf;      /* conf_size bytes, or NULL */
    char *storage;   /* strings the conf points into */
    char *text;      /* the choice as given */
};
/* -EINVAL with diag: unknown engine (the list is in the text), bad option. */
int engine_choice_parse(struct engine_choice *ret_choice, const char *text, struct diag *diag);
void engine_choice_release(struct engine_choice *choice);
/* 0, or -ENOSYS with the reason in diag (unavailable or probe). */
int engine_choice_probe(const struct engine_choice *choice, struct diag *diag);
/* What depth in each of states, from 1, would need or meet; all zero when the engine knows no
 * limit. */
void engine_choice_capacity(const struct engine_choice *choice, uint32_t depth, uint32_t states,
                            struct engine_capacity *ret_capacity);

/*
 * The wrappers' promises, on top of the callbacks':
 * - engine_open copies env; what env points to (targets, buffers, clock, diag) must outlive the
 *   handle. -EINVAL: depth, batch, clock or targets the engine cannot take. -ENOSYS: unavailable.
 * - engine_submit: a count of 0 does nothing. -EINVAL: a caller's mistake (op in flight, kind
 *   not in engine->ops, more than depth or batch). A short count is not an error.
 * - engine_reap: min is cut to what is in flight, so it never waits for nothing.
 * - engine_submit_reap works for every engine: those without the callback submit, then reap.
 *   A broken engine's -errno comes back as the return value and in *ret_taken.
 * - -EPROTO with diag: the engine broke this contract (an engine author's bug).
 */
int engine_open(struct engine_handle **ret_handle, const struct engine_choice *choice,
                const struct engine_env *env) TRACE_MUST_CHECK;
int engine_submit(struct engine_handle *handle, struct engine_op **ops, unsigned int count)
    TRACE_MUST_CHECK;
int engine_reap(struct engine_handle *handle, struct engine_op **done, unsigned int min,
                unsigned int max, uint64_t timeout_ns) TRACE_MUST_CHECK;
int engine_submit_reap(struct engine_handle *handle, struct engine_op **ops, unsigned int count,
                       int *ret_taken, struct engine_op **done, unsigned int min,
                       unsigned int max, uint64_t timeout_ns) TRACE_MUST_CHECK;
const char *engine_counter(struct engine_handle *handle, unsigned int index, uint64_t *ret_value);
unsigned int engine_in_flight(const struct engine_handle *handle);
void engine_close(struct engine_handle *handle); /* NULL is fine */

/*
 * Fault points, for tests: IOTAPE_FAULT="submit:7:EIO" makes the 7th op handed to submit complete
 * with -EIO without reaching the engine; "open:1:ENOMEM" fails the first open; "reap:3:EINTR"
 * makes the 3rd reap return early with nothing, and any other error there breaks the engine;
 * "short:5" halves the result of the 5th read or write reaped; "stall:9:20ms" makes the 9th submit return
 * that much late, as a worker held up after it. Several joined by ';'. Counts are of the whole
 * process. Read by engine_open (bad text: -EINVAL); costs one branch when unset. See fault.h.
 */

#endif
