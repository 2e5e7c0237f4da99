/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/diag.h"
#include "traces/sort.h"

#define PIECE_OPS 256

struct totals {
    uint64_t ops, bytes, max_end;
};

/* A block of the raw tape: nothing from it on is issued before floor_ns. */
struct floor {
    uint64_t first_index;
    int64_t floor_ns;
};

/* Old number -> new, TRACE_NONE_U32 while it was not met. */
struct renumber {
    uint32_t *to;
    uint32_t room;
};

struct normaliser {
    struct trace_reader *reader;
    struct trace_writer *writer;
    struct trace_sorter *sorter;
    struct diag *diag;
    bool streaming; /* floors are known: sorted operations leave while others still come */
    int64_t zero_ns;
    bool zero_known, zero_is_io;
    struct renumber files, streams;
    struct totals *totals; /* by new number */
    uint32_t totals_room, file_count;
    struct floor *floors;
    size_t floor_count, floor_at;
    struct trace_op piece[PIECE_OPS];
};

static int no_memory(struct normaliser *self)
{
    return diag_errno(self->diag, -ENOMEM, "normalising");
}

/* ---- time 0 ---- */

/* The first I/O op's time; without one, the first op's. */
static void zero_look(struct normaliser *self, const struct trace_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool is_io = trace_op_is_io(ops[i].kind);

        if (!self->zero_known || (is_io && !self->zero_is_io) ||
            (is_io == self->zero_is_io && ops[i].issue_ns < self->zero_ns))
            self->zero_ns = ops[i].issue_ns;
        self->zero_known = true;
        self->zero_is_io |= is_io;
    }
}

static int floor_add(struct normaliser *self, const struct trace_block_summary *summary)
{
    struct floor *more;

    if ((self->floor_count & (self->floor_count - 1)) == 0) {
        size_t room = self->floor_count ? self->floor_count * 2 : 1;

        more = realloc(self->floors, room * sizeof(*more));
        if (!more)
            return no_memory(self);
        self->floors = more;
    }
    self->floors[self->floor_count++] =
        (struct floor){.first_index = summary->first_index, .floor_ns = summary->first_ns};
    return 0;
}

/* From the headers of a tape that can seek: which times can still come from each block on. */
static int floors_read(struct normaliser *self)
{
    struct trace_block_summary summary;
    int64_t floor_ns = INT64_MAX;
    int got;

    while ((got = trace_reader_next_summary(self->reader, &summary)) > 0) {
        got = floor_add(self, &summary);
        if (got < 0)
            return got;
    }
    if (got < 0)
        return got;
    for (size_t i = self->floor_count; i-- > 0;) {
        if (self->floors[i].floor_ns < floor_ns)
            floor_ns = self->floors[i].floor_ns;
        self->floors[i].floor_ns = floor_ns;
    }
    self->streaming = self->floor_count > 0;
    return trace_reader_rewind(self->reader);
}

/* No operation from the one with this index on is issued before the returned time. */
static int64_t floor_at(struct normaliser *self, uint64_t index)
{
    while (self->floor_at + 1 < self->floor_count &&
           self->floors[self->floor_at + 1].first_index <= index)
        self->floor_at++;
    return self->floors[self->floor_at].floor_ns;
}

/* Decodes as little as tells time 0 for certain. */
static int zero_find(struct normaliser *self)
{
    const struct trace_op *ops;
    size_t count;
    int got;

    while ((got = trace_reader_next(self->reader, &ops, &count)) > 0) {
        int64_t floor_ns = floor_at(self, trace_reader_first_index(self->reader));

        if (self->zero_is_io && floor_ns >= self->zero_ns)
            break;
        zero_look(self, ops, count);
    }
    self->floor_at = 0;
    return got < 0 ? got : trace_reader_rewind(self->reader);
}

/* ---- writing ---- */

static int renumber_room(struct normaliser *self, struct renumber *map, uint32_t count)
{
    uint32_t room = map->room ? map->room : 256;
    uint32_t *more;

    if (count <= map->room)
        return 0;
    while (room < count)
        room *= 2;
    more = realloc(map->to, room * sizeof(*more));
    if (!more)
        return no_memory(self);
    memset(more + map->room, 0xff, (room - map->room) * sizeof(*more));
    map->to = more;
    map->room = room;
    return 0;
}

static int totals_room(struct normaliser *self)
{
    uint32_t room = self->totals_room ? self->totals_room * 2 : 256;
    struct totals *more;

    if (self->file_count < self->totals_room)
        return 0;
    more = realloc(self->totals, room * sizeof(*more));
    if (!more)
        return no_memory(self);
    self->totals = more;
    self->totals_room = room;
    return 0;
}

static int file_renumber(struct normaliser *self, uint32_t *file)
{
    uint32_t old = *file;
    int err;

    if (old == TRACE_NONE_U32)
        return 0;
    err = renumber_room(self, &self->files, old + 1);
    if (err == 0 && self->files.to[old] == TRACE_NONE_U32) {
        err = totals_room(self);
        if (err == 0)
            err = trace_writer_file(self->writer, trace_reader_file(self->reader, old),
                                    &self->files.to[old]);
        if (err == 0)
            self->totals[self->file_count++] = (struct totals){0};
    }
    if (err == 0)
        *file = self->files.to[old];
    return err;
}

static int stream_renumber(struct normaliser *self, uint32_t *stream)
{
    uint32_t old = *stream;
    int err;

    if (old == TRACE_NONE_U32)
        return 0;
    err = renumber_room(self, &self->streams, old + 1);
    if (err == 0 && self->streams.to[old] == TRACE_NONE_U32)
        err = trace_writer_stream(self->writer, trace_reader_stream(self->reader, old),
                                  &self->streams.to[old]);
    if (err == 0)
        *stream = self->streams.to[old];
    return err;
}

static void totals_add(struct normaliser *self, const struct trace_op *op)
{
    struct totals *totals;
    uint64_t end;

    if (op->file == TRACE_NONE_U32)
        return;
    totals = &self->totals[op->file];
    totals->ops++;
    if (!trace_op_has_range(op->kind))
        return;
    totals->bytes += trace_op_bytes(op);
    if (op->length == 0 || op->offset == TRACE_UNKNOWN_U64)
        return;
    end = op->offset <= UINT64_MAX - op->length ? op->offset + op->length : UINT64_MAX;
    if (end > totals->max_end)
        totals->max_end = end;
}

/* Wraps: a hostile tape may hold any times. */
static int64_t moved(int64_t time_ns, int64_t zero_ns)
{
    return (int64_t)((uint64_t)time_ns - (uint64_t)zero_ns);
}

static int op_convert(struct normaliser *self, struct trace_op *op)
{
    int err;

    op->issue_ns = moved(op->issue_ns, self->zero_ns);
    if (op->due_ns != TRACE_UNKNOWN_I64)
        op->due_ns = moved(op->due_ns, self->zero_ns);
    err = file_renumber(self, &op->file);
    if (err == 0)
        err = file_renumber(self, &op->file2);
    if (err == 0)
        err = stream_renumber(self, &op->stream);
    if (err == 0)
        totals_add(self, op);
    return err;
}

/* Writes what the sorter lets go. */
static int sorted_write(struct normaliser *self)
{
    const struct trace_op *ops;
    size_t count;
    int got, err;

    while ((got = trace_sorter_next(self->sorter, &ops, &count)) > 0)
        for (size_t done = 0; done < count;) {
            size_t now = count - done < PIECE_OPS ? count - done : PIECE_OPS;

            memcpy(self->piece, ops + done, now * sizeof(*ops));
            err = 0;
            for (size_t i = 0; i < now && err == 0; i++)
                err = op_convert(self, &self->piece[i]);
            if (err == 0)
                err = trace_writer_ops(self->writer, self->piece, now);
            if (err < 0)
                return err;
            done += now;
        }
    return got;
}

static int ops_sort(struct normaliser *self)
{
    const struct trace_op *ops;
    int64_t floor_ns = INT64_MIN, next_ns, wall_tape_ns;
    uint64_t wall_ns;
    size_t count;
    int got, err = 0;

    while ((got = trace_reader_next(self->reader, &ops, &count)) > 0) {
        if (!self->streaming) {
            zero_look(self, ops, count);
        } else {
            if (trace_reader_wall(self->reader, &wall_tape_ns, &wall_ns))
                trace_writer_wall(self->writer, moved(wall_tape_ns, self->zero_ns), wall_ns);
            next_ns = floor_at(self, trace_reader_first_index(self->reader));
            trace_sorter_floor(self->sorter, next_ns);
            /* A higher floor: what lies below it is complete. */
            if (next_ns > floor_ns)
                err = sorted_write(self);
            floor_ns = next_ns;
        }
        if (err == 0)
            err = trace_sorter_add(self->sorter, ops, count);
        if (err < 0)
            return err;
    }
    if (got == 0)
        got = trace_sorter_finish(self->sorter);
    return got < 0 ? got : sorted_write(self);
}

/* ---- metadata ---- */

/* A time that is kept as text, moved along with time 0. */
static int meta_shifted(struct normaliser *self, const char *key, const char *value,
                        int64_t by_ns)
{
    char text[32], *end;
    long long time_ns;

    errno = 0;
    time_ns = strtoll(value, &end, 10);
    if (errno || *end || end == value)
        return trace_writer_meta(self->writer, key, value);
    snprintf(text, sizeof(text), "%" PRId64, (int64_t)((uint64_t)time_ns + (uint64_t)by_ns));
    return trace_writer_meta(self->writer, key, text);
}

static int meta_copy(struct normaliser *self)
{
    const char *key, *value;
    int err = 0;

    for (size_t i = 0; err == 0 && (key = trace_reader_meta_at(self->reader, i, &value)); i++) {
        if (strcmp(key, TRACE_META_START_WALL) == 0)
            err = meta_shifted(self, key, value, self->zero_ns);
        else if (strcmp(key, TRACE_META_CAPTURE_START) == 0)
            err = meta_shifted(self, key, value, moved(0, self->zero_ns));
        else if (strncmp(key, "lost.", 5) != 0)
            err = trace_writer_meta(self->writer, key, value);
    }
    return err;
}

/* The counts by kind, what no kind accounts for, and what damage took. */
static int lost_copy(struct normaliser *self)
{
    uint64_t lost = trace_reader_lost(self->reader), known = 0;
    struct trace_damage damage;
    const char *key, *value;
    int err = 0;

    for (size_t i = 0; err == 0 && (key = trace_reader_meta_at(self->reader, i, &value)); i++) {
        uint64_t count = strncmp(key, "lost.", 5) == 0 ? strtoull(value, NULL, 10) : 0;

        if (count == 0 || count > lost - known)
            continue;
        known += count;
        err = trace_writer_lost(self->writer, key + 5, count);
    }
    if (err == 0 && lost > known)
        err = trace_writer_lost(self->writer, "unknown", lost - known);
    trace_reader_damage(self->reader, &damage);
    if (err == 0 && damage.ops > 0)
        err = trace_writer_lost(self->writer, "damaged", damage.ops);
    return err;
}

static int totals_write(struct normaliser *self)
{
    int err = 0;

    for (uint32_t i = 0; i < self->file_count && err == 0; i++)
        err = trace_writer_file_totals(self->writer, i, self->totals[i].ops,
                                       self->totals[i].bytes, self->totals[i].max_end);
    return err;
}

static int normaliser_run(struct normaliser *self)
{
    int err = 0;

    if (trace_reader_can_seek(self->reader)) {
        err = trace_reader_load_tables(self->reader);
        if (err == 0)
            err = floors_read(self);
        if (err == 0)
            err = zero_find(self);
        if (err == 0)
            err = meta_copy(self);
        if (err == 0)
            err = ops_sort(self);
    } else {
        /* Time 0 is known when all have been read, and so is the metadata. */
        err = ops_sort(self);
        if (err == 0)
            err = meta_copy(self);
    }
    if (err == 0)
        err = lost_copy(self);
    if (err == 0)
        err = totals_write(self);
    return err;
}

int trace_normalise(struct trace_reader *reader, struct trace_sink *sink,
                    const struct trace_sorter_conf *conf, struct diag *diag)
{
    struct trace_writer_conf writer_conf = {
        .small = true,
        .result = trace_reader_is_result(reader),
    };
    struct normaliser *self = calloc(1, sizeof(*self));
    int err;

    if (!self) {
        if (sink->close)
            sink->close(sink->context, false);
        return diag_errno(diag, -ENOMEM, "normalising");
    }
    self->reader = reader;
    self->diag = diag;
    err = trace_writer_open(&self->writer, sink, &writer_conf, diag);
    if (err == 0) {
        err = trace_sorter_new(&self->sorter, conf, diag);
        if (err == 0)
            err = normaliser_run(self);
        if (err == 0)
            err = trace_writer_close(self->writer);
        else
            trace_writer_abort(self->writer);
    }
    trace_sorter_free(self->sorter);
    free(self->files.to);
    free(self->streams.to);
    free(self->totals);
    free(self->floors);
    free(self);
    return err;
}
