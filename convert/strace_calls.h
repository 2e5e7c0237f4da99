/* SPDX-License-Identifier: MIT */
/* One whole system call of a strace, and what it means. */
#ifndef CONVERT_STRACE_CALLS_H
#define CONVERT_STRACE_CALLS_H

#include "convert/strace_paths.h"
#include "convert/strace_world.h"

#define STRACE_ARGS_MAX 8

/* Counts for the report. */
struct strace_counts {
    uint64_t other_calls;      /* calls that are no I/O */
    uint64_t not_files;        /* transfers of pipes, sockets, terminals */
    uint64_t unknown_files;    /* transfers of descriptors whose opening was not seen */
    uint64_t failed_names;     /* opens, unlinks ... that failed */
    uint64_t unknown_position; /* ops kept without an offset */
    uint64_t cut_paths;
    uint64_t uring;        /* io_uring requests, which a strace does not show */
    uint64_t uring_polled; /* io_uring_setup with SQPOLL */
    uint64_t mappings;
    uint64_t cut_iocbs;   /* io_submit entries hidden behind "..." */
    uint64_t cut_vectors; /* asynchronous iovecs that end in "...", no result says how long */
    uint64_t no_result;   /* calls that never returned */
    uint64_t aio_unmatched;
};

struct strace_aio;

struct strace_trace {
    struct import *import;
    struct strace_world *world;
    struct strace_aio *aio;
    struct strace_counts counts;
    uint64_t batches;
    struct strace_paths *paths;
    uint8_t *touched; /* by file: what is settled of it */
    uint32_t touched_count;
    bool all_fds;
    bool timed;
};

struct strace_call {
    struct strace_process *process;
    struct strace_slice name;
    struct strace_slice args[STRACE_ARGS_MAX];
    size_t arg_count;
    struct strace_slice result_text;
    bool has_result; /* false: "?" */
    int64_t result;  /* or -errno */
    int64_t issue_ns;
    uint64_t latency_ns; /* TRACE_UNKNOWN_U64 */
    uint8_t completion;  /* enum trace_completion */
    /* What the first argument was open on when the call was entered; NULL: look now. Borrowed.
     */
    struct strace_open *open_at_entry;
    bool done_at_entry;
};

/* The bytes of an iovec as it is printed; where strace shows its beginning alone, of that. */
uint64_t strace_iovec_bytes(struct strace_slice list);
/* Carries a call out: ops to the tape, changes to the world. 0 or -errno. */
int strace_call_take(struct strace_trace *trace, struct strace_call *call) TRACE_MUST_CHECK;

/* ---- shared by the files of calls ---- */

/* The open file of a descriptor argument. When the trace did not show its opening, or shows
 * another file at the number than was there, one is made; NULL: no descriptor, or no memory.
 * Borrowed. */
struct strace_open *strace_call_open(struct strace_trace *trace, struct strace_call *call,
                                     size_t arg);
/* A regular file, block device or folder, as far as is known. */
bool strace_open_is_file(const struct strace_open *open);
/* True when ops on it belong in the tape; else counted. */
bool strace_call_wanted(struct strace_trace *trace, const struct strace_open *open);
/* An op of this call: time, latency, result, stream, api; file from open unless NULL. 0 or
 * -errno. */
int strace_call_op(struct strace_trace *trace, struct strace_call *call, unsigned int kind,
                   struct strace_open *open, struct trace_op *ret_op) TRACE_MUST_CHECK;
int strace_call_file(struct strace_trace *trace, struct strace_call *call,
                     struct strace_open *open, uint32_t *ret_file) TRACE_MUST_CHECK;
/* The number of a path in the tape; *ret_first: nothing named it before. 0 or -errno. */
int strace_call_name(struct strace_trace *trace, const char *path, size_t length,
                     uint32_t *ret_file, bool *ret_first) TRACE_MUST_CHECK;
/* The open that made the file: had nothing named it before, it was not there when the tape
 * began. */
int strace_call_created(struct strace_trace *trace, struct strace_open *open) TRACE_MUST_CHECK;
/* What a stat showed of an open file goes to the file table, unless the file was written to
 * before. */
int strace_call_facts(struct strace_trace *trace, struct strace_open *open) TRACE_MUST_CHECK;
/* Hands an op on; one that writes settles its file's size. */
int strace_call_emit(struct strace_trace *trace, const struct trace_op *op) TRACE_MUST_CHECK;
/* Flags that an open file gives its ops: direct, sync, dsync, append. */
uint32_t strace_open_op_flags(const struct strace_open *open, bool write);
/* What a descriptor argument's <...> says of the file. */
int strace_open_describe(struct strace_open *open, const struct strace_fd *fd) TRACE_MUST_CHECK;

/* Calls that make, close and move descriptors, and change names. 1 when it was one, 0, -errno.
 */
int strace_names_take(struct strace_trace *trace, struct strace_call *call) TRACE_MUST_CHECK;
/* io_submit, io_getevents, io_uring_*. As strace_names_take. */
int strace_aio_take(struct strace_trace *trace, struct strace_call *call) TRACE_MUST_CHECK;
int strace_aio_new(struct strace_aio **ret_aio) TRACE_MUST_CHECK;
/* Delivers requests whose result was never collected. */
int strace_aio_finish(struct strace_trace *trace) TRACE_MUST_CHECK;
void strace_aio_free(struct strace_aio *aio);

#endif
