/* SPDX-License-Identifier: MIT */
#include "capture/tapes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct meta {
    char *key, *value;
};

/* Catalog number -> number in the open tape. */
struct number_map {
    uint32_t *numbers;
    uint32_t room;
};

struct tapes {
    struct tapes_conf conf;
    struct diag *diag;
    struct trace_writer *writer;
    char *name;
    unsigned int count;
    uint64_t closed_bytes, closed_ops;
    struct meta *metas;
    size_t meta_count;
    struct number_map files, streams;
    struct anonymiser anonymiser;
};

static void number_map_clear(struct number_map *map)
{
    if (map->numbers)
        memset(map->numbers, 0xff, map->room * sizeof(*map->numbers));
}

int tapes_new(struct tapes **ret_tapes, const struct tapes_conf *conf, struct diag *diag)
{
    struct tapes *tapes = calloc(1, sizeof(*tapes));
    int err;

    if (!tapes)
        return diag_errno(diag, -ENOMEM, "%s", conf->path);
    tapes->conf = *conf;
    tapes->diag = diag;
    if (conf->anonymise) {
        err = anonymiser_init(&tapes->anonymiser);
        if (err) {
            free(tapes);
            return diag_errno(diag, err, "--anonymise: no random key");
        }
    }
    *ret_tapes = tapes;
    return 0;
}

/* "dir/app.tape", 2 -> "dir/app.2.tape" */
static char *tape_name(const char *path, unsigned int number)
{
    const char *base = strrchr(path, '/'), *dot;
    char *name;

    if (number == 0 || !strcmp(path, "-"))
        return strdup(path);
    base = base ? base + 1 : path;
    dot = strrchr(base, '.');
    if (!dot || dot == base)
        dot = base + strlen(base);
    if (asprintf(&name, "%.*s.%u%s", (int)(dot - path), path, number, dot) < 0)
        return NULL;
    return name;
}

static int tapes_write_meta(struct tapes *tapes, const struct meta *meta)
{
    return trace_writer_meta(tapes->writer, meta->key, meta->value);
}

int tapes_open(struct tapes *tapes)
{
    struct trace_writer_conf conf = {.raw = true};
    struct trace_sink sink;
    char *name = tape_name(tapes->conf.path, tapes->count);
    int err;

    if (!name)
        return diag_errno(tapes->diag, -ENOMEM, "%s", tapes->conf.path);
    err = trace_sink_path(&sink, name, TRACE_SINK_IN_PLACE, tapes->conf.force, tapes->diag);
    if (!err)
        err = trace_writer_open(&tapes->writer, &sink, &conf, tapes->diag);
    if (err) {
        free(name);
        return err;
    }
    free(tapes->name);
    tapes->name = name;
    tapes->count++;
    number_map_clear(&tapes->files);
    number_map_clear(&tapes->streams);
    for (size_t i = 0; i < tapes->meta_count && !err; i++)
        err = tapes_write_meta(tapes, &tapes->metas[i]);
    return err;
}

bool tapes_is_open(const struct tapes *tapes)
{
    return tapes->writer != NULL;
}

int tapes_meta(struct tapes *tapes, const char *key, const char *value)
{
    struct meta *meta = NULL;
    char *copy = strdup(value);

    for (size_t i = 0; i < tapes->meta_count; i++)
        if (!strcmp(tapes->metas[i].key, key))
            meta = &tapes->metas[i];
    if (copy && !meta) {
        struct meta *grown = realloc(tapes->metas, (tapes->meta_count + 1) * sizeof(*grown));

        if (grown) {
            tapes->metas = grown;
            grown[tapes->meta_count].key = strdup(key);
            grown[tapes->meta_count].value = NULL;
            if (grown[tapes->meta_count].key)
                meta = &grown[tapes->meta_count++];
        }
    }
    if (!copy || !meta) {
        free(copy);
        return diag_errno(tapes->diag, -ENOMEM, "%s", tapes->conf.path);
    }
    free(meta->value);
    meta->value = copy;
    return tapes->writer ? tapes_write_meta(tapes, meta) : 0;
}

static int number_map_grow(struct number_map *map, uint32_t number)
{
    uint32_t room = map->room ? map->room : 256;
    uint32_t *numbers;

    if (number < map->room)
        return 0;
    while (room <= number)
        room *= 2;
    numbers = realloc(map->numbers, room * sizeof(*numbers));
    if (!numbers)
        return -ENOMEM;
    memset(numbers + map->room, 0xff, (room - map->room) * sizeof(*numbers));
    map->numbers = numbers;
    map->room = room;
    return 0;
}

/* Rewrites a file number, putting the entry into the tape at its first use. */
static int tapes_map_file(struct tapes *tapes, uint32_t *file)
{
    struct trace_file entry;
    char *path = NULL;
    int err;

    if (*file == TRACE_NONE_U32)
        return 0;
    err = number_map_grow(&tapes->files, *file);
    if (err)
        return diag_errno(tapes->diag, err, "%s", tapes->name);
    if (tapes->files.numbers[*file] == TRACE_NONE_U32) {
        entry = tapes->conf.tables->files[*file];
        if (tapes->conf.anonymise) {
            path = anonymiser_path(&tapes->anonymiser, entry.path);
            if (!path)
                return diag_errno(tapes->diag, -ENOMEM, "%s", tapes->name);
            entry.path = path;
        }
        err = trace_writer_file(tapes->writer, &entry, &tapes->files.numbers[*file]);
        free(path);
        if (err)
            return err;
    }
    *file = tapes->files.numbers[*file];
    return 0;
}

static int tapes_map_stream(struct tapes *tapes, uint32_t *stream)
{
    struct trace_stream entry;
    int err;

    if (*stream == TRACE_NONE_U32)
        return 0;
    err = number_map_grow(&tapes->streams, *stream);
    if (err)
        return diag_errno(tapes->diag, err, "%s", tapes->name);
    if (tapes->streams.numbers[*stream] == TRACE_NONE_U32) {
        entry = tapes->conf.tables->streams[*stream];
        if (tapes->conf.anonymise)
            entry.comm = "";
        err = trace_writer_stream(tapes->writer, &entry, &tapes->streams.numbers[*stream]);
        if (err)
            return err;
    }
    *stream = tapes->streams.numbers[*stream];
    return 0;
}

int tapes_ops(struct tapes *tapes, struct trace_op *ops, size_t count)
{
    int err = 0;

    for (size_t i = 0; i < count && !err; i++) {
        err = tapes_map_file(tapes, &ops[i].file);
        if (!err)
            err = tapes_map_file(tapes, &ops[i].file2);
        if (!err)
            err = tapes_map_stream(tapes, &ops[i].stream);
    }
    return err ? err : trace_writer_ops(tapes->writer, ops, count);
}

int tapes_lost(struct tapes *tapes, const char *kind, uint64_t count)
{
    return trace_writer_lost(tapes->writer, kind, count);
}

void tapes_wall(struct tapes *tapes, int64_t tape_ns, uint64_t wall_ns)
{
    trace_writer_wall(tapes->writer, tape_ns, wall_ns);
}

int tapes_flush(struct tapes *tapes)
{
    return trace_writer_flush(tapes->writer);
}

int tapes_close(struct tapes *tapes, const char *end)
{
    struct trace_writer *writer = tapes->writer;
    int err;

    if (!writer)
        return 0;
    err = trace_writer_meta(writer, TRACE_META_END, end);
    if (!err)
        err = trace_writer_flush(writer);
    tapes->closed_bytes += trace_writer_bytes(writer);
    tapes->closed_ops += trace_writer_written_ops(writer);
    tapes->writer = NULL;
    if (err) {
        (void)!trace_writer_close(writer);
        return err;
    }
    return trace_writer_close(writer);
}

void tapes_abandon(struct tapes *tapes)
{
    trace_writer_abort(tapes->writer);
    tapes->writer = NULL;
}

uint64_t tapes_current_bytes(const struct tapes *tapes)
{
    return tapes->writer ? trace_writer_bytes(tapes->writer) : 0;
}

uint64_t tapes_bytes(const struct tapes *tapes)
{
    return tapes->closed_bytes + tapes_current_bytes(tapes);
}

uint64_t tapes_written_ops(const struct tapes *tapes)
{
    return tapes->closed_ops + (tapes->writer ? trace_writer_written_ops(tapes->writer) : 0);
}

unsigned int tapes_count(const struct tapes *tapes)
{
    return tapes->count;
}

const char *tapes_name(const struct tapes *tapes)
{
    return tapes->name ? tapes->name : tapes->conf.path;
}

void tapes_free(struct tapes *tapes)
{
    if (!tapes)
        return;
    if (tapes->writer)
        (void)!trace_writer_close(tapes->writer);
    for (size_t i = 0; i < tapes->meta_count; i++) {
        free(tapes->metas[i].key);
        free(tapes->metas[i].value);
    }
    free(tapes->metas);
    free(tapes->files.numbers);
    free(tapes->streams.numbers);
    free(tapes->name);
    free(tapes);
}
