/* SPDX-License-Identifier: MIT */
/* System calls made through libc's syscall(): the I/O among them is recorded as if its own
 * function had been called. */
#include "capture/preload.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "capture/preload_libaio.h"
#include "capture/preload_uring.h"

DEFINE_REAL(syscall);

#define REAL_CALL(n, w) REAL(syscall)(n, w[0], w[1], w[2], w[3], w[4], w[5])

/* As the C library would: -1 and errno. */
static long with_errno(long result)
{
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

/* Reads and writes, which stay the system call they are. true when number is one of them. */
static bool transfer(long number, const long word[6], long *ret_result)
{
    bool position = number == SYS_read || number == SYS_write;
    unsigned int kind = number == SYS_read || number == SYS_pread64 ? TRACE_READ : TRACE_WRITE;
    struct ring_record *record;

    if (!position && number != SYS_pread64 && number != SYS_pwrite64)
        return false;
    record = op_begin((int)word[0], kind, TRACE_API_SYNC,
                      position ? TRACE_UNKNOWN_U64 : (uint64_t)word[3], (uint64_t)word[2]);
    *ret_result = REAL_CALL(number, word);
    if (record && position)
        op_end_position(record, (int)word[0], *ret_result);
    else if (record)
        op_end(record, *ret_result);
    return true;
}

/* Those with a function of their own that is wrapped elsewhere. */
static bool wrapped(long number, const long word[6], long *ret_result)
{
    const struct iovec *vector = (const struct iovec *)word[1];
    int fd = (int)word[0], count = (int)word[2];

    switch (number) {
#ifdef SYS_open
    case SYS_dup2: *ret_result = dup2(fd, (int)word[1]); break;
    case SYS_open:
        *ret_result = open((const char *)word[0], (int)word[1], (mode_t)word[2]);
        break;
    case SYS_unlink: *ret_result = unlink((const char *)word[0]); break;
    case SYS_rename: *ret_result = rename((const char *)word[0], (const char *)word[1]); break;
#endif
    case SYS_openat:
        *ret_result = openat(fd, (const char *)word[1], (int)word[2], (mode_t)word[3]);
        break;
    case SYS_close: *ret_result = close(fd); break;
    case SYS_close_range:
        *ret_result = close_range((unsigned int)word[0], (unsigned int)word[1], (int)word[2]);
        break;
    case SYS_dup: *ret_result = dup(fd); break;
    case SYS_dup3: *ret_result = dup3(fd, (int)word[1], (int)word[2]); break;
    case SYS_fcntl: *ret_result = fcntl(fd, (int)word[1], word[2]); break;
    case SYS_fsync: *ret_result = fsync(fd); break;
    case SYS_fdatasync: *ret_result = fdatasync(fd); break;
    case SYS_ftruncate: *ret_result = ftruncate(fd, word[1]); break;
    case SYS_fallocate: *ret_result = fallocate(fd, (int)word[1], word[2], word[3]); break;
    case SYS_readv: *ret_result = readv(fd, vector, count); break;
    case SYS_writev: *ret_result = writev(fd, vector, count); break;
    case SYS_preadv: *ret_result = preadv(fd, vector, count, word[3]); break;
    case SYS_pwritev: *ret_result = pwritev(fd, vector, count, word[3]); break;
    case SYS_preadv2: *ret_result = preadv2(fd, vector, count, word[3], (int)word[5]); break;
    case SYS_pwritev2: *ret_result = pwritev2(fd, vector, count, word[3], (int)word[5]); break;
    case SYS_copy_file_range:
        *ret_result = copy_file_range(fd, (off64_t *)word[1], (int)word[2], (off64_t *)word[3],
                                      (size_t)word[4], (unsigned int)word[5]);
        break;
    default: return false;
    }
    return true;
}

EXPORT long syscall(long number, ...)
{
    long word[6], result;
    va_list arguments;

    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        word[i] = va_arg(arguments, long);
    va_end(arguments);
    switch (number) {
    case SYS_io_submit:
        return with_errno(libaio_submit((uint64_t)word[0], word[1], (struct iocb **)word[2]));
    case SYS_io_getevents:
    case SYS_io_pgetevents:
        return with_errno(libaio_getevents(number, (uint64_t)word[0], word[1], word[2],
                                           (struct io_event *)word[3],
                                           (struct timespec *)word[4], (void *)word[5]));
    case SYS_io_destroy: return with_errno(libaio_destroy((uint64_t)word[0]));
    case SYS_seccomp:
        if (word[0] == SECCOMP_SET_MODE_STRICT || word[0] == SECCOMP_SET_MODE_FILTER)
            shim_seal();
        return REAL_CALL(number, word);
    case SYS_io_uring_setup:
        return with_errno(
            uring_call_setup((uint32_t)word[0], (struct io_uring_params *)word[1]));
    case SYS_io_uring_enter:
        return with_errno(uring_call_enter((int)word[0], (uint32_t)word[1], (uint32_t)word[2],
                                           (uint32_t)word[3], (const void *)word[4],
                                           (size_t)word[5]));
    case SYS_io_uring_register:
        return with_errno(uring_call_register((int)word[0], (uint32_t)word[1], (void *)word[2],
                                              (uint32_t)word[3]));
    default:
        if (transfer(number, word, &result) || wrapped(number, word, &result))
            return result;
        return REAL_CALL(number, word);
    }
}
