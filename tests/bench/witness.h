/* SPDX-License-Identifier: MIT */
/* What the witness's BPF programs and its user side share: one event a request issued. */
#ifndef TESTS_BENCH_WITNESS_H
#define TESTS_BENCH_WITNESS_H

#include <linux/types.h>

struct witness_event {
    __u64 issue_ns; /* CLOCK_MONOTONIC: the call that carried it began */
    __u64 taken_ns; /* the kernel took it (io_uring); else issue_ns */
    __u64 offset;   /* ~0: at the file position */
    __u64 length;   /* bytes; of a vector: how many parts, see vector */
    __u32 tid;
    __s32 fd; /* or the slot of a registered file */
    __u8 write;
    __u8 vector;
    __u8 unused[6];
};

/* How a system call carries a request. */
enum witness_call {
    WITNESS_NONE = 0,
    WITNESS_POSITION = 1, /* (fd, buffer, bytes) */
    WITNESS_RANGE = 2,    /* (fd, buffer, bytes, offset) */
    WITNESS_VECTOR = 3,   /* (fd, iov, count) */
    WITNESS_VECTOR_AT = 4,
    WITNESS_AIO = 5,     /* io_submit */
    WITNESS_URING = 6,   /* io_uring_enter */
    WITNESS_WRITE = 128, /* or-ed to the first four */
};

enum {
    WITNESS_CALLS = 512
};

#endif
