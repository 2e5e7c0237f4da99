/* SPDX-License-Identifier: MIT */
#include "capture/preload_uring.h"

#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "capture/preload_async.h"

#define RINGS     128
#define FILES_MAX 65536u

/* Newer than some headers: */
#define SETUP_NO_SQARRAY        (1u << 16)
#define ENTER_REGISTERED_RING   (1u << 4)
#define REGISTER_RING_FDS       20u
#define UNREGISTER_RING_FDS     21u
#define REGISTER_USE_REGISTERED (1u << 31)

static struct uring rings[RINGS];
static struct io_uring_offsets {
    struct io_sqring_offsets sq;
    struct io_cqring_offsets cq;
    bool single; /* both rings in one mapping */
} ring_offsets[RINGS];
static int ring_count; /* slots ever used: 0 makes uring_is cheap */
static uint64_t ring_serial;

static struct uring *find(int fd)
{
    int count = __atomic_load_n(&ring_count, __ATOMIC_ACQUIRE);

    for (int i = 0; i < count; i++)
        if (rings[i].fd == fd && rings[i].space)
            return &rings[i];
    return NULL;
}

bool uring_is(int fd)
{
    return ring_count && fd >= 0 && find(fd);
}

struct uring *uring_find(int fd)
{
    struct uring *ring = ring_count && fd >= 0 ? find(fd) : NULL;

    return ring && ring->memory.sq_tail ? ring : NULL;
}

/* Rings are made now and then, by one thread: a race would cost a slot, no more. */
static struct uring *ring_new(int fd, uint32_t setup_flags)
{
    struct uring *ring = NULL;

    for (int i = 0; i < RINGS && !ring; i++) {
        if (rings[i].space)
            continue;
        ring = &rings[i];
        memset(ring, 0, sizeof(*ring));
        ring->fd = fd;
        ring->registered = -1;
        ring->setup_flags = setup_flags;
        ring->space = (++ring_serial << 8) | 2; /* no address: those are even and low ends 0 */
        if (i >= ring_count)
            __atomic_store_n(&ring_count, i + 1, __ATOMIC_RELEASE);
    }
    if (!ring)
        shim_unseen("io_uring rings beyond 128", 1);
    return ring;
}

struct uring *uring_learn(int fd, const struct uring_memory *memory, uint32_t setup_flags)
{
    struct uring *ring = find(fd);

    if (!ring)
        ring = ring_new(fd, setup_flags);
    if (ring && !ring->memory.sq_tail) {
        ring->memory = *memory;
        ring->completed = 0;
    }
    return ring;
}

void uring_made(int fd, const struct io_uring_params *params)
{
    struct uring *ring;

    uring_gone(fd);
    ring = ring_new(fd, params->flags);
    if (!ring)
        return;
    ring->offsets = &ring_offsets[ring - rings];
    ring->offsets->sq = params->sq_off;
    ring->offsets->cq = params->cq_off;
    ring->offsets->single = params->features & IORING_FEAT_SINGLE_MMAP;
}

void uring_mapped(int fd, uint64_t offset, void *mapped)
{
    struct uring *ring = find(fd);
    unsigned char *at = mapped;
    struct uring_memory *memory;
    const struct io_uring_offsets *offsets;

    if (!ring || !ring->offsets)
        return;
    offsets = ring->offsets;
    memory = &ring->memory;
    ring->mapped[offset == IORING_OFF_SQES ? 2 : offset == IORING_OFF_CQ_RING] = mapped;
    if (offset == IORING_OFF_SQES)
        memory->sqes = at;
    if (offset == IORING_OFF_CQ_RING || (offset == IORING_OFF_SQ_RING && offsets->single)) {
        memory->cq_mask = (uint32_t *)(void *)(at + offsets->cq.ring_mask);
        memory->cqes = at + offsets->cq.cqes;
        memory->cq_tail = (uint32_t *)(void *)(at + offsets->cq.tail);
    }
    if (offset == IORING_OFF_SQ_RING) {
        memory->sq_head = (uint32_t *)(void *)(at + offsets->sq.head);
        memory->sq_mask = (uint32_t *)(void *)(at + offsets->sq.ring_mask);
        memory->sq_array = (uint32_t *)(void *)(at + offsets->sq.array);
        memory->sq_tail = (uint32_t *)(void *)(at + offsets->sq.tail);
    }
}

/* Programs with system calls of their own making hand entries over unseen; the tail tells how
 * many. The entries themselves have long been used again. */
static void account(struct uring *ring)
{
    uint32_t unseen;

    if (!ring->memory.sq_tail)
        return;
    uring_look(ring);
    unseen = ring->offsets ? *ring->memory.sq_tail - ring->submitted : 0;
    if (unseen)
        shim_unseen(
            "io_uring ops handed over by the program's own system calls; bpf would see them",
            unseen);
    ring->submitted += unseen;
}

void uring_unmapped(const void *mapped)
{
    int count = __atomic_load_n(&ring_count, __ATOMIC_ACQUIRE);

    for (int i = 0; i < count; i++) {
        struct uring *ring = &rings[i];

        for (int part = 0; part < 3 && ring->space; part++) {
            if (ring->mapped[part] != mapped)
                continue;
            account(ring);
            memset(&ring->memory, 0, sizeof(ring->memory));
            return;
        }
    }
}

void uring_account_all(void)
{
    for (int i = 0; i < ring_count; i++)
        if (rings[i].space)
            account(&rings[i]);
}

void uring_gone(int fd)
{
    struct uring *ring = find(fd);

    if (!ring)
        return;
    account(ring);
    if (ring->files)
        RAW(munmap, ring->files, FILES_MAX * sizeof(uint64_t));
    ring->files = NULL;
    ring->fd = -1;
    ring->space = 0;
}

void uring_files(struct uring *ring, bool whole, uint32_t first, const int *fds, uint32_t count)
{
    long mapped;

    if (whole)
        ring->file_count = 0;
    if (!fds || first >= FILES_MAX || count > FILES_MAX - first)
        return;
    if (!ring->files) {
        mapped = RAW(mmap, 0, FILES_MAX * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped < 0 && mapped > -4096)
            return;
        ring->files = (uint64_t *)mapped;
    }
    for (uint32_t i = 0; i < count; i++)
        ring->files[first + i] = fds[i] < 0 ? SLOT_IGNORED : file_slot(fds[i]);
    if (ring->file_count < first + count)
        ring->file_count = first + count;
}

static uint32_t flags_of_sqe(const struct io_uring_sqe *sqe, const struct uring *ring)
{
    uint32_t flags = 0;

    if (sqe->flags & IOSQE_FIXED_FILE)
        flags |= TRACE_F_FIXED_FILE;
    if (sqe->flags & (IOSQE_IO_LINK | IOSQE_IO_HARDLINK))
        flags |= TRACE_F_LINK;
    if (sqe->flags & IOSQE_IO_DRAIN)
        flags |= TRACE_F_DRAIN;
    if (ring->setup_flags & IORING_SETUP_SQPOLL)
        flags |= TRACE_F_SQPOLL;
    if (ring->setup_flags & IORING_SETUP_IOPOLL)
        flags |= TRACE_F_POLLED;
    if (sqe->opcode == IORING_OP_READ_FIXED || sqe->opcode == IORING_OP_WRITE_FIXED)
        flags |= TRACE_F_FIXED_BUF;
    return flags;
}

static uint64_t length_of_sqe(const struct io_uring_sqe *sqe)
{
    const struct iovec *vector = (const struct iovec *)(uintptr_t)sqe->addr;
    uint64_t bytes = 0;

    if (sqe->opcode != IORING_OP_READV && sqe->opcode != IORING_OP_WRITEV)
        return sqe->len;
    for (uint32_t i = 0; i < sqe->len; i++)
        bytes += vector[i].iov_len;
    return bytes;
}

/* The kind of a transfer, sync or allocation; -1 for what is not recorded. */
static int kind_of_sqe(const struct io_uring_sqe *sqe)
{
    switch (sqe->opcode) {
    case IORING_OP_READV:
    case IORING_OP_READ_FIXED:
    case IORING_OP_READ: return TRACE_READ;
    case IORING_OP_WRITEV:
    case IORING_OP_WRITE_FIXED:
    case IORING_OP_WRITE: return TRACE_WRITE;
    case IORING_OP_FSYNC:
        return sqe->fsync_flags & IORING_FSYNC_DATASYNC ? TRACE_FDATASYNC : TRACE_FSYNC;
    case IORING_OP_SYNC_FILE_RANGE: return TRACE_SYNC_RANGE;
    case IORING_OP_FALLOCATE: return TRACE_FALLOCATE;
    case IORING_OP_CLOSE:
        file_forget(sqe->fd);
        shim_unseen("io_uring close", 1);
        return -1;
    case IORING_OP_OPENAT:
    case IORING_OP_OPENAT2: shim_unseen("io_uring open", 1); return -1;
    case IORING_OP_UNLINKAT:
    case IORING_OP_RENAMEAT:
    case IORING_OP_MKDIRAT: shim_unseen("io_uring name call", 1); return -1;
    default: return -1;
    }
}

static bool op_of_sqe(const struct io_uring_sqe *sqe, const struct uring *ring,
                      struct async_op *op)
{
    int kind = kind_of_sqe(sqe);
    uint32_t fixed = (uint32_t)sqe->fd;

    if (kind < 0)
        return false;
    memset(op, 0, sizeof(*op));
    op->kind = (uint8_t)kind;
    op->api = TRACE_API_IO_URING;
    op->flags = flags_of_sqe(sqe, ring);
    if (!(sqe->flags & IOSQE_FIXED_FILE))
        op->slot = file_slot(sqe->fd);
    else
        op->slot = fixed < ring->file_count ? ring->files[fixed] : SLOT_IGNORED;
    op->offset = sqe->off > INT64_MAX ? TRACE_UNKNOWN_U64 : sqe->off;
    if (kind == TRACE_READ || kind == TRACE_WRITE) {
        op->length = length_of_sqe(sqe);
        op->flags |= rwf_op_flags((int)sqe->rw_flags);
        if (op->offset == TRACE_UNKNOWN_U64)
            op->flags |= TRACE_F_POSITION;
        if (kind == TRACE_WRITE && (op->slot & SLOT_APPEND)) {
            op->flags |= TRACE_F_APPEND;
            op->offset = TRACE_UNKNOWN_U64;
        }
    } else if (kind == TRACE_SYNC_RANGE) {
        op->length = sqe->len;
    } else if (kind == TRACE_FALLOCATE) {
        op->length = sqe->addr;
        op->arg = sqe->len;
    } else {
        op->offset = TRACE_UNKNOWN_U64;
    }
    return true;
}

void uring_submit(struct uring *ring, uint32_t at, uint32_t count, bool array)
{
    const struct uring_memory *memory = &ring->memory;
    uint32_t mask = *memory->sq_mask, batch;
    size_t size = ring->setup_flags & IORING_SETUP_SQE128 ? 128 : 64;
    uint64_t begin_ns = stamp_ns();

    if (!memory->sqes || count == 0)
        return;
    batch = count > 1 ? async_batch() : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = array ? memory->sq_array[(at + i) & mask] : at + i;
        const struct io_uring_sqe *sqe =
            (const struct io_uring_sqe *)(const void *)(memory->sqes + (index & mask) * size);
        struct async_op op;
        uint64_t id = 0;

        if (op_of_sqe(sqe, ring, &op))
            id = async_add(ring->space, sqe->user_data, &op);
        if (id && (sqe->opcode == IORING_OP_WRITE || sqe->opcode == IORING_OP_WRITE_FIXED))
            content_written((const void *)(uintptr_t)sqe->addr, sqe->len);
        if (id)
            async_issued(ring->space, sqe->user_data, id, &op, begin_ns, batch);
        else
            async_hold(ring->space, sqe->user_data);
    }
}

/* What of to_submit has not been looked at. */
static void look_at_submissions(struct uring *ring, uint32_t to_submit)
{
    const struct uring_memory *memory = &ring->memory;
    uint32_t head = __atomic_load_n(memory->sq_head, __ATOMIC_ACQUIRE);
    uint32_t tail = __atomic_load_n(memory->sq_tail, __ATOMIC_ACQUIRE), end = head + to_submit;

    /* The kernel's own thread takes what is there; else what is named, which may have been
     * named before. */
    if (ring->setup_flags & IORING_SETUP_SQPOLL || (int32_t)(tail - end) < 0)
        end = tail;
    if (ring->setup_flags & IORING_SETUP_SQPOLL &&
        tail - ring->submitted > *memory->sq_mask + 1) {
        shim_unseen("io_uring ops handed over without a call; bpf would see them",
                    tail - ring->submitted - *memory->sq_mask - 1);
        ring->submitted = tail - *memory->sq_mask - 1;
    }
    if ((int32_t)(end - ring->submitted) <= 0)
        return;
    uring_submit(ring, ring->submitted, end - ring->submitted,
                 !(ring->setup_flags & SETUP_NO_SQARRAY));
    ring->submitted = end;
}

void uring_look(struct uring *ring)
{
    const struct uring_memory *memory = &ring->memory;
    size_t size = ring->setup_flags & IORING_SETUP_CQE32 ? 32 : 16;
    uint32_t tail, mask;
    uint64_t now;

    if (!memory->cqes)
        return;
    tail = __atomic_load_n(memory->cq_tail, __ATOMIC_ACQUIRE);
    mask = *memory->cq_mask;
    if (tail == ring->completed)
        return;
    now = stamp_ns();
    if (tail - ring->completed > mask + 1) {
        if (!ring->offsets) /* else the submissions are not seen either, and counted */
            shim_unseen("io_uring completions taken without a call",
                        tail - ring->completed - mask - 1);
        ring->completed = tail - mask - 1;
    }
    for (; ring->completed != tail; ring->completed++) {
        const struct io_uring_cqe *cqe =
            (const struct io_uring_cqe *)(const void *)(memory->cqes +
                                                        (ring->completed & mask) * size);

        async_done(ring->space, cqe->user_data, cqe->res, now, TRACE_COMPLETION_UPPER);
    }
}

long uring_call_setup(uint32_t entries, struct io_uring_params *params)
{
    long fd = RAW(io_uring_setup, entries, params);

    if (fd >= 0 && shim_ready())
        uring_made((int)fd, params);
    return fd;
}

static struct uring *find_registered(int number)
{
    for (int i = 0; i < ring_count; i++)
        if (rings[i].space && rings[i].registered == number && rings[i].memory.sq_tail)
            return &rings[i];
    return NULL;
}

long uring_call_enter(int fd, uint32_t to_submit, uint32_t min, uint32_t flags,
                      const void *extra, size_t extra_bytes)
{
    struct uring *ring = NULL;
    long result;

    if (shim_ready())
        ring = flags & ENTER_REGISTERED_RING ? find_registered(fd) : uring_find(fd);
    if (ring) {
        uring_look(ring);
        if (to_submit > 0 || ring->setup_flags & IORING_SETUP_SQPOLL)
            look_at_submissions(ring, to_submit);
    }
    result = RAW(io_uring_enter, fd, to_submit, min, flags, extra, extra_bytes);
    if (ring)
        uring_look(ring);
    return result;
}

/* A ring's own descriptor among those that get a number. */
static void note_ring_numbers(const struct io_uring_rsrc_update *updates, uint32_t count,
                              bool registered)
{
    for (uint32_t i = 0; i < count; i++) {
        struct uring *ring =
            registered ? find((int)updates[i].data) : find_registered((int)updates[i].offset);

        if (ring)
            ring->registered = registered ? (int)updates[i].offset : -1;
    }
}

long uring_call_register(int fd, uint32_t code, void *argument, uint32_t count)
{
    struct uring *ring = code & REGISTER_USE_REGISTERED ? find_registered(fd)
                         : ring_count                   ? find(fd)
                                                        : NULL;
    long result = RAW(io_uring_register, fd, code, argument, count);
    const struct io_uring_files_update *update = argument;

    if (!ring || result < 0)
        return result;
    switch (code & ~REGISTER_USE_REGISTERED) {
    case IORING_REGISTER_FILES: uring_files(ring, true, 0, argument, count); break;
    case IORING_UNREGISTER_FILES: uring_files(ring, true, 0, NULL, 0); break;
    case IORING_REGISTER_FILES_UPDATE:
        uring_files(ring, false, update->offset, (const int *)(uintptr_t)update->fds, count);
        break;
    case REGISTER_RING_FDS: note_ring_numbers(argument, (uint32_t)result, true); break;
    case UNREGISTER_RING_FDS: note_ring_numbers(argument, (uint32_t)result, false); break;
    default: break;
    }
    return result;
}
