/* SPDX-License-Identifier: MIT */
/*
 * liburing's exported functions, where submissions pass; reaping is inline in its header, so
 * completions are seen at the next of these calls. struct io_uring is part of liburing's ABI;
 * the part that is used is declared here.
 */
#include "capture/preload_uring.h"

#include <signal.h>

struct liburing_sq {
    uint32_t *khead, *ktail, *kring_mask, *kring_entries, *kflags, *kdropped, *array;
    unsigned char *sqes;
    uint32_t sqe_head, sqe_tail;
    size_t ring_bytes;
    void *ring;
    uint32_t pad[4];
};

struct liburing_cq {
    uint32_t *khead, *ktail, *kring_mask, *kring_entries, *kflags, *koverflow;
    unsigned char *cqes;
    size_t ring_bytes;
    void *ring;
    uint32_t pad[4];
};

struct io_uring {
    struct liburing_sq sq;
    struct liburing_cq cq;
    uint32_t flags;
    int fd;
};

#define KERNEL_MASK_BYTES 8 /* of a signal set, as system calls take it */

struct io_uring_cqe;
struct __kernel_timespec;

EXPORT int io_uring_setup(unsigned int entries, struct io_uring_params *params);
EXPORT int io_uring_enter(unsigned int fd, unsigned int submit, unsigned int min,
                          unsigned int flags, sigset_t *mask);
EXPORT int io_uring_enter2(unsigned int fd, unsigned int submit, unsigned int min,
                           unsigned int flags, sigset_t *mask, size_t bytes);
EXPORT int io_uring_register(unsigned int fd, unsigned int code, const void *argument,
                             unsigned int count);
EXPORT int io_uring_submit(struct io_uring *ring);
EXPORT int io_uring_submit_and_wait(struct io_uring *ring, unsigned int wait);
EXPORT int io_uring_submit_and_get_events(struct io_uring *ring);
EXPORT int io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe,
                                            unsigned int wait,
                                            struct __kernel_timespec *timeout, sigset_t *mask);
EXPORT int io_uring_wait_cqes(struct io_uring *ring, struct io_uring_cqe **cqe,
                              unsigned int wait, struct __kernel_timespec *timeout,
                              sigset_t *mask);
EXPORT int io_uring_wait_cqe_timeout(struct io_uring *ring, struct io_uring_cqe **cqe,
                                     struct __kernel_timespec *timeout);
EXPORT int __io_uring_get_cqe(struct io_uring *ring, struct io_uring_cqe **cqe,
                              unsigned int submit, unsigned int wait, sigset_t *mask);
EXPORT unsigned int io_uring_peek_batch_cqe(struct io_uring *ring, struct io_uring_cqe **cqes,
                                            unsigned int count);
EXPORT int io_uring_get_events(struct io_uring *ring);
EXPORT void io_uring_queue_exit(struct io_uring *ring);
EXPORT int io_uring_register_files(struct io_uring *ring, const int *files, unsigned int count);
EXPORT int io_uring_register_files_tags(struct io_uring *ring, const int *files,
                                        const uint64_t *tags, unsigned int count);
EXPORT int io_uring_register_files_update(struct io_uring *ring, unsigned int first,
                                          const int *files, unsigned int count);
EXPORT int io_uring_unregister_files(struct io_uring *ring);

DEFINE_REAL(io_uring_submit);
DEFINE_REAL(io_uring_submit_and_wait);
DEFINE_REAL(io_uring_submit_and_get_events);
DEFINE_REAL(io_uring_submit_and_wait_timeout);
DEFINE_REAL(io_uring_wait_cqes);
DEFINE_REAL(io_uring_wait_cqe_timeout);
DEFINE_REAL(__io_uring_get_cqe);
DEFINE_REAL(io_uring_peek_batch_cqe);
DEFINE_REAL(io_uring_get_events);
DEFINE_REAL(io_uring_queue_exit);
DEFINE_REAL(io_uring_register_files);
DEFINE_REAL(io_uring_register_files_tags);
DEFINE_REAL(io_uring_register_files_update);
DEFINE_REAL(io_uring_unregister_files);

static struct uring *ring_of(const struct io_uring *ring)
{
    struct uring *known;

    if (!shim_ready())
        return NULL;
    known = uring_find(ring->fd);
    if (!known) {
        struct uring_memory memory = {.sq_head = ring->sq.khead,
                                      .sq_tail = ring->sq.ktail,
                                      .sq_mask = ring->sq.kring_mask,
                                      .sq_array = ring->sq.array,
                                      .cq_tail = ring->cq.ktail,
                                      .cq_mask = ring->cq.kring_mask,
                                      .sqes = ring->sq.sqes,
                                      .cqes = ring->cq.cqes};

        known = uring_learn(ring->fd, &memory, ring->flags);
    }
    return known;
}

/* The plain system calls: for programs that keep their rings themselves. */
EXPORT int io_uring_setup(unsigned int entries, struct io_uring_params *params)
{
    return (int)uring_call_setup(entries, params);
}

EXPORT int io_uring_enter(unsigned int fd, unsigned int submit, unsigned int min,
                          unsigned int flags, sigset_t *mask)
{
    return (int)uring_call_enter((int)fd, submit, min, flags, mask, KERNEL_MASK_BYTES);
}

EXPORT int io_uring_enter2(unsigned int fd, unsigned int submit, unsigned int min,
                           unsigned int flags, sigset_t *mask, size_t bytes)
{
    return (int)uring_call_enter((int)fd, submit, min, flags, mask, bytes);
}

EXPORT int io_uring_register(unsigned int fd, unsigned int code, const void *argument,
                             unsigned int count)
{
    return (int)uring_call_register((int)fd, code, (void *)(uintptr_t)argument, count);
}

/* What has been prepared and not yet handed over is about to be. */
static struct uring *submit_begin(const struct io_uring *ring)
{
    struct uring *known = ring_of(ring);

    if (known) {
        uring_look(known);
        uring_submit(known, ring->sq.sqe_head, ring->sq.sqe_tail - ring->sq.sqe_head, false);
    }
    return known;
}

/* errno is not liburing's, but the program's. */
static void submit_end(struct uring *known)
{
    if (known)
        uring_look(known);
}

EXPORT int io_uring_submit(struct io_uring *ring)
{
    struct uring *known = submit_begin(ring);
    int result = REAL(io_uring_submit)(ring);

    submit_end(known);
    return result;
}

EXPORT int io_uring_submit_and_wait(struct io_uring *ring, unsigned int wait)
{
    struct uring *known = submit_begin(ring);
    int result = REAL(io_uring_submit_and_wait)(ring, wait);

    submit_end(known);
    return result;
}

EXPORT int io_uring_submit_and_get_events(struct io_uring *ring)
{
    struct uring *known = submit_begin(ring);
    int result = REAL(io_uring_submit_and_get_events)(ring);

    submit_end(known);
    return result;
}

EXPORT int io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe,
                                            unsigned int wait,
                                            struct __kernel_timespec *timeout, sigset_t *mask)
{
    struct uring *known = submit_begin(ring);
    int result = REAL(io_uring_submit_and_wait_timeout)(ring, cqe, wait, timeout, mask);

    submit_end(known);
    return result;
}

/* The waits submit too: old kernels need an entry of their own for a timeout. */
EXPORT int io_uring_wait_cqes(struct io_uring *ring, struct io_uring_cqe **cqe,
                              unsigned int wait, struct __kernel_timespec *timeout,
                              sigset_t *mask)
{
    struct uring *known = timeout ? submit_begin(ring) : ring_of(ring);
    int result = REAL(io_uring_wait_cqes)(ring, cqe, wait, timeout, mask);

    submit_end(known);
    return result;
}

EXPORT int io_uring_wait_cqe_timeout(struct io_uring *ring, struct io_uring_cqe **cqe,
                                     struct __kernel_timespec *timeout)
{
    struct uring *known = ring_of(ring);
    int result = REAL(io_uring_wait_cqe_timeout)(ring, cqe, timeout);

    submit_end(known);
    return result;
}

EXPORT int __io_uring_get_cqe(struct io_uring *ring, struct io_uring_cqe **cqe,
                              unsigned int submit, unsigned int wait, sigset_t *mask)
{
    struct uring *known = ring_of(ring);
    int result = REAL(__io_uring_get_cqe)(ring, cqe, submit, wait, mask);

    submit_end(known);
    return result;
}

EXPORT unsigned int io_uring_peek_batch_cqe(struct io_uring *ring, struct io_uring_cqe **cqes,
                                            unsigned int count)
{
    struct uring *known = ring_of(ring);
    unsigned int result = REAL(io_uring_peek_batch_cqe)(ring, cqes, count);

    submit_end(known);
    return result;
}

EXPORT int io_uring_get_events(struct io_uring *ring)
{
    struct uring *known = ring_of(ring);
    int result = REAL(io_uring_get_events)(ring);

    submit_end(known);
    return result;
}

EXPORT void io_uring_queue_exit(struct io_uring *ring)
{
    struct uring *known = ring_of(ring);

    if (known) {
        uring_look(known);
        uring_gone(ring->fd);
    }
    REAL(io_uring_queue_exit)(ring);
}

EXPORT int io_uring_register_files(struct io_uring *ring, const int *files, unsigned int count)
{
    struct uring *known = ring_of(ring);
    int result = REAL(io_uring_register_files)(ring, files, count);

    if (known && result >= 0)
        uring_files(known, true, 0, files, count);
    return result;
}

EXPORT int io_uring_register_files_tags(struct io_uring *ring, const int *files,
                                        const uint64_t *tags, unsigned int count)
{
    struct uring *known = ring_of(ring);
    int result = REAL(io_uring_register_files_tags)(ring, files, tags, count);

    if (known && result >= 0)
        uring_files(known, true, 0, files, count);
    return result;
}

EXPORT int io_uring_register_files_update(struct io_uring *ring, unsigned int first,
                                          const int *files, unsigned int count)
{
    struct uring *known = ring_of(ring);
    int result = REAL(io_uring_register_files_update)(ring, first, files, count);

    if (known && result >= 0)
        uring_files(known, false, first, files, count);
    return result;
}

EXPORT int io_uring_unregister_files(struct io_uring *ring)
{
    struct uring *known = ring_of(ring);
    int result = REAL(io_uring_unregister_files)(ring);

    if (known && result >= 0)
        uring_files(known, true, 0, NULL, 0);
    return result;
}
