/* SPDX-License-Identifier: MIT */
#include "convert/strace_text.h"

#include <string.h>

#include "traces/trace.h"

#define PID_DIGITS_MAX 7  /* 4194304 */
#define EPOCH_DIGITS   10 /* seconds since 1970, from 2001 on */
#define SECOND_NS      1000000000ll
#define SECONDS_MAX    8000000000ll /* of a time; durations stay far below */
#define DURATION_MAX   1000000000ll
#define DEPTH_MAX      64

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

static bool starts(const char *at, const char *end, const char *text)
{
    size_t length = strlen(text);

    return (size_t)(end - at) >= length && memcmp(at, text, length) == 0;
}

static const char *digits_end(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

/* ---- walking arguments ---- */

static const char *string_end(const char *at, const char *end)
{
    for (at++; at < end; at++) {
        if (*at == '\\' && at + 1 < end)
            at++;
        else if (*at == '"')
            return at + 1;
    }
    return end;
}

/* After the '<' behind a descriptor, the byte after its '>'. A '>' of the path itself is not
 * followed by what may follow a descriptor. */
static const char *shown_end(const char *at, const char *end)
{
    const char *from = at;

    for (at++; at < end; at++) {
        if (*at == '\\' && at + 1 < end) {
            at++;
            continue;
        }
        if (*at != '>')
            continue;
        if (at + 1 == end || strchr(",)]} =>(\n", at[1]) != NULL) {
            /* "</dev/null<char 1:3>>": the inner one closes first. */
            if (at + 1 < end && at[1] == '>')
                continue;
            return at + 1;
        }
    }
    return from + 1;
}

static bool is_word_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           c == '_';
}

/* One step over an argument list: past a string, a shown path or comment, or one byte. */
static const char *step(const char *start, const char *at, const char *end)
{
    const char *close;

    if (*at == '"')
        return string_end(at, end);
    if (*at == '<' && at > start && is_word_byte(at[-1]) && at + 1 < end && at[1] != '<' &&
        at[1] != ' ' && at[1] != '=')
        return shown_end(at, end);
    if (*at == '/' && at + 1 < end && at[1] == '*') {
        close = memmem(at, (size_t)(end - at), "*/", 2);
        return close ? close + 2 : end;
    }
    return at + 1;
}

static const char *result_at(const char *close, const char *end)
{
    const char *at = skip_blanks(close + 1, end);

    /* "( <unavailable>)= ?" of old straces has no blank there. */
    if ((at > close + 1 || starts(at, end, "= ? ")) && at + 1 < end && *at == '=' &&
        (at[1] == ' ' || at[1] == '\t'))
        return skip_blanks(at + 1, end);
    return NULL;
}

const char *strace_args_end(const char *at, const char *end)
{
    const char *start = at, *last = NULL;
    int depth = 0;

    while (at < end) {
        if (*at == '(' || *at == '[' || *at == '{') {
            depth++;
        } else if (*at == ')' && depth == 0) {
            if (result_at(at, end) != NULL)
                return at;
        } else if ((*at == ')' || *at == ']' || *at == '}') && depth > 0) {
            depth--;
        }
        at = step(start, at, end);
    }
    /* Brackets that do not match (a program wrote into the line): the last one that could be
     * it. */
    for (at = start; at < end; at++)
        if (*at == ')' && result_at(at, end) != NULL)
            last = at;
    return last;
}

static struct strace_slice trimmed(const char *at, const char *end)
{
    at = skip_blanks(at, end);
    while (end > at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\n'))
        end--;
    return (struct strace_slice){at, (size_t)(end - at)};
}

size_t strace_args_split(struct strace_slice args, struct strace_slice *ret_args, size_t max)
{
    const char *at = args.at, *from = at, *end;
    size_t count = 0;
    int depth = 0;

    if (args.length == 0)
        return 0;
    end = args.at + args.length;
    if (trimmed(at, end).length == 0)
        return 0;
    while (at < end) {
        if (*at == '(' || *at == '[' || *at == '{') {
            depth++;
        } else if ((*at == ')' || *at == ']' || *at == '}') && depth > 0) {
            depth--;
        } else if (*at == ',' && depth == 0) {
            if (count < max)
                ret_args[count] = trimmed(from, at);
            count++;
            from = at + 1;
        }
        at = step(args.at, at, end);
    }
    if (count < max)
        ret_args[count] = trimmed(from, end);
    return count + 1;
}

static struct strace_slice unwrapped(struct strace_slice list)
{
    if (list.length >= 2 && (list.at[0] == '[' || list.at[0] == '{')) {
        list.at++;
        list.length -= 2;
    }
    return list;
}

size_t strace_list_split(struct strace_slice list, struct strace_slice *ret_items, size_t max)
{
    return strace_args_split(unwrapped(list), ret_items, max);
}

bool strace_field(struct strace_slice list, const char *name, struct strace_slice *ret_value)
{
    struct strace_slice fields[32];
    size_t count = strace_list_split(list, fields, 32), length = strlen(name);

    for (size_t i = 0; i < count && i < 32; i++) {
        /* Before strace 4.9 it was "name:value". */
        if (fields[i].length > length && memcmp(fields[i].at, name, length) == 0 &&
            (fields[i].at[length] == '=' || fields[i].at[length] == ':')) {
            *ret_value =
                (struct strace_slice){fields[i].at + length + 1, fields[i].length - length - 1};
            return true;
        }
    }
    return false;
}

bool strace_is(struct strace_slice slice, const char *text)
{
    return slice.length > 0 && slice.length == strlen(text) &&
           memcmp(slice.at, text, slice.length) == 0;
}

bool strace_contains(struct strace_slice slice, const char *text)
{
    return slice.length > 0 && memmem(slice.at, slice.length, text, strlen(text)) != NULL;
}

bool strace_has_word(struct strace_slice slice, const char *text)
{
    size_t length = strlen(text);
    const char *at = slice.at, *end, *found;

    if (slice.length == 0)
        return false; /* of nothing: at may be NULL */
    end = slice.at + slice.length;
    while (at < end && (found = memmem(at, (size_t)(end - at), text, length)) != NULL) {
        if ((found == slice.at || !is_word_byte(found[-1])) &&
            (found + length == end || !is_word_byte(found[length])))
            return true;
        at = found + 1;
    }
    return false;
}

/* ---- the line ---- */

/* HH:MM:SS, with a fraction. Returns the byte after it or NULL. */
static const char *take_day_time(const char *at, const char *end, int64_t *ret_ns)
{
    int64_t part[3];

    for (int i = 0; i < 3; i++) {
        if (end - at < 2 || digits_end(at, at + 2) != at + 2)
            return NULL;
        part[i] = (at[0] - '0') * 10 + (at[1] - '0');
        at += 2;
        if (i < 2 && (at == end || *at++ != ':'))
            return NULL;
    }
    *ret_ns = ((part[0] * 60 + part[1]) * 60 + part[2]) * SECOND_NS;
    return at;
}

/* ".123456" in ns; *ret_grid is what its last digit is worth. */
static const char *take_fraction(const char *at, const char *end, int64_t *ret_ns,
                                 uint64_t *ret_grid)
{
    int64_t unit = SECOND_NS, value = 0;

    *ret_ns = 0;
    *ret_grid = (uint64_t)SECOND_NS;
    if (at == end || *at != '.')
        return at;
    for (at++; at < end && *at >= '0' && *at <= '9'; at++) {
        if (unit == 1)
            continue;
        unit /= 10;
        value += (*at - '0') * unit;
    }
    *ret_ns = value;
    *ret_grid = (uint64_t)unit;
    return at;
}

static const char *take_time(const char *at, const char *end, struct strace_line *line)
{
    const char *after = take_day_time(at, end, &line->time_ns), *digits = digits_end(at, end);
    int64_t fraction_ns, seconds = 0;

    if (after != NULL) {
        line->clock = STRACE_DAY_TIME;
    } else {
        size_t count = (size_t)(digits - at);

        if (count == 0 || count > 12 || (digits < end && *digits != '.' && *digits != ' ') ||
            (count != EPOCH_DIGITS && (digits == end || *digits != '.')))
            return at;
        for (const char *p = at; p < digits; p++)
            seconds = seconds * 10 + (*p - '0');
        if (seconds > SECONDS_MAX)
            return at;
        line->clock = seconds >= 100000000 ? STRACE_UNIX_TIME : STRACE_STEP_TIME;
        line->time_ns = seconds * SECOND_NS;
        after = digits;
    }
    after = take_fraction(after, end, &fraction_ns, &line->grid_ns);
    line->time_ns += fraction_ns;
    after = skip_blanks(after, end);
    if (starts(after, end, "(+")) { /* -r beside another time */
        const char *close = memchr(after, ')', (size_t)(end - after));

        after = close ? skip_blanks(close + 1, end) : after;
    }
    return after;
}

static bool take_pid_digits(const char **at, const char *end, uint32_t *ret_pid)
{
    const char *digits = digits_end(*at, end);
    uint32_t pid = 0;

    if (digits == *at || digits - *at > PID_DIGITS_MAX)
        return false;
    for (; *at < digits; (*at)++)
        pid = pid * 10 + (uint32_t)(**at - '0');
    *ret_pid = pid;
    return true;
}

static const char *take_comm(const char *at, const char *end, struct strace_line *line)
{
    const char *close;

    if (at == end || *at != '<')
        return at;
    close = memchr(at, '>', (size_t)(end - at));
    if (close == NULL)
        return at;
    line->comm = (struct strace_slice){at + 1, (size_t)(close - at - 1)};
    return close + 1;
}

static const char *take_pid(const char *at, const char *end, struct strace_line *line)
{
    const char *from = at;

    if (starts(at, end, "[pid")) {
        at = skip_blanks(at + 4, end);
        if (!take_pid_digits(&at, end, &line->pid))
            return from;
        at = take_comm(at, end, line);
        if (at == end || *at != ']')
            return from;
        line->has_pid = line->bracketed = true;
        return skip_blanks(at + 1, end);
    }
    if (!take_pid_digits(&at, end, &line->pid))
        return from;
    at = take_comm(at, end, line);
    if (at == end || *at != ' ')
        return from;
    line->has_pid = true;
    return skip_blanks(at, end);
}

/* "[00007f12] " of -i, "[ 257] " of -n. */
static const char *skip_bracketed_hex(const char *at, const char *end)
{
    while (at < end && *at == '[') {
        const char *p = skip_blanks(at + 1, end);
        const char *from = p;

        while (p < end && ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f') || *p == '?'))
            p++;
        if (p == from || p == end || *p != ']')
            return at;
        at = skip_blanks(p + 1, end);
    }
    return at;
}

/* "<0.000123>" at the end; end is moved in front of it. */
static const char *take_duration(const char *at, const char *end, uint64_t *ret_ns)
{
    const char *open = end, *digits;
    int64_t seconds = 0, fraction_ns;
    uint64_t grid;

    while (end > at && (end[-1] == ' ' || end[-1] == '\r'))
        end--;
    if (end == at || end[-1] != '>')
        return end;
    for (open = end - 1; open > at && *open != '<'; open--)
        ;
    digits = digits_end(open + 1, end);
    if (*open != '<' || digits == open + 1 || digits - open > 12)
        return end;
    for (const char *p = open + 1; p < digits; p++)
        seconds = seconds * 10 + (*p - '0');
    if (seconds > DURATION_MAX || take_fraction(digits, end, &fraction_ns, &grid) != end - 1)
        return end;
    *ret_ns = (uint64_t)(seconds * SECOND_NS + fraction_ns);
    while (open > at && open[-1] == ' ')
        open--;
    return open;
}

/* at: the first byte of the arguments. */
static void finish_call(const char *at, const char *end, struct strace_line *line,
                        enum strace_shape whole)
{
    const char *close, *result, *cut = NULL;

    for (const char *p = at; (p = memmem(p, (size_t)(end - p), " <unfinished ...", 16)) != NULL;
         p++)
        cut = p;
    if (cut == NULL && starts(at, end, "<unfinished ..."))
        cut = at;
    if (cut == NULL && (size_t)(end - at) >= 15 && memcmp(end - 15, " <detached ...>", 15) == 0)
        cut = end - 15;
    if (cut != NULL && end[-1] == '>') {
        line->args = (struct strace_slice){at, (size_t)(cut - at)};
        line->shape = STRACE_UNFINISHED;
        return;
    }
    close = strace_args_end(at, end);
    if (close == NULL) {
        line->args = (struct strace_slice){at, (size_t)(end - at)};
        line->shape = STRACE_PARTIAL;
        return;
    }
    result = result_at(close, end);
    end = take_duration(result, end, &line->duration_ns);
    line->args = (struct strace_slice){at, (size_t)(close - at)};
    line->result = (struct strace_slice){result, (size_t)(end - result)};
    line->shape = whole;
}

static void parse_plus(const char *at, const char *end, struct strace_line *line)
{
    static const char text[] = "+++ superseded by execve in pid ";

    line->shape = STRACE_EXIT;
    if (starts(at, end, text)) {
        at += sizeof(text) - 1;
        if (take_pid_digits(&at, end, &line->other_pid))
            line->shape = STRACE_SUPERSEDED;
    }
}

static void parse_talk(const char *at, const char *end, struct strace_line *line)
{
    const char *word = memmem(at, (size_t)(end - at), "Process ", 8);

    line->shape = STRACE_BLANK;
    if (word == NULL || memmem(at, (size_t)(end - at), " attached", 9) == NULL)
        return;
    word += 8;
    if (take_pid_digits(&word, end, &line->other_pid))
        line->shape = STRACE_ATTACHED;
}

static void parse_resumed(const char *at, const char *end, struct strace_line *line)
{
    const char *name = skip_blanks(at + 4, end), *resumed;

    resumed = memmem(name, (size_t)(end - name), " resumed>", 9);
    if (resumed == NULL)
        return;
    line->name = (struct strace_slice){name, (size_t)(resumed - name)};
    finish_call(resumed + 9, end, line, STRACE_RESUMED);
    if (line->shape == STRACE_UNFINISHED)
        line->shape = STRACE_FOREIGN;
}

/* What is said between the calls: by strace, of -C and -k, and grep's line between parts. */
static bool is_talk(const char *at, const char *end)
{
    return (end - at == 2 && starts(at, end, "--")) || starts(at, end, "strace: ") ||
           starts(at, end, "Process ") || starts(at, end, "[ Process PID=") ||
           starts(at, end, "> ") || starts(at, end, "| ") || starts(at, end, "% time");
}

void strace_line_parse(const char *text, size_t length, struct strace_line *ret)
{
    const char *at = skip_blanks(text, text + length), *end = text + length, *name;

    *ret = (struct strace_line){.duration_ns = TRACE_UNKNOWN_U64};
    while (end > at && (end[-1] == ' ' || end[-1] == '\r' || end[-1] == '\n'))
        end--;
    if (at == end || is_talk(at, end)) {
        parse_talk(at, end, ret);
        return;
    }
    at = take_pid(at, end, ret);
    at = take_time(at, end, ret);
    at = skip_bracketed_hex(at, end);
    if (starts(at, end, "+++ ")) {
        parse_plus(at, end, ret);
    } else if (starts(at, end, "--- ")) {
        ret->shape = STRACE_SIGNAL;
    } else if (starts(at, end, "<... ")) {
        parse_resumed(at, end, ret);
    } else if (at == end || is_talk(at, end)) {
        parse_talk(at, end, ret);
    } else {
        for (name = at; at < end && (is_word_byte(*at) || *at == '?'); at++)
            ;
        if (at == name || at == end || *at != '(' || (*name >= '0' && *name <= '9'))
            return;
        ret->name = (struct strace_slice){name, (size_t)(at - name)};
        finish_call(at + 1, end, ret, STRACE_CALL);
    }
}
