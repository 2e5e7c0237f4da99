/* SPDX-License-Identifier: MIT */
#include "replay/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "replay/conf.h"
#include "replay/plan.h"
#include "replay/target.h"
#include "traces/diag.h"

#define NR_CACHESTAT 451 /* the same number on every architecture */
#define WINDOW_BYTES (1ull << 30)
#define READ_BYTES   (1u << 20)

struct cachestat_range {
    uint64_t off, len;
};

struct cachestat {
    uint64_t nr_cache, nr_dirty, nr_writeback, nr_evicted, nr_recently_evicted;
};

static int resident_mincore(int fd, uint64_t bytes, uint64_t *ret_resident)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned char *state = malloc(WINDOW_BYTES / page);
    uint64_t resident = 0;
    int err = state ? 0 : -ENOMEM;

    for (uint64_t at = 0; at < bytes && err == 0; at += WINDOW_BYTES) {
        uint64_t length = bytes - at < WINDOW_BYTES ? bytes - at : WINDOW_BYTES;
        void *map = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, (off_t)at);

        if (map == MAP_FAILED) {
            err = -errno;
            break;
        }
        if (mincore(map, length, state) != 0)
            err = -errno;
        for (uint64_t i = 0; err == 0 && i < (length + page - 1) / page; i++)
            resident += state[i] & 1;
        munmap(map, length);
    }
    free(state);
    if (err == 0)
        *ret_resident = resident;
    return err;
}

static int resident_pages(int fd, uint64_t bytes, uint64_t *ret_resident)
{
    struct cachestat_range range = {0, bytes};
    struct cachestat stat;

    if (syscall(NR_CACHESTAT, fd, &range, &stat, 0) == 0) {
        *ret_resident = stat.nr_cache;
        return 0;
    }
    return resident_mincore(fd, bytes, ret_resident);
}

static int warm_file(int fd, uint64_t bytes)
{
    char *buffer = malloc(READ_BYTES);
    int err = buffer ? 0 : -ENOMEM;

    for (uint64_t at = 0; at < bytes && err == 0;) {
        ssize_t got = pread(fd, buffer, READ_BYTES, (off_t)at);

        if (got < 0 && errno != EINTR)
            err = -errno;
        else if (got == 0)
            break;
        else if (got > 0)
            at += (uint64_t)got;
    }
    free(buffer);
    return err;
}

static int cool_file(int fd)
{
    /* Dirty pages cannot be dropped. */
    if (fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
        return -errno;
    return -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* A buffered descriptor of the target, whatever it is replayed with. */
static int open_plain(const struct target_set *set, const struct target *target)
{
    struct target plain = *target;

    plain.open_flags = (target->open_flags & ~(O_DIRECT | O_ACCMODE)) | O_RDONLY;
    return target_open(set, &plain, 0, 0);
}

static int each_file(const struct target_set *set, int cache, struct cache_report *report,
                     struct diag *diag)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    for (uint32_t i = 0; i < set->count; i++) {
        const struct target *target = &set->items[i];
        uint64_t resident = 0;
        int fd, err = 0;

        if ((target->plan_flags & PLAN_DIRECTORY) ||
            (i > 0 && strcmp(set->items[i - 1].path, target->path) == 0))
            continue;
        fd = open_plain(set, target);
        if (fd == -ENOENT)
            continue;
        if (fd < 0)
            return diag_errno(diag, fd, "%s", target->path);
        if (cache == CACHE_COLD)
            err = cool_file(fd);
        else if (cache == CACHE_WARM)
            err = warm_file(fd, target->size_bytes);
        if (err == 0 && report != NULL &&
            resident_pages(fd, target->size_bytes, &resident) == 0) {
            report->pages += (target->size_bytes + page - 1) / page;
            report->resident += resident;
            report->measured = 1;
        }
        close(fd);
        if (err != 0)
            return diag_errno(diag, err, "--cache: %s", target->path);
    }
    return 0;
}

/* Everything clean, machine-wide: what DONTNEED leaves (mapped or shared pages) goes too. */
static void drop_all(void)
{
    FILE *file;

    sync();
    /* Not root: DONTNEED alone, and the check that follows judges. */
    file = fopen("/proc/sys/vm/drop_caches", "we");
    if (file != NULL) {
        fputs("1\n", file);
        fclose(file);
    }
}

int cache_set(const struct target_set *set, const struct conf *conf,
              struct cache_report *ret_report, struct diag *diag)
{
    struct cache_report report = {0};
    int err = 0;

    if (conf->cache == CACHE_COLD) {
        err = each_file(set, CACHE_COLD, NULL, diag);
        drop_all();
    } else if (conf->cache == CACHE_WARM) {
        err = each_file(set, CACHE_WARM, NULL, diag);
    }
    if (err == 0)
        err = each_file(set, CACHE_ASIS, &report, diag);
    if (err != 0)
        return err;
    if (conf->cache == CACHE_COLD && report.resident * 100 > report.pages)
        return diag_set(diag, -EBUSY, "--cache cold: %llu of %llu pages are still resident",
                        (unsigned long long)report.resident, (unsigned long long)report.pages);
    if (conf->cache == CACHE_WARM && report.resident * 100 < report.pages * 99)
        return diag_set(diag, -EBUSY, "--cache warm: only %llu of %llu pages are resident",
                        (unsigned long long)report.resident, (unsigned long long)report.pages);
    *ret_report = report;
    return 0;
}
