/* SPDX-License-Identifier: MIT */
/* The bpf recorder on mapped files: bytes brought in by a cold sequential touch and bytes made
 * dirty, msync and munmap by file, nothing of what calls did. */
#include "tests/bpf_session.h"

#include <limits.h>

extern const struct recorder recorder_bpf;

enum {
    FILE_BYTES = 1 << 20,
    PAGE = 4096,
    DIRTY = 64,
    AGAIN = 10
};

static int fd;

static int drop_cache(void)
{
    return fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static int work_mapped(void)
{
    volatile long sum = 0;
    char *map;

    fd = open("m", O_RDWR);
    if (fd < 0 || drop_cache())
        return 1;
    map = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return 2;
    for (int i = 0; i < FILE_BYTES; i += PAGE)
        sum += map[i];
    if (sum == LONG_MAX) /* keeps the loads */
        return 9;
    for (int i = 0; i < DIRTY; i++)
        map[i * PAGE] = 1;
    if (msync(map, FILE_BYTES, MS_SYNC) != 0)
        return 3;
    for (int i = 0; i < AGAIN; i++)
        map[i * PAGE] = 2;
    if (msync(map + PAGE, 2 * PAGE, MS_SYNC) != 0)
        return 4;
    if (munmap(map, FILE_BYTES / 2) != 0 || munmap(map + FILE_BYTES / 2, FILE_BYTES / 2) != 0)
        return 5;
    return 0;
}

/* The same bytes by read and write: no page is a mapping's. */
static int work_calls(void)
{
    static char buffer[FILE_BYTES];

    fd = open("m", O_RDWR);
    if (fd < 0 || drop_cache())
        return 1;
    return read(fd, buffer, FILE_BYTES) != FILE_BYTES ||
           pwrite(fd, buffer, FILE_BYTES, 0) != FILE_BYTES || fsync(fd);
}

struct sums {
    uint64_t filled, dirtied, synced, unmapped, unseen;
    size_t maps, syncs;
};

static void run(int (*work)(void), struct sums *sums)
{
    struct session session = {0};

    memset(sums, 0, sizeof(*sums));
    record(&recorder_bpf, &session, work);
    session_only_folder(&session);
    for (size_t i = 0; i < session.op_count; i++) {
        const struct trace_op *op = &session.ops[i];

        if (op->kind == TRACE_FILL || op->kind == TRACE_WRITEBACK) {
            assert_int_equal(op->api, TRACE_API_MMAP);
            assert_true(op->flags & TRACE_F_DERIVED);
            assert_int_equal(op->completion, TRACE_COMPLETION_UNKNOWN);
            assert_string_equal(leaf_of(session.files[op->file].path), "m");
            *(op->kind == TRACE_FILL ? &sums->filled : &sums->dirtied) += op->length;
        }
        sums->maps += op->kind == TRACE_MMAP;
        sums->syncs += op->kind == TRACE_MSYNC;
        sums->synced += op->kind == TRACE_MSYNC ? op->length : 0;
        sums->unmapped += op->kind == TRACE_MUNMAP ? op->length : 0;
    }
    sums->unseen = session.unseen;
    session_clear(&session);
}

static void test_mapped(void **state)
{
    struct sums sums;

    run(work_mapped, &sums);
    if (sums.unseen) { /* an older kernel, and it was said */
        assert_int_equal(sums.filled + sums.dirtied, 0);
    } else {
        assert_int_equal(sums.filled, FILE_BYTES);
        assert_int_equal(sums.dirtied, (DIRTY + AGAIN) * PAGE);
    }
    assert_int_equal(sums.maps, 1);
    assert_int_equal(sums.syncs, 2);
    assert_int_equal(sums.synced, FILE_BYTES + 2 * PAGE);
    assert_int_equal(sums.unmapped, FILE_BYTES);
}

static void test_calls(void **state)
{
    struct sums sums;

    run(work_calls, &sums);
    assert_int_equal(sums.filled, 0);
    assert_int_equal(sums.dirtied, 0);
}

/* Page cache on a disk: tmpfs has nothing behind it. */
static bool disk_here(void)
{
    static char page[PAGE];
    unsigned char in_core[1] = {1};
    void *map;
    int file = open("m", O_CREAT | O_RDWR, 0600);

    for (int i = 0; i < FILE_BYTES / PAGE; i++) {
        page[0] = (char)i;
        if (write(file, page, PAGE) != PAGE)
            return false;
    }
    fsync(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);
    mincore(map, PAGE, in_core);
    munmap(map, PAGE);
    close(file);
    return !(in_core[0] & 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mapped),
        cmocka_unit_test(test_calls),
    };

    recorder_need(&recorder_bpf);
    if (!disk_here() || sysconf(_SC_PAGESIZE) != PAGE) {
        printf("the test's folder has no page cache that can be dropped\n");
        return 77;
    }
    truths_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
