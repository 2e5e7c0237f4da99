/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "traces/units.h"

struct row {
    const char *text;
    int err;
    uint64_t value;
};

static void check(int (*parse)(const char *, uint64_t *), const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 77;
        int err = parse(rows[i].text, &value);

        if (err != rows[i].err || value != (err ? 77 : rows[i].value))
            fail_msg("'%s': %d, %llu", rows[i].text, err, (unsigned long long)value);
    }
}

static void test_size(void **state)
{
    static const struct row rows[] = {
        {"0", 0, 0},
        {"4096", 0, 4096},
        {"4k", 0, 4096},
        {"4K", 0, 4096},
        {"4KiB", 0, 4096},
        {"4kB", 0, 4000},
        {"1.5m", 0, 1572864},
        {"1 MiB", 0, 1048576},
        {"2t", 0, 2ull << 40},
        {"18446744073709551615", 0, UINT64_MAX},
        {"18446744073709551616", -ERANGE, 0},
        {"16384p", -ERANGE, 0},
        {"-1", -ERANGE, 0},
        {"", -EINVAL, 0},
        {"k", -EINVAL, 0},
        {"1.5", -EINVAL, 0},
        {"1.k", -EINVAL, 0},
        {"4x", -EINVAL, 0},
        {"4k4", -EINVAL, 0},
        {"0x10", -EINVAL, 0},
    };
    check(units_parse_size, rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_time(void **state)
{
    static const struct row rows[] = {
        {"0", 0, 0},
        {"10ms", 0, 10000000},
        {"1.5s", 0, 1500000000},
        {"200us", 0, 200000},
        {"7ns", 0, 7},
        {"2min", 0, 120000000000},
        {"1h", 0, 3600000000000},
        {"10", -EINVAL, 0},
        {"1.5ns", -EINVAL, 0},
        {"6000000h", -ERANGE, 0},
    };
    check(units_parse_time, rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_count(void **state)
{
    static const struct row rows[] = {
        {"10k", 0, 10000},
        {"1m", 0, 1000000},
        {"1.5g", 0, 1500000000},
        {"1kib", -EINVAL, 0},
    };
    check(units_parse_count, rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_double(void **state)
{
    double value = 7;

    assert_int_equal(units_parse_double("1.25", &value), 0);
    assert_true(value == 1.25);
    assert_int_equal(units_parse_double("nan", &value), -EINVAL);
    assert_int_equal(units_parse_double("1e999", &value), -EINVAL);
    assert_int_equal(units_parse_double(" 1", &value), -EINVAL);
    assert_int_equal(units_parse_double("", &value), -EINVAL);
    assert_true(value == 1.25);
}

static void test_print(void **state)
{
    char buf[UNITS_TEXT];

    assert_string_equal(units_size(4096, buf), "4.0 KiB");
    assert_string_equal(units_size(1023, buf), "1023 B");
    assert_string_equal(units_size(UINT64_MAX, buf), "16.0 EiB");
    assert_string_equal(units_time(999, buf), "999 ns");
    assert_string_equal(units_time(999999, buf), "1.0 ms");
    assert_string_equal(units_time(1500000000, buf), "1.50 s");
    assert_string_equal(units_count(999, buf), "999");
    assert_string_equal(units_count(1200000, buf), "1.2 M");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size),  cmocka_unit_test(test_time),
        cmocka_unit_test(test_count), cmocka_unit_test(test_double),
        cmocka_unit_test(test_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
