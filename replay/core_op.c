/* SPDX-License-Identifier: MIT */
#include "replay/core_op.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engines/blocking.h"
#include "replay/beneath.h"
#include "replay/fdcache.h"
#include "replay/plan.h"
#include "replay/target.h"

#define NONE TRACE_NONE_U32

/* Flags of a recorded open that are passed on. */
#define OPEN_KEPT (O_TRUNC | O_EXCL | O_CREAT)

int core_op_fd(const struct core_op *core, const struct prepared *p, uint32_t *ret_handle)
{
    const struct target *target;

    *ret_handle = NONE;
    if (p->target == NONE)
        return -1; /* the engine needs none */
    target = &core->targets->items[p->target];
    if (target->fd >= 0)
        return target->fd;
    /* Written without having been made: the recording had it open by another name, or made it
     * out of sight. */
    return fdcache_get(core->cache, p->target,
                       p->kind == TRACE_WRITE && (target->plan_flags & PLAN_WRITTEN) &&
                           (target->plan_flags & (PLAN_MADE | PLAN_VOLATILE)),
                       ret_handle);
}

void core_op_put(const struct core_op *core, uint32_t handle)
{
    if (handle != NONE)
        fdcache_put(core->cache, handle);
}

/* The name now stands for another file, whichever way it is opened. */
static void stale(const struct core_op *core, uint32_t target)
{
    const struct target_set *set = core->targets;
    uint32_t clone = target / set->per_clone * set->per_clone;
    uint32_t file = set->items[target].file;

    if (file == NONE)
        return;
    for (int direct = 0; direct < 2; direct++) {
        uint32_t way = direct ? set->direct[file] : set->buffered[file];

        if (way != NONE)
            atomic_fetch_add_explicit(&set->generation[clone + way], 1, memory_order_release);
    }
}

static int64_t open_op(const struct core_op *core, const struct prepared *p)
{
    const struct target *target = &core->targets->items[p->target];
    int extra = (int)p->arg & OPEN_KEPT;
    int fd;

    if (p->kind == TRACE_CREATE)
        extra |= O_CREAT;
    fd = target_open(core->targets, target, extra, target->mode);
    if (fd < 0)
        return fd;
    close(fd);
    if (extra & O_CREAT)
        stale(core, p->target);
    return 0;
}

/* A target's directory and its name in it; its path and the working directory for the user's own
 * paths. *ret_close: the directory is the caller's to close. */
static int place(const struct core_op *core, const struct target *target, const char **ret_name,
                 bool *ret_close)
{
    *ret_close = target->root >= 0;
    if (target->root < 0) {
        *ret_name = target->path;
        return AT_FDCWD;
    }
    return beneath_parent(core->targets->roots[target->root].fd, target->relative, ret_name);
}

static int64_t one_name(const struct core_op *core, const struct prepared *p)
{
    const struct target *target = &core->targets->items[p->target];
    const char *name;
    bool mine;
    int dir = place(core, target, &name, &mine);
    int result;

    if (dir < 0 && dir != AT_FDCWD)
        return dir;
    switch (p->kind) {
    case TRACE_UNLINK: result = unlinkat(dir, name, 0); break;
    case TRACE_RMDIR: result = unlinkat(dir, name, AT_REMOVEDIR); break;
    default: result = mkdirat(dir, name, p->arg & 07777 ? p->arg & 07777 : 0777); break;
    }
    result = result < 0 ? -errno : 0;
    if (mine)
        close(dir);
    if (result == 0)
        stale(core, p->target);
    return result;
}

static int64_t two_names(const struct core_op *core, const struct prepared *p)
{
    uint32_t second = (uint32_t)p->offset;
    const char *from_name, *to_name;
    bool from_mine, to_mine = false;
    int from, to = -1;
    int result;

    if (second == NONE)
        return -ENOENT;
    /* The tape's clone of the second file is that of the first. */
    second += p->target / core->targets->per_clone * core->targets->per_clone;
    from = place(core, &core->targets->items[p->target], &from_name, &from_mine);
    if (from < 0 && from != AT_FDCWD)
        return from;
    to = place(core, &core->targets->items[second], &to_name, &to_mine);
    if (to < 0 && to != AT_FDCWD) {
        result = to;
        to_mine = false;
    } else {
        result = p->kind == TRACE_LINK ? linkat(from, from_name, to, to_name, 0)
                                       : renameat(from, from_name, to, to_name);
        result = result < 0 ? -errno : 0;
    }
    if (from_mine)
        close(from);
    if (to_mine)
        close(to);
    if (result == 0) {
        stale(core, p->target);
        stale(core, second);
    }
    return result;
}

int64_t core_op_run(const struct core_op *core, const struct prepared *p)
{
    struct engine_op op = {.kind = p->kind,
                           .flags = p->flags,
                           .target = p->target,
                           .arg = p->arg,
                           .offset = p->offset,
                           .length = p->length};
    uint32_t handle;
    int64_t result;

    switch (p->kind) {
    case TRACE_OPEN:
    case TRACE_CREATE: return open_op(core, p);
    case TRACE_UNLINK:
    case TRACE_MKDIR:
    case TRACE_RMDIR: return one_name(core, p);
    case TRACE_RENAME:
    case TRACE_LINK: return two_names(core, p);
    case TRACE_MSYNC: op.kind = TRACE_FDATASYNC; break;
    default: break;
    }
    op.fd = core_op_fd(core, p, &handle);
    if (op.fd < 0)
        return op.fd;
    result = blocking_run(&op, core->env);
    core_op_put(core, handle);
    return result;
}
