/* SPDX-License-Identifier: MIT */
#include "convert/strace_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PROCESSES_MAX (1u << 20)

struct strace_world {
    struct import *import;
    struct strace_process **slots;
    uint32_t size, count;
};

int strace_world_new(struct strace_world **ret_world, struct import *import)
{
    struct strace_world *world = calloc(1, sizeof(*world));

    if (world != NULL)
        world->slots = calloc(64, sizeof(*world->slots));
    if (world == NULL || world->slots == NULL) {
        free(world);
        return -ENOMEM;
    }
    world->import = import;
    world->size = 64;
    *ret_world = world;
    return 0;
}

/* ---- open files ---- */

struct strace_open *strace_open_new(void)
{
    struct strace_open *open = calloc(1, sizeof(*open));

    if (open != NULL) {
        open->refs = 1;
        open->file = TRACE_NONE_U32;
        open->position = open->size_bytes = TRACE_UNKNOWN_U64;
    }
    return open;
}

struct strace_open *strace_open_ref(struct strace_open *open)
{
    if (open != NULL)
        open->refs++;
    return open;
}

void strace_open_unref(struct strace_open *open)
{
    if (open == NULL || --open->refs > 0)
        return;
    free(open->path);
    free(open);
}

int strace_open_name(struct strace_open *open, const char *path, size_t length)
{
    char *copy = malloc(length + 1);

    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, path, length);
    copy[length] = '\0';
    free(open->path);
    open->path = copy;
    open->path_length = length;
    return 0;
}

/* ---- descriptor tables ---- */

static struct strace_fds *fds_new(void)
{
    struct strace_fds *fds = calloc(1, sizeof(*fds));

    if (fds != NULL)
        fds->refs = 1;
    return fds;
}

static void fds_unref(struct strace_fds *fds)
{
    if (fds == NULL || --fds->refs > 0)
        return;
    for (int fd = 0; fd < fds->count; fd++)
        strace_open_unref(fds->slots[fd].open);
    free(fds->slots);
    free(fds);
}

static struct strace_fds *fds_copy(const struct strace_fds *from)
{
    struct strace_fds *fds = fds_new();

    if (fds == NULL || from->count == 0)
        return fds;
    fds->slots = malloc((size_t)from->count * sizeof(*fds->slots));
    if (fds->slots == NULL) {
        free(fds);
        return NULL;
    }
    fds->count = from->count;
    for (int fd = 0; fd < from->count; fd++) {
        fds->slots[fd] = from->slots[fd];
        strace_open_ref(fds->slots[fd].open);
    }
    return fds;
}

struct strace_open *strace_fd_get(const struct strace_process *process, int fd)
{
    return fd >= 0 && fd < process->fds->count ? process->fds->slots[fd].open : NULL;
}

int strace_fd_set(struct strace_process *process, int fd, struct strace_open *open,
                  bool cloexec)
{
    struct strace_fds *fds = process->fds;

    if (fd < 0 || fd >= STRACE_FD_MAX) {
        strace_open_unref(open);
        return 0;
    }
    if (fd >= fds->count) {
        int count = fd + 1 < 16 ? 16 : fd + fd / 2 + 1;
        struct strace_slot *slots = realloc(fds->slots, (size_t)count * sizeof(*slots));

        if (slots == NULL) {
            strace_open_unref(open);
            return -ENOMEM;
        }
        memset(slots + fds->count, 0, (size_t)(count - fds->count) * sizeof(*slots));
        fds->slots = slots;
        fds->count = count;
    }
    strace_open_unref(fds->slots[fd].open);
    fds->slots[fd] = (struct strace_slot){open, cloexec};
    return 0;
}

void strace_fd_cloexec(struct strace_process *process, int fd, bool cloexec)
{
    if (fd >= 0 && fd < process->fds->count)
        process->fds->slots[fd].cloexec = cloexec;
}

void strace_fd_close(struct strace_process *process, int fd)
{
    if (fd < 0 || fd >= process->fds->count)
        return;
    strace_open_unref(process->fds->slots[fd].open);
    process->fds->slots[fd] = (struct strace_slot){0};
}

/* ---- processes ---- */

void strace_process_pending_clear(struct strace_process *process)
{
    free(process->pending);
    strace_open_unref(process->pending_open);
    process->pending = NULL;
    process->pending_open = NULL;
    process->pending_length = 0;
    process->pending_time = process->pending_done = false;
}

static void process_free(struct strace_process *process)
{
    if (process == NULL)
        return;
    strace_process_pending_clear(process);
    fds_unref(process->fds);
    free(process->cwd);
    free(process);
}

void strace_world_free(struct strace_world *world)
{
    if (world == NULL)
        return;
    for (uint32_t i = 0; i < world->size; i++)
        process_free(world->slots[i]);
    free(world->slots);
    free(world);
}

static struct strace_process **probe(struct strace_process **slots, uint32_t size, uint32_t pid)
{
    uint32_t at = (pid * 2654435761u) & (size - 1);

    while (slots[at] != NULL && slots[at]->pid != pid)
        at = (at + 1) & (size - 1);
    return &slots[at];
}

struct strace_process *strace_world_find(struct strace_world *world, uint32_t pid)
{
    return *probe(world->slots, world->size, pid);
}

struct strace_process *strace_world_process(struct strace_world *world, uint32_t pid)
{
    struct strace_process *process = strace_world_find(world, pid), **slots;

    if (process != NULL || world->count == PROCESSES_MAX)
        return process;
    if (world->count >= world->size / 2) {
        slots = calloc(2 * (size_t)world->size, sizeof(*slots));
        if (slots == NULL)
            return NULL;
        for (uint32_t i = 0; i < world->size; i++)
            if (world->slots[i] != NULL)
                *probe(slots, 2 * world->size, world->slots[i]->pid) = world->slots[i];
        free(world->slots);
        world->slots = slots;
        world->size *= 2;
    }
    process = calloc(1, sizeof(*process));
    if (process == NULL)
        return NULL;
    process->fds = fds_new();
    if (process->fds == NULL) {
        free(process);
        return NULL;
    }
    process->pid = process->group = pid;
    process->stream = TRACE_NONE_U32;
    process->live = true;
    *probe(world->slots, world->size, pid) = process;
    world->count++;
    return process;
}

void strace_world_each(struct strace_world *world,
                       void (*each)(void *context, struct strace_process *process),
                       void *context)
{
    for (uint32_t i = 0; i < world->size; i++)
        if (world->slots[i] != NULL)
            each(context, world->slots[i]);
}

int strace_process_fork(struct strace_process *parent, struct strace_process *child,
                        bool share_files, bool thread)
{
    struct strace_fds *fds;
    char *cwd = parent->cwd ? strdup(parent->cwd) : NULL;

    if (parent->cwd != NULL && cwd == NULL)
        return -ENOMEM;
    if (share_files) {
        fds = parent->fds;
        fds->refs++;
    } else {
        fds = fds_copy(parent->fds);
    }
    if (fds == NULL) {
        free(cwd);
        return -ENOMEM;
    }
    fds_unref(child->fds);
    free(child->cwd);
    child->fds = fds;
    child->cwd = cwd;
    child->live = true;
    child->stream = TRACE_NONE_U32;
    child->group = thread ? parent->group : child->pid;
    memcpy(child->comm, parent->comm, sizeof(child->comm));
    return 0;
}

int strace_process_unshare(struct strace_process *process)
{
    struct strace_fds *fds;

    if (process->fds->refs == 1)
        return 0;
    fds = fds_copy(process->fds);
    if (fds == NULL)
        return -ENOMEM;
    fds_unref(process->fds);
    process->fds = fds;
    return 0;
}

int strace_process_exec(struct strace_process *process)
{
    int err = strace_process_unshare(process);

    if (err < 0)
        return err;
    for (int fd = 0; fd < process->fds->count; fd++)
        if (process->fds->slots[fd].cloexec)
            strace_fd_close(process, fd);
    process->stream = TRACE_NONE_U32;
    return 0;
}

void strace_process_exit(struct strace_process *process)
{
    struct strace_fds *fds = fds_new();

    process->live = false;
    strace_process_pending_clear(process);
    if (fds == NULL)
        return; /* keeps what it had: nothing asks any more */
    fds_unref(process->fds);
    process->fds = fds;
}

void strace_process_move(struct strace_process *from, struct strace_process *to)
{
    struct strace_fds *fds = to->fds;
    char *cwd = to->cwd;

    to->fds = from->fds;
    from->fds = fds;
    to->cwd = from->cwd;
    from->cwd = cwd;
    memcpy(to->comm, from->comm, sizeof(to->comm));
    to->stream = TRACE_NONE_U32;
    to->live = true;
}

int strace_process_stream(struct strace_world *world, struct strace_process *process,
                          uint32_t *ret_stream)
{
    int err = 0;

    if (process->stream == TRACE_NONE_U32)
        err = import_stream(world->import, process->group, process->pid, process->comm,
                            strnlen(process->comm, sizeof(process->comm)), &process->stream);
    if (err == 0)
        *ret_stream = process->stream;
    return err;
}

/* ---- paths ---- */

size_t strace_path_fold(char *path, size_t length)
{
    bool absolute = length > 0 && path[0] == '/';
    size_t out = absolute ? 1 : 0, at = out;

    while (at < length) {
        char *slash = memchr(path + at, '/', length - at);
        size_t size = slash ? (size_t)(slash - (path + at)) : length - at;

        if (size == 2 && path[at] == '.' && path[at + 1] == '.' && absolute) {
            while (out > 1 && path[out - 1] != '/')
                out--;
            if (out > 1)
                out--;
            while (out > 1 && path[out - 1] == '/')
                out--;
        } else if (size > 0 && !(size == 1 && path[at] == '.')) {
            if (out > 0 && path[out - 1] != '/')
                path[out++] = '/';
            memmove(path + out, path + at, size);
            out += size;
        }
        at += size + 1;
    }
    if (out == 0 && length > 0)
        path[out++] = '.';
    return out;
}

int strace_path(const struct strace_process *process, struct strace_slice dir,
                struct strace_slice path, char *buffer, size_t size)
{
    const struct strace_open *open;
    struct strace_fd fd;
    size_t base = 0;
    int length;

    if (path.length < 2 || path.at[0] != '"')
        return -1;
    if (!strace_is_absolute(path)) {
        bool has_fd = dir.length > 0 && strace_fd_parse(dir, &fd);

        if (has_fd && fd.shown.length > 0) {
            length = strace_unescape(fd.shown, buffer, size);
            base = length > 0 ? (size_t)length : 0;
        } else if (has_fd && fd.fd >= 0) {
            open = strace_fd_get(process, fd.fd);
            if (open != NULL && open->path != NULL && open->path_length < size) {
                memcpy(buffer, open->path, open->path_length);
                base = open->path_length;
            }
        } else if (process->cwd != NULL && strlen(process->cwd) < size) {
            base = strlen(process->cwd);
            memcpy(buffer, process->cwd, base);
        }
        if (base > 0 && base < size)
            buffer[base++] = '/';
    }
    length = strace_unquote(path, buffer + base, size - base);
    if (length <= 0 || memchr(buffer, '\0', base + (size_t)length) != NULL)
        return -1;
    return (int)strace_path_fold(buffer, base + (size_t)length);
}
