/* SPDX-License-Identifier: MIT */
/*
 * One engine opened on one descriptor, for the unit tests of engines: cmocka's headers come
 * first.
 */
#ifndef TESTS_ENGINE_BENCH_H
#define TESTS_ENGINE_BENCH_H

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engines/engine.h"
#include "traces/diag.h"

#define BENCH_STRIDE 65536u

struct bench {
    struct engine_choice choice;
    struct engine_handle *handle;
    struct engine_target target;
    struct engine_env env;
    struct diag diag;
    char granted[256];
    char notes[1024];
    bool downgraded;
};

static inline void bench_note(void *context, const char *text)
{
    struct bench *bench = context;

    strncat(bench->notes, text, sizeof(bench->notes) - strlen(bench->notes) - 1);
    strncat(bench->notes, "\n", sizeof(bench->notes) - strlen(bench->notes) - 1);
}

/* Fills env for depth ops on fd with buffers; change it before bench_open. */
static inline void bench_init(struct bench *bench, int fd, uint32_t depth)
{
    memset(bench, 0, sizeof(*bench));
    bench->diag.note = bench_note;
    bench->diag.note_context = bench;
    bench->target = (struct engine_target){.fd = fd, .path = "target"};
    bench->env = (struct engine_env){
        .clock = &clock_real,
        .targets = &bench->target,
        .target_count = 1,
        .targets_fixed = fd >= 0,
        .depth = depth,
        .batch = depth,
        .buffers = aligned_alloc(4096, (size_t)depth * BENCH_STRIDE),
        .buffer_bytes = (uint64_t)depth * BENCH_STRIDE,
        .buffer_stride = BENCH_STRIDE,
        .max_length = BENCH_STRIDE,
        .writes = true,
        .seed = 1,
        .diag = &bench->diag,
        .granted = bench->granted,
        .granted_size = sizeof(bench->granted),
        .ret_downgraded = &bench->downgraded,
    };
    assert_non_null(bench->env.buffers);
    memset(bench->env.buffers, 0, bench->env.buffer_bytes);
}

static inline int bench_open(struct bench *bench, const char *choice)
{
    int err = engine_choice_parse(&bench->choice, choice, &bench->diag);

    return err ? err : engine_open(&bench->handle, &bench->choice, &bench->env);
}

static inline void bench_close(struct bench *bench)
{
    engine_close(bench->handle);
    if (bench->choice.engine)
        engine_choice_release(&bench->choice);
    free(bench->env.buffers);
}

static inline struct engine_op bench_op(const struct bench *bench, uint8_t kind, uint32_t slot,
                                        uint64_t offset, uint64_t length)
{
    return (struct engine_op){
        .kind = kind,
        .fd = bench->target.fd,
        .slot_index = slot,
        .offset = offset,
        .length = length,
        .buffer = (char *)bench->env.buffers + (size_t)slot * BENCH_STRIDE,
        .result = INT64_MIN,
    };
}

/* Waits for min ops: an interrupted wait, which engine_reap may return from, goes on. Their
 * count, at most max, or -errno. */
static inline int bench_wait(struct bench *bench, struct engine_op **done, unsigned int min,
                             unsigned int max)
{
    unsigned int count = 0;
    int n;

    while (count < min) {
        n = engine_reap(bench->handle, done + count, min - count, max - count, UINT64_MAX);
        if (n < 0)
            return n;
        count += (unsigned int)n;
    }
    return (int)count;
}

/* The value of a counter by name; fails the test when there is none. */
static inline uint64_t bench_counter(struct bench *bench, const char *name)
{
    const char *at;
    uint64_t value = 0;

    for (unsigned int i = 0; (at = engine_counter(bench->handle, i, &value)); i++)
        if (!strcmp(at, name))
            return value;
    fail_msg("no counter %s", name);
    return 0;
}

/* A file of count bytes, all of value. Open for reading and writing; path is kept. */
static inline int bench_file(const char *path, size_t count, int value)
{
    char *data = malloc(count ? count : 1);
    int fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);

    assert_true(fd >= 0 && data);
    memset(data, value, count);
    assert_int_equal(write(fd, data, count), count);
    free(data);
    return fd;
}

#endif
