/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "convert/importer.h"

#define FIRST_KEY "{\"issue_ns\":"

struct from_jsonl {
    struct input *input;
    struct import *import;
    const json_t *object;
    int error; /* of the present line: 1 = bad and passed over */
};

static void bad(struct from_jsonl *from, const char *key, const char *expected)
{
    if (from->error)
        return;
    from->error = import_bad(from->import, from->input, 1, "\"%s\" is not %s", key, expected);
    if (from->error == 0)
        from->error = 1;
}

static void get_u64(struct from_jsonl *from, const char *key, uint64_t *value, uint64_t most)
{
    const json_t *item = json_object_get(from->object, key);

    if (!item)
        return;
    if (!json_is_integer(item) || json_integer_value(item) < 0 ||
        (uint64_t)json_integer_value(item) > most)
        bad(from, key, "a whole number that fits");
    else
        *value = (uint64_t)json_integer_value(item);
}

static void get_i64(struct from_jsonl *from, const char *key, int64_t *value)
{
    const json_t *item = json_object_get(from->object, key);

    if (item && !json_is_integer(item))
        bad(from, key, "a whole number");
    else if (item)
        *value = json_integer_value(item);
}

/* NULL when the key is absent. */
static const char *get_text(struct from_jsonl *from, const char *key, size_t *length)
{
    const json_t *item = json_object_get(from->object, key);

    if (item && !json_is_string(item))
        bad(from, key, "a string");
    if (!item || !json_is_string(item))
        return NULL;
    *length = json_string_length(item);
    return json_string_value(item);
}

static void get_words(struct from_jsonl *from, struct trace_op *op)
{
    static const char *const completions[] = {"unknown", "exact", "upper"};
    size_t length;
    const char *text = get_text(from, "op", &length);
    int number = text ? trace_op_from_name(text, length) : -EINVAL;

    if (number < 0)
        bad(from, "op", "an op");
    else
        op->kind = (uint8_t)number;
    text = get_text(from, "api", &length);
    number = text ? trace_api_from_name(text, length) : 0;
    if (number < 0)
        bad(from, "api", "an api");
    else
        op->api = (uint8_t)number;
    text = get_text(from, "completion", &length);
    for (unsigned int i = 0; text && i < 3; i++)
        if (!strcmp(text, completions[i]))
            op->completion = (uint8_t)i;
    text = get_text(from, "cause", &length);
    for (unsigned int i = 0; text && i < TRACE_CAUSE_COUNT; i++)
        if (!strcmp(text, trace_cause_name(i)))
            op->cause = (uint8_t)i;
}

static void get_flags(struct from_jsonl *from, struct trace_op *op)
{
    const json_t *flags = json_object_get(from->object, "flags");
    uint32_t flag;

    for (size_t i = 0; i < json_array_size(flags); i++) {
        const json_t *item = json_array_get(flags, i);

        if (!json_is_string(item) ||
            trace_flag_from_name(json_string_value(item), json_string_length(item), &flag) < 0)
            bad(from, "flags", "an array of flags");
        else
            op->flags |= flag;
    }
}

static int get_tables(struct from_jsonl *from, struct trace_op *op)
{
    struct trace_file facts = {.size_bytes = TRACE_UNKNOWN_U64};
    uint64_t pid = TRACE_UNKNOWN_U64, tid = TRACE_UNKNOWN_U64;
    size_t length, comm_length = 0;
    const char *text = get_text(from, "file", &length), *comm;
    int err = 0;

    get_u64(from, "file_size", &facts.size_bytes, INT64_MAX);
    if (text)
        err = import_file(from->import, text, length, &op->file);
    if (err == 0 && text)
        err = import_file_facts(from->import, op->file, &facts);
    text = get_text(from, "file2", &length);
    if (err == 0 && text)
        err = import_file(from->import, text, length, &op->file2);
    get_u64(from, "pid", &pid, UINT32_MAX);
    get_u64(from, "tid", &tid, UINT32_MAX);
    comm = get_text(from, "comm", &comm_length);
    if (err == 0 && (pid != TRACE_UNKNOWN_U64 || tid != TRACE_UNKNOWN_U64 || comm))
        err = import_stream(from->import, pid == TRACE_UNKNOWN_U64 ? 0 : (uint32_t)pid,
                            tid == TRACE_UNKNOWN_U64 ? 0 : (uint32_t)tid, comm, comm_length,
                            &op->stream);
    return err;
}

static int take_object(struct from_jsonl *from)
{
    struct trace_op op = TRACE_OP_INIT;
    uint64_t arg = 0;
    int err;

    from->error = 0;
    if (!json_object_get(from->object, "issue_ns"))
        bad(from, "issue_ns", "there");
    get_i64(from, "issue_ns", &op.issue_ns);
    get_words(from, &op);
    get_u64(from, "offset", &op.offset, INT64_MAX);
    get_u64(from, "length", &op.length, INT64_MAX);
    get_i64(from, "result", &op.result);
    get_u64(from, "latency_ns", &op.latency_ns, INT64_MAX);
    get_u64(from, "batch", &op.batch, INT64_MAX);
    get_u64(from, "arg", &arg, UINT32_MAX);
    get_i64(from, "due_ns", &op.due_ns);
    get_u64(from, "submit_ns", &op.submit_ns, INT64_MAX);
    get_u64(from, "ref", &op.ref, INT64_MAX);
    get_flags(from, &op);
    op.arg = (uint32_t)arg;
    if (from->error)
        return from->error < 0 ? from->error : 0;
    err = get_tables(from, &op);
    if (err == 0 && op.due_ns != TRACE_UNKNOWN_I64)
        err = import_meta(from->import, TRACE_META_RESULT_OF, "-");
    if (err == 0 && from->error)
        return from->error < 0 ? from->error : 0;
    return err < 0 ? err : import_op(from->import, &op);
}

static int run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    struct from_jsonl from = {.input = inputs[0], .import = import};
    size_t length;
    char *line;
    int err;

    (void)count;
    (void)conf;
    while ((err = input_line(from.input, &line, &length)) > 0) {
        json_error_t error;
        json_t *object;

        if (length == 0)
            continue;
        object = json_loadb(line, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
        from.object = object;
        if (!json_is_object(object))
            err = import_bad(import, from.input,
                             object || error.column < 1 ? 1 : (uint64_t)error.column,
                             "not a JSON object: %s", object ? "another value" : error.text);
        else
            err = take_object(&from);
        json_decref(object);
        if (err < 0)
            return err;
    }
    return err;
}

static int sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    (void)at_end;
    return length >= sizeof(FIRST_KEY) - 1 && !memcmp(bytes, FIRST_KEY, sizeof(FIRST_KEY) - 1)
               ? IMPORT_SURE
               : IMPORT_NO;
}

const struct importer importer_jsonl = {
    .name = "jsonl",
    .summary = "the JSON lines that --to jsonl writes",
    .help =
        "An object a line. issue_ns and op are needed, the other keys may be absent; unknown\n"
        "keys are passed over. Times in ns, sizes in bytes.",
    .sniff = sniff,
    .run = run,
};
