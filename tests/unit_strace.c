/* SPDX-License-Identifier: MIT */
/* The lexer of strace's text, the values in it, and which paths must be folders. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "convert/strace_paths.h"
#include "convert/strace_text.h"
#include "convert/strace_world.h"

static struct strace_line parse(const char *text)
{
    struct strace_line line;

    strace_line_parse(text, strlen(text), &line);
    return line;
}

static struct strace_slice slice(const char *text)
{
    return (struct strace_slice){text, strlen(text)};
}

static void prefixes(void **state)
{
    struct strace_line line;

    (void)state;
    line = parse("[pid  4711] 1700000000.123456789 close(3) = 0 <0.000000042>");
    assert_true(line.has_pid && line.bracketed && line.pid == 4711);
    assert_int_equal(STRACE_UNIX_TIME, line.clock);
    assert_int_equal(1700000000123456789, line.time_ns);
    assert_int_equal(1, line.grid_ns);
    assert_int_equal(42, line.duration_ns);
    line = parse("123   17:00:01.5 close(3) = 0");
    assert_int_equal(123, line.pid);
    assert_int_equal(STRACE_DAY_TIME, line.clock);
    assert_int_equal((17 * 3600 + 1) * 1000000000ll + 500000000, line.time_ns);
    /* ten digits are a time, seven at most a pid */
    line = parse("1700000000 close(3) = 0");
    assert_false(line.has_pid);
    assert_int_equal(STRACE_UNIX_TIME, line.clock);
    line = parse("4194304 close(3) = 0");
    assert_true(line.has_pid && line.clock == STRACE_NO_TIME);
    line = parse("     0.000123 close(3) = 0");
    assert_int_equal(STRACE_STEP_TIME, line.clock);
    assert_int_equal(123000, line.time_ns);
    line = parse("99<my app> [00007f12a0] close(3) = 0");
    assert_int_equal(99, line.pid);
    assert_true(strace_is(line.comm, "my app"));
    assert_int_equal(STRACE_CALL, line.shape);
}

static void shapes(void **state)
{
    static const struct {
        const char *text;
        enum strace_shape shape;
    } cases[] = {
        {"read(3,  <unfinished ...>", STRACE_UNFINISHED},
        {"<... read resumed>\"x\", 1) = 1", STRACE_RESUMED},
        {"<... read resumed> \"x\", 1) = 1", STRACE_RESUMED},
        {"7 +++ exited with 0 +++", STRACE_EXIT},
        {"7 +++ killed by SIGKILL (core dumped) +++", STRACE_EXIT},
        {"7 +++ superseded by execve in pid 9 +++", STRACE_SUPERSEDED},
        {"7 --- SIGCHLD {si_signo=SIGCHLD} ---", STRACE_SIGNAL},
        {"strace: Process 12 attached", STRACE_ATTACHED},
        {"exit_group(0)     = ?", STRACE_CALL},
        {"write(1, \"x\", 8Hello", STRACE_PARTIAL},
        {"Hello", STRACE_FOREIGN},
        {"", STRACE_BLANK},
        {" > /lib/libc.so(read+0x10) [0x1]", STRACE_BLANK},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (parse(cases[i].text).shape != cases[i].shape)
            fail_msg("%s: shape %d", cases[i].text, parse(cases[i].text).shape);
}

static void ends_and_arguments(void **state)
{
    struct strace_slice args[4];
    struct strace_line line;

    (void)state;
    line = parse("wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 5");
    assert_int_equal(4, strace_args_split(line.args, args, 4));
    assert_true(strace_is(line.result, "5"));
    line = parse("write(3</a, b) = 1>, \"x) = 2\\\"\", 9) = 3");
    assert_int_equal(3, strace_args_split(line.args, args, 4));
    assert_true(strace_is(args[2], "9"));
    assert_true(strace_is(line.result, "3"));
    line = parse("read(3</dev/null<char 1:3>>, \"\", 4) = 0 <0.000009>");
    assert_int_equal(3, strace_args_split(line.args, args, 4));
    assert_true(strace_is(args[0], "3</dev/null<char 1:3>>"));
    line = parse("read(3, \"\", 4) = -1 EAGAIN (Resource temporarily unavailable)");
    assert_int_equal(-EAGAIN, strace_errno((struct strace_slice){line.result.at + 2,
                                                                 line.result.length - 2}));
}

static void values(void **state)
{
    struct strace_slice value;
    struct strace_fd fd;
    char text[64];
    int64_t number;

    (void)state;
    assert_true(strace_number(slice("0x10, x"), &number) && number == 16);
    assert_true(strace_number(slice("-100"), &number) && number == -100);
    assert_true(strace_number(slice("0644"), &number) && number == 420);
    assert_false(strace_number(slice("NULL"), &number));
    assert_true(strace_fd_parse(slice("5</x y>(deleted)"), &fd));
    assert_true(fd.fd == 5 && fd.deleted && strace_is(fd.shown, "/x y"));
    assert_true(strace_fd_parse(slice("0</dev/sda<block 8:0>>"), &fd));
    assert_true(strace_is(fd.shown, "/dev/sda") && strace_is(fd.device, "block 8:0"));
    assert_true(strace_fd_parse(slice("AT_FDCWD</d>"), &fd) && fd.fd == -100);
    assert_int_equal(6,
                     strace_unquote(slice("\"a\\n\\101\\x42\\\\\\\"\""), text, sizeof(text)));
    assert_memory_equal("a\nAB\\\"", text, 6);
    assert_int_equal(-1, strace_unquote(slice("\"cut\"..."), text, sizeof(text)));
    assert_int_equal(-1, strace_unquote(slice("\"longer than the buffer\""), text, 4));
    assert_int_equal(0x80042, strace_open_flags(slice("O_RDWR|O_CREAT|O_CLOEXEC")));
    assert_true(strace_field(slice("{a=1, b=[{c=2}], d=3}"), "d", &value) &&
                strace_is(value, "3"));
    assert_false(strace_field(slice("{a=1, b={d=3}}"), "d", &value));
}

static void folded_paths(void **state)
{
    static const char *const cases[][2] = {
        {"/a/./b//c/", "/a/b/c"},
        {"/a/../../b", "/b"},
        {"/..", "/"},
        {"a/../b", "a/../b"},
        {"./x", "x"},
        {".", "."},
        {"/", "/"},
        {"/a/b/..", "/a"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[64];
        size_t length = strlen(cases[i][0]);

        memcpy(path, cases[i][0], length);
        length = strace_path_fold(path, length);
        assert_int_equal(strlen(cases[i][1]), length);
        assert_memory_equal(cases[i][1], path, length);
    }
}

static int note_folder(void *context, uint32_t file)
{
    *(uint32_t *)context |= 1u << file;
    return 0;
}

static void folders_by_what_lies_in_them(void **state)
{
    struct strace_paths *paths = strace_paths_new();
    uint32_t folders = 0;

    (void)state;
    assert_non_null(paths);
    assert_int_equal(0, strace_paths_add(paths, "/d/e", 4, 0, note_folder, &folders));
    assert_int_equal(0, folders);
    assert_int_equal(0, strace_paths_add(paths, "/d/ee", 5, 1, note_folder, &folders));
    assert_int_equal(0, folders);
    assert_int_equal(0, strace_paths_add(paths, "/d/e/f/g", 8, 2, note_folder, &folders));
    assert_int_equal(1u << 0, folders);
    /* named after what lies in it */
    assert_int_equal(0, strace_paths_add(paths, "/d", 2, 3, note_folder, &folders));
    assert_int_equal(1u << 0 | 1u << 3, folders);
    strace_paths_free(paths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes),           cmocka_unit_test(shapes),
        cmocka_unit_test(ends_and_arguments), cmocka_unit_test(values),
        cmocka_unit_test(folded_paths),       cmocka_unit_test(folders_by_what_lies_in_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
