/* SPDX-License-Identifier: MIT */
/*
 * Open CAS iotrace directories: octf.summary and one octf.trace.N a queue, each a sequence of
 * varint-length-delimited proto3 Event messages. A field that is zero is absent. Sequence
 * numbers are global across queues, so the files are merged by them; completions name the
 * request's id.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/importer.h"
#include "convert/inflight.h"

#define OCF_SECTOR        512
#define OCF_EVENT_MAX     (64u << 10)
#define OCF_MOST_INFLIGHT (1u << 20)

struct ocf_event {
    uint64_t sid, ns;
    unsigned int type; /* the oneof's field number: 2 io, 3 device, 5 completion ... */
    uint64_t lba, sectors, device, op, id, ref, error, size;
    bool flush, fua, meta, direct, readahead;
    const uint8_t *name; /* device event: into the input */
    size_t name_length;
};

struct ocf_queue {
    struct input *input;
    struct ocf_event event;
    bool ready;
    char name[256]; /* of a device event, kept past the next peek */
};

struct ocf_device {
    uint64_t id;
    uint32_t file;
};

struct ocf {
    struct import *import;
    struct inflight *inflight;
    struct ocf_device devices[64];
    size_t device_count;
};

struct cursor {
    const uint8_t *at, *end;
};

static int read_varint(struct cursor *cursor, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (unsigned int shift = 0; shift < 64 && cursor->at < cursor->end; shift += 7) {
        uint8_t byte = *cursor->at++;

        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret_value = value;
            return 0;
        }
    }
    return -EBADMSG;
}

/* One field: its number, its value (varint, fixed) or its bytes. 0 at the end, 1, or -EBADMSG.
 */
static int read_field(struct cursor *cursor, unsigned int *ret_number, uint64_t *ret_value,
                      struct cursor *ret_bytes)
{
    uint64_t key, length;

    if (cursor->at == cursor->end)
        return 0;
    if (read_varint(cursor, &key) < 0 || key >> 3 > UINT16_MAX)
        return -EBADMSG;
    *ret_number = (unsigned int)(key >> 3);
    *ret_value = 0;
    ret_bytes->at = ret_bytes->end = cursor->at;
    switch (key & 7) {
    case 0: return read_varint(cursor, ret_value) < 0 ? -EBADMSG : 1;
    case 1: length = 8; break;
    case 5: length = 4; break;
    case 2:
        if (read_varint(cursor, &length) < 0)
            return -EBADMSG;
        break;
    default: return -EBADMSG;
    }
    if (length > (uint64_t)(cursor->end - cursor->at))
        return -EBADMSG;
    ret_bytes->at = cursor->at;
    cursor->at += length;
    ret_bytes->end = cursor->at;
    if ((key & 7) != 2)
        for (uint64_t i = length; i-- > 0;)
            *ret_value = *ret_value << 8 | ret_bytes->at[i];
    return 1;
}

static void set_io(struct ocf_event *event, unsigned int number, uint64_t value)
{
    switch (number) {
    case 1: event->lba = value; break;
    case 2: event->sectors = value; break;
    case 4: event->device = value; break;
    case 5: event->op = value; break;
    case 6: event->flush = value != 0; break;
    case 7: event->fua = value != 0; break;
    case 9: event->id = value; break;
    case 10: event->meta = value != 0; break;
    case 11: event->direct = value != 0; break;
    case 12: event->readahead = value != 0; break;
    }
}

static void set_completion(struct ocf_event *event, unsigned int number, uint64_t value)
{
    switch (number) {
    case 1: event->lba = value; break;
    case 2: event->sectors = value; break;
    case 3: event->error = value; break;
    case 4: event->device = value; break;
    case 5: event->ref = value; break;
    }
}

static void set_device(struct ocf_event *event, unsigned int number, uint64_t value,
                       const struct cursor *bytes)
{
    switch (number) {
    case 1: event->device = value; break;
    case 2:
        event->name = bytes->at;
        event->name_length = (size_t)(bytes->end - bytes->at);
        break;
    case 3: event->size = value; break;
    }
}

static int parse_part(struct ocf_event *event, unsigned int part, struct cursor cursor)
{
    struct cursor bytes;
    unsigned int number;
    uint64_t value;
    int got;

    while ((got = read_field(&cursor, &number, &value, &bytes)) > 0) {
        if (part == 1 && number == 1)
            event->sid = value;
        else if (part == 1 && number == 2)
            event->ns = value;
        else if (part == 2)
            set_io(event, number, value);
        else if (part == 3)
            set_device(event, number, value, &bytes);
        else if (part == 5)
            set_completion(event, number, value);
    }
    return got;
}

static int parse_event(const uint8_t *bytes, size_t length, struct ocf_event *event)
{
    struct cursor cursor = {bytes, bytes + length}, part;
    unsigned int number;
    uint64_t value;
    int got;

    memset(event, 0, sizeof(*event));
    while ((got = read_field(&cursor, &number, &value, &part)) > 0) {
        if (number > 1)
            event->type = number;
        if (parse_part(event, number, part) < 0)
            return -EBADMSG;
    }
    return got;
}

/* The next event of a queue; ready stays false at its end. */
static int queue_next(struct ocf_queue *queue, struct import *import)
{
    const uint8_t *bytes;
    struct cursor cursor;
    uint64_t length;
    size_t head;
    int64_t got = input_peek(queue->input, &bytes, OCF_EVENT_MAX);

    queue->ready = false;
    if (got <= 0)
        return (int)got;
    cursor.at = bytes;
    cursor.end = bytes + got;
    if (read_varint(&cursor, &length) < 0 || length > OCF_EVENT_MAX - 10)
        return import_bad(import, queue->input, 0, "expected the length of an event");
    head = (size_t)(cursor.at - bytes);
    if (length > (uint64_t)(cursor.end - cursor.at))
        return import_bad(import, queue->input, 0, "the last event is cut");
    if (parse_event(cursor.at, (size_t)length, &queue->event) < 0)
        return import_bad(import, queue->input, 0, "not an Event message");
    if (queue->event.name) {
        if (queue->event.name_length >= sizeof(queue->name))
            queue->event.name_length = sizeof(queue->name) - 1;
        memcpy(queue->name, queue->event.name, queue->event.name_length);
    }
    input_skip(queue->input, head + (size_t)length);
    queue->ready = true;
    return 0;
}

static int device_file(struct ocf *ocf, uint64_t id, const char *name, size_t length,
                       uint64_t sectors, uint32_t *ret_file)
{
    struct trace_file facts = {.size_bytes = TRACE_UNKNOWN_U64,
                               .ops = TRACE_UNKNOWN_U64,
                               .bytes = TRACE_UNKNOWN_U64,
                               .max_end = TRACE_UNKNOWN_U64,
                               .kind = TRACE_FILE_BLOCK};
    int err;

    for (size_t i = 0; i < ocf->device_count; i++)
        if (ocf->devices[i].id == id) {
            *ret_file = ocf->devices[i].file;
            return 0;
        }
    if (!length) {
        /* I/O before its device event: the number is all there is */
        err = import_device(ocf->import, (uint32_t)(id >> 20), (uint32_t)(id & 0xfffff),
                            ret_file);
        return err;
    }
    err = import_file(ocf->import, name, length, ret_file);
    if (sectors && sectors < UINT64_MAX / OCF_SECTOR)
        facts.size_bytes = sectors * OCF_SECTOR;
    if (!err)
        err = import_file_facts(ocf->import, *ret_file, &facts);
    if (!err && ocf->device_count < sizeof(ocf->devices) / sizeof(ocf->devices[0])) {
        ocf->devices[ocf->device_count].id = id;
        ocf->devices[ocf->device_count++].file = *ret_file;
    }
    return err;
}

static int take_io(struct ocf *ocf, const struct ocf_event *event)
{
    struct trace_op op = TRACE_OP_INIT, evicted;
    struct inflight_key key = {.sector = event->id ? event->id : event->sid};
    int err;

    op.kind = event->op == 2 ? TRACE_WRITE : event->op == 3 ? TRACE_DISCARD : TRACE_READ;
    if (event->flush && !event->sectors)
        op.kind = TRACE_FLUSH;
    else if (event->flush)
        op.flags |= TRACE_F_PREFLUSH;
    if (event->op == 0 && !event->flush) {
        import_skip(ocf->import, "event without an operation", 1);
        return 0;
    }
    op.flags |= (event->fua ? TRACE_F_FUA : 0u) | (event->meta ? TRACE_F_META : 0u) |
                (event->direct ? TRACE_F_DIRECT : 0u) |
                (event->readahead ? TRACE_F_READAHEAD : 0u);
    op.issue_ns = (int64_t)event->ns;
    op.api = TRACE_API_BLOCK;
    op.length = event->sectors * OCF_SECTOR;
    op.offset = op.kind == TRACE_FLUSH ? TRACE_UNKNOWN_U64 : event->lba * OCF_SECTOR;
    err = device_file(ocf, event->device, NULL, 0, 0, &op.file);
    if (!err && inflight_put(ocf->inflight, &key, &op, &evicted))
        err = import_op(ocf->import, &evicted);
    return err;
}

static int take_completion(struct ocf *ocf, const struct ocf_event *event)
{
    struct inflight_key key = {.sector = event->ref};
    struct trace_op op;

    if (!inflight_take(ocf->inflight, &key, &op)) {
        import_skip(ocf->import, "completion without a request", 1);
        return 0;
    }
    if (event->ns >= (uint64_t)op.issue_ns) {
        op.latency_ns = event->ns - (uint64_t)op.issue_ns;
        op.completion = TRACE_COMPLETION_EXACT;
    }
    op.result = event->error ? -EIO : (int64_t)op.length;
    return import_op(ocf->import, &op);
}

static int take_event(struct ocf *ocf, struct ocf_queue *queue)
{
    const struct ocf_event *event = &queue->event;
    uint32_t file;

    if (event->ns > INT64_MAX || event->lba > INT64_MAX / OCF_SECTOR ||
        event->sectors > UINT32_MAX)
        return import_bad(ocf->import, queue->input, 0, "a number of the event does not fit");
    switch (event->type) {
    case 2: return take_io(ocf, event);
    case 3:
        return device_file(ocf, event->device, queue->name, event->name_length, event->size,
                           &file);
    case 5: return take_completion(ocf, event);
    }
    import_skip(ocf->import, "event of another type (file names, file system)", 1);
    return 0;
}

static bool is_trace(const struct input *input)
{
    const char *name = input_name(input), *slash = strrchr(name, '/');

    return strncmp(slash ? slash + 1 : name, "octf.trace", 10) == 0;
}

static int merge(struct ocf *ocf, struct ocf_queue *queues, size_t count)
{
    struct trace_op op;
    int err = 0;

    for (size_t i = 0; i < count && !err; i++)
        err = queue_next(&queues[i], ocf->import);
    while (!err) {
        struct ocf_queue *lowest = NULL;

        for (size_t i = 0; i < count; i++)
            if (queues[i].ready && (!lowest || queues[i].event.sid < lowest->event.sid))
                lowest = &queues[i];
        if (!lowest)
            break;
        err = take_event(ocf, lowest);
        if (!err)
            err = queue_next(lowest, ocf->import);
    }
    while (!err && inflight_take_any(ocf->inflight, &op)) {
        op.flags |= TRACE_F_INFLIGHT;
        err = import_op(ocf->import, &op);
    }
    return err;
}

static int ocf_run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    struct ocf ocf = {.import = import};
    struct ocf_queue *queues = calloc(count ? count : 1, sizeof(*queues));
    size_t used = 0;
    int err = -ENOMEM;

    ocf.inflight = inflight_new(OCF_MOST_INFLIGHT);
    if (!queues || !ocf.inflight) {
        diag_set(import_diag(import), err, "out of memory");
        goto out;
    }
    for (size_t i = 0; i < count; i++)
        if (is_trace(inputs[i]))
            queues[used++].input = inputs[i];
    if (!used) {
        err = diag_set(import_diag(import), -EBADMSG, "no octf.trace.N file in the folder");
        goto out;
    }
    err = import_cannot_tell(import, "stream");
    if (!err)
        err = merge(&ocf, queues, used);
out:
    inflight_free(ocf.inflight);
    free(queues);
    return err;
}

/* The summary file tells what its folder is. */
static int ocf_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    static const char key[] = "\"eventsCount\"";

    return length && bytes[0] == '{' && memmem(bytes, length, key, sizeof(key) - 1) ? IMPORT_SURE
                                                                                    : IMPORT_NO;
}

const struct importer importer_ocf = {
    .name = "ocf",
    .summary = "Open CAS iotrace directories (OCTF)",
    .help = "The folder with octf.summary and octf.trace.N; the queues are merged by their "
            "global sequence "
            "numbers. Kept: time, latency, result, op and flags, device with its size, offset, "
            "length.",
    .flags = IMPORTER_DIRECTORY | IMPORTER_JOINS | IMPORTER_FORCED,
    .sniff = ocf_sniff,
    .run = ocf_run,
};
