/* SPDX-License-Identifier: MIT */
#include "replay/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engines/clock.h"
#include "replay/beneath.h"
#include "replay/chunks.h"
#include "replay/conf.h"
#include "replay/images.h"
#include "replay/restore_state.h"
#include "replay/target.h"
#include "traces/diag.h"

#define FILESYSTEMS 16

/* File systems that were written to: each is synced once, not each file. */
struct written {
    dev_t devices[FILESYSTEMS];
    int fds[FILESYSTEMS];
    int count;
};

int restore_open(struct restore **ret_restore, const struct conf *conf, struct diag *diag)
{
    struct restore *restore = calloc(1, sizeof *restore);
    int err = 0;

    if (restore == NULL)
        return diag_errno(diag, -ENOMEM, "--restore");
    restore->conf = conf;
    restore->slash_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    restore->buffer = malloc(RESTORE_BUFFER);
    if (restore->slash_fd < 0)
        err = diag_errno(diag, -errno, "/");
    else if (restore->buffer == NULL)
        err = diag_errno(diag, -ENOMEM, "--restore");
    else
        err = images_open(&restore->images, conf->restore, diag);
    if (err < 0) {
        restore_free(restore);
        return err;
    }
    *ret_restore = restore;
    return 0;
}

void restore_free(struct restore *restore)
{
    if (restore == NULL)
        return;
    images_close(restore->images);
    if (restore->slash_fd >= 0)
        close(restore->slash_fd);
    free(restore->buffer);
    free(restore);
}

int restore_forget(struct restore *restore, struct diag *diag)
{
    return images_remove(restore->images, diag);
}

const char *restore_method(const struct restore_report *report)
{
    if (report->cloned == 0)
        return report->copied == 0 ? "nothing" : "extents";
    return report->copied == 0 ? "reflink" : "reflink and extents";
}

/* ---- contents ---------------------------------------------------------------------------- */

/* The file system of fd has been written to; fd stays the caller's. */
static int written_note(struct written *written, int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return -errno;
    if (S_ISBLK(st.st_mode))
        return fsync(fd) == 0 ? 0 : -errno;
    for (int i = 0; i < written->count; i++)
        if (written->devices[i] == st.st_dev)
            return 0;
    if (written->count == FILESYSTEMS)
        return fsync(fd) == 0 ? 0 : -errno;
    written->fds[written->count] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (written->fds[written->count] < 0)
        return -errno;
    written->devices[written->count++] = st.st_dev;
    return 0;
}

static int written_sync(struct written *written)
{
    int err = 0;

    for (int i = 0; i < written->count; i++) {
        if (syncfs(written->fds[i]) != 0 && err == 0)
            err = -errno;
        close(written->fds[i]);
    }
    written->count = 0;
    return err;
}

int restore_copy(const struct restore *restore, int from_fd, int to_fd, uint64_t from,
                 uint64_t to, bool may_end)
{
    while (from < to) {
        size_t want = to - from < RESTORE_BUFFER ? (size_t)(to - from) : RESTORE_BUFFER;
        ssize_t got = pread(from_fd, restore->buffer, want, (off_t)from);

        if (got == 0)
            return may_end ? 0 : -EIO;
        if (got < 0 && errno != EINTR)
            return -errno;
        for (ssize_t done = 0; done < got;) {
            ssize_t put = pwrite(to_fd, restore->buffer + done, (size_t)(got - done),
                                 (off_t)from + done);

            if (put < 0 && errno != EINTR)
                return -errno;
            done += put > 0 ? put : 0;
        }
        from += got > 0 ? (uint64_t)got : 0;
    }
    return 0;
}

void restore_count(const struct restore *restore, struct restore_report *report)
{
    report->cloned = report->copied = 0;
    for (uint32_t i = 0; i < restore->images->count; i++) {
        const struct image *image = &restore->images->items[i];

        report->cloned += image->cloned;
        report->copied += !image->cloned &&
                          (image->was == IMAGE_FILE || image->was == IMAGE_DEVICE);
    }
}

static int make_hole(const struct restore *restore, int fd, uint64_t from, uint64_t to)
{
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
                  (off_t)(to - from)) == 0)
        return 0;
    if (errno != EOPNOTSUPP)
        return -errno;
    memset(restore->buffer, 0, RESTORE_BUFFER);
    while (from < to) {
        size_t want = to - from < RESTORE_BUFFER ? (size_t)(to - from) : RESTORE_BUFFER;
        ssize_t put = pwrite(fd, restore->buffer, want, (off_t)from);

        if (put < 0 && errno != EINTR)
            return -errno;
        from += put > 0 ? (uint64_t)put : 0;
    }
    return 0;
}

/* Every kept part of image number, holes or data, cut off at the original's length. */
static int put_parts(const struct restore *restore, uint32_t number, bool holes, int from_fd,
                     int to_fd, struct restore_report *report)
{
    const struct image *image = &restore->images->items[number];
    const struct chunk_set *set = holes ? restore->images->holes : restore->images->data;
    uint64_t from = 0, to = 0;
    int err = 0;

    while (err == 0 && chunks_next(set, number, to, &from, &to) && from < image->bytes) {
        uint64_t end = to < image->bytes ? to : image->bytes;

        err = holes ? make_hole(restore, to_fd, from, end)
                    : restore_copy(restore, from_fd, to_fd, from, end, false);
        report->bytes += end - from;
    }
    return err;
}

static int put_extents(const struct restore *restore, uint32_t number, int fd,
                       struct restore_report *report, struct diag *diag)
{
    const struct image *image = &restore->images->items[number];
    int kept = images_data(restore->images, number, O_RDONLY, diag);
    int err = kept < 0 ? kept : 0;

    if (err < 0)
        return err;
    err = put_parts(restore, number, false, kept, fd, report);
    if (err == 0 && image->was == IMAGE_FILE)
        err = put_parts(restore, number, true, kept, fd, report);
    posix_fadvise(kept, 0, 0, POSIX_FADV_DONTNEED);
    close(kept);
    return err < 0 ? diag_errno(diag, err, "%s: putting it back", image->path) : 0;
}

static int put_clone(const struct restore *restore, uint32_t number, int fd,
                     struct restore_report *report, struct diag *diag)
{
    const struct image *image = &restore->images->items[number];
    int kept = images_data(restore->images, number, O_RDONLY, diag);
    int err = 0;

    if (kept < 0)
        return kept;
    /* Its length first: a last block that is not whole can only be cloned to the end of a file. */
    if (ftruncate(fd, (off_t)image->bytes) != 0)
        err = diag_errno(diag, -errno, "%s", image->path);
    else if (ioctl(fd, FICLONE, kept) != 0)
        err = diag_errno(diag, -errno, "%s: reflink from %s/%u", image->path,
                         restore->images->folder, number);
    close(kept);
    report->bytes += image->bytes;
    return err;
}

/* ---- one name ---------------------------------------------------------------------------- */

/* Opens the file, which is made anew where the replay removed it or renamed it away. */
static int open_file(const struct restore *restore, uint32_t number, struct diag *diag)
{
    const struct image *image = &restore->images->items[number];
    int flags = O_RDWR | O_NONBLOCK;
    int fd = beneath_open(restore->slash_fd, image->path, flags, 0, false);

    if (fd == -ENOENT && image->whole) {
        fd = beneath_make_parents(restore->slash_fd, image->path);
        if (fd == 0)
            fd = beneath_open(restore->slash_fd, image->path, flags | O_CREAT | O_EXCL,
                              image->mode, false);
    } else if (fd == -ENOENT) {
        return diag_set(diag, fd, "%s is gone, and %s holds only what the tape writes to it",
                        image->path, restore->images->folder);
    }
    return fd < 0 ? diag_errno(diag, fd, "%s: putting it back", image->path) : fd;
}

static int put_file(const struct restore *restore, uint32_t number, struct written *written,
                    struct restore_report *report, struct diag *diag)
{
    const struct image *image = &restore->images->items[number];
    int fd = open_file(restore, number, diag);
    struct stat st;
    int err = 0;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        err = diag_set(diag, -EINVAL, "%s was a file and is something else now", image->path);
    else if (!image->whole && st.st_ino != image->inode)
        err = diag_set(diag, -ESTALE,
                       "%s is another file now, and %s holds only what the tape writes to it",
                       image->path, restore->images->folder);
    else if (image->cloned)
        err = put_clone(restore, number, fd, report, diag);
    else
        err = put_extents(restore, number, fd, report, diag);
    if (err == 0 && (ftruncate(fd, (off_t)image->bytes) != 0 ||
                     ((st.st_mode & 07777) != image->mode && fchmod(fd, image->mode) != 0)))
        err = diag_errno(diag, -errno, "%s: putting it back", image->path);
    if (err == 0 && (err = written_note(written, fd)) < 0)
        diag_errno(diag, err, "%s", image->path);
    report->files++;
    close(fd);
    return err;
}

static int put_device(const struct restore *restore, uint32_t number, struct written *written,
                      struct restore_report *report, struct diag *diag)
{
    const struct image *image = &restore->images->items[number];
    struct stat st;
    int fd, err = 0;

    fd = beneath_open(restore->slash_fd, image->path, O_RDWR | O_NONBLOCK, 0, false);
    if (fd < 0)
        return diag_errno(diag, fd, "%s", image->path);
    if (fstat(fd, &st) != 0 || !S_ISBLK(st.st_mode))
        err = diag_set(diag, -EINVAL, "%s was a block device and is something else now",
                       image->path);
    else if (!target_may_destroy(restore->conf, &st))
        err = diag_set(diag, -EPERM, "%s holds what was on %s: --destroy %s allows to write it back",
                       restore->images->folder, image->path, image->path);
    else
        err = put_extents(restore, number, fd, report, diag);
    if (err == 0 && (err = written_note(written, fd)) < 0)
        diag_errno(diag, err, "%s", image->path);
    report->files++;
    close(fd);
    return err;
}

/* A name that was not there: it goes. */
static int remove_name(const struct restore *restore, const struct image *image, bool directory,
                       struct restore_report *report, struct diag *diag)
{
    const char *name;
    struct stat st;
    int dir = beneath_parent(restore->slash_fd, image->path, &name);
    int err = 0;

    if (dir < 0)
        return dir == -ENOENT || dir == -ENOTDIR ? 0 : diag_errno(diag, dir, "%s", image->path);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        (S_ISDIR(st.st_mode) != 0) == directory) {
        if (unlinkat(dir, name, directory ? AT_REMOVEDIR : 0) != 0)
            err = diag_errno(diag, -errno, "%s: it was not there at first, and cannot be removed",
                             image->path);
        else
            report->removed++;
    }
    close(dir);
    return err;
}

static int make_directory(const struct restore *restore, const struct image *image,
                          struct diag *diag)
{
    const char *name;
    int err = beneath_make_parents(restore->slash_fd, image->path);
    int dir = err < 0 ? err : beneath_parent(restore->slash_fd, image->path, &name);

    if (dir < 0)
        return diag_errno(diag, dir, "%s", image->path);
    err = mkdirat(dir, name, image->mode) == 0 || errno == EEXIST ? 0 : -errno;
    close(dir);
    return err < 0 ? diag_errno(diag, err, "%s", image->path) : 0;
}

/* ---- all of them ------------------------------------------------------------------------- */

void restore_cool(const struct restore *restore)
{
    for (uint32_t i = 0; i < restore->images->count; i++) {
        const struct image *image = &restore->images->items[i];
        int fd;

        if (image->was != IMAGE_FILE && image->was != IMAGE_DEVICE)
            continue;
        fd = beneath_open(restore->slash_fd, image->path, O_RDONLY | O_NONBLOCK, 0, false);
        if (fd < 0)
            continue;
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
}

static int longer_first(const void *a, const void *b)
{
    const struct image *const *x = a, *const *y = b;
    size_t m = strlen((*x)->path), n = strlen((*y)->path);

    return m > n ? -1 : m < n;
}

/* New files and directories go, the deepest first; then directories that were there come back. */
static int put_names(const struct restore *restore, struct restore_report *report,
                     struct diag *diag)
{
    const uint32_t count = restore->images->count;
    const struct image **list = calloc(count + 1ull, sizeof *list);
    int err = 0;

    if (list == NULL)
        return diag_errno(diag, -ENOMEM, "--restore");
    for (uint32_t i = 0; i < count; i++)
        list[i] = &restore->images->items[i];
    qsort(list, count, sizeof *list, longer_first);
    for (int directory = 0; directory < 2; directory++)
        for (uint32_t i = 0; i < count && err == 0; i++)
            if (list[i]->was == IMAGE_ABSENT)
                err = remove_name(restore, list[i], directory, report, diag);
    for (uint32_t i = count; i > 0 && err == 0; i--)
        if (list[i - 1]->was == IMAGE_DIRECTORY)
            err = make_directory(restore, list[i - 1], diag);
    free(list);
    return err;
}

int restore_put_back(struct restore *restore, struct restore_report *report, struct diag *diag)
{
    const uint64_t from_ns = clock_now_ns(&clock_real);
    struct written written = {.count = 0};
    uint64_t chunks;
    int err, sync_err;

    report->used = true;
    err = chunks_sort(restore->images->data, &chunks);
    if (err == 0)
        err = chunks_sort(restore->images->holes, &chunks);
    if (err < 0)
        return diag_errno(diag, err, "--restore");
    err = put_names(restore, report, diag);
    for (uint32_t i = 0; i < restore->images->count && err == 0; i++) {
        if (restore->images->items[i].was == IMAGE_FILE)
            err = put_file(restore, i, &written, report, diag);
        else if (restore->images->items[i].was == IMAGE_DEVICE)
            err = put_device(restore, i, &written, report, diag);
    }
    sync_err = written_sync(&written);
    if (err == 0 && sync_err < 0)
        err = diag_errno(diag, sync_err, "--restore: putting back");
    if (err == 0)
        restore_cool(restore);
    restore_count(restore, report);
    report->time_ns = clock_now_ns(&clock_real) - from_ns;
    return err;
}
