/* SPDX-License-Identifier: MIT */
#include "capture/bpf_calls.h"

#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "traces/trace.h"

enum {
    N = BPF_ARG_NONE
};

struct numbered_call {
    unsigned int number;
    struct bpf_call call;
};

#define ROW(class_, kind_, ...)                                                                \
    {                                                                                          \
        .class = BPF_CLASS_##class_, .kind = TRACE_##kind_, .fd = N, .offset = N, .length = N, \
        .extra = N, .path = N, .fd2 = N, .path2 = N, .rwf = N, __VA_ARGS__                     \
    }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif

static const struct numbered_call call_rows[] = {
    {SYS_read, ROW(POSITION, READ, .fd = 0, .length = 2)},
    {SYS_write, ROW(POSITION, WRITE, .fd = 0, .length = 2)},
    {SYS_pread64, ROW(RANGE, READ, .fd = 0, .length = 2, .offset = 3)},
    {SYS_pwrite64, ROW(RANGE, WRITE, .fd = 0, .length = 2, .offset = 3)},
    {SYS_readv, ROW(VECTOR, READ, .fd = 0, .path = 1, .length = 2)},
    {SYS_writev, ROW(VECTOR, WRITE, .fd = 0, .path = 1, .length = 2)},
    {SYS_preadv, ROW(VECTOR, READ, .fd = 0, .path = 1, .length = 2, .offset = 3)},
    {SYS_pwritev, ROW(VECTOR, WRITE, .fd = 0, .path = 1, .length = 2, .offset = 3)},
    {SYS_preadv2, ROW(VECTOR, READ, .fd = 0, .path = 1, .length = 2, .offset = 3, .rwf = 5)},
    {SYS_pwritev2, ROW(VECTOR, WRITE, .fd = 0, .path = 1, .length = 2, .offset = 3, .rwf = 5)},
    {SYS_fsync, ROW(FD, FSYNC, .fd = 0)},
    {SYS_fdatasync, ROW(FD, FDATASYNC, .fd = 0)},
    {SYS_syncfs, ROW(FD, SYNCFS, .fd = 0)},
    {SYS_sync, ROW(ALL, SYNCFS)},
    {SYS_sync_file_range,
     ROW(RANGE, SYNC_RANGE, .fd = 0, .offset = 1, .length = 2, .extra = 3)},
    {SYS_readahead, ROW(RANGE, READAHEAD, .fd = 0, .offset = 1, .length = 2)},
    {SYS_fadvise64, ROW(ADVISE, READAHEAD, .fd = 0, .offset = 1, .length = 2, .extra = 3)},
    {SYS_ftruncate, ROW(RANGE, TRUNCATE, .fd = 0, .length = 1)},
    {SYS_fallocate, ROW(RANGE, FALLOCATE, .fd = 0, .extra = 1, .offset = 2, .length = 3)},
    {SYS_truncate, ROW(PATH, TRUNCATE, .path = 0, .length = 1)},
    {SYS_close, ROW(CLOSE, CLOSE, .fd = 0)},
    {SYS_openat, ROW(OPEN, OPEN, .fd = 0, .path = 1, .extra = 2)},
    {SYS_openat2, ROW(OPEN, OPEN, .fd = 0, .path = 1, .extra = 2, .flags = BPF_CALL_OPEN_HOW)},
    {SYS_open_by_handle_at, ROW(OPEN, OPEN, .extra = 2, .flags = BPF_CALL_BY_HANDLE)},
    {SYS_unlinkat, ROW(PATH, UNLINK, .fd = 0, .path = 1, .extra = 2)},
    {SYS_mkdirat, ROW(PATH, MKDIR, .fd = 0, .path = 1, .extra = 2)},
    {SYS_renameat2, ROW(PATHS, RENAME, .fd = 0, .path = 1, .fd2 = 2, .path2 = 3)},
    {SYS_linkat, ROW(PATHS, LINK, .fd = 0, .path = 1, .fd2 = 2, .path2 = 3)},
    {SYS_symlinkat, ROW(PATHS, SYMLINK, .path = 0, .fd2 = 1, .path2 = 2)},
    {SYS_copy_file_range,
     ROW(COPY, COPY, .fd = 0, .offset = 1, .fd2 = 2, .path2 = 3, .length = 4)},
    {SYS_sendfile, ROW(COPY, COPY, .fd2 = 0, .fd = 1, .offset = 2, .length = 3)},
    {SYS_splice, ROW(COPY, COPY, .fd = 0, .offset = 1, .fd2 = 2, .path2 = 3, .length = 4)},
    {SYS_io_submit, ROW(AIO_SUBMIT, READ)},
    {SYS_io_getevents, ROW(AIO_REAP, READ)},
    {SYS_io_pgetevents, ROW(AIO_REAP, READ)},
    {SYS_io_destroy, ROW(AIO_DESTROY, READ)},
    {SYS_io_uring_enter, ROW(URING_ENTER, READ)},
    {SYS_mmap, ROW(MAP, MMAP, .fd = 4, .offset = 5, .length = 1, .extra = 2)},
    {SYS_munmap, ROW(UNMAP, MUNMAP, .length = 1, .extra = 0)},
    {SYS_msync, ROW(UNMAP, MSYNC, .length = 1, .extra = 0)},
    {SYS_ioctl, ROW(IOCTL, DISCARD, .fd = 0)},
#ifdef SYS_open /* older architectures have the forms without a folder too */
    {SYS_open, ROW(OPEN, OPEN, .path = 0, .extra = 1)},
    {SYS_creat, ROW(OPEN, OPEN, .path = 0, .flags = BPF_CALL_CREAT)},
    {SYS_unlink, ROW(PATH, UNLINK, .path = 0)},
    {SYS_rmdir, ROW(PATH, RMDIR, .path = 0)},
    {SYS_mkdir, ROW(PATH, MKDIR, .path = 0, .extra = 1)},
    {SYS_rename, ROW(PATHS, RENAME, .path = 0, .path2 = 1)},
    {SYS_link, ROW(PATHS, LINK, .path = 0, .path2 = 1)},
    {SYS_symlink, ROW(PATHS, SYMLINK, .path = 0, .path2 = 1)},
#endif
#ifdef SYS_renameat
    {SYS_renameat, ROW(PATHS, RENAME, .fd = 0, .path = 1, .fd2 = 2, .path2 = 3)},
#endif
};

/* Opcode numbers of linux/io_uring.h: headers older than the kernel lack the last ones. */
static const struct numbered_call uring_rows[] = {
    {1, ROW(VECTOR, READ)},                                 /* READV */
    {2, ROW(VECTOR, WRITE)},                                /* WRITEV */
    {3, ROW(FD, FSYNC)},                                    /* FSYNC */
    {4, ROW(POSITION, READ, .flags = BPF_CALL_FIXED_BUF)},  /* READ_FIXED */
    {5, ROW(POSITION, WRITE, .flags = BPF_CALL_FIXED_BUF)}, /* WRITE_FIXED */
    {8, ROW(RANGE, SYNC_RANGE)},                            /* SYNC_FILE_RANGE */
    {17, ROW(RANGE, FALLOCATE)},                            /* FALLOCATE */
    {18, ROW(OPEN, OPEN)},                                  /* OPENAT */
    {19, ROW(CLOSE, CLOSE)},                                /* CLOSE */
    {22, ROW(POSITION, READ)},                              /* READ */
    {23, ROW(POSITION, WRITE)},                             /* WRITE */
    {24, ROW(RANGE, READAHEAD)},                            /* FADVISE */
    {28, ROW(OPEN, OPEN)},                                  /* OPENAT2 */
    {35, ROW(PATHS, RENAME)},                               /* RENAMEAT */
    {36, ROW(PATH, UNLINK)},                                /* UNLINKAT */
    {37, ROW(PATH, MKDIR)},                                 /* MKDIRAT */
    {38, ROW(PATHS, SYMLINK)},                              /* SYMLINKAT */
    {39, ROW(PATHS, LINK)},                                 /* LINKAT */
    {55, ROW(RANGE, TRUNCATE)},                             /* FTRUNCATE */
    {60, ROW(VECTOR, READ, .flags = BPF_CALL_FIXED_BUF)},   /* READV_FIXED */
    {61, ROW(VECTOR, WRITE, .flags = BPF_CALL_FIXED_BUF)},  /* WRITEV_FIXED */
};

#pragma GCC diagnostic pop

/* read, write, open, close, fsync, readv, writev, fdatasync, pread64, pwrite64, sendfile,
 * openat, sync_file_range, splice, preadv, pwritev, io_submit, copy_file_range, preadv2,
 * pwritev2, io_uring_enter of i386. */
static const unsigned short compat_rows[] = {3,   4,   5,   6,   118, 145, 146,
                                             148, 180, 181, 187, 295, 314, 313,
                                             333, 334, 248, 377, 378, 379, 426};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

void bpf_calls_fill(struct bpf_call *calls)
{
    memset(calls, 0, BPF_CALLS_MAX * sizeof(*calls));
    for (size_t i = 0; i < COUNT(call_rows); i++)
        calls[call_rows[i].number] = call_rows[i].call;
}

void bpf_calls_fill_uring(struct bpf_call *calls)
{
    memset(calls, 0, BPF_URING_MAX * sizeof(*calls));
    for (size_t i = 0; i < COUNT(uring_rows); i++)
        calls[uring_rows[i].number] = uring_rows[i].call;
}

void bpf_calls_fill_compat(__u8 *calls)
{
    memset(calls, 0, BPF_CALLS_MAX);
#if defined(__x86_64__)
    for (size_t i = 0; i < COUNT(compat_rows); i++)
        calls[compat_rows[i]] = 1;
#endif
}
