/* SPDX-License-Identifier: MIT */
/*
 * A bare io_uring loop: random reads of one file with nothing around them, the yardstick of
 * tests/bench. It shares no code with the engines, so that it cannot share their faults.
 *
 *     ioloop --file F --ops N --depth N --batch N [--direct] [--rate N --burst N]
 *
 * As fast as possible by default. With --rate it spins until each op is due and says how late
 * it was. One key=value a line on stdout.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/diag.h"
#include "traces/opts.h"

#if HAVE_LIB
#include <fcntl.h>
#include <liburing.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#endif

struct conf {
    const char *file;
    uint64_t ops, depth, batch, complete, bs, rate, burst, seed;
    bool direct, plain, help;
};

#define FIELD(name) offsetof(struct conf, name)
static const struct opt opts[] = {
    {"file", 0, OPT_STRING, FIELD(file), .arg = "F", .help = "the file to read"},
    {"ops", 0, OPT_COUNT, FIELD(ops), .arg = "N", .def = "1m", .min = 1,
     .help = "reads in all"},
    {"depth", 0, OPT_COUNT, FIELD(depth), .arg = "N", .def = "32", .min = 1, .max = 4096,
     .help = "reads in flight"},
    {"batch", 0, OPT_COUNT, FIELD(batch), .arg = "N", .def = "32", .min = 1, .max = 4096,
     .help = "most reads handed over in one call"},
    {"complete", 0, OPT_COUNT, FIELD(complete), .arg = "N", .def = "1", .min = 1, .max = 4096,
     .help = "completions waited for when the depth is full"},
    {"bs", 0, OPT_SIZE, FIELD(bs), .arg = "SIZE", .def = "4k", .min = 512, .max = 1 << 20,
     .help = "bytes a read"},
    {"direct", 0, OPT_FLAG, FIELD(direct), .help = "O_DIRECT"},
    {"plain", 0, OPT_FLAG, FIELD(plain), .help = "nothing registered, no setup flags"},
    {"rate", 0, OPT_COUNT, FIELD(rate), .arg = "N", .def = "0",
     .help = "reads a second, each issued when due by spinning; 0 = no pace"},
    {"burst", 0, OPT_COUNT, FIELD(burst), .arg = "N", .def = "1", .min = 1, .max = 4096,
     .help = "reads due at the same time, with --rate"},
    {"seed", 0, OPT_COUNT, FIELD(seed), .arg = "N", .def = "1", .help = "of the offsets"},
    {"help", 'h', OPT_FLAG, FIELD(help), .help = "this text"},
    {0}};
#undef FIELD

#if HAVE_LIB

struct loop {
    struct conf conf;
    struct io_uring ring;
    struct diag diag;
    int fd;
    bool fixed; /* file 0 and buffer 0 are registered */
    char *buffers;
    unsigned int *free_slots;
    unsigned int free_count;
    uint64_t blocks, random;
    uint64_t issued, completed;
    uint64_t *lags_ns; /* with --rate, by op */
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t random_block(struct loop *loop)
{
    loop->random ^= loop->random << 13;
    loop->random ^= loop->random >> 7;
    loop->random ^= loop->random << 17;
    return (uint64_t)(((__uint128_t)loop->random * loop->blocks) >> 64);
}

static int loop_ring(struct loop *loop)
{
    struct io_uring_params params = {0};
    struct iovec area = {loop->buffers, loop->conf.depth * loop->conf.bs};
    int err = -EINVAL;

    if (!loop->conf.plain) {
        params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN;
        /* A paced loop looks for completions without a call: they must come by themselves. */
        params.flags |= loop->conf.rate ? 0 : IORING_SETUP_DEFER_TASKRUN;
        err = io_uring_queue_init_params((unsigned int)loop->conf.depth, &loop->ring, &params);
    }
    if (err == -EINVAL) {
        params = (struct io_uring_params){0};
        err = io_uring_queue_init_params((unsigned int)loop->conf.depth, &loop->ring, &params);
    }
    if (err)
        return diag_errno(&loop->diag, err, "io_uring");
    if (!loop->conf.plain) {
        io_uring_register_ring_fd(&loop->ring);
        loop->fixed = io_uring_register_files(&loop->ring, &loop->fd, 1) == 0 &&
                      io_uring_register_buffers(&loop->ring, &area, 1) == 0;
    }
    return 0;
}

static int loop_open(struct loop *loop)
{
    struct conf *conf = &loop->conf;
    struct stat st;

    loop->fd = open(conf->file, O_RDONLY | (conf->direct ? O_DIRECT : 0));
    if (loop->fd < 0 || fstat(loop->fd, &st) < 0)
        return diag_errno(&loop->diag, -errno, "%s", conf->file);
    loop->blocks = (uint64_t)st.st_size / conf->bs;
    if (loop->blocks == 0)
        return diag_set(&loop->diag, -EINVAL, "%s: smaller than one read", conf->file);
    loop->random = conf->seed * 0x9e3779b97f4a7c15u | 1;
    loop->buffers = aligned_alloc(4096, (conf->depth * conf->bs + 4095) & ~(uint64_t)4095);
    loop->free_slots = calloc(conf->depth, sizeof(loop->free_slots[0]));
    loop->lags_ns = conf->rate ? calloc(conf->ops, sizeof(loop->lags_ns[0])) : NULL;
    if (!loop->buffers || !loop->free_slots || (conf->rate && !loop->lags_ns))
        return diag_errno(&loop->diag, -ENOMEM, "%s", conf->file);
    memset(loop->buffers, 0, conf->depth * conf->bs);
    while (loop->free_count < conf->depth) {
        loop->free_slots[loop->free_count] = loop->free_count;
        loop->free_count++;
    }
    return loop_ring(loop);
}

static void prepare(struct loop *loop)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&loop->ring);
    unsigned int slot = loop->free_slots[--loop->free_count];
    char *buffer = loop->buffers + slot * loop->conf.bs;
    uint64_t offset = random_block(loop) * loop->conf.bs;

    if (loop->fixed) {
        io_uring_prep_read_fixed(sqe, 0, buffer, (unsigned int)loop->conf.bs, offset, 0);
        sqe->flags = IOSQE_FIXED_FILE;
    } else {
        io_uring_prep_read(sqe, loop->fd, buffer, (unsigned int)loop->conf.bs, offset);
    }
    sqe->user_data = slot;
    loop->issued++;
}

static int reap(struct loop *loop)
{
    struct io_uring_cqe *cqe;
    unsigned int head, count = 0;
    int result = 0;

    io_uring_for_each_cqe(&loop->ring, head, cqe)
    {
        if (cqe->res != (int)loop->conf.bs)
            result = cqe->res < 0 ? cqe->res : -EIO;
        loop->free_slots[loop->free_count++] = (unsigned int)cqe->user_data;
        count++;
    }
    io_uring_cq_advance(&loop->ring, count);
    loop->completed += count;
    return result ? diag_errno(&loop->diag, result, "%s: read", loop->conf.file) : 0;
}

static int run_fast(struct loop *loop)
{
    const struct conf *conf = &loop->conf;
    uint64_t ready, wait;
    int n, err = 0;

    while (!err && loop->completed < conf->ops) {
        ready = conf->ops - loop->issued;
        if (ready > conf->batch)
            ready = conf->batch;
        if (ready > loop->free_count)
            ready = loop->free_count;
        for (uint64_t i = 0; i < ready; i++)
            prepare(loop);
        wait = loop->free_count == 0 || loop->issued == conf->ops ? conf->complete : 0;
        if (wait > loop->issued - loop->completed)
            wait = loop->issued - loop->completed;
        n = wait ? io_uring_submit_and_wait(&loop->ring, (unsigned int)wait)
                 : io_uring_submit(&loop->ring);
        if (n < 0 && n != -EINTR)
            return diag_errno(&loop->diag, n, "io_uring_enter");
        err = reap(loop);
    }
    return err;
}

static int run_paced(struct loop *loop)
{
    const struct conf *conf = &loop->conf;
    uint64_t start_ns = now_ns() + 1000000, due_ns, stamp_ns;
    int err = 0, n;

    while (!err && loop->completed < conf->ops) {
        if (loop->issued == conf->ops || loop->free_count < conf->burst) {
            err = reap(loop);
            continue;
        }
        due_ns = start_ns + (uint64_t)((double)loop->issued * 1e9 / (double)conf->rate);
        while ((stamp_ns = now_ns()) < due_ns && !err)
            err = reap(loop);
        for (uint64_t i = 0; i < conf->burst && loop->issued < conf->ops; i++) {
            loop->lags_ns[loop->issued] = stamp_ns - due_ns;
            prepare(loop);
        }
        n = io_uring_submit(&loop->ring);
        if (n < 0)
            return diag_errno(&loop->diag, n, "io_uring_enter");
    }
    return err;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static double cpu_ns(const struct timeval *time)
{
    return (double)time->tv_sec * 1e9 + (double)time->tv_usec * 1e3;
}

static void report(struct loop *loop, uint64_t took_ns)
{
    double ops = (double)loop->completed;
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    printf("ops=%llu\nduration_ns=%llu\nops_per_s=%.1f\n", (unsigned long long)loop->completed,
           (unsigned long long)took_ns, ops * 1e9 / (double)took_ns);
    printf("cpu_user_ns_per_op=%.1f\ncpu_sys_ns_per_op=%.1f\nregistered=%d\n",
           cpu_ns(&usage.ru_utime) / ops, cpu_ns(&usage.ru_stime) / ops, loop->fixed);
    if (!loop->conf.rate)
        return;
    qsort(loop->lags_ns, loop->completed, sizeof(loop->lags_ns[0]), by_value);
    printf("lag_p50_ns=%llu\nlag_p99_ns=%llu\nlag_max_ns=%llu\n",
           (unsigned long long)loop->lags_ns[loop->completed / 2],
           (unsigned long long)loop->lags_ns[loop->completed * 99 / 100],
           (unsigned long long)loop->lags_ns[loop->completed - 1]);
}

static int run(struct loop *loop)
{
    uint64_t start_ns;
    int err = loop_open(loop);

    if (err)
        return err;
    start_ns = now_ns();
    err = loop->conf.rate ? run_paced(loop) : run_fast(loop);
    if (!err)
        report(loop, now_ns() - start_ns);
    return err;
}

int main(int argc, char **argv)
{
    struct loop loop = {.diag = DIAG_INIT};
    int operands = 0, err;

    err = opts_defaults(opts, &loop.conf, &loop.diag);
    if (!err)
        err = opts_parse(opts, &loop.conf, argc, argv, false, NULL, &operands, &loop.diag);
    if (!err && loop.conf.help) {
        opts_help(opts, stdout);
        return 0;
    }
    if (!err && (operands > 0 || !loop.conf.file || loop.conf.burst > loop.conf.depth))
        err = diag_set(&loop.diag, -EINVAL,
                       "usage: ioloop --file F [options]; a burst is at most the depth");
    if (err) {
        fprintf(stderr, "ioloop: %s\n", loop.diag.text);
        return 2;
    }
    if (run(&loop)) {
        fprintf(stderr, "ioloop: %s\n", loop.diag.text);
        return 1;
    }
    return 0;
}

#else

int main(void)
{
    (void)opts;
    puts("ioloop was built without liburing");
    return 77;
}

#endif
