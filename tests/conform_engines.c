/* SPDX-License-Identifier: MIT */
/*
 * Every engine, by the same rules: the same ops move the same bytes, each op comes back exactly
 * once, errors and short transfers are results, and nothing is written to after close. The list
 * of engines is the registry's; options worth a run of their own are listed below.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engines/engine.h"
#include "traces/diag.h"

#define BLOCK      4096u
#define BLOCKS     256u
#define FILE_BYTES (BLOCK * BLOCKS)
#define STRIDE     (4 * BLOCK)
#define MAX_WANTS  1024u
#define WAIT       UINT64_MAX

static const char *const variants[] = {
    "io_uring:register=0",     "io_uring:sqpoll=1",  "io_uring:defer=0",    "io_uring:async=1",
    "io_uring:defer=0,coop=0", "libaio:user-reap=0", "io_uring:vectored=1", "vsync:join=0",
    "threads:threads=3",
};

/* ---- a rig: one engine on one file ------------------------------------------------------ */

struct want {
    uint8_t kind;
    uint8_t seed; /* of the bytes written */
    uint32_t flags;
    uint64_t offset, length;
    uint64_t buffer_shift; /* into the slot's buffer: misaligns it */
    unsigned int completions;
    int64_t result;
};

struct rig {
    struct engine_choice choice;
    struct engine_handle *handle;
    struct engine_target target;
    struct diag diag;
    unsigned int depth, batch;
    int fd;
    bool downgraded;
    char granted[256];
    uint8_t *buffers;
    struct engine_op *ops;
    struct engine_op **free_ops;
    unsigned int free_count;
    uint8_t *image; /* what the file should hold */
    uint64_t image_bytes;
};

static uint8_t pattern(uint8_t seed, uint64_t offset)
{
    uint64_t x = (offset + 1) * 0x9e3779b97f4a7c15u + seed * 0xbf58476d1ce4e5b9u;

    return (uint8_t)((x >> 32) ^ (x >> 48) ^ seed);
}

static bool does_io(const struct rig *rig)
{
    return !(rig->choice.engine->flags & ENGINE_NO_TARGET);
}

static bool knows(const struct rig *rig, unsigned int kind)
{
    return rig->choice.engine->ops & ENGINE_OP(kind);
}

/* The file at path, made anew with BLOCKS blocks of pattern 0. */
static void file_make(const char *path, uint64_t bytes)
{
    uint8_t *data = malloc(bytes);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

    assert_true(fd >= 0 && data);
    for (uint64_t i = 0; i < bytes; i++)
        data[i] = pattern(0, i);
    assert_int_equal(write(fd, data, bytes), bytes);
    assert_int_equal(fsync(fd), 0);
    close(fd);
    free(data);
}

static void rig_slots(struct rig *rig)
{
    rig->buffers = aligned_alloc(BLOCK, (size_t)rig->depth * STRIDE);
    rig->ops = calloc(rig->depth, sizeof(rig->ops[0]));
    rig->free_ops = calloc(rig->depth, sizeof(rig->free_ops[0]));
    assert_true(rig->buffers && rig->ops && rig->free_ops);
    memset(rig->buffers, 0, (size_t)rig->depth * STRIDE);
    for (unsigned int i = 0; i < rig->depth; i++) {
        rig->ops[i].slot_index = i;
        rig->free_ops[rig->free_count++] = &rig->ops[i];
    }
}

/* fixed: the target may be registered. false when the engine cannot run so. */
static bool rig_open(struct rig *rig, const char *choice, const char *path, int flags,
                     unsigned int depth, unsigned int batch, bool fixed)
{
    struct engine_env env = {0};
    const struct engine *engine;
    struct stat st;

    *rig = (struct rig){.fd = -1};
    assert_int_equal(engine_choice_parse(&rig->choice, choice, &rig->diag), 0);
    engine = rig->choice.engine;
    if ((flags & O_DIRECT) && (engine->flags & ENGINE_BUFFERED_ONLY)) {
        engine_choice_release(&rig->choice);
        return false;
    }
    rig->depth = depth;
    rig->batch = engine->flags & ENGINE_BLOCKING ? 1 : batch;
    rig->fd = open(path, flags);
    assert_true(rig->fd >= 0);
    assert_int_equal(fstat(rig->fd, &st), 0);
    rig_slots(rig);
    rig->target = (struct engine_target){.fd = rig->fd,
                                         .size_bytes = (uint64_t)st.st_size,
                                         .direct = flags & O_DIRECT,
                                         .path = path};
    env.clock = &clock_real;
    env.targets = &rig->target;
    env.target_count = 1;
    env.targets_fixed = fixed;
    env.depth = depth;
    env.batch = rig->batch;
    env.buffers = rig->buffers;
    env.buffer_bytes = (uint64_t)depth * STRIDE;
    env.buffer_stride = STRIDE;
    env.max_length = STRIDE;
    env.writes = (flags & O_ACCMODE) != O_RDONLY;
    env.all_direct = flags & O_DIRECT;
    env.seed = 1;
    env.diag = &rig->diag;
    env.granted = rig->granted;
    env.granted_size = sizeof(rig->granted);
    env.ret_downgraded = &rig->downgraded;
    if (engine_open(&rig->handle, &rig->choice, &env)) {
        print_error("%s: %s\n", choice, rig->diag.text);
        fail();
    }
    rig->image_bytes = (uint64_t)st.st_size;
    rig->image = malloc(rig->image_bytes);
    assert_non_null(rig->image);
    for (uint64_t i = 0; i < rig->image_bytes; i++)
        rig->image[i] = pattern(0, i);
    return true;
}

static void rig_close(struct rig *rig)
{
    engine_close(rig->handle);
    engine_choice_release(&rig->choice);
    close(rig->fd);
    free(rig->buffers);
    free(rig->ops);
    free(rig->free_ops);
    free(rig->image);
}

/* Waits for one op: an interrupted wait, which engine_reap may return from, goes on. */
static int wait_one(struct engine_handle *handle, struct engine_op **done, unsigned int max)
{
    int n;

    do {
        n = engine_reap(handle, done, 1, max, WAIT);
    } while (n == 0 && engine_in_flight(handle) > 0);
    return n;
}

/* ---- driving a list of ops -------------------------------------------------------------- */

static struct engine_op *rig_prepare(struct rig *rig, struct want *want)
{
    struct engine_op *op = rig->free_ops[--rig->free_count];
    uint8_t *buffer = rig->buffers + (size_t)op->slot_index * STRIDE + want->buffer_shift;

    op->kind = want->kind;
    op->flags = want->flags;
    op->fd = rig->fd;
    op->target = 0;
    op->arg = 0;
    op->offset = want->offset;
    op->length = want->length;
    op->buffer = want->kind == TRACE_READ || want->kind == TRACE_WRITE ? buffer : NULL;
    op->result = INT64_MIN;
    op->core = want;
    op->issued_ns = op->completed_ns = 0;
    if (want->kind == TRACE_WRITE)
        for (uint64_t i = 0; i < want->length; i++)
            buffer[i] = pattern(want->seed, want->offset + i);
    if (want->kind == TRACE_READ)
        memset(buffer, 0xee, want->length);
    return op;
}

/* What a read brought is what the image holds; bytes past a short result are untouched. */
static void check_read(const struct rig *rig, const struct engine_op *op)
{
    const uint8_t *buffer = op->buffer;

    if (op->result <= 0)
        return;
    assert_true(op->offset + (uint64_t)op->result <= rig->image_bytes);
    assert_memory_equal(buffer, rig->image + op->offset, (size_t)op->result);
    for (uint64_t i = (uint64_t)op->result; i < op->length; i++)
        if (buffer[i] != 0xee)
            fail_msg("byte %llu after a result of %lld was written", (unsigned long long)i,
                     (long long)op->result);
}

static void rig_done(struct rig *rig, struct engine_op **done, int count)
{
    for (int i = 0; i < count; i++) {
        struct engine_op *op = done[i];
        struct want *want = op->core;

        want->completions++;
        want->result = op->result;
        if (op->kind == TRACE_READ && does_io(rig))
            check_read(rig, op);
        if (rig->choice.engine->flags & ENGINE_STAMPS) {
            assert_true(op->issued_ns > 0);
            assert_true(op->completed_ns >= op->issued_ns);
            assert_true(op->completed_ns <= clock_now_ns(&clock_real));
        }
        rig->free_ops[rig->free_count++] = op;
    }
}

enum way {
    WAY_TWO_CALLS,
    WAY_ONE_CALL
};

/* One round: hands over ops[0 .. count-1], reaps at least min. How many were taken. */
static int rig_step(struct rig *rig, enum way way, struct engine_op **ops, unsigned int count,
                    unsigned int min)
{
    struct engine_op *done[64];
    int taken, n;

    if (way == WAY_ONE_CALL) {
        n = engine_submit_reap(rig->handle, ops, count, &taken, done, min, 64, WAIT);
    } else {
        taken = engine_submit(rig->handle, ops, count);
        n = engine_reap(rig->handle, done, min, 64, WAIT);
    }
    if (n < 0 || (taken < 0 && taken != -EAGAIN))
        fail_msg("%s: %s", rig->choice.text, rig->diag.text);
    rig_done(rig, done, n);
    return taken < 0 ? 0 : taken;
}

/* Keeps the depth full until every want has come back. */
static void rig_run(struct rig *rig, enum way way, struct want *wants, unsigned int count)
{
    struct engine_op *ops[1024];
    unsigned int next = 0, ready = 0, taken;

    assert_true(rig->batch <= 1024);
    while (next < count || ready > 0 || engine_in_flight(rig->handle) > 0) {
        while (ready < rig->batch && next < count && rig->free_count > 0)
            ops[ready++] = rig_prepare(rig, &wants[next++]);
        taken =
            (unsigned int)rig_step(rig, way, ops, ready, rig->free_count == 0 || next == count);
        memmove(ops, ops + taken, (ready - taken) * sizeof(ops[0]));
        ready -= taken;
    }
    for (unsigned int i = 0; i < count; i++)
        assert_int_equal(wants[i].completions, 1);
    assert_int_equal(rig->free_count, rig->depth);
}

static int64_t rig_one(struct rig *rig, struct want want)
{
    rig_run(rig, WAY_TWO_CALLS, &want, 1);
    return want.result;
}

static void image_write(struct rig *rig, const struct want *want)
{
    for (uint64_t i = 0; i < want->length; i++)
        rig->image[want->offset + i] = pattern(want->seed, want->offset + i);
}

static void check_file(const struct rig *rig, const char *path)
{
    uint8_t *data = malloc(rig->image_bytes + 1);
    int fd = open(path, O_RDONLY);

    assert_true(data && fd >= 0);
    assert_int_equal(pread(fd, data, rig->image_bytes + 1, 0), rig->image_bytes);
    assert_memory_equal(data, rig->image, rig->image_bytes);
    close(fd);
    free(data);
}

/* ---- the rules -------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Every block once in random order, each a write (of seed) or, with seed 0, a read. */
static void shuffle_blocks(struct want *wants, uint8_t seed, uint32_t random)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        uint32_t j = next_random(&random) % (i + 1);

        wants[i] = wants[j];
        wants[j] = (struct want){.kind = seed ? TRACE_WRITE : TRACE_READ,
                                 .seed = seed,
                                 .offset = (uint64_t)i * BLOCK,
                                 .length = BLOCK};
    }
}

static void rule_same_bytes(const char *choice, int flags, unsigned int depth,
                            unsigned int batch, enum way way, bool fixed)
{
    struct want *wants = calloc(BLOCKS, sizeof(wants[0]));
    struct rig rig;

    assert_non_null(wants);
    file_make("bytes", FILE_BYTES);
    if (!rig_open(&rig, choice, "bytes", O_RDWR | flags, depth, batch, fixed)) {
        free(wants);
        return;
    }
    for (uint8_t round = 0; round < 4; round++) {
        uint8_t seed = round % 2 ? (uint8_t)(round + 1) : 0;

        shuffle_blocks(wants, seed, depth + batch + round);
        /* A write and the reads of a round do not overlap: the round before is complete. */
        rig_run(&rig, way, wants, BLOCKS);
        for (uint32_t i = 0; i < BLOCKS; i++) {
            assert_int_equal(wants[i].result, BLOCK);
            if (seed)
                image_write(&rig, &wants[i]);
        }
    }
    if (knows(&rig, TRACE_FDATASYNC))
        assert_int_equal(rig_one(&rig, (struct want){.kind = TRACE_FDATASYNC}), 0);
    if (knows(&rig, TRACE_FSYNC))
        assert_int_equal(rig_one(&rig, (struct want){.kind = TRACE_FSYNC}), 0);
    if (does_io(&rig))
        check_file(&rig, "bytes");
    rig_close(&rig);
    free(wants);
}

static void rule_end_of_file(const char *choice)
{
    struct rig rig;

    file_make("short", 3 * BLOCK + 100);
    assert_true(rig_open(&rig, choice, "short", O_RDONLY, 4, 4, true));
    if (does_io(&rig)) {
        assert_int_equal(rig_one(&rig, (struct want){.offset = 3 * BLOCK, .length = BLOCK}),
                         100);
        assert_int_equal(
            rig_one(&rig, (struct want){.offset = 3 * BLOCK + 99, .length = 2 * BLOCK}), 1);
        assert_int_equal(
            rig_one(&rig, (struct want){.offset = 3 * BLOCK + 100, .length = BLOCK}), 0);
        assert_int_equal(rig_one(&rig, (struct want){.offset = 1u << 30, .length = BLOCK}), 0);
    }
    assert_int_equal(rig_one(&rig, (struct want){.offset = 0, .length = 0}), 0);
    rig_close(&rig);
}

/* A bad op among good ones: it alone fails, and it is reaped like the rest. */
static void rule_errors(const char *choice)
{
    struct want wants[8] = {{0}};
    struct rig rig;
    int good;

    file_make("errors", FILE_BYTES);
    assert_true(rig_open(&rig, choice, "errors", O_RDONLY, 8, 8, false));
    if (!does_io(&rig)) {
        rig_close(&rig);
        return;
    }
    for (unsigned int i = 0; i < 8; i++)
        wants[i] = (struct want){.kind = i == 3 || i == 5 ? TRACE_WRITE : TRACE_READ,
                                 .offset = i * BLOCK,
                                 .length = BLOCK};
    rig_run(&rig, WAY_TWO_CALLS, wants, 8);
    for (unsigned int i = 0; i < 8; i++)
        assert_int_equal(wants[i].result, i == 3 || i == 5 ? -EBADF : (int)BLOCK);
    good = rig.fd;
    rig.fd = -1;
    rig.target.fd = -1;
    assert_int_equal(rig_one(&rig, (struct want){.length = BLOCK}), -EBADF);
    if (knows(&rig, TRACE_FSYNC))
        assert_int_equal(rig_one(&rig, (struct want){.kind = TRACE_FSYNC}), -EBADF);
    rig.fd = rig.target.fd = good;
    assert_int_equal(rig_one(&rig, (struct want){.length = BLOCK}), BLOCK);
    rig_close(&rig);
}

/* Direct I/O with a misaligned offset, length or buffer is refused by the kernel, op by op. */
static void rule_misaligned(const char *choice)
{
    struct want wants[4] = {
        {.offset = 0, .length = BLOCK},
        {.offset = 100, .length = BLOCK},
        {.offset = BLOCK, .length = BLOCK},
        {.offset = 0, .length = 100},
    };
    struct rig rig;

    file_make("direct", FILE_BYTES);
    if (!rig_open(&rig, choice, "direct", O_RDONLY | O_DIRECT, 4, 4, false))
        return;
    if (does_io(&rig)) {
        rig_run(&rig, WAY_TWO_CALLS, wants, 4);
        assert_int_equal(wants[0].result, BLOCK);
        assert_int_equal(wants[1].result, -EINVAL);
        assert_int_equal(wants[2].result, BLOCK);
        assert_int_equal(wants[3].result, -EINVAL);
    }
    rig_close(&rig);
}

static void rule_ranges(const char *choice)
{
    static const unsigned int kinds[] = {TRACE_DISCARD, TRACE_WRITE_ZEROES};
    struct rig rig;

    file_make("ranges", FILE_BYTES);
    assert_true(rig_open(&rig, choice, "ranges", O_RDWR, 4, 4, true));
    for (unsigned int i = 0; i < 2; i++) {
        struct want want = {
            .kind = (uint8_t)kinds[i], .offset = (10 + i) * BLOCK, .length = BLOCK};
        int64_t result;

        if (!knows(&rig, kinds[i]) || !does_io(&rig))
            continue;
        result = rig_one(&rig, want);
        if (result == -EOPNOTSUPP)
            continue; /* the file system's answer */
        assert_int_equal(result, 0);
        memset(rig.image + want.offset, 0, want.length);
    }
    if (knows(&rig, TRACE_SYNC_RANGE))
        assert_int_equal(
            rig_one(&rig, (struct want){.kind = TRACE_SYNC_RANGE, .length = FILE_BYTES}), 0);
    if (knows(&rig, TRACE_READAHEAD))
        assert_int_equal(
            rig_one(&rig, (struct want){.kind = TRACE_READAHEAD, .length = FILE_BYTES}), 0);
    if (does_io(&rig))
        check_file(&rig, "ranges");
    rig_close(&rig);
}

/* Appends land at the end, one after the other, whatever offset they carry. */
static void rule_append(const char *choice)
{
    struct rig rig;
    struct stat st;

    file_make("append", BLOCK);
    assert_true(rig_open(&rig, choice, "append", O_RDWR, 4, 4, false));
    if (does_io(&rig) && strcmp(rig.choice.engine->name, "mmap") != 0 &&
        strcmp(rig.choice.engine->name, "posixaio") != 0) {
        for (unsigned int i = 0; i < 3; i++)
            assert_int_equal(rig_one(&rig, (struct want){.kind = TRACE_WRITE,
                                                         .seed = 7,
                                                         .flags = TRACE_F_APPEND,
                                                         .length = BLOCK}),
                             BLOCK);
        assert_int_equal(fstat(rig.fd, &st), 0);
        assert_int_equal(st.st_size, 4 * BLOCK);
    }
    rig_close(&rig);
}

/* Every flag an op may carry is honoured or left alone: never an error of its own. */
static void rule_flags(const char *choice)
{
    static const uint32_t flags[] = {
        TRACE_F_DSYNC,    TRACE_F_SYNC, TRACE_F_FUA,       TRACE_F_PREFLUSH,
        TRACE_F_POLLED,   TRACE_F_META, TRACE_F_READAHEAD, TRACE_F_PREFLUSH | TRACE_F_FUA,
        TRACE_F_REQUEUED, TRACE_F_LINK, TRACE_F_DERIVED,   TRACE_F_FIXED_BUF | TRACE_F_DRAIN,
    };
    struct want wants[24];
    struct rig rig;

    file_make("flags", FILE_BYTES);
    assert_true(rig_open(&rig, choice, "flags", O_RDWR, 8, 8, true));
    for (unsigned int i = 0; i < 24; i++)
        wants[i] = (struct want){.kind = i % 2 ? TRACE_READ : TRACE_WRITE,
                                 .seed = 5,
                                 .flags = flags[i / 2],
                                 .offset = i * BLOCK,
                                 .length = BLOCK};
    rig_run(&rig, WAY_ONE_CALL, wants, 24);
    for (unsigned int i = 0; i < 24; i++) {
        assert_int_equal(wants[i].result, BLOCK);
        if (i % 2 == 0)
            image_write(&rig, &wants[i]);
    }
    if (does_io(&rig))
        check_file(&rig, "flags");
    rig_close(&rig);
}

/* A write with preflush fails when its flush does: a pipe has no fsync. */
static void rule_preflush(const char *choice)
{
    struct engine_op *op, *done[1];
    struct want want = {.kind = TRACE_WRITE, .flags = TRACE_F_PREFLUSH, .length = 16};
    struct rig rig;
    int pipe_fds[2];

    file_make("preflush", BLOCK);
    assert_int_equal(pipe2(pipe_fds, O_NONBLOCK), 0);
    assert_true(rig_open(&rig, choice, "preflush", O_RDWR, 8, 8, false));
    if (does_io(&rig) && strcmp(rig.choice.engine->name, "mmap") != 0) {
        op = rig_prepare(&rig, &want);
        op->fd = pipe_fds[1];
        assert_int_equal(engine_submit(rig.handle, &op, 1), 1);
        assert_int_equal(wait_one(rig.handle, done, 1), 1);
        assert_int_equal(op->result, -EINVAL);
        rig_done(&rig, done, 1);
    }
    rig_close(&rig);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

/* Depth can be filled to the brim, and reap without anything to do returns at once. */
static void rule_full_depth(const char *choice, unsigned int depth)
{
    struct want *wants = calloc(depth, sizeof(wants[0]));
    struct engine_op **ops = calloc(depth, sizeof(ops[0])), *done[64];
    unsigned int taken = 0, back = 0;
    struct rig rig;

    assert_true(wants && ops);
    file_make("full", FILE_BYTES);
    assert_true(rig_open(&rig, choice, "full", O_RDONLY, depth, depth, true));
    assert_int_equal(engine_reap(rig.handle, done, 1, 64, WAIT), 0);
    for (unsigned int i = 0; i < depth; i++) {
        wants[i] = (struct want){.offset = i % BLOCKS * BLOCK, .length = BLOCK};
        ops[i] = rig_prepare(&rig, &wants[i]);
    }
    while (taken < depth) {
        unsigned int count = depth - taken < rig.batch ? depth - taken : rig.batch;
        int n = engine_submit(rig.handle, ops + taken, count);

        assert_true(n > 0);
        taken += (unsigned int)n;
    }
    assert_int_equal(engine_in_flight(rig.handle), depth);
    while (back < depth) {
        int n = wait_one(rig.handle, done, 64);

        assert_true(n > 0);
        rig_done(&rig, done, n);
        back += (unsigned int)n;
    }
    assert_int_equal(engine_reap(rig.handle, done, 0, 64, 0), 0);
    rig_close(&rig);
    free(wants);
    free(ops);
}

/* A run given up: close with ops in flight, then nothing writes to the buffers any more. */
static void rule_close_in_flight(const char *choice, int flags)
{
    struct want wants[16];
    struct engine_op *ops[16];
    unsigned int taken = 0;
    struct rig rig;

    file_make("closed", FILE_BYTES);
    if (!rig_open(&rig, choice, "closed", O_RDONLY | flags, 16, 16, true))
        return;
    posix_fadvise(rig.fd, 0, 0, POSIX_FADV_DONTNEED);
    for (unsigned int i = 0; i < 16; i++) {
        wants[i] = (struct want){.offset = i * 16 * BLOCK, .length = BLOCK};
        ops[i] = rig_prepare(&rig, &wants[i]);
    }
    while (taken < 16) {
        int n = engine_submit(rig.handle, ops + taken,
                              16 - taken < rig.batch ? 16 - taken : rig.batch);
        assert_true(n > 0);
        taken += (unsigned int)n;
    }
    engine_close(rig.handle);
    rig.handle = NULL;
    memset(rig.buffers, 0x5a, (size_t)rig.depth * STRIDE);
    usleep(2000);
    for (size_t i = 0; i < (size_t)rig.depth * STRIDE; i++)
        assert_int_equal(rig.buffers[i], 0x5a);
    rig_close(&rig);
}

/* ---- several workers at once ------------------------------------------------------------ */

struct worker {
    pthread_t thread;
    const char *choice;
    unsigned int index;
};

/* cmocka's asserts belong to the main thread: a worker reports through its return value. */
static void *worker_main(void *opaque)
{
    struct worker *worker = opaque;
    struct engine_op op = {0}, *ops[1] = {&op}, *done[1];
    struct engine_target target = {.path = "workers", .size_bytes = FILE_BYTES};
    struct engine_choice choice;
    struct engine_handle *handle;
    struct diag diag = DIAG_INIT;
    uint8_t *buffer = aligned_alloc(BLOCK, BLOCK);
    struct engine_env env = {.clock = &clock_real,
                             .targets = &target,
                             .target_count = 1,
                             .targets_fixed = true,
                             .depth = 1,
                             .batch = 1,
                             .buffers = buffer,
                             .buffer_bytes = BLOCK,
                             .buffer_stride = BLOCK,
                             .max_length = BLOCK,
                             .writes = true,
                             .diag = &diag};
    const char *failure = NULL;

    target.fd = open("workers", O_RDWR);
    if (engine_choice_parse(&choice, worker->choice, &diag))
        return (void *)"parse";
    if (engine_open(&handle, &choice, &env))
        return (void *)"open";
    for (unsigned int i = 0; i < 40 && !failure; i++) {
        op.kind = i % 2 ? TRACE_READ : TRACE_WRITE;
        op.fd = target.fd;
        op.offset = (worker->index * 20 + i / 2) * BLOCK;
        op.length = BLOCK;
        op.buffer = buffer;
        memset(buffer, i % 2 ? 0 : (int)(worker->index + i), BLOCK);
        if (engine_submit(handle, ops, 1) != 1 || wait_one(handle, done, 1) != 1 ||
            op.result != BLOCK)
            failure = "op";
        else if (!(choice.engine->flags & ENGINE_NO_TARGET) && i % 2 &&
                 buffer[17] != (uint8_t)(worker->index + i - 1))
            failure = "bytes";
    }
    engine_close(handle);
    engine_choice_release(&choice);
    close(target.fd);
    free(buffer);
    return (void *)failure;
}

static void rule_workers(const char *choice)
{
    struct worker workers[4];

    file_make("workers", FILE_BYTES);
    for (unsigned int i = 0; i < 4; i++) {
        workers[i] = (struct worker){.choice = choice, .index = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]), 0);
    }
    for (unsigned int i = 0; i < 4; i++) {
        void *failure;

        assert_int_equal(pthread_join(workers[i].thread, &failure), 0);
        if (failure)
            fail_msg("%s: worker %u: %s", choice, i, (const char *)failure);
    }
}

/* ---- every engine ----------------------------------------------------------------------- */

static bool can_run(const char *text)
{
    struct engine_choice choice;
    struct diag diag = DIAG_INIT;
    bool can;

    if (engine_choice_parse(&choice, text, &diag)) {
        print_error("%s\n", diag.text);
        fail();
    }
    can = engine_choice_probe(&choice, &diag) == 0;
    if (!can)
        print_message("not run: %s\n", diag.text);
    engine_choice_release(&choice);
    return can;
}

static bool file_system_has_direct(void)
{
    int fd;

    file_make("probe", BLOCK);
    fd = open("probe", O_RDONLY | O_DIRECT);
    if (fd < 0)
        return false;
    close(fd);
    return true;
}

static void conform(const char *choice)
{
    bool direct = file_system_has_direct();

    if (!can_run(choice))
        return;
    print_message("%s\n", choice);
    rule_same_bytes(choice, 0, 1, 1, WAY_TWO_CALLS, true);
    rule_same_bytes(choice, 0, 32, 8, WAY_TWO_CALLS, true);
    rule_same_bytes(choice, 0, 32, 32, WAY_ONE_CALL, false);
    if (direct) {
        rule_same_bytes(choice, O_DIRECT, 16, 4, WAY_ONE_CALL, true);
        rule_misaligned(choice);
        rule_close_in_flight(choice, O_DIRECT);
    }
    rule_end_of_file(choice);
    rule_errors(choice);
    rule_ranges(choice);
    rule_append(choice);
    rule_flags(choice);
    rule_preflush(choice);
    rule_full_depth(choice, 200);
    rule_close_in_flight(choice, 0);
    rule_workers(choice);
}

static void every_engine(void **test_state)
{
    for (unsigned int i = 0; engine_at(i); i++)
        conform(engine_at(i)->name);
}

static void every_variant(void **test_state)
{
    for (unsigned int i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
        conform(variants[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_engine),
        cmocka_unit_test(every_variant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
