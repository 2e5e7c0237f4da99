/* SPDX-License-Identifier: MIT */
#include "replay/result.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay/area.h"
#include "traces/diag.h"

#define FLUSH_NS 1000000000u /* an incomplete block waits no longer than this */

struct results {
    struct trace_writer *writer;
    struct result_ring *rings;
    uint32_t ring_count, capacity;
    bool shared;
    pthread_t thread;
    bool started;
    atomic_int finish;
    _Atomic int error;
    struct diag diag;
};

static int copy_tables(struct results *results, const struct trace_reader *reader)
{
    uint32_t index;
    int err = 0;

    for (uint32_t i = 0; i < trace_reader_file_count(reader) && err == 0; i++)
        err = trace_writer_file(results->writer, trace_reader_file(reader, i), &index);
    for (uint32_t i = 0; i < trace_reader_stream_count(reader) && err == 0; i++)
        err = trace_writer_stream(results->writer, trace_reader_stream(reader, i), &index);
    return err;
}

static int write_start_wall(struct results *results, uint64_t start_wall_ns)
{
    char text[32];

    if (start_wall_ns == 0)
        return 0;
    snprintf(text, sizeof text, "%llu", (unsigned long long)start_wall_ns);
    return trace_writer_meta(results->writer, TRACE_META_START_WALL, text);
}

static int write_meta(struct results *results, const struct results_conf *conf)
{
    const struct {
        const char *key, *value;
    } items[] = {
        {TRACE_META_TOOL, "iotape " IOTAPE_VERSION},
        {TRACE_META_SOURCE, "replay"},
        {TRACE_META_RESULT_OF, conf->of},
        {TRACE_META_CONFIG, conf->config},
        {TRACE_META_CLOCK, conf->clock},
        {"cache", conf->cache},
    };
    int err = 0;

    for (size_t i = 0; i < sizeof items / sizeof items[0] && err == 0; i++)
        err = trace_writer_meta(results->writer, items[i].key, items[i].value);
    return err == 0 ? write_start_wall(results, conf->start_wall_ns) : err;
}

static int rings_alloc(struct results *results)
{
    results->rings = area_alloc(results->ring_count * sizeof *results->rings, results->shared);
    if (results->rings == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < results->ring_count; i++) {
        struct result_ring *ring = &results->rings[i];

        ring->mask = results->capacity - 1;
        ring->ops = area_alloc(results->capacity * sizeof *ring->ops, results->shared);
        if (ring->ops == NULL)
            return -ENOMEM;
    }
    return 0;
}

int results_new(struct results **ret_results, const struct results_conf *conf, struct diag *diag)
{
    /* Written in order of completion: nearly sorted by issue, so raw. */
    const struct trace_writer_conf writer_conf = {.raw = true, .result = true};
    struct results *results = calloc(1, sizeof *results);
    struct trace_sink sink;
    int err = -ENOMEM;

    if (results == NULL)
        return diag_errno(diag, -ENOMEM, "%s", conf->path);
    results->ring_count = conf->rings;
    results->capacity = conf->capacity;
    results->shared = conf->shared;
    if (rings_alloc(results) != 0) {
        diag_errno(diag, err, "%s", conf->path);
        goto out;
    }
    err = trace_sink_path(&sink, conf->path, TRACE_SINK_IN_PLACE, conf->force, diag);
    if (err != 0)
        goto out;
    results->diag.note = diag->note;
    results->diag.note_context = diag->note_context;
    err = trace_writer_open(&results->writer, &sink, &writer_conf, &results->diag);
    if (err == 0)
        err = write_meta(results, conf);
    if (err == 0)
        err = copy_tables(results, conf->reader);
    if (err != 0)
        diag_set(diag, err, "%s", results->diag.text);
out:
    if (err != 0) {
        results_free(results);
        return err;
    }
    *ret_results = results;
    return 0;
}

struct result_ring *results_ring(struct results *results, uint32_t index)
{
    return &results->rings[index];
}

/* Takes out what is in a ring, in at most two runs. Returns how many, or -errno. */
static int64_t ring_drain(struct results *results, struct result_ring *ring)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    uint64_t count = tail - head;

    while (head != tail) {
        uint64_t at = head & ring->mask;
        uint64_t run = tail - head < ring->mask + 1 - at ? tail - head : ring->mask + 1 - at;
        int err;

        /* In pieces, so that a waiting worker gets room early. */
        if (run > 4096)
            run = 4096;
        err = trace_writer_ops(results->writer, &ring->ops[at], run);
        if (err != 0)
            return err;
        head += run;
        atomic_store_explicit(&ring->head, head, memory_order_release);
    }
    return (int64_t)count;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int drain_all(struct results *results, uint64_t *ret_count)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < results->ring_count; i++) {
        int64_t got = ring_drain(results, &results->rings[i]);

        if (got < 0)
            return (int)got;
        count += (uint64_t)got;
    }
    *ret_count = count;
    return 0;
}

static void *results_main(void *arg)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct results *results = arg;
    uint64_t flushed_ns = now_ns();
    int err = 0;

    for (;;) {
        bool last = atomic_load_explicit(&results->finish, memory_order_acquire) != 0;
        uint64_t count = 0;

        err = drain_all(results, &count);
        if (err == 0 && now_ns() - flushed_ns > FLUSH_NS) {
            err = trace_writer_flush(results->writer);
            flushed_ns = now_ns();
        }
        if (err != 0 || (last && count == 0))
            break;
        if (count < results->capacity / 8)
            nanosleep(&pause, NULL);
    }
    if (err != 0) {
        /* Workers must not wait for room that never comes. */
        atomic_store_explicit(&results->error, err, memory_order_release);
    }
    return NULL;
}

int results_start(struct results *results)
{
    int err = -pthread_create(&results->thread, NULL, results_main, results);

    results->started = err == 0;
    return err;
}

bool results_failed(const struct results *results)
{
    return atomic_load_explicit(&results->error, memory_order_acquire) != 0;
}

int results_finish(struct results *results, uint64_t start_wall_ns, const char *end,
                   struct diag *diag)
{
    int err;

    if (results->started) {
        atomic_store_explicit(&results->finish, 1, memory_order_release);
        pthread_join(results->thread, NULL);
        results->started = false;
    }
    err = atomic_load(&results->error);
    if (err == 0)
        err = write_start_wall(results, start_wall_ns);
    if (err == 0)
        err = trace_writer_meta(results->writer, TRACE_META_END, end);
    if (err == 0) {
        err = trace_writer_close(results->writer);
        results->writer = NULL;
    }
    if (err != 0)
        return diag_set(diag, err, "%s",
                        results->diag.error ? results->diag.text : strerror(-err));
    return 0;
}

void results_free(struct results *results)
{
    if (results == NULL)
        return;
    if (results->started) {
        atomic_store_explicit(&results->finish, 1, memory_order_release);
        pthread_join(results->thread, NULL);
    }
    trace_writer_abort(results->writer);
    for (uint32_t i = 0; results->rings != NULL && i < results->ring_count; i++)
        area_free(results->rings[i].ops, results->capacity * sizeof(struct trace_op));
    area_free(results->rings, results->ring_count * sizeof *results->rings);
    free(results);
}
