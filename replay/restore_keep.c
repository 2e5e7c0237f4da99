/* SPDX-License-Identifier: MIT */
/* Keeping before-images of what a replay is about to change. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "engines/clock.h"
#include "replay/beneath.h"
#include "replay/chunks.h"
#include "replay/conf.h"
#include "replay/images.h"
#include "replay/restore.h"
#include "replay/restore_state.h"
#include "replay/target.h"
#include "replay/touched.h"
#include "traces/diag.h"
#include "traces/units.h"

struct keep {
    struct restore *restore;
    const struct target_set *set;
    const struct touched *touched;
    struct restore_report *report;
    char **roots; /* without links, by root */
    struct diag *diag;
};

/* ---- paths ------------------------------------------------------------------------------- */

/* The path without links of a name that need not be there itself; the caller frees it. */
static char *real_path(const char *path)
{
    char *real = realpath(path, NULL), *folder, *copy;
    const char *name = strrchr(path, '/');

    if (real != NULL || errno != ENOENT)
        return real;
    copy = name == NULL ? strdup(".") : strndup(path, name == path ? 1 : (size_t)(name - path));
    folder = copy ? realpath(copy, NULL) : NULL;
    free(copy);
    if (folder == NULL)
        return NULL;
    if (asprintf(&real, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder,
                 name == NULL ? path : name + 1) < 0)
        real = NULL;
    free(folder);
    return real;
}

static char *target_real_path(const struct keep *keep, const struct target *target)
{
    const char *root = target->root < 0 ? NULL : keep->roots[target->root];
    char *path;

    if (root == NULL)
        return real_path(target->path);
    if (asprintf(&path, "%s/%s", strcmp(root, "/") == 0 ? "" : root, target->relative) < 0)
        return NULL;
    return path;
}

static int roots_find(struct keep *keep)
{
    keep->roots = calloc(keep->set->root_count + 1ull, sizeof *keep->roots);
    if (keep->roots == NULL)
        return diag_errno(keep->diag, -ENOMEM, "--restore");
    for (uint32_t i = 0; i < keep->set->root_count; i++) {
        keep->roots[i] = realpath(keep->set->roots[i].path, NULL);
        if (keep->roots[i] == NULL)
            return diag_errno(keep->diag, -errno, "%s", keep->set->roots[i].path);
    }
    return 0;
}

static void roots_release(struct keep *keep)
{
    for (uint32_t i = 0; keep->roots != NULL && i < keep->set->root_count; i++)
        free(keep->roots[i]);
    free(keep->roots);
}

/* ---- contents ---------------------------------------------------------------------------- */

/* A disk filled by what is kept would end the replay for another reason than its own. */
static int check_room(const struct keep *keep, const char *path, uint64_t bytes)
{
    const struct images *images = keep->restore->images;
    char need[UNITS_TEXT], have[UNITS_TEXT];
    struct statvfs fs;
    uint64_t room;

    if (fstatvfs(images->dir_fd, &fs) != 0)
        return 0;
    room = (uint64_t)(geteuid() == 0 ? fs.f_bfree : fs.f_bavail) * fs.f_frsize;
    if (bytes <= room)
        return 0;
    return diag_set(keep->diag, -ENOSPC,
                    "%s: keeping what the tape changes takes %s, %s has %s free; a --restore folder "
                    "elsewhere may have more, and without --restore (compare: --restore-by none) nothing "
                    "is kept", path, units_size(bytes, need), images->folder,
                    units_size(room, have));
}

/* Where the state, hole or data, that holds at `from` ends; at most to. */
static uint64_t same_until(int fd, uint64_t from, uint64_t to, bool *ret_hole)
{
    off_t data = lseek(fd, (off_t)from, SEEK_DATA), hole;

    /* Where the file system cannot say all of it is data. */
    *ret_hole = (data < 0 && errno == ENXIO) || data >= (off_t)(from + CHUNK_BYTES);
    if (*ret_hole)
        return data < 0 || (uint64_t)data >= to ? to : (uint64_t)data & ~(CHUNK_BYTES - 1);
    hole = lseek(fd, (off_t)from, SEEK_HOLE);
    if (hole < 0 || (uint64_t)hole >= to)
        return to;
    hole = (hole + (off_t)CHUNK_BYTES - 1) & ~(off_t)(CHUNK_BYTES - 1);
    return (uint64_t)hole > from ? (uint64_t)hole : from + CHUNK_BYTES;
}

/* Chunks from..to of image number are not kept yet. */
static int keep_run(const struct keep *keep, uint32_t number, int fd, int *data_fd, uint64_t from,
                    uint64_t to)
{
    struct images *images = keep->restore->images;
    const struct image *image = &images->items[number];
    int err = 0;

    while (from < to && err == 0) {
        bool hole = false;
        uint64_t end = image->was == IMAGE_FILE ? same_until(fd, from, to, &hole) : to;

        if (!hole) {
            err = restore_copy(keep->restore, fd, *data_fd, from, end, true);
            keep->report->kept_bytes += end - from;
        }
        if (err < 0)
            return diag_errno(keep->diag, err, "%s: keeping it in %s/%u", image->path,
                              images->folder, number);
        err = images_keep(images, number, from, end, hole, keep->diag);
        from = end;
    }
    return err;
}

static bool is_kept(const struct images *images, uint32_t number, uint64_t offset)
{
    return chunks_have(images->data, number, offset) ||
           chunks_have(images->holes, number, offset);
}

/* Of from..to what is not kept yet and lies within the file: counted where data_fd is NULL. */
static int keep_missing(const struct keep *keep, uint32_t number, int fd, int *data_fd,
                        uint64_t from, uint64_t to, uint64_t *ret_bytes)
{
    const struct images *images = keep->restore->images;
    const uint64_t bytes = images->items[number].bytes;
    const uint64_t end = to < bytes ? to : (bytes + CHUNK_BYTES - 1) & ~(CHUNK_BYTES - 1);
    int err = 0;

    while (from < end && err == 0) {
        uint64_t run = from;

        while (run < end && !is_kept(images, number, run))
            run += CHUNK_BYTES;
        *ret_bytes += run - from;
        if (run > from && data_fd != NULL)
            err = keep_run(keep, number, fd, data_fd, from, run);
        from = run > from ? run : run + CHUNK_BYTES;
    }
    return err;
}

/* The chunks that target t's operations change, or all of it. */
static int keep_touched(const struct keep *keep, uint32_t t, uint32_t number, int fd,
                        int *data_fd, uint64_t *ret_bytes)
{
    const struct images *images = keep->restore->images;
    uint64_t from = 0, to = 0;
    int err = 0;

    if (keep->touched->how[t] & TOUCHED_WHOLE)
        return keep_missing(keep, number, fd, data_fd, 0, images->items[number].bytes, ret_bytes);
    while (err == 0 && chunks_next(keep->touched->chunks, t, to, &from, &to) &&
           from < images->items[number].bytes)
        err = keep_missing(keep, number, fd, data_fd, from, to, ret_bytes);
    return err;
}

static int keep_extents(const struct keep *keep, uint32_t t, uint32_t number, int fd,
                        bool fresh)
{
    struct images *images = keep->restore->images;
    const char *path = images->items[number].path;
    bool whole = (keep->touched->how[t] & TOUCHED_WHOLE) != 0;
    uint64_t bytes = 0;
    int data_fd, err;

    err = keep_touched(keep, t, number, fd, NULL, &bytes);
    if (err == 0 && bytes > 0)
        err = check_room(keep, path, bytes);
    if (err < 0)
        return err;
    data_fd = images_data(images, number, O_RDWR | O_CREAT | (fresh ? O_TRUNC : 0), keep->diag);
    if (data_fd < 0)
        return data_fd;
    bytes = 0;
    err = keep_touched(keep, t, number, fd, &data_fd, &bytes);
    if (err == 0 && whole && !images->items[number].whole)
        err = images_whole(images, number, false, keep->diag);
    close(data_fd);
    return err;
}

/* 0: it is cloned; 1: that cannot be done here. */
static int keep_clone(const struct keep *keep, uint32_t number, int fd)
{
    struct images *images = keep->restore->images;
    int data_fd, error;

    data_fd = images_data(images, number, O_RDWR | O_CREAT | O_TRUNC, keep->diag);
    if (data_fd < 0)
        return data_fd;
    error = ioctl(data_fd, FICLONE, fd) == 0 ? 0 : errno;
    close(data_fd);
    if (error == 0) {
        keep->report->kept_bytes += images->items[number].bytes;
        return images_whole(images, number, true, keep->diag);
    }
    if (keep->restore->conf->restore_by == RESTORE_REFLINK)
        return diag_set(keep->diag, -error,
                        "%s: no reflink of it in %s (%s): both must be on one file system that has "
                        "them; --restore-by extents copies what the tape changes",
                        images->items[number].path, images->folder, strerror(error));
    return 1;
}

/* fresh: nothing of it is kept yet. */
static int keep_content(const struct keep *keep, uint32_t t, uint32_t number, int fd, bool fresh)
{
    const struct image *image = &keep->restore->images->items[number];
    int err = 1;

    if (image->whole || (image->was != IMAGE_FILE && image->was != IMAGE_DEVICE))
        return 0;
    keep->report->kept_files += fresh;
    if (fresh && image->was == IMAGE_FILE && keep->restore->conf->restore_by != RESTORE_EXTENTS)
        err = keep_clone(keep, number, fd);
    if (err == 1)
        err = keep_extents(keep, t, number, fd, fresh);
    /* Clean, so that restore_cool can drop it; files below a root are synced together. */
    if (err == 0 && fresh && keep->set->items[t].root < 0 && fsync(fd) != 0 && errno != EROFS)
        err = diag_errno(keep->diag, -errno, "%s", image->path);
    return err;
}

/* ---- one name ---------------------------------------------------------------------------- */

/* fd: the file, or why it could not be opened. */
static int image_new(const struct keep *keep, const char *path, int fd, uint32_t *ret_number)
{
    struct image image = {.path = (char *)path, .was = IMAGE_ABSENT};
    struct stat st;

    if (fd < 0)
        return fd == -ENOENT || fd == -ENOTDIR
                   ? images_add(keep->restore->images, &image, ret_number, keep->diag)
                   : diag_errno(keep->diag, fd, "%s: keeping it", path);
    if (fstat(fd, &st) != 0)
        return diag_errno(keep->diag, -errno, "%s", path);
    image.mode = st.st_mode & 07777;
    image.was = S_ISDIR(st.st_mode) ? IMAGE_DIRECTORY : IMAGE_DEVICE;
    if (S_ISREG(st.st_mode)) {
        image.was = IMAGE_FILE;
        image.bytes = (uint64_t)st.st_size;
        image.inode = st.st_ino;
    } else if (S_ISBLK(st.st_mode) && ioctl(fd, BLKGETSIZE64, &image.bytes) != 0) {
        return diag_errno(keep->diag, -errno, "%s: size", path);
    }
    return images_add(keep->restore->images, &image, ret_number, keep->diag);
}

static int keep_target(const struct keep *keep, uint32_t t, const struct target *target)
{
    const struct images *images = keep->restore->images;
    char *path = target_real_path(keep, target);
    uint32_t number;
    bool fresh;
    int fd, err = 0;

    if (path == NULL)
        return diag_errno(keep->diag, errno == ENOENT ? -ENOENT : -ENOMEM, "%s", target->path);
    number = images_find(images, path);
    fd = beneath_open(keep->restore->slash_fd, path, O_RDONLY | O_NONBLOCK, 0, false);
    fresh = number == TRACE_NONE_U32;
    if (fresh)
        err = image_new(keep, path, fd, &number);
    if (err == 0 && fd >= 0)
        err = keep_content(keep, t, number, fd, fresh);
    if (fd >= 0)
        close(fd);
    free(path);
    return err;
}

int restore_keep(struct restore *restore, const struct target_set *set,
                 struct trace_reader *reader, struct restore_report *report, struct diag *diag)
{
    const uint64_t from_ns = clock_now_ns(&clock_real);
    struct touched touched = {0};
    struct keep keep = {.restore = restore,
                        .set = set,
                        .touched = &touched,
                        .report = report,
                        .diag = diag};
    int err = roots_find(&keep);

    if (err == 0)
        err = touched_read(&touched, restore->conf, set, reader, diag);
    for (uint32_t i = 0; i < set->count && err == 0; i++) {
        uint32_t t = i % set->per_clone;

        if (touched.how[t] != 0)
            err = keep_target(&keep, t, &set->items[i]);
    }
    if (err == 0)
        err = images_commit(restore->images, diag);
    if (err == 0 && report->kept_files != 0) {
        for (uint32_t i = 0; i < set->root_count && err == 0; i++)
            if (syncfs(set->roots[i].fd) != 0)
                err = diag_errno(diag, -errno, "%s: syncfs", set->roots[i].path);
        restore_cool(restore);
    }
    touched_release(&touched);
    roots_release(&keep);
    restore_count(restore, report);
    report->keep_time_ns = clock_now_ns(&clock_real) - from_ns;
    return err;
}
