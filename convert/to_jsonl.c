/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "convert/exporter.h"

/* Of the character at at, or 0 when it is not valid UTF-8. */
static size_t utf8_length(const unsigned char *at)
{
    size_t length = at[0] < 0x80             ? 1
                    : (at[0] & 0xe0) == 0xc0 ? 2
                    : (at[0] & 0xf0) == 0xe0 ? 3
                    : (at[0] & 0xf8) == 0xf0 ? 4
                                             : 0;

    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((length == 2 && at[0] < 0xc2) || (length == 3 && at[0] == 0xe0 && at[1] < 0xa0) ||
        (length == 3 && at[0] == 0xed && at[1] >= 0xa0) ||
        (length == 4 &&
         ((at[0] == 0xf0 && at[1] < 0x90) || at[0] > 0xf4 || (at[0] == 0xf4 && at[1] >= 0x90))))
        return 0;
    return length;
}

/* A byte that is not UTF-8 is written as its Latin-1 character, and counted. */
static void put_string(struct export *export, const char *key, const char *text)
{
    const unsigned char *at = (const unsigned char *)text, *plain;

    export_printf(export, ",\"%s\":\"", key);
    while (*at) {
        plain = at;
        while (*at >= 0x20 && *at < 0x80 && *at != '"' && *at != '\\')
            at++;
        export_write(export, plain, (size_t)(at - plain));
        if (!*at)
            break;
        if (*at >= 0x80) {
            size_t length = utf8_length(at);

            if (length) {
                export_write(export, at, length);
            } else {
                export_printf(export, "\\u00%02x", *at);
                export_lost_field(export, "byte of a name that is not UTF-8", 1);
            }
            at += length ? length : 1;
        } else if (*at == '"' || *at == '\\') {
            export_printf(export, "\\%c", *at++);
        } else {
            export_printf(export, "\\u%04x", *at++);
        }
    }
    export_write(export, "\"", 1);
}

static void put_u64(struct export *export, const char *key, uint64_t value)
{
    if (value != TRACE_UNKNOWN_U64)
        export_printf(export, ",\"%s\":%" PRIu64, key, value);
}

static void put_i64(struct export *export, const char *key, int64_t value)
{
    if (value != TRACE_UNKNOWN_I64)
        export_printf(export, ",\"%s\":%" PRId64, key, value);
}

static void put_flags(struct export *export, uint32_t flags)
{
    char text[512];
    const char *at = trace_flags_text(flags, text, sizeof(text));

    if (!*at)
        return;
    export_printf(export, ",\"flags\":[");
    while (*at) {
        size_t length = strcspn(at, "|");

        export_printf(export, "\"%.*s\"%s", (int)length, at, at[length] ? "," : "");
        at += length + (at[length] == '|');
    }
    export_write(export, "]", 1);
}

static int put_op(struct export *export, const struct trace_op *op)
{
    static const char *const completions[] = {"unknown", "exact", "upper"};
    const struct trace_file *file = export_file(export, op->file);
    const struct trace_file *file2 = export_file(export, op->file2);
    const struct trace_stream *stream = export_stream(export, op->stream);

    export_printf(export, "{\"issue_ns\":%" PRId64 ",\"op\":\"%s\"", op->issue_ns,
                  trace_op_name(op->kind));
    if (file)
        put_string(export, "file", file->path);
    put_u64(export, "offset", op->offset);
    put_u64(export, "length", op->length);
    put_i64(export, "result", op->result);
    put_u64(export, "latency_ns", op->latency_ns);
    if (op->completion)
        put_string(export, "completion", completions[op->completion]);
    if (stream) {
        put_u64(export, "pid", stream->pid);
        put_u64(export, "tid", stream->tid);
        if (*stream->comm)
            put_string(export, "comm", stream->comm);
    }
    if (op->api)
        put_string(export, "api", trace_api_name(op->api));
    put_u64(export, "batch", op->batch);
    put_flags(export, op->flags);
    if (op->arg)
        put_u64(export, "arg", op->arg);
    if (file2)
        put_string(export, "file2", file2->path);
    if (file)
        put_u64(export, "file_size", file->size_bytes);
    put_i64(export, "due_ns", op->due_ns);
    put_u64(export, "submit_ns", op->submit_ns);
    put_u64(export, "ref", op->ref);
    if (op->cause)
        put_string(export, "cause", trace_cause_name(op->cause));
    if (file && (file->inode || file->device || file->mode || file->flags || file->kind))
        export_lost_field(export, "kind, mode, device and inode of the op's file", 1);
    return export_write(export, "}\n", 2);
}

static int begin(struct export *export, const void *conf, void **ret_state)
{
    (void)export;
    (void)conf;
    (void)ret_state;
    return 0;
}

static int ops(void *state, struct export *export, const struct trace_op *ops, size_t count)
{
    int err = 0;

    (void)state;
    for (size_t i = 0; i < count && err == 0; i++)
        err = put_op(export, &ops[i]);
    return err;
}

static int end(void *state, struct export *export)
{
    const char *value;
    uint64_t count = 0;

    (void)state;
    while (export_meta_at(export, count, &value))
        count++;
    if (count)
        export_lost_field(export, "metadata of the tape", count);
    return 0;
}

static void release(void *state)
{
    (void)state;
}

const struct exporter exporter_jsonl = {
    .name = "jsonl",
    .summary = "JSON lines: an object for each op, without what is not known",
    .help =
        "Keys: issue_ns, op, file, offset, length, result, latency_ns, completion, pid, tid,\n"
        "comm, api, batch, flags (an array), arg, file2, file_size, due_ns, submit_ns, ref,\n"
        "cause. Numbers are numbers, in ns and bytes. --from jsonl reads it back; names that\n"
        "are not UTF-8 are the one thing of an op that changes.",
    .suffixes = ".jsonl .ndjson",
    .begin = begin,
    .ops = ops,
    .end = end,
    .release = release,
};
