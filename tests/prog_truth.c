/* SPDX-License-Identifier: MIT */
/*
 * prog_truth MODE FILE: does a known sequence of I/O on FILE and prints, for each op, what a
 * recorder must have seen: "op offset length result", '-' for what an op does not have.
 * Standard output must not be FILE's folder's business: tests look at FILE alone.
 */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/falloc.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[1 << 18];

static void __attribute__((noreturn)) die(const char *what)
{
    perror(what);
    exit(1);
}

static void truth(const char *op, long offset, long length, long result)
{
    char where[32] = "-";

    if (offset >= 0)
        snprintf(where, sizeof(where), "%ld", offset);
    printf("%s %s %ld %ld\n", op, where, length, result < 0 ? -(long)errno : result);
}

static int open_file(const char *path, int flags)
{
    int fd = open(path, flags, 0600);

    if (fd < 0)
        die(path);
    truth(flags & O_CREAT && flags & O_EXCL ? "create" : "open", -1, 0, fd);
    return fd;
}

/* A file of size bytes, made through a name that tests do not look at but for its rename. */
static int with_data(const char *path, size_t size, int flags)
{
    char *other;
    int fd;

    if (asprintf(&other, "%s.made", path) < 0)
        die("asprintf");
    fd = open(other, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, buffer, size) != (ssize_t)size || close(fd) || rename(other, path))
        die(other);
    truth("rename", -1, 0, 0);
    free(other);
    return open_file(path, flags);
}

static void close_file(int fd)
{
    truth("close", -1, 0, close(fd));
}

static void do_sync(const char *path)
{
    char *moved;
    int fd = open_file(path, O_RDWR | O_CREAT | O_EXCL), copy;

    truth("write", 0, 5000, write(fd, buffer, 5000));
    truth("write", 5000, 192, write(fd, buffer, 192));
    truth("write", 65536, 4096, pwrite(fd, buffer, 4096, 65536));
    truth("fsync", -1, 0, fsync(fd));
    lseek(fd, 1000, SEEK_SET);
    truth("read", 1000, 100, read(fd, buffer, 100));
    copy = dup(fd);
    truth("read", 1100, 50, read(copy, buffer, 50));
    truth("read", 1150, 50, read(fd, buffer, 50));
    truth("read", 69000, 4096, pread(fd, buffer, 4096, 69000));
    truth("read", 70000, 10, pread(fd, buffer, 10, 70000));
    truth("close", -1, 0, close(copy));
    truth("read", 0, 8, syscall(SYS_pread64, fd, buffer, 8, 0));
    truth("fdatasync", -1, 0, fdatasync(fd));
    truth("sync_range", 0, 4096, sync_file_range(fd, 0, 4096, SYNC_FILE_RANGE_WRITE));
    truth("truncate", -1, 40000, ftruncate(fd, 40000));
    truth("fallocate", 40000, 8192, fallocate(fd, 0, 40000, 8192));
    truth("discard", 4096, 4096,
          fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096));
    truth("readahead", 0, 65536, readahead(fd, 0, 65536));
    errno = 0;
    truth("read", -5, 10, pread(fd, buffer, 10, -5));
    close_file(fd);
    fd = open_file(path, O_WRONLY);
    truth("read", 0, 10, pread(fd, buffer, 10, 0));
    close_file(fd);
    if (asprintf(&moved, "%s.moved", path) < 0)
        die("asprintf");
    truth("rename", -1, 0, rename(path, moved));
    truth("rename", -1, 0, rename(moved, path));
    free(moved);
    truth("unlink", -1, 0, unlink(path));
    truth("open", -1, 0, open(path, O_RDONLY));
}

static void do_vectored(const char *path)
{
    struct iovec vector[3] = {{buffer, 100}, {buffer + 100, 4000}, {buffer + 8192, 1}};
    int fd = open_file(path, O_RDWR | O_CREAT | O_EXCL);

    truth("write", 0, 4101, writev(fd, vector, 3));
    truth("write", 4101, 4100, writev(fd, vector, 2));
    truth("write", 16384, 4101, pwritev(fd, vector, 3, 16384));
    truth("write", 32768, 4101, pwritev2(fd, vector, 3, 32768, RWF_DSYNC));
    lseek(fd, 10, SEEK_SET);
    truth("read", 10, 4101, readv(fd, vector, 3));
    truth("read", 4111, 100, preadv2(fd, vector, 1, -1, 0));
    truth("read", 20000, 4101, preadv(fd, vector, 3, 20000));
    truth("read", 36864, 4101, preadv2(fd, vector, 3, 36864, 0));
    close_file(fd);
}

/* The kernel's aio by system calls: libaio's own functions are what fio's test goes through. */
static int io_setup(unsigned int depth, aio_context_t *context)
{
    return (int)syscall(SYS_io_setup, depth, context);
}

static int io_submit(aio_context_t context, long count, struct iocb **list)
{
    return (int)syscall(SYS_io_submit, context, count, list);
}

static int io_getevents(aio_context_t context, long min, long max, struct io_event *events,
                        struct timespec *timeout)
{
    return (int)syscall(SYS_io_getevents, context, min, max, events, timeout);
}

static void io_destroy(aio_context_t context)
{
    syscall(SYS_io_destroy, context);
}

static void io_prep(struct iocb *block, int opcode, int fd, void *bytes, size_t length,
                    long offset)
{
    memset(block, 0, sizeof(*block));
    block->aio_lio_opcode = (uint16_t)opcode;
    block->aio_fildes = (uint32_t)fd;
    block->aio_buf = (uintptr_t)bytes;
    block->aio_nbytes = length;
    block->aio_offset = offset;
}

/* Batches of 1 to 64, each reaped whole. */
static void do_libaio(const char *path)
{
    int fd = with_data(path, sizeof(buffer), O_RDWR);
    struct iocb blocks[64], *list[64];
    struct io_event events[64];
    aio_context_t context = 0;

    if (io_setup(64, &context) < 0)
        die("io_setup");
    for (int batch = 1; batch <= 64; batch += batch < 8 ? 1 : 8) {
        for (int i = 0; i < batch; i++) {
            list[i] = &blocks[i];
            if (i % 4 == 3)
                io_prep(&blocks[i], IOCB_CMD_PWRITE, fd, buffer + i * 1024, 1024, i * 1024);
            else
                io_prep(&blocks[i], IOCB_CMD_PREAD, fd, buffer + i * 1024, 512 + (size_t)batch,
                        i * 1024);
        }
        if (io_submit(context, batch, list) != batch ||
            io_getevents(context, batch, batch, events, NULL) != batch)
            die("libaio");
        for (int i = 0; i < batch; i++)
            truth(i % 4 == 3 ? "write" : "read", i * 1024, i % 4 == 3 ? 1024 : 512 + batch,
                  i % 4 == 3 ? 1024 : 512 + batch);
    }
    io_prep(&blocks[0], IOCB_CMD_FSYNC, fd, NULL, 0, 0);
    if (io_submit(context, 1, list) == 1 && io_getevents(context, 1, 1, events, NULL) == 1)
        truth("fsync", -1, 0, (long)events[0].res);
    io_destroy(context);
    close_file(fd);
}

/* Takes completions out of the ring by hand, as fio and databases do. */
static void do_handreap(const char *path)
{
    struct {
        unsigned int id, nr, head, tail, magic, compat, incompat, header_bytes;
        struct io_event events[];
    } * ring;
    int fd = with_data(path, sizeof(buffer), O_RDONLY);
    struct iocb block, *list[1] = {&block};
    aio_context_t context = 0;

    if (io_setup(8, &context) < 0)
        die("io_setup");
    ring = (void *)(uintptr_t)context;
    for (int i = 0; i < 100; i++) {
        io_prep(&block, IOCB_CMD_PREAD, fd, buffer, 100, i * 100);
        if (io_submit(context, 1, list) != 1)
            die("io_submit");
        while (__atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == ring->head)
            ;
        truth("read", i * 100, 100, (long)ring->events[ring->head].res);
        __atomic_store_n(&ring->head, (ring->head + 1) % ring->nr, __ATOMIC_RELEASE);
    }
    io_destroy(context);
    close_file(fd);
}

static void wait_for(struct aiocb *block)
{
    const struct aiocb *list[1] = {block};

    while (aio_error(block) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
}

static void do_posixaio(const char *path)
{
    int fd = with_data(path, 65536, O_RDWR);
    struct aiocb blocks[8], *list[8];

    for (int i = 0; i < 8; i++) {
        memset(&blocks[i], 0, sizeof(blocks[i]));
        blocks[i].aio_fildes = fd;
        blocks[i].aio_buf = buffer + i * 4096;
        blocks[i].aio_nbytes = 1000;
        blocks[i].aio_offset = i * 4096;
        list[i] = &blocks[i];
    }
    for (int i = 0; i < 8; i++)
        if (i % 2 ? aio_write(&blocks[i]) : aio_read(&blocks[i]))
            die("aio");
    for (int i = 0; i < 8; i++) {
        wait_for(&blocks[i]);
        truth(i % 2 ? "write" : "read", i * 4096, 1000, aio_return(&blocks[i]));
    }
    if (aio_fsync(O_SYNC, &blocks[0]))
        die("aio_fsync");
    wait_for(&blocks[0]);
    truth("fsync", -1, 0, aio_return(&blocks[0]));
    for (int i = 0; i < 8; i++)
        blocks[i].aio_lio_opcode = LIO_READ;
    if (lio_listio(LIO_WAIT, list, 8, NULL))
        die("lio_listio");
    for (int i = 0; i < 8; i++)
        truth("read", i * 4096, 1000, aio_return(&blocks[i]));
    close_file(fd);
}

/* What glibc does for a 4096-byte buffer, as strace shows it. */
static void do_stdio(const char *path)
{
    FILE *file = fopen(path, "wx+");
    char line[64];

    if (!file)
        die(path);
    truth("create", -1, 0, fileno(file));
    fwrite(buffer, 1, 100, file);
    fwrite(buffer, 1, 10000, file);
    truth("write", 0, 4096, 4096);
    truth("write", 4096, 4096, 4096);
    fprintf(file, "%d\n", 12345);
    fflush(file);
    truth("write", 8192, 1914, 1914);
    rewind(file);
    if (fread(buffer, 1, 100, file) != 100 || fread(buffer, 1, 9000, file) != 9000)
        die("fread");
    truth("read", 0, 4096, 4096);
    truth("read", 4096, 4096, 4096);
    truth("read", 8192, 4096, 1914);
    while (fgets(line, sizeof(line), file))
        ;
    truth("read", 10106, 4096, 0);
    fclose(file);
    truth("close", -1, 0, 0);
}

struct reader {
    pthread_t thread;
    int fd, number;
};

static void *read_some(void *context)
{
    const struct reader *reader = context;
    char bytes[64];

    for (int i = 0; i < 200; i++)
        if (pread(reader->fd, bytes, (size_t)(reader->number + 1), reader->number * 4096 + i) !=
            reader->number + 1)
            die("pread");
    return NULL;
}

static void do_threads(const char *path)
{
    int fd = with_data(path, sizeof(buffer), O_RDONLY);
    struct reader readers[32];

    for (int i = 0; i < 32; i++) {
        readers[i] = (struct reader){.fd = fd, .number = i};
        if (pthread_create(&readers[i].thread, NULL, read_some, &readers[i]))
            die("pthread_create");
    }
    for (int i = 0; i < 32; i++)
        pthread_join(readers[i].thread, NULL);
    for (int i = 0; i < 32; i++)
        for (int j = 0; j < 200; j++)
            truth("read", i * 4096 + j, i + 1, i + 1);
    close_file(fd);
}

/* Each process of the tree reads at places of its own, through a descriptor it inherited. */
static void fork_tree(int fd, int depth, int place)
{
    for (int child = 0; depth > 0 && child < 3; child++) {
        pid_t pid = fork();

        if (pid < 0)
            die("fork");
        if (pid == 0) {
            fork_tree(fd, depth - 1, place * 4 + child + 1);
            _exit(0);
        }
    }
    if (pread(fd, buffer, 7, place * 16) != 7)
        die("pread");
    while (wait(NULL) > 0)
        ;
}

static void tree_truth(int depth, int place)
{
    truth("read", place * 16, 7, 7);
    for (int child = 0; depth > 0 && child < 3; child++)
        tree_truth(depth - 1, place * 4 + child + 1);
}

static void do_forks(const char *path)
{
    int fd = with_data(path, sizeof(buffer), O_RDONLY);

    fork_tree(fd, 3, 1);
    tree_truth(3, 1);
    close_file(fd);
}

/* Processes race for the end of one file, each through a descriptor of its own. Where each
 * record went is read back from the file. */
static void do_append(const char *path)
{
    int fd = open_file(path, O_RDWR | O_CREAT | O_EXCL);
    long at = 0, length;

    for (int child = 0; child < 8; child++) {
        if (fork())
            continue;
        fd = open(path, O_WRONLY | O_APPEND);
        memset(buffer, 'a' + child, 4096);
        for (int i = 0; i < 50; i++) {
            int bytes = 1 + (child * 131 + i * 17) % 4000;

            memcpy(buffer, &bytes, sizeof(bytes));
            bytes = bytes < 4 ? 4 : bytes;
            memcpy(buffer, &bytes, sizeof(bytes));
            if (write(fd, buffer, (size_t)bytes) != bytes)
                die("append");
        }
        _exit(0);
    }
    while (wait(NULL) > 0)
        ;
    for (int i = 0; i < 8 * 50; i++) {
        int bytes;

        if (syscall(SYS_pread64, fd, &bytes, sizeof(bytes), at) != sizeof(bytes))
            die("read back");
        truth("read", at, 4, 4);
        length = bytes;
        truth("write", at, length, length);
        at += length;
    }
    /* The children's own opens of the file. */
    for (int child = 0; child < 8; child++)
        truth("open", -1, 0, fd + 1);
    close_file(fd);
}

/* A program that closes every descriptor it does not know: the recorder must not mind. */
static void do_closeall(const char *path)
{
    int fd = with_data(path, 65536, O_RDONLY);

    truth("read", 0, 10, pread(fd, buffer, 10, 0));
    fflush(stdout);
    close_range(3, ~0u, 0);
    fd = open_file(path, O_RDONLY);
    truth("read", 10, 10, pread(fd, buffer, 10, 10));
    for (int i = 3; i < 256; i++)
        if (i != fd)
            close(i);
    truth("read", 20, 10, pread(fd, buffer, 10, 20));
    close_file(fd);
}

static int signal_fd;
static volatile long handled;

static void on_alarm(int number)
{
    char byte;

    if (pread(signal_fd, &byte, 1, 100000) == 1)
        handled++;
}

/* Reads in a signal handler that interrupts reads. */
static void do_signals(const char *path)
{
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};

    signal_fd = with_data(path, sizeof(buffer), O_RDONLY);
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 20000; i++)
        if (pread(signal_fd, buffer, 16, i) != 16)
            die("pread");
    setitimer(ITIMER_REAL, &never, NULL);
    for (int i = 0; i < 20000; i++)
        truth("read", i, 16, 16);
    for (long i = 0; i < handled; i++)
        truth("read", 100000, 1, 1);
    close_file(signal_fd);
}

static void do_copy(const char *path)
{
    int fd = with_data(path, 65536, O_RDONLY), pipes[2];
    off_t offset = 4096;
    char *other;
    int out;

    if (asprintf(&other, "%s.copy", path) < 0 || pipe(pipes))
        die("copy");
    out = open(other, O_RDWR | O_CREAT | O_TRUNC, 0600);
    truth("copy", 4096, 8192, copy_file_range(fd, &offset, out, NULL, 8192, 0));
    truth("copy", 0, 100, syscall(SYS_copy_file_range, fd, NULL, out, NULL, 100, 0));
    offset = 20000;
    truth("read", 20000, 500, splice(fd, &offset, pipes[1], NULL, 500, 0));
    close_file(fd);
    close(out);
    unlink(other);
    free(other);
}

/* io_uring by hand, through syscall() and mmap(): batches of 1 to 32, a registered file, links.
 */
static struct {
    int fd;
    unsigned int *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
} ring;

static bool ring_open(void)
{
    struct io_uring_params params;
    size_t bytes;
    char *at;

    memset(&params, 0, sizeof(params));
    ring.fd = (int)syscall(SYS_io_uring_setup, 32, &params);
    if (ring.fd < 0 || !(params.features & IORING_FEAT_SINGLE_MMAP))
        return false;
    bytes = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe) +
            params.sq_entries * sizeof(unsigned int);
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
    ring.sqes = mmap(NULL, params.sq_entries * sizeof(struct io_uring_sqe),
                     PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQES);
    if (at == MAP_FAILED || ring.sqes == MAP_FAILED)
        return false;
    ring.sq_tail = (unsigned int *)(void *)(at + params.sq_off.tail);
    ring.sq_mask = (unsigned int *)(void *)(at + params.sq_off.ring_mask);
    ring.sq_array = (unsigned int *)(void *)(at + params.sq_off.array);
    ring.cq_head = (unsigned int *)(void *)(at + params.cq_off.head);
    ring.cq_tail = (unsigned int *)(void *)(at + params.cq_off.tail);
    ring.cq_mask = (unsigned int *)(void *)(at + params.cq_off.ring_mask);
    ring.cqes = (struct io_uring_cqe *)(void *)(at + params.cq_off.cqes);
    return true;
}

static struct io_uring_sqe *ring_entry(int opcode, int fd, size_t length, long offset)
{
    unsigned int tail = *ring.sq_tail, index = tail & *ring.sq_mask;
    struct io_uring_sqe *sqe = &ring.sqes[index];

    memset(sqe, 0, sizeof(*sqe));
    sqe->opcode = (uint8_t)opcode;
    sqe->fd = fd;
    sqe->addr = opcode == IORING_OP_FSYNC ? 0 : (uintptr_t)(buffer + index * 4096);
    sqe->len = (uint32_t)length;
    sqe->off = (uint64_t)offset;
    ring.sq_array[index] = index;
    __atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
    return sqe;
}

static void ring_run(unsigned int count)
{
    if (syscall(SYS_io_uring_enter, ring.fd, count, count, IORING_ENTER_GETEVENTS, NULL, 0) !=
        (long)count)
        die("io_uring_enter");
    for (unsigned int i = 0; i < count; i++, (*ring.cq_head)++)
        if (ring.cqes[*ring.cq_head & *ring.cq_mask].res < 0)
            die("io_uring");
}

static void do_uring(const char *path)
{
    int fd = with_data(path, sizeof(buffer), O_RDWR);

    if (!ring_open())
        exit(77);
    for (int batch = 1; batch <= 32; batch *= 2) {
        for (int i = 0; i < batch; i++) {
            int opcode = i % 4 == 3 ? IORING_OP_WRITE : IORING_OP_READ;

            ring_entry(opcode, fd, 100 + (size_t)batch, i * 4096);
            truth(i % 4 == 3 ? "write" : "read", i * 4096, 100 + batch, 100 + batch);
        }
        ring_run((unsigned int)batch);
    }
    if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, &fd, 1))
        die("io_uring_register");
    ring_entry(IORING_OP_WRITE, 0, 512, 8192)->flags = IOSQE_FIXED_FILE | IOSQE_IO_LINK;
    ring_entry(IORING_OP_FSYNC, 0, 0, 0)->flags = IOSQE_FIXED_FILE;
    ring_run(2);
    truth("write", 8192, 512, 512);
    truth("fsync", -1, 0, 0);
    close(ring.fd);
    close_file(fd);
}

/* A program that dies of a system call which only a recorder in it would make. */
static void do_seccomp(const char *path)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filter = {4, steps};
    struct reader reader = {.fd = with_data(path, sizeof(buffer), O_RDONLY)};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        exit(77);
    pthread_create(&reader.thread, NULL, read_some, &reader);
    pthread_join(reader.thread, NULL);
    close(reader.fd);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const char *path);
    } modes[] = {{"sync", do_sync},         {"vectored", do_vectored}, {"libaio", do_libaio},
                 {"handreap", do_handreap}, {"posixaio", do_posixaio}, {"stdio", do_stdio},
                 {"threads", do_threads},   {"forks", do_forks},       {"append", do_append},
                 {"closeall", do_closeall}, {"signals", do_signals},   {"copy", do_copy},
                 {"uring", do_uring},       {"seccomp", do_seccomp}};
    static char truth_buffer[1 << 21];

    setvbuf(stdout, truth_buffer, _IOFBF, sizeof(truth_buffer));
    for (size_t i = 0; argc == 3 && i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (!strcmp(argv[1], modes[i].name)) {
            modes[i].run(argv[2]);
            return 0;
        }
    }
    fprintf(stderr, "usage: prog_truth MODE FILE\n");
    return 2;
}
