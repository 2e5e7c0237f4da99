/* SPDX-License-Identifier: MIT */
#include "convert/csv_columns.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/diag.h"

const char csv_own_header[] =
    "issue_ns,op,file,offset,length,result,latency_ns,completion,pid,tid,comm,api,batch,flags,"
    "arg,file2,file_size,due_ns,submit_ns,ref,cause";

static const struct {
    const char *name;
    int what;
} names[] = {
    {"time", CSV_TIME},
    {"timestamp", CSV_TIME},
    {"ts", CSV_TIME},
    {"issue", CSV_TIME},
    {"issued", CSV_TIME},
    {"start", CSV_TIME},
    {"start_time", CSV_TIME},
    {"starttime", CSV_TIME},
    {"completed", CSV_COMPLETED},
    {"end", CSV_COMPLETED},
    {"end_time", CSV_COMPLETED},
    {"endtime", CSV_COMPLETED},
    {"latency", CSV_LATENCY},
    {"duration", CSV_LATENCY},
    {"response", CSV_LATENCY},
    {"responsetime", CSV_LATENCY},
    {"response_time", CSV_LATENCY},
    {"elapsed", CSV_LATENCY},
    {"op", CSV_OP},
    {"opcode", CSV_OP},
    {"operation", CSV_OP},
    {"type", CSV_OP},
    {"iotype", CSV_OP},
    {"io_type", CSV_OP},
    {"rw", CSV_OP},
    {"file", CSV_FILE},
    {"path", CSV_FILE},
    {"filename", CSV_FILE},
    {"device", CSV_FILE},
    {"dev", CSV_FILE},
    {"disk", CSV_FILE},
    {"device_id", CSV_FILE},
    {"volume", CSV_FILE},
    {"volume_id", CSV_FILE},
    {"volumeid", CSV_FILE},
    {"lun", CSV_FILE},
    {"offset", CSV_OFFSET},
    {"byteoffset", CSV_OFFSET},
    {"pos", CSV_OFFSET},
    {"position", CSV_OFFSET},
    {"lba", CSV_OFFSET},
    {"sector", CSV_OFFSET},
    {"length", CSV_LENGTH},
    {"len", CSV_LENGTH},
    {"size", CSV_LENGTH},
    {"bytes", CSV_LENGTH},
    {"count", CSV_LENGTH},
    {"nbytes", CSV_LENGTH},
    {"iosize", CSV_LENGTH},
    {"sectors", CSV_LENGTH},
    {"nsectors", CSV_LENGTH},
    {"result", CSV_RESULT},
    {"ret", CSV_RESULT},
    {"pid", CSV_PID},
    {"tid", CSV_TID},
    {"thread", CSV_TID},
    {"comm", CSV_COMM},
    {"process", CSV_COMM},
    {"command", CSV_COMM},
    {"api", CSV_API},
    {"flags", CSV_FLAGS},
    {"batch", CSV_BATCH},
    {"completion", CSV_COMPLETION},
    {"arg", CSV_ARG},
    {"file2", CSV_FILE2},
    {"due", CSV_DUE},
    {"submit", CSV_SUBMIT},
    {"ref", CSV_REF},
    {"cause", CSV_CAUSE},
    {"file_size", CSV_FILE_SIZE},
    {"-", CSV_IGNORE},
    {"ignore", CSV_IGNORE},
};

static const struct {
    const char *name;
    bool time;
    uint64_t num, den;
} units[] = {
    {"s", true, 1000000000, 1}, {"sec", true, 1000000000, 1}, {"seconds", true, 1000000000, 1},
    {"ms", true, 1000000, 1},   {"us", true, 1000, 1},        {"usec", true, 1000, 1},
    {"ns", true, 1, 1},         {"nsec", true, 1, 1},         {"100ns", true, 100, 1},
    {"filetime", true, 100, 1}, {"b", false, 1, 1},           {"byte", false, 1, 1},
    {"bytes", false, 1, 1},     {"sector", false, 512, 1},    {"sectors", false, 512, 1},
    {"k", false, 1024, 1},      {"kib", false, 1024, 1},      {"kb", false, 1024, 1},
    {"page", false, 4096, 1},   {"4k", false, 4096, 1},       {"mib", false, 1048576, 1},
};

static bool is_time(int what)
{
    return what == CSV_TIME || what == CSV_COMPLETED || what == CSV_LATENCY ||
           what == CSV_DUE || what == CSV_SUBMIT;
}

static bool is_size(int what)
{
    return what == CSV_OFFSET || what == CSV_LENGTH || what == CSV_FILE_SIZE;
}

static int find_name(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i].name) == length && !strncasecmp(names[i].name, text, length))
            return names[i].what;
    return -1;
}

/* Sets the unit of a column by name; false when the unit is not one of its dimension. */
static bool set_unit(struct csv_column *column, const char *text, size_t length)
{
    char *end;
    unsigned long long number;

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strlen(units[i].name) == length && !strncasecmp(units[i].name, text, length) &&
            (units[i].time ? is_time(column->what) : is_size(column->what))) {
            column->num = units[i].num;
            column->den = units[i].den;
            column->default_unit = false;
            return true;
        }
    /* offset:2048 is in units of 2048 bytes. */
    if (!is_size(column->what) || !length || !isdigit((unsigned char)*text))
        return false;
    number = strtoull(text, &end, 10);
    if (end != text + length || !number || number > 1u << 30)
        return false;
    column->num = number;
    column->den = 1;
    column->default_unit = false;
    return true;
}

static void set_default(struct csv_column *column, const char *name, size_t length)
{
    bool sectors = (length >= 6 && !strncasecmp(name, "sector", 6)) ||
                   (length == 3 && !strncasecmp(name, "lba", 3)) ||
                   (length == 8 && !strncasecmp(name, "nsectors", 8));

    column->num = is_time(column->what) ? 1000000000 : sectors ? 512 : 1;
    column->den = 1;
    column->default_unit = is_time(column->what) || is_size(column->what);
}

int csv_columns_parse(struct csv_columns *columns, const char *text, struct diag *diag)
{
    memset(columns, 0, sizeof(*columns));
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ","), name = strcspn(at, ":,");
        struct csv_column *column = &columns->items[columns->count];

        if (columns->count == CSV_COLUMNS_MAX)
            return diag_set(diag, -EINVAL, "--columns: more than %u", CSV_COLUMNS_MAX);
        column->what = find_name(at, name);
        if (column->what < 0)
            return diag_set(
                diag, -EINVAL,
                "--columns: '%.*s' is not a column (time, latency, op, file, offset, "
                "length, result, pid, tid, comm, flags ... or - to ignore one)",
                (int)name, at);
        set_default(column, at, name);
        if (name < length && !set_unit(column, at + name + 1, length - name - 1))
            return diag_set(diag, -EINVAL, "--columns: '%.*s' is not a unit of %.*s",
                            (int)(length - name - 1), at + name + 1, (int)name, at);
        columns->count++;
        at += length + (at[length] == ',');
    }
    if (!csv_columns_enough(columns))
        return diag_set(diag, -EINVAL,
                        "--columns: needs at least offset and length, or op and file");
    return 0;
}

/* "offset_sectors", "Time (us)", "size[bytes]": the name, then the unit. */
static void header_column(struct csv_column *column, const char *name, size_t length)
{
    size_t stem = length;

    while (stem && (name[stem - 1] == ')' || name[stem - 1] == ']'))
        stem--;
    column->what = find_name(name, stem);
    if (column->what >= 0) {
        set_default(column, name, stem);
        return;
    }
    for (size_t at = stem; at-- > 1;) {
        size_t end = at;

        if (!strchr("_([ .", name[at]))
            continue;
        while (end && strchr("_([ .", name[end - 1]))
            end--;
        column->what = find_name(name, end);
        if (column->what < 0)
            continue;
        set_default(column, name, end);
        if (set_unit(column, name + at + 1, stem - at - 1))
            return;
    }
    column->what = CSV_IGNORE;
}

void csv_columns_header(struct csv_columns *columns, const char *const *header,
                        const size_t *lengths, size_t count, size_t *ret_known)
{
    bool seen[CSV_WHAT_COUNT] = {false};
    size_t known = 0;

    memset(columns, 0, sizeof(*columns));
    for (size_t i = 0; i < count && i < CSV_COLUMNS_MAX; i++) {
        struct csv_column *column = &columns->items[columns->count++];

        header_column(column, header[i], lengths[i]);
        /* The first of two that mean the same. */
        if (column->what != CSV_IGNORE && seen[column->what])
            column->what = CSV_IGNORE;
        if (column->what != CSV_IGNORE)
            known++;
        seen[column->what] = true;
    }
    *ret_known = known;
}

bool csv_columns_enough(const struct csv_columns *columns)
{
    bool seen[CSV_WHAT_COUNT] = {false};

    for (size_t i = 0; i < columns->count; i++)
        seen[columns->items[i].what] = true;
    return (seen[CSV_OFFSET] && seen[CSV_LENGTH]) || (seen[CSV_OP] && seen[CSV_FILE]);
}
