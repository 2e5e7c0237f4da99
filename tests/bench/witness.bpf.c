/* SPDX-License-Identifier: MIT */
/* Stamps every request of one process tree at its entry to the kernel, and nothing else: it
 * knows nothing of replay or of the recorders. */
#include "capture/bpf_kernel.h"
#include "tests/bench/witness.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum {
    AIO_MAX = 1024,
    OPCODE_READV = 1,
    OPCODE_WRITEV = 2,
    OPCODE_READ_FIXED = 4,
    OPCODE_WRITE_FIXED = 5,
    OPCODE_READ = 22,
    OPCODE_WRITE = 23
};

const volatile bool have_cast = false;
const volatile __u8 calls[WITNESS_CALLS] = {};

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 24);
} events SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, __u32);
    __type(value, __u32);
} targets SEC(".maps");

/* By thread: when its io_uring_enter began. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, __u32);
    __type(value, __u64);
} entered SEC(".maps");

__u64 dropped = 0;

static __always_inline bool is_target(void)
{
    __u32 pid = bpf_get_current_pid_tgid() >> 32;

    return bpf_map_lookup_elem(&targets, &pid) != NULL;
}

static __always_inline void tell(__u64 issue, __u64 taken, bool write, bool vector, int fd,
                                 __u64 offset, __u64 length)
{
    struct witness_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

    if (!event) {
        __sync_fetch_and_add(&dropped, 1);
        return;
    }
    event->issue_ns = issue;
    event->taken_ns = taken;
    event->offset = offset;
    event->length = length;
    event->tid = (__u32)bpf_get_current_pid_tgid();
    event->fd = fd;
    event->write = write;
    event->vector = vector;
    bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

struct aio_block { /* linux/aio_abi.h */
    __u64 data;
    __u32 key, rw_flags;
    __u16 opcode;
    __s16 priority;
    __u32 fd;
    __u64 buffer, bytes, offset;
};

struct walk {
    const __u64 *blocks;
    __u64 now, count;
};

static long aio_one(__u32 index, struct walk *walk)
{
    struct aio_block block;
    __u64 address;

    if (index >= walk->count)
        return 1;
    if (bpf_probe_read_user(&address, sizeof(address), walk->blocks + index) ||
        bpf_probe_read_user(&block, sizeof(block), (void *)address)) {
        __sync_fetch_and_add(&dropped, 1);
        return 0;
    }
    if (block.opcode <= 1 || block.opcode == 7 || block.opcode == 8)
        tell(walk->now, walk->now, block.opcode == 1 || block.opcode == 8, block.opcode > 1,
             (int)block.fd, block.offset, block.bytes);
    return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_call, struct pt_regs *regs, long number)
{
    struct walk walk = {};
    __u32 tid;
    __u8 call;

    if ((unsigned long)number >= WITNESS_CALLS)
        return 0;
    call = calls[number & (WITNESS_CALLS - 1)];
    if (!call || !is_target())
        return 0;
    walk.now = bpf_ktime_get_ns();
    switch (call & ~WITNESS_WRITE) {
    case WITNESS_URING:
        tid = (__u32)bpf_get_current_pid_tgid();
        bpf_map_update_elem(&entered, &tid, &walk.now, BPF_ANY);
        break;
    case WITNESS_AIO:
        walk.count = REGS_ARG1(regs);
        walk.blocks = (const __u64 *)REGS_ARG2(regs);
        bpf_loop(AIO_MAX, aio_one, &walk, 0);
        break;
    default:
        tell(walk.now, walk.now, call & WITNESS_WRITE,
             (call & ~WITNESS_WRITE) >= WITNESS_VECTOR, (int)REGS_ARG0(regs),
             (call & 1) ? ~0ull : REGS_ARG3(regs), REGS_ARG2(regs));
    }
    return 0;
}

static __always_inline int request(struct io_kiocb *req)
{
    __u64 now = bpf_ktime_get_ns(), issue = now, *begun;
    __u32 tid = (__u32)bpf_get_current_pid_tgid(), length, setup;
    struct io_ring_ctx *ring;
    __s64 offset;
    __u8 opcode;
    int fd;

    GET(opcode, struct io_kiocb, req, opcode);
    if (opcode != OPCODE_READV && opcode != OPCODE_WRITEV && opcode != OPCODE_READ_FIXED &&
        opcode != OPCODE_WRITE_FIXED && opcode != OPCODE_READ && opcode != OPCODE_WRITE)
        return 0;
    if (!is_target())
        return 0;
    GET(offset, struct io_rw, req, kiocb.ki_pos);
    GET(length, struct io_rw, req, len);
    GET(fd, struct io_kiocb, req, cqe.fd);
    GET(ring, struct io_kiocb, req, ctx);
    GET(setup, struct io_ring_ctx, ring, flags);
    begun = bpf_map_lookup_elem(&entered, &tid);
    if (begun && !(setup & 2)) /* not SQPOLL: taken within the thread's own call */
        issue = *begun;
    tell(issue, now,
         opcode == OPCODE_WRITEV || opcode == OPCODE_WRITE_FIXED || opcode == OPCODE_WRITE,
         opcode == OPCODE_READV || opcode == OPCODE_WRITEV, fd, offset, length);
    return 0;
}

SEC("raw_tp/io_uring_submit_req")
int on_request(struct bpf_raw_tracepoint_args *ctx)
{
    return request((struct io_kiocb *)ctx->args[0]);
}

SEC("raw_tp/io_uring_submit_sqe")
int on_request_old(struct bpf_raw_tracepoint_args *ctx)
{
    return request((struct io_kiocb *)ctx->args[0]);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
    __u32 from = parent->tgid, to = child->tgid, one = 1;

    if (from != to && bpf_map_lookup_elem(&targets, &from))
        bpf_map_update_elem(&targets, &to, &one, BPF_ANY);
    return 0;
}
