/* SPDX-License-Identifier: MIT */
/* The folder of before-images: what is committed is read again, whatever was torn or damaged after
 * it; and the set of chunks that says what is kept. */
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

#include "replay/chunks.h"
#include "replay/images.h"
#include "traces/diag.h"

#define KiB64 CHUNK_BYTES

/* ---- chunks ------------------------------------------------------------------------------ */

/* Against a plain array of flags. */
static void test_chunks(void **state)
{
    enum { FILES = 3, CHUNKS = 1000 };
    static bool plain[FILES][CHUNKS];
    struct chunk_set *set = chunks_new();
    uint64_t count, expected = 0, rank = 0;
    unsigned int seed = 12345;

    (void)state;
    assert_non_null(set);
    for (int i = 0; i < 200; i++) {
        unsigned int file = (seed = seed * 1103515245 + 12345) >> 16;
        uint64_t offset = ((seed = seed * 1103515245 + 12345) >> 4) % ((CHUNKS - 20) * KiB64);
        uint64_t length = 1 + (seed >> 8) % (i % 7 ? 70000 : 1200000);

        file %= FILES;
        assert_int_equal(chunks_touch(set, file, offset, length), 0);
        for (uint64_t c = offset / KiB64; c <= (offset + length - 1) / KiB64; c++)
            plain[file][c] = true;
    }
    for (int f = 0; f < FILES; f++)
        for (int c = 0; c < CHUNKS; c++)
            expected += plain[f][c];
    assert_int_equal(chunks_sort(set, &count), 0);
    assert_int_equal(count, expected);
    for (uint32_t f = 0; f < FILES; f++) {
        uint64_t from = 0, to = 0, seen = 0;

        for (uint64_t c = 0; c < CHUNKS; c++) {
            assert_int_equal(chunks_have(set, f, c * KiB64 + 5), plain[f][c]);
            if (plain[f][c])
                assert_int_equal(chunks_rank(set, f, c * KiB64), rank++);
        }
        while (chunks_next(set, f, to, &from, &to)) {
            uint64_t last = to / KiB64;

            for (uint64_t c = from / KiB64; c < last; c++, seen++)
                assert_true(plain[f][c]);
            assert_false(plain[f][last]); /* a run is as long as it can be */
        }
        for (int c = 0; c < CHUNKS; c++)
            seen -= plain[f][c];
        assert_int_equal(seen, 0);
    }
    chunks_free(set);
}

static void test_chunks_far(void **state)
{
    struct chunk_set *set = chunks_new();
    const uint64_t far = (1ull << 62) + 4096;
    uint64_t from, to, count;

    (void)state;
    assert_false(chunks_have(set, 0, 0));
    assert_int_equal(chunks_touch(set, 7, far, 1), 0);
    assert_int_equal(chunks_touch(set, 7, 3 * KiB64 - 1, 2), 0);
    assert_int_equal(chunks_sort(set, &count), 0);
    assert_int_equal(count, 3);
    assert_true(chunks_next(set, 7, 0, &from, &to));
    assert_int_equal(from, 2 * KiB64);
    assert_int_equal(to, 4 * KiB64);
    assert_true(chunks_next(set, 7, 3 * KiB64 + 9, &from, &to));
    assert_int_equal(from, 3 * KiB64 + 9);
    assert_true(chunks_next(set, 7, 4 * KiB64, &from, &to));
    assert_int_equal(from, 1ull << 62);
    assert_false(chunks_next(set, 7, to, &from, &to));
    assert_false(chunks_next(set, 6, 0, &from, &to));
    assert_false(chunks_next(set, 8, 0, &from, &to));
    chunks_free(set);
}

/* ---- the folder -------------------------------------------------------------------------- */

static const char *folder(void)
{
    static char path[256];
    const char *temp = getenv("TMPDIR");

    snprintf(path, sizeof path, "%s/images", temp ? temp : ".");
    return path;
}

static char *journal_path(void)
{
    static char path[300];

    snprintf(path, sizeof path, "%s/journal.jsonl", folder());
    return path;
}

static void put_file(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static size_t get_file(const char *path, char *bytes, size_t most)
{
    FILE *file = fopen(path, "re");
    size_t length;

    assert_non_null(file);
    length = fread(bytes, 1, most, file);
    fclose(file);
    return length;
}

/* Two committed steps, and one that is not. *ret_first: the journal's length after the first. */
static size_t build(char *bytes, size_t most, size_t *ret_first)
{
    const struct image file = {.path = (char *)"/a/file", .was = IMAGE_FILE, .mode = 0640,
                               .bytes = 200000, .inode = 77};
    const struct image nothing = {.path = (char *)"/a/nothing", .was = IMAGE_ABSENT};
    const struct image late = {.path = (char *)"/a/late", .was = IMAGE_FILE, .bytes = 5};
    struct images *images;
    uint32_t number;
    int fd;

    assert_int_equal(images_open(&images, folder(), NULL), 0);
    assert_int_equal(images_add(images, &file, &number, NULL), 0);
    assert_int_equal(number, 0);
    assert_int_equal(images_keep(images, 0, 0, 2 * KiB64, false, NULL), 0);
    assert_int_equal(images_keep(images, 0, 2 * KiB64, 3 * KiB64, true, NULL), 0);
    assert_int_equal(images_commit(images, NULL), 0);
    *ret_first = get_file(journal_path(), bytes, most);
    assert_int_equal(images_add(images, &nothing, &number, NULL), 0);
    assert_int_equal(images_whole(images, 0, false, NULL), 0);
    assert_int_equal(images_commit(images, NULL), 0);
    assert_int_equal(images_add(images, &late, &number, NULL), 0);
    assert_int_equal(number, 2);
    fd = images_data(images, 2, O_WRONLY | O_CREAT, NULL);
    assert_true(fd >= 0);
    close(fd);
    images_close(images);
    return get_file(journal_path(), bytes, most);
}

static void check(const struct images *images, uint32_t count)
{
    assert_int_equal(images->count, count);
    if (count == 0)
        return;
    assert_string_equal(images->items[0].path, "/a/file");
    assert_int_equal(images->items[0].was, IMAGE_FILE);
    assert_int_equal(images->items[0].mode, 0640);
    assert_int_equal(images->items[0].bytes, 200000);
    assert_int_equal(images->items[0].inode, 77);
    assert_int_equal(images->items[0].whole, count == 2);
    assert_true(chunks_have(images->data, 0, KiB64));
    assert_false(chunks_have(images->data, 0, 2 * KiB64));
    assert_true(chunks_have(images->holes, 0, 2 * KiB64));
    assert_int_equal(images_find(images, "/a/file"), 0);
    assert_int_equal(images_find(images, "/a/nothing"), count == 2 ? 1 : TRACE_NONE_U32);
}

static void test_torn(void **state)
{
    char bytes[4096], path[300];
    size_t first, length = build(bytes, sizeof bytes, &first);
    struct images *images;

    (void)state;
    assert_true(first > 100 && first < length);
    snprintf(path, sizeof path, "%s/2", folder());
    assert_int_equal(access(path, F_OK), -1); /* never committed: gone */
    for (size_t cut = 0; cut <= length; cut++) {
        put_file(journal_path(), bytes, cut);
        assert_int_equal(images_open(&images, folder(), NULL), 0);
        check(images, cut < first ? 0 : cut < length ? 1 : 2);
        images_close(images);
    }
    assert_int_equal(images_open(&images, folder(), NULL), 0);
    assert_int_equal(images_remove(images, NULL), 0);
    images_close(images);
    assert_int_equal(access(folder(), F_OK), -1);
}

/* A flipped byte: read as it is or refused, nothing else. */
static void test_damaged(void **state)
{
    char bytes[4096];
    size_t first, length = build(bytes, sizeof bytes, &first);
    struct images *images;
    unsigned int refused = 0;

    (void)state;
    for (size_t at = 0; at < length; at++)
        for (int bit = 0; bit < 8; bit += 3) {
            struct diag diag = DIAG_INIT;
            int err;

            bytes[at] ^= (char)(1 << bit);
            put_file(journal_path(), bytes, length);
            err = images_open(&images, folder(), &diag);
            assert_true(err == 0 || err == -EBADMSG);
            refused += err != 0;
            if (err == 0)
                images_close(images);
            bytes[at] ^= (char)(1 << bit);
        }
    assert_true(refused > length);
    put_file(journal_path(), bytes, length);
    assert_int_equal(images_open(&images, folder(), NULL), 0);
    check(images, 2);
    assert_int_equal(images_remove(images, NULL), 0);
    images_close(images);
}

static void test_hostile(void **state)
{
    static const char *const lines[] = {
        "{\"n\":0,\"path\":\"relative\",\"was\":\"file\",\"bytes\":1,\"mode\":0,\"inode\":1}",
        "{\"n\":0,\"path\":\"/a/../../etc/x\",\"was\":\"file\",\"bytes\":1,\"mode\":0,\"inode\":1}",
        "{\"n\":0,\"path\":\"/a\",\"was\":\"socket\",\"bytes\":1,\"mode\":0,\"inode\":1}",
        "{\"n\":0,\"path\":\"/a\",\"was\":\"file\",\"bytes\":-1,\"mode\":0,\"inode\":1}",
        "{\"n\":1,\"path\":\"/a\",\"was\":\"file\",\"bytes\":1,\"mode\":0,\"inode\":1}",
        "{\"n\":0,\"from\":0,\"to\":65536}",
        "{\"n\":0,\"whole\":\"clone\"}",
        "[]",
    };
    char text[512];
    struct images *images;

    (void)state;
    assert_int_equal(mkdir(folder(), 0700), 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        int length = snprintf(text, sizeof text,
                              "{\"format\":\"iotape before-images 1\"}\n%s\n{\"commit\":true}\n",
                              lines[i]);

        put_file(journal_path(), text, (size_t)length);
        assert_int_equal(images_open(&images, folder(), NULL), -EBADMSG);
    }
    unlink(journal_path());
    rmdir(folder());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks),  cmocka_unit_test(test_chunks_far),
        cmocka_unit_test(test_torn),    cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_hostile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
