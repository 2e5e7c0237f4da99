/* SPDX-License-Identifier: MIT */
#include "capture/bpf_decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/bpf_flight.h"
#include "capture/bpf_maps.h"
#include "capture/bpf_op.h"
#include "capture/bpf_path.h"

struct decode_thread {
    uint32_t pid, stream;
    char *paths[BPF_PATH_WHICH]; /* arguments of the next op */
    uint64_t raw_batch, batch;
    struct trace_op
        pages; /* of a mapping, growing while the next ones adjoin; length 0 = none */
    struct flight_list submitted; /* of the io_submit that has not returned yet */
};

void bpf_decode_init(struct bpf_decode *self, struct session *session)
{
    memset(self, 0, sizeof(*self));
    self->session = session;
    bpf_names_init(&self->names, session);
    bpf_positions_init(&self->positions);
    bpf_table_init(&self->threads);
    bpf_table_init(&self->flights);
    bpf_table_init(&self->maps);
    self->next_batch = 1;
    self->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- threads ----------------------------------------------------------------------------- */

static struct decode_thread *thread_make(struct bpf_decode *self, uint32_t pid, uint32_t tid)
{
    struct bpf_table_key key = {tid, 0, 0};
    struct decode_thread *thread = bpf_table_find(&self->threads, key);

    if (thread)
        return thread;
    thread = calloc(1, sizeof(*thread));
    if (!thread || bpf_table_put(&self->threads, key, thread) != 0) {
        free(thread);
        return NULL;
    }
    thread->pid = pid;
    thread->stream = TRACE_NONE_U32;
    return thread;
}

/* The thread of an op; its announcement may have been lost with the ring full. */
static int thread_of(struct bpf_decode *self, const struct bpf_event *head,
                     struct decode_thread **ret_thread)
{
    struct decode_thread *thread = thread_make(self, head->pid, head->tid);

    if (!thread)
        return -ENOMEM;
    *ret_thread = thread;
    if (thread->stream != TRACE_NONE_U32)
        return 0;
    return session_stream(self->session, head->pid, head->tid, 0, "", &thread->stream);
}

static int thread_event(struct bpf_decode *self, const struct bpf_event_task *event)
{
    struct decode_thread *thread = thread_make(self, event->head.pid, event->head.tid);
    char comm[sizeof(event->comm) + 1];

    if (!thread)
        return -ENOMEM;
    memcpy(comm, event->comm, sizeof(event->comm));
    comm[sizeof(event->comm)] = '\0';
    return session_stream(self->session, event->head.pid, event->head.tid, event->ppid, comm,
                          &thread->stream);
}

static void thread_free(struct decode_thread *thread)
{
    for (int i = 0; i < BPF_PATH_WHICH; i++)
        free(thread->paths[i]);
    free(thread);
}

static int path_event(struct bpf_decode *self, const struct bpf_event_path *event, size_t size)
{
    struct decode_thread *thread;
    const char *text = (const char *)event + sizeof(struct bpf_event_file);
    unsigned int which = event->head.kind;
    int rc = thread_of(self, &event->head, &thread);

    if (rc)
        return rc;
    if (which >= BPF_PATH_WHICH || sizeof(struct bpf_event_file) + event->path_bytes > size)
        return -EBADMSG;
    free(thread->paths[which]);
    thread->paths[which] = NULL;
    if (which == BPF_PATH_BASE || which == BPF_PATH_BASE2) {
        rc = bpf_path_from_components(text, event->path_bytes, self->path, sizeof(self->path));
        if (rc < 0)
            return rc;
        thread->paths[which] = strdup(self->path);
    } else {
        thread->paths[which] = strndup(text, event->path_bytes);
    }
    return thread->paths[which] ? 0 : -ENOMEM;
}

/* Takes the thread's argument `which` as an absolute path into out; false when it is missing.
 */
static bool path_take(struct decode_thread *thread, unsigned int which, char *out,
                      size_t out_size)
{
    char *base = thread->paths[which], *text = thread->paths[which + 1];
    bool have = text && (text[0] == '/' || base) && text[0] &&
                bpf_path_join(base, text, out, out_size) >= 0;

    free(base);
    free(text);
    thread->paths[which] = thread->paths[which + 1] = NULL;
    return have;
}

/* ---- mapped files ------------------------------------------------------------------------ */

static struct bpf_table_key maps_key(uint32_t pid)
{
    return (struct bpf_table_key){pid, 0, 0};
}

static struct bpf_maps *maps_make(struct bpf_decode *self, uint32_t pid)
{
    struct bpf_maps *maps = bpf_table_find(&self->maps, maps_key(pid));

    if (maps)
        return maps;
    maps = calloc(1, sizeof(*maps));
    if (!maps || bpf_table_put(&self->maps, maps_key(pid), maps) != 0) {
        free(maps);
        return NULL;
    }
    return maps;
}

/* The process has ended, or has become another program. */
static void maps_forget(struct bpf_decode *self, uint32_t pid)
{
    struct bpf_maps *maps = bpf_table_remove(&self->maps, maps_key(pid));

    if (maps)
        bpf_maps_release(maps);
    free(maps);
}

static int fork_event(struct bpf_decode *self, const struct bpf_event *event)
{
    const struct bpf_maps *from = bpf_table_find(&self->maps, maps_key(event->pid));
    struct bpf_maps *to = from ? maps_make(self, event->tid) : NULL;

    if (!from)
        return 0;
    return to ? bpf_maps_copy(to, from) : -ENOMEM;
}

static int pages_flush(struct bpf_decode *self, struct decode_thread *thread)
{
    struct trace_op op = thread->pages;

    if (!op.length)
        return 0;
    thread->pages.length = 0;
    self->pages_held--;
    return session_op(self->session, &op);
}

/* Pages come one by one; those that adjoin make one op. */
static int pages_event(struct bpf_decode *self, struct decode_thread *thread,
                       const struct trace_op *op)
{
    struct trace_op *held = &thread->pages;
    int rc;

    if (held->length && held->kind == op->kind && held->file == op->file &&
        held->offset + held->length == op->offset) {
        held->length += op->length;
        return 0;
    }
    rc = pages_flush(self, thread);
    if (rc || !op->length)
        return rc;
    *held = *op;
    self->pages_held++;
    return 0;
}

int bpf_decode_idle(struct bpf_decode *self)
{
    struct decode_thread *thread;
    size_t at = 0;
    int rc = 0;

    while (!rc && self->pages_held && (thread = bpf_table_next(&self->threads, &at, NULL)))
        rc = pages_flush(self, thread);
    return rc;
}

/* ---- ops --------------------------------------------------------------------------------- */

/* Paths of name-space ops: the files, and what the op did to the names. */
static int op_paths(struct bpf_decode *self, struct decode_thread *thread, struct trace_op *op)
{
    bool have = path_take(thread, BPF_PATH_BASE, self->path, sizeof(self->path));
    bool have2 = path_take(thread, BPF_PATH_BASE2, self->base, sizeof(self->base));
    uint8_t kind = op->kind == TRACE_MKDIR || op->kind == TRACE_RMDIR ? TRACE_FILE_DIRECTORY
                                                                      : TRACE_FILE_UNKNOWN;
    int rc = 0;

    if (have && op->file == TRACE_NONE_U32)
        rc = bpf_names_by_path(&self->names, self->path, kind, &op->file);
    if (!rc && have2)
        rc = bpf_names_by_path(&self->names, self->base, kind, &op->file2);
    return rc;
}

static uint64_t thread_batch(struct bpf_decode *self, struct decode_thread *thread,
                             uint64_t raw)
{
    if (!raw)
        return TRACE_UNKNOWN_U64;
    if (raw != thread->raw_batch) {
        thread->raw_batch = raw;
        thread->batch = self->next_batch++;
    }
    return thread->batch;
}

static int op_prepare(struct bpf_decode *self, const struct bpf_event_op *event,
                      struct decode_thread *thread, struct trace_op *op)
{
    int rc = bpf_names_number(&self->names, &event->file, &op->file);

    if (rc)
        return rc;
    op->stream = thread->stream;
    if (event->head.type == BPF_EVENT_SUBMIT)
        op->batch = thread_batch(self, thread, event->batch);
    switch (event->head.class) {
    case BPF_CLASS_OPEN:
    case BPF_CLASS_PATH:
    case BPF_CLASS_PATHS: return op_paths(self, thread, op);
    default: return 0;
    }
}

/* Hands an op over. One whose vector could not be read has no length: that is a loss, unless
 * the kernel could not read it either. */
static int op_tell(struct bpf_decode *self, const struct trace_op *op, bool no_length)
{
    if (no_length && op->result != -EFAULT)
        session_lost(self->session, "user-read", -1, 1);
    return session_op(self->session, op);
}

static int op_renamed(struct bpf_decode *self, const struct trace_op *op)
{
    /* self->path and self->base still hold the names that op_paths took. */
    if (op->kind != TRACE_RENAME || op->result != 0 || op->file == TRACE_NONE_U32 ||
        op->file2 == TRACE_NONE_U32)
        return 0;
    return bpf_names_renamed(&self->names, self->path, self->base);
}

/* munmap and msync name addresses: an op for each file that was mapped there. What was not a
 * mapping of a recorded file is not I/O, except an msync of one mapped before the capture. */
static int unmap_tell(struct bpf_decode *self, const struct bpf_event_op *event,
                      const struct trace_op *op)
{
    struct bpf_maps *maps = bpf_table_find(&self->maps, maps_key(event->head.pid));
    struct bpf_map_range part;
    struct trace_op each = *op;
    size_t count = 0;
    int rc = 0;

    while (!rc && maps && bpf_maps_find(maps, event->extra, event->length, count, &part)) {
        each.file = part.file;
        each.offset = part.offset;
        each.length = part.end - part.start;
        rc = session_op(self->session, &each);
        count++;
    }
    if (!rc && !count && op->kind == TRACE_MSYNC)
        return session_op(self->session, op);
    if (!rc && count && op->kind == TRACE_MUNMAP && op->result == 0)
        rc = bpf_maps_remove(maps, event->extra, event->length);
    return rc;
}

/* A mapping of a recorded file was made at the address that mmap returned. */
static int map_keep(struct bpf_decode *self, const struct bpf_event_op *event,
                    const struct trace_op *op)
{
    struct bpf_maps *maps;

    if (op->kind != TRACE_MMAP || op->result != 0)
        return 0;
    maps = maps_make(self, event->head.pid);
    if (!maps)
        return -ENOMEM;
    return bpf_maps_add(maps, (uint64_t)event->result, op->length, op->file, op->offset,
                        self->page_bytes);
}

/* The offset of a call at the file position, when others share it. */
static int position_tell(struct bpf_decode *self, const struct bpf_event_op *event,
                         struct trace_op *op)
{
    uint64_t bytes = op->result > 0 ? (uint64_t)op->result : 0;

    if (!(event->head.flags & BPF_OP_POSITION) || !bytes ||
        (op->kind != TRACE_READ && op->kind != TRACE_WRITE))
        return 0;
    if (event->head.flags & BPF_OP_CONTENDED)
        return bpf_positions_place(&self->positions, event->extra, event->before,
                                   event->offset + bytes, bytes, &op->offset);
    return bpf_positions_taken(&self->positions, event->extra, event->offset, bytes);
}

static int op_event(struct bpf_decode *self, const struct bpf_event_op *event)
{
    struct decode_thread *thread;
    struct trace_op op;
    int rc = thread_of(self, &event->head, &thread);

    if (rc || !bpf_op_fill(event, &op))
        return rc;
    rc = op_prepare(self, event, thread, &op);
    if (!rc && event->head.class == BPF_CLASS_PAGES)
        return pages_event(self, thread, &op);
    if (!rc)
        rc = pages_flush(self, thread);
    if (!rc && event->head.class == BPF_CLASS_UNMAP)
        return unmap_tell(self, event, &op);
    if (!rc)
        rc = map_keep(self, event, &op);
    if (!rc)
        rc = position_tell(self, event, &op);
    if (!rc)
        rc = op_tell(self, &op, event->head.flags & BPF_OP_NO_LENGTH);
    return rc ? rc : op_renamed(self, &op);
}

/* A transfer between a recorded file and something else is a read or a write of the file. */
static int copy_event(struct bpf_decode *self, const struct bpf_event_copy *event)
{
    struct decode_thread *thread;
    struct trace_op op;
    uint32_t file2;
    int rc = thread_of(self, &event->op.head, &thread);

    if (rc || !bpf_op_fill(&event->op, &op))
        return rc;
    rc = op_prepare(self, &event->op, thread, &op);
    if (!rc)
        rc = bpf_names_number(&self->names, &event->file2, &file2);
    if (rc)
        return rc;
    if (op.file != TRACE_NONE_U32 && file2 != TRACE_NONE_U32) {
        op.file2 = file2;
    } else if (op.file != TRACE_NONE_U32) {
        op.kind = TRACE_READ;
        op.flags |= TRACE_F_DERIVED;
    } else {
        op.kind = TRACE_WRITE;
        op.flags |= TRACE_F_DERIVED;
        op.file = file2;
        op.offset = event->offset2;
    }
    return session_op(self->session, &op);
}

/* ---- asynchronous ops -------------------------------------------------------------------- */

static struct bpf_table_key flight_key(const struct bpf_event *head, uint64_t cookie,
                                       uint64_t context)
{
    /* libaio names are user addresses, which other processes have too. */
    return (struct bpf_table_key){
        cookie, context, head->api == TRACE_API_LIBAIO ? head->pid : UINT64_C(1) << 32};
}

static int flight_end(struct bpf_decode *self, struct flight *flight)
{
    int rc = op_tell(self, &flight->op, flight->no_length);

    free(flight);
    return rc;
}

static int submit_returned(struct bpf_decode *self, struct decode_thread *thread, int64_t taken,
                           uint64_t now_ns)
{
    struct flight *flight;
    int rc = 0;

    while ((flight = flight_list_pop(&thread->submitted))) {
        int end;

        flight->submitting = false;
        if (now_ns)
            flight->op.submit_ns = now_ns - (uint64_t)flight->op.issue_ns;
        if (flight->done) {
            end = flight_end(self, flight);
            rc = rc ? rc : end;
        } else if ((int64_t)flight->index >= taken) { /* the kernel did not take it */
            bpf_table_remove(&self->flights, flight->key);
            free(flight);
        }
    }
    return rc;
}

/* An op of the same name is still there: its end was lost, or made no event. */
static int flight_forget(struct bpf_decode *self, struct flight *flight)
{
    bpf_table_remove(&self->flights, flight->key);
    flight->done = true;
    return flight->submitting ? 0 : flight_end(self, flight);
}

static int submit_event(struct bpf_decode *self, const struct bpf_event_op *event)
{
    struct decode_thread *thread;
    struct flight *flight, *stale;
    int rc = thread_of(self, &event->head, &thread);

    if (rc)
        return rc;
    if (event->head.api == TRACE_API_LIBAIO && event->head.flags & BPF_OP_FIRST)
        rc = submit_returned(self, thread, INT64_MAX, 0); /* its return was lost */
    if (rc)
        return rc;
    flight = calloc(1, sizeof(*flight));
    if (!flight)
        return -ENOMEM;
    if (!bpf_op_fill(event, &flight->op)) {
        free(flight);
        return 0;
    }
    flight->key = flight_key(&event->head, event->cookie, event->context);
    flight->no_length = event->head.flags & BPF_OP_NO_LENGTH;
    stale = bpf_table_find(&self->flights, flight->key);
    rc = stale ? flight_forget(self, stale) : 0;
    if (!rc)
        rc = op_prepare(self, event, thread, &flight->op);
    if (!rc && (flight->op.kind == TRACE_RENAME)) {
        flight->from = strdup(self->path);
        flight->to = strdup(self->base);
    }
    if (!rc)
        rc = bpf_table_put(&self->flights, flight->key, flight);
    if (rc) {
        free(flight->from);
        free(flight->to);
        free(flight);
        return rc;
    }
    if (event->head.api == TRACE_API_LIBAIO) {
        flight->submitting = true;
        flight->index = (uint32_t)event->extra;
        flight_list_push(&thread->submitted, flight);
    }
    return 0;
}

static int complete_event(struct bpf_decode *self, const struct bpf_event_complete *event)
{
    struct bpf_table_key key = flight_key(&event->head, event->cookie, event->context);
    struct flight *flight = bpf_table_remove(&self->flights, key);
    int rc = 0;

    if (!flight) /* a kind that is not recorded, or begun before the capture */
        return 0;
    flight->op.latency_ns = event->time_ns - (uint64_t)flight->op.issue_ns;
    flight->op.completion =
        event->head.flags & BPF_OP_EXACT ? TRACE_COMPLETION_EXACT : TRACE_COMPLETION_UPPER;
    flight->op.result = bpf_op_result(flight->op.kind, event->result);
    flight->done = true;
    if (flight->from && flight->to && flight->op.result == 0)
        rc = bpf_names_renamed(&self->names, flight->from, flight->to);
    free(flight->from);
    free(flight->to);
    flight->from = flight->to = NULL;
    if (rc || flight->submitting)
        return rc;
    return flight_end(self, flight);
}

/* The context or the process has ended: what had not completed never tells. */
static int flights_gone(struct bpf_decode *self, uint32_t pid, uint64_t context)
{
    struct flight *flight;
    size_t at = 0;
    int rc = 0;

    while (!rc && (flight = bpf_table_next(&self->flights, &at, NULL)))
        if (flight->key.c == pid && (!context || flight->key.b == context))
            rc = flight_forget(self, flight);
    return rc;
}

static int exit_event(struct bpf_decode *self, const struct bpf_event *event)
{
    struct bpf_table_key key = {event->tid, 0, 0};
    struct decode_thread *thread = bpf_table_remove(&self->threads, key);
    int rc = 0;

    if (thread) {
        rc = submit_returned(self, thread, INT64_MAX, 0);
        if (!rc)
            rc = pages_flush(self, thread);
        thread_free(thread);
    }
    if (event->flags & 1)
        maps_forget(self, event->pid);
    if (!rc && event->flags & 1)
        rc = flights_gone(self, event->pid, 0);
    return rc;
}

/* ---- events ------------------------------------------------------------------------------ */

static size_t event_bytes(unsigned int type)
{
    static const size_t bytes[] = {
        [BPF_EVENT_OP] = sizeof(struct bpf_event_op),
        [BPF_EVENT_COPY] = sizeof(struct bpf_event_copy),
        [BPF_EVENT_SUBMIT] = sizeof(struct bpf_event_op),
        [BPF_EVENT_COMPLETE] = sizeof(struct bpf_event_complete),
        [BPF_EVENT_SUBMITTED] = sizeof(struct bpf_event_complete),
        [BPF_EVENT_GONE] = sizeof(struct bpf_event_complete),
        [BPF_EVENT_FILE] = sizeof(struct bpf_event_file),
        [BPF_EVENT_PATH] = sizeof(struct bpf_event_file),
        [BPF_EVENT_THREAD] = sizeof(struct bpf_event_task),
        [BPF_EVENT_FORK] = sizeof(struct bpf_event),
        [BPF_EVENT_EXEC] = sizeof(struct bpf_event_task),
        [BPF_EVENT_EXIT] = sizeof(struct bpf_event),
    };

    return type < sizeof(bytes) / sizeof(bytes[0]) ? bytes[type] : 0;
}

int bpf_decode_event(struct bpf_decode *self, const void *bytes, size_t size)
{
    const struct bpf_event *head = bytes;
    const struct bpf_event_complete *complete = bytes;
    struct decode_thread *thread;
    size_t least;
    int rc;

    if (size < sizeof(*head))
        return -EBADMSG;
    least = event_bytes(head->type);
    if (!least || size < least)
        return -EBADMSG;
    switch (head->type) {
    case BPF_EVENT_OP: return op_event(self, bytes);
    case BPF_EVENT_COPY: return copy_event(self, bytes);
    case BPF_EVENT_SUBMIT: return submit_event(self, bytes);
    case BPF_EVENT_COMPLETE: return complete_event(self, bytes);
    case BPF_EVENT_SUBMITTED:
        rc = thread_of(self, head, &thread);
        return rc ? rc : submit_returned(self, thread, complete->result, complete->time_ns);
    case BPF_EVENT_GONE: return flights_gone(self, head->pid, complete->context);
    case BPF_EVENT_FILE: return bpf_names_event(&self->names, bytes, size);
    case BPF_EVENT_PATH: return path_event(self, bytes, size);
    case BPF_EVENT_FORK: return fork_event(self, head);
    case BPF_EVENT_EXEC: maps_forget(self, head->pid); return thread_event(self, bytes);
    case BPF_EVENT_THREAD: return thread_event(self, bytes);
    case BPF_EVENT_EXIT: return exit_event(self, head);
    default: return 0;
    }
}

/* ---- the end ----------------------------------------------------------------------------- */

int bpf_decode_running(struct bpf_decode *self, uint32_t tid, const struct bpf_thread *thread,
                       const struct bpf_call *call)
{
    struct bpf_event_op event = {
        .head = {.type = BPF_EVENT_OP,
                 .kind = call->kind,
                 .api = TRACE_API_SYNC,
                 .class = call->class,
                 .pid = thread->pid,
                 .tid = tid},
        .issue_ns = thread->enter_ns,
        .done_ns = thread->enter_ns,
        .offset = thread->args[call->offset & 7],
        .length = thread->args[call->length & 7],
        .file = thread->key,
        .file_flags = thread->file_flags,
        .call_flags = (uint32_t)thread->args[call->rwf & 7],
        .extra = thread->args[call->extra & 7],
    };
    struct decode_thread *known;
    struct trace_op op;
    int rc;

    if (call->class == BPF_CLASS_POSITION) {
        event.offset = thread->position;
        event.head.flags |= BPF_OP_POSITION;
    } else if (call->class == BPF_CLASS_VECTOR) {
        event.head.api = TRACE_API_VECTORED;
        event.length = 0; /* the vector is the program's, which has gone on */
        if (call->offset == BPF_ARG_NONE) {
            event.offset = thread->position;
            event.head.flags |= BPF_OP_POSITION;
        }
    } else if (call->class != BPF_CLASS_RANGE && call->class != BPF_CLASS_FD) {
        return 0;
    }
    rc = thread_of(self, &event.head, &known);
    if (rc || !bpf_op_fill(&event, &op))
        return rc;
    op.latency_ns = TRACE_UNKNOWN_U64;
    op.result = TRACE_UNKNOWN_I64;
    op.completion = TRACE_COMPLETION_UNKNOWN;
    op.flags |= TRACE_F_INFLIGHT;
    rc = op_prepare(self, &event, known, &op);
    return rc ? rc : session_op(self->session, &op);
}

int bpf_decode_finish(struct bpf_decode *self)
{
    struct decode_thread *thread;
    struct flight *flight;
    size_t at = 0;
    int rc = bpf_decode_idle(self);

    while (!rc && (thread = bpf_table_next(&self->threads, &at, NULL)))
        rc = submit_returned(self, thread, INT64_MAX, 0);
    at = 0;
    while (!rc && (flight = bpf_table_next(&self->flights, &at, NULL))) {
        flight->op.flags |= TRACE_F_INFLIGHT;
        rc = flight_forget(self, flight);
    }
    return rc;
}

void bpf_decode_release(struct bpf_decode *self)
{
    struct decode_thread *thread;
    struct bpf_maps *maps;
    struct flight *flight;
    size_t at = 0;

    while ((thread = bpf_table_next(&self->threads, &at, NULL))) {
        while ((flight = flight_list_pop(&thread->submitted)))
            if (flight->done)
                free(flight);
        thread_free(thread);
    }
    at = 0;
    while ((flight = bpf_table_next(&self->flights, &at, NULL))) {
        free(flight->from);
        free(flight->to);
        free(flight);
    }
    at = 0;
    while ((maps = bpf_table_next(&self->maps, &at, NULL))) {
        bpf_maps_release(maps);
        free(maps);
    }
    bpf_names_release(&self->names);
    bpf_positions_release(&self->positions);
    bpf_table_release(&self->threads);
    bpf_table_release(&self->flights);
    bpf_table_release(&self->maps);
}
