/* SPDX-License-Identifier: MIT */
/* Two tapes made by hand, with known differences, compared. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "replay/compare_tapes.h"
#include "replay/compare_tapes_report.h"
#include "traces/diag.h"

#define OPS 1000

/* One tape to write. change may alter an op or drop it (false). */
struct made {
    const char *name, *path, *cannot_tell, *result_of, *config;
    bool result;
    bool (*change)(struct trace_op *op, uint64_t index);
};

/* Op i: 1 ms apart, 100 us + i ns long, read or write of 4 KiB at a place of its own. */
static struct trace_op op_at(uint64_t i)
{
    struct trace_op op = TRACE_OP_INIT;

    op.kind = i % 4 == 0 ? TRACE_WRITE : TRACE_READ;
    op.issue_ns = (int64_t)i * 1000000;
    op.latency_ns = 100000 + i;
    op.completion = TRACE_COMPLETION_EXACT;
    op.offset = (i * 7919 % OPS) * 4096;
    op.length = 4096;
    op.result = 4096;
    op.file = 0;
    op.stream = 0;
    return op;
}

static void make(const struct made *made)
{
    struct trace_file file = {.path = made->path,
                              .size_bytes = OPS * 4096,
                              .kind = TRACE_FILE_REGULAR,
                              .ops = TRACE_UNKNOWN_U64,
                              .bytes = TRACE_UNKNOWN_U64,
                              .max_end = TRACE_UNKNOWN_U64};
    struct trace_stream stream = {.pid = 1, .tid = 1, .comm = "app"};
    struct trace_writer_conf conf = {
        .raw = made->result, .result = made->result, .block_ops = 128};
    struct diag diag = DIAG_INIT;
    struct trace_writer *writer;
    struct trace_sink sink;
    struct trace_op op;
    uint32_t index;
    uint64_t i;

    assert_int_equal(trace_sink_path(&sink, made->name, TRACE_SINK_RENAME, true, &diag), 0);
    assert_int_equal(trace_writer_open(&writer, &sink, &conf, &diag), 0);
    assert_int_equal(trace_writer_file(writer, &file, &index), 0);
    assert_int_equal(trace_writer_stream(writer, &stream, &index), 0);
    if (made->cannot_tell)
        assert_int_equal(trace_writer_meta(writer, TRACE_META_CANNOT_TELL, made->cannot_tell),
                         0);
    if (made->result_of)
        assert_int_equal(trace_writer_meta(writer, TRACE_META_RESULT_OF, made->result_of), 0);
    if (made->config)
        assert_int_equal(trace_writer_meta(writer, TRACE_META_CONFIG, made->config), 0);
    for (i = 0; i < OPS; i++) {
        op = op_at(i);
        if (made->result) {
            op.ref = i;
            op.due_ns = op.issue_ns;
        }
        if (!made->change || made->change(&op, i))
            assert_int_equal(trace_writer_ops(writer, &op, 1), 0);
    }
    assert_int_equal(trace_writer_close(writer), 0);
}

static void compare(struct tapes *tapes, const struct tapes_conf *conf)
{
    struct diag diag = DIAG_INIT;
    int err = tapes_compare(tapes, "a.tape", "b.tape", conf, &diag);

    if (err < 0)
        fail_msg("%s", diag.text);
}

static double figure(const struct tapes *tapes, const char *name, unsigned int which)
{
    double value[2];
    int err = tapes_figure(tapes, name, &value[0], &value[1]);

    if (err < 0)
        fail_msg("%s: %d", name, err);
    return value[which];
}

/* What a replay did: 20 us late, twice as slow, every tenth write skipped, op 501 before 500.
 */
static bool replayed(struct trace_op *op, uint64_t i)
{
    if (i % 40 == 0 && i > 0)
        return false;
    op->issue_ns += 20000;
    op->latency_ns *= 2;
    if (i == 501)
        op->issue_ns -= 1000000 + 15000;
    return true;
}

static void a_result_of_a(void **state)
{
    const struct tapes_conf conf = {0};
    struct made b = {.name = "b.tape",
                     .path = "/copy/data",
                     .result = true,
                     .result_of = "a.tape",
                     .config = "{\"pace\":\"recorded\",\"speed\":1}",
                     .change = replayed};
    struct made a = {.name = "a.tape", .path = "/data"};
    struct tapes tapes;

    make(&a);
    make(&b);
    compare(&tapes, &conf);
    assert_int_equal(tapes.how, TAPES_REF);
    assert_int_equal(tapes.pairs->matched, OPS - 24);
    assert_int_equal(tapes.unmatched[0].ops, 24);
    assert_int_equal(tapes.unmatched[0].by_kind[TRACE_WRITE], 24);
    assert_int_equal(tapes.unmatched[1].ops, 0);
    assert_false(tapes.other_tape);
    /* The first due is the anchor: all errors are the 20 us but one. */
    assert_int_equal(curve_signed_quantile(&tapes.pairs->issue_error, 0.5) / 1000, 20);
    assert_int_equal(curve_signed_max(&tapes.pairs->due_error), 0);
    assert_int_equal(curve_signed_min(&tapes.pairs->due_error), 0);
    assert_int_equal(tapes.pairs->overtaken, 1);
    assert_int_equal(tapes.pairs->overtaken_most_ns, 1000000);
    assert_int_equal(tapes.pairs->latency_pairs, OPS - 24);
    assert_true(fabs(figure(&tapes, "p50", 1) / figure(&tapes, "p50", 0) - 2) < 0.03);
    assert_true(figure(&tapes, "lost", 1) == 24);
    assert_true(figure(&tapes, "read.p50", 1) > figure(&tapes, "read.p50", 0));
    assert_int_equal(tapes.pairs->by_kind.used, 2);
    assert_int_equal(tapes.pairs->by_file.used, 1);
    tapes_release(&tapes);
}

/* The same at twice the speed: errors are against half the times. */
static bool hurried(struct trace_op *op, uint64_t i)
{
    op->issue_ns = op->due_ns = op->issue_ns / 2;
    op->issue_ns += 7000;
    return true;
}

static void at_twice_the_speed(void **state)
{
    const struct tapes_conf conf = {0};
    struct made b = {.name = "b.tape",
                     .path = "/data",
                     .result = true,
                     .result_of = "other.tape",
                     .config = "{\"pace\":\"recorded\",\"speed\":\"2\"}",
                     .change = hurried};
    struct made a = {.name = "a.tape", .path = "/data"};
    struct tapes tapes;

    make(&a);
    make(&b);
    compare(&tapes, &conf);
    assert_true(tapes.speed == 2);
    assert_true(tapes.other_tape);
    assert_true(fabs(curve_signed_mean(&tapes.pairs->issue_error) - 7000) < 1);
    assert_true(fabs(figure(&tapes, "gap_ks", 1) - 1) < 1e-9);
    tapes_release(&tapes);
}

/* A tape whose plan is false: due times that creep away from the recording. */
static bool crept(struct trace_op *op, uint64_t i)
{
    op->due_ns += (int64_t)i * 100;
    op->issue_ns = op->due_ns;
    return true;
}

static void a_false_plan_shows(void **state)
{
    const struct tapes_conf conf = {0};
    struct made b = {.name = "b.tape",
                     .path = "/data",
                     .result = true,
                     .result_of = "a.tape",
                     .change = crept};
    struct made a = {.name = "a.tape", .path = "/data"};
    struct tapes tapes;

    make(&a);
    make(&b);
    compare(&tapes, &conf);
    assert_true(curve_signed_max(&tapes.side[1]->lag) == 0);
    assert_int_equal(curve_signed_max(&tapes.pairs->due_error), 99900);
    tapes_release(&tapes);
}

static bool every_second_upper(struct trace_op *op, uint64_t i)
{
    if (i % 2 == 0) {
        op->completion = TRACE_COMPLETION_UPPER;
        op->latency_ns = 900000000;
    } else if (i % 50 == 1) {
        op->completion = TRACE_COMPLETION_UNKNOWN;
        op->latency_ns = TRACE_UNKNOWN_U64;
    }
    return true;
}

/* Bounds and unknowns are counted and stay out of every percentile. */
static void bounds_stay_out(void **state)
{
    const struct tapes_conf conf = {0};
    struct made b = {.name = "b.tape", .path = "/data", .change = every_second_upper};
    struct made a = {.name = "a.tape", .path = "/data"};
    struct tapes tapes;

    make(&a);
    make(&b);
    compare(&tapes, &conf);
    assert_int_equal(tapes.how, TAPES_CONTENT);
    assert_int_equal(tapes.files, TAPES_FILES_PATH);
    assert_int_equal(tapes.pairs->matched, OPS);
    assert_int_equal(tapes.side[1]->upper, 500);
    assert_int_equal(tapes.side[1]->unknown, 20);
    assert_int_equal(tapes.side[1]->exact, 480);
    assert_int_equal(tapes.side[1]->latency.count, 480);
    assert_true(figure(&tapes, "max", 1) < 102000);
    assert_int_equal(tapes.pairs->latency_pairs, 480);
    assert_int_equal(tapes.pairs->overtaken, 0);
    tapes_release(&tapes);
}

static bool elsewhere(struct trace_op *op, uint64_t i)
{
    op->latency_ns = TRACE_UNKNOWN_U64;
    op->completion = TRACE_COMPLETION_UNKNOWN;
    if (i == 10)
        op->length = 8192;
    return i != 20;
}

/* Strangers of the same content: matched by the last component of the path. */
static void strangers(void **state)
{
    const struct tapes_conf conf = {0};
    struct made b = {
        .name = "b.tape", .path = "/mnt/b/data", .cannot_tell = "latency", .change = elsewhere};
    struct made a = {.name = "a.tape", .path = "/data"};
    struct tapes tapes;
    double ignored[2];

    make(&a);
    make(&b);
    compare(&tapes, &conf);
    assert_int_equal(tapes.files, TAPES_FILES_BASE);
    assert_int_equal(tapes.pairs->matched, OPS - 2);
    assert_int_equal(tapes.unmatched[0].ops, 2); /* 10 and 20 */
    assert_int_equal(tapes.unmatched[1].ops, 1); /* the longer 10 */
    assert_true(tapes_cannot_tell(&tapes, 1, "latency"));
    assert_false(tapes_cannot_tell(&tapes, 1, "late"));
    assert_true(tapes.no_latency[1]);
    assert_int_equal(tapes_figure(&tapes, "p99", &ignored[0], &ignored[1]), -ENODATA);
    assert_int_equal(tapes_figure(&tapes, "p99x", &ignored[0], &ignored[1]), -EINVAL);
    assert_int_equal(tapes_figure(&tapes, "nosuch.p99", &ignored[0], &ignored[1]), -EINVAL);
    tapes_release(&tapes);
}

static bool late_start(struct trace_op *op, uint64_t i)
{
    op->offset = ((i + 500) % OPS * 7919 % OPS) * 4096;
    return true;
}

static void count_text(void *context, const char *text)
{
    if (strstr(text, "window of 16"))
        ++*(unsigned int *)context;
}

/* Partners half a tape apart: a small window says that it was not enough. */
static void small_window(void **state)
{
    struct tapes_conf conf = {.window = 16};
    struct made b = {.name = "b.tape", .path = "/data", .change = late_start};
    struct made a = {.name = "a.tape", .path = "/data"};
    struct tapes tapes;
    unsigned int said = 0;

    make(&a);
    make(&b);
    compare(&tapes, &conf);
    assert_true(tapes.pairs->matched < OPS / 2);
    assert_true(tapes.unmatched[0].given_up > 0);
    tapes_remarks(&tapes, count_text, &said);
    assert_int_equal(said, 1);
    tapes_release(&tapes);
    conf.window = 2048;
    compare(&tapes, &conf);
    assert_int_equal(tapes.pairs->matched, OPS);
    assert_true(tapes.pairs->overtaken > 0);
    tapes_release(&tapes);
}

/* Depth: 1 ms apart, 3.5 ms long: 3.5 in flight on the long run. */
static bool long_ops(struct trace_op *op, uint64_t i)
{
    op->latency_ns = 3500000;
    return true;
}

static void depth(void **state)
{
    const struct tapes_conf conf = {0};
    struct made b = {.name = "b.tape", .path = "/data", .change = long_ops};
    struct made a = {.name = "a.tape", .path = "/data"};
    struct tapes tapes;

    make(&a);
    make(&b);
    compare(&tapes, &conf);
    assert_true(fabs(figure(&tapes, "depth_mean", 1) - 3.5) < 0.02);
    assert_true(figure(&tapes, "depth_max", 1) == 4);
    assert_true(figure(&tapes, "depth_max", 0) == 1);
    assert_true(figure(&tapes, "depth_ks", 1) > 0.9);
    tapes_release(&tapes);
}

static void refusals(void **state)
{
    const struct tapes_conf conf = {.how = TAPES_REF};
    struct made a = {.name = "a.tape", .path = "/data"},
                b = {.name = "b.tape", .path = "/data"};
    struct diag diag = DIAG_INIT;
    struct tapes tapes;

    make(&a);
    make(&b);
    assert_int_equal(tapes_compare(&tapes, "a.tape", "b.tape", &conf, &diag), -EINVAL);
    diag_clear(&diag);
    assert_int_equal(tapes_compare(&tapes, "-", "-", &conf, &diag), -EINVAL);
    diag_clear(&diag);
    assert_int_equal(tapes_compare(&tapes, "a.tape", "none.tape", &conf, &diag), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_of_a),
        cmocka_unit_test(at_twice_the_speed),
        cmocka_unit_test(a_false_plan_shows),
        cmocka_unit_test(bounds_stay_out),
        cmocka_unit_test(strangers),
        cmocka_unit_test(small_window),
        cmocka_unit_test(depth),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
