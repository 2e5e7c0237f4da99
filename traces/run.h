/* SPDX-License-Identifier: MIT */
/*
 * Sorted runs of operations in an unlinked temporary file, column coded as on a tape. For the
 * sorter; internal to traces/.
 */
#ifndef TRACES_RUN_H
#define TRACES_RUN_H

#include "traces/buf.h"
#include "traces/columns.h"
#include "traces/trace.h"

#define RUN_BLOCK_OPS 2048

struct run_file {
    int fd; /* -1: not made yet */
    uint64_t bytes;
    struct columns_writer *columns;
    struct buf block;
    struct trace_op *waiting; /* RUN_BLOCK_OPS */
    uint32_t waiting_count;
};

/* A stretch of the file. */
struct run {
    uint64_t start, end;
};

/* Makes the file in dir (NULL: TMPDIR, else /tmp). */
int run_file_open(struct run_file *file, const char *dir, struct diag *diag) TRACE_MUST_CHECK;
void run_file_release(struct run_file *file);
/* Append to the run being written, which run_file_end ends. */
int run_file_write(struct run_file *file, const struct trace_op *ops,
                   size_t count) TRACE_MUST_CHECK;
int run_file_end(struct run_file *file, struct run *run) TRACE_MUST_CHECK;
/* Gives the space of a run that was read back to the file system, where it can. */
void run_file_drop(struct run_file *file, const struct run *run);

/* Reading a run: at[0 .. left) are its next operations; left 0 is its end. */
struct run_reader {
    const struct trace_op *at;
    size_t left;
    int fd;
    uint64_t offset, end;
    struct columns_reader *columns;
    struct buf block;
};

int run_reader_open(struct run_reader *reader, const struct run_file *file,
                    const struct run *run) TRACE_MUST_CHECK;
/* Takes count of at away; reads on when none are left. */
int run_reader_take(struct run_reader *reader, size_t count) TRACE_MUST_CHECK;
void run_reader_release(struct run_reader *reader);

#endif
