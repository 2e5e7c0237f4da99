/* SPDX-License-Identifier: MIT */
/* Opening, closing, duplicating, and the name space. */
#include "capture/preload.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/preload_open.h"
#include "capture/preload_uring.h"

DEFINE_REAL(open64);
DEFINE_REAL(openat64);
DEFINE_REAL(creat64);
DEFINE_REAL(close);
DEFINE_REAL(closedir);
DEFINE_REAL(pclose);
DEFINE_REAL(close_range);
DEFINE_REAL(closefrom);
DEFINE_REAL(dup);
DEFINE_REAL(dup2);
DEFINE_REAL(dup3);
DEFINE_REAL(fcntl64);
DEFINE_REAL(unlink);
DEFINE_REAL(unlinkat);
DEFINE_REAL(remove);
DEFINE_REAL(rename);
DEFINE_REAL(renameat);
DEFINE_REAL(renameat2);
DEFINE_REAL(link);
DEFINE_REAL(linkat);
DEFINE_REAL(symlink);
DEFINE_REAL(symlinkat);
DEFINE_REAL(mkdir);
DEFINE_REAL(mkdirat);
DEFINE_REAL(rmdir);
DEFINE_REAL(mkstemp64);
DEFINE_REAL(mkostemp64);
DEFINE_REAL(mkstemps64);
DEFINE_REAL(mkostemps64);

EXPORT int __open_2(const char *path, int flags);
EXPORT int __open64_2(const char *path, int flags);
EXPORT int __openat_2(int dir_fd, const char *path, int flags);
EXPORT int __openat64_2(int dir_fd, const char *path, int flags);

/* ---- open -------------------------------------------------------------------------------- */

struct ring_record *open_begin(struct open_call *call, int dir_fd, const char *path, int flags)
{
    struct ring_record *record;

    call->dir_fd = dir_fd;
    call->path = path;
    call->flags = flags;
    call->before.asked = false;
    if (!shim_ready() || shim_in_vfork())
        return NULL;
    if (flags & (O_CREAT | O_TRUNC))
        file_before(&call->before, dir_fd, path);
    record = op_reserve(TRACE_OPEN, TRACE_API_SYNC);
    if (record)
        record->arg = (uint32_t)flags;
    return record;
}

/* A descriptor that is not recorded leaves a record without a file: the collector drops it. */
void open_end(struct ring_record *record, struct open_call *call, int fd)
{
    int saved = errno;
    uint64_t end_ns = stamp_ns(), slot;

    if (fd < 0) {
        if (saved != EFAULT)
            record->file = file_named(call->dir_fd, call->path, true);
        op_end_at(record, -saved, end_ns);
    } else {
        slot = file_opened(fd, call->flags, &call->before);
        record->file = slot & (SLOT_IGNORED | SLOT_LOST) ? 0 : slot_file(slot);
        if (slot & SLOT_LOST)
            shim_thread.ring->dropped_files++;
        if (call->before.asked && !call->before.exists && (call->flags & O_CREAT))
            record->kind = TRACE_CREATE;
        op_end_at(record, fd, end_ns);
    }
    errno = saved;
}

static int open_any(int dir_fd, const char *path, int flags, mode_t mode)
{
    struct open_call call;
    struct ring_record *record = open_begin(&call, dir_fd, path, flags);
    int fd = dir_fd == AT_FDCWD ? REAL(open64)(path, flags, mode)
                                : REAL(openat64)(dir_fd, path, flags, mode);

    if (record)
        open_end(record, &call, fd);
    else if (fd >= 0)
        file_forget(fd);
    return fd;
}

static bool has_mode(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

/* open and open64 differ in O_LARGEFILE alone, which 64-bit kernels ignore; it is passed on
 * only where it was given. */
#define OPEN_BODY(dir)                                                                         \
    va_list arguments;                                                                         \
    mode_t mode = 0;                                                                           \
                                                                                               \
    va_start(arguments, flags);                                                                \
    if (has_mode(flags))                                                                       \
        mode = va_arg(arguments, mode_t);                                                      \
    va_end(arguments);                                                                         \
    return open_any(dir, path, flags, mode)

EXPORT int open(const char *path, int flags, ...)
{
    OPEN_BODY(AT_FDCWD);
}

EXPORT int open64(const char *path, int flags, ...)
{
    OPEN_BODY(AT_FDCWD);
}

EXPORT int openat(int dir_fd, const char *path, int flags, ...)
{
    OPEN_BODY(dir_fd);
}

EXPORT int openat64(int dir_fd, const char *path, int flags, ...)
{
    OPEN_BODY(dir_fd);
}

EXPORT int __open_2(const char *path, int flags)
{
    return open_any(AT_FDCWD, path, flags, 0);
}

EXPORT int __open64_2(const char *path, int flags)
{
    return open_any(AT_FDCWD, path, flags, 0);
}

EXPORT int __openat_2(int dir_fd, const char *path, int flags)
{
    return open_any(dir_fd, path, flags, 0);
}

EXPORT int __openat64_2(int dir_fd, const char *path, int flags)
{
    return open_any(dir_fd, path, flags, 0);
}

EXPORT int creat(const char *path, mode_t mode)
{
    return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

EXPORT int creat64(const char *path, mode_t mode)
{
    return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* The name is known only afterwards: libc tries several. */
static int temp_end(struct ring_record *record, char *path, int flags, int fd)
{
    struct open_call call = {
        .dir_fd = AT_FDCWD, .path = path, .flags = flags | O_CREAT | O_RDWR};

    call.before.asked = true;
    call.before.exists = false;
    if (record)
        open_end(record, &call, fd);
    else if (fd >= 0)
        file_forget(fd);
    return fd;
}

static struct ring_record *temp_begin(int flags)
{
    struct ring_record *record = op_reserve(TRACE_OPEN, TRACE_API_SYNC);

    if (record)
        record->arg = (uint32_t)(flags | O_CREAT | O_EXCL | O_RDWR);
    return record;
}

#define TEMP_WRAPPER(name, real, flags, parameters, arguments)                                 \
    EXPORT int name parameters                                                                 \
    {                                                                                          \
        struct ring_record *record = temp_begin(flags);                                        \
        return temp_end(record, path, flags, REAL(real) arguments);                            \
    }

TEMP_WRAPPER(mkstemp, mkstemp64, 0, (char *path), (path))
TEMP_WRAPPER(mkstemp64, mkstemp64, 0, (char *path), (path))
TEMP_WRAPPER(mkostemp, mkostemp64, flags, (char *path, int flags), (path, flags))
TEMP_WRAPPER(mkostemp64, mkostemp64, flags, (char *path, int flags), (path, flags))
TEMP_WRAPPER(mkstemps, mkstemps64, 0, (char *path, int suffix), (path, suffix))
TEMP_WRAPPER(mkstemps64, mkstemps64, 0, (char *path, int suffix), (path, suffix))
TEMP_WRAPPER(mkostemps, mkostemps64, flags, (char *path, int suffix, int flags),
             (path, suffix, flags))
TEMP_WRAPPER(mkostemps64, mkostemps64, flags, (char *path, int suffix, int flags),
             (path, suffix, flags))

/* ---- close and dup ----------------------------------------------------------------------- */

EXPORT int close(int fd)
{
    struct ring_record *record =
        shim_in_vfork() ? NULL
                        : op_begin(fd, TRACE_CLOSE, TRACE_API_SYNC, TRACE_UNKNOWN_U64, 0);
    int result;

    /* Before the call: after it the number may be another thread's new file. */
    file_forget(fd);
    if (UNLIKELY(uring_is(fd)) && !shim_in_vfork())
        uring_gone(fd);
    result = REAL(close)(fd);
    if (record)
        op_end(record, result);
    return result;
}

/* Descriptors that libc closes by calls of its own. */
EXPORT int closedir(DIR *directory)
{
    file_forget(dirfd(directory));
    return REAL(closedir)(directory);
}

EXPORT int pclose(FILE *file)
{
    if (file)
        file_forget(fileno(file));
    return REAL(pclose)(file);
}

EXPORT int close_range(unsigned int first, unsigned int last, int flags)
{
    int result;

    if (!(flags & CLOSE_RANGE_CLOEXEC) && first <= last)
        file_forget_range(first, last);
    result = REAL(close_range)(first, last, flags);
    return result;
}

EXPORT void closefrom(int low)
{
    file_forget_range(low < 0 ? 0 : (unsigned int)low, ~0u);
    REAL(closefrom)(low);
}

EXPORT int dup(int fd)
{
    int copy = REAL(dup)(fd);

    if (copy >= 0)
        file_copy(fd, copy);
    return copy;
}

EXPORT int dup2(int fd, int to)
{
    int copy = REAL(dup2)(fd, to);

    if (copy >= 0 && fd != to)
        file_copy(fd, copy);
    return copy;
}

EXPORT int dup3(int fd, int to, int flags)
{
    int copy = REAL(dup3)(fd, to, flags);

    if (copy >= 0)
        file_copy(fd, copy);
    return copy;
}

/* Every fcntl command takes at most one word more. */
static int fcntl_any(int fd, int command, void *argument)
{
    int result = REAL(fcntl64)(fd, command, argument);

    if (result >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC))
        file_copy(fd, result);
    else if (result >= 0 && command == F_SETFL)
        file_flags_changed(fd, (int)(intptr_t)argument);
    return result;
}

#define FCNTL_BODY                                                                             \
    va_list arguments;                                                                         \
    void *argument;                                                                            \
                                                                                               \
    va_start(arguments, command);                                                              \
    argument = va_arg(arguments, void *);                                                      \
    va_end(arguments);                                                                         \
    return fcntl_any(fd, command, argument)

EXPORT int fcntl(int fd, int command, ...)
{
    FCNTL_BODY;
}

EXPORT int fcntl64(int fd, int command, ...)
{
    FCNTL_BODY;
}

/* ---- the name space ---------------------------------------------------------------------- */

/* A path's facts are taken before the call: afterwards the file may be gone or elsewhere. */
static struct ring_record *name_begin(unsigned int kind, int dir_fd, const char *path)
{
    uint32_t file;
    struct ring_record *record;
    int saved = errno;

    if (!shim_ready() || shim_in_vfork())
        return NULL;
    file = file_named(dir_fd, path, false);
    errno = saved;
    record = op_reserve(kind, TRACE_API_SYNC);
    if (record)
        record->file = file;
    return record;
}

static void name_end(struct ring_record *record, int result)
{
    if (record)
        op_end(record, result);
}

/* The second name's facts are the file's as it is there now, so taken after the call. */
static void pair_end(struct ring_record *record, int result, int dir_fd, const char *path)
{
    int saved = errno;
    uint64_t end_ns = stamp_ns();

    if (!record)
        return;
    if (result == 0 || saved != EFAULT)
        record->other = file_named(dir_fd, path, false);
    op_end_at(record, result == -1 ? -saved : result, end_ns);
    errno = saved;
}

EXPORT int unlink(const char *path)
{
    struct ring_record *record = name_begin(TRACE_UNLINK, AT_FDCWD, path);
    int result = REAL(unlink)(path);

    name_end(record, result);
    return result;
}

EXPORT int unlinkat(int dir_fd, const char *path, int flags)
{
    struct ring_record *record =
        name_begin(flags & AT_REMOVEDIR ? TRACE_RMDIR : TRACE_UNLINK, dir_fd, path);
    int result = REAL(unlinkat)(dir_fd, path, flags);

    name_end(record, result);
    return result;
}

/* libc tries unlink, then rmdir for a directory. */
EXPORT int remove(const char *path)
{
    struct stat facts;
    bool directory = path &&
                     RAW(newfstatat, AT_FDCWD, path, &facts, AT_SYMLINK_NOFOLLOW) >= 0 &&
                     S_ISDIR(facts.st_mode);
    struct ring_record *record =
        name_begin(directory ? TRACE_RMDIR : TRACE_UNLINK, AT_FDCWD, path);
    int result = REAL(remove)(path);

    name_end(record, result);
    return result;
}

EXPORT int rmdir(const char *path)
{
    struct ring_record *record = name_begin(TRACE_RMDIR, AT_FDCWD, path);
    int result = REAL(rmdir)(path);

    name_end(record, result);
    return result;
}

EXPORT int rename(const char *from, const char *to)
{
    struct ring_record *record = name_begin(TRACE_RENAME, AT_FDCWD, from);
    int result = REAL(rename)(from, to);

    pair_end(record, result, AT_FDCWD, to);
    return result;
}

EXPORT int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    struct ring_record *record = name_begin(TRACE_RENAME, from_fd, from);
    int result = REAL(renameat)(from_fd, from, to_fd, to);

    pair_end(record, result, to_fd, to);
    return result;
}

EXPORT int renameat2(int from_fd, const char *from, int to_fd, const char *to,
                     unsigned int flags)
{
    struct ring_record *record = name_begin(TRACE_RENAME, from_fd, from);
    int result = REAL(renameat2)(from_fd, from, to_fd, to, flags);

    pair_end(record, result, to_fd, to);
    return result;
}

EXPORT int link(const char *from, const char *to)
{
    struct ring_record *record = name_begin(TRACE_LINK, AT_FDCWD, from);
    int result = REAL(link)(from, to);

    pair_end(record, result, AT_FDCWD, to);
    return result;
}

EXPORT int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    struct ring_record *record = name_begin(TRACE_LINK, from_fd, from);
    int result = REAL(linkat)(from_fd, from, to_fd, to, flags);

    pair_end(record, result, to_fd, to);
    return result;
}

EXPORT int symlink(const char *target, const char *path)
{
    struct ring_record *record = name_begin(TRACE_SYMLINK, AT_FDCWD, target);
    int result = REAL(symlink)(target, path);

    pair_end(record, result, AT_FDCWD, path);
    return result;
}

EXPORT int symlinkat(const char *target, int dir_fd, const char *path)
{
    struct ring_record *record = name_begin(TRACE_SYMLINK, dir_fd, target);
    int result = REAL(symlinkat)(target, dir_fd, path);

    pair_end(record, result, dir_fd, path);
    return result;
}

EXPORT int mkdir(const char *path, mode_t mode)
{
    struct ring_record *record = name_begin(TRACE_MKDIR, AT_FDCWD, path);
    int result = REAL(mkdir)(path, mode);

    if (record)
        record->arg = mode;
    name_end(record, result);
    return result;
}

EXPORT int mkdirat(int dir_fd, const char *path, mode_t mode)
{
    struct ring_record *record = name_begin(TRACE_MKDIR, dir_fd, path);
    int result = REAL(mkdirat)(dir_fd, path, mode);

    if (record)
        record->arg = mode;
    name_end(record, result);
    return result;
}
