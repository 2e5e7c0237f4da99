/* SPDX-License-Identifier: MIT */
/*
 * BPF side: sampling. The calls of a thread that is not in the sample are looked at far enough to be
 * counted, and nothing is delivered of them.
 */
#ifndef CAPTURE_BPF_PROG_SAMPLE_H
#define CAPTURE_BPF_PROG_SAMPLE_H

#include "capture/bpf_prog_file.h"
#include "capture/sample.h"

/* One stream in so many is recorded; 0 or 1: all. User space raises it while recording goes on. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} sample SEC(".maps");

/* Ops passed over. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} passed SEC(".maps");

static __always_inline bool sample_passes(void)
{
    __u32 zero = 0, *one_in = bpf_map_lookup_elem(&sample, &zero);

    return one_in && !sample_keeps((__u32)bpf_get_current_pid_tgid(), *one_in);
}

static __always_inline void passed_add(__u64 count)
{
    __u32 zero = 0;
    __u64 *n = bpf_map_lookup_elem(&passed, &zero);

    if (n)
        *n += count; /* per CPU, and preemption is off */
}

static __always_inline bool fd_is_kept(int fd, bool folders)
{
    return inode_kept(file_of_fd(fd), folders) != NULL;
}

/* Calls on the descriptor in their first argument, which are most: each is one op, whatever comes of
 * it, so that nothing is left for its exit. */
static __always_inline bool call_is_plain(const volatile struct bpf_call *call)
{
    return call->fd == 0 &&
           (call->class == BPF_CLASS_RANGE || call->class == BPF_CLASS_POSITION ||
            call->class == BPF_CLASS_VECTOR || call->class == BPF_CLASS_FD);
}

/* How many ops a call that was passed over would have been. Its descriptor was found to be of a
 * recorded kind at its entry. What is unmapped is not known here. */
static __noinline __u64 passed_ops(struct bpf_thread *thread,
                                   const volatile struct bpf_call *call, __s64 result)
{
    switch (call->class) {
    case BPF_CLASS_UNMAP:
    case BPF_CLASS_URING_ENTER: return 0; /* its requests are counted one by one */
    case BPF_CLASS_OPEN: return result < 0 || fd_is_kept((int)result, false);
    case BPF_CLASS_COPY:
        return fd_is_kept((int)thread->args[call->fd & 7], false) ||
               fd_is_kept((int)thread->args[call->fd2 & 7], false);
    case BPF_CLASS_AIO_SUBMIT: return result > 0 ? result : 0;
    default: return 1;
    }
}

#endif
