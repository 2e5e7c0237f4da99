/* SPDX-License-Identifier: MIT */
/* The bpf recorder against libaio's calls, made directly: batches of 1 to 64, events reaped by
 * io_getevents and from the ring in user space, batches taken in part. */
#include "tests/bpf_session.h"

#include <linux/aio_abi.h>
#include <sys/mman.h>
#include <sys/uio.h>

extern const struct recorder recorder_bpf;

enum {
    DEPTH = 128
};

static char buffer[DEPTH][4096] __attribute__((aligned(4096)));
static struct iocb blocks[DEPTH], *pointers[DEPTH];
static struct io_event events[DEPTH];
static struct iovec iov[3];
static aio_context_t context;
static int fd;

/* The ring that the kernel maps at the context's address. */
struct ring {
    unsigned int id, count, head, tail, magic, compat, incompat, header;
    struct io_event events[];
};

static void block_set(int i, uint16_t opcode, uint64_t offset, uint64_t bytes)
{
    blocks[i] = (struct iocb){.aio_fildes = (uint32_t)fd,
                              .aio_lio_opcode = opcode,
                              .aio_buf = (uintptr_t)buffer[i],
                              .aio_nbytes = bytes,
                              .aio_offset = (int64_t)offset};
    pointers[i] = &blocks[i];
}

static int submit(int count)
{
    return (int)syscall(SYS_io_submit, context, (long)count, pointers);
}

static int reap(int least, int most)
{
    return (int)syscall(SYS_io_getevents, context, (long)least, (long)most, events, NULL);
}

/* BPF reads what is in memory and waits for nothing: pages must not be taken away meanwhile. Where
 * that is not allowed the attempt may be made again. */
static void keep_in_memory(void)
{
    const struct ring *ring = (const struct ring *)context;

    (void)!mlock(blocks, sizeof(blocks));
    (void)!mlock(pointers, sizeof(pointers));
    (void)!mlock(events, sizeof(events));
    (void)!mlock(ring, sizeof(*ring) + ring->count * sizeof(ring->events[0]));
}

static int start(void)
{
    fd = open("a", O_CREAT | O_RDWR | O_DIRECT, 0600);
    if (fd < 0) /* tmpfs */
        fd = open("a", O_CREAT | O_RDWR, 0600);
    did(TRACE_CREATE, TRACE_API_SYNC, "a", 0, 0, 0);
    if (fd < 0 || syscall(SYS_io_setup, DEPTH, &context) != 0)
        return 1;
    keep_in_memory();
    return 0;
}

static int work_batches(void)
{
    uint64_t at = 0;

    if (start())
        return 1;
    for (int batch = 1; batch <= 64; batch++) {
        for (int i = 0; i < batch; i++, at += 4096) {
            bool write = i % 3 != 2;

            block_set(i, write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD, write ? at : at - 4096,
                      write ? 4096 : 512);
            did(write ? TRACE_WRITE : TRACE_READ, TRACE_API_LIBAIO, "a", write ? at : at - 4096,
                write ? 4096 : 512, write ? 4096 : 512);
            truths->list[truths->count - 1].batch = batch == 1 ? 0 : (uint32_t)batch;
        }
        if (submit(batch) != batch || reap(batch, batch) != batch)
            return 2;
    }
    return 0;
}

static int work_kinds(void)
{
    if (start())
        return 1;
    iov[0] = (struct iovec){buffer[0], 512};
    iov[1] = (struct iovec){buffer[1], 1024};
    iov[2] = (struct iovec){buffer[2], 512};
    block_set(0, IOCB_CMD_PWRITEV, 8192, 3);
    blocks[0].aio_buf = (uintptr_t)iov;
    did(TRACE_WRITE, TRACE_API_LIBAIO, "a", 8192, 2048, 2048);
    if (submit(1) != 1 || reap(1, 1) != 1)
        return 2;
    block_set(0, IOCB_CMD_FDSYNC, 0, 0);
    blocks[0].aio_buf = 0;
    did(TRACE_FDATASYNC, TRACE_API_LIBAIO, "a", 0, 0, 0);
    if (submit(1) != 1 || reap(1, 1) != 1)
        return 3;
    block_set(0, IOCB_CMD_PREAD, 1 << 20, 4096); /* past the end */
    did(TRACE_READ, TRACE_API_LIBAIO, "a", 1 << 20, 4096, 0);
    if (submit(1) != 1 || reap(1, 1) != 1)
        return 4;
    return 0;
}

/* The third control block is no good: two are taken, and the call says so. */
static int work_partial(void)
{
    if (start())
        return 1;
    for (int i = 0; i < 4; i++)
        block_set(i, IOCB_CMD_PWRITE, (uint64_t)i * 4096, 4096);
    blocks[2].aio_lio_opcode = IOCB_CMD_PREADV;
    blocks[2].aio_buf = 8;
    blocks[2].aio_nbytes = 3;
    for (uint64_t i = 0; i < 2; i++) {
        did(TRACE_WRITE, TRACE_API_LIBAIO, "a", i * 4096, 4096, 4096);
        truths->list[truths->count - 1].batch = 1;
    }
    if (submit(4) != 2 || reap(2, 4) != 2)
        return 2;
    return 0;
}

/* Waits until count events are in the ring and takes them without a call. */
static void reap_user(unsigned int count)
{
    struct ring *ring = (struct ring *)context;

    while ((__atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) + ring->count - ring->head) %
               ring->count <
           count)
        ;
    __atomic_store_n(&ring->head, (ring->head + count) % ring->count, __ATOMIC_RELEASE);
}

static int work_user(void)
{
    if (start())
        return 1;
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 8; i++) {
            uint64_t at = (uint64_t)(round * 8 + i) * 4096;

            block_set(i, IOCB_CMD_PWRITE, at, 4096);
            did(TRACE_WRITE, TRACE_API_LIBAIO, "a", at, 4096, 4096);
            truths->list[truths->count - 1].batch = (uint32_t)round + 1;
        }
        if (submit(8) != 8)
            return 2;
        reap_user(8);
    }
    return syscall(SYS_io_destroy, context) != 0;
}

/* Ends with ops that nobody waits for. */
static int work_leave(void)
{
    if (start())
        return 1;
    for (int i = 0; i < 4; i++)
        block_set(i, IOCB_CMD_PWRITE, (uint64_t)i * 4096, 4096);
    return submit(4) != 4;
}

static void run(int (*work)(void), uint8_t completion)
{
    struct session session = {0};

    unlink("a");
    record(&recorder_bpf, &session, work);
    assert_truth(&session);
    for (size_t i = 0; i < session.op_count; i++) {
        const struct trace_op *op = &session.ops[i];

        if (op->api != TRACE_API_LIBAIO)
            continue;
        assert_true(op->latency_ns < UINT64_C(10000000000));
        assert_true(op->submit_ns < UINT64_C(10000000000));
        if (completion)
            assert_int_equal(op->completion, completion);
        else
            assert_int_not_equal(op->completion, TRACE_COMPLETION_UNKNOWN);
    }
    session_clear(&session);
}

static void test_batches(void **state)
{
    run(work_batches, 0);
}

static void test_kinds(void **state)
{
    run(work_kinds, 0);
}

static void test_partial(void **state)
{
    run(work_partial, 0);
}

static void test_user(void **state)
{
    run(work_user, TRACE_COMPLETION_UPPER);
}

static void test_leave(void **state)
{
    struct session session = {0};
    size_t count = 0;

    record(&recorder_bpf, &session, work_leave);
    session_only_folder(&session);
    for (size_t i = 0; i < session.op_count; i++)
        if (session.ops[i].api == TRACE_API_LIBAIO) {
            assert_int_equal(session.ops[i].completion, TRACE_COMPLETION_UNKNOWN);
            assert_int_equal(session.ops[i].result, TRACE_UNKNOWN_I64);
            count++;
        }
    assert_int_equal(count, 4);
    session_clear(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches), cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_partial), cmocka_unit_test(test_user),
        cmocka_unit_test(test_leave),
    };
    aio_context_t probe = 0;

    recorder_need(&recorder_bpf);
    if (syscall(SYS_io_setup, 1, &probe) != 0) {
        printf("this kernel has no io_setup\n");
        return 77;
    }
    syscall(SYS_io_destroy, probe);
    truths_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
