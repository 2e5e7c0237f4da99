/* SPDX-License-Identifier: MIT */
/* The ring below the io_uring engine: features that older kernels lack, and taking entries
 * back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#if HAVE_LIB

#include "engines/engine.h"
#include "engines/ring.h"

static bool ring_here(void)
{
    struct io_uring_params params = {0};
    int fd = io_uring_setup(1, &params);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void prepare_nop(struct ring *ring, struct engine_op *op)
{
    struct io_uring_sqe *sqe = &ring->sqes[ring->tail++ & ring->sq_mask];

    memset(sqe, 0, sizeof(*sqe));
    sqe->opcode = IORING_OP_NOP;
    sqe->user_data = (uint64_t)(uintptr_t)op;
}

/* SQPOLL excludes DEFER_TASKRUN, as an old kernel does: both are given up flag by flag. */
static void flags_are_given_up_until_the_kernel_agrees(void **test_state)
{
    struct io_uring_params params = {0};
    unsigned int wanted = IORING_SETUP_SQPOLL;
    struct engine_op op = {0}, *done[1];
    struct ring ring;

    if (!ring_here())
        skip();
    for (unsigned int i = 0; i < RING_STEP_COUNT; i++)
        wanted |= ring_steps[i].flag;
    assert_int_equal(ring_init(&ring, 4, 64, wanted, &params), 0);
    assert_true(ring.setup_flags & IORING_SETUP_SQPOLL);
    assert_false(ring.setup_flags & IORING_SETUP_DEFER_TASKRUN);
    assert_true(ring.cq_mask + 1 >= 64);
    prepare_nop(&ring, &op);
    assert_int_equal(ring_publish(&ring, 1, false, 0, UINT64_MAX), 1);
    assert_int_equal(ring_wait(&ring, 1, UINT64_MAX), 0);
    assert_int_equal(ring_reap(&ring, done, 1), 1);
    assert_ptr_equal(done[0], &op);
    ring_release(&ring);
    ring_release(&ring); /* as a ring that never was */
}

/* Without CQSIZE the ring must still hold all that may be in flight. */
static void a_ring_without_cqsize_holds_its_depth(void **test_state)
{
    struct io_uring_params params = {0};
    struct engine_op op[100] = {{0}}, *done[100];
    struct ring ring;

    if (!ring_here())
        skip();
    assert_int_equal(ring_init(&ring, 4, 100, 0, &params), 0);
    assert_true(ring.cq_mask + 1 >= 100);
    assert_true(ring_space(&ring) >= 100);
    for (unsigned int i = 0; i < 100; i++)
        prepare_nop(&ring, &op[i]);
    assert_int_equal(ring_publish(&ring, 100, true, 100, UINT64_MAX), 100);
    assert_int_equal(ring.in_flight, 100);
    assert_int_equal(ring_reap(&ring, done, 60), 60);
    assert_int_equal(ring_reap(&ring, done, 60), 40);
    assert_int_equal(ring.in_flight, 0);
    ring_release(&ring);
}

/* Before 5.11 a wait with a time goes through ppoll. */
static void a_kernel_without_ext_arg_waits_by_poll(void **test_state)
{
    struct io_uring_params params = {0};
    struct engine_op op = {0}, *done[1];
    struct timespec before, after;
    struct ring ring;
    int pipe_fds[2];
    char byte;

    if (!ring_here())
        skip();
    assert_int_equal(pipe(pipe_fds), 0);
    assert_int_equal(ring_init(&ring, 4, 4, 0, &params), 0);
    ring.features &= ~IORING_FEAT_EXT_ARG;
    prepare_nop(&ring, &op);
    io_uring_prep_read(&ring.sqes[0], pipe_fds[0], &byte, 1, (uint64_t)-1);
    ring.sqes[0].user_data = (uint64_t)(uintptr_t)&op;
    assert_int_equal(ring_publish(&ring, 1, false, 0, UINT64_MAX), 1);
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_int_equal(ring_wait(&ring, 1, 10000000), 1);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec >=
                10000000);
    assert_int_equal(ring_reap(&ring, done, 1), 0);
    assert_int_equal(write(pipe_fds[1], "x", 1), 1);
    assert_int_equal(ring_wait(&ring, 1, 1000000000), 0);
    assert_int_equal(ring_reap(&ring, done, 1), 1);
    assert_int_equal(op.result, 1);
    ring_release(&ring);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

/* An entry that the kernel refuses, without SUBMIT_ALL: the call stops there; none is lost. */
static void entries_after_a_bad_one_are_handed_over(void **test_state)
{
    struct io_uring_params params = {0};
    struct engine_op op[3] = {{0}}, *done[3];
    struct ring ring;

    if (!ring_here())
        skip();
    assert_int_equal(ring_init(&ring, 4, 4, 0, &params), 0);
    for (unsigned int i = 0; i < 3; i++)
        prepare_nop(&ring, &op[i]);
    ring.sqes[1].opcode = 250;
    assert_int_equal(ring_publish(&ring, 3, false, 0, UINT64_MAX), 3);
    assert_int_equal(ring_wait(&ring, 3, UINT64_MAX), 0);
    assert_int_equal(ring_reap(&ring, done, 3), 3);
    assert_int_equal(op[0].result, 0);
    assert_int_equal(op[1].result, -EINVAL);
    assert_int_equal(op[2].result, 0);
    ring_release(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_are_given_up_until_the_kernel_agrees),
        cmocka_unit_test(a_ring_without_cqsize_holds_its_depth),
        cmocka_unit_test(a_kernel_without_ext_arg_waits_by_poll),
        cmocka_unit_test(entries_after_a_bad_one_are_handed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    puts("built without liburing");
    return 77;
}

#endif
