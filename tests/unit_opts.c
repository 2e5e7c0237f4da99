/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "traces/diag.h"
#include "traces/opts.h"

struct conf {
    uint64_t depth, size, wait_ns;
    double speed;
    bool quiet, writes;
    int pace;
    const char *root;
    struct opt_list maps;
    int calls;
};

static int parse_call(const struct opt *opt, void *conf, const char *text, struct diag *diag)
{
    if (strcmp(text, "bad") == 0)
        return diag_set(diag, -EINVAL, "option --%s: bad", opt->name);
    ((struct conf *)conf)->calls++;
    return 0;
}

static const char *const paces[] = {"asap", "recorded", NULL};
static const struct opt table[] = {
    {.type = OPT_HEADING, .help = "Load"},
    {"depth", 'd', OPT_COUNT, offsetof(struct conf, depth), "ops in flight", "N", "1", 1, 64,
     NULL, NULL},
    {"size", 0, OPT_SIZE, offsetof(struct conf, size), "bytes", "SIZE", NULL, 0, 0, NULL, NULL},
    {"wait", 0, OPT_TIME, offsetof(struct conf, wait_ns), "a time", "T", "10ms", 0, 0, NULL,
     NULL},
    {"speed", 0, OPT_DOUBLE, offsetof(struct conf, speed), "factor", "X", "1", 0, 1000, NULL,
     NULL},
    {"quiet", 'q', OPT_FLAG, offsetof(struct conf, quiet), "say less", NULL, NULL, 0, 0, NULL,
     NULL},
    {"writes", 'w', OPT_FLAG, offsetof(struct conf, writes), "allow", NULL, NULL, 0, 0, NULL,
     NULL},
    {"pace", 0, OPT_ENUM, offsetof(struct conf, pace), "when", "P", "recorded", 0, 0, paces,
     NULL},
    {"root", 0, OPT_STRING, offsetof(struct conf, root), "where", "DIR", NULL, 0, 0, NULL,
     NULL},
    {"map", 0, OPT_LIST, offsetof(struct conf, maps), "A=B", "A=B", NULL, 0, 0, NULL, NULL},
    {"call", 0, OPT_CALL, 0, "calls", "X", NULL, 0, 0, NULL, parse_call},
    {0},
};

static int parse(struct conf *conf, struct diag *diag, int *operands, bool stop,
                 const char **argv)
{
    int argc = 0;

    while (argv[argc])
        argc++;
    memset(conf, 0, sizeof(*conf));
    memset(diag, 0, sizeof(*diag));
    assert_int_equal(opts_defaults(table, conf, diag), 0);
    /* The parser moves the pointers, never what they point to. */
    return opts_parse(table, conf, argc, (char **)argv, stop, NULL, operands, diag);
}
#define ARGV(...) ((const char *[]){"prog", __VA_ARGS__, NULL})

static void test_parse(void **state)
{
    struct conf conf;
    struct diag diag;
    int operands = -1;
    const char **argv =
        ARGV("a", "-d4", "--size=4k", "--map", "x=y", "b", "--map=p=q", "-qw", "--pace", "asap",
             "--speed", "2.5", "--root", "r", "--call", "x", "--", "--c");

    assert_int_equal(parse(&conf, &diag, &operands, false, argv), 0);
    assert_int_equal(operands, 3);
    assert_string_equal(argv[1], "a");
    assert_string_equal(argv[2], "b");
    assert_string_equal(argv[3], "--c");
    assert_int_equal(conf.depth, 4);
    assert_int_equal(conf.size, 4096);
    assert_int_equal(conf.wait_ns, 10000000);
    assert_true(conf.speed == 2.5 && conf.quiet && conf.writes);
    assert_int_equal(conf.pace, 0);
    assert_string_equal(conf.root, "r");
    assert_int_equal(conf.maps.count, 2);
    assert_string_equal(conf.maps.items[1], "p=q");
    assert_int_equal(conf.calls, 1);
    opts_release(table, &conf);
    assert_null(conf.maps.items);
}

static void test_operand_stops(void **state)
{
    struct conf conf;
    struct diag diag;
    int operands = -1;
    const char **argv = ARGV("-q", "cmd", "-w", "--nonsense");

    assert_int_equal(parse(&conf, &diag, &operands, true, argv), 0);
    assert_int_equal(operands, 3);
    assert_string_equal(argv[2], "-w");
    assert_false(conf.writes);
}

static void expect_error(const char *word, const char **argv)
{
    struct conf conf;
    struct diag diag;
    int operands = -1;

    assert_int_equal(parse(&conf, &diag, &operands, false, argv), -EINVAL);
    assert_int_equal(operands, -1);
    if (!strstr(diag.text, word))
        fail_msg("'%s' does not say '%s'", diag.text, word);
    opts_release(table, &conf);
}

static void test_errors(void **state)
{
    expect_error("unknown option --dep", ARGV("--dep", "3"));
    expect_error("unknown option -x", ARGV("-x"));
    expect_error("given twice", ARGV("-d", "3", "--depth=4"));
    expect_error("given twice", ARGV("--quiet", "--no-quiet"));
    expect_error("needs a value", ARGV("--depth"));
    expect_error("out of range: 1 to 64", ARGV("--depth", "65"));
    expect_error("out of range: 1 to 64", ARGV("--depth", "0"));
    expect_error("a count such as", ARGV("--depth", "x"));
    expect_error("with its unit", ARGV("--wait", "10"));
    expect_error("asap, recorded", ARGV("--pace", "never"));
    expect_error("takes no value", ARGV("--quiet=1"));
    expect_error("bad", ARGV("--call", "bad"));
}

static void test_text(void **state)
{
    struct conf conf = {0};
    struct diag diag = DIAG_INIT;
    char *storage = NULL;
    bool given[16] = {0};

    assert_int_equal(opts_parse_text(table, &conf, "depth=8,quiet,writes=0,root=a\\,b", given,
                                     &storage, &diag),
                     0);
    assert_int_equal(conf.depth, 8);
    assert_true(conf.quiet && !conf.writes);
    assert_string_equal(conf.root, "a,b");
    assert_true(given[1] && given[5] && given[6] && !given[2]);
    free(storage);
    assert_int_equal(opts_parse_text(table, &conf, "depth", NULL, &storage, &diag), -EINVAL);
    assert_non_null(strstr(diag.text, "needs a value"));
    diag_clear(&diag);
    assert_int_equal(opts_parse_text(table, &conf, "nope=1", NULL, &storage, &diag), -EINVAL);
    assert_non_null(strstr(diag.text, "unknown option 'nope'"));
}

static void count_each(void *context, const struct opt *opt, const char *text)
{
    if (strcmp(opt->name, "depth") == 0)
        assert_string_equal(text, "5");
    if (strcmp(opt->name, "pace") == 0)
        assert_string_equal(text, "recorded");
    (*(int *)context)++;
}

static void test_each_and_help(void **state)
{
    struct conf conf;
    struct diag diag;
    int operands, count = 0;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_int_equal(
        parse(&conf, &diag, &operands, false, ARGV("--depth", "5", "--map", "a=b")), 0);
    opts_each(table, &conf, count_each, &count);
    assert_int_equal(count, 8); /* root is unset, call keeps no value */
    opts_release(table, &conf);
    assert_non_null(out);
    opts_help(table, out);
    fclose(out);
    assert_non_null(strstr(text, "Load:"));
    assert_non_null(strstr(text, "  -d, --depth N"));
    assert_non_null(strstr(text, "(asap|recorded) [recorded]"));
    free(text);
}

static void test_diag(void **state)
{
    struct diag diag = DIAG_INIT;

    assert_int_equal(diag_errno(&diag, -ENOSPC, "a\x1b[1m%s", "b\n"), -ENOSPC);
    assert_string_equal(diag.text, "a?[1mb?: No space left on device");
    assert_int_equal(diag_set(&diag, -EIO, "later"), -EIO);
    assert_int_equal(diag.error, -ENOSPC);
    assert_int_equal(diag_set(NULL, -EIO, "nobody listens"), -EIO);
    diag_note(&diag, "dropped");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),         cmocka_unit_test(test_operand_stops),
        cmocka_unit_test(test_errors),        cmocka_unit_test(test_text),
        cmocka_unit_test(test_each_and_help), cmocka_unit_test(test_diag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
