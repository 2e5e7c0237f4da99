/* SPDX-License-Identifier: MIT */
/*
 * For tests of recorders: a session that keeps what it is told, and a run of the recorder over
 * a child that does a known sequence and writes down what it did. Include once, in a test.
 */
#ifndef TESTS_BPF_SESSION_H
#define TESTS_BPF_SESSION_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/recorder.h"

enum {
    TRUTH_MAX = 1 << 16
};

/* One op as the child did it. batch: ops of one call have the same number, 0 = alone. */
struct truth {
    uint32_t kind, api, flags, batch;
    uint64_t offset, length;
    int64_t result;
    char path[64]; /* name within the test's folder */
};

struct truths {
    uint32_t count;
    struct truth list[TRUTH_MAX];
};

struct kept_file {
    char *path;
    struct trace_file facts;
};

struct kept_stream {
    uint32_t pid, tid, ppid;
    char comm[17];
};

struct session {
    struct capture_scope scope;
    struct diag diag;
    struct trace_op *ops;
    size_t op_count, op_room;
    struct kept_file *files;
    size_t file_count;
    struct kept_stream *streams;
    size_t stream_count;
    uint64_t lost, unseen, passed;
};

static struct truths *truths; /* shared with the child */

int session_file(struct session *session, const struct trace_file *facts, uint32_t *ret_file)
{
    for (size_t i = 0; i < session->file_count; i++)
        if (strcmp(session->files[i].path, facts->path) == 0 &&
            session->files[i].facts.inode == facts->inode) {
            *ret_file = (uint32_t)i;
            return 0;
        }
    session->files =
        realloc(session->files, (session->file_count + 1) * sizeof(*session->files));
    assert_non_null(session->files);
    session->files[session->file_count].path = strdup(facts->path);
    session->files[session->file_count].facts = *facts;
    *ret_file = (uint32_t)session->file_count++;
    return 0;
}

int session_stream(struct session *session, uint32_t pid, uint32_t tid, uint32_t ppid,
                   const char *comm, uint32_t *ret_stream)
{
    struct kept_stream *stream;

    session->streams =
        realloc(session->streams, (session->stream_count + 1) * sizeof(*session->streams));
    assert_non_null(session->streams);
    stream = &session->streams[session->stream_count];
    *stream = (struct kept_stream){.pid = pid, .tid = tid, .ppid = ppid};
    snprintf(stream->comm, sizeof(stream->comm), "%s", comm);
    *ret_stream = (uint32_t)session->stream_count++;
    return 0;
}

int session_op(struct session *session, const struct trace_op *op)
{
    if (session->op_count == session->op_room) {
        session->op_room = session->op_room ? session->op_room * 2 : 1024;
        session->ops = realloc(session->ops, session->op_room * sizeof(*session->ops));
        assert_non_null(session->ops);
    }
    session->ops[session->op_count++] = *op;
    return 0;
}

void session_lost(struct session *session, const char *kind, int cpu, uint64_t count)
{
    printf("lost %s on cpu %d: %llu\n", kind, cpu, (unsigned long long)count);
    session->lost += count;
}

void session_unseen(struct session *session, const char *kind, uint64_t count)
{
    printf("unseen %s: %llu\n", kind, (unsigned long long)count);
    session->unseen += count;
}

void session_passed(struct session *session, uint64_t count)
{
    session->passed += count;
}

void session_note(struct session *session, const char *format, ...)
{
    va_list args;

    (void)session;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

const struct capture_scope *session_scope(const struct session *session)
{
    return &session->scope;
}

struct diag *session_diag(struct session *session)
{
    return &session->diag;
}

static inline void session_clear(struct session *session)
{
    for (size_t i = 0; i < session->file_count; i++)
        free(session->files[i].path);
    free(session->files);
    free(session->streams);
    free(session->ops);
    memset(session, 0, sizeof(*session));
}

/* ---- the child's side -------------------------------------------------------------------- */

/* Writes down an op; returns result, as calls give it (-1 and errno) or raw (-errno). */
static inline int64_t did(uint32_t kind, uint32_t api, const char *path, uint64_t offset,
                          uint64_t length, int64_t result)
{
    uint32_t n = __atomic_fetch_add(&truths->count, 1, __ATOMIC_RELAXED);
    struct truth *truth = &truths->list[n];

    if (n >= TRUTH_MAX)
        abort();
    *truth = (struct truth){.kind = kind,
                            .api = api,
                            .offset = offset,
                            .length = length,
                            .result = result == -1 ? -errno : result};
    snprintf(truth->path, sizeof(truth->path), "%s", path);
    return result;
}

static inline void did_flags(uint32_t flags)
{
    truths->list[truths->count - 1].flags = flags;
}

/* ---- running ----------------------------------------------------------------------------- */

/* Ends the test program as skipped when the recorder cannot run here. */
static inline void recorder_need(const struct recorder *recorder)
{
    char reason[256] = "", fix[256] = "";
    bool can = !recorder->unavailable &&
               recorder->probe(reason, sizeof(reason), fix, sizeof(fix)) == 0;

    if (can)
        return;
    printf("the %s recorder cannot run here: %s\n", recorder->name,
           recorder->unavailable ? recorder->unavailable : reason);
    exit(77);
}

static inline void truths_new(void)
{
    truths =
        mmap(NULL, sizeof(*truths), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(truths != MAP_FAILED);
}

/* Starts work in a child that waits for a byte on *ret_go. */
static inline pid_t child_start(int (*work)(void), int *ret_go)
{
    int go[2];
    pid_t pid;
    char byte;

    assert_int_equal(pipe(go), 0);
    fflush(stdout);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(go[1]);
        if (read(go[0], &byte, 1) != 1)
            _exit(99);
        _exit(work());
    }
    close(go[0]);
    *ret_go = go[1];
    return pid;
}

static inline void recorder_drain(const struct recorder *recorder, void *state)
{
    int rc;

    assert_int_equal(recorder->stop(state), 0);
    while ((rc = recorder->poll(state, 0)) > 0)
        ;
    assert_int_equal(rc, 0);
}

/* Records work in a child of its own, which must end with 0. */
static inline void record_once(const struct recorder *recorder, struct session *session,
                          int (*work)(void))
{
    int go, status = 0, rc;
    pid_t pid;
    void *state;

    truths->count = 0;
    pid = child_start(work, &go);
    rc = recorder->open(session, &state);
    if (rc)
        fail_msg("open: %d %s", rc, session->diag.text);
    if (recorder->started)
        assert_int_equal(recorder->started(state, pid), 0);
    assert_int_equal(write(go, "g", 1), 1);
    while (waitpid(pid, &status, WNOHANG) == 0)
        assert_true(recorder->poll(state, 10) >= 0);
    close(go);
    recorder_drain(recorder, state);
    recorder->close(state);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define RECORD_ATTEMPTS 5

/*
 * As record_once, and nothing may be lost. The kernel may take a page of the target's from its
 * page table at any time; BPF then cannot read it and says so, as a loss. Every other fact is
 * checked in the attempt that had none.
 */
static inline void record(const struct recorder *recorder, struct session *session,
                          int (*work)(void))
{
    for (int attempt = 1;; attempt++) {
        record_once(recorder, session, work);
        if (!session->lost || attempt == RECORD_ATTEMPTS)
            break;
        session_clear(session);
        unlink("a");
    }
    assert_int_equal(session->lost, 0);
}

/* ---- comparing --------------------------------------------------------------------------- */

static inline int op_by_time(const void *a, const void *b)
{
    const struct trace_op *x = a, *y = b;

    return x->issue_ns < y->issue_ns ? -1 : x->issue_ns > y->issue_ns;
}

static inline const char *leaf_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static inline bool op_in_folder(const struct session *session, const struct trace_op *op)
{
    char folder[4096];

    return op->file != TRACE_NONE_U32 && getcwd(folder, sizeof(folder)) &&
           strncmp(session->files[op->file].path, folder, strlen(folder)) == 0;
}

/* Keeps only the ops on files of the working folder, in issue order. */
static inline void session_only_folder(struct session *session)
{
    size_t kept = 0;

    for (size_t i = 0; i < session->op_count; i++)
        if (op_in_folder(session, &session->ops[i]))
            session->ops[kept++] = session->ops[i];
    session->op_count = kept;
}

static inline void session_sort(struct session *session)
{
    /* Insertion keeps the order of delivery among equal times. */
    for (size_t i = 1; i < session->op_count; i++) {
        struct trace_op op = session->ops[i];
        size_t at = i;

        while (at > 0 && op_by_time(&op, &session->ops[at - 1]) < 0) {
            session->ops[at] = session->ops[at - 1];
            at--;
        }
        session->ops[at] = op;
    }
}

static inline void op_print(const struct session *session, size_t i)
{
    const struct trace_op *op = &session->ops[i];

    printf("  [%zu] %s %s off %lld len %llu res %lld flags %x arg %x batch %lld %s\n", i,
           trace_op_name(op->kind), trace_api_name(op->api), (long long)op->offset,
           (unsigned long long)op->length, (long long)op->result, op->flags, op->arg,
           (long long)op->batch,
           op->file == TRACE_NONE_U32 ? "-" : session->files[op->file].path);
}

static inline bool truth_matches(const struct session *session, const struct truth *truth,
                                 const struct trace_op *op)
{
    return op->kind == truth->kind && op->api == truth->api && op->result == truth->result &&
           op->length == truth->length &&
           (op->offset == truth->offset || !trace_op_has_range(op->kind)) &&
           op->file != TRACE_NONE_U32 &&
           strcmp(leaf_of(session->files[op->file].path), truth->path) == 0 &&
           (op->flags & truth->flags) == truth->flags;
}

/* Op for op, in order: the truth and nothing else, on the files of the working folder. */
static inline void assert_truth(struct session *session)
{
    uint64_t batch_of[256] = {0};

    session_only_folder(session);
    session_sort(session);
    for (size_t i = 0; i < session->op_count && i < truths->count; i++) {
        const struct truth *truth = &truths->list[i];

        if (!truth_matches(session, truth, &session->ops[i])) {
            op_print(session, i);
            fail_msg("op %zu is not %s off %lld len %llu res %lld %s", i,
                     trace_op_name(truth->kind), (long long)truth->offset,
                     (unsigned long long)truth->length, (long long)truth->result, truth->path);
        }
        if (!truth->batch) {
            assert_int_equal(session->ops[i].batch, TRACE_UNKNOWN_U64);
        } else if (!batch_of[truth->batch & 255]) {
            batch_of[truth->batch & 255] = session->ops[i].batch;
            assert_int_not_equal(session->ops[i].batch, TRACE_UNKNOWN_U64);
        } else {
            assert_int_equal(session->ops[i].batch, batch_of[truth->batch & 255]);
        }
    }
    if (session->op_count != truths->count)
        for (size_t i = truths->count; i < session->op_count; i++)
            op_print(session, i);
    assert_int_equal(session->op_count, truths->count);
}

#endif
