/* SPDX-License-Identifier: MIT */
/* The collector's side of the preload rings: what is shared is checked, nothing is believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/image.h"
#include "capture/session.h"

#define SLOTS      1024u
#define AREA_BYTES (RING_HEADER_BYTES + 65536u)
#define RING_BYTES (RING_HEADER_BYTES + SLOTS * sizeof(struct ring_record))

struct shared {
    struct session *session;
    struct image *image;
    struct ring_header *area, *ring;
    struct ring_record *records;
    struct ring_hello hello;
    struct diag diag;
};

static int shared_memory(uint64_t bytes, bool seal)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    if (seal)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    return fd;
}

static void shared_open_sample(struct shared *shared, unsigned int one_in)
{
    struct session_conf conf = {.tape = "ring.tape", .force = true, .recorder = "preload"};
    int fd;

    memset(shared, 0, sizeof(*shared));
    shared->hello = (struct ring_hello){.magic = RING_MAGIC,
                                        .version = RING_VERSION,
                                        .pid = 7,
                                        .tid = 8,
                                        .ppid = 1,
                                        .image = 99,
                                        .bytes = AREA_BYTES,
                                        .comm = "program"};
    assert_int_equal(session_new(&shared->session, &conf, &shared->diag), 0);
    fd = shared_memory(AREA_BYTES, true);
    assert_int_equal(image_new(&shared->image, &shared->hello, getpid(), fd), 0);
    shared->area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    fd = shared_memory(RING_BYTES, true);
    shared->hello.bytes = RING_BYTES;
    assert_int_equal(image_add_ring(shared->image, shared->session, &shared->hello, fd, one_in),
                     0);
    shared->ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    shared->records = (struct ring_record *)((char *)shared->ring + RING_HEADER_BYTES);
    close(fd);
}

static void shared_open(struct shared *shared)
{
    shared_open_sample(shared, 1);
}

static void shared_close(struct shared *shared)
{
    image_free(shared->image);
    assert_int_equal(session_finish(shared->session, "clean"), 0);
    session_free(shared->session);
    munmap(shared->area, AREA_BYTES);
    munmap(shared->ring, RING_BYTES);
    unlink("ring.tape");
}

static uint64_t ops_of(const struct shared *shared)
{
    struct session_totals totals;

    session_totals(shared->session, &totals);
    return totals.ops;
}

static uint64_t lost_of(const struct shared *shared)
{
    struct session_totals totals;

    session_totals(shared->session, &totals);
    return totals.lost;
}

static void put_file(struct shared *shared, uint32_t number, const char *path)
{
    char *at = (char *)shared->area + RING_HEADER_BYTES + shared->area->tail % 65536;
    struct ring_entry entry = {.type = RING_FILE,
                               .number = number,
                               .kind = TRACE_FILE_REGULAR,
                               .text_bytes = (uint32_t)strlen(path)};

    entry.bytes = (uint32_t)((sizeof(entry) + strlen(path) + 7) & ~(size_t)7);
    memcpy(at + 4, (char *)&entry + 4, sizeof(entry) - 4);
    memcpy(at + sizeof(entry), path, strlen(path));
    memcpy(at, &entry.bytes, 4);
    shared->area->tail += entry.bytes;
}

static struct ring_record *put_op(struct shared *shared, uint32_t file, bool done)
{
    uint64_t position = shared->ring->tail++;
    struct ring_record *record = &shared->records[position % SLOTS];

    *record = (struct ring_record){.begin_ns = 1000 + position,
                                   .end_ns = 1500 + position,
                                   .length = 10,
                                   .result = 10,
                                   .file = file,
                                   .kind = TRACE_READ,
                                   .api = TRACE_API_SYNC,
                                   .completion = TRACE_COMPLETION_EXACT};
    record->state = done ? RING_STATE_DONE(position) : RING_STATE_OPEN(position);
    return record;
}

static void takes_what_is_whole(void **state)
{
    struct shared shared;

    shared_open(&shared);
    put_file(&shared, 1, "/a");
    for (unsigned int lap = 0; lap < 5; lap++) {
        for (unsigned int i = 0; i < SLOTS - 64; i++)
            put_op(&shared, 1, true);
        assert_int_equal(image_drain(shared.image, shared.session, 1), SLOTS - 64);
        assert_int_equal(shared.ring->head, shared.ring->tail);
    }
    assert_int_equal(ops_of(&shared), 5 * (SLOTS - 64));
    /* One that has not ended holds the later ones up, and is given up after a second. */
    put_op(&shared, 1, false);
    put_op(&shared, 1, true);
    assert_int_equal(image_drain(shared.image, shared.session, 10), 0);
    assert_int_equal(image_drain(shared.image, shared.session, 20), 0);
    assert_int_equal(image_drain(shared.image, shared.session, 2000000000), 2);
    /* At the end what is open is in flight. */
    put_op(&shared, 1, false);
    assert_int_equal(image_drain(shared.image, shared.session, 2000000001), 0);
    assert_int_equal(image_finish(shared.image, shared.session), 0);
    assert_int_equal(ops_of(&shared), 5 * (SLOTS - 64) + 3);
    shared.ring->dropped = 5;
    assert_int_equal(image_drain(shared.image, shared.session, 2000000002), 0);
    assert_int_equal(lost_of(&shared), 5);
    shared_close(&shared);
}

static uint64_t passed_of(const struct shared *shared)
{
    struct session_totals totals;

    session_totals(shared->session, &totals);
    return totals.passed;
}

/* A thread that the sample does not keep: what it did before its shim knew, what it has not ended, and
 * what it counted itself, are passed over and nothing else. One that is told later ends there. */
static void passes_over(void **state)
{
    struct shared shared;

    (void)state;
    shared_open_sample(&shared, 1024); /* does not keep thread 8 */
    put_file(&shared, 1, "/a");
    put_op(&shared, 1, true);
    put_op(&shared, 1, true);
    put_op(&shared, 1, false);
    assert_int_equal(shared.ring->passing, 1);
    shared.ring->passed = 5;
    assert_int_equal(image_drain(shared.image, shared.session, 1), 2);
    assert_int_equal(passed_of(&shared), 7);
    shared.ring->passed = 3; /* nonsense */
    assert_int_equal(image_drain(shared.image, shared.session, 2), 0);
    assert_int_equal(image_finish(shared.image, shared.session), 0);
    assert_int_equal(passed_of(&shared), 8);
    assert_int_equal(ops_of(&shared), 0);
    assert_int_equal(lost_of(&shared), 0);
    shared_close(&shared);

    shared_open(&shared);
    put_file(&shared, 1, "/a");
    put_op(&shared, 1, true);
    assert_int_equal(shared.ring->passing, 0);
    image_sample(shared.image, 1024);
    assert_int_equal(shared.ring->passing, 1);
    assert_int_equal(image_drain(shared.image, shared.session, 1), 1);
    assert_int_equal(ops_of(&shared), 1);
    assert_int_equal(passed_of(&shared), 0);
    shared_close(&shared);
}

/* An op may be seen before its file; the area wraps. */
static void files_come_first(void **state)
{
    struct shared shared;
    char path[200];

    shared_open(&shared);
    put_op(&shared, 3, true);
    assert_int_equal(image_drain(shared.image, shared.session, 1), 0);
    put_file(&shared, 3, "/late");
    assert_int_equal(image_drain(shared.image, shared.session, 1), 1);
    for (uint32_t i = 4; i < 2000; i++) {
        uint64_t at = shared.area->tail % 65536, left = 65536 - at;

        memset(path, 'p', sizeof(path));
        path[i % 190 + 1] = '\0';
        if (left < 300) { /* the shim pads to the end */
            uint32_t pad[2] = {(uint32_t)left, RING_PAD};

            memcpy((char *)shared.area + RING_HEADER_BYTES + at, pad, 8);
            shared.area->tail += left;
        }
        put_file(&shared, i, path);
        put_op(&shared, i, true);
        assert_int_equal(image_drain(shared.image, shared.session, 1), 1);
    }
    assert_int_equal(shared.area->head, shared.area->tail);
    assert_int_equal(lost_of(&shared), 0);
    shared_close(&shared);
}

static void refuses_wrong_memory(void **state)
{
    struct shared shared;
    struct image *image;
    struct ring_hello hello;
    int fd;

    shared_open(&shared);
    hello = shared.hello;
    hello.bytes = AREA_BYTES;
    fd = shared_memory(AREA_BYTES, false); /* could shrink under us */
    assert_int_equal(image_new(&image, &hello, 1, fd), -EBADMSG);
    close(fd);
    fd = shared_memory(AREA_BYTES - 4096, true); /* smaller than said */
    assert_int_equal(image_new(&image, &hello, 1, fd), -EBADMSG);
    hello.bytes = 100;
    assert_int_equal(image_new(&image, &hello, 1, fd), -EBADMSG);
    hello.bytes = RING_HEADER_BYTES + 3 * 4096; /* not a power of two of slots */
    assert_int_equal(image_add_ring(shared.image, shared.session, &hello, fd, 1), -EBADMSG);
    close(fd);
    shared_close(&shared);
}

/* Whatever a program scribbles into its rings, the collector lives, and says so. */
static void survives_nonsense(void **state)
{
    unsigned int seed = 1;

    for (int round = 0; round < 300; round++) {
        struct shared shared;
        unsigned char *bytes;

        shared_open(&shared);
        put_file(&shared, 1, "/a");
        for (int i = 0; i < 100; i++)
            put_op(&shared, 1, true);
        bytes = (unsigned char *)(round % 2 ? shared.records
                                            : (void *)((char *)shared.area + 4096));
        for (int i = 0; i < 1 + round % 40; i++) {
            seed = seed * 1103515245u + 12345u;
            bytes[(seed >> 8) % (round % 2 ? 6400 : 100)] ^=
                (unsigned char)(1u << (seed >> 28) % 8);
        }
        assert_true(image_drain(shared.image, shared.session, 1) >= 0);
        assert_true(image_drain(shared.image, shared.session, 5000000000u) >= 0);
        shared.image->ended = true;
        assert_true(image_drain(shared.image, shared.session, 9000000000u) >= 0);
        assert_int_equal(image_finish(shared.image, shared.session), 0);
        assert_true(ops_of(&shared) <= 100);
        shared_close(&shared);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_is_whole),
        cmocka_unit_test(passes_over),
        cmocka_unit_test(files_come_first),
        cmocka_unit_test(refuses_wrong_memory),
        cmocka_unit_test(survives_nonsense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
