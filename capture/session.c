/* SPDX-License-Identifier: MIT */
#include "capture/session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <zlib.h>

#include "capture/filter.h"
#include "capture/keep.h"
#include "capture/losses.h"
#include "capture/tapes.h"
#include "capture/window.h"
#include "traces/units.h"

#define WINDOW_OPS 65536
#define WINDOW_NS  INT64_C(250000000)  /* ops wait this long for earlier ones */
#define FLUSH_NS   UINT64_C(500000000) /* a killed capture loses less than a second */
#define RUN_OPS    256
#define KEEP_BYTES (UINT64_C(256) << 20)
#define NOTES_ROOM 4096

struct session {
    struct session_conf conf;
    struct diag *diag;
    struct tables tables;
    struct window window;
    struct filter *filter;
    struct tapes *tapes;
    struct keep keep;
    uint64_t start_ns; /* CLOCK_MONOTONIC of tape time 0 */
    uint64_t flushed_ns, rotated_ns;
    struct losses losses;
    uint64_t untaped_lost; /* --ring: lost since the last dump */
    struct session_totals totals;
    int failed; /* the tape's write error */
    unsigned int sample;   /* one stream in so many; 0: all */
    char sample_steps[512];
    uint64_t passed_told;  /* in the tape */
    uint64_t emitted_ops; /* out of the window: in the tape unless it failed */
    char notes[NOTES_ROOM];
};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The words of a command, quoted where a shell would need it. NULL without memory. */
static char *command_text(char *const *argv)
{
    size_t room = 1, used = 0;
    char *text;

    for (size_t i = 0; argv[i]; i++)
        room += 4 * strlen(argv[i]) + 3;
    text = malloc(room);
    if (!text)
        return NULL;
    for (size_t i = 0; argv[i]; i++) {
        bool plain = argv[i][0] && !argv[i][strcspn(argv[i], " \t\n'\"\\$`&|;<>()*?[]#~!{}")];

        if (i > 0)
            text[used++] = ' ';
        if (!plain)
            text[used++] = '\'';
        for (const char *at = argv[i]; *at; at++) {
            if (*at == '\'') {
                memcpy(text + used, "'\\''", 4);
                used += 4;
            } else {
                text[used++] = *at;
            }
        }
        if (!plain)
            text[used++] = '\'';
    }
    text[used] = '\0';
    return text;
}

static int session_describe(struct session *session)
{
    const struct session_conf *conf = &session->conf;
    struct utsname system;
    char number[32];
    char *command;
    int err;

    snprintf(number, sizeof(number), "%llu",
             (unsigned long long)(clock_ns(CLOCK_REALTIME) -
                                  (clock_ns(CLOCK_MONOTONIC) - session->start_ns)));
    err = session_meta(session, TRACE_META_TOOL, "iotape " IOTAPE_VERSION);
    if (!err && uname(&system) == 0)
        err = session_meta(session, TRACE_META_KERNEL, system.release);
    if (!err)
        err = session_meta(session, TRACE_META_CLOCK, "monotonic");
    if (!err)
        err = session_meta(session, TRACE_META_SOURCE, "capture");
    if (!err)
        err = session_meta(session, TRACE_META_RECORDER, conf->recorder);
    if (!err)
        err = session_meta(session, TRACE_META_START_WALL, number);
    if (!err)
        err = session_meta(session, TRACE_META_CAPTURE_START, "0");
    if (!err && conf->scope.command && !conf->anonymise) {
        command = command_text(conf->scope.command);
        if (!command)
            return diag_errno(session->diag, -ENOMEM, "%s", conf->tape);
        err = session_meta(session, TRACE_META_COMMAND, command);
        free(command);
    }
    return err;
}

int session_new(struct session **ret_session, const struct session_conf *conf,
                struct diag *diag)
{
    struct session *session = calloc(1, sizeof(*session));
    struct tapes_conf tapes_conf = {
        .path = conf->tape, .force = conf->force, .anonymise = conf->anonymise};
    int err;

    if (!session)
        return diag_errno(diag, -ENOMEM, "%s", conf->tape);
    session->conf = *conf;
    session->diag = diag;
    tables_init(&session->tables);
    losses_init(&session->losses);
    keep_init(&session->keep, conf->keep_ns, conf->keep_bytes ? conf->keep_bytes : KEEP_BYTES);
    session->start_ns = session->flushed_ns = session->rotated_ns = clock_ns(CLOCK_MONOTONIC);
    tapes_conf.tables = &session->tables;
    err = tapes_new(&session->tapes, &tapes_conf, diag);
    if (!err && conf->filter_count > 0)
        err = filter_new(&session->filter, conf->filters, conf->filter_count, diag);
    if (!err) {
        err = window_init(&session->window, WINDOW_OPS);
        if (err)
            diag_errno(diag, err, "%s", conf->tape);
    }
    if (!err)
        err = session_describe(session);
    if (!err && !conf->keep_ns)
        err = tapes_open(session->tapes);
    if (err) {
        if (session->tapes)
            tapes_abandon(session->tapes);
        session_free(session);
        return err;
    }
    *ret_session = session;
    return 0;
}

void session_free(struct session *session)
{
    if (!session)
        return;
    tapes_free(session->tapes);
    filter_free(session->filter);
    window_release(&session->window);
    keep_release(&session->keep);
    tables_release(&session->tables);
    losses_release(&session->losses);
    free(session);
}

/* Recording ends here; what comes after is counted. The diag has the words already. */
static void session_fail(struct session *session, int err)
{
    if (!session->failed)
        session->failed = err;
}

bool session_failed(const struct session *session)
{
    return session->failed != 0;
}

int session_meta(struct session *session, const char *key, const char *value)
{
    return tapes_meta(session->tapes, key, value);
}

/* ---- what recorders call ----------------------------------------------------------------- */

int session_file(struct session *session, const struct trace_file *facts, uint32_t *ret_file)
{
    int err = tables_file(&session->tables, facts, ret_file);

    return err ? diag_errno(session->diag, err, "%s: file table", session->conf.tape) : 0;
}

int session_stream(struct session *session, uint32_t pid, uint32_t tid, uint32_t ppid,
                   const char *comm, uint32_t *ret_stream)
{
    struct trace_stream facts = {
        .pid = pid, .tid = tid, .ppid = ppid, .comm = comm ? comm : ""};
    int err = tables_stream(&session->tables, &facts, ret_stream);

    return err ? diag_errno(session->diag, err, "%s: stream table", session->conf.tape) : 0;
}

static uint64_t moved_bytes(const struct trace_op *op)
{
    if ((op->kind != TRACE_READ && op->kind != TRACE_WRITE) || op->result <= 0 ||
        op->result == TRACE_UNKNOWN_I64)
        return 0;
    return (uint64_t)op->result;
}

/* --max-size is reached: what was issued later is no part of the recording. */
static bool session_full(struct session *session, const struct trace_op *ops, size_t count)
{
    const uint64_t most = session->conf.max_bytes;
    char size[UNITS_TEXT];

    if (!most || tapes_bytes(session->tapes) < most)
        return false;
    session->totals.ops -= count;
    for (size_t i = 0; i < count; i++)
        session->totals.bytes -= moved_bytes(&ops[i]);
    session_note(session, "recording has stopped: the tape has reached --max-size %s",
                 units_size(most, size));
    return true;
}

static void session_emit(struct session *session, struct trace_op *ops, size_t count)
{
    int err;

    if (session_full(session, ops, count))
        return;
    session->emitted_ops += count;
    if (session->failed)
        return;
    if (session->conf.keep_ns) {
        err = keep_add(&session->keep, ops, count);
        if (err)
            diag_errno(session->diag, err, "--ring");
    } else {
        err = tapes_ops(session->tapes, ops, count);
    }
    if (err)
        session_fail(session, err);
}

/* Of what went to the tape, what is not in it when it cannot be written to its end. */
static void session_lost_with_tape(struct session *session)
{
    uint64_t lost = session->emitted_ops - tapes_written_ops(session->tapes);

    session->totals.lost += lost;
    losses_add(&session->losses, "tape-write", -1, lost, false);
}

/* Moves the ops issued before before_ns out of the window, at most limit of them. */
static void session_drain(struct session *session, int64_t before_ns, size_t limit)
{
    struct trace_op ops[RUN_OPS];
    size_t count = 0;

    for (; limit > 0 && window_pop(&session->window, before_ns, &ops[count]); limit--) {
        ops[count].ref = TRACE_UNKNOWN_U64;
        if (++count == RUN_OPS) {
            session_emit(session, ops, count);
            count = 0;
        }
    }
    if (count > 0)
        session_emit(session, ops, count);
}

/* Pipes, sockets and terminals are not what a replay is about. */
static bool file_is_kept(const struct session *session, uint32_t file)
{
    if (session->conf.scope.all_fds || file >= session->tables.file_count)
        return true;
    switch (session->tables.files[file].kind) {
    case TRACE_FILE_CHAR:
    case TRACE_FILE_PIPE:
    case TRACE_FILE_SOCKET:
    case TRACE_FILE_OTHER: return false;
    default: return true;
    }
}

int session_op(struct session *session, const struct trace_op *op)
{
    struct trace_op shifted = *op;
    const char *path = NULL;

    if (!file_is_kept(session, op->file))
        return 0;
    if (op->file < session->tables.file_count)
        path = session->tables.files[op->file].path;
    if (!filter_passes(session->filter, op, op->file, path)) {
        session->totals.filtered++;
        return 0;
    }
    shifted.issue_ns -= (int64_t)session->start_ns;
    session->totals.ops++;
    session->totals.bytes += moved_bytes(op);
    if (window_full(&session->window))
        session_drain(session, INT64_MAX, RUN_OPS);
    window_push(&session->window, &shifted);
    return 0;
}

void session_lost(struct session *session, const char *kind, int cpu, uint64_t count)
{
    int err;

    if (count == 0)
        return;
    session->totals.lost += count;
    losses_add(&session->losses, kind, cpu, count, false);
    if (!tapes_is_open(session->tapes)) {
        session->untaped_lost += count;
    } else if (!session->failed) {
        err = tapes_lost(session->tapes, kind, count);
        if (err)
            session_fail(session, err);
    }
}

void session_unseen(struct session *session, const char *kind, uint64_t count)
{
    if (count == 0)
        return;
    session->totals.unseen += count;
    losses_add(&session->losses, kind, -1, count, true);
}

void session_passed(struct session *session, uint64_t count)
{
    session->totals.passed += count;
}

void session_note(struct session *session, const char *format, ...)
{
    char text[512];
    size_t used = strlen(session->notes);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (strstr(session->notes, text))
        return; /* once is enough */
    diag_note(session->diag, "%s", text);
    if (used + strlen(text) + 2 < sizeof(session->notes))
        snprintf(session->notes + used, sizeof(session->notes) - used, "%s%s", used ? "\n" : "",
                 text);
}

const struct capture_scope *session_scope(const struct session *session)
{
    return &session->conf.scope;
}

struct diag *session_diag(struct session *session)
{
    return session->diag;
}

void session_content(struct session *session, const void *bytes, size_t count)
{
    unsigned char packed[8192];
    uLongf packed_bytes = sizeof(packed);

    if (count == 0 || compressBound((uLong)count) > sizeof(packed) ||
        compress2(packed, &packed_bytes, bytes, (uLong)count, 1) != Z_OK)
        return;
    session->totals.sampled_bytes += count;
    session->totals.compressed_bytes += packed_bytes < count ? packed_bytes : count;
}

/* ---- what the program calls -------------------------------------------------------------- */

static void session_stamp(struct session *session, uint64_t now_ns)
{
    tapes_wall(session->tapes, (int64_t)(now_ns - session->start_ns), clock_ns(CLOCK_REALTIME));
}

int session_sampled(struct session *session, unsigned int one_in, uint64_t now_ns)
{
    uint64_t tape_ns = now_ns > session->start_ns ? now_ns - session->start_ns : 0;
    size_t used = strlen(session->sample_steps);
    char value[32];
    int err;

    session->sample = one_in;
    snprintf(session->sample_steps + used, sizeof(session->sample_steps) - used, "%s%llu:%u",
             used ? "," : "", (unsigned long long)tape_ns, one_in);
    snprintf(value, sizeof(value), "%u", one_in);
    err = session_meta(session, TRACE_META_SAMPLE, value);
    if (!err)
        err = session_meta(session, TRACE_META_SAMPLE_STEPS, session->sample_steps);
    return err;
}

/* Told as it grows, so that the tape of a killed capture has it too. */
static int session_write_passed(struct session *session, bool always)
{
    char value[32];

    if (!session->sample || (!always && session->totals.passed == session->passed_told))
        return 0;
    session->passed_told = session->totals.passed;
    snprintf(value, sizeof(value), "%llu", (unsigned long long)session->totals.passed);
    return session_meta(session, TRACE_META_SAMPLE_PASSED, value);
}

/* How alike the written data is, in the words of replay's --fill compress=PCT. */
static int session_write_content(struct session *session)
{
    const struct session_totals *totals = &session->totals;
    char value[32];
    int err;

    snprintf(value, sizeof(value), "%llu", (unsigned long long)totals->sampled_bytes);
    err = session_meta(session, "content_sampled_bytes", value);
    snprintf(value, sizeof(value), "%u", session_compress_pct(totals));
    return err ? err : session_meta(session, "content_compress_pct", value);
}

/* "ring-full" by CPU: "0:12,3:4"; and what was not seen, by kind. */
static int session_write_losses(struct session *session)
{
    int err = 0;

    for (size_t i = 0; i < session->losses.count && !err; i++) {
        const struct loss *loss = &session->losses.items[i];
        char key[128], value[32];

        if (!loss->unseen && loss->cpu < 0)
            continue;
        if (loss->unseen)
            snprintf(key, sizeof(key), "unseen.%s", loss->kind);
        else
            snprintf(key, sizeof(key), "lost_cpu%d.%s", loss->cpu, loss->kind);
        snprintf(value, sizeof(value), "%llu", (unsigned long long)loss->count);
        err = session_meta(session, key, value);
    }
    if (!err && session->totals.sampled_bytes > 0)
        err = session_write_content(session);
    if (!err)
        err = session_write_passed(session, true);
    if (!err && session->notes[0])
        err = session_meta(session, "notes", session->notes);
    return err;
}

static int session_end_tape(struct session *session, const char *end)
{
    int err = session->failed ? 0 : session_write_losses(session), closed;

    closed = tapes_close(session->tapes, end);
    return err ? err : closed;
}

static int session_rotate(struct session *session, uint64_t now_ns)
{
    const struct session_conf *conf = &session->conf;
    bool due =
        (conf->rotate_bytes && tapes_current_bytes(session->tapes) >= conf->rotate_bytes) ||
        (conf->rotate_ns && now_ns - session->rotated_ns >= conf->rotate_ns);
    int err;

    if (!due)
        return 0;
    session->rotated_ns = now_ns;
    err = session_end_tape(session, "rotated");
    if (!err)
        err = tapes_open(session->tapes);
    return err;
}

int session_tick(struct session *session, uint64_t now_ns)
{
    const struct session_conf *conf = &session->conf;
    int64_t tape_ns = (int64_t)(now_ns - session->start_ns);
    int err = 0;

    session_drain(session, tape_ns - WINDOW_NS, SIZE_MAX);
    if (conf->keep_ns) {
        keep_expire(&session->keep, tape_ns);
        return session->failed;
    }
    if (!session->failed && now_ns - session->flushed_ns >= FLUSH_NS) {
        session->flushed_ns = now_ns;
        session_stamp(session, now_ns);
        err = session_write_passed(session, false);
        if (!err)
            err = tapes_flush(session->tapes);
        if (!err)
            err = session_rotate(session, now_ns);
        if (err)
            session_fail(session, err);
    }
    if (session->failed)
        return session->failed;
    return session_full(session, NULL, 0);
}

int session_dump(struct session *session, const char *why)
{
    struct keep *keep = &session->keep;
    const struct trace_op *run;
    struct trace_op ops[RUN_OPS];
    size_t at = 0, count;
    int err;

    session_drain(session, INT64_MAX, SIZE_MAX);
    keep_expire(keep, (int64_t)(clock_ns(CLOCK_MONOTONIC) - session->start_ns));
    err = tapes_open(session->tapes);
    if (err)
        return err;
    session_stamp(session, clock_ns(CLOCK_MONOTONIC));
    while (!err && (count = keep_run(keep, at, &run)) > 0) {
        count = count < RUN_OPS ? count : RUN_OPS;
        memcpy(ops, run, count * sizeof(*ops));
        err = tapes_ops(session->tapes, ops, count);
        at += count;
    }
    if (!err && session->untaped_lost)
        err = tapes_lost(session->tapes, "ring", session->untaped_lost);
    if (!err && keep->cut)
        err = tapes_lost(session->tapes, "memory", keep->cut);
    session->untaped_lost = 0;
    if (!err)
        err = session_meta(session, "trigger", why);
    keep_clear(keep);
    if (!err)
        return session_end_tape(session, "clean");
    (void)!tapes_close(session->tapes, "abrupt");
    return err;
}

int session_finish(struct session *session, const char *end)
{
    int err;

    session_drain(session, INT64_MAX, SIZE_MAX);
    if (session->conf.keep_ns)
        return session->failed;
    session_stamp(session, clock_ns(CLOCK_MONOTONIC));
    err = session_end_tape(session, session->failed == -ENOSPC ? "disk-full" : end);
    if (session->failed || err)
        session_lost_with_tape(session);
    return session->failed ? session->failed : err;
}

void session_abandon(struct session *session)
{
    tapes_abandon(session->tapes);
}

void session_totals(const struct session *session, struct session_totals *ret_totals)
{
    *ret_totals = session->totals;
    ret_totals->tape_bytes = tapes_bytes(session->tapes);
    ret_totals->tapes = tapes_count(session->tapes);
}

void session_each_loss(const struct session *session,
                       void (*each)(void *context, const char *kind, uint64_t count,
                                    bool unseen),
                       void *context)
{
    losses_each(&session->losses, each, context);
}

const char *session_tape_name(const struct session *session)
{
    return tapes_name(session->tapes);
}
