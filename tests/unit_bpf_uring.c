/* SPDX-License-Identifier: MIT */
/* The bpf recorder against io_uring, used by its system calls: batches, linked ops, drains,
 * registered files and buffers, vectors, positions, names, SQPOLL. */
#include "tests/bpf_session.h"

#include <linux/io_uring.h>
#include <sys/uio.h>

extern const struct recorder recorder_bpf;

enum {
    ENTRIES = 128
};

static struct {
    int fd;
    unsigned int *sq_tail, *sq_mask, *sq_array, *sq_flags, *cq_head, *cq_tail, *cq_mask;
    unsigned int tail; /* prepared, not yet published */
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
} ring;

static char buffer[64][4096] __attribute__((aligned(4096)));
static int fd;

static int ring_new(unsigned int flags)
{
    struct io_uring_params p = {.flags = flags, .sq_thread_idle = 100};
    char *map;

    ring.fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &p);
    if (ring.fd < 0)
        return 1;
    if (!(p.features & IORING_FEAT_SINGLE_MMAP))
        return 1;
    map = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe) + 4096,
               PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
    ring.sqes = mmap(NULL, p.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQES);
    if (map == MAP_FAILED || ring.sqes == MAP_FAILED)
        return 1;
    ring.sq_tail = (unsigned int *)(map + p.sq_off.tail);
    ring.sq_mask = (unsigned int *)(map + p.sq_off.ring_mask);
    ring.sq_array = (unsigned int *)(map + p.sq_off.array);
    ring.sq_flags = (unsigned int *)(map + p.sq_off.flags);
    ring.cq_head = (unsigned int *)(map + p.cq_off.head);
    ring.cq_tail = (unsigned int *)(map + p.cq_off.tail);
    ring.cq_mask = (unsigned int *)(map + p.cq_off.ring_mask);
    ring.cqes = (struct io_uring_cqe *)(map + p.cq_off.cqes);
    ring.tail = *ring.sq_tail;
    return 0;
}

static struct io_uring_sqe *sqe_new(uint8_t opcode, int file, void *address, uint32_t length,
                                    uint64_t offset)
{
    unsigned int at = ring.tail++ & *ring.sq_mask;
    struct io_uring_sqe *sqe = &ring.sqes[at];

    memset(sqe, 0, sizeof(*sqe));
    sqe->opcode = opcode;
    sqe->fd = file;
    sqe->addr = (uintptr_t)address;
    sqe->len = length;
    sqe->off = offset;
    ring.sq_array[at] = at;
    return sqe;
}

static int enter(unsigned int count)
{
    __atomic_store_n(ring.sq_tail, ring.tail, __ATOMIC_RELEASE);
    return (int)syscall(SYS_io_uring_enter, ring.fd, count, count, IORING_ENTER_GETEVENTS, NULL,
                        0) != (int)count;
}

/* Takes count completions; the sum of their results. */
static int take(unsigned int count)
{
    int sum = 0;

    for (unsigned int i = 0; i < count; i++) {
        while (__atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE) == *ring.cq_head)
            ;
        sum += ring.cqes[*ring.cq_head & *ring.cq_mask].res;
        __atomic_store_n(ring.cq_head, *ring.cq_head + 1, __ATOMIC_RELEASE);
    }
    return sum;
}

static void did_uring(uint32_t kind, uint64_t offset, uint64_t length, int64_t result,
                      uint32_t flags, uint32_t batch)
{
    did(kind, TRACE_API_IO_URING, "u", offset, length, result);
    did_flags(flags);
    truths->list[truths->count - 1].batch = batch;
}

static int start(unsigned int flags)
{
    fd = open("u", O_CREAT | O_RDWR, 0600);
    did(TRACE_CREATE, TRACE_API_SYNC, "u", 0, 0, 0);
    return fd < 0 || ring_new(flags);
}

static int work_batches(void)
{
    uint64_t at = 0;

    if (start(0))
        return 1;
    for (unsigned int batch = 1; batch <= 64; batch++) {
        for (unsigned int i = 0; i < batch; i++, at += 4096) {
            sqe_new(IORING_OP_WRITE, fd, buffer[0], 4096, at);
            did_uring(TRACE_WRITE, at, 4096, 4096, 0, batch == 1 ? 0 : batch);
        }
        if (enter(batch) || take(batch) != (int)batch * 4096)
            return 2;
    }
    return 0;
}

static int work_fixed(void)
{
    struct iovec iov[2] = {{buffer[0], 4096}, {buffer[1], 4096}};
    int files[3] = {-1, -1, -1};

    if (start(0))
        return 1;
    files[2] = fd;
    if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, iov, 2) != 0 ||
        syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, files, 3) != 0)
        return 2;
    sqe_new(IORING_OP_WRITE_FIXED, 2, buffer[1], 4096, 8192)->flags = IOSQE_FIXED_FILE;
    ring.sqes[(ring.tail - 1) & *ring.sq_mask].buf_index = 1;
    did_uring(TRACE_WRITE, 8192, 4096, 4096, TRACE_F_FIXED_FILE | TRACE_F_FIXED_BUF, 0);
    if (enter(1) || take(1) != 4096)
        return 3;
    sqe_new(IORING_OP_READ_FIXED, fd, buffer[0], 512, 8192);
    did_uring(TRACE_READ, 8192, 512, 512, TRACE_F_FIXED_BUF, 1);
    sqe_new(IORING_OP_READ, 2, buffer[3], 100, 9000)->flags = IOSQE_FIXED_FILE;
    did_uring(TRACE_READ, 9000, 100, 100, TRACE_F_FIXED_FILE, 1);
    if (enter(2) || take(2) != 612)
        return 4;
    return 0;
}

static int work_links(void)
{
    if (start(0))
        return 1;
    sqe_new(IORING_OP_WRITE, fd, buffer[0], 4096, 0)->flags = IOSQE_IO_LINK;
    did_uring(TRACE_WRITE, 0, 4096, 4096, TRACE_F_LINK, 1);
    sqe_new(IORING_OP_FSYNC, fd, NULL, 0, 0)->fsync_flags = IORING_FSYNC_DATASYNC;
    did_uring(TRACE_FDATASYNC, 0, 0, 0, 0, 1);
    sqe_new(IORING_OP_FSYNC, fd, NULL, 0, 0)->flags = IOSQE_IO_DRAIN;
    did_uring(TRACE_FSYNC, 0, 0, 0, TRACE_F_DRAIN, 1);
    if (enter(3) || take(3) != 4096)
        return 2;
    /* A link whose first op fails cancels the second. */
    sqe_new(IORING_OP_READ, fd, (void *)8, 4096, 0)->flags = IOSQE_IO_LINK;
    did_uring(TRACE_READ, 0, 4096, -EFAULT, TRACE_F_LINK, 2);
    sqe_new(IORING_OP_WRITE, fd, buffer[0], 4096, 0);
    did_uring(TRACE_WRITE, 0, 4096, -ECANCELED, 0, 2);
    if (enter(2) || take(2) != -EFAULT - ECANCELED)
        return 3;
    return 0;
}

static int work_kinds(void)
{
    struct iovec iov[3] = {{buffer[0], 10}, {buffer[1], 20}, {buffer[2], 30}};

    if (start(0))
        return 1;
    sqe_new(IORING_OP_WRITEV, fd, iov, 3, 5);
    did_uring(TRACE_WRITE, 5, 60, 60, 0, 0);
    if (enter(1) || take(1) != 60)
        return 2;
    /* At the file position, which it moves. */
    lseek(fd, 3, SEEK_SET);
    sqe_new(IORING_OP_READ, fd, buffer[0], 10, UINT64_MAX);
    did_uring(TRACE_READ, 3, 10, 10, TRACE_F_POSITION, 0);
    if (enter(1) || take(1) != 10)
        return 3;
    sqe_new(IORING_OP_WRITE, fd, buffer[0], 10, 100)->rw_flags = RWF_DSYNC;
    did_uring(TRACE_WRITE, 100, 10, 10, TRACE_F_DSYNC, 0);
    if (enter(1) || take(1) != 10)
        return 4;
    sqe_new(IORING_OP_FALLOCATE, fd, NULL, 0, 4096)->addr = 8192; /* addr is the length */
    did_uring(TRACE_FALLOCATE, 4096, 8192, 0, 0, 0);
    if (enter(1) || take(1) != 0)
        return 5;
    sqe_new(IORING_OP_SYNC_FILE_RANGE, fd, NULL, 4096, 0);
    did_uring(TRACE_SYNC_RANGE, 0, 4096, 0, 0, 0);
    if (enter(1) || take(1) != 0)
        return 6;
    sqe_new(IORING_OP_FADVISE, fd, NULL, 100, 0)->fadvise_advice = 3; /* WILLNEED */
    did_uring(TRACE_READAHEAD, 0, 100, 0, 0, 0);
    if (enter(1) || take(1) != 0)
        return 7;
    sqe_new(IORING_OP_NOP, -1, NULL, 0, 0);
    if (enter(1) || take(1) != 0)
        return 8;
    return 0;
}

static int work_names(void)
{
    int made;

    if (start(0))
        return 1;
    sqe_new(IORING_OP_OPENAT, AT_FDCWD, (void *)(uintptr_t) "n", 0600, 0)->open_flags =
        O_CREAT | O_RDWR;
    did(TRACE_OPEN, TRACE_API_IO_URING, "n", 0, 0, 0);
    if (enter(1) || (made = take(1)) < 0)
        return 2;
    sqe_new(IORING_OP_WRITE, made, buffer[0], 10, 0);
    did(TRACE_WRITE, TRACE_API_IO_URING, "n", 0, 10, 10);
    if (enter(1) || take(1) != 10)
        return 3;
    sqe_new(IORING_OP_RENAMEAT, AT_FDCWD, (void *)(uintptr_t) "n", (uint32_t)AT_FDCWD,
            (uintptr_t) "m");
    did(TRACE_RENAME, TRACE_API_IO_URING, "n", 0, 0, 0);
    if (enter(1) || take(1) != 0)
        return 4;
    sqe_new(IORING_OP_READ, made, buffer[0], 10, 0);
    did(TRACE_READ, TRACE_API_IO_URING, "m", 0, 10, 10);
    if (enter(1) || take(1) != 10)
        return 5;
    sqe_new(IORING_OP_CLOSE, made, NULL, 0, 0);
    did(TRACE_CLOSE, TRACE_API_IO_URING, "m", 0, 0, 0);
    if (enter(1) || take(1) != 0)
        return 6;
    sqe_new(IORING_OP_UNLINKAT, AT_FDCWD, (void *)(uintptr_t) "m", 0, 0);
    did(TRACE_UNLINK, TRACE_API_IO_URING, "m", 0, 0, 0);
    if (enter(1) || take(1) != 0)
        return 7;
    return 0;
}

static int work_sqpoll(void)
{
    if (start(IORING_SETUP_SQPOLL))
        return 1;
    for (uint64_t i = 0; i < 200; i++) {
        sqe_new(IORING_OP_WRITE, fd, buffer[0], 4096, i * 4096);
        did_uring(TRACE_WRITE, i * 4096, 4096, 4096, TRACE_F_SQPOLL, 0);
        __atomic_store_n(ring.sq_tail, ring.tail, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(ring.sq_flags, __ATOMIC_SEQ_CST) & IORING_SQ_NEED_WAKEUP)
            syscall(SYS_io_uring_enter, ring.fd, 1, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0);
        if (take(1) != 4096)
            return 2;
    }
    return 0;
}

static void run(int (*work)(void))
{
    struct session session = {0};

    unlink("u");
    record(&recorder_bpf, &session, work);
    assert_truth(&session);
    for (size_t i = 0; i < session.op_count; i++)
        if (session.ops[i].api == TRACE_API_IO_URING) {
            assert_int_equal(session.ops[i].completion, TRACE_COMPLETION_EXACT);
            assert_true(session.ops[i].latency_ns < UINT64_C(10000000000));
        }
    session_clear(&session);
}

static void test_batches(void **state)
{
    run(work_batches);
}

static void test_fixed(void **state)
{
    run(work_fixed);
}

static void test_links(void **state)
{
    run(work_links);
}

static void test_kinds(void **state)
{
    run(work_kinds);
}

static void test_names(void **state)
{
    run(work_names);
}

static void test_sqpoll(void **state)
{
    run(work_sqpoll);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches), cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_links),   cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_names),   cmocka_unit_test(test_sqpoll),
    };

    recorder_need(&recorder_bpf);
    if (ring_new(0)) {
        printf("io_uring is not allowed here\n");
        return 77;
    }
    close(ring.fd);
    truths_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
