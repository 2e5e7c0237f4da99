/* SPDX-License-Identifier: MIT */
/*
 * Issues a known number of ops while the program that records it, its parent, is stopped:
 *
 *     prog_flood FOLDER READS OTHER_READS FILES CHILD_READS AIO_READS
 *
 * READS of FOLDER/0 from one processor, then OTHER_READS from a second thread on another one,
 * then an open, a read and a close of each of FOLDER/1 ... FOLDER/FILES, then AIO_READS through
 * libaio, then CHILD_READS of FOLDER/0 by a child. As many AIO_READS have been handed over before
 * the first of the READS; they are reaped after the last. Prints issued=N cpu=A other_cpu=B.
 * Nothing else is done on files of FOLDER, except for one open, and one read by each thread
 * before.
 */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define AIO_MAX 256u

static int data_fd, cpus[2];
static unsigned long other_reads;
static pthread_barrier_t barrier;
static aio_context_t aio;
static struct iocb blocks[AIO_MAX];
static char aio_bytes[AIO_MAX];

static void check(int good, const char *what)
{
    if (good)
        return;
    perror(what);
    kill(getppid(), SIGCONT);
    exit(1);
}

static void flood(unsigned long reads)
{
    char byte;

    for (unsigned long i = 0; i < reads; i++)
        check(pread(data_fd, &byte, 1, 0) == 1, "pread");
}

static void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    check(sched_setaffinity(0, sizeof(set), &set) == 0, "sched_setaffinity");
}

/* The first and the last processor that may be used: one alone is both. */
static void cpus_choose(void)
{
    cpu_set_t set;

    check(sched_getaffinity(0, sizeof(set), &set) == 0, "sched_getaffinity");
    cpus[0] = -1;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &set))
            continue;
        if (cpus[0] < 0)
            cpus[0] = i;
        cpus[1] = i;
    }
}

static void *other(void *unused)
{
    pin(cpus[1]);
    flood(1);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier); /* the first thread's turn */
    flood(other_reads);
    pthread_barrier_wait(&barrier);
    pause();
    return unused;
}

/* SIGSTOP takes effect some time after kill returns. */
static void parent_stop(void)
{
    char path[64], line[512], *state = NULL;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)getppid());
    check(kill(getppid(), SIGSTOP) == 0, "SIGSTOP");
    do {
        int fd = open(path, O_RDONLY);
        ssize_t got = read(fd, line, sizeof(line) - 1);

        close(fd);
        check(got > 0, path);
        line[got] = '\0';
        state = strrchr(line, ')');
        usleep(1000);
    } while (!state || state[2] != 'T');
}

static void files_touch(const char *folder, unsigned long files)
{
    char path[4096], byte;

    for (unsigned long i = 1; i <= files; i++) {
        int fd;

        snprintf(path, sizeof(path), "%s/%lu", folder, i);
        fd = open(path, O_RDONLY);
        check(fd >= 0 && read(fd, &byte, 1) == 1 && close(fd) == 0, path);
    }
}

static void aio_submit(unsigned long reads)
{
    for (unsigned long i = 0; i < reads; i++) {
        struct iocb *block = &blocks[i];

        *block = (struct iocb){.aio_fildes = (uint32_t)data_fd,
                               .aio_lio_opcode = IOCB_CMD_PREAD,
                               .aio_buf = (uint64_t)(uintptr_t)&aio_bytes[i],
                               .aio_nbytes = 1};
        check(syscall(SYS_io_submit, aio, 1, &block) == 1, "io_submit");
    }
}

static void aio_reap(unsigned long reads)
{
    struct io_event event;

    for (unsigned long i = 0; i < reads; i++)
        check(syscall(SYS_io_getevents, aio, 1, 1, &event, NULL) == 1 && event.res == 1,
              "io_getevents");
}

static void child_read(unsigned long reads)
{
    int status = 1;
    pid_t pid = fork();

    check(pid >= 0, "fork");
    if (pid == 0) {
        char byte;

        for (unsigned long i = 0; i < reads; i++)
            if (pread(data_fd, &byte, 1, 0) != 1)
                _exit(1);
        _exit(0);
    }
    check(waitpid(pid, &status, 0) == pid && status == 0, "child");
}

int main(int argc, char **argv)
{
    unsigned long reads, files, child_reads, aio_reads;
    char path[4096];
    pthread_t thread;

    if (argc != 7)
        return 2;
    reads = strtoul(argv[2], NULL, 10);
    other_reads = strtoul(argv[3], NULL, 10);
    files = strtoul(argv[4], NULL, 10);
    child_reads = strtoul(argv[5], NULL, 10);
    aio_reads = strtoul(argv[6], NULL, 10);
    check(aio_reads <= AIO_MAX, "AIO_READS");
    check(syscall(SYS_io_setup, AIO_MAX, &aio) == 0, "io_setup");
    snprintf(path, sizeof(path), "%s/0", argv[1]);
    data_fd = open(path, O_RDONLY);
    check(data_fd >= 0, path);
    cpus_choose();
    /* Now: written later it would be one more op that is lost. */
    dprintf(1, "issued=%lu cpu=%d other_cpu=%d\n",
            3 + reads + other_reads + 3 * files + child_reads + 2 * aio_reads, cpus[0],
            cpus[1]);
    pin(cpus[0]);
    pthread_barrier_init(&barrier, NULL, 2);
    flood(1);
    pthread_create(&thread, NULL, other, NULL);
    pthread_barrier_wait(&barrier);
    parent_stop();
    aio_submit(aio_reads);
    flood(reads);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier); /* the other thread's turn */
    files_touch(argv[1], files);
    aio_reap(aio_reads);
    aio_submit(aio_reads);
    aio_reap(aio_reads);
    child_read(child_reads);
    kill(getppid(), SIGCONT);
    _exit(0);
}
