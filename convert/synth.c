/* SPDX-License-Identifier: MIT */
#include "convert/synth_state.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_PID 1000u
/* O_ flags in the tape's numbering: Linux, asm-generic. */
#define TAPE_O_RDWR   02u
#define TAPE_O_CREAT  0100u
#define TAPE_O_DIRECT 040000u
#define TAPE_O_DSYNC  010000u
#define TAPE_O_SYNC   04010000u

/* ---- tables --------------------------------------------------------------------------- */

static int make_files(struct synth *synth)
{
    const struct synth_spec *spec = synth->spec;
    struct trace_file facts = {.size_bytes = spec->size_bytes,
                               .kind = spec->device ? TRACE_FILE_BLOCK : TRACE_FILE_REGULAR,
                               .mode = spec->device ? 0 : 0644};
    char name[4096];
    int err = 0;

    for (uint64_t i = 0; i < synth->file_count && err == 0; i++) {
        int length = spec->names ? snprintf(name, sizeof(name), "%s", spec->names[i])
                     : synth->file_count == 1 ? snprintf(name, sizeof(name), "%s", spec->path)
                                              : snprintf(name, sizeof(name), "%s.%llu",
                                                         spec->path, (unsigned long long)i);

        if (length >= (int)sizeof(name))
            return synth_wrong(synth, "path is too long");
        err = import_file(synth->import, name, (size_t)length, &synth->file_tables[i]);
        if (err == 0)
            err = import_file_facts(synth->import, synth->file_tables[i], &facts);
    }
    return err;
}

static int make_streams(struct synth *synth)
{
    const struct synth_spec *spec = synth->spec;
    uint32_t first_pid = spec->first_pid ? spec->first_pid : FIRST_PID;
    const char *comm = spec->comm ? spec->comm : "synth";
    int err = 0;

    synth->batch_id = spec->first_batch;
    for (uint64_t i = 0; i < spec->streams && err == 0; i++) {
        struct stream *stream = &synth->streams[i];

        synth_rng_init(&stream->rng, spec->seed, i + 1);
        stream->cursors = synth->cursors + i * spec->files * spec->contexts;
        stream->writes = synth->writes + i * spec->files;
        err = import_stream(synth->import, first_pid + (spec->processes ? (uint32_t)i : 0),
                            first_pid + (uint32_t)i, comm, strlen(comm), &stream->table);
    }
    return err;
}

static int say_what(struct synth *synth)
{
    const struct synth_spec *spec = synth->spec;
    bool timed = spec->rate > 0 || spec->think_ns;
    char number[32];
    int err;

    snprintf(number, sizeof(number), "%llu", (unsigned long long)spec->depth);
    err = import_meta(synth->import, "depth", number);
    if (err == 0)
        err = import_meta(synth->import, TRACE_META_CLOCK, "simulated");
    if (err == 0)
        err = import_cannot_tell(synth->import, "latency");
    if (err == 0)
        err = import_cannot_tell(synth->import, "result");
    if (err == 0 && !timed)
        err = import_cannot_tell(synth->import, "time");
    if (spec->silent)
        return err;
    import_note(synth->import, "replay with --pace %s --depth %llu --batch %llu%s",
                timed ? "recorded" : "asap", (unsigned long long)spec->depth,
                (unsigned long long)spec->batch,
                spec->processes ? " and streams as processes" : "");
    return err;
}

/* ---- one op --------------------------------------------------------------------------- */

static uint64_t op_size(const struct synth *synth, struct stream *stream)
{
    if (synth->size_count) {
        double unit = synth_rng_unit(&stream->rng);
        unsigned int i = 0;

        while (i + 1 < synth->size_count && unit > synth->shares[i])
            i++;
        return synth->sizes[i];
    }
    if (synth->least == synth->most)
        return synth->least;
    return synth->least * (1 + synth_rng_below(&stream->rng, synth->most / synth->least));
}

static uint64_t random_place(const struct synth *synth, struct stream *stream,
                             const struct cursor *cursor, uint64_t length)
{
    uint64_t units = (synth->span - length) / synth->align + 1, unit;

    switch (synth->pick) {
    case PICK_ONCE:
        unit = synth_shuffle_at(&synth->shuffle, cursor->ops % synth->shuffle.count);
        break;
    case PICK_ZIPF:
        unit = synth_shuffle_at(&synth->shuffle, synth_zipf_rank(&synth->zipf, &stream->rng));
        if (unit >= units)
            unit %= units;
        break;
    default: unit = synth_rng_below(&stream->rng, units);
    }
    return unit * synth->align;
}

/* The next place of a sequential cursor; a last op may be cut short by the end. */
static uint64_t next_place(const struct synth *synth, struct cursor *cursor, uint64_t *length)
{
    uint64_t place;

    if (cursor->next_bytes >= synth->span)
        cursor->next_bytes = 0;
    place = cursor->next_bytes;
    if (*length > synth->span - place)
        *length = synth->span - place;
    cursor->next_bytes += *length;
    return place;
}

static uint64_t stride_place(const struct synth *synth, const struct cursor *cursor,
                             uint64_t length)
{
    uint64_t stride = synth->spec->stride_bytes;
    uint64_t lap_ops = (synth->span - length) / stride + 1, lap = cursor->ops / lap_ops;
    uint64_t place = cursor->ops % lap_ops * stride + lap * length % stride;

    return place + length <= synth->span ? place : synth->span - length;
}

static void place_op(const struct synth *synth, struct stream *stream, struct cursor *cursor,
                     struct trace_op *op)
{
    uint64_t place;

    switch (synth->rw) {
    case SYNTH_RANDREAD:
    case SYNTH_RANDWRITE:
    case SYNTH_RANDRW:
    case SYNTH_RANDTRIM: place = random_place(synth, stream, cursor, op->length); break;
    case SYNTH_RERECORD: place = 0; break;
    case SYNTH_STRIDEREAD: place = stride_place(synth, cursor, op->length); break;
    case SYNTH_BACKREAD:
        place = synth->span - next_place(synth, cursor, &op->length) - op->length;
        break;
    default: place = next_place(synth, cursor, &op->length);
    }
    cursor->ops++;
    op->offset = synth->spec->offset_bytes + place;
}

static unsigned int op_kind(const struct synth *synth, struct stream *stream)
{
    switch (synth->rw) {
    case SYNTH_WRITE:
    case SYNTH_RANDWRITE:
    case SYNTH_REWRITE:
    case SYNTH_RERECORD: return TRACE_WRITE;
    case SYNTH_TRIM:
    case SYNTH_RANDTRIM: return TRACE_DISCARD;
    case SYNTH_RW:
    case SYNTH_RANDRW:
        return synth_rng_below(&stream->rng, 100) < synth->spec->rwmix ? TRACE_READ
                                                                       : TRACE_WRITE;
    default: return TRACE_READ;
    }
}

static uint32_t op_flags(const struct synth_spec *spec, unsigned int kind)
{
    uint32_t flags = spec->direct ? TRACE_F_DIRECT : 0;

    if (spec->nowait)
        flags |= TRACE_F_NOWAIT;
    if (kind == TRACE_WRITE)
        flags |= (spec->osync ? TRACE_F_SYNC : 0) | (spec->dsync ? TRACE_F_DSYNC : 0) |
                 (spec->append ? TRACE_F_APPEND : 0);
    return flags;
}

static uint32_t file_table(const struct synth *synth, uint64_t stream, uint32_t file)
{
    return synth
        ->file_tables[synth->spec->private_files ? stream * synth->spec->files + file : file];
}

static int emit_sync(struct synth *synth, uint64_t index, uint32_t file, int64_t issue_ns)
{
    struct trace_op op = TRACE_OP_INIT;

    op.kind = synth->spec->sync == SYNTH_FSYNC ? TRACE_FSYNC : TRACE_FDATASYNC;
    op.api = (uint8_t)synth->spec->api;
    op.issue_ns = issue_ns;
    op.file = file_table(synth, index, file);
    op.stream = synth->streams[index].table;
    synth->streams[index].writes[file] = 0;
    return import_op(synth->import, &op);
}

/* The next op of a stream: file and cursor in turn, then kind, size and place. */
static int emit_op(struct synth *synth, uint64_t index, int64_t issue_ns, uint64_t batch)
{
    const struct synth_spec *spec = synth->spec;
    struct stream *stream = &synth->streams[index];
    struct trace_op op = TRACE_OP_INIT;
    uint32_t file = stream->file;
    int err;

    op.issue_ns = issue_ns;
    op.batch = batch;
    op.api = (uint8_t)spec->api;
    op.stream = stream->table;
    op.file = file_table(synth, index, file);
    op.kind = (uint8_t)op_kind(synth, stream);
    op.flags = op_flags(spec, op.kind);
    op.length = op_size(synth, stream);
    place_op(synth, stream, &stream->cursors[file * spec->contexts + stream->context], &op);
    if (op.flags & TRACE_F_APPEND)
        op.offset = TRACE_UNKNOWN_U64;
    stream->context = (stream->context + 1) % (uint32_t)spec->contexts;
    if (++stream->until_switch >= spec->switch_ops) {
        stream->until_switch = 0;
        stream->file = (stream->file + 1) % (uint32_t)spec->files;
    }
    err = import_op(synth->import, &op);
    if (op.kind == TRACE_WRITE)
        stream->writes[file]++;
    if (err == 0 && spec->fsync_every && stream->writes[file] == spec->fsync_every)
        err = emit_sync(synth, index, file, issue_ns);
    return err;
}

/* ---- stages --------------------------------------------------------------------------- */

/* When op number `issued` of the stage, the first of a batch of a stream, is due. */
static int64_t due_ns(struct synth *synth, uint64_t issued, uint64_t stream_batch)
{
    const struct synth_spec *spec = synth->spec;

    if (spec->think_ns)
        return synth->stage_start_ns + (int64_t)(stream_batch * spec->think_ns);
    if (!(spec->rate > 0))
        return synth->stage_start_ns;
    if (spec->arrival == SYNTH_POISSON) {
        if (issued)
            synth->poisson_ns += -logl((long double)synth_rng_unit(&synth->arrivals)) * 1e9L *
                                 (long double)spec->batch / (long double)spec->rate;
        return synth->stage_start_ns + (int64_t)llroundl(synth->poisson_ns);
    }
    if (spec->arrival == SYNTH_BURST)
        issued -= issued % spec->burst;
    return synth->stage_start_ns +
           (int64_t)llroundl((long double)issued * 1e9L / (long double)spec->rate);
}

static int emit_calls(struct synth *synth, unsigned int kind, int64_t issue_ns)
{
    const struct synth_spec *spec = synth->spec;
    int err = 0;

    for (uint64_t i = 0; i < spec->streams && err == 0; i++)
        for (uint32_t file = 0; file < spec->files && err == 0; file++) {
            struct trace_op op = TRACE_OP_INIT;

            op.kind = (uint8_t)kind;
            op.issue_ns = issue_ns;
            op.file = file_table(synth, i, file);
            op.stream = synth->streams[i].table;
            if (kind == TRACE_OPEN)
                op.arg = TAPE_O_RDWR | TAPE_O_CREAT | (spec->direct ? TAPE_O_DIRECT : 0) |
                         (spec->osync ? TAPE_O_SYNC : 0) | (spec->dsync ? TAPE_O_DSYNC : 0);
            err = import_op(synth->import, &op);
        }
    return err;
}

static void begin_stage(struct synth *synth, int rw)
{
    const struct synth_spec *spec = synth->spec;

    synth->rw = rw;
    synth->poisson_ns = 0;
    for (uint64_t i = 0; i < spec->streams; i++) {
        struct stream *stream = &synth->streams[i];

        stream->file = stream->context = 0;
        stream->until_switch = 0;
        for (uint64_t at = 0; at < spec->files * spec->contexts; at++)
            stream->cursors[at] = (struct cursor){
                .next_bytes = at % spec->contexts * spec->context_offset_bytes % synth->span};
    }
}

static int end_stage(struct synth *synth, int64_t last_ns)
{
    const struct synth_spec *spec = synth->spec;
    int err = 0;

    for (uint64_t i = 0; i < spec->streams && err == 0 && spec->fsync_end; i++)
        for (uint32_t file = 0; file < spec->files && err == 0; file++)
            if (synth->streams[i].writes[file])
                err = emit_sync(synth, i, file, last_ns);
    if (err == 0 && spec->opens)
        err = emit_calls(synth, TRACE_CLOSE, last_ns);
    return err;
}

static uint64_t stage_ops(const struct synth *synth)
{
    const struct synth_spec *spec = synth->spec;

    if (spec->ops)
        return spec->ops;
    if (spec->runtime_ns)
        return UINT64_MAX;
    return (uint64_t)ceil((double)synth->span / synth->mean_size) * spec->files * spec->streams;
}

static int run_stage(struct synth *synth, int rw)
{
    const struct synth_spec *spec = synth->spec;
    uint64_t total = stage_ops(synth), issued = 0, round = 0;
    int64_t end_ns =
        spec->runtime_ns ? synth->stage_start_ns + (int64_t)spec->runtime_ns : INT64_MAX;
    int64_t now_ns = synth->stage_start_ns, last_ns = now_ns;
    int err = 0;

    begin_stage(synth, rw);
    if (spec->opens)
        err = emit_calls(synth, TRACE_OPEN, now_ns);
    for (; issued < total && err == 0; round++) {
        uint64_t stream = round % spec->streams, count = spec->batch, batch = TRACE_UNKNOWN_U64;

        now_ns = due_ns(synth, issued, round / spec->streams);
        if (now_ns >= end_ns || now_ns < 0)
            break;
        last_ns = now_ns;
        if (count > total - issued)
            count = total - issued;
        if (spec->batch > 1)
            batch = synth->batch_id++;
        for (uint64_t i = 0; i < count && err == 0; i++)
            err = emit_op(synth, stream, now_ns, batch);
        issued += count;
    }
    if (err == 0)
        err = end_stage(synth, last_ns);
    /* The next stage begins when the next op of this one would have been due. */
    synth->stage_start_ns = spec->runtime_ns ? end_ns
                            : spec->rate > 0 || spec->think_ns
                                ? due_ns(synth, issued, round / spec->streams)
                                : 0;
    return err;
}

int synth_generate(const struct synth_spec *spec, struct import *import)
{
    struct synth synth = {.spec = spec, .import = import};
    int err = synth_check(&synth);

    if (err < 0)
        return err;
    synth_rng_init(&synth.arrivals, spec->seed, 0);
    synth.file_tables = calloc(synth.file_count, sizeof(*synth.file_tables));
    synth.streams = calloc(spec->streams, sizeof(*synth.streams));
    synth.cursors =
        calloc(spec->streams * spec->files * spec->contexts, sizeof(*synth.cursors));
    synth.writes = calloc(spec->streams * spec->files, sizeof(*synth.writes));
    if (!synth.file_tables || !synth.streams || !synth.cursors || !synth.writes)
        err = diag_errno(import_diag(import), -ENOMEM, "synth");
    if (err == 0)
        err = make_files(&synth);
    if (err == 0)
        err = make_streams(&synth);
    if (err == 0)
        err = say_what(&synth);
    for (unsigned int i = 0; i < synth.stage_count && err == 0; i++)
        err = run_stage(&synth, synth.stages[i]);
    free(synth.file_tables);
    free(synth.streams);
    free(synth.cursors);
    free(synth.writes);
    return err;
}
