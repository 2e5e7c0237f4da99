/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "traces/crc32c.h"

/* The check value of the catalogue, and RFC 3720's examples. */
static void test_known(void **state)
{
    uint8_t bytes[32] = {0};

    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc32c(0, "", 0), 0);
    assert_int_equal(crc32c(0, bytes, 32), 0x8a9136aa);
    for (unsigned int i = 0; i < 32; i++)
        bytes[i] = 0xff;
    assert_int_equal(crc32c(0, bytes, 32), 0x62a8ab43);
    for (unsigned int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(crc32c(0, bytes, 32), 0x46dd794e);
}

/* The instruction and the table agree at every length and alignment, whole or in two steps. */
static void test_agree(void **state)
{
    uint8_t bytes[300];
    uint32_t seed = 1;

    for (size_t i = 0; i < sizeof(bytes); i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(seed >> 24);
    }
    for (size_t from = 0; from < 9; from++)
        for (size_t length = 0; length + from <= sizeof(bytes); length++) {
            uint32_t crc = crc32c(0, bytes + from, length);

            assert_int_equal(crc, crc32c_table(0, bytes + from, length));
            assert_int_equal(crc, crc32c(crc32c(0, bytes + from, length / 3),
                                         bytes + from + length / 3, length - length / 3));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
