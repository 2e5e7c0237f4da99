/* SPDX-License-Identifier: MIT */
/*
 * BPF side: libaio. io_submit's control blocks are read from user memory at its entry; the
 * events of io_getevents at its return. Events a program takes from the completion ring by
 * itself make no call: they are found at the context's next call between the head of last time
 * and the present one.
 */
#ifndef CAPTURE_BPF_PROG_AIO_H
#define CAPTURE_BPF_PROG_AIO_H

#include "capture/bpf_prog_file.h"
#include "traces/trace.h"

enum {
    AIO_CHUNK = 64,
    AIO_CHUNKS = 1024, /* AIO_CHUNK * AIO_CHUNKS ops of one call are walked */
    AIO_RING_MAGIC = 0xa10a10a1,
};

struct aio_head { /* as in fs/aio.c: the kernel's interface to user space */
    __u32 id, count, head, tail, magic, compat, incompat, header_bytes;
};

struct aio_key {
    __u64 context;
    __u64 pid;
};

/* Where the head of a context's ring was when last looked at. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, struct aio_key);
    __type(value, __u32);
} aio_heads SEC(".maps");

/* The sum of a user's iovec; IOV_UNREAD when it cannot be read. */
#define IOV_UNREAD (~0ull)
__noinline __u64 iov_bytes(__u64 iov, __u64 count)
{
    struct scratch *s = scratch_get();
    __u64 bytes = count * sizeof(s->iov[0]), sum = 0;

    if (!s)
        return 0;
    barrier_var(bytes); /* what is bounded is what is used: older verifiers see no further */
    if (bytes > sizeof(s->iov))
        return 0;
    if (bpf_probe_read_user(s->iov, bytes, (const void *)iov))
        return IOV_UNREAD;
    for (__u32 i = 0; i < BPF_IOV_MAX; i++) {
        if (i >= count)
            break;
        sum += s->iov[i].length;
    }
    return sum;
}

/* An op's length from its iovec. Whether one that cannot be read is a loss or the program's own
 * fault is known when the op has ended: user space counts it. */
static __always_inline __u64 iov_length(__u64 iov, __u64 count, __u32 *flags)
{
    __u64 length = iov_bytes(iov, count);

    if (length != IOV_UNREAD)
        return length;
    *flags |= BPF_OP_NO_LENGTH;
    return 0;
}

static __always_inline int aio_kind(__u16 opcode, bool *ret_vector)
{
    *ret_vector = opcode == 7 || opcode == 8;
    switch (opcode) {
    case 0:
    case 7: return TRACE_READ;
    case 1:
    case 8: return TRACE_WRITE;
    case 2: return TRACE_FSYNC;
    case 3: return TRACE_FDATASYNC;
    }
    return -1;
}

/*
 * A call's ops, one by one. Each step is a function of its own that takes a number and finds
 * the rest in the scratch walk: so it is verified once, and the loops around it (aio_walk) are
 * short enough for every kernel. bpf_loop would need 5.17. A step returns false behind the
 * last.
 */

/* One control block of io_submit. */
__noinline int aio_submit_one(__u32 index)
{
    struct scratch *s = scratch_get();
    struct bpf_event_op *event;
    struct aio_block *block;
    struct aio_walk *walk;
    struct file *file;
    __u64 address = 0, length;
    __u32 flags = index == 0 ? BPF_OP_FIRST : 0;
    bool vector;
    int kind;

    if (!s || index >= s->walk.count)
        return false;
    walk = &s->walk;
    block = &walk->block;
    if (bpf_probe_read_user(&address, sizeof(address),
                            (void *)(walk->blocks + index * sizeof(address))) ||
        bpf_probe_read_user(block, sizeof(*block), (void *)address)) {
        lost_add(BPF_LOST_USER, 1);
        return true;
    }
    kind = aio_kind(block->opcode, &vector);
    if (kind < 0)
        return true;
    file = file_of_fd(block->fd);
    if (!file_meet(&walk->known, file, &walk->key, kind >= TRACE_FSYNC))
        return true;
    length = block->bytes;
    if (vector)
        length = iov_length(block->buffer, block->bytes, &flags);
    else if (kind != TRACE_READ && kind != TRACE_WRITE)
        length = 0;
    event = event_reserve(sizeof(*event));
    if (!event)
        return true;
    event_head(&event->head, BPF_EVENT_SUBMIT, kind, BPF_CLASS_AIO_SUBMIT);
    event->head.api = TRACE_API_LIBAIO;
    event->head.flags = flags;
    event->issue_ns = bpf_ktime_get_ns(); /* each its own: the order within the batch */
    event->cookie = address;
    event->context = walk->context;
    event->offset = block->offset;
    event->length = length;
    event->file = walk->key;
    GET(event->file_flags, struct file, file, f_flags);
    event->call_flags = block->rw_flags;
    event->extra = index;
    event->batch = walk->count > 1 ? walk->batch : 0;
    event_submit(event);
    return true;
}

static __always_inline void complete_output(__u8 type, __u8 api, __u32 flags, __u64 now,
                                            __u64 cookie, __u64 context, __s64 result)
{
    struct bpf_event_complete *event = notice_reserve(sizeof(*event));

    if (!event) {
        if (type == BPF_EVENT_COMPLETE)
            lost_add(BPF_LOST_DONE, 1);
        return;
    }
    event_head(&event->head, type, 0, 0);
    event->head.api = api;
    event->head.flags = flags;
    event->time_ns = now;
    event->cookie = cookie;
    event->context = context;
    event->result = result;
    event_submit(event);
}

/* One event the program took from the ring itself. */
__noinline int aio_ring_one(__u32 index)
{
    struct scratch *s = scratch_get();
    struct aio_event *done;
    struct aio_walk *walk;
    __u64 at;

    if (!s || index >= s->walk.count)
        return false;
    walk = &s->walk;
    done = &walk->done;
    at = walk->first + index;
    if (at >= walk->ring_count)
        at -= walk->ring_count;
    if (bpf_probe_read_user(
            done, sizeof(*done),
            (void *)(walk->context + sizeof(struct aio_head) + at * sizeof(*done)))) {
        lost_add(BPF_LOST_USER, 1);
        return true;
    }
    complete_output(BPF_EVENT_COMPLETE, TRACE_API_LIBAIO, 0, walk->now, done->block,
                    walk->context, done->result);
    return true;
}

/* One event io_getevents returned. */
__noinline int aio_reap_one(__u32 index)
{
    struct scratch *s = scratch_get();
    struct aio_event *done;
    struct aio_walk *walk;

    if (!s || index >= s->walk.count)
        return false;
    walk = &s->walk;
    done = &walk->done;
    if (bpf_probe_read_user(done, sizeof(*done),
                            (void *)(walk->first + index * sizeof(*done)))) {
        lost_add(BPF_LOST_USER, 1);
        return true;
    }
    /* What was not there when the call began arrived while it waited. */
    complete_output(BPF_EVENT_COMPLETE, TRACE_API_LIBAIO,
                    index >= walk->ready ? BPF_OP_EXACT : 0, walk->now, done->block,
                    walk->context, done->result);
    return true;
}

enum aio_step {
    AIO_SUBMIT_ONE,
    AIO_RING_ONE,
    AIO_REAP_ONE,
};

__noinline int aio_chunk(__u32 first, __u32 step)
{
    for (__u32 i = 0; i < AIO_CHUNK; i++) {
        int more = step == AIO_SUBMIT_ONE ? aio_submit_one(first + i)
                   : step == AIO_RING_ONE ? aio_ring_one(first + i)
                                          : aio_reap_one(first + i);

        if (!more)
            return false;
    }
    return true;
}

/* Takes the step for each of count ops. */
static __always_inline void aio_walk(__u64 count, __u32 step)
{
    for (__u32 i = 0; i < AIO_CHUNKS; i++)
        if (!aio_chunk(i * AIO_CHUNK, step))
            return;
    if (count > AIO_CHUNK * AIO_CHUNKS)
        lost_add(BPF_LOST_BATCH, count - AIO_CHUNK * AIO_CHUNKS);
}

/*
 * Looks at a context's ring at the start of a call on it: delivers what was taken since last
 * time, with all also what waits to be taken. Returns how many events wait.
 */
__noinline int aio_ring_look(__u64 context, __u64 now, int all)
{
    struct aio_key key = {.context = context, .pid = bpf_get_current_pid_tgid() >> 32};
    struct scratch *s = scratch_get();
    struct aio_head ring;
    __u32 *last, upto, ready;

    if (!s)
        return 0;
    if (bpf_probe_read_user(&ring, sizeof(ring), (void *)context)) {
        /* The program has never looked at its ring, so it has taken nothing from it. */
        upto = 0;
        bpf_map_update_elem(&aio_heads, &key, &upto, BPF_NOEXIST);
        return 0;
    }
    if (ring.magic != AIO_RING_MAGIC || !ring.count || ring.head >= ring.count ||
        ring.tail >= ring.count)
        return 0;
    ready = (ring.tail + ring.count - ring.head) % ring.count;
    upto = all ? ring.tail : ring.head;
    last = bpf_map_lookup_elem(&aio_heads, &key);
    if (last && *last < ring.count) {
        s->walk.now = now;
        s->walk.context = context;
        s->walk.first = *last;
        s->walk.ring_count = ring.count;
        s->walk.count = (upto + ring.count - *last) % ring.count;
        if (s->walk.count)
            aio_walk(s->walk.count, AIO_RING_ONE);
    }
    if (all)
        bpf_map_delete_elem(&aio_heads, &key);
    else
        bpf_map_update_elem(&aio_heads, &key, &ring.head, BPF_ANY);
    return ready;
}

static __noinline void aio_submit_enter(struct bpf_thread *thread)
{
    struct scratch *s = scratch_get();

    if (!s || (__s64)thread->args[1] <= 0)
        return;
    thread_announce(thread);
    aio_ring_look(thread->args[0], thread->enter_ns, 0);
    thread->batch++;
    s->walk.known = thread->known;
    s->walk.batch = thread->batch;
    s->walk.context = thread->args[0];
    s->walk.count = thread->args[1];
    s->walk.blocks = thread->args[2];
    aio_walk(s->walk.count, AIO_SUBMIT_ONE);
    thread->known = s->walk.known;
}

static __noinline void aio_submit_exit(struct bpf_thread *thread, __s64 result)
{
    complete_output(BPF_EVENT_SUBMITTED, TRACE_API_LIBAIO, 0, bpf_ktime_get_ns(),
                    thread->enter_ns, thread->args[0], result);
}

static __noinline void aio_reap_exit(struct bpf_thread *thread, __s64 result)
{
    struct aio_key key = {.context = thread->args[0], .pid = thread->pid};
    struct scratch *s = scratch_get();
    struct aio_head ring;

    if (!s || result <= 0)
        return;
    s->walk.now = bpf_ktime_get_ns();
    s->walk.context = thread->args[0];
    s->walk.first = thread->args[3];
    s->walk.ready = thread->aio_ready;
    s->walk.count = result;
    aio_walk(result, AIO_REAP_ONE);
    if (bpf_probe_read_user(&ring, sizeof(ring), (void *)thread->args[0]) ||
        ring.magic != AIO_RING_MAGIC)
        ring.head = ~0u; /* moved, to where cannot be told */
    bpf_map_update_elem(&aio_heads, &key, &ring.head, BPF_ANY);
}

#endif
