/* SPDX-License-Identifier: MIT */
#include "convert/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "convert/input.h"
#include "traces/diag.h"
#include "traces/plain.h"

static void put_quoted(FILE *out, const char *text)
{
    putc_unlocked('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", out);
        else if (c == '\t')
            fputs("\\t", out);
        else if (plain_control(text) == 2)
            fprintf(out, "\\%03o\\%03o", c, (unsigned char)*++text);
        else if (plain_control(text))
            fprintf(out, "\\%03o", c);
        else
            putc_unlocked(c, out);
    }
    putc_unlocked('"', out);
}

static void put_seconds(FILE *out, int64_t ns)
{
    uint64_t size = ns < 0 ? (uint64_t)0 - (uint64_t)ns : (uint64_t)ns;

    fprintf(out, "%s%" PRIu64 ".%09" PRIu64, ns < 0 ? "-" : "", size / 1000000000u,
            size % 1000000000u);
}

static void put_file(FILE *out, const struct trace_reader *reader, uint32_t file)
{
    const struct trace_file *entry = trace_reader_file(reader, file);

    if (entry)
        put_quoted(out, entry->path);
    else
        putc_unlocked('-', out);
}

static void put_u64(FILE *out, uint64_t value)
{
    if (value == TRACE_UNKNOWN_U64)
        fputs(" -", out);
    else
        fprintf(out, " %" PRIu64, value);
}

static void put_stream(FILE *out, const struct trace_reader *reader, uint32_t index)
{
    const struct trace_stream *stream = trace_reader_stream(reader, index);

    if (!stream) {
        fputs(" -", out);
        return;
    }
    fprintf(out, " %u/%u", stream->pid, stream->tid);
    if (*stream->comm)
        put_quoted(out, stream->comm);
}

static void put_extra(FILE *out, const struct trace_reader *reader, const struct trace_op *op)
{
    if (op->arg)
        fprintf(out, " arg=0x%x", op->arg);
    if (op->file2 != TRACE_NONE_U32) {
        fputs(" file2=", out);
        put_file(out, reader, op->file2);
    }
    if (op->completion == TRACE_COMPLETION_UPPER)
        fputs(" upper", out);
    if (op->due_ns != TRACE_UNKNOWN_I64) {
        fputs(" due=", out);
        put_seconds(out, op->due_ns);
    }
    if (op->submit_ns != TRACE_UNKNOWN_U64) {
        fputs(" submit=", out);
        put_seconds(out, (int64_t)op->submit_ns);
    }
    if (op->ref != TRACE_UNKNOWN_U64)
        fprintf(out, " ref=%" PRIu64, op->ref);
    if (op->cause)
        fprintf(out, " cause=%s", trace_cause_name(op->cause));
}

static void put_op(FILE *out, const struct trace_reader *reader, const struct trace_op *op)
{
    char flags[512];

    put_seconds(out, op->issue_ns);
    fprintf(out, " %s ", trace_op_name(op->kind));
    put_file(out, reader, op->file);
    put_u64(out, op->offset);
    put_u64(out, op->length);
    if (op->result == TRACE_UNKNOWN_I64)
        fputs(" - ", out);
    else
        fprintf(out, " %" PRId64 " ", op->result);
    if (op->latency_ns == TRACE_UNKNOWN_U64)
        putc_unlocked('-', out);
    else
        put_seconds(out, (int64_t)op->latency_ns);
    put_stream(out, reader, op->stream);
    fprintf(out, " %s", trace_api_name(op->api));
    put_u64(out, op->batch);
    trace_flags_text(op->flags, flags, sizeof(flags));
    fprintf(out, " %s", *flags ? flags : "-");
    put_extra(out, reader, op);
    putc_unlocked('\n', out);
}

static const struct trace_file *file_of(const void *context, uint32_t file)
{
    return trace_reader_file(context, file);
}

static const struct trace_stream *stream_of(const void *context, uint32_t stream)
{
    return trace_reader_stream(context, stream);
}

/* The lowest issue time of an I/O op: what --time counts from. 0 in a normalised tape. */
static int first_io(struct trace_reader *reader, int64_t *ret_first_ns)
{
    const struct trace_op *ops;
    bool found = false;
    size_t count;
    int err;

    *ret_first_ns = 0;
    if (!trace_reader_is_raw(reader) || !trace_reader_can_seek(reader))
        return 0;
    while ((err = trace_reader_next(reader, &ops, &count)) > 0)
        for (size_t i = 0; i < count; i++)
            if (trace_op_is_io(ops[i].kind) && (!found || ops[i].issue_ns < *ret_first_ns)) {
                *ret_first_ns = ops[i].issue_ns;
                found = true;
            }
    return err < 0 ? err : trace_reader_rewind(reader);
}

static int dump_ops(struct trace_reader *reader, struct filter *filter, int64_t first_ns,
                    FILE *out, const struct trace_op *ops, size_t count)
{
    bool sorted = !trace_reader_is_raw(reader);

    for (size_t i = 0; i < count; i++) {
        int keep = filter_early(filter, &ops[i]);

        if (keep > 0)
            keep = filter_late(filter, ops[i].issue_ns - first_ns);
        if (keep < 0)
            return keep;
        if (keep == 2 && (sorted || (filter->conf->head && filter->kept == filter->conf->head)))
            return 2;
        if (keep == 1)
            put_op(out, reader, &ops[i]);
    }
    return 0;
}

int dump_tape(struct trace_reader *reader, const struct filter_conf *conf, FILE *out,
              struct diag *diag)
{
    struct filter_tables tables = {file_of, stream_of, reader};
    const struct trace_op *ops;
    struct filter filter;
    int64_t first_ns = 0;
    size_t count;
    int err;

    err = filter_init(&filter, conf, &tables);
    if (err == 0 && conf->timed)
        err = first_io(reader, &first_ns);
    if (err == 0 && conf->timed && conf->from_ns > 0 && !trace_reader_is_raw(reader) &&
        trace_reader_can_seek(reader))
        err = trace_reader_seek_ns(reader, conf->from_ns);
    fputs(DUMP_HEADER "\n", out);
    while (err == 0 && (err = trace_reader_next(reader, &ops, &count)) > 0) {
        err = input_interrupted() ? diag_set(diag, -EINTR, "interrupted")
                                  : dump_ops(reader, &filter, first_ns, out, ops, count);
        if (err == 0 && ferror(out))
            err = diag_errno(diag, errno == EPIPE ? -EPIPE : -EIO, "standard output");
    }
    if (err >= 0 && fflush(out) == EOF)
        err = diag_errno(diag, -errno, "standard output");
    filter_release(&filter);
    return err < 0 ? err : 0;
}
