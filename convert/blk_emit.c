/* SPDX-License-Identifier: MIT */
#include "convert/blk_emit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Device numbers of files that are no numbered devices: a major kept for local use. */
#define LOCAL_MAJOR     240u
#define MINOR_MAX       0xfffffu
#define EVENT_BYTES_MAX 0xfffffe00u /* of the 32-bit field, in whole sectors */
#define PIDS_SIZE       4096u       /* pids told apart when their names are written */

struct blk_emit {
    struct export *export;
    blk_emit_fn emit;
    void *context;
    bool with_issue;
    struct blk_event *heap; /* completions, earliest first */
    size_t count, size;
    uint32_t *devices; /* by file, number + 1; 0 = not yet */
    uint32_t device_count;
    uint32_t pids[PIDS_SIZE]; /* pid + 1 in its place by hash */
};

int blk_emit_begin(struct export *export, bool with_issue, blk_emit_fn fn, size_t context_bytes,
                   void **ret_state)
{
    struct blk_emit *emit = calloc(1, sizeof(*emit));
    void *context = calloc(1, context_bytes);

    if (emit == NULL || context == NULL) {
        free(emit);
        free(context);
        return -ENOMEM;
    }
    emit->export = export;
    emit->emit = fn;
    emit->context = context;
    emit->with_issue = with_issue;
    *ret_state = emit;
    return 0;
}

void blk_emit_release(void *state)
{
    struct blk_emit *emit = state;

    if (emit == NULL)
        return;
    free(emit->context);
    free(emit->heap);
    free(emit->devices);
    free(emit);
}

static int heap_push(struct blk_emit *emit, const struct blk_event *event)
{
    size_t at = emit->count;

    if (emit->count == emit->size) {
        size_t size = emit->size ? 2 * emit->size : 256;
        struct blk_event *heap = realloc(emit->heap, size * sizeof(*heap));

        if (heap == NULL)
            return -ENOMEM;
        emit->heap = heap;
        emit->size = size;
    }
    emit->count++;
    for (; at > 0 && emit->heap[(at - 1) / 2].time_ns > event->time_ns; at = (at - 1) / 2)
        emit->heap[at] = emit->heap[(at - 1) / 2];
    emit->heap[at] = *event;
    return 0;
}

static struct blk_event heap_pop(struct blk_emit *emit)
{
    struct blk_event first = emit->heap[0], last = emit->heap[--emit->count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= emit->count)
            break;
        if (child + 1 < emit->count &&
            emit->heap[child + 1].time_ns < emit->heap[child].time_ns)
            child++;
        if (emit->heap[child].time_ns >= last.time_ns)
            break;
        emit->heap[at] = emit->heap[child];
        at = child;
    }
    if (emit->count > 0)
        emit->heap[at] = last;
    return first;
}

/* "8,0" as a device number. */
static bool parse_number(const char *path, uint32_t *ret_number)
{
    unsigned long major, minor;
    char *end;

    major = strtoul(path, &end, 10);
    if (end == path || *end != ',' || end[1] < '0' || end[1] > '9')
        return false;
    minor = strtoul(end + 1, &end, 10);
    if (*end != '\0' || major > 4095 || minor > MINOR_MAX)
        return false;
    *ret_number = (uint32_t)(major << 20 | minor);
    return true;
}

static int device_of(struct blk_emit *emit, uint32_t file, uint32_t *ret_device)
{
    const struct trace_file *entry = export_file(emit->export, file);
    uint32_t number;

    if (entry == NULL) {
        *ret_device = LOCAL_MAJOR << 20 | MINOR_MAX;
        return 0;
    }
    if (file >= emit->device_count) {
        uint32_t count = file + file / 2 + 16;
        uint32_t *devices = realloc(emit->devices, count * sizeof(*devices));

        if (devices == NULL)
            return -ENOMEM;
        memset(devices + emit->device_count, 0,
               (count - emit->device_count) * sizeof(*devices));
        emit->devices = devices;
        emit->device_count = count;
    }
    if (emit->devices[file] == 0) {
        if (entry->kind == TRACE_FILE_BLOCK && entry->device != 0 &&
            entry->device <= UINT32_MAX - 1) {
            number = (uint32_t)entry->device;
        } else if (!parse_number(entry->path, &number)) {
            number = LOCAL_MAJOR << 20 | (file & MINOR_MAX);
            export_note(emit->export, "%.200s is device %u,%u", entry->path, LOCAL_MAJOR,
                        file & MINOR_MAX);
        }
        emit->devices[file] = number + 1;
    }
    *ret_device = emit->devices[file] - 1;
    return 0;
}

static uint32_t category_of(const struct trace_op *op)
{
    static const struct {
        uint32_t flag, category;
    } map[] = {
        {TRACE_F_PREFLUSH, BLK_CAT_FLUSH}, {TRACE_F_FUA, BLK_CAT_FUA},
        {TRACE_F_SYNC, BLK_CAT_SYNC},      {TRACE_F_READAHEAD, BLK_CAT_AHEAD},
        {TRACE_F_META, BLK_CAT_META},
    };
    uint32_t category = 1u << 8; /* a file system's request */

    for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
        if (op->flags & map[i].flag)
            category |= map[i].category;
    switch (op->kind) {
    case TRACE_READ: return category | BLK_CAT_READ;
    case TRACE_DISCARD: return category | BLK_CAT_DISCARD | BLK_CAT_WRITE;
    case TRACE_FLUSH: return category | BLK_CAT_FLUSH;
    default: return category | BLK_CAT_WRITE;
    }
}

static int send(struct blk_emit *emit, const struct blk_event *event, uint32_t stream)
{
    const struct trace_stream *who =
        stream != TRACE_NONE_U32 ? export_stream(emit->export, stream) : NULL;
    uint32_t slot = event->pid * 2654435761u % PIDS_SIZE;
    char comm[BLK_COMM_MAX] = {0};
    bool first = emit->pids[slot] != event->pid + 1;

    emit->pids[slot] = event->pid + 1;
    if (who != NULL && who->comm != NULL)
        memcpy(comm, who->comm, strnlen(who->comm, sizeof(comm)));
    return emit->emit(emit->context, emit->export, event, comm,
                      first && event->act != BLK_ACT_COMPLETE);
}

static int send_due(struct blk_emit *emit, uint64_t until_ns)
{
    int err = 0;

    while (err == 0 && emit->count > 0 && emit->heap[0].time_ns <= until_ns) {
        struct blk_event event = heap_pop(emit);

        err = send(emit, &event, event.stream);
    }
    return err;
}

static bool count_kind(struct blk_emit *emit, const struct trace_op *op)
{
    switch (op->kind) {
    case TRACE_READ:
    case TRACE_WRITE:
    case TRACE_DISCARD:
    case TRACE_FLUSH: break;
    case TRACE_WRITE_ZEROES:
        export_lost_field(emit->export, "write_zeroes, written as a write", 1);
        break;
    default: export_skip(emit->export, trace_op_name(op->kind), 1); return false;
    }
    if (op->kind != TRACE_FLUSH && op->offset == TRACE_UNKNOWN_U64) {
        export_skip(emit->export, "op without an offset", 1);
        return false;
    }
    if (op->kind != TRACE_FLUSH && op->length == 0) {
        export_skip(emit->export, "op of 0 bytes", 1);
        return false;
    }
    if (op->issue_ns < 0 || op->issue_ns > INT64_MAX / 2) {
        export_skip(emit->export, "op with a time out of range", 1);
        return false;
    }
    return true;
}

static void count_lost(struct blk_emit *emit, const struct trace_op *op)
{
    const uint32_t kept =
        TRACE_F_PREFLUSH | TRACE_F_FUA | TRACE_F_SYNC | TRACE_F_READAHEAD | TRACE_F_META;

    if (op->kind != TRACE_FLUSH && ((op->offset | op->length) & 511))
        export_lost_field(emit->export, "offset or length below a sector", 1);
    if (op->result != TRACE_UNKNOWN_I64 && op->result >= 0 && op->kind <= TRACE_WRITE &&
        (uint64_t)op->result != op->length)
        export_lost_field(emit->export, "short result", 1);
    if (op->flags & ~kept)
        export_lost_field(emit->export, "flags", 1);
    if (op->batch != TRACE_UNKNOWN_U64)
        export_lost_field(emit->export, "batch", 1);
}

static int send_piece(struct blk_emit *emit, const struct trace_op *op, struct blk_event *event)
{
    uint64_t end_ns;
    int err;

    event->act = BLK_ACT_QUEUE;
    err = send(emit, event, op->stream);
    if (err == 0 && emit->with_issue) {
        event->act = BLK_ACT_ISSUE;
        err = send(emit, event, op->stream);
    }
    if (err < 0 || op->latency_ns == TRACE_UNKNOWN_U64)
        return err;
    if (__builtin_add_overflow(event->time_ns, op->latency_ns, &end_ns) || end_ns > INT64_MAX)
        return 0;
    event->act = BLK_ACT_COMPLETE;
    event->stream = op->stream;
    event->error = op->result != TRACE_UNKNOWN_I64 && op->result < 0 ? (uint16_t)op->result : 0;
    event->time_ns = end_ns;
    return heap_push(emit, event);
}

static int emit_one(struct blk_emit *emit, const struct trace_op *op)
{
    const struct trace_stream *who =
        op->stream != TRACE_NONE_U32 ? export_stream(emit->export, op->stream) : NULL;
    struct blk_event event = {.stream = TRACE_NONE_U32, .category = category_of(op)};
    uint64_t left = op->kind == TRACE_FLUSH ? 0 : op->length;
    uint64_t issue_ns = (uint64_t)op->issue_ns + BLK_EMIT_BASE_NS;
    int err;

    event.sector = op->kind == TRACE_FLUSH ? 0 : op->offset / 512;
    event.pid = who ? who->tid ? who->tid : who->pid : 0;
    err = device_of(emit, op->file, &event.device);
    if (err == 0)
        err = send_due(emit, issue_ns);
    if (left > EVENT_BYTES_MAX)
        export_lost_field(emit->export, "length above 4 GiB, in pieces", 1);
    while (err == 0) {
        event.bytes = left > EVENT_BYTES_MAX ? EVENT_BYTES_MAX : left;
        event.time_ns = issue_ns;
        event.error = 0;
        err = send_piece(emit, op, &event);
        left -= event.bytes;
        if (left == 0)
            break;
        event.sector += event.bytes / 512;
    }
    return err;
}

int blk_emit_ops(void *state, struct export *export, const struct trace_op *ops, size_t count)
{
    struct blk_emit *emit = state;
    int err = 0;

    (void)export;

    for (size_t i = 0; i < count && err == 0; i++) {
        if (!count_kind(emit, &ops[i]))
            continue;
        count_lost(emit, &ops[i]);
        err = emit_one(emit, &ops[i]);
    }
    return err;
}

int blk_emit_end(void *state, struct export *export)
{
    (void)export;
    return send_due(state, UINT64_MAX);
}
