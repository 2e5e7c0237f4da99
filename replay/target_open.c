/* SPDX-License-Identifier: MIT */
/* Opening the targets and checking them against the plan, before anything is issued. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replay/conf.h"
#include "replay/locate.h"
#include "replay/plan.h"
#include "replay/target.h"
#include "traces/diag.h"
#include "traces/units.h"

/* Descriptors that are not targets: tapes, rings, clocks, libraries. */
#define FD_RESERVE 96u

/* What the checks found; the first of each is named, the rest counted. */
struct findings {
    uint64_t missing, small, beyond;
    const struct target *first_missing, *first_small, *first_beyond;
    int missing_error;
};

static uint32_t raise_fd_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1024;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            getrlimit(RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_cur > 1u << 20 ? 1u << 20 : (uint32_t)limit.rlim_cur;
}

/* The alignment that O_DIRECT needs on an open file: what the kernel says, else its block. */
static uint32_t direct_align(int fd, const struct stat *st)
{
    /* struct statx as the kernel lays it out; the C library's may lack the last two. */
    unsigned char buf[256] __attribute__((aligned(8))) = {0};
    uint32_t mask, align;
    int sector = 0;

    if (statx(fd, "", AT_EMPTY_PATH, 0x2000 /* STATX_DIOALIGN */, (struct statx *)buf) == 0) {
        memcpy(&mask, buf, sizeof mask);
        memcpy(&align, buf + 156, sizeof align);
        if ((mask & 0x2000) && align != 0)
            return align;
    }
    if (S_ISBLK(st->st_mode) && ioctl(fd, BLKSSZGET, &sector) == 0 && sector > 0)
        return (uint32_t)sector;
    return 512;
}

static int check_kind(struct target *target, const struct stat *st, struct diag *diag)
{
    target->block = S_ISBLK(st->st_mode);
    if (target->block && target->relative != NULL)
        return diag_set(diag, -EPERM,
                        "%s is a block device: devices are named with --target or --map",
                        target->path);
    if (S_ISDIR(st->st_mode) && (target->plan_flags & PLAN_DIRECTORY))
        return 0;
    if (!S_ISREG(st->st_mode) && !target->block)
        return diag_set(diag, -EINVAL, "%s is neither a file nor a block device", target->path);
    return 0;
}

static int check_size(struct target *target, int fd, const struct stat *st,
                      const struct conf *conf, struct findings *found, struct diag *diag)
{
    if (target->block) {
        if (ioctl(fd, BLKGETSIZE64, &target->size_bytes) != 0)
            return diag_errno(diag, -errno, "%s: size", target->path);
    } else {
        target->size_bytes = (uint64_t)st->st_size;
    }
    if (target->plan_flags & PLAN_DIRECTORY)
        return 0;
    if (conf->fit != FIT_NONE && target->root < 0)
        return 0;
    if (target->block || target->file == TRACE_NONE_U32) {
        if (target->max_end > target->size_bytes && found->beyond++ == 0)
            found->first_beyond = target;
    } else if (target->need_bytes > target->size_bytes && found->small++ == 0) {
        found->first_small = target;
    }
    return 0;
}

/* The tape makes it, or the directory it is in. */
static bool may_be_missing(const struct target_set *set, const struct target *target,
                           const struct conf *conf)
{
    if (target->plan_flags & PLAN_MADE)
        return true;
    if (!conf->prepare || !(target->plan_flags & PLAN_WRITTEN))
        return false;
    return target_below_made(set, target);
}

static int check_one(struct target_set *set, struct target *target, const struct conf *conf,
                     struct findings *found, struct diag *diag)
{
    struct stat st;
    int fd = target_open(set, target, 0, 0);
    int err = 0;

    if (fd == -ENOENT || fd == -ENOTDIR) {
        if (may_be_missing(set, target, conf)) {
            target->plan_flags |= PLAN_MADE;
        } else if (found->missing++ == 0) {
            found->first_missing = target;
            found->missing_error = fd;
        }
        return 0;
    }
    if (fd == -EINVAL && target->direct)
        return diag_set(diag, fd, "%s cannot be opened O_DIRECT here; --buffered does without",
                        target->path);
    if (fd == -EXDEV)
        return diag_set(diag, fd, "%s: a symbolic link or '..' in this path leads elsewhere: "
                                  "refused", target->path);
    if (fd < 0)
        return diag_errno(diag, fd, "%s", target->path);
    if (fstat(fd, &st) != 0)
        err = diag_errno(diag, -errno, "%s", target->path);
    if (err == 0)
        err = check_kind(target, &st, diag);
    if (err == 0)
        err = check_size(target, fd, &st, conf, found, diag);
    if (err == 0 && target->direct)
        target->align = direct_align(fd, &st);
    if (err != 0 || set->lazy || (target->plan_flags & PLAN_VOLATILE)) {
        close(fd);
        return err;
    }
    target->fd = fd;
    set->open_count++;
    return 0;
}

static int report_beyond(const struct target_set *set, const struct target *target,
                         const struct conf *conf, struct trace_reader *reader, struct diag *diag)
{
    char need[UNITS_TEXT], have[UNITS_TEXT];
    struct located located;
    int err = locate(reader, conf, set, LOCATE_BEYOND, &located, diag);

    if (err != 0)
        return err;
    return diag_set(diag, -ERANGE,
                    "%llu operations reach beyond the end of %s, which holds %s; the first is op "
                    "%llu (offset %llu, length %llu), the farthest ends at %s; --fit wrap, scale or "
                    "pack makes them fit%s", (unsigned long long)located.count, target->path,
                    units_size(target->size_bytes, have), (unsigned long long)located.first,
                    (unsigned long long)located.offset, (unsigned long long)located.length,
                    units_size(target->max_end, need),
                    target->block ? "" : ", --prepare makes the file as large");
}

static int report_findings(const struct target_set *set, const struct findings *found,
                           const struct conf *conf, struct trace_reader *reader,
                           struct diag *diag)
{
    if (found->missing != 0)
        return diag_set(diag, found->missing_error,
                        "%llu of the tape's files do not exist here, the first is %s; --prepare "
                        "makes them", (unsigned long long)found->missing,
                        found->first_missing->path);
    if (found->beyond != 0)
        return report_beyond(set, found->first_beyond, conf, reader, diag);
    if (found->small != 0)
        return diag_set(diag, -ERANGE,
                        "%llu files are shorter than they were when recorded, the first is %s "
                        "(%llu bytes, recorded %llu); --prepare%s makes them as large",
                        (unsigned long long)found->small, found->first_small->path,
                        (unsigned long long)found->first_small->size_bytes,
                        (unsigned long long)found->first_small->need_bytes,
                        conf->writes ? "" : " --writes");
    return 0;
}

static int fit_one(struct target *target, const struct conf *conf, const struct plan *plan,
                   uint64_t packed_bytes, struct diag *diag)
{
    char need[UNITS_TEXT], have[UNITS_TEXT];

    target->fit = (struct fit){.how = conf->fit,
                               .size_bytes = target->size_bytes,
                               .reach_bytes = target->max_end,
                               .pack = plan->pack};
    if (target->size_bytes < plan->max_transfer || target->size_bytes == 0)
        return diag_set(diag, -ERANGE, "%s holds %s: less than one transfer of the tape",
                        target->path, units_size(target->size_bytes, have));
    if (conf->fit == FIT_PACK && packed_bytes > target->size_bytes)
        return diag_set(diag, -ERANGE, "the parts that the tape touches take %s side by side, "
                                       "%s holds %s", units_size(packed_bytes, need),
                        target->path, units_size(target->size_bytes, have));
    return 0;
}

static int fit_all(struct target_set *set, const struct conf *conf, const struct plan *plan,
                   struct diag *diag)
{
    uint64_t packed_bytes = 0;
    int err = 0;

    if (conf->fit == FIT_NONE)
        return 0;
    if (plan->pack != NULL) {
        packed_bytes = pack_seal(plan->pack);
        if (packed_bytes == UINT64_MAX)
            return diag_errno(diag, -ENOMEM, "--fit pack");
    }
    for (uint32_t i = 0; i < set->count && err == 0; i++)
        if (set->items[i].root < 0 && !(set->items[i].plan_flags & PLAN_DIRECTORY))
            err = fit_one(&set->items[i], conf, plan, packed_bytes, diag);
    return err;
}

static int check_aligned(const struct target_set *set, const struct conf *conf,
                         const struct plan *plan, struct trace_reader *reader,
                         struct diag *diag)
{
    const struct target *first = NULL;
    struct located located;
    uint64_t files = 0;
    int err;

    if (conf->unaligned != UNALIGNED_ERROR)
        return 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct target *target = &set->items[i];
        uint64_t bits = 0;

        if (!target->direct)
            continue;
        bits = target->file != TRACE_NONE_U32 ? plan->files[target->file].align_bits
                                              : plan->no_file.align_bits;
        if (target->file == TRACE_NONE_U32)
            for (uint32_t f = 0; f < plan->file_count; f++)
                bits |= plan->files[f].align_bits;
        if ((bits & (target->align - 1)) != 0 && files++ == 0)
            first = target;
    }
    if (files == 0)
        return 0;
    err = locate(reader, conf, set, LOCATE_UNALIGNED, &located, diag);
    if (err != 0)
        return err;
    return diag_set(diag, -EINVAL,
                    "%llu direct transfers are not multiples of their target's alignment (%u bytes "
                    "for %s); the first is op %llu (offset %llu, length %llu); --unaligned buffered "
                    "or round, or --buffered, helps", (unsigned long long)located.count,
                    first->align, first->path, (unsigned long long)located.first,
                    (unsigned long long)located.offset, (unsigned long long)located.length);
}

int targets_open(struct target_set *set, const struct conf *conf, const struct plan *plan,
                 struct trace_reader *reader, struct diag *diag)
{
    struct findings found = {0};
    uint32_t limit = raise_fd_limit();
    int err = 0;

    set->lazy = set->count + FD_RESERVE > limit / 2 + limit / 4;
    for (uint32_t i = 0; i < set->count && err == 0; i++)
        err = check_one(set, &set->items[i], conf, &found, diag);
    if (err == 0)
        err = report_findings(set, &found, conf, reader, diag);
    if (err == 0)
        err = fit_all(set, conf, plan, diag);
    if (err == 0)
        err = check_aligned(set, conf, plan, reader, diag);
    set->fd_budget = limit - set->open_count - FD_RESERVE;
    return err;
}
