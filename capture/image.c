/* SPDX-License-Identifier: MIT */
#include "capture/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/program.h"
#include "capture/sample.h"
#include "capture/session.h"

#define STUCK_NS    UINT64_C(1000000000)
#define FILES_AHEAD 65536u /* numbers are given out densely */
#define FILES_MAX   (1u << 26)
#define STREAM_PASSED TRACE_NONE_U32 /* of an op that is not in the sample */

/* The memfd must have its size, and keep it: reading past its end would kill us. */
static int map_area(const struct ring_hello *hello, int memfd, struct ring_header **ret_header)
{
    struct stat facts;
    void *mapped;

    if (hello->bytes < RING_HEADER_BYTES + 4096 || hello->bytes > UINT64_C(2) << 30 ||
        fstat(memfd, &facts) < 0 || (uint64_t)facts.st_size != hello->bytes)
        return -EBADMSG;
    if (!(fcntl(memfd, F_GET_SEALS) & F_SEAL_SHRINK))
        return -EBADMSG;
    mapped = mmap(NULL, hello->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
    if (mapped == MAP_FAILED)
        return -errno;
    *ret_header = mapped;
    return 0;
}

int image_new(struct image **ret_image, const struct ring_hello *hello, pid_t pid, int memfd)
{
    static uint64_t images;
    struct image *image = calloc(1, sizeof(*image));
    int err;

    if (!image)
        return -ENOMEM;
    err = map_area(hello, memfd, &image->area);
    if (err) {
        free(image);
        return err;
    }
    image->id = hello->image;
    image->pid = pid;
    image->told_pid = hello->pid;
    image->told_ppid = hello->ppid;
    image->pidfd = -1;
    image->area_bytes = hello->bytes;
    image->batch_base = ++images << 32;
    pending_init(&image->pending);
    *ret_image = image;
    return 0;
}

static void ring_free(struct image_ring *ring)
{
    munmap(ring->header, ring->bytes);
    free(ring);
}

void image_free(struct image *image)
{
    if (!image)
        return;
    while (image->rings) {
        struct image_ring *ring = image->rings;

        image->rings = ring->next;
        ring_free(ring);
    }
    munmap(image->area, image->area_bytes);
    if (image->pidfd >= 0)
        close(image->pidfd);
    free(image->files);
    pending_release(&image->pending);
    free(image);
}

static bool ring_sample(struct image_ring *ring, unsigned int one_in)
{
    bool keeps = sample_keeps(ring->tid, one_in);

    if (!keeps)
        __atomic_store_n(&ring->header->passing, 1, __ATOMIC_RELAXED);
    return keeps;
}

void image_sample(struct image *image, unsigned int one_in)
{
    for (struct image_ring *ring = image->rings; ring; ring = ring->next)
        ring_sample(ring, one_in);
}

int image_add_ring(struct image *image, struct session *session, const struct ring_hello *hello,
                   int memfd, unsigned int one_in)
{
    struct image_ring *ring = calloc(1, sizeof(*ring));
    uint64_t slots = (hello->bytes - RING_HEADER_BYTES) / sizeof(struct ring_record);
    char comm[sizeof(hello->comm) + 1] = "";
    int err;

    if (!ring)
        return -ENOMEM;
    memcpy(comm, hello->comm, sizeof(hello->comm));
    if (slots == 0 || (slots & (slots - 1)))
        err = -EBADMSG;
    else
        err = map_area(hello, memfd, &ring->header);
    if (err) {
        free(ring);
        return err;
    }
    ring->bytes = hello->bytes;
    ring->tid = hello->tid;
    ring->slots = (uint32_t)slots;
    ring->records =
        (const struct ring_record *)((const char *)ring->header + RING_HEADER_BYTES);
    err = session_stream(session, hello->pid, hello->tid, hello->ppid, comm, &ring->stream);
    if (err) {
        ring_free(ring);
        return err;
    }
    ring->passing = !ring_sample(ring, one_in);
    ring->next = image->rings;
    image->rings = ring;
    return 0;
}

/* ---- the process area -------------------------------------------------------------------- */

static int image_name_file(struct image *image, uint32_t number, uint32_t file)
{
    uint32_t room = image->file_room ? image->file_room : 256;
    uint32_t *files;

    if (number >= FILES_MAX || number > image->file_room + FILES_AHEAD)
        return -EBADMSG;
    if (number >= image->file_room) {
        while (room <= number)
            room *= 2;
        files = realloc(image->files, room * sizeof(*files));
        if (!files)
            return -ENOMEM;
        memset(files + image->file_room, 0xff, (room - image->file_room) * sizeof(*files));
        image->files = files;
        image->file_room = room;
    }
    image->files[number] = file;
    return 0;
}

static void note_program(struct image *image, struct session *session, const char *name)
{
    char path[RING_PATH_MAX + 64], kind[160];
    const char *obstacle = program_obstacle(program_look(name, image->pid, path, sizeof(path)));

    if (!obstacle)
        return;
    snprintf(kind, sizeof(kind), "program %s", obstacle);
    session_unseen(session, kind, 1);
    session_note(session, "%s is %s: preload cannot see what it does; the bpf recorder would",
                 path, obstacle);
}

static int take_entry(struct image *image, struct session *session,
                      const struct ring_entry *entry, const char *text)
{
    struct trace_file facts;
    uint32_t file;
    int err;

    switch (entry->type) {
    case RING_FILE:
        memset(&facts, 0, sizeof(facts));
        facts.path = text;
        facts.size_bytes = entry->size_bytes;
        facts.inode = entry->inode;
        facts.device = entry->device;
        facts.mode = entry->mode;
        facts.flags = entry->flags & (TRACE_FILE_SPARSE | TRACE_FILE_CREATED);
        facts.kind = (uint8_t)(entry->kind < TRACE_FILE_KIND_COUNT ? entry->kind : 0);
        err = session_file(session, &facts, &file);
        return err ? err : image_name_file(image, entry->number, file);
    case RING_UNSEEN: session_unseen(session, text, entry->size_bytes); return 0;
    case RING_CONTENT: session_content(session, text, entry->text_bytes); return 0;
    case RING_EXEC: note_program(image, session, text); return 0;
    default: return -EBADMSG;
    }
}

/* Every entry that has been written completely. */
static int drain_area(struct image *image, struct session *session)
{
    char *buffer = (char *)image->area + RING_HEADER_BYTES;
    uint64_t room = image->area_bytes - RING_HEADER_BYTES;
    char text[RING_PATH_MAX + 1];
    struct ring_entry entry;
    int err = 0;

    while (!err) {
        uint64_t at = image->area_head % room;
        uint32_t bytes = __atomic_load_n((uint32_t *)(void *)(buffer + at), __ATOMIC_ACQUIRE);

        if (bytes == 0)
            break;
        if (bytes % 8 || bytes > room - at)
            return -EBADMSG;
        memset(&entry, 0, sizeof(entry));
        memcpy(&entry, buffer + at, bytes < sizeof(entry) ? bytes : sizeof(entry));
        if (entry.type != RING_PAD) {
            if (bytes < sizeof(entry) || entry.text_bytes > bytes - sizeof(entry) ||
                entry.text_bytes > RING_PATH_MAX)
                return -EBADMSG;
            memcpy(text, buffer + at + sizeof(entry), entry.text_bytes);
            text[entry.text_bytes] = '\0';
            err = take_entry(image, session, &entry, text);
        }
        memset(buffer + at, 0, bytes);
        image->area_head += bytes;
        __atomic_store_n(&image->area->head, image->area_head, __ATOMIC_RELEASE);
    }
    return err;
}

/* ---- rings ------------------------------------------------------------------------------- */

/* 0 when the number has not been told, which an entry still being written explains. */
static bool file_of(const struct image *image, uint32_t number, uint32_t *ret_file)
{
    if (number == 0) {
        *ret_file = TRACE_NONE_U32;
        return true;
    }
    if (number >= image->file_room || image->files[number] == TRACE_NONE_U32)
        return false;
    *ret_file = image->files[number];
    return true;
}

static bool kind_has_second_file(unsigned int kind)
{
    return kind == TRACE_RENAME || kind == TRACE_LINK || kind == TRACE_SYMLINK ||
           kind == TRACE_COPY;
}

static bool kind_has_name(unsigned int kind)
{
    return kind == TRACE_OPEN || kind == TRACE_CREATE;
}

/* The op of a record; 1, 0 when its files are not known yet, -EBADMSG for nonsense. */
static int record_op(const struct image *image, const struct image_ring *ring,
                     const struct ring_record *record, struct trace_op *ret_op)
{
    struct trace_op op = TRACE_OP_INIT;

    if (record->kind >= TRACE_OP_COUNT || record->api >= TRACE_API_COUNT ||
        record->completion >= TRACE_COMPLETION_COUNT || record->begin_ns > INT64_MAX)
        return -EBADMSG;
    if (!file_of(image, record->file, &op.file))
        return 0;
    if (kind_has_second_file(record->kind)) {
        if (!file_of(image, record->other, &op.file2))
            return 0;
    } else if (record->other) {
        op.batch = image->batch_base + record->other;
    }
    op.issue_ns = (int64_t)record->begin_ns;
    op.offset = record->offset;
    op.length = record->length;
    op.flags = record->flags & ~(uint32_t)(TRACE_F_INFLIGHT);
    op.arg = record->arg;
    op.kind = record->kind;
    op.api = record->api;
    op.stream = ring->passing ? STREAM_PASSED : ring->stream;
    *ret_op = op;
    return 1;
}

/* An open of something that is not recorded leaves a record without a file. */
static bool op_is_wanted(const struct trace_op *op)
{
    return op->file != TRACE_NONE_U32 || op->kind == TRACE_SYNCFS ||
           (op->kind == TRACE_COPY && op->file2 != TRACE_NONE_U32);
}

static int deliver(struct session *session, const struct trace_op *op)
{
    if (op->stream == STREAM_PASSED) {
        session_passed(session, op_is_wanted(op));
        return 0;
    }
    if (!op_is_wanted(op)) {
        if (!kind_has_name(op->kind))
            session_lost(session, "file-unknown", -1, 1);
        return 0;
    }
    return session_op(session, op);
}

/* As record_op's: 1 when the record has been dealt with, 0 when it has to wait. */
static int take_record(struct image *image, struct image_ring *ring, struct session *session,
                       const struct ring_record *record)
{
    struct trace_op op, whole;
    int got = 1, err;

    if (record->type == RING_DONE) {
        if (record->begin_ns == 0)
            return -EBADMSG;
        got = pending_done(&image->pending, record->begin_ns, record->end_ns, record->result,
                           record->completion, &whole);
        return got == 1 ? (err = deliver(session, &whole)) ? err : 1 : got ? got : 1;
    }
    got = record_op(image, ring, record, &op);
    if (got != 1)
        return got;
    if (record->type == RING_ISSUE) {
        if (record->end_ns == 0)
            return -EBADMSG;
        op.ref = record->end_ns; /* ids are given out in the order of submission */
        got = pending_issue(&image->pending, record->end_ns, &op, &whole);
        return got == 1 ? (err = deliver(session, &whole)) ? err : 1 : got ? got : 1;
    }
    op.result = record->result;
    if (record->end_ns >= record->begin_ns && record->completion != TRACE_COMPLETION_UNKNOWN) {
        op.latency_ns = record->end_ns - record->begin_ns;
        op.completion = record->completion;
    }
    err = deliver(session, &op);
    return err ? err : 1;
}

static void count_drops(struct image_ring *ring, struct session *session)
{
    uint64_t dropped = __atomic_load_n(&ring->header->dropped, __ATOMIC_RELAXED);
    uint64_t files = __atomic_load_n(&ring->header->dropped_files, __ATOMIC_RELAXED);
    uint64_t done = __atomic_load_n(&ring->header->dropped_done, __ATOMIC_RELAXED);
    uint64_t passed = __atomic_load_n(&ring->header->passed, __ATOMIC_RELAXED);

    if (dropped > ring->dropped)
        session_lost(session, "ring-full", -1, dropped - ring->dropped);
    if (files > ring->dropped_files)
        session_lost(session, "file-table-full", -1, files - ring->dropped_files);
    if (done > ring->dropped_done)
        session_unseen(session, "completion, ring-full", done - ring->dropped_done);
    if (passed > ring->passed)
        session_passed(session, passed - ring->passed);
    ring->passed = passed;
    ring->dropped = dropped;
    ring->dropped_done = done;
    ring->dropped_files = files;
    if (!ring->early_counted)
        session_lost(session, "no-ring", -1, ring->header->dropped_early);
    ring->early_counted = true;
}

/* An op that never ended: the call was left by longjmp or the thread cancelled in it. Given up
 * when later ops of the thread have long ended, as in flight. */
static int give_up_stuck(struct image *image, struct image_ring *ring, struct session *session,
                         uint64_t now_ns)
{
    struct ring_record record = ring->records[ring->head & (ring->slots - 1)];
    uint64_t tail = __atomic_load_n(&ring->header->tail, __ATOMIC_ACQUIRE);
    struct trace_op op;
    int got;

    if (tail <= ring->head + 1)
        return 0;
    if (ring->stuck_head != ring->head || !ring->stuck_since_ns) {
        ring->stuck_head = ring->head;
        ring->stuck_since_ns = now_ns;
        return 0;
    }
    if (now_ns - ring->stuck_since_ns < STUCK_NS)
        return 0;
    ring->stuck_since_ns = 0;
    if (record.state != RING_STATE_OPEN(ring->head)) {
        session_lost(session, "unfinished", -1, 1);
        return 1;
    }
    got = record_op(image, ring, &record, &op);
    if (got == 1) {
        op.flags |= TRACE_F_INFLIGHT;
        got = deliver(session, &op);
        return got ? got : 1;
    }
    return got < 0 ? got : 1;
}

static int drain_ring(struct image *image, struct image_ring *ring, struct session *session,
                      uint64_t now_ns)
{
    struct ring_record record;
    int taken = 0, got = 1;

    while (got == 1 && taken < (int)ring->slots) {
        const struct ring_record *slot = &ring->records[ring->head & (ring->slots - 1)];

        if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != RING_STATE_DONE(ring->head)) {
            got = give_up_stuck(image, ring, session, now_ns);
        } else {
            record = *slot;
            got = take_record(image, ring, session, &record);
            if (got == 0 && !drain_area(image, session))
                got = take_record(image, ring, session, &record);
            if (got == 0 && image->ended) {
                session_lost(session, "file-unknown", -1, 1);
                got = 1;
            }
        }
        if (got == 1) {
            taken++;
            __atomic_store_n(&ring->header->head, ++ring->head, __ATOMIC_RELEASE);
        }
    }
    count_drops(ring, session);
    return got < 0 ? got : taken;
}

/* Nothing more will be written: what has not ended is in flight, and slots after it may be
 * whole. */
static int finish_ring(struct image *image, struct image_ring *ring, struct session *session)
{
    struct ring_record record;
    struct trace_op op;
    int err = 0;

    for (uint32_t i = 0; i < ring->slots && err >= 0; i++) {
        record = ring->records[(ring->head + i) & (ring->slots - 1)];
        if (record.state == RING_STATE_DONE(ring->head + i)) {
            err = take_record(image, ring, session, &record);
        } else if (record.state == RING_STATE_OPEN(ring->head + i) &&
                   record_op(image, ring, &record, &op) == 1) {
            op.flags |= TRACE_F_INFLIGHT;
            err = deliver(session, &op);
        }
    }
    return err < 0 ? err : 0;
}

int image_drain(struct image *image, struct session *session, uint64_t now_ns)
{
    int taken = 0, got;

    if (image->distrusted)
        return 0;
    got = drain_area(image, session);
    for (struct image_ring **at = &image->rings; got >= 0 && *at;) {
        struct image_ring *ring = *at;
        bool closed = __atomic_load_n(&ring->header->closed, __ATOMIC_ACQUIRE);

        got = drain_ring(image, ring, session, now_ns);
        taken += got > 0 ? got : 0;
        if (closed && got == 0) {
            got = finish_ring(image, ring, session);
            *at = ring->next;
            ring_free(ring);
        } else {
            at = &ring->next;
        }
    }
    if (got == -EBADMSG) {
        image->distrusted = true;
        session_lost(session, "damaged-ring", -1, 1);
        session_note(session,
                     "process %ld has overwritten the recorder's memory; it is recorded "
                     "no further",
                     (long)image->pid);
        got = 0;
    }
    return got < 0 ? got : taken;
}

int image_finish(struct image *image, struct session *session)
{
    uint32_t cursor = 0;
    struct trace_op op;
    int err = 0;

    for (struct image_ring *ring = image->rings; ring && !err && !image->distrusted;
         ring = ring->next)
        err = finish_ring(image, ring, session);
    while ((!err || err == -EBADMSG) && pending_take(&image->pending, &cursor, &op)) {
        op.flags |= TRACE_F_INFLIGHT;
        err = deliver(session, &op);
    }
    return err == -EBADMSG ? 0 : err;
}
