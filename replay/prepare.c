/* SPDX-License-Identifier: MIT */
#include "replay/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "replay/beneath.h"
#include "replay/conf.h"
#include "replay/plan.h"
#include "replay/target.h"
#include "traces/diag.h"
#include "traces/units.h"

#define CHUNK_BYTES (1u << 20)

/* Content that neither deduplicates nor compresses away, the same for the same seed. */
static void chunk_fill(uint64_t *words, uint64_t salt)
{
    for (uint32_t i = 0; i < CHUNK_BYTES / 8; i++) {
        uint64_t x = salt + (i + 1) * 0x9e3779b97f4a7c15u;

        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        words[i] = x ^ (x >> 27);
    }
}

static int write_range(int fd, uint64_t from, uint64_t to, const struct conf *conf, uint64_t salt)
{
    uint64_t *chunk = calloc(1, CHUNK_BYTES);
    int err = 0;

    if (chunk == NULL)
        return -ENOMEM;
    while (from < to && err == 0) {
        size_t want = to - from < CHUNK_BYTES ? to - from : CHUNK_BYTES;
        ssize_t got;

        if (conf->fill != FILL_ZERO)
            chunk_fill(chunk, conf->seed + salt * 1000003u + from);
        got = pwrite(fd, chunk, want, (off_t)from);
        if (got < 0 && errno != EINTR)
            err = -errno;
        else if (got > 0)
            from += (uint64_t)got;
    }
    free(chunk);
    return err;
}

/* The size the file must have: exactly the recorded one where it is known. */
static uint64_t wanted_bytes(const struct target *target, bool *ret_exact)
{
    *ret_exact = target->manifest_bytes != TRACE_UNKNOWN_U64;
    if (*ret_exact && target->manifest_bytes >= target->need_bytes)
        return target->manifest_bytes;
    *ret_exact = false;
    return target->need_bytes;
}

/* What making the target takes of its file system; sparse files and zeros may be stored as nothing. */
static uint64_t missing_bytes(const struct target_set *set, const struct target *target,
                              const struct conf *conf)
{
    const char *name;
    bool exact;
    uint64_t want = wanted_bytes(target, &exact), have = 0;
    struct stat st;
    int dir;

    if (target->sparse || conf->fill == FILL_ZERO || want == 0 ||
        (target->plan_flags & (PLAN_MADE | PLAN_DIRECTORY)) || target_below_made(set, target))
        return 0;
    dir = beneath_parent(set->roots[target->root].fd, target->relative, &name);
    if (dir >= 0) {
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            have = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : UINT64_MAX;
        close(dir);
    }
    return want > have ? want - have : 0;
}

/* What the files to be made take of one file system. */
struct making {
    dev_t device;
    uint64_t bytes, files, largest_bytes;
    const char *largest;
    int fd; /* of that file system, somebody else's */
};

static void making_add(struct making *making, const char *path, uint64_t bytes)
{
    if (__builtin_add_overflow(making->bytes, bytes, &making->bytes))
        making->bytes = UINT64_MAX;
    making->files++;
    if (bytes > making->largest_bytes) {
        making->largest_bytes = bytes;
        making->largest = path;
    }
}

static int making_check(const struct making *making, struct diag *diag)
{
    char need[UNITS_TEXT], have[UNITS_TEXT], more[48] = "";
    struct statvfs fs;
    uint64_t room;

    if (making->files == 0 || fstatvfs(making->fd, &fs) != 0 || fs.f_blocks == 0)
        return 0;
    room = (uint64_t)(geteuid() == 0 ? fs.f_bfree : fs.f_bavail) * fs.f_frsize;
    if (making->bytes <= room)
        return 0;
    if (making->files > 1)
        snprintf(more, sizeof(more), " and %llu other files",
                 (unsigned long long)(making->files - 1));
    return diag_set(diag, -ENOSPC, "making %s%s takes %s, the file system has %s free",
                    making->largest, more, units_size(making->bytes, need),
                    units_size(room, have));
}

/* A tape from elsewhere may name any size: said before the disk is full, for all files of a file
 * system together. */
static int check_room(const struct target_set *set, const struct conf *conf, struct diag *diag)
{
    struct making *makings = calloc(set->root_count + 1ull, sizeof *makings);
    uint32_t *of_root = calloc(set->root_count + 1ull, sizeof *of_root), count = 0;
    struct stat st;
    int err = makings && of_root ? 0 : diag_errno(diag, -ENOMEM, "--prepare");

    for (uint32_t r = 0; r < set->root_count && err == 0; r++) {
        if (fstat(set->roots[r].fd, &st) != 0)
            err = diag_errno(diag, -errno, "%s", set->roots[r].path);
        while (of_root[r] < count && makings[of_root[r]].device != st.st_dev)
            of_root[r]++;
        if (err == 0 && of_root[r] == count)
            makings[count++] = (struct making){.device = st.st_dev, .fd = set->roots[r].fd};
    }
    for (uint32_t i = 0; i < set->count && err == 0; i++) {
        const struct target *target = &set->items[i];
        uint64_t missing;

        if (target->root < 0 || (i > 0 && strcmp(set->items[i - 1].path, target->path) == 0))
            continue;
        missing = missing_bytes(set, target, conf);
        if (missing > 0)
            making_add(&makings[of_root[target->root]], target->path, missing);
    }
    for (uint32_t m = 0; m < count && err == 0; m++)
        err = making_check(&makings[m], diag);
    free(makings);
    free(of_root);
    return err;
}

static int prepare_file(const struct target *target, int fd, bool existed,
                        const struct conf *conf, struct prepare_report *report, struct diag *diag)
{
    bool exact;
    uint64_t want = wanted_bytes(target, &exact);
    struct stat st;
    uint64_t have;
    int err = 0;

    if (fstat(fd, &st) != 0)
        return diag_errno(diag, -errno, "%s", target->path);
    if (!S_ISREG(st.st_mode))
        return 0;
    have = (uint64_t)st.st_size;
    if (have == want || (have > want && !exact))
        return 0;
    if (existed && !conf->writes)
        return diag_set(diag, -EEXIST,
                        "%s exists with %llu bytes, the tape needs %llu: --prepare changes "
                        "existing files only with --writes", target->path,
                        (unsigned long long)have, (unsigned long long)want);
    if (have > want) {
        report->cut++;
        return ftruncate(fd, (off_t)want) == 0 ? 0 : diag_errno(diag, -errno, "%s", target->path);
    }
    /* Those below a root were looked at together. */
    if (target->root < 0 && !target->sparse && conf->fill != FILL_ZERO) {
        struct making making = {.fd = fd};

        making_add(&making, target->path, want - have);
        err = making_check(&making, diag);
    }
    if (err != 0)
        return err;
    report->grown += existed;
    if (target->sparse)
        err = ftruncate(fd, (off_t)want) == 0 ? 0 : -errno;
    else
        err = write_range(fd, have, want, conf, target->file);
    report->bytes += want - have;
    return err == 0 ? 0 : diag_errno(diag, err, "%s", target->path);
}

static int open_in(const struct target_set *set, const struct target *target, int flags)
{
    int fd;

    if (target->root >= 0)
        return beneath_open(set->roots[target->root].fd, target->relative, flags, target->mode,
                            false);
    fd = open(target->path, flags | O_CLOEXEC, target->mode);
    return fd < 0 ? -errno : fd;
}

/* A file that was made and could not be filled. */
static void remove_half(const struct target_set *set, const struct target *target)
{
    const char *name;
    int dir;

    if (target->root < 0) {
        unlink(target->path);
        return;
    }
    dir = beneath_parent(set->roots[target->root].fd, target->relative, &name);
    if (dir < 0)
        return;
    unlinkat(dir, name, 0);
    close(dir);
}

static int remove_made(const struct target_set *set, const struct target *target,
                       const struct conf *conf, struct prepare_report *report, struct diag *diag)
{
    const char *name;
    int dir, err = 0;

    if (target->root < 0)
        return 0;
    dir = beneath_parent(set->roots[target->root].fd, target->relative, &name);
    if (dir < 0)
        return dir == -ENOENT ? 0 : diag_errno(diag, dir, "%s", target->path);
    if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!conf->writes)
            err = diag_set(diag, -EEXIST, "%s exists, and the tape makes it itself: --prepare "
                                          "removes it only with --writes", target->path);
        else if (unlinkat(dir, name, target->plan_flags & PLAN_DIRECTORY ? AT_REMOVEDIR : 0) != 0 &&
                 errno != ENOTEMPTY)
            err = diag_errno(diag, -errno, "%s", target->path);
        else
            report->removed++;
    }
    close(dir);
    return err;
}

static int prepare_directory(const struct target_set *set, const struct target *target,
                             struct diag *diag)
{
    const char *name;
    int dir, err = 0;

    if (target->root < 0)
        return 0;
    dir = beneath_parent(set->roots[target->root].fd, target->relative, &name);
    if (dir < 0)
        return diag_errno(diag, dir, "%s", target->path);
    if (mkdirat(dir, name, 0777) != 0 && errno != EEXIST)
        err = diag_errno(diag, -errno, "%s", target->path);
    close(dir);
    return err;
}

static int prepare_one(const struct target_set *set, const struct target *target,
                       const struct conf *conf, struct prepare_report *report, struct diag *diag)
{
    struct stat st;
    int fd, err;
    bool existed = true;

    if (target->root < 0) {
        if (stat(target->path, &st) == 0 && !S_ISREG(st.st_mode))
            return 0; /* a device has the size it has */
    } else if (target_below_made(set, target)) {
        return remove_made(set, target, conf, report, diag);
    } else {
        err = beneath_make_parents(set->roots[target->root].fd, target->relative);
        if (err != 0)
            return diag_errno(diag, err, "%s", target->path);
    }
    if (target_is_made_directory(target))
        return 0;
    if (target->plan_flags & PLAN_MADE)
        return remove_made(set, target, conf, report, diag);
    if (target->plan_flags & PLAN_DIRECTORY)
        return prepare_directory(set, target, diag);
    fd = open_in(set, target, (conf->writes ? O_RDWR : O_RDONLY) | O_NONBLOCK);
    if (fd == -ENOENT) {
        existed = false;
        fd = open_in(set, target, O_RDWR | O_CREAT | O_EXCL | O_NONBLOCK);
    }
    if (fd < 0)
        return diag_errno(diag, fd, "%s", target->path);
    report->made += !existed;
    err = prepare_file(target, fd, existed, conf, report, diag);
    close(fd);
    if (err != 0 && !existed)
        remove_half(set, target);
    return err;
}

static int longer_first(const void *a, const void *b)
{
    const struct target *const *x = a, *const *y = b;
    size_t m = strlen((*x)->path), n = strlen((*y)->path);

    return m > n ? -1 : m < n;
}

/* Directories that the tape makes go last, the deepest first. */
static int remove_directories(const struct target_set *set, const struct conf *conf,
                              struct prepare_report *report, struct diag *diag)
{
    const struct target **list = calloc(set->made_count + 1ull, sizeof(struct target *));
    const uint32_t count = set->made_count;
    int err = 0;

    if (list == NULL)
        return diag_errno(diag, -ENOMEM, "--prepare");
    for (uint32_t i = 0; i < count; i++)
        list[i] = &set->items[set->made[i]];
    qsort(list, count, sizeof(struct target *), longer_first);
    for (uint32_t i = 0; i < count && err == 0; i++)
        err = remove_made(set, list[i], conf, report, diag);
    free(list);
    return err;
}

int prepare(const struct target_set *set, const struct conf *conf,
            struct prepare_report *ret_report, struct diag *diag)
{
    struct prepare_report report = {0};
    int err = check_room(set, conf, diag);

    for (uint32_t i = 0; i < set->count && err == 0; i++) {
        /* The direct and the buffered way to one file are neighbours. */
        if (i > 0 && strcmp(set->items[i - 1].path, set->items[i].path) == 0)
            continue;
        err = prepare_one(set, &set->items[i], conf, &report, diag);
    }
    if (err == 0)
        err = remove_directories(set, conf, &report, diag);
    /* Once for all files: their writing back must not fall into the replay. */
    for (uint32_t i = 0; i < set->root_count && err == 0 && report.bytes > 0; i++)
        if (syncfs(set->roots[i].fd) != 0)
            err = diag_errno(diag, -errno, "%s: syncfs", set->roots[i].path);
    if (err != 0)
        return err;
    *ret_report = report;
    return 0;
}
