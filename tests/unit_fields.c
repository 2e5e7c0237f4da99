/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "convert/fields.h"
#include "convert/inflight.h"
#include "convert/rwbs.h"

static struct field field_of(const char *text)
{
    struct field field = {text, strlen(text), 1};

    return field;
}

static void test_split(void **state)
{
    struct field fields[3];
    const char *line = " a ,, b c ,d";

    assert_int_equal(fields_split(line, strlen(line), ',', fields, 3), 4);
    assert_true(field_is(&fields[0], "a") && field_is(&fields[1], "") &&
                field_is(&fields[2], "b c"));
    assert_int_equal(fields[2].column, 7);
    line = "\t one  two\tthree ";
    assert_int_equal(fields_split(line, strlen(line), ' ', fields, 3), 3);
    assert_true(field_is(&fields[2], "three") && field_is_word(&fields[1], "TWO"));
    assert_int_equal(fields_split("", 0, ',', fields, 3), 0);
    assert_int_equal(fields_split(" \t ", 3, ' ', fields, 3), 0);
    assert_int_equal(fields_split(",", 1, ',', fields, 3), 2);
}

static void test_numbers(void **state)
{
    uint64_t value = 7;
    struct field field = field_of("18446744073709551615");

    assert_int_equal(field_u64(&field, &value), 0);
    assert_true(value == UINT64_MAX);
    field = field_of("18446744073709551616");
    assert_int_equal(field_u64(&field, &value), -ERANGE);
    field = field_of("-1");
    assert_int_equal(field_u64(&field, &value), -EINVAL);
    field = field_of("");
    assert_int_equal(field_u64(&field, &value), -EINVAL);
    assert_true(value == UINT64_MAX);
    field = field_of("0xFFFFffffFFFFffff");
    assert_int_equal(field_hex(&field, &value), 0);
    assert_true(value == UINT64_MAX);
    field = field_of("10000000000000000");
    assert_int_equal(field_hex(&field, &value), -ERANGE);
    field = field_of("0x");
    assert_int_equal(field_hex(&field, &value), -EINVAL);
}

static void scaled(const char *text, uint64_t num, uint64_t den, int err, int64_t expected)
{
    struct field field = field_of(text);
    int64_t value = 77;
    int got = field_scaled(&field, num, den, &value);

    if (got != err || value != (err ? 77 : expected))
        fail_msg("'%s': %d, %lld", text, got, (long long)value);
}

static void test_scaled(void **state)
{
    scaled("1.000000001", 1000000000, 1, 0, 1000000001);
    scaled("1456095145.133076000", 1000000000, 1, 0, 1456095145133076000);
    scaled("0.0000000005", 1000000000, 1, 0, 1);
    scaled("0.00000000049", 1000000000, 1, 0, 0);
    scaled("81442951.096", 1000, 1, 0, 81442951096);
    scaled("128166372003061629", 100, 1, -ERANGE, 0);
    scaled("92233720368547758.07", 100, 1, 0, INT64_MAX);
    scaled("173744962312", 1, 2, 0, 86872481156);
    scaled("3.5", 1, 2, 0, 2);
    scaled("-0.5", 1000, 1, 0, -500);
    scaled("1.2345678901234567891", 1000000000, 1, 0, 1234567890);
    scaled("1.23456789012345678x1", 1000000000, 1, -EINVAL, 0);
    scaled("1.", 10, 1, -EINVAL, 0);
    scaled(".5", 10, 1, -EINVAL, 0);
    scaled("1e3", 10, 1, -EINVAL, 0);
    scaled("", 10, 1, -EINVAL, 0);
    scaled("18446744073709551615", 3600000000000, 1, -ERANGE, 0);
}

static void rwbs(const char *text, uint64_t bytes, int err, unsigned int kind, uint32_t flags)
{
    unsigned int got_kind = 99;
    uint32_t got_flags = 99;
    int got = rwbs_parse(text, strlen(text), bytes, &got_kind, &got_flags);

    if (got != err || (!err && (got_kind != kind || got_flags != flags)))
        fail_msg("'%s': %d, %u, 0x%x", text, got, got_kind, got_flags);
}

static void test_rwbs(void **state)
{
    rwbs("R", 4096, 0, TRACE_READ, 0);
    rwbs("RAM", 4096, 0, TRACE_READ, TRACE_F_READAHEAD | TRACE_F_META);
    rwbs("WFS", 4096, 0, TRACE_WRITE, TRACE_F_FUA | TRACE_F_SYNC);
    rwbs("FWFS", 4096, 0, TRACE_WRITE, TRACE_F_PREFLUSH | TRACE_F_FUA | TRACE_F_SYNC);
    rwbs("FWS", 0, 0, TRACE_FLUSH, TRACE_F_SYNC);
    rwbs("WBS", 4096, 0, TRACE_WRITE, TRACE_F_PREFLUSH | TRACE_F_FUA | TRACE_F_SYNC);
    rwbs("WB", 0, 0, TRACE_FLUSH, 0);
    rwbs("FF", 0, 0, TRACE_FLUSH, 0);
    rwbs("FN", 0, 0, TRACE_FLUSH, 0);
    rwbs("DS", 1 << 20, 0, TRACE_DISCARD, TRACE_F_SYNC);
    rwbs("WAU", 512, 0, TRACE_WRITE, TRACE_F_READAHEAD | TRACE_F_ATOMIC);
    rwbs("ZR", 0, 0, TRACE_ZONE_RESET, 0);
    rwbs("N", 0, 0, TRACE_OP_COUNT, 0);
    rwbs("Q", 4096, -EINVAL, 0, 0);
    rwbs("", 4096, -EINVAL, 0, 0);
    rwbs("WWWWWWWWWWWWWWWW", 4096, -EINVAL, 0, 0);
}

static void test_inflight(void **state)
{
    struct inflight *inflight = inflight_new(3);
    struct inflight_key a = {8, 100, TRACE_READ}, b = {8, 100, TRACE_WRITE};
    struct trace_op op = TRACE_OP_INIT, got;

    assert_non_null(inflight);
    assert_null(inflight_new(0));
    assert_false(inflight_take(inflight, &a, &got));
    for (int64_t i = 1; i <= 3; i++) {
        op.issue_ns = i;
        assert_false(inflight_put(inflight, i == 2 ? &b : &a, &op, &got));
    }
    assert_true(inflight_take(inflight, &a, &got));
    assert_int_equal(got.issue_ns, 1); /* the oldest of the same key first */
    op.issue_ns = 4;
    assert_false(inflight_put(inflight, &a, &op, &got));
    op.issue_ns = 5;
    assert_true(inflight_put(inflight, &a, &op, &got));
    assert_int_equal(got.issue_ns, 2); /* full: the oldest of all makes room */
    assert_false(inflight_take(inflight, &b, &got));
    for (int64_t i = 3; i <= 5; i++) {
        assert_true(inflight_take_any(inflight, &got));
        assert_int_equal(got.issue_ns, i);
    }
    assert_false(inflight_take_any(inflight, &got));
    inflight_free(inflight);
    inflight_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),    cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_scaled),   cmocka_unit_test(test_rwbs),
        cmocka_unit_test(test_inflight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
