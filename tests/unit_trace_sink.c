/* SPDX-License-Identifier: MIT */
/* Where tapes are written to and read from: names, modes, what is left after a failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/tape_memory.h"

static char folder[4096];

static int folder_make(void **state)
{
    const char *top = getenv("TMPDIR");

    snprintf(folder, sizeof(folder), "%s/sink.XXXXXX", top ? top : "/tmp");
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static unsigned int folder_entries(void)
{
    DIR *dir = opendir(".");
    unsigned int count = 0;
    struct dirent *entry;

    assert_non_null(dir);
    while ((entry = readdir(dir)))
        count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    closedir(dir);
    return count;
}

static int folder_empty(void **state)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlink(entry->d_name);
    closedir(dir);
    return 0;
}

static int folder_remove(void **state)
{
    return chdir("/") == 0 ? rmdir(folder) : -1;
}

static void text_put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void text_check(const char *path, const char *expected)
{
    char text[64] = "";
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    assert_true(fread(text, 1, sizeof(text) - 1, file) == strlen(expected));
    fclose(file);
    assert_string_equal(text, expected);
}

static void sink_text(const char *path, enum trace_sink_how how, bool force, bool keep)
{
    struct trace_sink sink;

    assert_int_equal(trace_sink_path(&sink, path, how, force, NULL), 0);
    assert_string_equal(sink.name, path);
    assert_int_equal(sink.write(sink.context, "new", 3), 0);
    assert_int_equal(sink.close(sink.context, keep), 0);
}

static void test_rename(void **state)
{
    struct trace_sink sink;
    struct diag diag = DIAG_INIT;
    struct stat st;

    assert_int_equal(trace_sink_path(&sink, "a", TRACE_SINK_RENAME, false, &diag), 0);
    assert_int_equal(access("a", F_OK), -1);
    assert_int_equal(sink.close(sink.context, false), 0);
    assert_int_equal(folder_entries(), 0);
    sink_text("a", TRACE_SINK_RENAME, false, true);
    text_check("a", "new");
    assert_int_equal(stat("a", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(folder_entries(), 1);
    /* Without force an existing file stays as it is; with force too, until the new one is
     * whole. */
    text_put("a", "old");
    assert_int_equal(trace_sink_path(&sink, "a", TRACE_SINK_RENAME, false, &diag), -EEXIST);
    assert_non_null(strstr(diag.text, "a: exists"));
    sink_text("a", TRACE_SINK_RENAME, true, false);
    text_check("a", "old");
    sink_text("a", TRACE_SINK_RENAME, true, true);
    text_check("a", "new");
    assert_int_equal(folder_entries(), 1);
}

/* Somebody makes the file while ours is being written: theirs stays. */
static void test_race(void **state)
{
    struct trace_sink sink;

    assert_int_equal(trace_sink_path(&sink, "a", TRACE_SINK_RENAME, false, NULL), 0);
    text_put("a", "theirs");
    assert_int_equal(sink.close(sink.context, true), -EEXIST);
    text_check("a", "theirs");
    assert_int_equal(folder_entries(), 1);
}

static void test_in_place(void **state)
{
    struct trace_sink sink;

    assert_int_equal(trace_sink_path(&sink, "a", TRACE_SINK_IN_PLACE, false, NULL), 0);
    assert_int_equal(access("a", F_OK), 0);
    assert_int_equal(sink.close(sink.context, false), 0);
    assert_int_equal(folder_entries(), 0);
    sink_text("a", TRACE_SINK_IN_PLACE, false, true);
    text_check("a", "new");
    assert_int_equal(trace_sink_path(&sink, "a", TRACE_SINK_IN_PLACE, false, NULL), -EEXIST);
    text_put("a", "something longer");
    sink_text("a", TRACE_SINK_IN_PLACE, true, true);
    text_check("a", "new");
}

static void test_special(void **state)
{
    struct trace_sink sink;
    struct stat st;

    assert_int_equal(trace_sink_path(&sink, "/dev/null", TRACE_SINK_RENAME, false, NULL), 0);
    assert_int_equal(sink.write(sink.context, "x", 1), 0);
    assert_int_equal(sink.close(sink.context, false), 0);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(trace_sink_path(&sink, ".", TRACE_SINK_RENAME, true, NULL), -EISDIR);
    assert_int_equal(trace_sink_path(&sink, "no/such/place", TRACE_SINK_RENAME, false, NULL),
                     -ENOENT);
    assert_int_equal(trace_sink_path(&sink, "/dev/full", TRACE_SINK_RENAME, false, NULL), 0);
    assert_int_equal(sink.write(sink.context, "x", 1), -ENOSPC);
    assert_int_equal(sink.close(sink.context, false), 0);
}

/* A disk that is full after some blocks, played by a limit on the size of files. */
static int tape_until_full(enum trace_sink_how how, struct diag *diag)
{
    struct trace_writer_conf conf = {.block_ops = 100};
    struct trace_op *ops = tape_ops(5000, 3, false);
    struct rlimit limit, low;
    struct trace_writer *writer;
    struct trace_sink sink;
    uint32_t index;
    int err;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    low = limit;
    low.rlim_cur = 20000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    assert_int_equal(trace_sink_path(&sink, "full.tape", how, false, diag), 0);
    assert_int_equal(trace_writer_open(&writer, &sink, &conf, diag), 0);
    for (unsigned int i = 0; i < TAPE_FILES; i++) {
        struct trace_file file = {.path = "/x"};

        assert_int_equal(trace_writer_file(writer, &file, &index), 0);
    }
    for (unsigned int i = 0; i < TAPE_STREAMS; i++) {
        struct trace_stream stream = {.pid = i};

        assert_int_equal(trace_writer_stream(writer, &stream, &index), 0);
    }
    err = trace_writer_ops(writer, ops, 5000);
    assert_int_equal(trace_writer_close(writer), err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    free(ops);
    return err;
}

static void test_full(void **state)
{
    struct trace_reader *reader;
    struct trace_damage damage;
    struct diag diag = DIAG_INIT;

    assert_int_equal(tape_until_full(TRACE_SINK_RENAME, &diag), -EFBIG);
    assert_non_null(strstr(diag.text, "full.tape: cannot write"));
    assert_int_equal(folder_entries(), 0);
    /* A capture keeps what it has, and that is whole. */
    diag_clear(&diag);
    assert_int_equal(tape_until_full(TRACE_SINK_IN_PLACE, &diag), -EFBIG);
    assert_int_equal(trace_reader_open_path(&reader, "full.tape", NULL), 0);
    assert_true(tape_rest(reader) >= 100);
    trace_reader_damage(reader, &damage);
    assert_true(damage.truncated);
    assert_int_equal(damage.blocks, 0);
    trace_reader_free(reader);
}

static void test_sources(void **state)
{
    struct trace_source source;
    struct diag diag = DIAG_INIT;

    assert_int_equal(trace_source_path(&source, "absent", &diag), -ENOENT);
    assert_non_null(strstr(diag.text, "absent: cannot open"));
    assert_int_equal(trace_source_path(&source, ".", NULL), -EISDIR);
    text_put("empty", "");
    assert_int_equal(trace_source_path(&source, "empty", NULL), -EBADMSG);
    text_put("some", "hello");
    assert_int_equal(trace_source_path(&source, "some", NULL), 0);
    assert_int_equal(source.size_bytes, 5);
    assert_non_null(source.pread);
    source.close(source.context);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    {
        int fd = open("fifo", O_RDWR);

        assert_int_equal(trace_source_path(&source, "fifo", NULL), 0);
        assert_null(source.pread);
        source.close(source.context);
        close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_rename, folder_empty),
        cmocka_unit_test_teardown(test_race, folder_empty),
        cmocka_unit_test_teardown(test_in_place, folder_empty),
        cmocka_unit_test_teardown(test_special, folder_empty),
        cmocka_unit_test_teardown(test_full, folder_empty),
        cmocka_unit_test_teardown(test_sources, folder_empty),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
