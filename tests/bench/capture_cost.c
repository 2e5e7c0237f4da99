/* SPDX-License-Identifier: MIT */
/*
 * What recording adds to a call. Run bare and under a recorder, and compare:
 *
 *     capture_cost [FILE [SECONDS]]           cached 4 KiB preads (and reads), as fast as they
 * go capture_cost FILE SECONDS RATE          preads at RATE a second in all, from two threads,
 *                                             for counting losses
 *
 * Prints key=value: ops, ns_per_op (wall clock, the median of many short runs), cpu_ns_per_op
 * (the thread's own time), read_ns_per_op; with RATE the ops done and the rate reached.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILE_BYTES (1u << 20)
#define OP_BYTES   4096u
#define RUN_OPS    200u /* short: few runs have a preemption in them */
#define RUNS_MAX   100000u
#define THREADS    2u

static double runs_ns[RUNS_MAX];

static double clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static int open_cached(const char *path)
{
    static char bytes[FILE_BYTES];
    int fd = open(path, O_RDWR | O_CREAT, 0600);

    memset(bytes, 'x', sizeof(bytes));
    if (fd < 0 || pwrite(fd, bytes, sizeof(bytes), 0) != sizeof(bytes)) {
        perror(path);
        exit(1);
    }
    return fd;
}

static void read_run(int fd, int positioned)
{
    char bytes[OP_BYTES];

    if (!positioned)
        lseek(fd, 0, SEEK_SET);
    for (unsigned int i = 0; i < RUN_OPS; i++) {
        off_t offset = (off_t)(i % (FILE_BYTES / OP_BYTES)) * OP_BYTES;
        ssize_t got =
            positioned ? pread(fd, bytes, OP_BYTES, offset) : read(fd, bytes, OP_BYTES);

        if (got == 0 && !positioned)
            lseek(fd, 0, SEEK_SET);
        else if (got != OP_BYTES)
            exit(1);
    }
}

static double measure(int fd, double seconds, int positioned, double *ret_cpu_ns,
                      unsigned long *ret_ops)
{
    double end = clock_ns(CLOCK_MONOTONIC) + seconds * 1e9;
    double cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    unsigned int runs = 0;

    do {
        double start = clock_ns(CLOCK_MONOTONIC);

        read_run(fd, positioned);
        runs_ns[runs++] = (clock_ns(CLOCK_MONOTONIC) - start) / RUN_OPS;
    } while (runs < RUNS_MAX && clock_ns(CLOCK_MONOTONIC) < end);
    *ret_cpu_ns = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / ((double)runs * RUN_OPS);
    *ret_ops = (unsigned long)runs * RUN_OPS;
    qsort(runs_ns, runs, sizeof(runs_ns[0]), by_value);
    return runs_ns[runs / 2];
}

struct pacer {
    pthread_t thread;
    int fd;
    double seconds, rate;
    unsigned long ops;
};

/* In bursts of a millisecond: sleeping for each op would not reach the rate. */
static void *pace(void *context)
{
    struct pacer *pacer = context;
    double start = clock_ns(CLOCK_MONOTONIC), now;
    char bytes[OP_BYTES];

    while ((now = clock_ns(CLOCK_MONOTONIC)) < start + pacer->seconds * 1e9) {
        struct timespec nap = {0, 500000};

        while ((double)pacer->ops < (now - start) * pacer->rate / 1e9)
            if (pread(pacer->fd, bytes, OP_BYTES, (off_t)(pacer->ops++ % 256) * OP_BYTES) !=
                OP_BYTES)
                exit(1);
        nanosleep(&nap, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    double seconds = argc > 2 ? atof(argv[2]) : 1, rate = argc > 3 ? atof(argv[3]) : 0;
    double cpu_ns, unused;
    unsigned long ops, reads;
    int fd;

    if (argc > 4 || seconds <= 0) {
        fprintf(stderr, "usage: capture_cost [FILE [SECONDS [RATE]]]\n");
        return 2;
    }
    fd = open_cached(argc > 1 ? argv[1] : "capture_cost.data");
    if (rate > 0) {
        struct pacer pacers[THREADS];

        ops = 0;
        for (unsigned int i = 0; i < THREADS; i++) {
            pacers[i] = (struct pacer){.fd = fd, .seconds = seconds, .rate = rate / THREADS};
            pthread_create(&pacers[i].thread, NULL, pace, &pacers[i]);
        }
        for (unsigned int i = 0; i < THREADS; i++) {
            pthread_join(pacers[i].thread, NULL);
            ops += pacers[i].ops;
        }
        printf("ops=%lu ops_per_s=%.0f\n", ops, (double)ops / seconds);
        return 0;
    }
    read_run(fd, 1);
    printf("ns_per_op=%.1f ", measure(fd, seconds, 1, &cpu_ns, &ops));
    printf("cpu_ns_per_op=%.1f ops=%lu ", cpu_ns, ops);
    printf("read_ns_per_op=%.1f\n", measure(fd, seconds / 4, 0, &unused, &reads));
    return 0;
}
