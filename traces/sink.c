/* SPDX-License-Identifier: MIT */
/* Where output goes: standard output, a file under its own name, or one renamed into place. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/diag.h"
#include "traces/trace.h"

struct path_sink {
    int fd;
    bool is_stdout;
    bool special; /* a fifo or device: neither renamed over nor removed */
    bool force;
    bool failed;          /* a write failed */
    unsigned int flushes; /* the header, then one a block */
    uint64_t written, flushed;
    char *path;
    char *temp; /* NULL when under its own name */
};

static int path_write(void *context, const void *buffer, size_t bytes)
{
    struct path_sink *self = context;
    const char *at = buffer;

    while (bytes > 0) {
        ssize_t put = write(self->fd, at, bytes);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            self->failed = true;
            return put < 0 ? -errno : -EIO;
        }
        at += put;
        bytes -= (size_t)put;
        self->written += (uint64_t)put;
    }
    return 0;
}

static int path_flush(void *context)
{
    struct path_sink *self = context;

    self->flushes++;
    self->flushed = self->written;
    return 0;
}

static void path_free(struct path_sink *self)
{
    free(self->path);
    free(self->temp);
    free(self);
}

/* A file under its own name that met a full disk keeps its whole blocks. */
static bool path_worth_keeping(const struct path_sink *self)
{
    return !self->temp && self->failed && self->flushes > 1;
}

static int path_put_in_place(struct path_sink *self)
{
    if (self->force)
        return rename(self->temp, self->path) < 0 ? -errno : 0;
    if (renameat2(AT_FDCWD, self->temp, AT_FDCWD, self->path, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    /* A file system without NOREPLACE: a link refuses an existing name just as well. */
    if (link(self->temp, self->path) < 0)
        return -errno;
    unlink(self->temp);
    return 0;
}

static int path_close(void *context, bool keep)
{
    struct path_sink *self = context;
    int err = 0;

    if (!keep && path_worth_keeping(self) && ftruncate(self->fd, (off_t)self->flushed) == 0) {
        close(self->fd);
        path_free(self);
        return 0;
    }
    if (!self->is_stdout && close(self->fd) < 0)
        err = -errno;
    if (self->is_stdout || self->special) {
        path_free(self);
        return err;
    }
    if (keep && err == 0 && self->temp)
        err = path_put_in_place(self);
    if (!keep || (err < 0 && self->temp))
        unlink(self->temp ? self->temp : self->path);
    path_free(self);
    return err;
}

/* Under sudo the output belongs to the user who asked. */
static void give_to_sudo_user(int fd)
{
    const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");
    char *end_uid, *end_gid;
    unsigned long uid_number, gid_number;

    if (geteuid() != 0 || !uid || !gid || !*uid || !*gid)
        return;
    uid_number = strtoul(uid, &end_uid, 10);
    gid_number = strtoul(gid, &end_gid, 10);
    if (*end_uid || *end_gid)
        return;
    /* Root can read it all the same: a failure costs the user a chown, not the tape. */
    if (fchown(fd, (uid_t)uid_number, (gid_t)gid_number) < 0)
        return;
}

/* "dir/.name.XXXXXX" beside path. */
static char *temp_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    char *name;

    if (asprintf(&name, "%.*s.%s.XXXXXX", (int)folder, path, path + folder) < 0)
        return NULL;
    return name;
}

static int path_create(struct path_sink *self, enum trace_sink_how how, struct diag *diag)
{
    struct stat st;
    bool exists = stat(self->path, &st) == 0;

    if (exists && S_ISDIR(st.st_mode))
        return diag_set(diag, -EISDIR, "%s: is a directory", self->path);
    if (exists && !S_ISREG(st.st_mode)) {
        self->special = true;
        self->fd = open(self->path, O_WRONLY | O_CLOEXEC);
    } else if (exists && !self->force) {
        return diag_set(diag, -EEXIST, "%s: exists already (--force replaces it)", self->path);
    } else if (how == TRACE_SINK_RENAME) {
        self->temp = temp_name(self->path);
        if (!self->temp)
            return diag_errno(diag, -ENOMEM, "%s", self->path);
        self->fd = mkostemp(self->temp, O_CLOEXEC);
    } else {
        self->fd =
            open(self->path, O_WRONLY | O_CREAT | O_CLOEXEC | (self->force ? O_TRUNC : O_EXCL),
                 0600);
    }
    if (self->fd < 0)
        return diag_errno(diag, -errno, "%s: cannot create", self->path);
    if (!self->special)
        give_to_sudo_user(self->fd);
    return 0;
}

int trace_sink_path(struct trace_sink *ret_sink, const char *path, enum trace_sink_how how,
                    bool force, struct diag *diag)
{
    struct path_sink *self = calloc(1, sizeof(*self));
    int err = 0;

    if (!self)
        return diag_errno(diag, -ENOMEM, "%s", path);
    self->fd = -1;
    self->force = force;
    self->is_stdout = strcmp(path, "-") == 0;
    self->path = strdup(self->is_stdout ? "standard output" : path);
    if (!self->path)
        err = diag_errno(diag, -ENOMEM, "%s", path);
    else if (self->is_stdout)
        self->fd = STDOUT_FILENO;
    else
        err = path_create(self, how, diag);
    if (err < 0) {
        path_free(self);
        return err;
    }
    *ret_sink = (struct trace_sink){
        .write = path_write,
        .flush = path_flush,
        .close = path_close,
        .context = self,
        .name = self->path,
    };
    return 0;
}
