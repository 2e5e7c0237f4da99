/* SPDX-License-Identifier: MIT */
#include "replay/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_bool no_openat2;

const char *beneath_relative(const char *path)
{
    const char *at;

    while (*path == '/')
        path++;
    if (*path == '\0')
        return NULL;
    for (at = path; *at != '\0';) {
        size_t length = strcspn(at, "/");

        if (length == 2 && at[0] == '.' && at[1] == '.')
            return NULL;
        at += length;
        while (*at == '/')
            at++;
    }
    return path;
}

static int link_error(int error)
{
    /* ELOOP: a symbolic link in the way; ENOTDIR may be the same, met with O_DIRECTORY. */
    return error == ELOOP ? -EXDEV : -error;
}

/* One component: as openat, but a link is never followed. */
static int open_component(int dirfd, const char *name, size_t length, int flags, mode_t mode)
{
    char component[NAME_MAX + 1];
    int fd;

    if (length > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(component, name, length);
    component[length] = '\0';
    fd = openat(dirfd, component, flags | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0 && errno == ENOTDIR) {
        struct stat st;

        if (fstatat(dirfd, component, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
            return -EXDEV;
        return -ENOTDIR;
    }
    return fd < 0 ? link_error(errno) : fd;
}

/* Walks to the directory of the last component; *ret_name is that component. make: mkdir on the
 * way. The descriptor is the caller's to close. */
static int walk_parent(int dirfd, const char *path, bool make, const char **ret_name)
{
    const char *at = beneath_relative(path);
    int fd = fcntl(dirfd, F_DUPFD_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (at == NULL) {
        close(fd);
        return -EXDEV;
    }
    for (;;) {
        size_t length = strcspn(at, "/");
        const char *next = at + length + strspn(at + length, "/");
        int child;

        if (*next == '\0') {
            *ret_name = at;
            return fd;
        }
        child = open_component(fd, at, length, O_PATH | O_DIRECTORY, 0);
        if (child == -ENOENT && make) {
            char component[NAME_MAX + 1];

            memcpy(component, at, length);
            component[length] = '\0';
            if (mkdirat(fd, component, 0777) == 0 || errno == EEXIST)
                child = open_component(fd, at, length, O_PATH | O_DIRECTORY, 0);
            else
                child = -errno;
        }
        close(fd);
        if (child < 0)
            return child;
        fd = child;
        at = next;
    }
}

static int walk_open(int dirfd, const char *path, int flags, mode_t mode)
{
    const char *name;
    int parent = walk_parent(dirfd, path, false, &name);
    int fd;

    if (parent < 0)
        return parent;
    fd = open_component(parent, name, strcspn(name, "/"), flags, mode);
    close(parent);
    return fd;
}

int beneath_open(int dirfd, const char *path, int flags, mode_t mode, bool walk)
{
    const char *relative = beneath_relative(path);
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
        .mode = flags & O_CREAT ? mode : 0, /* elsewhere it must be 0 */
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd;

    if (relative == NULL)
        return -EXDEV;
    if (walk || atomic_load_explicit(&no_openat2, memory_order_relaxed))
        return walk_open(dirfd, path, flags, mode);
    do
        fd = syscall(SYS_openat2, dirfd, relative, &how, sizeof how);
    while (fd < 0 && (errno == EINTR || errno == EAGAIN));
    if (fd >= 0)
        return (int)fd;
    if (errno == ENOSYS || errno == EPERM) {
        /* EPERM: sandboxes that do not know the call answer so. The walk gives the true error. */
        if (errno == ENOSYS)
            atomic_store_explicit(&no_openat2, true, memory_order_relaxed);
        return walk_open(dirfd, path, flags, mode);
    }
    return link_error(errno);
}

int beneath_parent(int dirfd, const char *path, const char **ret_name)
{
    return walk_parent(dirfd, path, false, ret_name);
}

int beneath_make_parents(int dirfd, const char *path)
{
    const char *name;
    int fd = walk_parent(dirfd, path, true, &name);

    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}
