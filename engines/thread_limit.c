/* SPDX-License-Identifier: MIT */
#include "engines/thread_limit.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* Each: a stack of which little is touched, and the kernel's share. */
#define THREAD_BYTES (48u << 10)

struct limit {
    uint64_t count;
    const char *name;
};

static void limit_lower(struct limit *limit, uint64_t count, const char *name)
{
    if (count < limit->count)
        *limit = (struct limit){.count = count, .name = name};
}

/* The number in a file, or ret left alone: absent, "max". */
static void read_number(const char *path, uint64_t *ret)
{
    unsigned long long value;
    FILE *file = fopen(path, "re");

    if (!file)
        return;
    if (fscanf(file, "%llu", &value) == 1)
        *ret = value;
    fclose(file);
}

/*
 * What is left of the pids controller's limit at mount/path and each folder above it: the
 * process is counted in all of them.
 */
static void cgroup_lower(struct limit *limit, const char *mount, char *path)
{
    char file[512];

    for (;;) {
        uint64_t max = UINT64_MAX, current = 0;
        char *slash = strrchr(path, '/');

        snprintf(file, sizeof(file), "%s%s/pids.max", mount, path);
        read_number(file, &max);
        snprintf(file, sizeof(file), "%s%s/pids.current", mount, path);
        read_number(file, &current);
        if (max != UINT64_MAX)
            limit_lower(limit, max > current ? max - current : 0, "the cgroup's pids.max");
        if (!slash)
            return;
        *slash = '\0';
    }
}

static void cgroups_lower(struct limit *limit)
{
    char line[512];
    FILE *file = fopen("/proc/self/cgroup", "re");

    while (file && fgets(line, sizeof(line), file)) {
        char *path = strchr(line, '/');

        line[strcspn(line, "\n")] = '\0';
        if (!path)
            continue;
        if (!strncmp(line, "0::", 3))
            cgroup_lower(limit, "/sys/fs/cgroup", path);
        else if (strstr(line, ":pids:"))
            cgroup_lower(limit, "/sys/fs/cgroup/pids", path);
    }
    if (file)
        fclose(file);
}

static struct limit limit_find(void)
{
    struct limit limit = {.count = UINT64_MAX, .name = "nothing"};
    uint64_t value = UINT64_MAX;
    struct rlimit processes;
    struct sysinfo info;
    uint64_t running = sysinfo(&info) == 0 ? info.procs : 0;

    read_number("/proc/sys/kernel/threads-max", &value);
    limit_lower(&limit, value > running ? value - running : 0, "kernel.threads-max");
    value = UINT64_MAX;
    read_number("/proc/sys/kernel/pid_max", &value);
    limit_lower(&limit, value > running ? value - running : 0, "kernel.pid_max");
    if (geteuid() != 0 && getrlimit(RLIMIT_NPROC, &processes) == 0 &&
        processes.rlim_cur != RLIM_INFINITY)
        limit_lower(&limit, processes.rlim_cur, "ulimit -u");
    cgroups_lower(&limit);
    return limit;
}

void thread_limit_capacity(uint32_t depth, uint32_t count, uint32_t states,
                           struct engine_capacity *ret_capacity)
{
    uint64_t wanted = (uint64_t)count * states;
    struct limit limit = limit_find();
    struct engine_capacity capacity = {.memory_bytes = wanted * THREAD_BYTES};

    if (limit.count < wanted) {
        /* With a pool smaller than the depth the limit is not one of depth. */
        capacity.max_depth = limit.count > states ? (uint32_t)(limit.count / states) : 1;
        snprintf(capacity.reason, sizeof(capacity.reason),
                 "depth %u needs %llu threads, %llu more can be started (%s)", depth,
                 (unsigned long long)wanted, (unsigned long long)limit.count, limit.name);
    }
    *ret_capacity = capacity;
}
