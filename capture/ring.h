/* SPDX-License-Identifier: MIT */
/*
 * The memory that a traced program's preload shim shares with the collector.
 *
 * A process image (from exec to exec, and each fork) has one process area, and each of its
 * threads that does I/O has one thread ring. Each is a memfd that the shim creates, maps, and
 * hands over in one message (struct ring_hello with the memfd as SCM_RIGHTS) on a connection of
 * its own to the collector's abstract unix socket; then it closes both. So nothing is left in a
 * file system, and no descriptor stays open in the traced program.
 *
 * Nothing here is trusted by the collector: sizes are its own once mapped, positions and
 * lengths are checked. The shim never waits: what does not fit is dropped and counted here.
 *
 * Thread ring: a header page and slots of struct ring_record. The thread (and signal handlers
 * on it) reserves position p = tail++, fills slot p mod slots, and sets its state to
 * RING_STATE_OPEN(p) before the call that it records and RING_STATE_DONE(p) after. The
 * collector takes slots from head in order.
 *
 * Process area: a header page and a circular byte buffer of struct ring_entry. Any thread
 * reserves bytes by compare-and-swap of tail, fills them, and sets bytes last; the collector
 * zeroes what it has taken before it moves head.
 */
#ifndef CAPTURE_RING_H
#define CAPTURE_RING_H

#include <stdint.h>

#define RING_MAGIC        0x696f7470u /* "iotp" */
#define RING_VERSION      2u
#define RING_HEADER_BYTES 4096u
#define RING_PATH_MAX     4096u
#define RING_SLACK        64u /* slots kept free for signal handlers that nest */

/* In the environment of a traced program: "NAME:RING_BYTES:FLAGS"; NAME is the abstract
 * socket's, without its leading NUL. */
#define RING_ENV          "IOTAPE_PRELOAD"
#define RING_ENV_ALL_FDS  1u
#define RING_ENV_CONTENT  2u /* samples of what is written are wanted */
#define RING_SAMPLE_BYTES 4096u

enum ring_area {
    RING_PROCESS = 1,
    RING_THREAD = 2
};

struct ring_hello {
    uint32_t magic, version;
    uint32_t area;           /* enum ring_area */
    uint32_t pid, tid, ppid; /* as the process sees them */
    uint64_t image; /* the same for all areas of a process image, different for all others */
    uint64_t bytes; /* of the memfd */
    char comm[16];
};

struct ring_header {
    uint32_t magic;
    uint32_t slots;  /* thread rings: a power of two */
    uint32_t closed; /* the thread has ended */
    uint32_t pad0;
    uint64_t pad1[6];
    /* The shim's line. */
    uint64_t tail;
    uint64_t dropped;       /* ops that found the ring full */
    uint64_t dropped_files; /* ops whose file could not be told: process area full */
    uint64_t dropped_early; /* ops of threads that could not get a ring before this one */
    uint64_t dropped_done;  /* completions that found the ring full; their ops are in it */
    uint64_t passed;        /* ops not recorded because of passing */
    uint64_t pad2[2];
    /* The collector's line. */
    uint64_t head;
    uint32_t passing; /* the thread is not in the sample: its ops are counted only */
    uint32_t pad3[13];
};

enum ring_record_type {
    RING_OP = 0,    /* a whole op */
    RING_ISSUE = 1, /* an asynchronous op handed over; id in end_ns */
    RING_DONE = 2,  /* its completion; id in begin_ns, result, end_ns */
};

struct ring_record {
    uint64_t begin_ns; /* CLOCK_MONOTONIC */
    uint64_t end_ns;
    uint64_t offset;
    uint64_t length;
    int64_t result;
    uint32_t file;  /* number of a file entry of the process area, from 1; 0 = none */
    uint32_t other; /* file2 of a rename, link or copy; the batch (from 1) of an async op */
    uint32_t flags; /* enum trace_op_flags */
    uint32_t arg;
    uint32_t state;
    uint8_t kind; /* enum trace_op_kind */
    uint8_t api;
    uint8_t completion;
    uint8_t type; /* enum ring_record_type */
};

#define RING_STATE_OPEN(position) ((uint32_t)(position)*2 + 1)
#define RING_STATE_DONE(position) ((uint32_t)(position)*2 + 2)

enum ring_entry_type {
    RING_PAD = 1,     /* skip */
    RING_FILE = 2,    /* a file's facts; text is its path */
    RING_UNSEEN = 3,  /* size_bytes events of the kind in text that cannot be given as ops */
    RING_EXEC = 4,    /* text is about to be executed */
    RING_CONTENT = 5, /* text is the beginning of a write */
};

/* Multiples of 8 bytes long; the text follows, without a NUL. */
struct ring_entry {
    uint32_t bytes; /* of the whole entry; 0 = not written yet */
    uint32_t type;
    uint32_t number; /* RING_FILE: from 1, in no order */
    uint32_t text_bytes;
    uint64_t size_bytes, inode, device;
    uint32_t mode, flags;
    uint32_t kind; /* enum trace_file_kind */
    uint32_t pad;
};

_Static_assert(sizeof(struct ring_record) == 64, "one cache line");
_Static_assert(sizeof(struct ring_header) == 192, "three cache lines");
_Static_assert(sizeof(struct ring_entry) == 56, "no holes");

#endif
