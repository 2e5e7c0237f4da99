/* SPDX-License-Identifier: MIT */
/*
 * The programs of the bpf recorder: every I/O call of the target becomes one event when it
 * returns (asynchronous ones: one when handed over, one when completed).
 */
#include "capture/bpf_prog_pages.h"
#include "capture/bpf_prog_uring.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum {
    BAD_ADDRESS = -14
}; /* -EFAULT: the program's own pointer is no good */

/* ---- entry ------------------------------------------------------------------------------- */

static __always_inline void args_keep(struct bpf_thread *thread, struct pt_regs *regs)
{
    thread->args[0] = REGS_ARG0(regs);
    thread->args[1] = REGS_ARG1(regs);
    thread->args[2] = REGS_ARG2(regs);
    thread->args[3] = REGS_ARG3(regs);
    thread->args[4] = REGS_ARG4(regs);
    thread->args[5] = REGS_ARG5(regs);
}

#define ARG(thread, index) ((thread)->args[(index)&7])

/* The call's descriptor is of a kind that is recorded; its identity is kept for the exit. */
static __always_inline bool fd_enter(struct bpf_thread *thread, __u8 argument, bool folders)
{
    struct file *file = file_of_fd((int)ARG(thread, argument));

    if (thread->passing)
        return file_key(file, &thread->key, folders);
    if (!file_meet(&thread->known, file, &thread->key, folders))
        return false;
    thread->file = (__u64)file;
    GET(thread->file_flags, struct file, file, f_flags);
    GET(thread->position, struct file, file, f_pos);
    return true;
}

static __always_inline bool call_enter(struct bpf_thread *thread,
                                       const volatile struct bpf_call *call)
{
    switch (call->class) {
    case BPF_CLASS_RANGE:
    case BPF_CLASS_POSITION:
    case BPF_CLASS_VECTOR:
    case BPF_CLASS_CLOSE:
    case BPF_CLASS_MAP: return fd_enter(thread, call->fd, false);
    case BPF_CLASS_FD: return fd_enter(thread, call->fd, true);
    case BPF_CLASS_ADVISE:
        return ARG(thread, call->extra) == 3 &&
               fd_enter(thread, call->fd, false); /* WILLNEED */
    case BPF_CLASS_IOCTL:                         /* BLKDISCARD, BLKZEROOUT */
        return (thread->args[1] == 0x1277 || thread->args[1] == 0x127f) &&
               fd_enter(thread, call->fd, false);
    case BPF_CLASS_AIO_SUBMIT:
        if (thread->passing) /* others may share the context: what was reaped is told in time */
            aio_ring_look(thread->args[0], thread->enter_ns, 0);
        else
            aio_submit_enter(thread);
        return true;
    case BPF_CLASS_AIO_REAP:
        thread->aio_ready = aio_ring_look(thread->args[0], thread->enter_ns, 0);
        return true;
    case BPF_CLASS_AIO_DESTROY:
        aio_ring_look(thread->args[0], thread->enter_ns, 1);
        complete_output(BPF_EVENT_GONE, TRACE_API_LIBAIO, 0, thread->enter_ns, 0,
                        thread->args[0], 0);
        return false;
    case BPF_CLASS_URING_ENTER:
        thread->batch++;
        thread->alone = thread->args[1] == 1;
        return true;
    default: return true;
    }
}

/* A 32-bit call: the numbers are others. Asked at every call of every program. */
static __always_inline bool task_is_compat(void)
{
    if (have_task)
        return bpf_get_current_task_btf()->TASK_COMPAT_WORD & TASK_COMPAT_BIT;
    return BPF_CORE_READ(task_get(), TASK_COMPAT_WORD) & TASK_COMPAT_BIT;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long number)
{
    const volatile struct bpf_call *call;
    struct bpf_thread *thread;

    if ((unsigned long)number >= BPF_CALLS_MAX)
        return 0;
    call = &calls[number & (BPF_CALLS_MAX - 1)];
    if (task_is_compat()) {
        if (compat_io[number & (BPF_CALLS_MAX - 1)] && thread_get())
            lost_add(BPF_LOST_COMPAT, 1);
        return 0;
    }
    if (!call->class)
        return 0;
    thread = thread_get();
    if (!thread)
        return 0;
    thread->passing = sample_passes();
    if (thread->passing && call_is_plain(call)) {
        thread->call = 0;
        if (fd_is_kept((int)REGS_ARG0(regs), call->class == BPF_CLASS_FD))
            passed_add(1);
        return 0;
    }
    args_keep(thread, regs);
    thread->enter_ns = bpf_ktime_get_ns();
    thread->call = call_enter(thread, call) ? number + 1 : 0;
    return 0;
}

/* ---- exit -------------------------------------------------------------------------------- */

static __always_inline void op_fill(struct bpf_event_op *event, struct bpf_thread *thread,
                                    const volatile struct bpf_call *call, __s64 result)
{
    event_head(&event->head, BPF_EVENT_OP, call->kind, call->class);
    event->head.api = TRACE_API_SYNC;
    event->issue_ns = thread->enter_ns;
    event->done_ns = bpf_ktime_get_ns();
    event->offset = ARG(thread, call->offset);
    event->length = ARG(thread, call->length);
    event->result = result;
    event->file = thread->key;
    event->file_flags = thread->file_flags;
    event->call_flags = ARG(thread, call->rwf);
    event->extra = ARG(thread, call->extra);
    event->batch = 0;
}

/* Where a call that moves the file position really was: what it ends at, less what it moved.
 * An append starts at the end of the file, which only the position after it tells. Where others
 * share the position and moved it meanwhile, user space works it out. */
static __always_inline void position_fill(struct bpf_event_op *event, struct bpf_thread *thread)
{
    struct file *file = (struct file *)thread->file;
    __s64 after;

    event->head.flags |= BPF_OP_POSITION;
    event->offset = event->before = thread->position;
    event->extra = thread->file;
    if (event->result <= 0)
        return;
    GET(after, struct file, file, f_pos);
    if (after < event->result)
        return;
    event->offset = after - event->result;
    if (event->offset != event->before)
        event->head.flags |= BPF_OP_CONTENDED;
}

/* pwrite to an O_APPEND descriptor goes to the end of the file, whatever offset it names. */
static __always_inline void append_fill(struct bpf_event_op *event, struct bpf_thread *thread)
{
    struct file *file = (struct file *)thread->file;
    struct inode *inode;
    __s64 size;

    if (event->result <= 0)
        return;
    GET(inode, struct file, file, f_inode);
    GET(size, struct inode, inode, i_size);
    if (size >= event->result)
        event->offset = size - event->result;
}

static __always_inline bool call_at_position(struct bpf_thread *thread,
                                             const volatile struct bpf_call *call)
{
    if (call->class == BPF_CLASS_POSITION)
        return true;
    /* readv and writev have no offset; preadv2 and pwritev2 take -1 for the position. */
    return call->class == BPF_CLASS_VECTOR &&
           (call->offset == BPF_ARG_NONE ||
            (call->rwf != BPF_ARG_NONE && (__s64)ARG(thread, call->offset) == -1));
}

/* read, pread, readv, fsync, ftruncate, close ... */
static __always_inline void fd_exit(struct bpf_thread *thread,
                                    const volatile struct bpf_call *call, __s64 result)
{
    struct bpf_event_op *event;
    __u64 length = 0;
    __u32 flags = 0;

    thread_announce(thread);
    if (call->class == BPF_CLASS_VECTOR)
        length = iov_length(ARG(thread, call->path), ARG(thread, call->length), &flags);
    event = event_reserve(sizeof(*event));
    if (!event)
        return;
    op_fill(event, thread, call, result);
    event->head.flags = flags;
    if (call->class == BPF_CLASS_VECTOR) {
        event->head.api = TRACE_API_VECTORED;
        event->length = length;
    }
    if (call_at_position(thread, call))
        position_fill(event, thread);
    else if (call->kind == TRACE_WRITE && thread->file_flags & 02000)
        append_fill(event, thread);
    event_submit(event);
}

/* open, openat, creat, open_by_handle_at */
static __noinline void open_exit(struct bpf_thread *thread,
                                 const volatile struct bpf_call *call, __s64 result)
{
    struct bpf_event_op *event;
    struct file *file = NULL;
    __u64 how = ARG(thread, call->extra);
    __u32 flags = 0, mode = 0;

    __builtin_memset(&thread->key, 0, sizeof(thread->key));
    thread->file_flags = 0;
    if (call->flags & BPF_CALL_OPEN_HOW &&
        bpf_probe_read_user(&how, sizeof(how), (void *)how) && result != BAD_ADDRESS)
        lost_add(BPF_LOST_USER, 1);
    if (result >= 0) {
        file = file_of_fd((int)result);
        if (!file_key(file, &thread->key, false))
            return;
        thread_announce(thread);
        GET(mode, struct file, file, f_mode);
        GET(thread->file_flags, struct file, file, f_flags);
        if (mode & KERNEL_FMODE_CREATED)
            flags |= BPF_OP_CREATED;
        if (file_announce((__u64)file, flags & BPF_OP_CREATED ? BPF_FILE_CREATED : 0))
            thread->known = thread->key;
    } else {
        thread_announce(thread);
        if (!(call->flags & BPF_CALL_BY_HANDLE) && result != BAD_ADDRESS)
            path_deliver(ARG(thread, call->path),
                         call->fd == BPF_ARG_NONE ? KERNEL_AT_FDCWD
                                                  : (int)ARG(thread, call->fd),
                         BPF_PATH_BASE, 0);
    }
    event = event_reserve(sizeof(*event));
    if (!event)
        return;
    op_fill(event, thread, call, result);
    event->head.flags = flags;
    event->offset = event->length = 0;
    event->extra = call->flags & BPF_CALL_CREAT ? ~0ull : how;
    event_submit(event);
}

static __noinline void path_exit(struct bpf_thread *thread,
                                 const volatile struct bpf_call *call, __s64 result)
{
    struct bpf_event_op *event;

    thread_announce(thread);
    if (result != BAD_ADDRESS)
        path_deliver(ARG(thread, call->path),
                     call->fd == BPF_ARG_NONE ? KERNEL_AT_FDCWD : (int)ARG(thread, call->fd),
                     BPF_PATH_BASE, 0);
    if (result != BAD_ADDRESS && call->class == BPF_CLASS_PATHS)
        path_deliver(ARG(thread, call->path2),
                     call->fd2 == BPF_ARG_NONE ? KERNEL_AT_FDCWD : (int)ARG(thread, call->fd2),
                     BPF_PATH_BASE2, 0);
    event = event_reserve(sizeof(*event));
    if (!event)
        return;
    __builtin_memset(&thread->key, 0, sizeof(thread->key));
    thread->file_flags = 0;
    op_fill(event, thread, call, result);
    event->head.flags = 0;
    event_submit(event);
}

/* The offset a copy began at: through a pointer the kernel has moved on, or the position. */
static __always_inline __u64 copy_offset(struct file *file, __u64 pointer, __s64 result,
                                         __u32 *ret_flags)
{
    __s64 after = 0;

    if (!file)
        return 0;
    if (!pointer) {
        GET(after, struct file, file, f_pos);
        *ret_flags |= BPF_OP_POSITION;
    } else if (bpf_probe_read_user(&after, sizeof(after), (void *)pointer) &&
               result != BAD_ADDRESS) {
        lost_add(BPF_LOST_USER, 1);
    }
    return result > 0 ? after - result : after;
}

/* copy_file_range, sendfile, splice */
static __noinline void copy_exit(struct bpf_thread *thread,
                                 const volatile struct bpf_call *call, __s64 result)
{
    struct bpf_file_key from_key = {}, to_key = {};
    struct bpf_event_copy *event;
    struct file *from = file_of_fd((int)ARG(thread, call->fd));
    struct file *to = file_of_fd((int)ARG(thread, call->fd2));
    __u64 offset, offset2;
    __u32 flags = 0, flags2 = 0;

    if (!file_meet(&thread->known, from, &from_key, false)) {
        __builtin_memset(&from_key, 0, sizeof(from_key));
        from = NULL;
    }
    if (!file_meet(&thread->known, to, &to_key, false)) {
        __builtin_memset(&to_key, 0, sizeof(to_key));
        to = NULL;
    }
    if (!from && !to)
        return;
    thread_announce(thread);
    offset = copy_offset(from, ARG(thread, call->offset), result, &flags);
    offset2 = copy_offset(to, ARG(thread, call->path2), result, &flags2);
    event = event_reserve(sizeof(*event));
    if (!event)
        return;
    thread->key = from_key;
    thread->file_flags = 0;
    if (from)
        GET(thread->file_flags, struct file, from, f_flags);
    op_fill(&event->op, thread, call, result);
    event->op.head.type = BPF_EVENT_COPY;
    event->op.head.flags = from ? flags : flags2;
    event->op.offset = offset;
    event->file2 = to_key;
    event->offset2 = offset2;
    event->file2_flags = 0;
    event->unused = 0;
    if (to)
        GET(event->file2_flags, struct file, to, f_flags);
    event_submit(event);
}

/* Device discards by ioctl: the range is an array of two. */
static __noinline void ioctl_exit(struct bpf_thread *thread,
                                  const volatile struct bpf_call *call, __s64 result)
{
    struct bpf_event_op *event;
    __u64 range[2] = {};

    if (bpf_probe_read_user(range, sizeof(range), (void *)thread->args[2]) &&
        result != BAD_ADDRESS)
        lost_add(BPF_LOST_USER, 1);
    thread_announce(thread);
    event = event_reserve(sizeof(*event));
    if (!event)
        return;
    op_fill(event, thread, call, result);
    event->head.flags = 0;
    event->head.kind = thread->args[1] == 0x1277 ? TRACE_DISCARD : TRACE_WRITE_ZEROES;
    event->offset = range[0];
    event->length = range[1];
    event_submit(event);
}

/* Calls without a descriptor: sync; munmap and msync by address. */
static __noinline void bare_exit(struct bpf_thread *thread,
                                 const volatile struct bpf_call *call, __s64 result)
{
    struct bpf_event_op *event;

    thread_announce(thread);
    event = event_reserve(sizeof(*event));
    if (!event)
        return;
    __builtin_memset(&thread->key, 0, sizeof(thread->key));
    thread->file_flags = 0;
    op_fill(event, thread, call, result);
    event->head.flags = 0;
    event_submit(event);
}

static __always_inline void call_exit(struct bpf_thread *thread,
                                      const volatile struct bpf_call *call, __s64 result)
{
    switch (call->class) {
    case BPF_CLASS_OPEN: open_exit(thread, call, result); break;
    case BPF_CLASS_PATH:
    case BPF_CLASS_PATHS: path_exit(thread, call, result); break;
    case BPF_CLASS_COPY: copy_exit(thread, call, result); break;
    case BPF_CLASS_AIO_SUBMIT: aio_submit_exit(thread, result); break;
    case BPF_CLASS_AIO_REAP: aio_reap_exit(thread, result); break;
    case BPF_CLASS_ALL:
    case BPF_CLASS_UNMAP: bare_exit(thread, call, result); break;
    case BPF_CLASS_URING_ENTER: break;
    case BPF_CLASS_IOCTL: ioctl_exit(thread, call, result); break;
    default: fd_exit(thread, call, result);
    }
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
    const volatile struct bpf_call *call;
    struct bpf_thread *thread;
    __u64 number = REGS_CALL(regs);
    __u32 tid, under_way;

    if (number >= BPF_CALLS_MAX)
        return 0;
    call = &calls[number & (BPF_CALLS_MAX - 1)];
    if (!call->class)
        return 0;
    tid = (__u32)bpf_get_current_pid_tgid();
    thread = bpf_map_lookup_elem(&threads, &tid);
    if (!thread)
        return 0;
    /* Not number + 1 == call: 6.12 forgets the bounds of a number whose sum has been compared. */
    under_way = thread->call;
    barrier_var(under_way);
    under_way--;
    barrier_var(under_way);
    if (under_way != number)
        return 0;
    thread->call = 0;
    if (!thread->passing || call->class == BPF_CLASS_AIO_REAP)
        call_exit(thread, call, result);
    else
        passed_add(passed_ops(thread, call, result));
    return 0;
}

/* ---- io_uring ---------------------------------------------------------------------------- */

SEC("raw_tp/io_uring_submit_req") /* 6.3 and newer */
int on_uring_submit_req(struct bpf_raw_tracepoint_args *ctx)
{
    return uring_submit((struct io_kiocb *)ctx->args[0]);
}

SEC("raw_tp/io_uring_submit_sqe") /* 5.19 to 6.2 */
int on_uring_submit_sqe(struct bpf_raw_tracepoint_args *ctx)
{
    return uring_submit((struct io_kiocb *)ctx->args[0]);
}

SEC("raw_tp/io_uring_complete")
int on_uring_complete(struct bpf_raw_tracepoint_args *ctx)
{
    __s32 result;

    if (complete_by_cqe)
        result = BPF_CORE_READ((struct io_uring_cqe *)ctx->args[2], res);
    else
        result = (__s32)ctx->args[3];
    return uring_complete(ctx->args[0], ctx->args[1], result);
}

/* ---- mapped files ------------------------------------------------------------------------ */

SEC("raw_tp/mm_filemap_add_to_page_cache")
int on_page_fill(struct bpf_raw_tracepoint_args *ctx)
{
    return page_tell((struct folio *)ctx->args[0], TRACE_FILL);
}

SEC("raw_tp/writeback_dirty_folio")
int on_page_dirty(struct bpf_raw_tracepoint_args *ctx)
{
    return page_tell((struct folio *)ctx->args[0], TRACE_WRITEBACK);
}

/* ---- processes --------------------------------------------------------------------------- */

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
    __u32 parent_pid = parent->tgid, child_pid = child->tgid, one = 1;
    struct bpf_event *event;

    if (parent_pid == child_pid || !bpf_map_lookup_elem(&targets, &parent_pid))
        return 0;
    if (bpf_map_update_elem(&targets, &child_pid, &one, BPF_ANY))
        lost_add(BPF_LOST_THREADS, 1);
    event = notice_reserve(sizeof(*event));
    if (!event)
        return 0;
    event_head(event, BPF_EVENT_FORK, 0, 0);
    event->tid = child_pid;
    event_submit(event);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tid = (__u32)id, old_tid = old_pid, pid;
    struct bpf_thread *thread;

    /* Another thread than the first takes the first one's number. */
    if (old_tid != tid)
        bpf_map_delete_elem(&threads, &old_tid);
    thread = bpf_map_lookup_elem(&threads, &tid);
    pid = id >> 32;
    if (thread)
        thread->announced = task_announce(BPF_EVENT_EXEC, old_tid);
    else if (scope_kind == BPF_SCOPE_TASKS && bpf_map_lookup_elem(&targets, &pid))
        task_announce(BPF_EVENT_EXEC, old_tid);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tid = (__u32)id, pid = id >> 32;
    bool known = bpf_map_delete_elem(&threads, &tid) == 0;
    bool last = task->signal->live.counter == 0;
    struct bpf_event *event;

    if (last && scope_kind == BPF_SCOPE_TASKS && bpf_map_delete_elem(&targets, &pid) == 0)
        known = true;
    if (!known)
        return 0;
    event = notice_reserve(sizeof(*event));
    if (!event)
        return 0;
    event_head(event, BPF_EVENT_EXIT, 0, 0);
    event->flags = last;
    event_submit(event);
    return 0;
}
