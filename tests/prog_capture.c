/* SPDX-License-Identifier: MIT */
/*
 * Programs to be captured, each doing a number of I/O calls that the test knows:
 *
 *     prog_capture bursts FILE N M   one pread of 512 bytes, stops itself; N preads, stops itself;
 *                                    M preads: the test does as it likes with the recorder meanwhile
 *     prog_capture pass A B          a child that opens nothing gets A, writes 100 bytes at 0 and
 *                                    closes it, then B under the same number, and writes 200
 *     prog_capture files DIR N       makes N files in DIR/0 ... DIR/99, reads each (there is nothing)
 *     prog_capture held A B          opens A, and B appending, maps A, stops itself; then reads 512
 *                                    bytes of A at 1024 and writes 10 to B
 *     prog_capture map A             maps A (made, 64 KiB), stores a byte a page, msync
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[4096];

static void __attribute__((noreturn)) die(const char *what)
{
    perror(what);
    exit(1);
}

static int open_or_die(const char *path, int flags)
{
    int fd = open(path, flags, 0644);

    if (fd < 0)
        die(path);
    return fd;
}

static void reads(int fd, long count)
{
    for (long i = 0; i < count; i++)
        if (pread(fd, buffer, 512, i % 8 * 512) != 512)
            die("pread");
}

static int bursts(char **args)
{
    int fd = open_or_die(args[0], O_RDONLY);

    reads(fd, 1);
    raise(SIGSTOP);
    reads(fd, atol(args[1]));
    raise(SIGSTOP);
    reads(fd, atol(args[2]));
    return 0;
}

union control {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/* A message of one byte with room for a descriptor; what it points to is shared by all. */
static struct msghdr message_of(union control *control)
{
    static struct iovec one = {.iov_base = buffer, .iov_len = 1};

    memset(control, 0, sizeof(*control));
    return (struct msghdr){.msg_iov = &one,
                           .msg_iovlen = 1,
                           .msg_control = control->bytes,
                           .msg_controllen = sizeof(control->bytes)};
}

static void descriptor_send(int to, int fd)
{
    union control control;
    struct msghdr message = message_of(&control);

    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
    if (sendmsg(to, &message, 0) != 1)
        die("sendmsg");
    close(fd);
}

static int descriptor_receive(int from)
{
    union control control;
    struct msghdr message = message_of(&control);
    int fd;

    if (recvmsg(from, &message, 0) != 1)
        die("recvmsg");
    memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
    return fd;
}

static int pass_child(int from)
{
    int first = descriptor_receive(from), second;

    if (pwrite(first, buffer, 100, 0) != 100)
        die("pwrite");
    close(first);
    second = descriptor_receive(from);
    if (second != first || pwrite(second, buffer, 200, 0) != 200)
        die("pwrite");
    return 0;
}

static int pass(char **args)
{
    int ends[2], status;
    pid_t child;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
        die("socketpair");
    child = fork();
    if (child < 0)
        die("fork");
    if (child == 0)
        _exit(pass_child(ends[1]));
    descriptor_send(ends[0], open_or_die(args[0], O_RDWR));
    descriptor_send(ends[0], open_or_die(args[1], O_RDWR));
    if (waitpid(child, &status, 0) != child || status != 0)
        return 1;
    return 0;
}

static int files(char **args)
{
    long count = atol(args[1]);
    char path[512];

    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof(path), "%s/%d", args[0], i);
        if (mkdir(path, 0755) != 0)
            die(path);
    }
    for (long i = 0; i < count; i++) {
        int fd;

        snprintf(path, sizeof(path), "%s/%ld/file%ld", args[0], i % 100, i);
        fd = open_or_die(path, O_RDWR | O_CREAT | O_EXCL);
        if (pread(fd, buffer, 64, 0) != 0)
            die(path);
        close(fd);
    }
    return 0;
}

static int held(char **args)
{
    int a = open_or_die(args[0], O_RDONLY);
    int b = open_or_die(args[1], O_WRONLY | O_APPEND);

    if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, a, 0) == MAP_FAILED)
        die("mmap");
    raise(SIGSTOP);
    if (pread(a, buffer, 512, 1024) != 512 || write(b, buffer, 10) != 10)
        die("read, write");
    return 0;
}

static int map(char **args)
{
    int fd = open_or_die(args[0], O_RDWR | O_CREAT);
    const size_t bytes = 65536;
    char *at;

    if (ftruncate(fd, (off_t)bytes) != 0)
        die(args[0]);
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        die("mmap");
    for (size_t i = 0; i < bytes; i += 4096)
        at[i] = 1;
    if (msync(at, bytes, MS_SYNC) != 0 || munmap(at, bytes) != 0)
        die("msync");
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int args;
        int (*run)(char **args);
    } modes[] = {{"bursts", 3, bursts}, {"pass", 2, pass}, {"files", 2, files},
                 {"held", 2, held},     {"map", 1, map}};

    for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
        if (!strcmp(argv[1], modes[i].name) && argc == 2 + modes[i].args)
            return modes[i].run(argv + 2);
    fprintf(stderr, "usage: see the head of prog_capture.c\n");
    return 2;
}
