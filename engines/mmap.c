/* SPDX-License-Identifier: MIT */
/*
 * Loads, stores and msync on a shared mapping. Files are mapped in windows, so that their size
 * does not matter; a file that shrinks under its mapping gives -EIO, not a crash.
 */
#include <errno.h>
#include <linux/fs.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engines/blocking.h"
#include "engines/done.h"
#include "engines/engine.h"
#include "engines/thread_limit.h"
#include "traces/diag.h"

#define MIN_WINDOW_BYTES ((uint64_t)1 << 20)
#define PAGE_BYTES       4096u

enum advice {
    ADVICE_NORMAL,
    ADVICE_RANDOM,
    ADVICE_SEQUENTIAL
};
static const char *const advice_names[] = {"normal", "random", "sequential", NULL};

struct mmap_conf {
    uint64_t window_bytes;
    uint64_t windows;
    bool touch;
    bool populate;
    int advice;
};

#define FIELD(name) offsetof(struct mmap_conf, name)
static const struct opt mmap_opts[] = {
    {"window", 0, OPT_SIZE, FIELD(window_bytes), .arg = "SIZE", .def = "256m",
     .min = MIN_WINDOW_BYTES, .max = (uint64_t)1 << 40,
     .help = "bytes mapped at once; rounded up to a power of two"},
    {"windows", 0, OPT_COUNT, FIELD(windows), .arg = "N", .def = "64", .min = 1, .max = 32768,
     .help = "windows kept mapped by each depth slot; the one in the way is unmapped"},
    {"touch", 0, OPT_FLAG, FIELD(touch),
     .help =
         "touch one byte of each page instead of copying the data: a read leaves its buffer "
         "alone, a write stores its first byte of each page"},
    {"populate", 0, OPT_FLAG, FIELD(populate),
     .help = "MADV_POPULATE_READ the range before each read: one call instead of page faults"},
    {"advice", 0, OPT_ENUM, FIELD(advice), .arg = "NAME", .def = "normal",
     .values = advice_names, .help = "madvise for each window: normal, random or sequential"},
    {0}};
#undef FIELD

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* 5.14 */
#endif

struct window {
    char *map; /* NULL = empty */
    uint64_t index;
    uint32_t target;
    int fd;
    bool writable;
    dev_t dev;
    ino_t ino;
};

struct size {
    uint64_t bytes;
    bool known;
};

struct mmap_state {
    const struct mmap_conf *conf;
    const struct engine_env *env;
    unsigned int window_shift;
    struct window *windows;
    struct size *sizes; /* one a target, when targets are fixed */
    struct done done; /* last: it ends in its ring */
};

/* ---- SIGBUS ----------------------------------------------------------------------------- */

/* Where this thread's copy gives up; NULL = it is not copying. */
static _Thread_local sigjmp_buf *volatile bus_jump;
static pthread_once_t bus_once = PTHREAD_ONCE_INIT;
static struct sigaction bus_before;

static void bus_handler(int number, siginfo_t *info, void *context)
{
    if (bus_jump)
        siglongjmp(*bus_jump, 1);
    /* Not ours: as if this handler were not there. The signal comes again on return. */
    sigaction(SIGBUS, &bus_before, NULL);
}

static void bus_install(void)
{
    struct sigaction action = {.sa_sigaction = bus_handler,
                               .sa_flags = SA_SIGINFO | SA_NODEFER};

    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &bus_before);
}

static void touch_pages(const struct mmap_state *state, const struct engine_op *op, char *at,
                        char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += PAGE_BYTES) {
        if (op->kind == TRACE_WRITE)
            *(volatile char *)(at + i) = data[i];
        else
            (void)*(volatile char *)(at + i);
    }
}

/* 0, or -EIO where the mapping has no file behind it (shrunk, full, failing device). */
static int copy(const struct mmap_state *state, const struct engine_op *op, char *at,
                char *data, size_t bytes)
{
    sigjmp_buf jump;

    if (sigsetjmp(jump, 0)) {
        bus_jump = NULL;
        return -EIO;
    }
    bus_jump = &jump;
    if (state->conf->touch)
        touch_pages(state, op, at, data, bytes);
    else if (op->kind == TRACE_WRITE)
        memcpy(at, data, bytes);
    else
        memcpy(data, at, bytes);
    bus_jump = NULL;
    return 0;
}

/* ---- sizes and windows ------------------------------------------------------------------ */

static int size_read(int fd, struct stat *st, uint64_t *ret_bytes)
{
    if (fstat(fd, st) < 0)
        return -errno;
    if (S_ISBLK(st->st_mode))
        return ioctl(fd, BLKGETSIZE64, ret_bytes) < 0 ? -errno : 0;
    if (S_ISDIR(st->st_mode))
        return -EISDIR;
    *ret_bytes = (uint64_t)st->st_size;
    return 0;
}

/*
 * The size of op's file. Where descriptors come and go the file behind one may be another by
 * now, so *st is read for each op; else only for an op that reaches past what is known.
 */
static int size_get(struct mmap_state *state, const struct engine_op *op, struct stat *st,
                    uint64_t *ret_bytes)
{
    struct size *size = state->env->targets_fixed && op->target < state->env->target_count
                            ? &state->sizes[op->target]
                            : NULL;
    int err;

    if (size && size->known && op->offset + op->length <= size->bytes) {
        *ret_bytes = size->bytes;
        return 0;
    }
    err = size_read(op->fd, st, ret_bytes);
    if (!err && size)
        *size = (struct size){.bytes = *ret_bytes, .known = true};
    return err;
}

static void size_forget(struct mmap_state *state, const struct engine_op *op)
{
    if (op->target < state->env->target_count)
        state->sizes[op->target].known = false;
}

static void window_drop(const struct mmap_state *state, struct window *window)
{
    if (window->map)
        munmap(window->map, (size_t)1 << state->window_shift);
    *window = (struct window){0};
}

static void windows_drop(struct mmap_state *state)
{
    for (uint64_t i = 0; i < state->conf->windows; i++)
        window_drop(state, &state->windows[i]);
}

static char *window_map(const struct mmap_state *state, int fd, uint64_t index, bool writable)
{
    size_t bytes = (size_t)1 << state->window_shift;
    int protection = PROT_READ | (writable ? PROT_WRITE : 0);
    char *map =
        mmap(NULL, bytes, protection, MAP_SHARED, fd, (off_t)(index << state->window_shift));

    if (map == MAP_FAILED)
        return NULL;
    if (state->conf->advice == ADVICE_RANDOM)
        madvise(map, bytes, MADV_RANDOM);
    else if (state->conf->advice == ADVICE_SEQUENTIAL)
        madvise(map, bytes, MADV_SEQUENTIAL);
    return map;
}

static bool window_is(const struct mmap_state *state, const struct window *window,
                      const struct engine_op *op, uint64_t index, const struct stat *st)
{
    if (!window->map || window->index != index || window->target != op->target ||
        (op->kind == TRACE_WRITE && !window->writable))
        return false;
    if (state->env->targets_fixed && op->target < state->env->target_count)
        return true;
    return window->dev == st->st_dev && window->ino == st->st_ino;
}

/* The mapping of window index of op's file. */
static int window_get(struct mmap_state *state, const struct engine_op *op, uint64_t index,
                      const struct stat *st, char **ret_map)
{
    uint64_t place = (index + op->target * 2654435761u) % state->conf->windows;
    struct window *window = &state->windows[place];
    bool writable = op->kind == TRACE_WRITE;
    char *map;

    if (window_is(state, window, op, index, st)) {
        *ret_map = window->map;
        return 0;
    }
    window_drop(state, window);
    map = window_map(state, op->fd, index, writable);
    if (!map && errno == ENOMEM) {
        /* Too many mappings in the process (vm.max_map_count): this slot's others go. */
        windows_drop(state);
        map = window_map(state, op->fd, index, writable);
    }
    if (!map) /* a descriptor that is not open for it, as pread and pwrite would say */
        return errno == EACCES ? -EBADF : -errno;
    *window = (struct window){.map = map,
                              .index = index,
                              .target = op->target,
                              .fd = op->fd,
                              .writable = writable,
                              .dev = st->st_dev,
                              .ino = st->st_ino};
    *ret_map = map;
    return 0;
}

/* ---- transfers -------------------------------------------------------------------------- */

static int64_t transfer_mapped(struct mmap_state *state, const struct engine_op *op,
                               uint64_t bytes, const struct stat *st)
{
    uint64_t window_bytes = (uint64_t)1 << state->window_shift, moved = 0;
    int err = 0;

    while (moved < bytes) {
        uint64_t at = op->offset + moved, within = at & (window_bytes - 1);
        uint64_t part =
            bytes - moved < window_bytes - within ? bytes - moved : window_bytes - within;
        char *map = NULL;

        err = window_get(state, op, at >> state->window_shift, st, &map);
        if (err)
            break;
        if (state->conf->populate && op->kind == TRACE_READ)
            madvise(map + (within & ~(uint64_t)(PAGE_BYTES - 1)),
                    part + (within & (PAGE_BYTES - 1)), MADV_POPULATE_READ);
        err = copy(state, op, map + within, (char *)op->buffer + moved, part);
        if (err)
            break;
        moved += part;
    }
    if (err)
        size_forget(state, op);
    return moved > 0 ? (int64_t)moved : err;
}

/*
 * Makes the file reach end by writing the op's own last byte there: growing it any other way
 * could cut off what another worker has appended meanwhile.
 */
static int grow(struct mmap_state *state, const struct engine_op *op)
{
    const char *last = (const char *)op->buffer + op->length - 1;
    ssize_t n = pwrite(op->fd, last, 1, (off_t)(op->offset + op->length - 1));

    size_forget(state, op);
    return n == 1 ? 0 : n < 0 ? -errno : -ENOSPC;
}

static int64_t transfer(struct mmap_state *state, const struct engine_op *op)
{
    struct stat st = {0};
    uint64_t size, bytes = op->length;
    int err;

    if (op->offset > INT64_MAX || op->length > INT64_MAX - op->offset)
        return -EINVAL;
    err = size_get(state, op, &st, &size);
    if (err)
        return err;
    if (op->offset + bytes > size) {
        if (op->kind == TRACE_READ)
            bytes = op->offset < size ? size - op->offset : 0;
        else if (bytes > 0)
            err = grow(state, op);
    }
    if (err || bytes == 0)
        return err;
    return transfer_mapped(state, op, bytes, &st);
}

/* msync of the windows that are mapped now; pages of others are the page cache's already. */
static int64_t sync_mapped(struct mmap_state *state, const struct engine_op *op)
{
    uint64_t begin = op->offset, end, window_bytes = (uint64_t)1 << state->window_shift;

    if (begin == TRACE_UNKNOWN_U64)
        begin = 0;
    end = op->length == 0 || op->length > UINT64_MAX - begin ? UINT64_MAX : begin + op->length;
    for (uint64_t i = 0; i < state->conf->windows; i++) {
        struct window *window = &state->windows[i];
        uint64_t at = window->index << state->window_shift, from, to;

        if (!window->map || window->target != op->target || at >= end ||
            at + window_bytes <= begin)
            continue;
        from = begin > at ? (begin - at) & ~(uint64_t)(PAGE_BYTES - 1) : 0;
        to = end - at < window_bytes ? end - at : window_bytes;
        if (msync(window->map + from, to - from, op->arg ? (int)op->arg : MS_SYNC) < 0 &&
            errno != ENOMEM)
            return -errno;
    }
    return 0;
}

/* ---- the engine ------------------------------------------------------------------------- */

static void mmap_close(void *opaque)
{
    struct mmap_state *state = opaque;

    if (!state)
        return;
    if (state->windows)
        windows_drop(state);
    free(state->windows);
    free(state->sizes);
    free(state);
}

static int mmap_open(const void *opaque_conf, const struct engine_env *env, void **ret_state)
{
    const struct mmap_conf *conf = opaque_conf;
    struct mmap_state *state = calloc(1, done_state_bytes(sizeof(*state), env->depth));

    if (!state)
        return diag_errno(env->diag, -ENOMEM, "engine mmap");
    state->conf = conf;
    state->env = env;
    state->done.depth = env->depth;
    while (((uint64_t)1 << state->window_shift) < conf->window_bytes)
        state->window_shift++;
    state->windows = calloc(conf->windows, sizeof(state->windows[0]));
    state->sizes = calloc((size_t)env->target_count + 1, sizeof(state->sizes[0]));
    if (!state->windows || !state->sizes) {
        mmap_close(state);
        return diag_errno(env->diag, -ENOMEM, "engine mmap");
    }
    pthread_once(&bus_once, bus_install);
    *ret_state = state;
    return 0;
}

static int mmap_submit(void *opaque, struct engine_op **ops, unsigned int count)
{
    struct mmap_state *state = opaque;

    for (unsigned int i = 0; i < count; i++) {
        struct engine_op *op = ops[i];

        switch (op->kind) {
        case TRACE_READ:
        case TRACE_WRITE: op->result = transfer(state, op); break;
        case TRACE_MSYNC: op->result = sync_mapped(state, op); break;
        case TRACE_TRUNCATE: size_forget(state, op); /* fall through */
        default: op->result = blocking_run(op, state->env); break;
        }
        done_put(&state->done, op);
    }
    return (int)count;
}

static int mmap_reap(void *opaque, struct engine_op **done, unsigned int min, unsigned int max,
                     uint64_t timeout_ns)
{
    struct mmap_state *state = opaque;

    return done_take(&state->done, done, max);
}

static void mmap_capacity(const void *conf, uint32_t depth, uint32_t states,
                          struct engine_capacity *ret_capacity)
{
    thread_limit_capacity(depth, depth, states, ret_capacity);
}

const struct engine engine_mmap = {
    .name = "mmap",
    .summary = "loads, stores and msync on a mapping, one thread for each op in flight",
    .help =
        "Each depth slot is a thread with mappings of its own. A read copies from the "
        "mapping, a write copies into it (growing the file first where it must); fsync and "
        "fdatasync are the system calls, which write mapped pages too; msync is msync. Memory "
        "that has no file behind it any more gives EIO. Buffered files only. An op without an "
        "offset gives EINVAL; flags of ops have no meaning here.",
    .opts = mmap_opts,
    .conf_size = sizeof(struct mmap_conf),
    .ops = BLOCKING_OPS | ENGINE_OP(TRACE_MSYNC),
    .flags = ENGINE_BLOCKING | ENGINE_CORE_THREADS | ENGINE_BUFFERED_ONLY,
    .open = mmap_open,
    .submit = mmap_submit,
    .reap = mmap_reap,
    .close = mmap_close,
    .capacity = mmap_capacity,
};
