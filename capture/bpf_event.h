/* SPDX-License-Identifier: MIT */
/*
 * What the BPF programs and the recorders say to each other: the tables a program is loaded
 * with and the events it puts into the ring buffer. Both sides run on one machine, so plain
 * structs in host order; each starts with struct bpf_event and is a multiple of 8 bytes.
 *
 * Included by BPF code too: only fixed-size types, no libc.
 */
#ifndef CAPTURE_BPF_EVENT_H
#define CAPTURE_BPF_EVENT_H

#include <linux/types.h>

enum {
    BPF_CALLS_MAX = 512, /* system call numbers looked at */
    BPF_URING_MAX = 64,  /* io_uring opcodes looked at */
    BPF_PATH_MAX = 4096, /* bytes of one path text */
    BPF_IOV_MAX = 1024,  /* the kernel's own limit */
    BPF_ARG_NONE = 7,    /* index of an argument that is always 0 */
};

/* How a system call or io_uring opcode is looked at. */
enum bpf_class {
    BPF_CLASS_NONE = 0, /* not I/O */
    BPF_CLASS_RANGE,    /* fd with offset and length in arguments */
    BPF_CLASS_POSITION, /* fd at its file position, length in an argument */
    BPF_CLASS_VECTOR,   /* fd, iovec, count, and perhaps an offset */
    BPF_CLASS_FD,       /* fd alone: fsync */
    BPF_CLASS_ALL,      /* no file: sync */
    BPF_CLASS_CLOSE,
    BPF_CLASS_OPEN,
    BPF_CLASS_PATH,  /* one path */
    BPF_CLASS_PATHS, /* two paths */
    BPF_CLASS_COPY,  /* two fds with pointers to offsets */
    BPF_CLASS_AIO_SUBMIT,
    BPF_CLASS_AIO_REAP,
    BPF_CLASS_AIO_DESTROY,
    BPF_CLASS_URING_ENTER,
    BPF_CLASS_MAP,
    BPF_CLASS_UNMAP, /* an address range: munmap, msync */
    BPF_CLASS_ADVISE,
    BPF_CLASS_IOCTL,
    BPF_CLASS_PAGES, /* no call: a page of a mapped file */
};

/* One row of the call table: which argument is what (BPF_ARG_NONE where there is none). */
struct bpf_call {
    __u8 class;
    __u8 kind;   /* enum trace_op_kind */
    __u8 fd;     /* OPEN, PATH: the dirfd (BPF_ARG_NONE: relative to the working folder) */
    __u8 offset; /* or pointer to it (COPY) */
    __u8 length;
    __u8 extra; /* kind's argument: mode, advice, flags */
    __u8 path;  /* PATH, PATHS, OPEN: the text; VECTOR: the iovec */
    __u8 fd2;
    __u8 path2;
    __u8 flags; /* BPF_CALL_* */
    __u8 rwf;   /* RWF_ flags of preadv2 and pwritev2 */
    __u8 unused[5];
};

enum {
    BPF_CALL_OPEN_HOW = 1,  /* extra points to struct open_how */
    BPF_CALL_CREAT = 2,     /* open without flags argument */
    BPF_CALL_BY_HANDLE = 4, /* no path text */
    BPF_CALL_FIXED_BUF = 8, /* io_uring registered buffer */
    BPF_CALL_SENDFILE = 16, /* the destination comes first and moves its position */
};

enum bpf_event_type {
    BPF_EVENT_OP = 1,    /* struct bpf_event_op, complete */
    BPF_EVENT_COPY,      /* struct bpf_event_copy, complete */
    BPF_EVENT_SUBMIT,    /* struct bpf_event_op: an asynchronous op begins */
    BPF_EVENT_COMPLETE,  /* struct bpf_event_complete: it ended */
    BPF_EVENT_SUBMITTED, /* struct bpf_event_complete: io_submit returned result ops taken */
    BPF_EVENT_GONE,      /* struct bpf_event_complete: an aio context was destroyed */
    BPF_EVENT_FILE,      /* struct bpf_event_file: the file of events that follow */
    BPF_EVENT_PATH,      /* struct bpf_event_path: text for the thread's next op */
    BPF_EVENT_THREAD,    /* struct bpf_event_task: first seen, or a new comm */
    BPF_EVENT_FORK,      /* pid's child is tid */
    BPF_EVENT_EXEC,
    BPF_EVENT_EXIT,  /* of one thread; flags & 1: the process's last */
    BPF_EVENT_BLOCK, /* struct bpf_event_block */
};

struct bpf_event {
    __u8 type;
    __u8 kind;   /* enum trace_op_kind */
    __u8 api;    /* enum trace_api */
    __u8 class;  /* enum bpf_class */
    __u32 flags; /* BPF_OP_* */
    __u32 pid, tid;
};

/* struct bpf_event's flags of an op. */
enum {
    BPF_OP_POSITION = 1u << 0, /* at the file position; offset is what it really was */
    BPF_OP_FIXED_FILE = 1u << 1,
    BPF_OP_FIXED_BUF = 1u << 2,
    BPF_OP_LINK = 1u << 3,
    BPF_OP_DRAIN = 1u << 4,
    BPF_OP_SQPOLL = 1u << 5,
    BPF_OP_POLLED = 1u << 6,
    BPF_OP_EXACT = 1u << 7,      /* completion: seen when it happened; else an upper bound */
    BPF_OP_CREATED = 1u << 8,    /* open: the file did not exist */
    BPF_OP_NO_LENGTH = 1u << 9,  /* the iovec could not be read */
    BPF_OP_FIRST = 1u << 10,     /* first of its submission call; extra2 holds how many */
    BPF_OP_CONTENDED = 1u << 11, /* others moved the position meanwhile */
};

struct bpf_file_key {
    __u64 inode;
    __u32 device;     /* kernel dev_t of the file system; all zero: no file */
    __u32 generation; /* tells a reused inode number from the old one */
};

struct bpf_event_op {
    struct bpf_event head;
    __u64 issue_ns; /* CLOCK_MONOTONIC */
    union {
        __u64 done_ns; /* OP */
        __u64 cookie;  /* SUBMIT: names the op until its completion */
    };
    __u64 offset, length;
    union {
        __s64 result;  /* OP */
        __u64 context; /* SUBMIT: aio context or ring */
    };
    struct bpf_file_key file;
    __u32 file_flags; /* O_ flags of the descriptor */
    __u32 call_flags; /* RWF_ flags */
    __u64 extra;      /* by kind; UNMAP: the address; POSITION: the kernel's open file */
    union {
        __u64 batch;  /* of the thread: ops of one submission call share it; 0 = alone */
        __u64 before; /* POSITION, not asynchronous: the position at the call's begin */
    };
};

struct bpf_event_copy {
    struct bpf_event_op op;
    struct bpf_file_key file2;
    __u64 offset2;
    __u32 file2_flags;
    __u32 unused;
};

struct bpf_event_complete {
    struct bpf_event head;
    __u64 time_ns;
    __u64 cookie;
    __u64 context;
    __s64 result;
};

/* The path as its components from the leaf to the root, each NUL-ended. */
struct bpf_event_file {
    struct bpf_event head; /* flags: BPF_FILE_* */
    struct bpf_file_key key;
    __u64 size_bytes;
    __u32 mode;   /* st_mode */
    __u32 rdev;   /* of a device file */
    __u64 blocks; /* 512-byte blocks allocated */
    __u32 path_bytes;
    __u32 unused;
    /* path_bytes of text follow, then padding */
};

enum {
    BPF_FILE_PSEUDO = 1u << 0, /* no folder: memfd and the like; one component */
    BPF_FILE_DELETED = 1u << 1,
    BPF_FILE_TRUNCATED = 1u << 2, /* the path was too deep: its head is missing */
    BPF_FILE_CREATED = 1u << 5,   /* did not exist before this open */
    BPF_FILE_BY_INODE = 1u << 4,  /* met in the page cache alone: no path */
};

/* Path arguments. A relative one is preceded by its folder, as components. */
struct bpf_event_path {
    struct bpf_event head; /* kind: enum bpf_path_which */
    __u32 path_bytes;
    __u32 unused;
};

enum bpf_path_which {
    BPF_PATH_BASE = 0,
    BPF_PATH_TEXT,
    BPF_PATH_BASE2,
    BPF_PATH_TEXT2,
    BPF_PATH_WHICH
};

struct bpf_event_task {
    struct bpf_event head;
    __u32 ppid;
    __u32 old_tid; /* EXEC by another thread than the first: what it was */
    char comm[16];
};

/* Counts of what was not delivered: per-CPU array, index = kind. */
enum bpf_lost {
    BPF_LOST_RING = 0, /* ring buffer full */
    BPF_LOST_USER,     /* an argument in user memory could not be read */
    BPF_LOST_THREADS,  /* thread table full */
    BPF_LOST_BATCH,    /* ops of a batch beyond what can be walked */
    BPF_LOST_COMPAT,   /* calls of 32-bit programs: not decoded */
    BPF_LOST_FIXED,    /* registered file could not be resolved */
    BPF_LOST_REQUESTS, /* block: request table full */
    BPF_LOST_DONE,     /* ring buffer full for the completion of an op */
    BPF_LOST_KINDS
};

/* One block request (or bio, on devices without requests), from its queueing to its completion.
 * Also the value of the map `requests`, which holds those not completed. */
struct bpf_event_block {
    struct bpf_event head;                        /* pid and tid: who queued it */
    __u64 queue_ns, insert_ns, issue_ns, done_ns; /* 0 = not seen; issue: the last one */
    __u64 sector;                                 /* 512 bytes each, of the whole device */
    __u32 bytes;
    __u32 done_bytes;
    __u32 device;  /* kernel dev_t of the disk */
    __u32 command; /* REQ_OP and REQ_ flags, in the running kernel's numbers */
    __s32 error;   /* 0, -errno, or a positive blk_status_t */
    __u32 issues;  /* times it was handed to the driver */
    __u32 bios;    /* that make it up; more than 1 when some were merged */
    __u32 with_driver; /* issued, and neither put back nor completed since */
    char comm[16];
};

enum bpf_block_mode {
    BPF_BLOCK_REQUESTS = 1,
    BPF_BLOCK_BIOS = 2
};

enum bpf_scope_kind {
    BPF_SCOPE_TASKS = 0,
    BPF_SCOPE_CGROUP = 1,
    BPF_SCOPE_SYSTEM = 2
};

/* A thread of the target, in the map `threads` by tid; user space reads it at the end for the
 * calls still under way. */
struct bpf_thread {
    __u64 enter_ns;
    __u64 file;     /* kernel address, used while the call runs */
    __u64 position; /* at enter */
    __u64 args[8];  /* [6], [7]: 0 */
    struct bpf_file_key key;
    struct bpf_file_key known; /* last file announced from here */
    __u64 batch;
    __u32 file_flags;
    __u32 call; /* number + 1 while under way, else 0 */
    __u32 pid;
    __u32 aio_ready; /* AIO_REAP: events in the ring at enter */
    __u32 alone;     /* the submission call has one op */
    __u32 nr;        /* ops handed over by this call */
    __u32 announced;
    __u32 passing; /* the call under way is not in the sample */
};

#endif
