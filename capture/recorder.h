/* SPDX-License-Identifier: MIT */
/*
 * The contract of a recorder: something that sees an application's I/O and delivers it.
 *
 * capture/with_NAME.c defines `const struct recorder recorder_NAME`; make writes the registry.
 * The core (main.c, session.c) owns the tape, the file and stream tables, the target process
 * and the signals; a recorder owns how events are seen. The target never blocks on the
 * recorder: a full ring drops and counts, and the count reaches session_lost.
 *
 *     probe -> open -> [core starts or resumes the target] -> poll, poll ... -> stop -> poll
 * until 0
 *     -> close
 *
 * Every callback runs on the core's one thread.
 */
#ifndef CAPTURE_RECORDER_H
#define CAPTURE_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "traces/diag.h"
#include "traces/opts.h"
#include "traces/trace.h"

struct session; /* one capture */

/* What is to be recorded. Exactly one of the first five is set. */
struct capture_scope {
    char **command;    /* NULL-ended argv of `-- CMD`; the core forks it */
    const pid_t *pids; /* --pid, with all their threads and later children */
    size_t pid_count;
    const char *cgroup;         /* --cgroup: a cgroup v2 directory */
    bool system;                /* --system: everything but ourselves */
    const char *const *devices; /* --device: block devices */
    size_t device_count;
    const char *comm;    /* --comm: only processes of this name, with --system; or NULL */
    bool all_fds;        /* keep pipes, sockets, ttys */
    uint64_t ring_bytes; /* --ring-size: event memory per CPU or thread */
    bool content;        /* --content: sample write buffers' compressibility */
    unsigned int sample; /* --sample: one stream in so many from the start; 0 or 1: all */
    bool may_sample;     /* --overhead-action sample: sample() may be called */
};

/* ---- what a recorder delivers to (session.c) --------------------------------------------- */

/* Tables: same key, same number. A file is known by (device, inode, path). */
int session_file(struct session *session, const struct trace_file *facts,
                 uint32_t *ret_file) TRACE_MUST_CHECK;
/* A stream is a (pid, tid); comm may change at exec: then a new stream begins. */
int session_stream(struct session *session, uint32_t pid, uint32_t tid, uint32_t ppid,
                   const char *comm, uint32_t *ret_stream) TRACE_MUST_CHECK;
/* issue_ns is CLOCK_MONOTONIC; the session subtracts the start. Order: roughly by time. Ops
 * with one issue_ns (a batch) are put in the order of their ref, which does not reach the tape;
 * those without one come after them, in the order they were given. */
int session_op(struct session *session, const struct trace_op *op) TRACE_MUST_CHECK;
/* Events lost, by kind ("ring-full", "user-read", "bpf-miss") and CPU (-1 = none). */
void session_lost(struct session *session, const char *kind, int cpu, uint64_t count);
/* I/O that is known to have happened but cannot be given as ops ("stdio", "raw io_uring"). */
void session_unseen(struct session *session, const char *kind, uint64_t count);
/* Ops of streams that are not in the sample, where they are of a kind that would be recorded. */
void session_passed(struct session *session, uint64_t count);
/* --content: some bytes that were written. Only how far they compress is kept. */
void session_content(struct session *session, const void *bytes, size_t count);
/* A line for the terminal and the tape; the same one again is dropped. */
void session_note(struct session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const struct capture_scope *session_scope(const struct session *session);
struct diag *session_diag(struct session *session);

/* What a recorder knows of completions, per api: rows of `capture --list`. */
enum recorder_sees {
    SEES_NOT = 0,
    SEES_EXACT = 1,
    SEES_UPPER = 2,
    SEES_DERIVED = 3
};

struct recorder {
    const char *name;
    const char *summary;
    const char *help;
    const char *unavailable; /* why it is not in this build, or NULL */
    /* By enum trace_api: how the issue and the completion of such ops are seen. */
    uint8_t issue_seen[TRACE_API_COUNT];
    uint8_t completion_seen[TRACE_API_COUNT];
    /* What an op recorded adds to its caller's time, as tests/bench/capture_cost measures it,
     * for --max-overhead where there is no cost(). */
    unsigned int op_cost_ns;
    /* Can it run here and now? 0, or -errno with why in reason and the way to enable it in fix.
     */
    int (*probe)(char *reason, size_t reason_size, char *fix, size_t fix_size);
    /* Which scopes it can do; -EINVAL with diag set for one it cannot. */
    int (*accepts)(const struct capture_scope *scope, struct diag *diag);
    int (*open)(struct session *session, void **ret_state);
    /* MAY: runs in the forked child before exec (environment, self-stop); 0 or -errno. Only
     * async-signal-safe work. */
    int (*child)(void *state);
    /* MAY: the child's pid is known (before it runs on). */
    int (*started)(void *state, pid_t pid);
    /* Delivers what there is, waiting at most timeout_ms for something; > 0 events, 0 none. */
    int (*poll)(void *state, int timeout_ms);
    /* MAY: CPU time, ns, that the recorder has taken from other programs so far; asked for once
     * before recording begins if it will be asked for again. -EOPNOTSUPP: it is not known. */
    int (*cost)(void *state, uint64_t *ret_ns);
    /* MAY: records from here on only one stream in so many, as sample_keeps (sample.h) has it, and
     * counts what it passes over (session_passed). A recorder without it refuses a scope that
     * wants it. */
    int (*sample)(void *state, unsigned int one_in);
    int (*stop)(void *state);   /* no new events; what is buffered can still be polled */
    void (*close)(void *state); /* NULL allowed; leaves nothing behind */
};

const struct recorder *recorder_at(unsigned int index); /* NULL past the end */
const struct recorder *recorder_find(const char *name); /* NULL when there is none */
/* As the recorder's own probe, and -EOPNOTSUPP for one that is not in this build. Both texts
 * are ended, and empty when there is nothing to say. */
int recorder_probe(const struct recorder *recorder, char *reason, size_t reason_size, char *fix,
                   size_t fix_size);
/* The first of bpf, preload (block for devices) that accepts the scope and probes fine; notes
 * why an earlier one was passed over. NULL with diag set when none can. */
const struct recorder *recorder_choose(const struct capture_scope *scope, struct diag *diag);

#endif
