/* SPDX-License-Identifier: MIT */
/*
 * Block events as text: ftrace's trace file, trace-cmd report, perf script and perf trace. They differ
 * only in what stands before the event's name; the bodies are the kernel's own.
 *
 * The event that stands for the I/O is block_bio_queue, else block_rq_issue, else
 * block_rq_complete (--event Q, D, C), whichever comes first in that order in the first
 * megabyte. Latency is from that event to the completion of the same device, sector and kind.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "convert/inflight.h"
#include "convert/rows.h"
#include "convert/rwbs.h"

#define FTRACE_SECTOR        512
#define FTRACE_MOST_INFLIGHT (1u << 20)

enum ftrace_event {
    EVENT_QUEUE,
    EVENT_INSERT,
    EVENT_ISSUE,
    EVENT_COMPLETE,
    EVENT_OTHER_BLOCK,
    EVENT_NONE
};

struct ftrace {
    struct import *import;
    struct inflight *inflight;
    enum ftrace_event chosen;
    uint64_t passed; /* lines that are no block events */
};

struct ftrace_line {
    enum ftrace_event event;
    int64_t ns;
    const char *body;
    size_t body_length;
    uint64_t pid;
    struct field comm;
};

static const struct {
    const char *name;
    enum ftrace_event event;
} event_names[] = {
    {"block_bio_queue", EVENT_QUEUE},
    {"block_rq_insert", EVENT_INSERT},
    {"block_rq_issue", EVENT_ISSUE},
    {"block_rq_complete", EVENT_COMPLETE},
};

/* Where "block_NAME:" or "block:block_NAME:" stands; *ret_body is what follows its ": ". */
static const char *find_event(const char *line, size_t length, enum ftrace_event *ret_event,
                              const char **ret_body)
{
    const char *at = line, *end = line + length;

    while ((at = memmem(at, (size_t)(end - at), "block_", 6))) {
        const char *stop = at;

        while (stop < end && (isalnum((unsigned char)*stop) || *stop == '_'))
            stop++;
        if (stop < end && *stop == ':' && at > line &&
            (at[-1] == ' ' || at[-1] == ':' || at[-1] == '\t')) {
            *ret_event = EVENT_OTHER_BLOCK;
            for (size_t i = 0; i < sizeof(event_names) / sizeof(event_names[0]); i++)
                if (strlen(event_names[i].name) == (size_t)(stop - at) &&
                    memcmp(event_names[i].name, at, (size_t)(stop - at)) == 0)
                    *ret_event = event_names[i].event;
            *ret_body = stop + 1;
            if (at - line >= 6 && memcmp(at - 6, "block:", 6) == 0)
                at -= 6;
            return at;
        }
        at = stop;
    }
    return NULL;
}

/* "[004]" */
static bool is_cpu(const struct field *field)
{
    return field->length > 2 && field->at[0] == '[' && field->at[field->length - 1] == ']' &&
           isdigit((unsigned char)field->at[1]);
}

/* "COMM-PID" of ftrace: the last '-' before digits parts them; comm may hold blanks. */
static bool split_task(const char *line, const struct field *last, struct ftrace_line *parsed)
{
    const char *end = last->at + last->length, *dash = end;
    struct field number;

    while (dash > last->at && dash[-1] != '-')
        dash--;
    if (dash == last->at)
        return false;
    number.at = dash;
    number.length = (size_t)(end - dash);
    if (field_u64(&number, &parsed->pid) < 0)
        return false;
    while (line < dash - 1 && (*line == ' ' || *line == '\t'))
        line++;
    parsed->comm.at = line;
    parsed->comm.length = (size_t)(dash - 1 - line);
    return true;
}

/* "COMM PID" or "COMM PID/TID" of perf script. */
static bool split_perf(const char *line, const struct field *last, struct ftrace_line *parsed)
{
    struct field number = *last;
    const char *slash = memchr(last->at, '/', last->length), *end = last->at;

    if (slash) {
        number.at = slash + 1;
        number.length = (size_t)(last->at + last->length - number.at);
    }
    if (field_u64(&number, &parsed->pid) < 0)
        return false;
    while (line < end && (*line == ' ' || *line == '\t'))
        line++;
    while (end > line && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    parsed->comm.at = line;
    parsed->comm.length = (size_t)(end - line);
    return true;
}

/* "MS COMM/TID" of perf trace; between them "( ): " where calls are traced, too. */
static bool parse_perf_trace(const char *event, const struct field *fields, size_t count,
                             struct ftrace_line *parsed)
{
    const char *end = fields[count - 1].at + fields[count - 1].length, *slash = end;
    struct field tid;
    size_t task = 1;

    if (!memchr(fields[0].at, '.', fields[0].length) ||
        field_scaled(&fields[0], 1000000, 1, &parsed->ns) < 0)
        return false;
    while (task < count && fields[1].at[0] == '(' &&
           fields[task].at[fields[task].length - 1] != ':')
        task++;
    if (fields[1].at[0] == '(')
        task++;
    while (slash > fields[0].at && slash[-1] != '/')
        slash--;
    if (task >= count || slash - 1 <= fields[task].at || end > event)
        return false;
    tid.at = slash;
    tid.length = (size_t)(end - slash);
    if (field_u64(&tid, &parsed->pid) < 0)
        return false;
    parsed->comm.at = fields[task].at;
    parsed->comm.length = (size_t)(slash - 1 - fields[task].at);
    return true;
}

/* What stands before the event: task, CPU, flags, time. False: not the head of an event line.
 */
static bool parse_head(const char *line, const char *event, struct ftrace_line *parsed)
{
    struct field fields[24], time;
    size_t count = fields_split(line, (size_t)(event - line), ' ', fields, 24), task;
    uint64_t period;

    if (count < 2 || count > 24)
        return false;
    /* perf may print the sample period between time and event */
    if (field_u64(&fields[count - 1], &period) == 0 && count > 2)
        count--;
    time = fields[count - 1];
    if (time.length < 3 || time.at[time.length - 1] != ':')
        return parse_perf_trace(event, fields, count, parsed);
    time.length--;
    if (field_scaled(&time, 1000000000, 1, &parsed->ns) < 0)
        return false;
    for (task = count - 1; task > 0 && !is_cpu(&fields[task]); task--)
        ;
    if (task == 0)
        task = count - 1; /* perf script without CPU numbers */
    if (task == 0)
        return false;
    /* the TGID column: "(  123)" or "(-----)", one field or two */
    task--;
    while (task > 0 &&
           (fields[task].at[fields[task].length - 1] == ')' || fields[task].at[0] == '('))
        task--;
    return split_perf(line, &fields[task], parsed) || split_task(line, &fields[task], parsed);
}

static bool parse_line(const char *line, size_t length, struct ftrace_line *parsed)
{
    const char *event, *body;

    memset(parsed, 0, sizeof(*parsed));
    event = length && line[0] != '#' ? find_event(line, length, &parsed->event, &body) : NULL;
    if (!event || !parse_head(line, event, parsed))
        return false;
    while (body < line + length && *body == ' ')
        body++;
    parsed->body = body;
    parsed->body_length = (size_t)(line + length - body);
    return true;
}

struct ftrace_body {
    uint32_t major, minor;
    unsigned int kind;
    uint32_t flags;
    uint64_t sector, sectors;
    int64_t error;
};

/* "MAJ,MIN RWBS [BYTES] [(CMD)] SECTOR + NSECT [PRIO] [ERROR or COMM]" */
static const char *parse_body(const struct ftrace_line *line, struct ftrace_body *body)
{
    struct field fields[40], error;
    size_t count = fields_split(line->body, line->body_length, ' ', fields, 40), plus;
    uint64_t bytes;

    if (count > 40)
        count = 40;
    for (plus = 3; plus + 1 < count && !field_is(&fields[plus], "+"); plus++)
        ;
    if (plus + 1 >= count)
        return "expected DEVICE RWBS ... SECTOR + SECTORS";
    if (field_device(&fields[0], &body->major, &body->minor) < 0)
        return "expected a device such as 8,0";
    if (field_u64(&fields[plus - 1], &body->sector) < 0 ||
        field_u64(&fields[plus + 1], &body->sectors) < 0 || body->sectors > UINT32_MAX)
        return "expected SECTOR + SECTORS";
    bytes = body->sectors * FTRACE_SECTOR;
    if (rwbs_parse(fields[1].at, fields[1].length, bytes, &body->kind, &body->flags) < 0)
        return "unknown RWBS letters";
    if (body->kind != TRACE_FLUSH && body->sectors && body->sector > INT64_MAX / FTRACE_SECTOR)
        return "sector does not fit";
    body->error = 0;
    error = fields[count - 1];
    if (line->event == EVENT_COMPLETE && error.length > 2 && error.at[0] == '[') {
        error.at++;
        error.length -= 2;
        if (field_scaled(&error, 1, 1, &body->error) < 0)
            return "expected the error in brackets";
        if (body->error > 0)
            body->error = -body->error;
    }
    return NULL;
}

static int deliver(struct ftrace *state, const struct ftrace_body *body,
                   const struct ftrace_line *line, struct trace_op *op)
{
    int err = import_device(state->import, body->major, body->minor, &op->file);

    op->kind = (uint8_t)body->kind;
    op->flags = body->flags;
    op->api = TRACE_API_BLOCK;
    op->issue_ns = line->ns;
    op->length = body->sectors * FTRACE_SECTOR;
    op->offset = body->kind == TRACE_FLUSH ? TRACE_UNKNOWN_U64 : body->sector * FTRACE_SECTOR;
    if (!err && line->pid <= UINT32_MAX)
        err = import_stream(state->import, (uint32_t)line->pid, (uint32_t)line->pid,
                            line->comm.at, line->comm.length, &op->stream);
    return err;
}

/* Flushes lose their sector on the way: one key for all of a device. */
static struct inflight_key key_of(const struct ftrace_body *body)
{
    struct inflight_key key = {.device = (uint64_t)body->major << 20 | body->minor,
                               .sector = body->kind == TRACE_FLUSH ? 0 : body->sector,
                               .kind = body->kind};

    return key;
}

static int take_completion(struct ftrace *state, const struct ftrace_line *line,
                           const struct ftrace_body *body)
{
    struct inflight_key key = key_of(body);
    struct trace_op op;

    if (!inflight_take(state->inflight, &key, &op)) {
        import_skip(state->import, "completion without a start", 1);
        return 0;
    }
    if (line->ns >= op.issue_ns) {
        op.latency_ns = (uint64_t)(line->ns - op.issue_ns);
        op.completion = TRACE_COMPLETION_EXACT;
    }
    if (body->error)
        op.result = body->error;
    else if (body->sectors * FTRACE_SECTOR == op.length)
        op.result = (int64_t)op.length;
    else
        import_skip(state->import, "completion of a part (merged or split)", 1);
    return import_op(state->import, &op);
}

static int take_event(struct ftrace *state, struct input *input, const struct ftrace_line *line)
{
    struct trace_op op = TRACE_OP_INIT, evicted;
    struct ftrace_body body;
    const char *wrong;
    int err;

    if (line->event == EVENT_OTHER_BLOCK || line->event == EVENT_INSERT) {
        import_skip(state->import,
                    line->event == EVENT_INSERT ? "insert event" : "other block event", 1);
        return 0;
    }
    if (line->event != state->chosen && line->event != EVENT_COMPLETE) {
        import_skip(state->import, "event that does not stand for the I/O", 1);
        return 0;
    }
    wrong = parse_body(line, &body);
    if (wrong)
        return import_bad(state->import, input, 1, "%s", wrong);
    if (body.kind == TRACE_OP_COUNT) {
        import_skip(state->import, "request that moves nothing", 1);
        return 0;
    }
    if (line->event == EVENT_COMPLETE && state->chosen != EVENT_COMPLETE)
        return take_completion(state, line, &body);
    err = deliver(state, &body, line, &op);
    if (err)
        return err;
    if (state->chosen == EVENT_COMPLETE) {
        op.result = body.error ? body.error : (int64_t)op.length;
        return import_op(state->import, &op);
    }
    struct inflight_key key = key_of(&body);

    if (inflight_put(state->inflight, &key, &op, &evicted))
        err = import_op(state->import, &evicted);
    return err;
}

/* The first megabyte decides which event stands for the I/O. */
static int choose_event(struct ftrace *state, struct input *input)
{
    static const struct {
        char letter;
        enum ftrace_event event;
        const char *name;
    } choices[] = {{'Q', EVENT_QUEUE, "block_bio_queue"},
                   {'D', EVENT_ISSUE, "block_rq_issue"},
                   {'C', EVENT_COMPLETE, "block_rq_complete"}};
    char wanted = import_options(state->import)->event;
    const uint8_t *bytes;
    int64_t got = input_peek(input, &bytes, INPUT_PEEK_MAX);

    if (got < 0)
        return (int)got;
    for (size_t i = 0; i < 3; i++) {
        char letter[2] = {choices[i].letter, '\0'};

        if (wanted ? wanted != choices[i].letter
                   : !memmem(bytes, (size_t)got, choices[i].name, strlen(choices[i].name)))
            continue;
        state->chosen = choices[i].event;
        return import_meta(state->import, TRACE_META_EVENT, letter);
    }
    return diag_set(import_diag(state->import), -EBADMSG,
                    "%s: no block_bio_queue, block_rq_issue or block_rq_complete events",
                    input_name(input));
}

static int ftrace_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    struct ftrace_line parsed;
    const char *line;
    size_t at = 0, line_length;

    while (rows_next_line(bytes, length, at_end, &at, &line, &line_length))
        if (parse_line(line, line_length, &parsed) && parsed.event != EVENT_NONE)
            return IMPORT_SURE;
    /* An ftrace file of other events: ours to refuse with a clear line. */
    return length > 9 && memcmp(bytes, "# tracer:", 9) == 0 ? IMPORT_LIKELY : IMPORT_NO;
}

/* "CPU:3 [LOST 234 EVENTS]" */
static bool take_loss(struct ftrace *state, const char *line, size_t length)
{
    const char *lost = memmem(line, length, "[LOST ", 6);
    struct field words[2];
    uint64_t count;

    if (!lost || length < 4 || memcmp(line, "CPU:", 4) != 0)
        return false;
    lost += 6;
    if (fields_split(lost, (size_t)(line + length - lost), ' ', words, 2) < 2 ||
        field_u64(&words[0], &count) < 0)
        return false;
    import_lost(state->import, "ring-full", count);
    return true;
}

static int ftrace_input(struct ftrace *state, struct input *input)
{
    struct trace_op op;
    size_t length;
    char *line;
    int err = choose_event(state, input);

    while (!err && (err = input_line(input, &line, &length)) > 0) {
        struct ftrace_line parsed;

        err = 0;
        if (parse_line(line, length, &parsed))
            err = take_event(state, input, &parsed);
        else if (!take_loss(state, line, length) && length && line[0] != '#')
            state->passed++;
    }
    while (!err && inflight_take_any(state->inflight, &op)) {
        op.flags |= TRACE_F_INFLIGHT;
        err = import_op(state->import, &op);
    }
    return err;
}

static int ftrace_run(struct input **inputs, size_t count, struct import *import,
                      const void *conf)
{
    struct ftrace state = {.import = import};
    int err = 0;

    state.inflight = inflight_new(FTRACE_MOST_INFLIGHT);
    if (!state.inflight)
        return diag_set(import_diag(import), -ENOMEM, "out of memory");
    for (size_t i = 0; i < count && !err; i++)
        err = ftrace_input(&state, inputs[i]);
    if (state.passed)
        import_skip(import, "line that is no block event", state.passed);
    inflight_free(state.inflight);
    return err;
}

const struct importer importer_ftrace = {
    .name = "ftrace",
    .summary = "block events of ftrace, trace-cmd report, perf script or perf trace",
    .help = "Reads block_bio_queue, block_rq_issue and block_rq_complete in any of their "
            "layouts. The event "
            "that stands for the I/O is the first of these that the first megabyte holds "
            "(--event Q, D or C "
            "overrides). Lost-event marks are counted. Kept: time, latency, result, op and "
            "flags, device, "
            "offset, length, pid and process name.",
    .sniff = ftrace_sniff,
    .run = ftrace_run,
};
