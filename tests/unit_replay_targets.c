/* SPDX-License-Identifier: MIT */
/* Paths that try to leave their directory, by both ways of opening; offsets made to fit. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "replay/beneath.h"
#include "replay/conf.h"
#include "replay/fit.h"

static int root_fd;

static void touch(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0600);

    assert_true(fd >= 0);
    close(fd);
}

static int make_tree(void **state)
{
    char dir[] = "/tmp/iotape-unit.XXXXXX";
    const char *temp = getenv("TMPDIR");

    (void)state;
    if (temp == NULL || chdir(temp) != 0)
        assert_int_equal(chdir(mkdtemp(dir)), 0);
    assert_int_equal(mkdir("root", 0700), 0);
    assert_int_equal(mkdir("root/dir", 0700), 0);
    assert_int_equal(mkdir("outside", 0700), 0);
    touch("root/dir/file");
    touch("outside/secret");
    assert_int_equal(symlink("../outside", "root/out"), 0);
    assert_int_equal(symlink("dir/file", "root/in"), 0);
    assert_int_equal(symlink("/etc/passwd", "root/dir/abs"), 0);
    root_fd = open("root", O_RDONLY | O_DIRECTORY);
    assert_true(root_fd >= 0);
    return 0;
}

static void test_relative(void **state)
{
    (void)state;
    assert_string_equal(beneath_relative("///a/b"), "a/b");
    assert_string_equal(beneath_relative("a..b/..c"), "a..b/..c");
    assert_null(beneath_relative("/"));
    assert_null(beneath_relative(""));
    assert_null(beneath_relative("/a/../b"));
    assert_null(beneath_relative(".."));
    assert_null(beneath_relative("a/.."));
    assert_null(beneath_relative("../a"));
}

static void check_open(bool walk)
{
    int fd = beneath_open(root_fd, "/dir/file", O_RDONLY, 0, walk);

    assert_true(fd >= 0);
    close(fd);
    fd = beneath_open(root_fd, "dir//./file", O_RDONLY, 0, walk);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(beneath_open(root_fd, "dir/none", O_RDONLY, 0, walk), -ENOENT);
    assert_int_equal(beneath_open(root_fd, "none/file", O_RDONLY, 0, walk), -ENOENT);
    assert_int_equal(beneath_open(root_fd, "in", O_RDONLY, 0, walk), -EXDEV);
    assert_int_equal(beneath_open(root_fd, "out/secret", O_RDONLY, 0, walk), -EXDEV);
    assert_int_equal(beneath_open(root_fd, "dir/abs", O_RDONLY, 0, walk), -EXDEV);
    assert_int_equal(beneath_open(root_fd, "../outside/secret", O_RDONLY, 0, walk), -EXDEV);
    assert_int_equal(beneath_open(root_fd, "dir/../../outside/secret", O_RDONLY, 0, walk), -EXDEV);
    assert_int_equal(beneath_open(root_fd, "out/new", O_RDWR | O_CREAT, 0600, walk), -EXDEV);
    assert_int_not_equal(access("outside/new", F_OK), 0);
    fd = beneath_open(root_fd, walk ? "dir/new1" : "dir/new2", O_RDWR | O_CREAT | O_EXCL, 0600,
                      walk);
    assert_true(fd >= 0);
    close(fd);
    fd = beneath_open(root_fd, "dir", O_RDONLY | O_DIRECTORY, 0644, walk);
    assert_true(fd >= 0);
    close(fd);
}

static void test_open(void **state)
{
    (void)state;
    check_open(false);
    check_open(true);
}

static void test_parents(void **state)
{
    const char *name;
    int fd;

    (void)state;
    assert_int_equal(beneath_make_parents(root_fd, "/x/y/z/file"), 0);
    assert_int_equal(access("root/x/y/z", F_OK), 0);
    assert_int_not_equal(access("root/x/y/z/file", F_OK), 0);
    assert_int_equal(beneath_make_parents(root_fd, "/out/y/file"), -EXDEV);
    assert_int_not_equal(access("outside/y", F_OK), 0);
    fd = beneath_parent(root_fd, "/x/y/last", &name);
    assert_true(fd >= 0);
    assert_string_equal(name, "last");
    close(fd);
    assert_int_equal(beneath_parent(root_fd, "out/secret", &name), -EXDEV);
}

/* Nothing lands outside the target, whatever the offset. */
static void check_inside(const struct fit *fit)
{
    const uint64_t lengths[] = {0, 512, 4096, 65536, 1 << 20};

    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
        for (uint64_t offset = 0; offset < (1ull << 42); offset = offset * 3 + 4096) {
            uint64_t at = fit_offset(fit, 0, offset, lengths[l]);

            assert_true(at + lengths[l] <= fit->size_bytes);
            if (fit->how != FIT_SCALE || lengths[l] <= 4096)
                assert_int_equal(at % 512, offset % 512);
        }
}

static void test_wrap_scale(void **state)
{
    struct fit fit = {.how = FIT_WRAP, .size_bytes = 100 << 20, .reach_bytes = 1ull << 42};

    (void)state;
    check_inside(&fit);
    assert_int_equal(fit_offset(&fit, 0, 4096, 4096), 4096);
    assert_int_equal(fit_offset(&fit, 0, (100 << 20) + 8192, 4096), 8192);
    fit.how = FIT_SCALE;
    check_inside(&fit);
    assert_int_equal(fit_offset(&fit, 0, 1ull << 41, 4096), 50 << 20);
    fit.reach_bytes = 50 << 20; /* it fits: nothing moves */
    assert_int_equal(fit_offset(&fit, 0, 12345, 100), 12345);
}

/* Touched parts side by side, in order, neighbours still neighbours. */
static void test_pack(void **state)
{
    const uint64_t tera = 1ull << 40;
    struct pack *pack = pack_new();

    (void)state;
    assert_non_null(pack);
    assert_int_equal(pack_touch(pack, 1, 2 * tera, 4096, NULL), 0);
    assert_int_equal(pack_touch(pack, 0, tera - 4096, 8192, NULL), 0); /* two chunks */
    assert_int_equal(pack_touch(pack, 0, 5, 10, NULL), 0);
    assert_int_equal(pack_seal(pack), 4 * 65536);
    assert_int_equal(pack_offset(pack, 0, 5), 5);
    assert_int_equal(pack_offset(pack, 0, tera - 4096), 65536 + 61440);
    assert_int_equal(pack_offset(pack, 0, tera), 2 * 65536);
    assert_int_equal(pack_offset(pack, 1, 2 * tera + 100), 3 * 65536 + 100);
    pack_free(pack);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relative),   cmocka_unit_test(test_open),
        cmocka_unit_test(test_parents),    cmocka_unit_test(test_wrap_scale),
        cmocka_unit_test(test_pack),
    };

    return cmocka_run_group_tests(tests, make_tree, NULL);
}
