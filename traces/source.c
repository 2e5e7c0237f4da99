/* SPDX-License-Identifier: MIT */
/* Where tapes are read from: files and standard input. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/diag.h"
#include "traces/trace.h"

struct path_source {
    int fd;
    char name[];
};

static int64_t path_read(void *context, void *buffer, size_t bytes)
{
    struct path_source *self = context;
    ssize_t got;

    do
        got = read(self->fd, buffer, bytes);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

static int64_t path_pread(void *context, void *buffer, size_t bytes, uint64_t offset)
{
    struct path_source *self = context;
    ssize_t got;

    if (offset > INT64_MAX)
        return 0;
    do
        got = pread(self->fd, buffer, bytes, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

static void path_close(void *context)
{
    struct path_source *self = context;

    if (self->fd != STDIN_FILENO)
        close(self->fd);
    free(self);
}

int trace_source_path(struct trace_source *ret_source, const char *path, struct diag *diag)
{
    bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "standard input" : path;
    struct path_source *self = NULL;
    struct stat st;
    int fd, err;
    bool regular;

    fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return diag_errno(diag, -errno, "%s: cannot open", name);
    if (fstat(fd, &st) < 0) {
        err = diag_errno(diag, -errno, "%s: cannot stat", name);
        goto out;
    }
    if (S_ISDIR(st.st_mode)) {
        err = diag_set(diag, -EISDIR, "%s: is a directory", name);
        goto out;
    }
    /* A redirected standard input may stand past its start: read on from there. */
    regular = S_ISREG(st.st_mode) && (!is_stdin || lseek(fd, 0, SEEK_CUR) == 0);
    if (regular && st.st_size == 0) {
        err = diag_set(diag, -EBADMSG, "%s: is empty", name);
        goto out;
    }
    self = malloc(sizeof(*self) + strlen(name) + 1);
    if (!self) {
        err = diag_errno(diag, -ENOMEM, "%s", name);
        goto out;
    }
    self->fd = fd;
    memcpy(self->name, name, strlen(name) + 1);
    *ret_source = (struct trace_source){
        .read = path_read,
        .pread = regular ? path_pread : NULL,
        .size_bytes = regular ? (uint64_t)st.st_size : TRACE_UNKNOWN_U64,
        .close = path_close,
        .context = self,
        .name = self->name,
    };
    return 0;

out:
    if (!is_stdin)
        close(fd);
    return err;
}
