/* SPDX-License-Identifier: MIT */
/* fio's I/O logs, versions 1 (rw, offset, length), 2 and 3. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/fields.h"
#include "convert/importer.h"

#define FIELDS_MAX  8
#define US_NS       1000ull
#define TIME_MAX_US (INT64_MAX / 1000)
#define NAME_SHOWN  60

enum action {
    ACTION_ADD,
    ACTION_OPEN,
    ACTION_CLOSE,
    ACTION_WAIT,
    ACTION_IO,
    ACTION_BAD,
};

struct name {
    char *text;
    size_t length;
    uint32_t file; /* TRACE_NONE_U32 until an op needs it */
    bool added, open;
    uint32_t next; /* in the hash bucket, +1; 0 = none */
};

#define BUCKETS 4096u

struct log {
    struct import *import;
    struct input *input;
    unsigned int version;
    struct name *names;
    uint32_t name_count, name_size;
    uint32_t buckets[BUCKETS]; /* index + 1 */
    uint64_t wait_us;          /* version 2: where the waits have come to */
    uint64_t last_us;
    uint64_t declarations, waits, backward, not_added, not_open, zero_length;
    bool any_wait;
};

/* ---- names ---- */

static int name_of(struct log *log, const struct field *field, struct name **ret_name)
{
    uint32_t hash = 2166136261u, *bucket;

    for (size_t i = 0; i < field->length; i++)
        hash = (hash ^ (unsigned char)field->at[i]) * 16777619u;
    bucket = &log->buckets[hash % BUCKETS];
    for (uint32_t i = *bucket; i > 0; i = log->names[i - 1].next) {
        struct name *name = &log->names[i - 1];

        if (name->length == field->length &&
            memcmp(name->text, field->at, field->length) == 0) {
            *ret_name = name;
            return 0;
        }
    }
    if (log->name_count == log->name_size) {
        uint32_t size = log->name_size ? 2 * log->name_size : 64;
        struct name *names = realloc(log->names, size * sizeof(*names));

        if (names == NULL)
            return -ENOMEM;
        log->names = names;
        log->name_size = size;
    }
    log->names[log->name_count] = (struct name){.text = strndup(field->at, field->length),
                                                .length = field->length,
                                                .file = TRACE_NONE_U32,
                                                .next = *bucket};
    if (log->names[log->name_count].text == NULL)
        return -ENOMEM;
    *ret_name = &log->names[log->name_count++];
    *bucket = log->name_count;
    return 0;
}

/* ---- lines ---- */

static int bad(struct log *log, const struct field *field, const char *what)
{
    return import_bad(log->import, log->input, field->column, "%s, not '%.*s'", what,
                      (int)(field->length < NAME_SHOWN ? field->length : NAME_SHOWN),
                      field->at);
}

static const struct {
    const char *word;
    enum action action;
    unsigned int kind;
} actions[] = {
    {"add", ACTION_ADD, 0},
    {"open", ACTION_OPEN, 0},
    {"close", ACTION_CLOSE, 0},
    {"wait", ACTION_WAIT, 0},
    {"read", ACTION_IO, TRACE_READ},
    {"write", ACTION_IO, TRACE_WRITE},
    {"sync", ACTION_IO, TRACE_FSYNC},
    {"fsync", ACTION_IO, TRACE_FSYNC},
    {"datasync", ACTION_IO, TRACE_FDATASYNC},
    {"fdatasync", ACTION_IO, TRACE_FDATASYNC},
    {"trim", ACTION_IO, TRACE_DISCARD},
    {"sync_file_range", ACTION_IO, TRACE_SYNC_RANGE},
    {"syncfs", ACTION_IO, TRACE_SYNCFS},
};

static enum action action_of(const struct field *field, unsigned int *ret_kind)
{
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (field_is(field, actions[i].word)) {
            *ret_kind = actions[i].kind;
            return actions[i].action;
        }
    }
    return ACTION_BAD;
}

static bool is_header(const char *line, size_t length)
{
    return length >= 12 && memcmp(line, "fio version ", 12) == 0;
}

/* Version 2 waits count from the wait before. */
static int take_wait(struct log *log, const struct field *fields, size_t count)
{
    uint64_t wait_us;

    if (log->version != 2)
        return bad(
            log, &fields[1],
            "version 3 has times and no wait: expected read, write, sync, datasync or trim");
    if (count < 3 || field_u64(&fields[2], &wait_us) < 0 ||
        wait_us > TIME_MAX_US - log->wait_us)
        return bad(log, &fields[count > 2 ? 2 : 1], "expected microseconds behind wait");
    log->wait_us += wait_us;
    log->waits++;
    log->any_wait = true;
    return 0;
}

static int take_io(struct log *log, struct name *name, const struct field *fields, size_t count,
                   unsigned int kind, uint64_t time_us)
{
    struct trace_op op = TRACE_OP_INIT;
    uint64_t offset = 0, length = 0;
    int err;

    if (count == 4 && (field_u64(&fields[2], &offset) < 0 || offset > INT64_MAX))
        return bad(log, &fields[2], "expected an offset in bytes");
    if (count == 4 && (field_u64(&fields[3], &length) < 0 || length > INT64_MAX - offset))
        return bad(log, &fields[3], "expected a length in bytes that ends below 2^63");
    if (count != 4 &&
        (count != 2 || kind == TRACE_READ || kind == TRACE_WRITE || kind == TRACE_DISCARD))
        return bad(log, &fields[count > 2 ? count - 1 : 1],
                   kind == TRACE_READ || kind == TRACE_WRITE || kind == TRACE_DISCARD
                       ? "expected NAME ACTION OFFSET LENGTH"
                       : "expected NAME ACTION, or NAME ACTION 0 0");
    if (!name->added)
        log->not_added++;
    else if (!name->open)
        log->not_open++;
    name->added = name->open = true; /* said once */
    if (name->file == TRACE_NONE_U32 &&
        (err = import_file(log->import, name->text, name->length, &name->file)) < 0)
        return err;
    op.kind = (uint8_t)kind;
    op.file = name->file;
    op.issue_ns = (int64_t)(time_us * US_NS);
    if (kind == TRACE_READ || kind == TRACE_WRITE || kind == TRACE_DISCARD ||
        kind == TRACE_SYNC_RANGE) {
        op.offset = offset;
        op.length = length;
        log->zero_length += length == 0;
    }
    return import_op(log->import, &op);
}

/* fields: NAME ACTION [OFFSET LENGTH], the time taken off. */
static int take_entry(struct log *log, const struct field *fields, size_t count,
                      uint64_t time_us)
{
    unsigned int kind = 0;
    enum action action = action_of(&fields[1], &kind);
    struct name *name;
    int err;

    if (action == ACTION_BAD)
        return count > 4
                   ? import_bad(
                         log->import, log->input, fields[4].column,
                         "too many words: a name with blanks cannot be told apart in an iolog")
                   : bad(log, &fields[1],
                         "expected add, open, close, read, write, sync, datasync, trim or "
                         "wait");
    if (count > 4)
        return bad(log, &fields[4], "expected the end of the line");
    if (action == ACTION_WAIT)
        return take_wait(log, fields, count);
    if ((action == ACTION_ADD || action == ACTION_OPEN || action == ACTION_CLOSE) && count != 2)
        return bad(log, &fields[2], "expected the end of the line");
    err = name_of(log, &fields[0], &name);
    if (err < 0)
        return err;
    if (action == ACTION_IO)
        return take_io(log, name, fields, count, kind, time_us);
    log->declarations++;
    if (action == ACTION_ADD)
        name->added = true;
    if (action == ACTION_OPEN)
        name->added = true;
    name->open = action == ACTION_OPEN ? true : action == ACTION_CLOSE ? false : name->open;
    return 0;
}

static int take_line(struct log *log, const char *line, size_t length)
{
    struct field fields[FIELDS_MAX];
    size_t count;
    uint64_t time_us = log->wait_us;

    if (is_header(line, length))
        return import_bad(
            log->import, log->input, 1,
            "a second header: several jobs wrote into this log, its lines are mixed");
    count = fields_split(line, length, ' ', fields, FIELDS_MAX);
    if (count == 0)
        return 0;
    if (count > FIELDS_MAX)
        return bad(log, &fields[FIELDS_MAX - 1], "expected the end of the line");
    if (memchr(line, '\0', length) != NULL)
        return import_bad(log->import, log->input, 1, "expected text, found a zero byte");
    if (log->version == 3) {
        if (field_u64(&fields[0], &time_us) < 0 || time_us > TIME_MAX_US)
            return bad(log, &fields[0], "expected a time in microseconds");
        if (count < 3)
            return bad(log, &fields[count - 1], "expected TIME NAME ACTION");
        if (time_us < log->last_us)
            log->backward++;
        log->last_us = time_us;
        return take_entry(log, fields + 1, count - 1, time_us);
    }
    if (count < 2)
        return bad(log, &fields[0], "expected NAME ACTION");
    return take_entry(log, fields, count, time_us);
}

/* Version 1: "rw, offset, length", no names and no times. */
static int take_old_line(struct log *log, const char *line, size_t length)
{
    struct field fields[4];
    struct trace_op op = TRACE_OP_INIT;
    size_t count = fields_split(line, length, ',', fields, 4);
    uint64_t numbers[3];

    if (count == 0)
        return 0;
    if (count != 3)
        return bad(log, &fields[0], "expected RW, OFFSET, LENGTH of a version 1 log");
    for (int i = 0; i < 3; i++)
        if (field_u64(&fields[i], &numbers[i]) < 0 || numbers[i] > INT64_MAX)
            return bad(log, &fields[i], "expected a number");
    if (numbers[0] > 1 || numbers[2] > INT64_MAX - numbers[1])
        return bad(log, &fields[numbers[0] > 1 ? 0 : 2],
                   numbers[0] > 1 ? "expected 0 (read) or 1 (write)"
                                  : "expected a length that ends below 2^63");
    op.kind = numbers[0] ? TRACE_WRITE : TRACE_READ;
    op.offset = numbers[1];
    op.length = numbers[2];
    op.file = 0;
    if (log->name_count == 0) {
        struct field made_up = {"file", 4, 1};
        struct name *name;
        int err = name_of(log, &made_up, &name);

        if (err == 0)
            err = import_file(log->import, "file", 4, &name->file);
        if (err < 0)
            return err;
    }
    op.file = log->names[0].file;
    return import_op(log->import, &op);
}

/* ---- the log ---- */

static int report(struct log *log)
{
    struct import *import = log->import;
    static const char *const unknown[] = {"latency", "result", "stream", "batch"};
    int err = 0;

    if (log->declarations > 0)
        import_skip(import, "add, open or close line", log->declarations);
    if (log->waits > 0)
        import_skip(import, "wait line", log->waits);
    if (log->version == 3)
        import_note(import, "times are microseconds since the job's start");
    else if (log->any_wait)
        import_note(
            import,
            "times are the sums of the waits; lines between two waits have one time, in order");
    else
        import_note(import, "version %u has no times: the order is kept", log->version);
    if (log->backward > 0)
        import_note(import, "%llu lines go back in time: sorted",
                    (unsigned long long)log->backward);
    if (log->not_added > 0)
        import_note(import, "%llu files are used without add or open before",
                    (unsigned long long)log->not_added);
    if (log->not_open > 0)
        import_note(import, "%llu files are used before open or after close",
                    (unsigned long long)log->not_open);
    if (log->zero_length > 0)
        import_note(import, "%llu ops have a length of 0",
                    (unsigned long long)log->zero_length);
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]) && err == 0; i++)
        err = import_cannot_tell(import, unknown[i]);
    if (err == 0 && (log->version == 1 || (log->version == 2 && !log->any_wait)))
        err = import_cannot_tell(import, "time");
    if (err == 0 && (log->version == 3 || log->any_wait))
        err = import_meta(import, TRACE_META_TIME_UNIT_NS, "1000");
    return err;
}

/* 2 or 3; 1 when the first line is of version 1; -EBADMSG or what reading returned. */
static int read_version(struct log *log)
{
    char *line;
    size_t length;
    int got = input_line(log->input, &line, &length);

    if (got <= 0)
        return got < 0 ? got
                       : diag_set(import_diag(log->import), -EBADMSG, "%s: is empty",
                                  input_name(log->input));
    if (is_header(line, length)) {
        unsigned int version = length > 12 && line[12] >= '0' && line[12] <= '9'
                                   ? (unsigned int)(line[12] - '0')
                                   : 0;

        if ((version == 2 || version == 3) && length >= 19 &&
            memcmp(line + 13, " iolog", 6) == 0)
            return (int)version;
        return diag_set(
            import_diag(log->import), -EPROTONOSUPPORT,
            "%s:1:13: expected 'fio version 2 iolog' or 'fio version 3 iolog', not '%.*s'",
            input_name(log->input), (int)(length < NAME_SHOWN ? length : NAME_SHOWN), line);
    }
    got = take_old_line(log, line, length);
    return got < 0 ? got : 1;
}

static int run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    struct log *log = calloc(1, sizeof(*log));
    size_t length;
    char *line;
    int err, got;

    (void)count;
    (void)conf;
    if (log == NULL)
        return -ENOMEM;
    log->import = import;
    log->input = inputs[0];
    err = read_version(log);
    if (err > 0) {
        log->version = (unsigned int)err;
        err = 0;
    }
    while (err == 0 && (got = input_line(log->input, &line, &length)) != 0) {
        if (got < 0)
            err = got;
        else
            err = log->version == 1 ? take_old_line(log, line, length)
                                    : take_line(log, line, length);
    }
    if (err == 0)
        err = report(log);
    for (uint32_t i = 0; i < log->name_count; i++)
        free(log->names[i].text);
    free(log->names);
    free(log);
    return err;
}

static int sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    (void)at_end;
    return is_header((const char *)bytes, length) ? IMPORT_SURE : IMPORT_NO;
}

const struct importer importer_fioiolog = {
    .name = "fioiolog",
    .summary = "fio's I/O logs (write_iolog), versions 2 and 3; version 1 by --from",
    .help = "Version 3 lines are TIME NAME ACTION [OFFSET LENGTH] with microseconds; version 2 "
            "has no times but wait "
            "lines, whose microseconds add up. add, open and close lines declare files and are "
            "no operations; sync "
            "is fsync, datasync is fdatasync, trim is discard. Lengths are 64 bits. A file "
            "used without add or open "
            "is taken, and said. Names with blanks cannot be read back from such a log: an "
            "error that says so, as is "
            "a second header, which several jobs writing one log leave. Version 1 (RW, OFFSET, "
            "LENGTH) has no "
            "header, names or times: --from fioiolog reads it into one file.",
    .sniff = sniff,
    .run = run,
};
