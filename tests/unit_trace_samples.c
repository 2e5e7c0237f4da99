/* SPDX-License-Identifier: MIT */
/* The tapes of traces/samples, written by the first release: every later one must read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "tests/tape_samples.h"
#include "traces/diag.h"

static const struct sample {
    const char *name;
    int open_error;
    uint64_t ops, lost_ops; /* read; in damaged blocks */
    uint64_t damaged_blocks;
    bool truncated, raw, result, names_lost;
} samples[] = {
    {.name = "good.tape", .ops = 1000},
    {.name = "raw.tape", .ops = 1000, .raw = true},
    {.name = "result.tape", .ops = 1000, .raw = true, .result = true},
    {.name = "empty.tape"},
    {.name = "big-tables.tape", .ops = 100},
    {.name = "truncated.tape",
     .ops = 600,
     .lost_ops = 200,
     .damaged_blocks = 1,
     .truncated = true},
    {.name = "bad-payload.tape", .ops = 800, .lost_ops = 200, .damaged_blocks = 1},
    {.name = "bad-header.tape", .ops = 800, .lost_ops = 200, .damaged_blocks = 1},
    {.name = "bad-table.tape", .ops = 1000, .damaged_blocks = 1, .names_lost = true},
    {.name = "wrong-version.tape", .open_error = -EPROTONOSUPPORT},
};

static const char *sample_path(const char *name)
{
    const char *source = getenv("IOTAPE_SRC");
    static char path[4096];

    snprintf(path, sizeof(path), "%s/traces/samples/%s", source ? source : ".", name);
    return path;
}

static void op_check(const struct trace_op *op, const struct sample *sample)
{
    struct trace_op expected;

    sample_op(&expected, (uint32_t)(op->issue_ns / 1000), sample->result);
    assert_int_equal(op->issue_ns, expected.issue_ns);
    assert_int_equal(op->latency_ns, expected.latency_ns);
    assert_int_equal(op->offset, expected.offset);
    assert_int_equal(op->length, expected.length);
    assert_int_equal(op->result, expected.result);
    assert_int_equal(op->due_ns, expected.due_ns);
    assert_int_equal(op->submit_ns, expected.submit_ns);
    assert_int_equal(op->ref, expected.ref);
    assert_int_equal(op->batch, expected.batch);
    assert_int_equal(op->file, expected.file);
    assert_int_equal(op->file2, expected.file2);
    assert_int_equal(op->stream, expected.stream);
    assert_int_equal(op->flags, expected.flags);
    assert_int_equal(op->arg, expected.arg);
    assert_int_equal(op->kind, expected.kind);
    assert_int_equal(op->api, expected.api);
    assert_int_equal(op->completion, expected.completion);
    assert_int_equal(op->cause, expected.cause);
}

static void tables_check(struct trace_reader *reader, const struct sample *sample)
{
    for (uint32_t i = 0; i < trace_reader_file_count(reader); i++) {
        const struct trace_file *file = trace_reader_file(reader, i);
        struct trace_file expected;
        char path[64];

        sample_file(&expected, path, sizeof(path), i);
        if (sample->names_lost) {
            snprintf(path, sizeof(path), "unknown-file-%u", i);
            assert_string_equal(file->path, path);
            continue;
        }
        assert_string_equal(file->path, expected.path);
        assert_int_equal(file->size_bytes, expected.size_bytes);
        assert_int_equal(file->inode, expected.inode);
        assert_int_equal(file->device, expected.device);
        assert_int_equal(file->mode, expected.mode);
        assert_int_equal(file->flags, expected.flags);
        assert_int_equal(file->kind, expected.kind);
        if (!sample->raw && !sample->truncated)
            assert_int_equal(file->max_end, i * 3);
    }
    for (uint32_t i = 0; i < trace_reader_stream_count(reader); i++) {
        const struct trace_stream *stream = trace_reader_stream(reader, i);
        struct trace_stream expected;
        char comm[32];

        sample_stream(&expected, comm, sizeof(comm), i);
        assert_int_equal(stream->tid, expected.tid);
        assert_int_equal(stream->pid, expected.pid);
        assert_string_equal(stream->comm, expected.comm);
    }
}

static void sample_check(const struct sample *sample)
{
    const struct trace_op *ops;
    struct diag diag = DIAG_INIT;
    struct trace_damage damage;
    struct trace_reader *reader;
    uint64_t total = 0;
    size_t count;
    int got;

    got = trace_reader_open_path(&reader, sample_path(sample->name), &diag);
    if (got != sample->open_error)
        fail_msg("%s: %s", sample->name, diag.text);
    if (got < 0)
        return;
    while ((got = trace_reader_next(reader, &ops, &count)) == 1) {
        for (size_t i = 0; i < count; i++)
            op_check(&ops[i], sample);
        total += count;
    }
    assert_int_equal(got, 0);
    assert_int_equal(total, sample->ops);
    trace_reader_damage(reader, &damage);
    assert_int_equal(damage.ops, sample->lost_ops);
    assert_int_equal(damage.blocks, sample->damaged_blocks);
    assert_int_equal(damage.truncated, sample->truncated);
    assert_int_equal(trace_reader_is_raw(reader), sample->raw);
    assert_int_equal(trace_reader_is_result(reader), sample->result);
    assert_int_equal(trace_reader_load_tables(reader), 0);
    assert_string_equal(trace_reader_meta(reader, TRACE_META_SOURCE), "sample");
    if (!sample->truncated)
        assert_int_equal(trace_reader_lost(reader), 7);
    tables_check(reader, sample);
    trace_reader_free(reader);
}

static void test_samples(void **state)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
        sample_check(&samples[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
