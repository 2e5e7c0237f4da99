/* SPDX-License-Identifier: MIT */
/* strace's text: one file of one or many processes, or a file a process (-ff). */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/strace_follow.h"

#define HALF_DAY_NS  (12ll * 3600 * 1000000000)
#define DAY_NS       (24ll * 3600 * 1000000000)
#define STEPS_MAX_NS (INT64_MAX / 2)
#define HELD_LINES   64
#define HELD_BYTES   (8u << 20)
#define SNIFF_LINES  40

/* One input: its clock, and a record that is not whole yet. */
struct reader {
    struct input *input;
    uint32_t file_pid; /* of FILE.PID; 0 = none */
    int64_t day_ns, last_day_ns, step_ns, time_ns;
    char *line; /* the next one, copied; NULL at the end */
    size_t length;
    struct strace_line parsed;
    char *held; /* a call whose end was not in its line */
    size_t held_length;
    unsigned int held_lines;
    char cut[96]; /* "PID <... NAME resumed> " where the line before is an unfinished call */
    bool summary; /* strace -C prints a table at the end: nothing follows it */
};

struct job {
    struct strace_trace trace;
    struct reader *readers;
    size_t reader_count;
    struct strace_follow follow;
    bool any_time, any_wall;
    uint64_t grid_ns, lines, sequence;
};

/* ---- time ---- */

static void set_time(struct job *job, struct reader *reader, const struct strace_line *line)
{
    switch (line->clock) {
    case STRACE_NO_TIME: return;
    case STRACE_UNIX_TIME:
        reader->time_ns = line->time_ns;
        job->any_wall = true;
        break;
    case STRACE_DAY_TIME:
        /* -t and -tt start again at midnight. */
        if (line->time_ns + HALF_DAY_NS < reader->last_day_ns &&
            reader->day_ns < STEPS_MAX_NS - DAY_NS)
            reader->day_ns += DAY_NS;
        reader->last_day_ns = line->time_ns;
        reader->time_ns = reader->day_ns + line->time_ns;
        break;
    case STRACE_STEP_TIME:
        if (__builtin_add_overflow(reader->step_ns, line->time_ns, &reader->step_ns) ||
            reader->step_ns > STEPS_MAX_NS)
            reader->step_ns = STEPS_MAX_NS;
        reader->time_ns = reader->step_ns;
        break;
    }
    job->any_time = true;
    if (line->grid_ns > job->grid_ns)
        job->grid_ns = line->grid_ns;
}

static int take_whole(struct job *job, const struct reader *reader,
                      const struct strace_line *line)
{
    /* Without time stamps its place in the order. */
    job->sequence++;
    job->follow.now_ns = job->any_time ? reader->time_ns : (int64_t)job->sequence;
    job->follow.file_pid = reader->file_pid;
    return strace_follow_take(&job->follow, line);
}

/* ---- lines that are not whole ---- */

static void drop_held(struct reader *reader)
{
    free(reader->held);
    reader->held = NULL;
    reader->held_length = 0;
    reader->held_lines = 0;
}

/* Keeps the start of a record whose end comes in later lines. strace itself breaks in with
 * "strace: Process N attached" and a new line. */
static int hold(struct job *job, struct reader *reader, const char *line, size_t length)
{
    const char *talk = memmem(line, length, "strace: Process ", 16);
    struct strace_line said;
    char *grown;
    int err;

    if (talk != NULL && memmem(talk, length - (size_t)(talk - line), " attached", 9) != NULL) {
        strace_line_parse(talk, length - (size_t)(talk - line), &said);
        length = (size_t)(talk - line);
        if (said.shape == STRACE_ATTACHED &&
            (err = strace_follow_attached(&job->follow, said.other_pid)) < 0)
            return err;
    }
    if (reader->held_length + length + 2 > HELD_BYTES)
        return -E2BIG;
    grown = realloc(reader->held, reader->held_length + length + 2);
    if (grown == NULL)
        return -ENOMEM;
    reader->held = grown;
    if (reader->held_lines > 0)
        grown[reader->held_length++] = '\n';
    memcpy(grown + reader->held_length, line, length);
    reader->held_length += length;
    grown[reader->held_length] = '\0';
    reader->held_lines++;
    return 0;
}

static int bad_held(struct job *job, struct reader *reader)
{
    char start[48];
    int err;

    snprintf(start, sizeof(start), "%.40s", reader->held);
    err = import_bad(job->trace.import, reader->input, 1,
                     "the call '%s' begun %u line%s before never ends", start,
                     reader->held_lines, reader->held_lines == 1 ? "" : "s");
    drop_held(reader);
    return err;
}

static void note_cut(struct reader *reader, const struct strace_line *parsed)
{
    char pid[24] = "";

    reader->cut[0] = '\0';
    if (parsed->shape != STRACE_UNFINISHED || parsed->name.length > 40)
        return;
    if (parsed->has_pid)
        snprintf(pid, sizeof(pid), parsed->bracketed ? "[pid %u] " : "%u ", parsed->pid);
    snprintf(reader->cut, sizeof(reader->cut), "%s<... %.*s resumed> ", pid,
             (int)parsed->name.length, parsed->name.at);
}

/* strace -z with several threads leaves out what heads a resumed call: the rest of the
 * arguments stands in the line below the unfinished one. 1: it was that. */
static int take_cut(struct job *job, struct reader *reader, const char *text, size_t length)
{
    struct strace_line joined;
    char *whole;
    int err = 0;

    if (reader->cut[0] == '\0')
        return 0;
    if (asprintf(&whole, "%s%.*s", reader->cut, (int)length, text) < 0)
        return -ENOMEM;
    reader->cut[0] = '\0';
    strace_line_parse(whole, strlen(whole), &joined);
    if (joined.shape == STRACE_RESUMED) {
        err = take_whole(job, reader, &joined);
        err = err < 0 ? err : 1;
    }
    free(whole);
    return err;
}

/* ") = ? <unavailable>" of a call whose process went away: strace wrote its beginning, or a
 * whole line of it, before. */
static bool is_stray_end(const char *text, size_t length)
{
    static const char end[] = "= ? <unavailable>";

    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    return length >= sizeof(end) && text[0] == ')' &&
           memcmp(text + length - (sizeof(end) - 1), end, sizeof(end) - 1) == 0;
}

static int take_line(struct job *job, struct reader *reader, const char *text, size_t length,
                     const struct strace_line *parsed)
{
    struct strace_line joined;
    int err;

    job->lines++;
    if (length >= 6 && memcmp(text, "% time", 6) == 0)
        reader->summary = true;
    if (reader->summary)
        return 0;
    if (reader->held != NULL &&
        (parsed->shape == STRACE_FOREIGN || parsed->shape == STRACE_BLANK) &&
        reader->held_lines < HELD_LINES) {
        err = hold(job, reader, text, length);
        if (err == -E2BIG)
            return bad_held(job, reader);
        if (err < 0)
            return err;
        strace_line_parse(reader->held, reader->held_length, &joined);
        if (joined.shape == STRACE_PARTIAL || joined.shape == STRACE_FOREIGN)
            return 0;
        err = take_whole(job, reader, &joined);
        drop_held(reader);
        return err;
    }
    if (reader->held != NULL && (err = bad_held(job, reader)) < 0)
        return err;
    if (parsed->shape == STRACE_FOREIGN && (err = take_cut(job, reader, text, length)) != 0)
        return err < 0 ? err : 0;
    note_cut(reader, parsed);
    set_time(job, reader, parsed);
    if (parsed->shape == STRACE_PARTIAL)
        return hold(job, reader, text, length);
    if (parsed->shape == STRACE_FOREIGN && is_stray_end(text, length))
        return 0;
    if (parsed->shape == STRACE_FOREIGN)
        return import_bad(job->trace.import, reader->input, 1,
                          "expected a line of strace, 'name(arguments) = result'");
    return take_whole(job, reader, parsed);
}

/* ---- inputs ---- */

static int next_line(struct reader *reader)
{
    char *line;
    int got;

    free(reader->line);
    reader->line = NULL;
    got = input_line(reader->input, &line, &reader->length);
    if (got <= 0)
        return got;
    reader->line = malloc(reader->length + 1);
    if (reader->line == NULL)
        return -ENOMEM;
    memcpy(reader->line, line, reader->length + 1);
    strace_line_parse(reader->line, reader->length, &reader->parsed);
    return 0;
}

/* What orders the heads of several files: the next line's time, as far as it has one. */
static int64_t head_ns(const struct reader *reader)
{
    const struct strace_line *line = &reader->parsed;

    switch (line->clock) {
    case STRACE_UNIX_TIME: return line->time_ns;
    case STRACE_DAY_TIME:
        return reader->day_ns + line->time_ns +
               (line->time_ns + HALF_DAY_NS < reader->last_day_ns ? DAY_NS : 0);
    case STRACE_STEP_TIME:
    case STRACE_NO_TIME: break;
    }
    return reader->time_ns;
}

static int run_one(struct job *job, struct reader *reader)
{
    struct strace_line parsed;
    size_t length;
    char *line;
    int err = 0, got;

    while (err == 0 && (got = input_line(reader->input, &line, &length)) != 0) {
        if (got < 0)
            return got;
        strace_line_parse(line, length, &parsed);
        err = take_line(job, reader, line, length, &parsed);
    }
    if (err == 0 && reader->held != NULL)
        err = bad_held(job, reader);
    return err;
}

/* Parents come before their children, whose descriptors they give. */
static int by_pid(const void *a, const void *b)
{
    const struct reader *first = a, *second = b;

    return first->file_pid < second->file_pid ? -1 : first->file_pid > second->file_pid;
}

/* Files of several processes, merged by time; without times each after the other. */
static int run_many(struct job *job)
{
    int err = 0;

    for (size_t i = 0; i < job->reader_count && err == 0; i++)
        err = next_line(&job->readers[i]);
    while (err == 0) {
        struct reader *first = NULL;
        int64_t next_ns = INT64_MAX;

        for (size_t i = 0; i < job->reader_count; i++) {
            struct reader *reader = &job->readers[i];

            if (reader->line == NULL)
                continue;
            if (first == NULL || head_ns(reader) < head_ns(first)) {
                next_ns = first ? head_ns(first) : INT64_MAX;
                first = reader;
            } else if (head_ns(reader) < next_ns) {
                next_ns = head_ns(reader);
            }
        }
        if (first == NULL)
            break;
        do {
            err = take_line(job, first, first->line, first->length, &first->parsed);
            if (err == 0)
                err = next_line(first);
        } while (err == 0 && first->line != NULL && head_ns(first) <= next_ns);
    }
    for (size_t i = 0; i < job->reader_count && err == 0; i++)
        if (job->readers[i].held != NULL)
            err = bad_held(job, &job->readers[i]);
    return err;
}

/* FILE.PID, as -ff writes; 0 for other names. */
static uint32_t pid_of_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    unsigned long pid;
    char *end;

    if (dot == NULL || !isdigit((unsigned char)dot[1]))
        return 0;
    errno = 0;
    pid = strtoul(dot + 1, &end, 10);
    return *end == '\0' && errno == 0 && pid <= 4194304 ? (uint32_t)pid : 0;
}

/* ---- the report ---- */

static void skip(struct job *job, const char *kind, uint64_t count)
{
    if (count > 0)
        import_skip(job->trace.import, kind, count);
}

static void note_unknowable(struct job *job)
{
    const struct strace_counts *counts = &job->trace.counts;
    struct import *import = job->trace.import;

    if (counts->uring > 0)
        import_note(import,
                    "%llu io_uring requests cannot be reconstructed: strace shows how many "
                    "were handed over, "
                    "not what they were; capture --recorder bpf sees them",
                    (unsigned long long)counts->uring);
    if (counts->uring_polled > 0)
        import_note(import,
                    "%llu io_uring rings are polled by the kernel (SQPOLL): what they carried "
                    "is not in a strace",
                    (unsigned long long)counts->uring_polled);
    if (counts->mappings > 0)
        import_note(
            import,
            "%llu mappings of files: what was read and written through them is not in a strace",
            (unsigned long long)counts->mappings);
    if (counts->unknown_position > 0)
        import_note(import,
                    "%llu reads or writes at a file position that cannot be known: their "
                    "descriptor was opened "
                    "or moved outside the trace; they have no offset",
                    (unsigned long long)counts->unknown_position);
    if (counts->cut_iocbs > 0)
        import_note(
            import,
            "%llu entries of io_submit were left out by strace (strace -v shows them all)",
            (unsigned long long)counts->cut_iocbs);
    if (counts->cut_vectors > 0)
        import_note(import,
                    "%llu lengths of io_submit may be too small: strace left out parts of the "
                    "iovec (strace -v shows them all) and no result is there to tell",
                    (unsigned long long)counts->cut_vectors);
    if (job->follow.resumed_alone > 0)
        import_note(import, "%llu calls end here that began before the trace",
                    (unsigned long long)job->follow.resumed_alone);
    if (!job->any_time)
        import_note(import,
                    "no time stamps (strace -ttt adds them): the order is kept, 1 ns apart");
}

static int report(struct job *job)
{
    const struct strace_counts *counts = &job->trace.counts;
    struct import *import = job->trace.import;
    char text[32];
    int err = 0;

    skip(job, "call that is no file I/O", counts->other_calls);
    skip(job, "transfer of a pipe, socket or device (--all-fds)", counts->not_files);
    skip(job, "transfer of a descriptor of unknown kind (--all-fds)", counts->unknown_files);
    skip(job, "failed open or change of a name", counts->failed_names);
    skip(job, "path that strace cut short", counts->cut_paths);
    skip(job, "call that never returned", counts->no_result);
    skip(job, "aio event without its request", counts->aio_unmatched);
    skip(job, "io_uring request", counts->uring);
    skip(job, "signal", job->follow.signals);
    note_unknowable(job);
    if (counts->mappings > 0)
        err = import_cannot_tell(import, "mmap");
    if (err == 0 && counts->uring + counts->uring_polled > 0)
        err = import_cannot_tell(import, "io_uring");
    if (err == 0 && counts->unknown_position > 0)
        err = import_cannot_tell(import, "offset");
    if (err == 0 && !job->follow.any_duration)
        err = import_cannot_tell(import, "latency");
    if (err == 0 && !job->any_time)
        err = import_cannot_tell(import, "time");
    if (err == 0 && job->any_wall)
        err = import_meta(import, TRACE_META_START_WALL, "0");
    if (err == 0 && job->any_time && job->grid_ns > 1) {
        snprintf(text, sizeof(text), "%llu", (unsigned long long)job->grid_ns);
        err = import_meta(import, TRACE_META_TIME_UNIT_NS, text);
    }
    return err;
}

static void count_pending(void *context, struct strace_process *process)
{
    struct job *job = context;

    if (process->pending != NULL)
        job->trace.counts.no_result++;
}

static int run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    struct job job = {.trace.import = import,
                      .trace.all_fds = import_options(import)->all_fds,
                      .reader_count = count};
    int err = -ENOMEM;

    (void)conf;
    job.follow.trace = &job.trace;
    job.readers = calloc(count, sizeof(*job.readers));
    if (job.readers == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        job.readers[i].input = inputs[i];
        job.readers[i].file_pid = pid_of_name(input_name(inputs[i]));
    }
    qsort(job.readers, count, sizeof(*job.readers), by_pid);
    err = strace_world_new(&job.trace.world, import);
    if (err == 0)
        err = strace_aio_new(&job.trace.aio);
    if (err == 0 && (job.trace.paths = strace_paths_new()) == NULL)
        err = -ENOMEM;
    if (err == 0)
        err = count == 1 ? run_one(&job, &job.readers[0]) : run_many(&job);
    if (err == 0)
        err = strace_aio_finish(&job.trace);
    if (err == 0) {
        strace_world_each(job.trace.world, count_pending, &job);
        err = report(&job);
    }
    for (size_t i = 0; i < count; i++) {
        free(job.readers[i].line);
        drop_held(&job.readers[i]);
    }
    strace_aio_free(job.trace.aio);
    strace_world_free(job.trace.world);
    strace_paths_free(job.trace.paths);
    free(job.trace.touched);
    free(job.readers);
    return err;
}

static int sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    const char *at = (const char *)bytes, *end = at + length;
    unsigned int calls = 0, others = 0;

    for (unsigned int lines = 0; lines < SNIFF_LINES && at < end; lines++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        struct strace_line line;

        if (newline == NULL && !at_end)
            break;
        if (end - at >= 6 && memcmp(at, "% time", 6) == 0)
            break;
        strace_line_parse(at, (size_t)((newline ? newline : end) - at), &line);
        if (line.shape == STRACE_CALL || line.shape == STRACE_UNFINISHED ||
            line.shape == STRACE_RESUMED)
            calls++;
        else if (line.shape == STRACE_FOREIGN)
            others++;
        at = newline ? newline + 1 : end;
    }
    return calls == 0       ? IMPORT_NO
           : others == 0    ? IMPORT_SURE
           : calls > others ? IMPORT_LIKELY
                            : IMPORT_NO;
}

const struct importer importer_strace = {
    .name = "strace",
    .summary = "strace's text, with or without -f, -t, -tt, -ttt, -r, -T, -y, -ff",
    .help = "Best recorded with strace -f -ttt -T -y. File positions are followed through "
            "open, lseek, dup, fork and "
            "CLONE_FILES, so that read and write have offsets; a descriptor opened before the "
            "trace began has an "
            "unknown position until it is moved. Sizes are the calls' arguments and results, "
            "never the printed "
            "strings. libaio requests are put together from io_submit and io_getevents. Only "
            "regular files and block "
            "devices are kept, as far as the opening or -y tells; --all-fds keeps the rest. "
            "io_uring requests and "
            "mapped I/O are not in a strace and are counted as such. Several files of -ff, or "
            "the folder they are in, are merged by time.",
    .flags = IMPORTER_JOINS | IMPORTER_DIRECTORY,
    .sniff = sniff,
    .run = run,
};
