/* SPDX-License-Identifier: MIT */
/*
 * BPF side: io_uring. A request is read when the kernel has taken it from the submission queue
 * (by whichever thread: the caller of io_uring_enter or the SQPOLL thread) and ends at its
 * completion, both exact. User space pairs the two by the request's address.
 */
#ifndef CAPTURE_BPF_PROG_URING_H
#define CAPTURE_BPF_PROG_URING_H

#include "capture/bpf_prog_aio.h"
#include "capture/bpf_prog_sample.h"

enum {
    URING_FIXED_FILE = 1u << 0, /* request flags: the same bits as IOSQE_ */
    URING_DRAIN = 1u << 1,
    URING_LINK = 1u << 2,
    URING_HARDLINK = 1u << 3,
    URING_SETUP_IOPOLL = 1u << 0,
    URING_SETUP_SQPOLL = 1u << 1,
};

/* Rings with requests of ours: completions of other rings are none of our business. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 4096);
    __type(key, __u64);
    __type(value, __u32);
} rings SEC(".maps");

static __always_inline struct file *uring_fixed_file(struct io_ring_ctx *ring,
                                                     unsigned int slot)
{
    struct io_file_table___array *old =
        (void *)ring + bpf_core_field_offset(struct io_ring_ctx, file_table);
    unsigned long pointer = 0;

    if (bpf_core_field_exists(((struct io_file_table *)0)->data)) {
        struct io_rsrc_node **nodes, *node = NULL;

        if (slot >= BPF_CORE_READ(ring, file_table.data.nr))
            return NULL;
        nodes = BPF_CORE_READ(ring, file_table.data.nodes);
        bpf_probe_read_kernel(&node, sizeof(node), &nodes[slot]);
        if (!node)
            return NULL;
        GET(pointer, struct io_rsrc_node, node, file_ptr);
    } else if (bpf_core_field_exists(old->files)) {
        struct io_fixed_file *array = BPF_CORE_READ(old, files);

        bpf_probe_read_kernel(&pointer, sizeof(pointer), &array[slot].file_ptr);
    }
    return (struct file *)(pointer & ~7ul); /* low bits are flags */
}

static __always_inline __u32 uring_flags(__u32 request_flags, __u32 setup)
{
    __u32 flags = 0;

    if (request_flags & URING_FIXED_FILE)
        flags |= BPF_OP_FIXED_FILE;
    if (request_flags & URING_DRAIN)
        flags |= BPF_OP_DRAIN;
    if (request_flags & (URING_LINK | URING_HARDLINK))
        flags |= BPF_OP_LINK;
    if (setup & URING_SETUP_SQPOLL)
        flags |= BPF_OP_SQPOLL;
    if (setup & URING_SETUP_IOPOLL)
        flags |= BPF_OP_POLLED;
    return flags;
}

/* Offset, length and flags of reads and writes. */
static __always_inline void uring_read_write(struct io_kiocb *request, struct file *file,
                                             const volatile struct bpf_call *call,
                                             struct bpf_event_op *event, __u64 vector_bytes)
{
    __s64 position;
    __u32 length, rwf;

    GET(position, struct io_rw, request, kiocb.ki_pos);
    GET(length, struct io_rw, request, len);
    GET(rwf, struct io_rw, request, flags);
    if (position == -1) {
        event->head.flags |= BPF_OP_POSITION;
        GET(position, struct file, file, f_pos);
    }
    event->offset = position;
    event->length = call->class == BPF_CLASS_VECTOR ? vector_bytes : length;
    event->call_flags = rwf;
}

/* The range of the other calls on a descriptor. */
static __always_inline void uring_range(struct io_kiocb *request, struct bpf_event_op *event,
                                        __u8 kind)
{
    if (kind == TRACE_READAHEAD) {
        GET(event->offset, struct io_fadvise, request, offset);
        if (bpf_core_field_size(((struct io_fadvise *)0)->len) == 4)
            event->length = (__u32)BPF_CORE_READ((struct io_fadvise___old *)request, len);
        else
            GET(event->length, struct io_fadvise, request, len);
        event->extra = BPF_CORE_READ((struct io_fadvise *)request, advice);
    } else if (kind == TRACE_TRUNCATE) {
        if (bpf_core_type_exists(struct io_ftrunc))
            GET(event->length, struct io_ftrunc, request, len);
    } else if (kind == TRACE_SYNC_RANGE || kind == TRACE_FALLOCATE) {
        GET(event->offset, struct io_sync, request, off);
        GET(event->length, struct io_sync, request, len);
        event->extra = BPF_CORE_READ((struct io_sync *)request, mode);
    } else { /* fsync: 1 = data only */
        event->extra = BPF_CORE_READ((struct io_sync *)request, flags);
    }
}

/* Path arguments, which the kernel has copied by now. */
__noinline int uring_paths(__u64 request, __u32 kind)
{
    const char *text = NULL;
    int fd = 0;

    if (kind == TRACE_OPEN || kind == TRACE_CREATE) {
        text = BPF_CORE_READ((struct io_open *)request, filename, name);
        fd = BPF_CORE_READ((struct io_open *)request, dfd);
    } else if (kind == TRACE_UNLINK) {
        text = BPF_CORE_READ((struct io_unlink *)request, filename, name);
        fd = BPF_CORE_READ((struct io_unlink *)request, dfd);
    } else if (kind == TRACE_MKDIR) {
        text = BPF_CORE_READ((struct io_mkdir *)request, filename, name);
        fd = BPF_CORE_READ((struct io_mkdir *)request, dfd);
    } else if (kind == TRACE_RENAME) {
        text = BPF_CORE_READ((struct io_rename *)request, oldpath, name);
        fd = BPF_CORE_READ((struct io_rename *)request, old_dfd);
    } else {
        text = BPF_CORE_READ((struct io_link *)request, oldpath, name);
        fd = BPF_CORE_READ((struct io_link *)request, old_dfd);
    }
    path_deliver((__u64)text, fd, BPF_PATH_BASE, 1);
    if (kind == TRACE_RENAME) {
        text = BPF_CORE_READ((struct io_rename *)request, newpath, name);
        fd = BPF_CORE_READ((struct io_rename *)request, new_dfd);
        path_deliver((__u64)text, fd, BPF_PATH_BASE2, 1);
    } else if (kind == TRACE_LINK || kind == TRACE_SYMLINK) {
        text = BPF_CORE_READ((struct io_link *)request, newpath, name);
        fd = BPF_CORE_READ((struct io_link *)request, new_dfd);
        path_deliver((__u64)text, fd, BPF_PATH_BASE2, 1);
    }
    return 0;
}

static __always_inline __u64 uring_path_extra(struct io_kiocb *request, __u8 kind)
{
    if (kind == TRACE_OPEN)
        return BPF_CORE_READ((struct io_open *)request, how.flags);
    if (kind == TRACE_UNLINK)
        return BPF_CORE_READ((struct io_unlink *)request, flags);
    if (kind == TRACE_MKDIR)
        return BPF_CORE_READ((struct io_mkdir *)request, mode);
    return 0;
}

static __always_inline bool class_has_paths(__u8 class)
{
    return class == BPF_CLASS_OPEN || class == BPF_CLASS_PATH || class == BPF_CLASS_PATHS;
}

/* The request's file, delivered; NULL when there is none or its kind is not recorded. */
static __noinline struct file *uring_file(struct bpf_thread *thread, struct io_kiocb *request,
                                          struct bpf_file_key *ret_key, __u8 class)
{
    struct io_ring_ctx *ring;
    struct file *file;
    __u32 flags;
    int fd;

    GET(flags, struct io_kiocb, request, flags);
    GET(fd, struct io_kiocb, request, cqe.fd);
    GET(ring, struct io_kiocb, request, ctx);
    if (class == BPF_CLASS_CLOSE)
        file = file_of_fd(BPF_CORE_READ((struct io_close *)request, fd));
    else if (flags & URING_FIXED_FILE)
        file = uring_fixed_file(ring, fd);
    else
        file = file_of_fd(fd);
    if (!file && flags & URING_FIXED_FILE)
        lost_add(BPF_LOST_FIXED, 1);
    return file_meet(&thread->known, file, ret_key, class == BPF_CLASS_FD) ? file : NULL;
}

static __always_inline int uring_submit(struct io_kiocb *request)
{
    const volatile struct bpf_call *call;
    struct bpf_file_key key = {};
    struct bpf_thread *thread;
    struct bpf_event_op *event;
    struct io_ring_ctx *ring;
    struct file *file = NULL;
    __u32 flags, setup, length_flags = 0, one = 1;
    __u64 now, vector_bytes = 0, ring_key, index;
    __u8 opcode;
    bool passing;

    GET(opcode, struct io_kiocb, request, opcode);
    if (opcode >= BPF_URING_MAX)
        return 0;
    index = opcode;
    barrier_var(index); /* the compiler drops the mask, which the verifier asks for */
    call = &uring_calls[index & (BPF_URING_MAX - 1)];
    if (!call->class)
        return 0;
    thread = thread_get();
    if (!thread)
        return 0;
    passing = sample_passes();
    now = bpf_ktime_get_ns();
    GET(ring, struct io_kiocb, request, ctx);
    GET(setup, struct io_ring_ctx, ring, flags);
    GET(flags, struct io_kiocb, request, flags);
    if (!class_has_paths(call->class)) {
        file = uring_file(thread, request, &key, call->class);
        if (!file)
            return 0;
    }
    if (passing) {
        passed_add(1);
        return 0;
    }
    thread_announce(thread);
    if (!file)
        uring_paths((__u64)request, call->kind);
    if (call->class == BPF_CLASS_VECTOR)
        vector_bytes = iov_length(BPF_CORE_READ((struct io_rw *)request, addr),
                                  BPF_CORE_READ((struct io_rw *)request, len), &length_flags);
    event = event_reserve(sizeof(*event));
    if (!event)
        return 0;
    event_head(&event->head, BPF_EVENT_SUBMIT, call->kind, call->class);
    event->head.api = TRACE_API_IO_URING;
    event->head.flags = uring_flags(flags, setup) | length_flags |
                        (call->flags & BPF_CALL_FIXED_BUF ? BPF_OP_FIXED_BUF : 0);
    event->issue_ns = now;
    event->cookie = (__u64)request;
    event->context = (__u64)ring;
    event->offset = event->length = event->extra = 0;
    event->file_flags = event->call_flags = 0;
    event->file = key;
    if (file)
        GET(event->file_flags, struct file, file, f_flags);
    if (call->class == BPF_CLASS_POSITION || call->class == BPF_CLASS_VECTOR)
        uring_read_write(request, file, call, event, vector_bytes);
    else if (call->class == BPF_CLASS_RANGE || call->class == BPF_CLASS_FD)
        uring_range(request, event, call->kind);
    else
        event->extra = uring_path_extra(request, call->kind);
    event->batch = setup & URING_SETUP_SQPOLL || thread->alone ? 0 : thread->batch;
    event_submit(event);
    ring_key = (__u64)ring;
    if (!bpf_map_lookup_elem(&rings, &ring_key))
        bpf_map_update_elem(&rings, &ring_key, &one, BPF_ANY);
    return 0;
}

static __always_inline int uring_complete(__u64 ring, __u64 request, __s64 result)
{
    if (!request || !bpf_map_lookup_elem(&rings, &ring))
        return 0;
    complete_output(BPF_EVENT_COMPLETE, TRACE_API_IO_URING, BPF_OP_EXACT, bpf_ktime_get_ns(),
                    request, ring, result);
    return 0;
}

#endif
