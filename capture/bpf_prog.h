/* SPDX-License-Identifier: MIT */
/*
 * BPF side: the maps and settings the programs of with_bpf.bpf.c share, the scope check and
 * the ring buffer.
 */
#ifndef CAPTURE_BPF_PROG_H
#define CAPTURE_BPF_PROG_H

#include "capture/bpf_event.h"
#include "capture/bpf_kernel.h"

enum {
    CGROUP_DEPTH_MAX = 64,
};

/* ---- settings, frozen at load ------------------------------------------------------------ */

const volatile bool have_cast = false;
const volatile bool have_task = false;
const volatile bool have_ancestor = false;
const volatile __u32 scope_kind = BPF_SCOPE_TASKS;
const volatile __u64 scope_cgroup = 0;
const volatile __u32 scope_cgroup_level = 0;
const volatile char scope_comm[16] = {};
const volatile __u32 self_tgid = 0; /* the collector */
const volatile bool all_fds = false;
const volatile __u64 page_bytes = 4096;
const volatile bool complete_by_cqe =
    false; /* arguments of io_uring_complete, 6.14 and newer */
const volatile struct bpf_call calls[BPF_CALLS_MAX] = {};
const volatile struct bpf_call uring_calls[BPF_URING_MAX] = {};
const volatile __u8 compat_io[BPF_CALLS_MAX] = {}; /* I/O calls by their 32-bit numbers */

/* ---- maps -------------------------------------------------------------------------------- */

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 23); /* set at load */
} events SEC(".maps");

/* Threads of the target, made at their first I/O call. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, __u32);
    __type(value, struct bpf_thread);
} threads SEC(".maps");

/* Processes recorded (scope TASKS). */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, __u32);
    __type(value, __u32);
} targets SEC(".maps");

/* Files whose path has been delivered. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 65536);
    __type(key, struct bpf_file_key);
    __type(value, __u32);
} seen_files SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, BPF_LOST_KINDS);
    __type(key, __u32);
    __type(value, __u64);
} lost SEC(".maps");

/* As in linux/aio_abi.h. */
struct aio_block {
    __u64 data;
    __u32 key;
    __s32 rw_flags;
    __u16 opcode;
    __s16 priority;
    __u32 fd;
    __u64 buffer;
    __u64 bytes;
    __s64 offset;
    __u64 reserved;
    __u32 flags;
    __u32 eventfd;
};

struct aio_event {
    __u64 data, block;
    __s64 result, result2;
};

/* The call on libaio under way: what its steps share. */
struct aio_walk {
    struct bpf_file_key known; /* as the thread's */
    __u64 blocks;              /* io_submit's array */
    __u64 now, context, batch;
    __u64 first, count, ready; /* of the ring or of the array of events */
    __u64 ring_count;
    struct bpf_file_key key; /* of the op at hand */
    union {
        struct aio_block block;
        struct aio_event done;
    };
};

/* Room that the 512-byte stack has not. */
struct scratch {
    union {
        struct {
            union {
                struct bpf_event_file file;
                struct bpf_event_path path;
            } head;
            char text[2 * BPF_PATH_MAX];
        } out;
        struct {
            __u64 base, length;
        } iov[BPF_IOV_MAX];
    };
    struct aio_walk walk;
    struct bpf_thread thread;
    __u32 at; /* bytes of out.text */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline struct scratch *scratch_get(void)
{
    __u32 zero = 0;

    return bpf_map_lookup_elem(&scratches, &zero);
}

static __always_inline void lost_add(__u32 kind, __u64 count)
{
    __u64 *n = bpf_map_lookup_elem(&lost, &kind);

    if (n)
        *n += count; /* per CPU, and preemption is off */
}

/* ---- ring buffer ------------------------------------------------------------------------- */

/* Of an op. */
static __always_inline void *event_reserve(__u64 bytes)
{
    void *event = bpf_ringbuf_reserve(&events, bytes, 0);

    if (!event)
        lost_add(BPF_LOST_RING, 1);
    return event;
}

/* Of what is no op: a thread, a process, a name. Were it counted, recorded and lost ops would
 * not add up to those issued. */
static __always_inline void *notice_reserve(__u64 bytes)
{
    return bpf_ringbuf_reserve(&events, bytes, 0);
}

/* The reader looks by the clock: nobody is woken from the target's calls. */
static __always_inline void event_submit(void *event)
{
    bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

static __always_inline void event_head(struct bpf_event *head, __u8 type, __u8 kind, __u8 class)
{
    __u64 id = bpf_get_current_pid_tgid();

    head->type = type;
    head->kind = kind;
    head->api = 0;
    head->class = class;
    head->flags = 0;
    head->pid = id >> 32;
    head->tid = (__u32)id;
}

/* ---- scope ------------------------------------------------------------------------------- */

static __always_inline bool comm_matches(const char *comm)
{
    for (int i = 0; i < 16; i++) {
        if (comm[i] != scope_comm[i])
            return false;
        if (!comm[i])
            break;
    }
    return true;
}

static __noinline bool scope_system(__u32 pid)
{
    char comm[16];
    struct task_struct *leader;

    if (pid == self_tgid)
        return false;
    if (!scope_comm[0])
        return true;
    bpf_get_current_comm(comm, sizeof(comm));
    if (comm_matches(comm))
        return true;
    leader = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), group_leader);
    bpf_core_read_str(comm, sizeof(comm), &leader->comm);
    return comm_matches(comm);
}

/* Is the cgroup the task's own or above it? */
static __noinline bool scope_cgroup_has(void)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    struct cgroup *cgroup;
    struct cgroup_subsys_state *state;

    if (have_ancestor)
        return bpf_get_current_ancestor_cgroup_id(scope_cgroup_level) == scope_cgroup;
    cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);
    for (int i = 0; i < CGROUP_DEPTH_MAX && cgroup; i++) {
        if (BPF_CORE_READ(cgroup, kn, id) == scope_cgroup)
            return true;
        state = BPF_CORE_READ(cgroup, self.parent);
        cgroup = state ? BPF_CORE_READ(state, cgroup) : NULL;
    }
    return false;
}

static __always_inline bool scope_has(__u32 pid)
{
    if (scope_kind == BPF_SCOPE_TASKS)
        return bpf_map_lookup_elem(&targets, &pid) != NULL;
    if (scope_kind == BPF_SCOPE_CGROUP && !scope_cgroup_has())
        return false;
    return scope_system(pid);
}

__noinline int task_announce(__u8 type, __u32 old_tid)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    struct bpf_event_task *event = notice_reserve(sizeof(*event));

    if (!event)
        return 0;
    event_head(&event->head, type, 0, 0);
    event->ppid = BPF_CORE_READ(task, real_parent, tgid);
    event->old_tid = old_tid;
    bpf_get_current_comm(event->comm, sizeof(event->comm));
    event_submit(event);
    return 1;
}

/* The current thread's slot, made when it has none and is in scope. */
static __noinline struct bpf_thread *thread_new(__u32 tid, __u32 pid)
{
    struct scratch *s = scratch_get();

    if (!s)
        return NULL;
    __builtin_memset(&s->thread, 0, sizeof(s->thread));
    s->thread.pid = pid;
    if (bpf_map_update_elem(&threads, &tid, &s->thread, BPF_ANY)) {
        lost_add(BPF_LOST_THREADS, 1);
        return NULL;
    }
    return bpf_map_lookup_elem(&threads, &tid);
}

static __always_inline struct bpf_thread *thread_get(void)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tid = (__u32)id, pid = id >> 32;
    struct bpf_thread *thread = bpf_map_lookup_elem(&threads, &tid);

    if (thread && scope_kind == BPF_SCOPE_TASKS)
        return thread;
    if (!scope_has(pid))
        return NULL;
    return thread ? thread : thread_new(tid, pid);
}

static __always_inline void thread_announce(struct bpf_thread *thread)
{
    if (!thread->announced)
        thread->announced = task_announce(BPF_EVENT_THREAD, 0);
}

#endif
