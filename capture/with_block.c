/* SPDX-License-Identifier: MIT */
/*
 * The block recorder: every request of the named devices, as the driver got it.
 */
#include "capture/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/bpf_block.h"
#include "capture/bpf_loader.h"
#include "capture/bpf_table.h"

#ifndef HAVE_BPF
#define HAVE_BPF 0
#endif

#if HAVE_LIB && HAVE_BPF

#include <bpf/bpf.h>

enum {
    RING_BYTES_DEFAULT = 4 << 20
}; /* per CPU */

__asm__(".section .rodata\n"
        ".balign 8\n"
        "block_object_start:\n"
        ".incbin \"" BPF_OBJECT "\"\n"
        "block_object_end:\n"
        ".previous\n");
extern const char block_object_start[], block_object_end[];

struct with_block {
    struct session *session;
    struct bpf_loader loader;
    struct block_words words;
    struct block_target *targets;
    uint32_t *files; /* of the targets, in the session's table */
    size_t target_count;
    struct bpf_table streams;  /* tid, pid -> stream number + 1 */
    uint64_t merged, unplaced; /* bios that went into others' requests; requests of no target */
    bool stopped, finished;
};

/* ---- events ------------------------------------------------------------------------------ */

static int stream_number(struct with_block *self, const struct bpf_event_block *event,
                         uint32_t *ret_stream)
{
    struct bpf_table_key key = {event->head.tid, event->head.pid, 0};
    void *known = bpf_table_find(&self->streams, key);
    char comm[sizeof(event->comm) + 1] = "";
    int rc;

    if (known) {
        *ret_stream = (uint32_t)((uintptr_t)known - 1);
        return 0;
    }
    memcpy(comm, event->comm, sizeof(event->comm));
    rc = session_stream(self->session, event->head.pid, event->head.tid, 0, comm, ret_stream);
    return rc ? rc : bpf_table_put(&self->streams, key, (void *)((uintptr_t)*ret_stream + 1));
}

/* The named device an op belongs to: the one that holds its range. A flush has none, and is of
 * the first named on its disk. */
static struct block_target *target_of(struct with_block *self,
                                      const struct bpf_event_block *event,
                                      const struct trace_op *op)
{
    for (size_t i = 0; i < self->target_count; i++) {
        struct block_target *target = &self->targets[i];

        if (target->disk != event->device)
            continue;
        if (op->offset == TRACE_UNKNOWN_U64 ||
            (event->sector >= target->first_sector &&
             event->sector - target->first_sector < target->sectors))
            return target;
    }
    return NULL;
}

static int block_tell(struct with_block *self, const struct bpf_event_block *event, bool done)
{
    struct block_target *target;
    struct trace_op op;
    int rc;

    block_op_fill(&self->words, event, done, &op);
    target = target_of(self, event, &op);
    if (!target) /* another partition of the disk */
        return 0;
    if (op.offset != TRACE_UNKNOWN_U64)
        op.offset -= target->first_sector * 512;
    op.file = self->files[target - self->targets];
    rc = stream_number(self, event, &op.stream);
    if (event->bios > 1)
        self->merged += event->bios - 1;
    return rc ? rc : session_op(self->session, &op);
}

static int block_event(void *context, const void *bytes, size_t size)
{
    if (size < sizeof(struct bpf_event_block))
        return -EBADMSG;
    return block_tell(context, bytes, ((const struct bpf_event_block *)bytes)->done_ns != 0);
}

/* ---- start ------------------------------------------------------------------------------- */

static int targets_open(struct with_block *self, const struct capture_scope *scope)
{
    int rc = 0;

    self->targets = calloc(scope->device_count, sizeof(*self->targets));
    self->files = calloc(scope->device_count, sizeof(*self->files));
    if (!self->targets || !self->files)
        return -ENOMEM;
    for (size_t i = 0; !rc && i < scope->device_count; i++) {
        struct block_target *target = &self->targets[i];

        rc = block_target_init(target, scope->devices[i], session_diag(self->session));
        if (!rc)
            self->target_count++;
    }
    for (size_t i = 0; !rc && i < self->target_count; i++) {
        const struct block_target *target = &self->targets[i];
        struct trace_file facts = {.path = target->path,
                                   .size_bytes = target->sectors * 512,
                                   .device = target->device,
                                   .kind = TRACE_FILE_BLOCK,
                                   .ops = TRACE_UNKNOWN_U64,
                                   .bytes = TRACE_UNKNOWN_U64,
                                   .max_end = TRACE_UNKNOWN_U64};

        rc = session_file(self->session, &facts, &self->files[i]);
    }
    return rc;
}

/* Which argument is the request: tracepoints dropped the queue before it in 5.11. */
static int arguments_set(struct with_block *self)
{
    __u32 request = 0, bio = 0;
    int count = 0, rc;

    if (bpf_loader_has_tracepoint(&self->loader, "block_rq_issue", &count) && count > 1)
        request = 1;
    if (bpf_loader_has_tracepoint(&self->loader, "block_bio_queue", &count) && count > 1)
        bio = 1;
    rc = bpf_loader_set(&self->loader, "request_argument", &request, sizeof(request));
    return rc ? rc : bpf_loader_set(&self->loader, "bio_argument", &bio, sizeof(bio));
}

static int disks_watch(struct with_block *self)
{
    int fd = bpf_loader_map_fd(&self->loader, "disks");

    for (size_t i = 0; i < self->target_count; i++)
        if (bpf_map_update_elem(fd, &self->targets[i].disk, &self->targets[i].mode, BPF_ANY) !=
            0)
            return diag_errno(session_diag(self->session), -errno, "recording %s",
                              self->targets[i].path);
    return 0;
}

static int kernel_word(void *context, const char *name)
{
    return bpf_loader_kernel_number(context, name);
}

static uint64_t ring_bytes(const struct capture_scope *scope)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    return (scope->ring_bytes ? scope->ring_bytes : RING_BYTES_DEFAULT) *
           (uint64_t)(cpus > 0 ? cpus : 1);
}

static int loader_start(struct with_block *self)
{
    const struct capture_scope *scope = session_scope(self->session);
    int rc = targets_open(self, scope);

    if (!rc)
        rc = bpf_loader_open(&self->loader, block_object_start,
                             (size_t)(block_object_end - block_object_start),
                             session_diag(self->session));
    if (!rc)
        block_words_init(&self->words, kernel_word, &self->loader);
    if (!rc)
        rc = arguments_set(self);
    if (!rc)
        rc = bpf_loader_load(&self->loader, ring_bytes(scope), block_event, self);
    if (!rc)
        rc = disks_watch(self);
    if (!rc)
        rc = bpf_loader_attach(&self->loader);
    return rc;
}

/* ---- the recorder ------------------------------------------------------------------------ */

static int with_block_probe(char *reason, size_t reason_size, char *fix, size_t fix_size)
{
    return bpf_loader_probe(reason, reason_size, fix, fix_size);
}

static int with_block_accepts(const struct capture_scope *scope, struct diag *diag)
{
    if (scope->sample > 1 || scope->may_sample)
        return diag_set(diag, -EINVAL,
                        "the block recorder does not sample: the requests of a device go "
                        "through one queue, and a part of them says nothing of its depth");
    if (scope->device_count)
        return 0;
    return diag_set(diag, -EINVAL, "the block recorder needs --device");
}

static void with_block_close(void *state)
{
    struct with_block *self = state;

    if (!self)
        return;
    bpf_loader_release(&self->loader);
    for (size_t i = 0; i < self->target_count; i++)
        block_target_release(&self->targets[i]);
    free(self->targets);
    free(self->files);
    bpf_table_release(&self->streams);
    free(self);
}

static int with_block_open(struct session *session, void **ret_state)
{
    struct with_block *self = calloc(1, sizeof(*self));
    int rc;

    if (!self)
        return -ENOMEM;
    self->session = session;
    bpf_table_init(&self->streams);
    rc = loader_start(self);
    if (rc) {
        with_block_close(self);
        return rc;
    }
    *ret_state = self;
    return 0;
}

/* Requests the device has not completed. */
static int inflight_tell(struct with_block *self)
{
    int fd = bpf_loader_map_fd(&self->loader, "requests"), rc = 0;
    struct bpf_event_block event;
    __u64 key, last, *previous = NULL;

    while (!rc && bpf_map_get_next_key(fd, previous, &key) == 0) {
        if (bpf_map_lookup_elem(fd, &key, &event) == 0 && event.issues)
            rc = block_tell(self, &event, false);
        last = key;
        previous = &last;
    }
    return rc;
}

static int with_block_poll(void *state, int timeout_ms)
{
    struct with_block *self = state;
    int n = bpf_loader_poll(&self->loader, self->stopped ? 0 : timeout_ms);

    bpf_loader_tell_losses(&self->loader, self->session, self->stopped && n == 0);
    if (n != 0 || !self->stopped || self->finished)
        return n;
    self->finished = true;
    if (self->merged)
        session_note(self->session, "%llu bios were merged into requests recorded with others",
                     (unsigned long long)self->merged);
    return inflight_tell(self);
}

static int with_block_stop(void *state)
{
    struct with_block *self = state;

    bpf_loader_detach(&self->loader);
    self->stopped = true;
    return 0;
}

static int with_block_cost(void *state, uint64_t *ret_ns)
{
    struct with_block *self = state;

    return bpf_loader_cost(&self->loader, ret_ns);
}

#endif

const struct recorder recorder_block = {
    .name = "block",
    .summary = "requests of block devices, as their drivers got them",
    .help =
        "An op is a request: issued when the driver got it (the last time, if it was put\n"
        "back), completed when the driver said so. Offsets are of the device or partition\n"
        "named; streams are who queued the first bio. Flushes are ops of their own. On\n"
        "devices without requests (zram, dm, md, brd) an op is a bio. The tape being written\n"
        "to the recorded device is recorded too.",
#if HAVE_LIB && HAVE_BPF
    .probe = with_block_probe,
    .accepts = with_block_accepts,
    .open = with_block_open,
    .poll = with_block_poll,
    .cost = with_block_cost,
    .stop = with_block_stop,
    .close = with_block_close,
#elif HAVE_LIB
    .unavailable = "built without clang",
#else
    .unavailable = "built without libbpf",
#endif
    .op_cost_ns = 600,
    .issue_seen = {[TRACE_API_BLOCK] = SEES_EXACT},
    .completion_seen = {[TRACE_API_BLOCK] = SEES_EXACT},
};
