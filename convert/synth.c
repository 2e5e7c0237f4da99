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

bool synth_rw_writes(int rw)
{
    switch (rw) {
    case SYNTH_WRITE:
    case SYNTH_RANDWRITE:
    case SYNTH_REWRITE:
    case SYNTH_RERECORD:
    case SYNTH_TRIM:
    case SYNTH_RANDTRIM:
    case SYNTH_TRIMWRITE:
    case SYNTH_RANDTRIMWRITE: return true;
    default: return false;
    }
}

static bool is_random(int rw)
{
    return rw == SYNTH_RANDREAD || rw == SYNTH_RANDWRITE || rw == SYNTH_RANDRW ||
           rw == SYNTH_RANDTRIM || rw == SYNTH_RANDTRIMWRITE;
}

static bool is_trimwrite(int rw)
{
    return rw == SYNTH_TRIMWRITE || rw == SYNTH_RANDTRIMWRITE;
}

static uint64_t op_size(const struct sizes *sizes, struct stream *stream)
{
    if (sizes->count) {
        double unit = synth_rng_unit(&stream->rng);
        unsigned int i = 0;

        while (i + 1 < sizes->count && unit > sizes->shares[i])
            i++;
        return sizes->sizes[i];
    }
    if (sizes->least == sizes->most)
        return sizes->least;
    return sizes->least * (1 + synth_rng_below(&stream->rng, sizes->most / sizes->least));
}

/* The zone by the ops' shares, then anywhere in it. */
static uint64_t zoned_unit(const struct synth *synth, struct stream *stream, uint64_t units)
{
    double share = synth_rng_unit(&stream->rng);
    uint64_t from, to;
    unsigned int i = 0;

    while (i + 1 < synth->zone_count && share > synth->zones[i].ops)
        i++;
    from = i ? (uint64_t)(synth->zones[i - 1].places * (double)units) : 0;
    to = i + 1 < synth->zone_count ? (uint64_t)(synth->zones[i].places * (double)units) : units;
    if (from >= units)
        from = units - 1;
    return from + synth_rng_below(&stream->rng, to > from ? to - from : 1);
}

static uint64_t new_place(const struct synth *synth, struct stream *stream,
                          const struct cursor *cursor, uint64_t length, enum way way)
{
    uint64_t align =
        synth->spec->align_bytes ? synth->spec->align_bytes : synth->sizes[way].least;
    uint64_t units = (synth->span - length) / align + 1, unit;

    switch (synth->pick) {
    case PICK_ONCE:
        unit = synth_shuffle_at(&synth->shuffle, cursor->ops % synth->shuffle.count);
        break;
    case PICK_ZIPF:
        unit = synth_shuffle_at(&synth->shuffle, synth_zipf_rank(&synth->zipf, &stream->rng));
        if (unit >= units)
            unit %= units;
        break;
    case PICK_ZONED: unit = zoned_unit(synth, stream, units); break;
    default: unit = synth_rng_below(&stream->rng, units);
    }
    return unit * align;
}

/* A new place, unless a run or the share that follows asks for the one behind the last op. */
static uint64_t random_place(const struct synth *synth, struct stream *stream,
                             const struct cursor *cursor, uint64_t length, enum way way)
{
    const struct synth_spec *spec = synth->spec;
    uint64_t behind = cursor->last_bytes + (spec->run_identical ? 0 : cursor->last_length);
    bool follows = stream->run_left > 0;

    if (spec->follow_pct > 0)
        follows |= synth_rng_below(&stream->rng, 100) < spec->follow_pct;
    if (stream->run_left > 0)
        stream->run_left--;
    if (follows && cursor->ops > 0 && behind <= synth->span && length <= synth->span - behind)
        return behind;
    if (spec->run_ops > 1 && stream->run_left == 0)
        stream->run_left = spec->run_ops - 1;
    return new_place(synth, stream, cursor, length, way);
}

/* The next place of a sequential cursor; a last op may be cut short by the end. */
static uint64_t next_place(const struct synth *synth, struct cursor *cursor, uint64_t *length,
                           enum way way)
{
    uint64_t *next = &cursor->next_bytes[synth->spec->own_places ? way : 0], place;
    uint64_t back = synth->spec->back_bytes;

    if (back > 0 && *next > 0)
        *next = *next >= back ? *next - back : synth->span - back;
    if (*next >= synth->span)
        *next = 0;
    place = *next;
    if (*length > synth->span - place)
        *length = synth->span - place;
    *next += *length + synth->spec->hole_bytes;
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
                     struct trace_op *op, enum way way)
{
    uint64_t place;

    if (is_random(synth->rw))
        place = random_place(synth, stream, cursor, op->length, way);
    else if (synth->rw == SYNTH_RERECORD)
        place = 0;
    else if (synth->rw == SYNTH_STRIDEREAD)
        place = stride_place(synth, cursor, op->length);
    else if (synth->rw == SYNTH_BACKREAD)
        place = synth->span - next_place(synth, cursor, &op->length, way) - op->length;
    else
        place = next_place(synth, cursor, &op->length, way);
    cursor->ops++;
    cursor->last_bytes = place;
    cursor->last_length = op->length;
    op->offset = synth->spec->offset_bytes + place;
}

static enum way op_way(const struct synth *synth, struct stream *stream)
{
    switch (synth->rw) {
    case SYNTH_TRIM:
    case SYNTH_RANDTRIM:
    case SYNTH_TRIMWRITE:
    case SYNTH_RANDTRIMWRITE: return WAY_TRIM;
    case SYNTH_RW:
    case SYNTH_RANDRW:
        return synth_rng_below(&stream->rng, 100) < synth->spec->rwmix ? WAY_READ : WAY_WRITE;
    default: return synth_rw_writes(synth->rw) ? WAY_WRITE : WAY_READ;
    }
}

/* Kind, size and place of the next op at a cursor. */
static void shape_op(const struct synth *synth, struct stream *stream, struct cursor *cursor,
                     struct trace_op *op)
{
    static const uint8_t kinds[WAYS] = {TRACE_READ, TRACE_WRITE, TRACE_DISCARD};
    enum way way;

    if (cursor->trimmed) {
        op->kind = TRACE_WRITE;
        op->length = cursor->last_length;
        op->offset = synth->spec->offset_bytes + cursor->last_bytes;
        cursor->trimmed = false;
        return;
    }
    way = op_way(synth, stream);
    op->kind = kinds[way];
    op->length = op_size(&synth->sizes[way], stream);
    place_op(synth, stream, cursor, op, way);
    cursor->trimmed = is_trimwrite(synth->rw);
}

static void next_file(const struct synth *synth, struct stream *stream)
{
    const struct synth_spec *spec = synth->spec;
    uint64_t stay = spec->switch_ops;

    if (spec->file_order == SYNTH_FILES_ONE_BY_ONE)
        stay = (uint64_t)ceil((double)synth->span / synth_stage_mean(synth, synth->rw)) *
               (is_trimwrite(synth->rw) ? 2 : 1);
    if (++stream->until_switch < stay)
        return;
    stream->until_switch = 0;
    if (spec->file_order == SYNTH_FILES_RANDOM)
        stream->file = (uint32_t)synth_rng_below(&stream->rng, spec->files);
    else
        stream->file = (stream->file + 1) % (uint32_t)spec->files;
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

/* The next op of a stream. */
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
    shape_op(synth, stream, &stream->cursors[file * spec->contexts + stream->context], &op);
    op.flags = op_flags(spec, op.kind);
    if (op.flags & TRACE_F_APPEND)
        op.offset = TRACE_UNKNOWN_U64;
    if (!stream->cursors[file * spec->contexts + stream->context].trimmed) {
        stream->context = (stream->context + 1) % (uint32_t)spec->contexts;
        next_file(synth, stream);
    } else {
        stream->until_switch++;
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
        stream->until_switch = stream->run_left = 0;
        for (uint64_t at = 0; at < spec->files * spec->contexts; at++)
            stream->cursors[at] = (struct cursor){
                .next_bytes = {at % spec->contexts * spec->context_offset_bytes % synth->span}};
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
    double mean = synth_stage_mean(synth, synth->rw);

    if (spec->ops)
        return spec->ops;
    if (spec->runtime_ns)
        return UINT64_MAX;
    return (uint64_t)ceil((double)synth->span / mean) * spec->files * spec->streams *
           (is_trimwrite(synth->rw) ? 2 : 1);
}

static int run_stage(struct synth *synth, int rw)
{
    const struct synth_spec *spec = synth->spec;
    uint64_t total, issued = 0, round = 0;
    int64_t end_ns =
        spec->runtime_ns ? synth->stage_start_ns + (int64_t)spec->runtime_ns : INT64_MAX;
    int64_t now_ns = synth->stage_start_ns, last_ns = now_ns;
    int err = 0;

    begin_stage(synth, rw);
    total = stage_ops(synth);
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
                                : spec->start_ns;
    return err;
}

int synth_generate(const struct synth_spec *spec, struct import *import, int64_t *ret_end_ns)
{
    struct synth synth = {.spec = spec, .import = import, .stage_start_ns = spec->start_ns};
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
    if (err == 0 && ret_end_ns != NULL)
        *ret_end_ns = synth.stage_start_ns;
    free(synth.file_tables);
    free(synth.streams);
    free(synth.cursors);
    free(synth.writes);
    return err;
}
