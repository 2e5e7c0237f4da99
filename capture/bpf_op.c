/* SPDX-License-Identifier: MIT */
#include "capture/bpf_op.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <linux/falloc.h>

enum {
    RESTART_FIRST = 512, /* ERESTARTSYS ... ERESTART_RESTARTBLOCK: the kernel's own */
    RESTART_LAST = 516,
    TRANSFER_MAX = 0x7ffff000, /* the kernel cuts every call to this */
    URING_FSYNC_DATA = 1,
    ADVICE_WILLNEED = 3,
    RWF_HIPRI_BIT = 0x1,
    RWF_DSYNC_BIT = 0x2,
    RWF_SYNC_BIT = 0x4,
    RWF_NOWAIT_BIT = 0x8,
    RWF_APPEND_BIT = 0x10,
    RWF_ATOMIC_BIT = 0x40,
    /* The tape's numbers for what differs between architectures. */
    TAPE_O_DIRECT = 040000,
    TAPE_O_DIRECTORY = 0200000,
    TAPE_O_NOFOLLOW = 0400000,
    TAPE_O_LARGEFILE = 0100000,
};

uint32_t bpf_op_open_flags(uint64_t flags)
{
    uint64_t moved = O_DIRECT | O_DIRECTORY | O_NOFOLLOW;
    uint32_t out = (uint32_t)(flags & ~moved & ~(uint64_t)TAPE_O_LARGEFILE);

    if (flags & O_DIRECT)
        out |= TAPE_O_DIRECT;
    if (flags & O_DIRECTORY)
        out |= TAPE_O_DIRECTORY;
    if (flags & O_NOFOLLOW)
        out |= TAPE_O_NOFOLLOW;
    return out;
}

int64_t bpf_op_result(unsigned int kind, int64_t result)
{
    if (result <= -RESTART_FIRST && result >= -RESTART_LAST)
        return -EINTR;
    if (result > 0 && (kind == TRACE_OPEN || kind == TRACE_CREATE || kind == TRACE_MMAP))
        return 0;
    /* An address may look negative; only the last page is errors. */
    if (kind == TRACE_MMAP && result < -4095)
        return 0;
    return result;
}

static uint32_t flags_of_bits(uint32_t bits)
{
    static const struct {
        uint32_t bit, flag;
    } map[] = {
        {BPF_OP_POSITION, TRACE_F_POSITION},   {BPF_OP_FIXED_FILE, TRACE_F_FIXED_FILE},
        {BPF_OP_FIXED_BUF, TRACE_F_FIXED_BUF}, {BPF_OP_LINK, TRACE_F_LINK},
        {BPF_OP_DRAIN, TRACE_F_DRAIN},         {BPF_OP_SQPOLL, TRACE_F_SQPOLL},
        {BPF_OP_POLLED, TRACE_F_POLLED},
    };
    uint32_t flags = 0;

    for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
        if (bits & map[i].bit)
            flags |= map[i].flag;
    return flags;
}

static uint32_t flags_of_file(uint32_t file_flags, uint8_t kind)
{
    uint32_t flags = file_flags & O_DIRECT ? TRACE_F_DIRECT : 0;

    if (kind != TRACE_WRITE)
        return flags;
    if ((file_flags & O_SYNC) == O_SYNC)
        flags |= TRACE_F_SYNC;
    else if (file_flags & O_DSYNC)
        flags |= TRACE_F_DSYNC;
    if (file_flags & O_APPEND)
        flags |= TRACE_F_APPEND;
    return flags;
}

static uint32_t flags_of_call(uint32_t rwf)
{
    uint32_t flags = 0;

    if (rwf & RWF_HIPRI_BIT)
        flags |= TRACE_F_POLLED;
    if (rwf & RWF_DSYNC_BIT)
        flags |= TRACE_F_DSYNC;
    if (rwf & RWF_SYNC_BIT)
        flags |= TRACE_F_SYNC;
    if (rwf & RWF_NOWAIT_BIT)
        flags |= TRACE_F_NOWAIT;
    if (rwf & RWF_APPEND_BIT)
        flags |= TRACE_F_APPEND;
    if (rwf & RWF_ATOMIC_BIT)
        flags |= TRACE_F_ATOMIC;
    return flags;
}

/* The kind where an argument decides it, and the argument the tape keeps. */
static bool kind_fill(const struct bpf_event_op *event, struct trace_op *op)
{
    bool uring = event->head.api == TRACE_API_IO_URING;

    switch (op->kind) {
    case TRACE_FALLOCATE:
        if (event->extra & FALLOC_FL_PUNCH_HOLE)
            op->kind = TRACE_DISCARD;
        else if (event->extra & FALLOC_FL_ZERO_RANGE)
            op->kind = TRACE_WRITE_ZEROES;
        else
            op->arg = (uint32_t)event->extra;
        break;
    case TRACE_FSYNC:
        if (uring && event->extra & URING_FSYNC_DATA)
            op->kind = TRACE_FDATASYNC;
        break;
    case TRACE_READAHEAD: return !uring || event->extra == ADVICE_WILLNEED;
    case TRACE_OPEN:
        op->arg = event->extra == ~UINT64_C(0) ? O_CREAT | O_WRONLY | O_TRUNC
                                               : bpf_op_open_flags(event->extra);
        if (event->head.flags & BPF_OP_CREATED)
            op->kind = TRACE_CREATE;
        break;
    case TRACE_UNLINK:
        if (event->extra & AT_REMOVEDIR)
            op->kind = TRACE_RMDIR;
        break;
    case TRACE_MKDIR:
    case TRACE_MMAP:
    case TRACE_SYNC_RANGE: op->arg = (uint32_t)event->extra; break;
    default: break;
    }
    return true;
}

static bool kind_has_offset(unsigned int kind)
{
    return trace_op_has_range(kind) || kind == TRACE_SYNC_RANGE || kind == TRACE_READAHEAD ||
           kind == TRACE_FALLOCATE || kind == TRACE_MMAP || kind == TRACE_COPY ||
           kind == TRACE_FILL || kind == TRACE_WRITEBACK;
}

bool bpf_op_fill(const struct bpf_event_op *event, struct trace_op *ret_op)
{
    struct trace_op op = TRACE_OP_INIT;

    op.issue_ns = (int64_t)event->issue_ns;
    op.kind = event->head.kind;
    op.api = event->head.api;
    op.length = event->length;
    if (!kind_fill(event, &op))
        return false;
    if (kind_has_offset(op.kind))
        op.offset = event->offset;
    if ((op.kind == TRACE_READ || op.kind == TRACE_WRITE || op.kind == TRACE_COPY) &&
        op.length > TRANSFER_MAX)
        op.length = TRANSFER_MAX;
    op.flags = flags_of_bits(event->head.flags);
    if (op.kind == TRACE_READ || op.kind == TRACE_WRITE)
        op.flags |=
            flags_of_file(event->file_flags, op.kind) | flags_of_call(event->call_flags);
    if (event->head.class == BPF_CLASS_PAGES)
        op.flags |= TRACE_F_DERIVED; /* no call, so no result and no latency */
    else if (event->head.type == BPF_EVENT_OP || event->head.type == BPF_EVENT_COPY) {
        op.latency_ns = event->done_ns - event->issue_ns;
        op.completion = TRACE_COMPLETION_EXACT;
        op.result = bpf_op_result(op.kind, event->result);
    }
    *ret_op = op;
    return true;
}
