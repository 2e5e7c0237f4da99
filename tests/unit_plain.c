/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "traces/plain.h"

static void expect(const char *given, const char *wanted)
{
    char text[64];

    strcpy(text, given);
    plain_clean(text);
    assert_string_equal(text, wanted);
}

static void test_clean(void **state)
{
    expect("", "");
    expect("/data/file.db", "/data/file.db");
    expect("a\x1b[2J\r\n\t\x7f", "a?[2J????");
    /* U+009B is what ESC [ is; U+00E9 and U+201B have a byte of it and are letters. */
    expect("\xc2\x9b" "31m", "?31m");
    expect("\xc3\xa9 \xe2\x80\x9b \xc2\xa0", "\xc3\xa9 \xe2\x80\x9b \xc2\xa0");
    expect("cut\xc2", "cut\xc2");
}

static void test_control(void **state)
{
    assert_int_equal(plain_control(""), 0);
    assert_int_equal(plain_control("a\n"), 0);
    assert_int_equal(plain_control("\n"), 1);
    assert_int_equal(plain_control("\xc2\x80"), 2);
    assert_int_equal(plain_control("\xc2"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_control),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
