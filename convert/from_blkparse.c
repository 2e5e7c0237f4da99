/* SPDX-License-Identifier: MIT */
/* What blkparse prints by default: one event a line, then summary blocks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/blk_event.h"

#define WINDOW_EVENTS (256u * 1024)
#define NAME_CACHE    256u
#define NAME_MAX_KEPT 64u
#define SNIFF_LINES   16u

/* A line being read from the left. */
struct cursor {
    const char *start, *at, *end;
    const char *wanted; /* what a failed step was looking for */
};

struct name_cache {
    uint32_t pid, stream;
    size_t length;
    bool used;
    char comm[NAME_MAX_KEPT];
};

struct job {
    struct import *import;
    struct input *input;
    struct blk_merge *merge;
    struct blk_tracker *tracker;
    struct name_cache names[NAME_CACHE];
    uint64_t messages, summaries, events;
};

static void skip_blanks(struct cursor *cursor)
{
    while (cursor->at < cursor->end && (*cursor->at == ' ' || *cursor->at == '\t'))
        cursor->at++;
}

static bool take_u64(struct cursor *cursor, const char *wanted, uint64_t *ret_value)
{
    uint64_t value = 0;
    const char *from;

    skip_blanks(cursor);
    cursor->wanted = wanted;
    for (from = cursor->at; cursor->at < cursor->end; cursor->at++) {
        unsigned int digit = (unsigned char)*cursor->at - (unsigned int)'0';

        if (digit > 9)
            break;
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret_value = value;
    return cursor->at > from;
}

static bool take_u32(struct cursor *cursor, const char *wanted, uint32_t *ret_value)
{
    const char *from = cursor->at;
    uint64_t value;

    if (!take_u64(cursor, wanted, &value) || value > UINT32_MAX) {
        cursor->at = from;
        return false;
    }
    *ret_value = (uint32_t)value;
    return true;
}

static bool take_char(struct cursor *cursor, char c, const char *wanted)
{
    cursor->wanted = wanted;
    if (cursor->at >= cursor->end || *cursor->at != c)
        return false;
    cursor->at++;
    return true;
}

/* Seconds and up to nine decimals. */
static bool take_time(struct cursor *cursor, uint64_t *ret_ns)
{
    uint64_t seconds, fraction, scale = 1000000000;
    const char *from;

    if (!take_u64(cursor, "a time in seconds", &seconds) ||
        seconds > INT64_MAX / 1000000000 - 1 || !take_char(cursor, '.', "a time with decimals"))
        return false;
    from = cursor->at;
    if (!take_u64(cursor, "decimals of a second", &fraction) || cursor->at - from > 9)
        return false;
    for (ptrdiff_t digits = cursor->at - from; digits > 0; digits--)
        scale /= 10;
    *ret_ns = seconds * 1000000000 + fraction * scale;
    return true;
}

static bool take_word(struct cursor *cursor, const char *wanted, const char **ret_word,
                      size_t *ret_length)
{
    skip_blanks(cursor);
    cursor->wanted = wanted;
    *ret_word = cursor->at;
    while (cursor->at < cursor->end && *cursor->at != ' ' && *cursor->at != '\t')
        cursor->at++;
    *ret_length = (size_t)(cursor->at - *ret_word);
    return *ret_length > 0;
}

static int act_of(const char *word, size_t length)
{
    static const struct {
        const char *word;
        int act;
    } words[] = {
        {"Q", BLK_ACT_QUEUE},
        {"M", BLK_ACT_BACK_MERGE},
        {"F", BLK_ACT_FRONT_MERGE},
        {"G", BLK_ACT_GET_REQUEST},
        {"S", BLK_ACT_SLEEP},
        {"R", BLK_ACT_REQUEUE},
        {"D", BLK_ACT_ISSUE},
        {"C", BLK_ACT_COMPLETE},
        {"P", BLK_ACT_PLUG},
        {"U", BLK_ACT_UNPLUG_IO},
        {"I", BLK_ACT_INSERT},
        {"X", BLK_ACT_SPLIT},
        {"B", BLK_ACT_BOUNCE},
        {"A", BLK_ACT_REMAP},
        {"UT", BLK_ACT_UNPLUG_TIMER},
        {"T", BLK_ACT_UNPLUG_TIMER}, /* as blkparse(1) has it */
        {"ZP", BLK_ACT_ZONE_PLUG},
        {"ZU", BLK_ACT_ZONE_UNPLUG},
        {"ZM", BLK_ACT_ZONE_MANAGE},
        {"m", 0},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i].word) == length && memcmp(words[i].word, word, length) == 0)
            return words[i].act;
    return -1;
}

/* The category bits behind the RWBS letters; false for letters no blkparse prints. */
static bool category_of(const char *word, size_t length, uint32_t *ret_category)
{
    uint32_t category = 0;
    bool kind = false;

    for (size_t i = 0; i < length; i++) {
        switch (word[i]) {
        case 'F': category |= kind ? BLK_CAT_FUA : BLK_CAT_FLUSH; break;
        case 'D':
            category |= BLK_CAT_DISCARD | BLK_CAT_WRITE;
            kind = true;
            break;
        case 'W':
            category |= BLK_CAT_WRITE;
            kind = true;
            break;
        case 'R':
            category |= BLK_CAT_READ;
            kind = true;
            break;
        case 'N': kind = true; break;
        case 'A': category |= BLK_CAT_AHEAD; break;
        case 'S': category |= BLK_CAT_SYNC; break;
        case 'M': category |= BLK_CAT_META; break;
        case 'B': /* the barrier of kernels before 2.6.37 */
            category |= BLK_CAT_FLUSH | BLK_CAT_FUA;
            break;
        case 'E': /* a secure discard */ break;
        case 'Z':
            if (++i >= length)
                return false;
            category |= word[i] == 'A'   ? BLK_CAT_ZONE_APPEND | BLK_CAT_WRITE
                        : word[i] == 'R' ? BLK_CAT_ZONE_RESET
                        : word[i] == 'F' ? BLK_CAT_ZONE_FINISH
                        : word[i] == 'O' ? BLK_CAT_ZONE_OPEN
                        : word[i] == 'C' ? BLK_CAT_ZONE_CLOSE
                                         : 0;
            kind = true;
            break;
        default: return false;
        }
    }
    *ret_category = category;
    return length > 0;
}

/* The last [...] of the line: a process name or an error. */
static bool take_bracket(struct cursor *cursor, const char **ret_text, size_t *ret_length)
{
    const char *open = NULL, *close = cursor->end;

    cursor->wanted = "[...] at the end of the line";
    while (close > cursor->at && (close[-1] == ' ' || close[-1] == '\t'))
        close--;
    /* An unplug prints a count behind it. */
    while (close > cursor->at && close[-1] >= '0' && close[-1] <= '9')
        close--;
    while (close > cursor->at && close[-1] == ' ')
        close--;
    if (close == cursor->at || close[-1] != ']')
        return false;
    open = memchr(cursor->at, '[', (size_t)(close - cursor->at));
    if (open == NULL)
        return false;
    *ret_text = open + 1;
    *ret_length = (size_t)(close - 1 - (open + 1));
    cursor->at = cursor->end;
    return true;
}

/* SECTOR + NSECT | SECTOR / NEW | SECTOR | BYTES (cdb) | (cdb) | nothing. */
static bool take_range(struct cursor *cursor, struct blk_event *event)
{
    uint64_t number, second;

    skip_blanks(cursor);
    if (cursor->at < cursor->end && *cursor->at == '(') {
        event->category |= BLK_CAT_PC;
        return true;
    }
    if (cursor->at >= cursor->end || *cursor->at < '0' || *cursor->at > '9')
        return true;
    if (!take_u64(cursor, "a sector", &number))
        return false;
    skip_blanks(cursor);
    if (cursor->at < cursor->end && *cursor->at == '(') {
        event->category |= BLK_CAT_PC;
        event->bytes = number;
        return true;
    }
    event->sector = number;
    if (cursor->at < cursor->end && *cursor->at == '/') {
        cursor->at++;
        if (!take_u64(cursor, "the new sector", &second))
            return false;
        event->arg = second;
    } else if (cursor->at < cursor->end && *cursor->at == '+') {
        cursor->at++;
        if (!take_u64(cursor, "a number of sectors", &second) || second > UINT64_MAX / 512)
            return false;
        event->bytes = second * 512;
    }
    return true;
}

/* "<- (MAJOR,MINOR) SECTOR" of a remap. */
static bool take_remap(struct cursor *cursor, struct blk_event *event)
{
    uint32_t major, minor;

    skip_blanks(cursor);
    if (!take_char(cursor, '<', "<- (major,minor)") ||
        !take_char(cursor, '-', "<- (major,minor)"))
        return false;
    skip_blanks(cursor);
    if (!take_char(cursor, '(', "(major,minor)") ||
        !take_u32(cursor, "a major number", &major) ||
        !take_char(cursor, ',', "(major,minor)") ||
        !take_u32(cursor, "a minor number", &minor) || !take_char(cursor, ')', "(major,minor)"))
        return false;
    event->arg = (uint64_t)(major & 0xfff) << 20 | (minor & 0xfffff);
    return true;
}

struct parsed {
    struct blk_event event;
    const char *comm; /* NULL: the line has none */
    size_t comm_length;
    bool message;
};

static bool take_tail(struct cursor *cursor, struct parsed *parsed)
{
    struct blk_event *event = &parsed->event;
    const char *text;
    size_t length;

    if (event->act == BLK_ACT_PLUG || event->act == BLK_ACT_UNPLUG_IO ||
        event->act == BLK_ACT_UNPLUG_TIMER)
        return true;
    if (!take_range(cursor, event))
        return false;
    if (event->act == BLK_ACT_REMAP)
        return take_remap(cursor, event);
    if (!take_bracket(cursor, &text, &length))
        return false;
    if (event->act != BLK_ACT_COMPLETE && event->act != BLK_ACT_REQUEUE) {
        parsed->comm = text;
        parsed->comm_length = length;
        return true;
    }
    /* A format of the user's (-f) may say the command here, as for the others. */
    if (length > 0 && length <= 6 && strspn(text, "-0123456789") >= length)
        event->error = (uint16_t)strtol(text, NULL, 10);
    return true;
}

/* A whole event line; on false the cursor says where and what was expected. */
static bool parse_event(struct cursor *cursor, struct parsed *ret)
{
    struct blk_event *event = &ret->event;
    uint32_t major, minor, sequence;
    const char *word;
    size_t length;
    int act;

    *ret = (struct parsed){.event.stream = TRACE_NONE_U32};
    if (!take_u32(cursor, "a device MAJOR,MINOR", &major) ||
        !take_char(cursor, ',', "a device MAJOR,MINOR") ||
        !take_u32(cursor, "a minor number", &minor) ||
        !take_u32(cursor, "a CPU", &event->cpu) ||
        !take_u32(cursor, "a sequence number", &sequence) ||
        !take_time(cursor, &event->time_ns) || !take_u32(cursor, "a process id", &event->pid) ||
        !take_word(cursor, "an action", &word, &length))
        return false;
    event->device = (major & 0xfff) << 20 | (minor & 0xfffff);
    act = act_of(word, length);
    if (act < 0) {
        cursor->at = word;
        cursor->wanted = "an action of blkparse (Q G I D C ...)";
        return false;
    }
    event->act = (uint8_t)act;
    if (act == 0) {
        ret->message = true;
        return true;
    }
    if (!take_word(cursor, "the kind of request (R W D ...)", &word, &length))
        return false;
    if (!category_of(word, length, &event->category)) {
        cursor->at = word;
        return false;
    }
    return take_tail(cursor, ret);
}

/* "fio (128)" or "fio (128, 129)": what blkparse -s heads the figures of a program with. */
static bool is_program(const char *line, size_t length)
{
    size_t at = length - 1;

    if (length < 4 || line[at] != ')')
        return false;
    while (at > 0 && strchr("0123456789, ", line[at - 1]) != NULL)
        at--;
    return at > 1 && at < length - 1 && line[at - 1] == '(' && line[at - 2] == ' ' &&
           memchr(line, '+', length) == NULL;
}

/* Lines of the blocks behind the events. */
static bool is_summary(const char *line, size_t length, uint64_t *ret_skips)
{
    static const char *const starts[] = {"CPU", "Total (", "Throughput (", "Events (",
                                         "Input file ", "Reads ", "Read ", "Writes ", "PC Read",
                                         "IO unplugs:", "Allocation", "Skips: ",
                                         "Dispatch wait:", "Completion wait:",
                                         /* what blktrace itself prints at the end of a pipe */
                                         "=== ", "Total: "};
    const char *dropped;
    char *end;

    *ret_skips = 0;
    while (length > 0 && (*line == ' ' || *line == '\t')) {
        line++;
        length--;
    }
    if (length == 0)
        return true;
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        size_t size = strlen(starts[i]);

        if (length >= size && memcmp(line, starts[i], size) == 0) {
            if (strcmp(starts[i], "Skips: ") == 0)
                *ret_skips = strtoull(line + size, &end, 10);
            dropped = memmem(line, length, "(dropped ", 9);
            if (strcmp(starts[i], "Total: ") == 0 && dropped != NULL)
                *ret_skips = strtoull(dropped + 9, &end, 10);
            return true;
        }
    }
    return is_program(line, length);
}

static int stream_of(struct job *job, uint32_t pid, const char *comm, size_t length,
                     uint32_t *ret_stream)
{
    struct name_cache *slot = &job->names[pid % NAME_CACHE];
    int err;

    if (length > NAME_MAX_KEPT)
        length = NAME_MAX_KEPT;
    if (!slot->used || slot->pid != pid || slot->length != length ||
        memcmp(slot->comm, comm, length) != 0) {
        err = import_stream(job->import, pid, pid, comm, length, &slot->stream);
        if (err < 0)
            return err;
        slot->used = true;
        slot->pid = pid;
        slot->length = length;
        memcpy(slot->comm, comm, length);
    }
    *ret_stream = slot->stream;
    return 0;
}

static int drain(struct job *job, size_t keep_room)
{
    const struct blk_event *event;
    size_t index;
    int err = 0;

    while (err == 0 && (keep_room == 0 || blk_merge_room(job->merge, 0) < keep_room) &&
           (event = blk_merge_pop(job->merge, &index)) != NULL)
        err = blk_tracker_add(job->tracker, event);
    return err;
}

static int take_line(struct job *job, const char *line, size_t length)
{
    struct cursor cursor = {line, line, line + length, ""};
    struct parsed parsed;
    uint64_t skips;
    int err;

    if (!parse_event(&cursor, &parsed)) {
        if (is_summary(line, length, &skips)) {
            job->summaries++;
            if (skips > 0)
                import_lost(job->import, "skip", skips);
            return 0;
        }
        return import_bad(job->import, job->input, (uint64_t)(cursor.at - cursor.start) + 1,
                          "expected %s", cursor.wanted);
    }
    if (parsed.message) {
        job->messages++;
        return 0;
    }
    job->events++;
    if (parsed.comm != NULL &&
        (parsed.event.act == BLK_ACT_QUEUE || parsed.event.act == BLK_ACT_ISSUE)) {
        err = stream_of(job, parsed.event.pid, parsed.comm, parsed.comm_length,
                        &parsed.event.stream);
        if (err < 0)
            return err;
    }
    if (blk_merge_room(job->merge, 0) == 0 && (err = drain(job, WINDOW_EVENTS / 4)) < 0)
        return err;
    err = blk_tracker_see(job->tracker, &parsed.event);
    return err < 0 ? err : blk_merge_push(job->merge, 0, &parsed.event);
}

static int sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    const char *at = (const char *)bytes, *end = at + length;
    unsigned int events = 0;
    uint64_t skips;

    for (unsigned int lines = 0; lines < SNIFF_LINES && at < end; lines++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        struct cursor cursor;
        struct parsed parsed;
        size_t size;

        if (newline == NULL && !at_end)
            break;
        size = (size_t)((newline ? newline : end) - at);
        if (size > 0 && at[size - 1] == '\r')
            size--;
        cursor = (struct cursor){at, at, at + size, ""};
        if (parse_event(&cursor, &parsed))
            events++;
        else if (!is_summary(at, size, &skips))
            return events > 0 && lines > 3 ? IMPORT_LIKELY : IMPORT_NO;
        at = newline ? newline + 1 : end;
    }
    return events > 0 ? IMPORT_SURE : IMPORT_NO;
}

static int run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    struct job *job = calloc(1, sizeof(*job));
    size_t length;
    char *line;
    int err = -ENOMEM, got;

    (void)count;
    (void)conf;
    if (job == NULL)
        return -ENOMEM;
    job->import = import;
    job->input = inputs[0];
    err = blk_merge_new(&job->merge, 1, WINDOW_EVENTS);
    if (err == 0)
        err = blk_tracker_new(&job->tracker, import);
    while (err == 0 && (got = input_line(job->input, &line, &length)) != 0)
        err = got < 0 ? got : take_line(job, line, length);
    if (err == 0)
        err = drain(job, 0);
    if (err == 0)
        err = blk_tracker_finish(job->tracker);
    if (err == 0 && job->messages > 0)
        import_skip(import, "message", job->messages);
    if (err == 0 && job->summaries > 0)
        import_skip(import, "line of a summary", job->summaries);
    if (err == 0)
        err = import_meta(import, TRACE_META_CLOCK, "trace");
    blk_tracker_free(job->tracker);
    blk_merge_free(job->merge);
    free(job);
    return err;
}

const struct importer importer_blkparse = {
    .name = "blkparse",
    .summary = "the text blkparse prints by default",
    .help = "Lines of MAJOR,MINOR CPU SEQUENCE SECONDS PID ACTION RWBS and a range, with the "
            "summaries "
            "behind them. The event that stands for the I/O and the pairing with completions "
            "are as for "
            "blktrace. Sizes are whole sectors there, so bytes below 512 are lost by the text "
            "itself. "
            "Output of blkparse -f has no fixed form: csv with --columns reads it.",
    .sniff = sniff,
    .run = run,
};
