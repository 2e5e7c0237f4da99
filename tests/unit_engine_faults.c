/* SPDX-License-Identifier: MIT */
/* IOTAPE_FAULT: its grammar, and what each fault does to a run on a real engine. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engines/fault.h"
#include "tests/engine_bench.h"

static int forget_faults(void **test_state)
{
    unsetenv("IOTAPE_FAULT");
    fault_reset();
    return 0;
}

static void set_fault(const char *text)
{
    fault_reset();
    setenv("IOTAPE_FAULT", text, 1);
}

static void text_is_checked(void **test_state)
{
    static const char *const bad[] = {
        "submit",         "submit:0:EIO", "submit:x:EIO",         "submit:1",
        "submit:1:EWHAT", "jump:1:EIO",   "short:1:EIO",          "short",
        "stall:1:soon",   "stall:1",      "open:1:ENOMEM;submit",
    };
    struct diag diag = DIAG_INIT;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        diag_clear(&diag);
        assert_int_equal(fault_load(bad[i], &diag), -EINVAL);
        assert_non_null(strstr(diag.text, "IOTAPE_FAULT"));
    }
    assert_int_equal(fault_load(NULL, &diag), 0);
    assert_int_equal(fault_load("", &diag), 0);
    assert_int_equal(fault_load("submit:7:EIO;stall:9:20ms;short:5;;open:1:ENOMEM", &diag), 1);
    assert_int_equal(fault_open(), -ENOMEM);
    assert_int_equal(fault_open(), 0);
    assert_int_equal(fault_errno("EIO"), -EIO);
    assert_int_equal(fault_errno("EWHAT"), 0);
}

static void bad_text_fails_open(void **test_state)
{
    struct bench bench;

    set_fault("nonsense");
    bench_init(&bench, -1, 1);
    assert_int_equal(bench_open(&bench, "null"), -EINVAL);
    bench_close(&bench);
}

static void the_nth_open_fails(void **test_state)
{
    struct bench bench;

    set_fault("open:2:ENOMEM");
    for (int i = 1; i <= 3; i++) {
        bench_init(&bench, -1, 1);
        assert_int_equal(bench_open(&bench, "null"), i == 2 ? -ENOMEM : 0);
        bench_close(&bench);
    }
}

/* Hands count reads over in batches of 4, and counts what became of them. */
struct outcome {
    unsigned int completed, failed, failed_at, halved, empty_reaps;
    int error;
};

static struct outcome drive(const char *choice, unsigned int count)
{
    struct outcome outcome = {0};
    struct engine_op op[4], *ops[4], *done[4];
    struct bench bench;
    int fd = bench_file("faults", 64 * 512, 7), n;

    bench_init(&bench, fd, 4);
    assert_int_equal(bench_open(&bench, choice), 0);
    for (unsigned int first = 0; first < count; first += 4) {
        unsigned int handed = 0, back = 0;

        for (unsigned int i = 0; i < 4; i++) {
            op[i] = bench_op(&bench, TRACE_READ, i, (first + i) * 512, 512);
            op[i].core = (void *)(uintptr_t)(first + i + 1);
            ops[i] = &op[i];
        }
        while (back < 4 && !outcome.error) {
            n = engine_submit(bench.handle, ops + handed, 4 - handed);
            assert_true(n >= 0);
            handed += (unsigned int)n;
            n = engine_reap(bench.handle, done, 1, 4, UINT64_MAX);
            if (n < 0)
                outcome.error = n;
            outcome.empty_reaps += n == 0;
            for (int i = 0; i < n; i++) {
                outcome.completed++;
                if (done[i]->result == -EIO) {
                    outcome.failed++;
                    outcome.failed_at = (unsigned int)(uintptr_t)done[i]->core;
                } else if (done[i]->result == 256) {
                    outcome.halved++;
                } else {
                    assert_int_equal(done[i]->result, 512);
                }
            }
            back += n > 0 ? (unsigned int)n : 0;
        }
        if (outcome.error)
            break;
    }
    bench_close(&bench);
    close(fd);
    return outcome;
}

static const char *const choices[] = {"null", "vsync", "threads", "model:service=1us"};

static void the_nth_op_fails_and_no_other(void **test_state)
{
    char text[64];

    for (size_t c = 0; c < sizeof(choices) / sizeof(choices[0]); c++) {
        for (unsigned int nth = 1; nth <= 17; nth++) {
            struct outcome outcome;

            snprintf(text, sizeof(text), "submit:%u:EIO", nth);
            set_fault(text);
            outcome = drive(choices[c], 16);
            assert_int_equal(outcome.completed, 16);
            assert_int_equal(outcome.failed, nth <= 16 ? 1 : 0);
            assert_int_equal(outcome.failed_at, nth <= 16 ? nth : 0);
        }
    }
}

static void neighbouring_ops_can_fail(void **test_state)
{
    set_fault("submit:3:EIO;submit:4:EIO;submit:5:EIO;submit:16:EIO");
    assert_int_equal(drive("null", 16).failed, 4);
}

static void the_nth_transfer_comes_out_short(void **test_state)
{
    for (size_t c = 0; c < sizeof(choices) / sizeof(choices[0]); c++) {
        struct outcome outcome;

        set_fault("short:5;short:16");
        outcome = drive(choices[c], 16);
        assert_int_equal(outcome.completed, 16);
        assert_int_equal(outcome.halved, 2);
    }
}

static void a_reap_returns_early_or_breaks(void **test_state)
{
    struct outcome outcome;

    set_fault("reap:2:EINTR");
    outcome = drive("null", 16);
    assert_int_equal(outcome.completed, 16);
    assert_int_equal(outcome.empty_reaps, 1);
    set_fault("reap:2:ENODEV");
    assert_int_equal(drive("null", 16).error, -ENODEV);
}

static void a_stall_makes_submit_return_late(void **test_state)
{
    uint64_t before_ns;

    set_fault("stall:2:20ms");
    before_ns = clock_now_ns(&clock_real);
    assert_int_equal(drive("null", 16).completed, 16);
    assert_true(clock_now_ns(&clock_real) - before_ns >= 20000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(text_is_checked, forget_faults),
        cmocka_unit_test_teardown(bad_text_fails_open, forget_faults),
        cmocka_unit_test_teardown(the_nth_open_fails, forget_faults),
        cmocka_unit_test_teardown(the_nth_op_fails_and_no_other, forget_faults),
        cmocka_unit_test_teardown(neighbouring_ops_can_fail, forget_faults),
        cmocka_unit_test_teardown(the_nth_transfer_comes_out_short, forget_faults),
        cmocka_unit_test_teardown(a_reap_returns_early_or_breaks, forget_faults),
        cmocka_unit_test_teardown(a_stall_makes_submit_return_late, forget_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
