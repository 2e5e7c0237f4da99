/* SPDX-License-Identifier: MIT */
/* blktrace's binary records: per-CPU files, a merged dump, or a stream; see blktrace_format.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "convert/blk_event.h"
#include "convert/blktrace_format.h"

/* Events held for time order: 64 bytes each. */
#define WINDOW_EVENTS  (768u * 1024)
#define SEQUENCE_SLOTS 4u
#define CGROUP_BIT     0x100u
#define CGROUP_BYTES   8u

struct header {
    uint64_t time_ns, sector, action;
    uint32_t sequence, bytes, pid, device, cpu;
    uint16_t error, pdu_bytes;
    uint8_t header_bytes;
    bool swap;
};

/* Numbers of records count up per device and CPU. */
struct sequence {
    uint32_t device, cpu, last;
    bool used;
};

struct reader {
    struct input *input;
    bool ended;
    struct sequence sequences[SEQUENCE_SLOTS];
    unsigned int sequence_next;
    uint32_t first_cpu;
    bool any, many_cpus;
};

struct job {
    struct import *import;
    struct blk_merge *merge;
    struct blk_tracker *tracker;
    struct reader *readers;
    size_t reader_count;
    uint64_t records, messages, gaps, garbage_bytes;
    uint64_t wall_ns, wall_at_ns; /* the first wall-clock notice */
    uint64_t lowest_ns;           /* of events that are no notices */
    bool have_wall, seen_versions[9];
};

static int sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    bool swap;

    (void)at_end;
    return length >= BLKTRACE_V7_HEADER && blktrace_version(bytes, &swap) != 0 ? IMPORT_SURE
                                                                               : IMPORT_NO;
}

/* The header at bytes, of which `length` can be read: its size, 0 when cut short, -EBADMSG. */
static int header_load(const uint8_t *bytes, size_t length, struct header *ret)
{
    unsigned int version;
    bool swap = false;

    if (length < 4)
        return 0;
    version = blktrace_version(bytes, &swap);
    ret->swap = swap;
    if (version == 0)
        return -EBADMSG;
    ret->header_bytes = version == 7 ? BLKTRACE_V7_HEADER : BLKTRACE_V8_HEADER;
    if (length < ret->header_bytes)
        return 0;
    ret->sequence = blktrace_u32(bytes + BLKTRACE_SEQUENCE, swap);
    ret->time_ns = blktrace_u64(bytes + BLKTRACE_TIME, swap);
    ret->sector = blktrace_u64(bytes + BLKTRACE_SECTOR, swap);
    ret->bytes = blktrace_u32(bytes + BLKTRACE_BYTES, swap);
    if (version == 7) {
        ret->action = blktrace_u32(bytes + BLKTRACE_V7_ACTION, swap);
        ret->pid = blktrace_u32(bytes + BLKTRACE_V7_PID, swap);
        ret->device = blktrace_u32(bytes + BLKTRACE_V7_DEVICE, swap);
        ret->cpu = blktrace_u32(bytes + BLKTRACE_V7_CPU, swap);
        ret->error = blktrace_u16(bytes + BLKTRACE_V7_ERROR, swap);
        ret->pdu_bytes = blktrace_u16(bytes + BLKTRACE_V7_PDU_LEN, swap);
    } else {
        ret->action = blktrace_u64(bytes + BLKTRACE_V8_ACTION, swap);
        ret->pid = blktrace_u32(bytes + BLKTRACE_V8_PID, swap);
        ret->device = blktrace_u32(bytes + BLKTRACE_V8_DEVICE, swap);
        ret->cpu = blktrace_u32(bytes + BLKTRACE_V8_CPU, swap);
        ret->error = blktrace_u16(bytes + BLKTRACE_V8_ERROR, swap);
        ret->pdu_bytes = blktrace_u16(bytes + BLKTRACE_V8_PDU_LEN, swap);
    }
    return ret->header_bytes;
}

static void check_sequence(struct job *job, struct reader *reader, const struct header *header)
{
    struct sequence *slot = NULL;

    for (unsigned int i = 0; i < SEQUENCE_SLOTS; i++) {
        if (reader->sequences[i].used && reader->sequences[i].device == header->device &&
            reader->sequences[i].cpu == header->cpu) {
            slot = &reader->sequences[i];
            break;
        }
    }
    if (slot == NULL) {
        slot = &reader->sequences[reader->sequence_next++ % SEQUENCE_SLOTS];
        *slot = (struct sequence){header->device, header->cpu, header->sequence, true};
        return;
    }
    if (header->sequence > slot->last) {
        job->gaps += header->sequence - slot->last - 1;
        slot->last = header->sequence;
    } else if (job->gaps > 0 && header->sequence < slot->last) {
        job->gaps--; /* it was only out of place */
    }
}

/* Notices: process names, the wall clock, messages. */
static int take_notice(struct job *job, size_t index, const struct header *header,
                       const uint8_t *payload, size_t length)
{
    unsigned int number = (unsigned int)header->action & 0xff;
    struct blk_event event = {0};
    int err;

    if (number == __BLK_TN_PROCESS) {
        event.act = BLK_ACT_NAME;
        event.pid = header->pid;
        event.cpu = header->cpu;
        memcpy(event.comm, payload, length < BLK_COMM_MAX ? length : BLK_COMM_MAX);
        err = blk_tracker_see(job->tracker, &event);
        return err < 0 ? err : blk_merge_push(job->merge, index, &event);
    }
    if (number == __BLK_TN_TIMESTAMP && length >= 8) {
        if (!job->have_wall || header->time_ns < job->wall_at_ns) {
            job->wall_ns = blktrace_u32(payload, header->swap) * 1000000000ull +
                           blktrace_u32(payload + 4, header->swap);
            job->wall_at_ns = header->time_ns;
            job->have_wall = true;
        }
        return 0;
    }
    job->messages++;
    return 0;
}

static int take_record(struct job *job, size_t index, const struct header *header,
                       const uint8_t *payload)
{
    struct reader *reader = &job->readers[index];
    unsigned int number = (unsigned int)header->action & 0xffff;
    size_t length = header->pdu_bytes;
    struct blk_event event;
    int err;

    job->records++;
    job->seen_versions[header->header_bytes == BLKTRACE_V7_HEADER ? 7 : 8] = true;
    if (number & CGROUP_BIT) {
        number &= ~CGROUP_BIT;
        payload += length < CGROUP_BYTES ? length : CGROUP_BYTES;
        length -= length < CGROUP_BYTES ? length : CGROUP_BYTES;
    }
    if (header->action >> BLK_TC_SHIFT & BLK_CAT_NOTIFY)
        return take_notice(job, index, header, payload, length);
    check_sequence(job, reader, header);
    if (!reader->any)
        reader->first_cpu = header->cpu;
    reader->many_cpus |= reader->first_cpu != header->cpu;
    reader->any = true;
    if (header->time_ns < job->lowest_ns)
        job->lowest_ns = header->time_ns;
    event = (struct blk_event){.time_ns = header->time_ns,
                               .bytes = header->bytes,
                               .pid = header->pid,
                               .device = header->device,
                               .cpu = header->cpu,
                               .category = (uint32_t)(header->action >> BLK_TC_SHIFT),
                               .stream = TRACE_NONE_U32,
                               .error = header->error,
                               .act = (uint8_t)(number < BLK_ACT_NAME ? number : 0)};
    event.sector = header->sector;
    if (number == BLK_ACT_REMAP && length >= 4)
        event.arg = blktrace_be32(payload);
    else if (number == BLK_ACT_SPLIT && length >= 8)
        event.arg = blktrace_be64(payload);
    if ((err = blk_tracker_see(job->tracker, &event)) < 0)
        return err;
    return blk_merge_push(job->merge, index, &event);
}

/* After bytes that are no record: the offset of what looks like one again, or length. */
static size_t find_record(const uint8_t *bytes, size_t length)
{
    struct header header;
    size_t at;

    for (at = 1; at + BLKTRACE_V7_HEADER <= length; at++) {
        if ((bytes[at] != 0x07 && bytes[at] != 0x08 && bytes[at] != 0x65) ||
            header_load(bytes + at, length - at, &header) <= 0)
            continue;
        if (header.cpu < 65536 && (header.action & 0xff) < BLK_ACT_NAME)
            return at;
    }
    return length - (BLKTRACE_V7_HEADER - 1);
}

/* Bytes that are no record, `at` bytes into what was peeked: an error, or passed over. */
static int pass_garbage(struct job *job, struct reader *reader, const uint8_t *bytes,
                        size_t length, bool at_end, size_t *ret_passed)
{
    size_t passed = length < BLKTRACE_V7_HEADER ? length : find_record(bytes, length);
    bool swap;
    int err;

    if (at_end && passed + BLKTRACE_V7_HEADER > length)
        passed = length;
    if (length >= 4 && blktrace_version(bytes, &swap) != 0)
        err = import_bad(job->import, reader->input, 0,
                         "a record that is torn: the next one is %zu bytes on", passed);
    else
        err = import_bad(
            job->import, reader->input, 0,
            "not a blktrace record (magic %02x %02x %02x %02x); the next one is %zu bytes on",
            bytes[0], length > 1 ? bytes[1] : 0, length > 2 ? bytes[2] : 0,
            length > 3 ? bytes[3] : 0, passed);
    if (err < 0)
        return err;
    job->garbage_bytes += passed;
    *ret_passed = passed;
    return 0;
}

static int note_cut(struct job *job, struct reader *reader, size_t left)
{
    import_note(
        job->import,
        "%s: byte %llu: the last record is cut short (%zu bytes of it are there); everything "
        "before it was kept",
        input_name(reader->input), (unsigned long long)input_offset(reader->input), left);
    import_lost(job->import, "cut-record", 1);
    input_skip(reader->input, left);
    reader->ended = true;
    return 0;
}

/* A record torn in half still has its magic: nothing that looks like a record follows it, and
 * its second half is of something else. */
static bool is_torn(const struct reader *reader, const struct header *header,
                    const uint8_t *bytes, size_t length)
{
    size_t next = (size_t)header->header_bytes + header->pdu_bytes;
    bool swap;

    if (!reader->any || next + 4 > length || blktrace_version(bytes + next, &swap) != 0)
        return false;
    for (unsigned int i = 0; i < SEQUENCE_SLOTS; i++)
        if (reader->sequences[i].used && reader->sequences[i].device == header->device)
            return false;
    return true;
}

/* Decodes up to room records of what can be peeked at. */
static int reader_fill(struct job *job, size_t index, size_t room)
{
    struct reader *reader = &job->readers[index];
    struct header header = {0};
    const uint8_t *bytes;
    int64_t got = input_peek(reader->input, &bytes, INPUT_PEEK_MAX);
    size_t at = 0, length, passed;
    int err = 0, size = 0;

    if (got < 0)
        return (int)got;
    length = (size_t)got;
    while (at < length && room > 0) {
        size = header_load(bytes + at, length - at, &header);
        if (size > 0 && is_torn(reader, &header, bytes + at, length - at))
            size = -EBADMSG;
        if (size < 0) {
            input_skip(reader->input, at);
            got = input_peek(reader->input, &bytes, INPUT_PEEK_MAX);
            if (got < 0)
                return (int)got;
            err = pass_garbage(job, reader, bytes, (size_t)got, got < (int64_t)INPUT_PEEK_MAX,
                               &passed);
            if (err == 0)
                input_skip(reader->input, passed);
            return err;
        }
        if (size == 0 || (size_t)size + header.pdu_bytes > length - at)
            break;
        err = take_record(job, index, &header, bytes + at + size);
        if (err < 0)
            return err;
        at += (size_t)size + header.pdu_bytes;
        room--;
    }
    input_skip(reader->input, at);
    if (length == 0)
        reader->ended = true;
    else if (at == 0 && length < INPUT_PEEK_MAX)
        err = note_cut(job, reader, length);
    return err;
}

static int fill(struct job *job, size_t index)
{
    size_t room;
    int err = 0;

    while (err == 0 && !job->readers[index].ended &&
           (room = blk_merge_room(job->merge, index)) > 0)
        err = reader_fill(job, index, room);
    return err;
}

static int pump(struct job *job)
{
    const struct blk_event *event;
    size_t index, refill;
    int err = 0;

    for (size_t i = 0; i < job->reader_count && err == 0; i++)
        err = fill(job, i);
    if (err < 0)
        return err;
    refill = WINDOW_EVENTS / (job->reader_count ? job->reader_count : 1) / 4;
    while ((event = blk_merge_pop(job->merge, &index)) != NULL) {
        err = blk_tracker_add(job->tracker, event);
        if (err == 0 && !job->readers[index].ended &&
            blk_merge_room(job->merge, index) > refill)
            err = fill(job, index);
        if (err < 0)
            return err;
    }
    return 0;
}

static int report_wall(struct job *job)
{
    uint64_t first_ns;
    char text[32];

    if (!job->have_wall || !blk_tracker_first_ns(job->tracker, &first_ns))
        return 0;
    /* A dump's I/O was moved to begin at 0 while its notices kept the raw clock. */
    if (job->lowest_ns == 0 || job->wall_at_ns > first_ns) {
        import_note(job->import, "the wall clock's notice is on another clock than the events "
                                 "(a merged dump): the start of the trace is not known");
        return 0;
    }
    /* As of the trace clock's 0; the core moves it to the tape's. */
    snprintf(text, sizeof(text), "%lld", (long long)(job->wall_ns - job->wall_at_ns));
    return import_meta(job->import, TRACE_META_START_WALL, text);
}

static int report(struct job *job)
{
    bool dump = false;

    for (size_t i = 0; i < job->reader_count; i++)
        dump |= job->readers[i].many_cpus;
    if (job->messages > 0)
        import_skip(job->import, "message", job->messages);
    if (job->garbage_bytes > 0)
        import_skip(job->import, "byte that is no record", job->garbage_bytes);
    if (job->gaps > 0 && dump)
        import_note(job->import,
                    "%llu record numbers are missing: lost, or filtered out of the dump",
                    (unsigned long long)job->gaps);
    else if (job->gaps > 0)
        import_lost(job->import, "sequence-gap", job->gaps);
    if (job->records == 0)
        import_note(job->import, "no records: every input is empty");
    if (job->seen_versions[8])
        import_note(job->import, "records of protocol version 8");
    return report_wall(job);
}

static int run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    struct job job = {.import = import, .reader_count = count, .lowest_ns = UINT64_MAX};
    int err = -ENOMEM;

    (void)conf;
    job.readers = calloc(count ? count : 1, sizeof(*job.readers));
    if (job.readers == NULL)
        goto out;
    for (size_t i = 0; i < count; i++)
        job.readers[i].input = inputs[i];
    err = blk_merge_new(&job.merge, count, WINDOW_EVENTS);
    if (err == 0)
        err = blk_tracker_new(&job.tracker, import);
    if (err == 0)
        err = pump(&job);
    if (err == 0)
        err = blk_tracker_finish(job.tracker);
    if (err == 0)
        err = report(&job);
    if (err == 0)
        err = import_meta(import, TRACE_META_CLOCK, "trace");
out:
    blk_tracker_free(job.tracker);
    blk_merge_free(job.merge);
    free(job.readers);
    return err;
}

const struct importer importer_blktrace = {
    .name = "blktrace",
    .summary = "blktrace's binary records, versions 7 and 8, either byte order",
    .help = "All files of one capture (NAME.blktrace.0, .1 ...), a dump of blkparse -d, or a "
            "stream of "
            "blktrace -o -. The event that stands for the I/O is Q where a device has it, else "
            "D, else "
            "C; --event takes another. Latency is from that event to C. A write with the flush "
            "bit is "
            "a write with the flag preflush; a flush without data is a flush. Requests merged, "
            "split, "
            "completed in parts or issued twice stay the operations they were. --device 8,0 "
            "takes one "
            "device where several were traced. Pass-through requests are kept as passthrough, "
            "without "
            "a range.",
    .flags = IMPORTER_JOINS,
    .sniff = sniff,
    .run = run,
};
