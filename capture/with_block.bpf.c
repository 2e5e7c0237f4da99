/* SPDX-License-Identifier: MIT */
/*
 * The programs of the block recorder: a request is followed from its queueing to its completion
 * and delivered as one event then.
 */
#include "capture/bpf_event.h"
#include "capture/bpf_kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum {
    BIOS_MAX = 128, /* counted in one request */
    REQUESTS_MAX = 65536,
};

const volatile bool have_cast = false;
/* Up to 5.10 the request queue comes before the request or bio. */
const volatile __u32 request_argument = 0;
const volatile __u32 bio_argument = 0;

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 23);
} events SEC(".maps");

/* Disks recorded: kernel dev_t -> enum bpf_block_mode. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 256);
    __type(key, __u32);
    __type(value, __u32);
} disks SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, REQUESTS_MAX);
    __type(key, __u64);
    __type(value, struct bpf_event_block);
} requests SEC(".maps");

/* Who queued a bio and when; the request that carries it asks. */
struct queued {
    __u64 time_ns;
    __u32 pid, tid;
    char comm[16];
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, REQUESTS_MAX);
    __type(key, __u64);
    __type(value, struct queued);
} bios SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, BPF_LOST_KINDS);
    __type(key, __u32);
    __type(value, __u64);
} lost SEC(".maps");

static __always_inline void lost_add(__u32 kind)
{
    __u64 *n = bpf_map_lookup_elem(&lost, &kind);

    if (n)
        *n += 1;
}

/* ---- whose is it ------------------------------------------------------------------------- */

static __always_inline __u32 disk_device(struct gendisk *disk)
{
    return disk ? (__u32)BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor)
                : 0;
}

static __always_inline __u32 request_device(struct request *request)
{
    struct request___disk *old = (void *)request;

    if (bpf_core_field_exists(((struct request_queue *)0)->disk))
        return disk_device(BPF_CORE_READ(request, q, disk));
    if (bpf_core_field_exists(old->rq_disk))
        return disk_device(BPF_CORE_READ(old, rq_disk));
    return 0;
}

static __always_inline __u32 bio_device(struct bio *bio)
{
    struct bio___disk *old = (void *)bio;

    if (bpf_core_field_exists(bio->bi_bdev))
        return disk_device(BPF_CORE_READ(bio, bi_bdev, bd_disk));
    if (bpf_core_field_exists(old->bi_disk))
        return disk_device(BPF_CORE_READ(old, bi_disk));
    return 0;
}

static __always_inline __u32 disk_mode(__u32 device)
{
    __u32 *mode = bpf_map_lookup_elem(&disks, &device);

    return mode ? *mode : 0;
}

/* The verifier allows no sum in the context's address, which is what the compiler makes of an
 * index or of two loads alike. */
static __always_inline __u64 argument(struct bpf_raw_tracepoint_args *ctx, __u32 index)
{
    __u64 value;

    if (!index)
        return ctx->args[0];
    value = ctx->args[1];
    barrier_var(value);
    return value;
}

/* ---- events ------------------------------------------------------------------------------ */

static __always_inline void block_output(struct bpf_event_block *from, __s32 error, bool done)
{
    struct bpf_event_block *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

    if (!event) {
        lost_add(BPF_LOST_RING);
        return;
    }
    *event = *from;
    event->done_ns = done ? bpf_ktime_get_ns() : 0;
    event->error = error;
    bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP); /* the reader looks by the clock */
}

static __always_inline void origin_fill(struct bpf_event_block *entry, __u64 bio)
{
    struct queued *queued = bio ? bpf_map_lookup_elem(&bios, &bio) : NULL;
    __u64 id = bpf_get_current_pid_tgid();

    entry->head.type = BPF_EVENT_BLOCK;
    if (queued) {
        entry->queue_ns = queued->time_ns;
        entry->head.pid = queued->pid;
        entry->head.tid = queued->tid;
        __builtin_memcpy(entry->comm, queued->comm, sizeof(entry->comm));
        return;
    }
    entry->head.pid = id >> 32;
    entry->head.tid = (__u32)id;
    bpf_get_current_comm(entry->comm, sizeof(entry->comm));
}

/* ---- requests ---------------------------------------------------------------------------- */

static __always_inline struct bpf_event_block *request_entry(struct request *request,
                                                             __u32 device)
{
    __u64 key = (__u64)request;
    struct bpf_event_block *entry = bpf_map_lookup_elem(&requests, &key), fresh = {};

    if (entry)
        return entry;
    fresh.device = device;
    origin_fill(&fresh, (__u64)BPF_CORE_READ(request, bio));
    if (bpf_map_update_elem(&requests, &key, &fresh, BPF_ANY)) {
        lost_add(BPF_LOST_REQUESTS);
        return NULL;
    }
    return bpf_map_lookup_elem(&requests, &key);
}

static __always_inline __u32 bios_count(struct request *request)
{
    struct bio *bio = BPF_CORE_READ(request, bio);
    __u32 count = 0;

    for (int i = 0; i < BIOS_MAX && bio; i++) {
        bio = BPF_CORE_READ(bio, bi_next);
        count++;
    }
    return count;
}

/* A request that the driver has and that begins anew: the kernel has used its memory again, and its
 * completion was not seen. It is delivered without one. */
static __always_inline void missed_completion(struct request *request)
{
    __u64 key = (__u64)request;
    struct bpf_event_block *entry = bpf_map_lookup_elem(&requests, &key);

    if (!entry || !entry->with_driver)
        return;
    block_output(entry, 0, false);
    bpf_map_delete_elem(&requests, &key);
}

SEC("raw_tp/block_rq_requeue")
int on_requeue(struct bpf_raw_tracepoint_args *ctx)
{
    __u64 key = argument(ctx, request_argument);
    struct bpf_event_block *entry = bpf_map_lookup_elem(&requests, &key);

    if (entry)
        entry->with_driver = 0;
    return 0;
}

SEC("raw_tp/block_rq_insert")
int on_insert(struct bpf_raw_tracepoint_args *ctx)
{
    struct request *request = (struct request *)argument(ctx, request_argument);
    struct bpf_event_block *entry;
    __u32 device = request_device(request);

    if (disk_mode(device) != BPF_BLOCK_REQUESTS)
        return 0;
    missed_completion(request);
    entry = request_entry(request, device);
    if (entry && !entry->insert_ns)
        entry->insert_ns = bpf_ktime_get_ns();
    return 0;
}

SEC("raw_tp/block_rq_issue")
int on_issue(struct bpf_raw_tracepoint_args *ctx)
{
    struct request *request = (struct request *)argument(ctx, request_argument);
    struct bpf_event_block *entry;
    __u32 device = request_device(request);

    if (disk_mode(device) != BPF_BLOCK_REQUESTS)
        return 0;
    missed_completion(request);
    entry = request_entry(request, device);
    if (!entry)
        return 0;
    entry->with_driver = 1;
    entry->sector = BPF_CORE_READ(request, __sector);
    entry->bytes = BPF_CORE_READ(request, __data_len);
    entry->command = BPF_CORE_READ(request, cmd_flags);
    entry->bios = bios_count(request);
    entry->done_bytes = 0;
    entry->issues++;
    entry->issue_ns = bpf_ktime_get_ns();
    return 0;
}

SEC("raw_tp/block_rq_complete")
int on_complete(struct bpf_raw_tracepoint_args *ctx)
{
    struct request *request = (struct request *)ctx->args[0];
    __s32 error = (__s32)ctx->args[1];
    __u32 bytes = (__u32)ctx->args[2];
    __u64 key = (__u64)request;
    struct bpf_event_block *entry = bpf_map_lookup_elem(&requests, &key);

    if (!entry)
        return 0;
    entry->done_bytes += bytes;
    /* More of it will complete later: what remains is larger than this part. */
    if (!error && bytes < BPF_CORE_READ(request, __data_len))
        return 0;
    if (entry->issues) /* one that only carried a flush never reached the driver */
        block_output(entry, error, true);
    bpf_map_delete_elem(&requests, &key);
    return 0;
}

/* The request has become part of another one. */
SEC("raw_tp/block_rq_merge")
int on_merge(struct bpf_raw_tracepoint_args *ctx)
{
    __u64 key = argument(ctx, request_argument);

    bpf_map_delete_elem(&requests, &key);
    return 0;
}

/* ---- bios -------------------------------------------------------------------------------- */

/* On a device without requests the bio is all there is: it counts as issued when queued. */
static __always_inline void bio_begin(struct bio *bio, __u32 device, struct queued *queued)
{
    struct bpf_event_block entry = {};
    __u64 key = (__u64)bio;

    entry.device = device;
    entry.sector = BPF_CORE_READ(bio, bi_iter.bi_sector);
    entry.bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
    entry.command = BPF_CORE_READ(bio, bi_opf);
    entry.issues = entry.bios = 1;
    entry.head.type = BPF_EVENT_BLOCK;
    entry.head.class = BPF_BLOCK_BIOS;
    entry.head.pid = queued->pid;
    entry.head.tid = queued->tid;
    __builtin_memcpy(entry.comm, queued->comm, sizeof(entry.comm));
    entry.queue_ns = entry.issue_ns = queued->time_ns;
    if (bpf_map_update_elem(&requests, &key, &entry, BPF_ANY))
        lost_add(BPF_LOST_REQUESTS);
}

SEC("raw_tp/block_bio_queue")
int on_queue(struct bpf_raw_tracepoint_args *ctx)
{
    struct bio *bio = (struct bio *)argument(ctx, bio_argument);
    __u32 device = bio_device(bio), mode = disk_mode(device);
    __u64 id = bpf_get_current_pid_tgid(), key = (__u64)bio;
    struct queued queued = {.pid = id >> 32, .tid = (__u32)id};

    if (!mode)
        return 0;
    queued.time_ns = bpf_ktime_get_ns();
    bpf_get_current_comm(queued.comm, sizeof(queued.comm));
    if (mode == BPF_BLOCK_BIOS)
        bio_begin(bio, device, &queued);
    else
        bpf_map_update_elem(&bios, &key, &queued, BPF_ANY);
    return 0;
}

SEC("raw_tp/block_bio_complete") /* (queue, bio) since 5.8 */
int on_bio_complete(struct bpf_raw_tracepoint_args *ctx)
{
    struct bio *bio = (struct bio *)ctx->args[1];
    __u64 key = (__u64)bio;
    struct bpf_event_block *entry = bpf_map_lookup_elem(&requests, &key);

    if (!entry)
        return 0;
    entry->done_bytes = entry->bytes;
    block_output(entry, BPF_CORE_READ(bio, bi_status), true);
    bpf_map_delete_elem(&requests, &key);
    return 0;
}
