/* SPDX-License-Identifier: MIT */
/*
 * The bpf recorder: programs on the system call, io_uring and process tracepoints deliver every
 * I/O call of the target through one ring buffer, in the order they happened.
 */
#include "capture/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/bpf_calls.h"
#include "capture/bpf_decode.h"
#include "capture/bpf_loader.h"
#include "capture/bpf_plain.h"
#include "capture/descend.h"

#ifndef HAVE_BPF
#define HAVE_BPF 0
#endif

#if HAVE_LIB && HAVE_BPF

#include <bpf/bpf.h>

enum {
    RING_BYTES_DEFAULT = 8 << 20,  /* per CPU */
    COMPLETE_ARGUMENTS_BY_CQE = 3, /* of io_uring_complete since 6.14; more before */
    SUBMIT_SQE_ARGUMENTS = 2,      /* of io_uring_submit_sqe from 5.19 to 6.2 */
};

/* The object, in this program's read-only data. */
__asm__(".section .rodata\n"
        ".balign 8\n"
        "bpf_object_start:\n"
        ".incbin \"" BPF_OBJECT "\"\n"
        "bpf_object_end:\n"
        ".previous\n");
extern const char bpf_object_start[], bpf_object_end[];

struct with_bpf {
    struct session *session;
    struct bpf_loader loader;
    struct bpf_decode decode;
    struct bpf_call calls[BPF_CALLS_MAX];
    bool stopped, finished;
};

/* ---- scope ------------------------------------------------------------------------------- */

/* A cgroup's number is its folder's inode; its level the depth below the mount of cgroup2. */
static int scope_cgroup(struct with_bpf *self, const char *path, struct diag *diag)
{
    char text[4096], *resolved = realpath(path, text);
    struct stat facts, above;
    __u64 id;
    __u32 level = 0;
    int rc;

    if (!resolved || stat(resolved, &facts) != 0)
        return diag_errno(diag, -errno, "cgroup %s", path);
    if (!S_ISDIR(facts.st_mode))
        return diag_set(diag, -ENOTDIR, "cgroup %s: not a folder of a cgroup v2 mount", path);
    id = facts.st_ino;
    for (;;) {
        char *slash = strrchr(text, '/');

        if (!slash || slash == text)
            break;
        *slash = '\0';
        if (stat(text, &above) != 0 || above.st_dev != facts.st_dev)
            break;
        level++;
    }
    rc = bpf_loader_set(&self->loader, "scope_cgroup", &id, sizeof(id));
    return rc ? rc : bpf_loader_set(&self->loader, "scope_cgroup_level", &level, sizeof(level));
}

static int scope_set(struct with_bpf *self, const struct capture_scope *scope)
{
    __u32 kind = BPF_SCOPE_TASKS, pid = (__u32)getpid();
    char comm[16] = "";
    int rc = 0;

    if (scope->cgroup) {
        kind = BPF_SCOPE_CGROUP;
        rc = scope_cgroup(self, scope->cgroup, session_diag(self->session));
    } else if (scope->system) {
        kind = BPF_SCOPE_SYSTEM;
    }
    if (scope->comm)
        strncpy(comm, scope->comm, sizeof(comm) - 1);
    if (!rc)
        rc = bpf_loader_set(&self->loader, "scope_kind", &kind, sizeof(kind));
    if (!rc)
        rc = bpf_loader_set(&self->loader, "self_tgid", &pid, sizeof(pid));
    if (!rc)
        rc = bpf_loader_set(&self->loader, "scope_comm", comm, sizeof(comm));
    if (!rc)
        rc = bpf_loader_set(&self->loader, "all_fds", &scope->all_fds, sizeof(scope->all_fds));
    return rc;
}

static int target_add(struct with_bpf *self, pid_t pid)
{
    __u32 key = (__u32)pid, one = 1;
    int fd = bpf_loader_map_fd(&self->loader, "targets");

    if (bpf_map_update_elem(fd, &key, &one, BPF_ANY) != 0)
        return diag_errno(session_diag(self->session), -errno, "recording process %d",
                          (int)pid);
    return 0;
}

static int targets_add(struct with_bpf *self, const struct capture_scope *scope)
{
    char text[64];
    int rc = 0;

    for (size_t i = 0; !rc && i < scope->pid_count; i++) {
        snprintf(text, sizeof(text), "/proc/%d", (int)scope->pids[i]);
        if (access(text, F_OK) != 0)
            return diag_set(session_diag(self->session), -ESRCH, "process %d: there is none",
                            (int)scope->pids[i]);
        rc = target_add(self, scope->pids[i]);
    }
    return rc;
}

static int descendant_add(void *self, pid_t pid)
{
    return target_add(self, pid);
}

/* ---- settings ---------------------------------------------------------------------------- */

static int calls_set(struct with_bpf *self)
{
    struct bpf_call uring[BPF_URING_MAX];
    __u8 compat[BPF_CALLS_MAX];
    int rc;

    bpf_calls_fill(self->calls);
    bpf_calls_fill_uring(uring);
    bpf_calls_fill_compat(compat);
    rc = bpf_loader_set(&self->loader, "calls", self->calls, sizeof(self->calls));
    if (!rc)
        rc = bpf_loader_set(&self->loader, "uring_calls", uring, sizeof(uring));
    if (!rc)
        rc = bpf_loader_set(&self->loader, "compat_io", compat, sizeof(compat));
    return rc;
}

/* io_uring's tracepoints change name and arguments with the kernel: the right ones are chosen
 * here, and what cannot be seen is said. */
static int uring_choose(struct with_bpf *self)
{
    int arguments = 0;
    bool req, sqe, complete, by_cqe;

    req = bpf_loader_has_tracepoint(&self->loader, "io_uring_submit_req", NULL);
    sqe = !req && bpf_loader_has_tracepoint(&self->loader, "io_uring_submit_sqe", &arguments) &&
          arguments == SUBMIT_SQE_ARGUMENTS;
    complete = bpf_loader_has_tracepoint(&self->loader, "io_uring_complete", &arguments);
    by_cqe = complete && arguments == COMPLETE_ARGUMENTS_BY_CQE;
    if (!req)
        bpf_loader_skip(&self->loader, "on_uring_submit_req");
    if (!sqe)
        bpf_loader_skip(&self->loader, "on_uring_submit_sqe");
    if (!complete)
        bpf_loader_skip(&self->loader, "on_uring_complete");
    if ((!req && !sqe) || !complete)
        session_note(self->session,
                     "io_uring is not seen: this kernel lacks the tracepoints of "
                     "5.19 and newer");
    return bpf_loader_set(&self->loader, "complete_by_cqe", &by_cqe, sizeof(by_cqe));
}

/* Page-cache tracepoints speak of folios since 5.16. */
static int pages_choose(struct with_bpf *self)
{
    __u64 page_bytes = (__u64)sysconf(_SC_PAGESIZE);

    if (!bpf_loader_has_tracepoint(&self->loader, "writeback_dirty_folio", NULL) ||
        !bpf_loader_has_tracepoint(&self->loader, "mm_filemap_add_to_page_cache", NULL)) {
        bpf_loader_skip(&self->loader, "on_page_fill");
        bpf_loader_skip(&self->loader, "on_page_dirty");
        session_unseen(self->session, "mmap", 1);
        session_note(self->session, "I/O through mappings is not seen: this kernel lacks the "
                                    "page-cache tracepoints of 5.16 and newer");
    }
    return bpf_loader_set(&self->loader, "page_bytes", &page_bytes, sizeof(page_bytes));
}

static int record_event(void *context, const void *bytes, size_t size)
{
    struct with_bpf *self = context;

    return bpf_decode_event(&self->decode, bytes, size);
}

static uint64_t ring_bytes(const struct capture_scope *scope)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    return (scope->ring_bytes ? scope->ring_bytes : RING_BYTES_DEFAULT) *
           (uint64_t)(cpus > 0 ? cpus : 1);
}

static int with_bpf_sample(void *state, unsigned int one_in)
{
    struct with_bpf *self = state;
    __u32 zero = 0, value = one_in;

    if (bpf_map_update_elem(bpf_loader_map_fd(&self->loader, "sample"), &zero, &value,
                            BPF_ANY) != 0)
        return diag_errno(session_diag(self->session), -errno, "sampling");
    return 0;
}

static int loader_start(struct with_bpf *self, const struct capture_scope *scope)
{
    int rc = scope_set(self, scope);

    if (!rc)
        rc = calls_set(self);
    if (!rc)
        rc = uring_choose(self);
    if (!rc)
        rc = pages_choose(self);
    if (!rc)
        rc = bpf_loader_load(&self->loader, ring_bytes(scope), record_event, self);
    if (!rc)
        rc = targets_add(self, scope);
    if (!rc && scope->sample > 1)
        rc = with_bpf_sample(self, scope->sample);
    if (!rc)
        rc = bpf_loader_attach(&self->loader);
    /* From here on who forks is followed: those that ran before are all there is to add. */
    if (!rc && scope->pid_count > 0)
        rc = descend(scope->pids, scope->pid_count, descendant_add, self);
    return rc;
}

/* ---- the recorder ------------------------------------------------------------------------ */

static int with_bpf_probe(char *reason, size_t reason_size, char *fix, size_t fix_size)
{
    int rc = bpf_loader_probe(reason, reason_size, fix, fix_size);

    if (rc)
        return rc;
    reason[0] = '\0';
    if (bpf_loader_kernel_before(5, 16))
        snprintf(reason, reason_size,
                 "but sees neither io_uring (kernel 5.19) nor mapped files (5.16)");
    else if (bpf_loader_kernel_before(5, 19))
        snprintf(reason, reason_size, "but does not see io_uring (kernel 5.19)");
    return 0;
}

static int with_bpf_accepts(const struct capture_scope *scope, struct diag *diag)
{
    if (scope->device_count)
        return diag_set(diag, -EINVAL,
                        "the bpf recorder sees system calls, not the requests of "
                        "a device: use --recorder block");
    if (scope->content)
        return diag_set(diag, -EINVAL,
                        "--content needs the preload recorder: bpf does not read buffers");
    return 0;
}

static void with_bpf_close(void *state)
{
    struct with_bpf *self = state;

    if (!self)
        return;
    bpf_loader_release(&self->loader);
    bpf_decode_release(&self->decode);
    free(self);
}

static int object_open(struct with_bpf *self)
{
    bool plain = bpf_loader_kernel_old() || bpf_loader_kernel_before(6, 2);
    const char *begin = plain ? bpf_plain_start : bpf_object_start;
    const char *end = plain ? bpf_plain_end : bpf_object_end;

    return bpf_loader_open(&self->loader, begin, (size_t)(end - begin),
                           session_diag(self->session));
}

static int with_bpf_open(struct session *session, void **ret_state)
{
    struct with_bpf *self = calloc(1, sizeof(*self));
    int rc;

    if (!self)
        return -ENOMEM;
    self->session = session;
    bpf_decode_init(&self->decode, session);
    rc = object_open(self);
    if (!rc)
        rc = loader_start(self, session_scope(session));
    if (rc) {
        with_bpf_close(self);
        return rc;
    }
    *ret_state = self;
    return 0;
}

static int with_bpf_started(void *state, pid_t pid)
{
    return target_add(state, pid);
}

/* Calls that have not returned when the programs are gone: their slots still say so. */
static int running_tell(struct with_bpf *self)
{
    int fd = bpf_loader_map_fd(&self->loader, "threads"), rc = 0;
    struct bpf_thread thread;
    __u32 tid, *previous = NULL, last;

    while (!rc && bpf_map_get_next_key(fd, previous, &tid) == 0) {
        if (bpf_map_lookup_elem(fd, &tid, &thread) == 0 && thread.call &&
            thread.call <= BPF_CALLS_MAX)
            rc = bpf_decode_running(&self->decode, tid, &thread, &self->calls[thread.call - 1]);
        last = tid;
        previous = &last;
    }
    return rc;
}

static int with_bpf_poll(void *state, int timeout_ms)
{
    struct with_bpf *self = state;
    int n = bpf_loader_poll(&self->loader, self->stopped ? 0 : timeout_ms), rc;

    bpf_loader_tell_losses(&self->loader, self->session, self->stopped && n == 0);
    if (n == 0)
        n = bpf_decode_idle(&self->decode);
    if (n != 0 || !self->stopped || self->finished)
        return n;
    self->finished = true;
    rc = running_tell(self);
    return rc ? rc : bpf_decode_finish(&self->decode);
}

static int with_bpf_stop(void *state)
{
    struct with_bpf *self = state;

    bpf_loader_detach(&self->loader);
    self->stopped = true;
    return 0;
}

static int with_bpf_cost(void *state, uint64_t *ret_ns)
{
    struct with_bpf *self = state;

    return bpf_loader_cost(&self->loader, ret_ns);
}

#endif

const struct recorder recorder_bpf = {
    .name = "bpf",
    .summary = "system calls, libaio and io_uring of any program, seen from the kernel",
    .help =
        "Sees every thread and child, static and setuid programs, Go. Completions of libaio\n"
        "are exact when they arrived while io_getevents waited for them, else upper bounds\n"
        "taken at the context's next call. io_uring is exact on both sides, with SQPOLL,\n"
        "registered files and buffers. 32-bit programs are counted as unseen. sendfile and\n"
        "splice between a file and a pipe or socket are reads or writes of the file. Of\n"
        "mapped files the pages are seen that loads and stores bring in (fill) and make\n"
        "dirty (writeback, at the time of the store; each is written once).",
#if HAVE_LIB && HAVE_BPF
    .probe = with_bpf_probe,
    .accepts = with_bpf_accepts,
    .open = with_bpf_open,
    .started = with_bpf_started,
    .poll = with_bpf_poll,
    .cost = with_bpf_cost,
    .sample = with_bpf_sample,
    .stop = with_bpf_stop,
    .close = with_bpf_close,
#elif HAVE_LIB
    .unavailable = "built without clang",
#else
    .unavailable = "built without libbpf",
#endif
    .op_cost_ns = 600,
    .issue_seen = {[TRACE_API_SYNC] = SEES_EXACT,
                   [TRACE_API_VECTORED] = SEES_EXACT,
                   [TRACE_API_LIBAIO] = SEES_EXACT,
                   [TRACE_API_IO_URING] = SEES_EXACT,
                   [TRACE_API_POSIX_AIO] = SEES_DERIVED,
                   [TRACE_API_MMAP] = SEES_DERIVED,
                   [TRACE_API_STDIO] = SEES_DERIVED},
    .completion_seen = {[TRACE_API_SYNC] = SEES_EXACT,
                        [TRACE_API_VECTORED] = SEES_EXACT,
                        [TRACE_API_LIBAIO] = SEES_UPPER,
                        [TRACE_API_IO_URING] = SEES_EXACT,
                        [TRACE_API_POSIX_AIO] = SEES_DERIVED,
                        [TRACE_API_STDIO] = SEES_DERIVED},
};
