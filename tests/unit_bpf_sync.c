/* SPDX-License-Identifier: MIT */
/* The bpf recorder against programs whose every call is known: ordinary system calls, threads,
 * forks, shared and passed descriptors, names. */
#include "tests/bpf_session.h"

#include <pthread.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <linux/falloc.h>

extern const struct recorder recorder_bpf;

static char buffer[1 << 16];

static int open_new(const char *path, int flags)
{
    int fd = open(path, flags, 0644);

    did(flags & O_CREAT ? TRACE_CREATE : TRACE_OPEN, TRACE_API_SYNC, path, 0, 0,
        fd < 0 ? -1 : 0);
    return fd;
}

static int work_sync(void)
{
    int fd = open_new("a", O_CREAT | O_RDWR);

    did(TRACE_WRITE, TRACE_API_SYNC, "a", 0, 4096, write(fd, buffer, 4096));
    did_flags(TRACE_F_POSITION);
    did(TRACE_WRITE, TRACE_API_SYNC, "a", 4096, 100, write(fd, buffer, 100));
    did(TRACE_WRITE, TRACE_API_SYNC, "a", 1 << 20, 4096, pwrite(fd, buffer, 4096, 1 << 20));
    did(TRACE_FSYNC, TRACE_API_SYNC, "a", 0, 0, fsync(fd));
    did(TRACE_FDATASYNC, TRACE_API_SYNC, "a", 0, 0, fdatasync(fd));
    lseek(fd, 50, SEEK_SET);
    did(TRACE_READ, TRACE_API_SYNC, "a", 50, 8192, read(fd, buffer, 8192));
    did(TRACE_READ, TRACE_API_SYNC, "a", 8242, 10, read(fd, buffer, 10));
    /* Past the end, short, and failed. */
    did(TRACE_READ, TRACE_API_SYNC, "a", 1 << 21, 10, pread(fd, buffer, 10, 1 << 21));
    did(TRACE_READ, TRACE_API_SYNC, "a", (1 << 20) + 4000, 4096,
        pread(fd, buffer, 4096, (1 << 20) + 4000));
    did(TRACE_READ, TRACE_API_SYNC, "a", 0, 4096, syscall(SYS_pread64, fd, 8L, 4096L, 0L));
    did(TRACE_TRUNCATE, TRACE_API_SYNC, "a", 0, 65536, ftruncate(fd, 65536));
    did(TRACE_FALLOCATE, TRACE_API_SYNC, "a", 65536, 4096, fallocate(fd, 0, 65536, 4096));
    did(TRACE_DISCARD, TRACE_API_SYNC, "a", 4096, 8192,
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 8192));
    did(TRACE_SYNC_RANGE, TRACE_API_SYNC, "a", 0, 4096, sync_file_range(fd, 0, 4096, 2));
    did(TRACE_READAHEAD, TRACE_API_SYNC, "a", 0, 16384, readahead(fd, 0, 16384));
    posix_fadvise(fd, 0, 100, POSIX_FADV_RANDOM); /* no I/O */
    did(TRACE_READAHEAD, TRACE_API_SYNC, "a", 16, 32,
        posix_fadvise(fd, 16, 32, POSIX_FADV_WILLNEED));
    did(TRACE_CLOSE, TRACE_API_SYNC, "a", 0, 0, close(fd));
    return 0;
}

static int work_vectored(void)
{
    struct iovec iov[1024];
    int fd = open_new("v", O_CREAT | O_RDWR);

    for (int i = 0; i < 1024; i++)
        iov[i] = (struct iovec){buffer, (size_t)(i % 7 + 1)};
    did(TRACE_WRITE, TRACE_API_VECTORED, "v", 0, 10, writev(fd, iov, 4));
    did_flags(TRACE_F_POSITION);
    did(TRACE_WRITE, TRACE_API_VECTORED, "v", 10, 4091, writev(fd, iov, 1024));
    did(TRACE_READ, TRACE_API_VECTORED, "v", 5, 6, preadv(fd, iov, 3, 5));
    did(TRACE_WRITE, TRACE_API_VECTORED, "v", 999, 28, pwritev(fd, iov, 7, 999));
    did(TRACE_WRITE, TRACE_API_VECTORED, "v", 77, 3, pwritev2(fd, iov, 2, 77, RWF_DSYNC));
    did_flags(TRACE_F_DSYNC);
    lseek(fd, 100, SEEK_SET);
    did(TRACE_READ, TRACE_API_VECTORED, "v", 100, 3, preadv2(fd, iov, 2, -1, 0));
    did_flags(TRACE_F_POSITION);
    did(TRACE_CLOSE, TRACE_API_SYNC, "v", 0, 0, close(fd));
    return 0;
}

static int work_append(void)
{
    int a = open_new("ap", O_CREAT | O_WRONLY | O_APPEND), b;

    did(TRACE_WRITE, TRACE_API_SYNC, "ap", 0, 1000, write(a, buffer, 1000));
    did_flags(TRACE_F_APPEND | TRACE_F_POSITION);
    b = open_new("ap", O_WRONLY | O_APPEND);
    did(TRACE_WRITE, TRACE_API_SYNC, "ap", 1000, 500, write(b, buffer, 500));
    did(TRACE_WRITE, TRACE_API_SYNC, "ap", 1500, 20, write(a, buffer, 20));
    /* Linux appends whatever the offset says. */
    did(TRACE_WRITE, TRACE_API_SYNC, "ap", 1520, 7, pwrite(a, buffer, 7, 3));
    return 0;
}

static int work_names(void)
{
    int dir, fd;

    did(TRACE_MKDIR, TRACE_API_SYNC, "d", 0, 0, mkdir("d", 0700));
    dir = open("d", O_RDONLY | O_DIRECTORY); /* a folder: only its fsync is recorded */
    did(TRACE_FSYNC, TRACE_API_SYNC, "d", 0, 0, fsync(dir));
    fd = openat(dir, "f", O_CREAT | O_WRONLY, 0600);
    did(TRACE_CREATE, TRACE_API_SYNC, "f", 0, 0, fd < 0 ? -1 : 0);
    did(TRACE_WRITE, TRACE_API_SYNC, "f", 0, 5, write(fd, "hello", 5));
    did(TRACE_RENAME, TRACE_API_SYNC, "f", 0, 0, renameat(dir, "f", AT_FDCWD, "./d/../g"));
    /* From here on the open file has the new name. */
    did(TRACE_WRITE, TRACE_API_SYNC, "g", 5, 3, write(fd, "abc", 3));
    did(TRACE_LINK, TRACE_API_SYNC, "g", 0, 0, link("g", "h"));
    did(TRACE_TRUNCATE, TRACE_API_SYNC, "g", 0, 2, truncate("g", 2));
    did(TRACE_UNLINK, TRACE_API_SYNC, "h", 0, 0, unlink("h"));
    did(TRACE_UNLINK, TRACE_API_SYNC, "nothing", 0, 0, unlink("nothing"));
    did(TRACE_OPEN, TRACE_API_SYNC, "nothing", 0, 0, open("nothing", O_RDONLY));
    did(TRACE_RMDIR, TRACE_API_SYNC, "d", 0, 0, unlinkat(AT_FDCWD, "d", AT_REMOVEDIR));
    return 0;
}

static int work_copy(void)
{
    int from = open_new("from", O_CREAT | O_RDWR), to = open_new("to", O_CREAT | O_RDWR),
        pipes[2];
    off_t at = 100, at_to = 4096;

    did(TRACE_WRITE, TRACE_API_SYNC, "from", 0, 8192, write(from, buffer, 8192));
    did(TRACE_COPY, TRACE_API_SYNC, "from", 100, 1000,
        copy_file_range(from, &at, to, &at_to, 1000, 0));
    at = 7;
    did(TRACE_COPY, TRACE_API_SYNC, "from", 7, 64, sendfile(to, from, &at, 64));
    /* To something that is not recorded: a read of the file. */
    if (pipe(pipes) != 0)
        return 1;
    at = 512;
    did(TRACE_READ, TRACE_API_SYNC, "from", 512, 128,
        splice(from, &at, pipes[1], NULL, 128, 0));
    did_flags(TRACE_F_DERIVED);
    at = 900;
    did(TRACE_WRITE, TRACE_API_SYNC, "to", 900, 128, splice(pipes[0], NULL, to, &at, 128, 0));
    did_flags(TRACE_F_DERIVED);
    return 0;
}

/* A descriptor that came by dup, over a socket, and through fork is the same file. */
static int work_shared(void)
{
    int fd = open_new("s", O_CREAT | O_RDWR), other = dup2(fd, 77), pair[2], got = -1, status;
    char space[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
    struct iovec iov = {&byte, 1};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = space,
                             .msg_controllen = sizeof(space)};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);

    did(TRACE_WRITE, TRACE_API_SYNC, "s", 0, 10, write(other, buffer, 10));
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return 1;
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(control), &fd, sizeof(fd));
    if (sendmsg(pair[0], &message, 0) != 1 || recvmsg(pair[1], &message, 0) != 1)
        return 2;
    memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(got));
    did(TRACE_WRITE, TRACE_API_SYNC, "s", 10, 6, write(got, buffer, 6));
    if (fork() == 0) {
        did(TRACE_WRITE, TRACE_API_SYNC, "s", 16, 4, write(fd, buffer, 4));
        _exit(0);
    }
    wait(&status);
    did(TRACE_READ, TRACE_API_SYNC, "s", 0, 20, pread(fd, buffer, 20, 0));
    return 0;
}

enum {
    THREADS = 32,
    EACH = 200
};

static int thread_fd;

static void *thread_work(void *argument)
{
    long number = (long)argument;

    for (long i = 0; i < EACH; i++)
        if (pwrite(thread_fd, buffer, 64, (number * EACH + i) * 64) != 64)
            abort();
    return NULL;
}

static int work_threads(void)
{
    pthread_t threads[THREADS];

    thread_fd = open("t", O_CREAT | O_RDWR, 0600);
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, thread_work, (void *)i) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static int work_forks(void)
{
    int fd = open("fk", O_CREAT | O_WRONLY | O_APPEND, 0600);

    /* A binary tree of 2^5 processes, each writes once at the end. */
    for (int level = 0; level < 5; level++)
        fork();
    if (write(fd, buffer, 16) != 16)
        _exit(1);
    while (wait(NULL) > 0)
        ;
    return 0;
}

static void run(int (*work)(void))
{
    struct session session = {0};

    record(&recorder_bpf, &session, work);
    assert_truth(&session);
    session_clear(&session);
}

static void test_sync(void **state)
{
    run(work_sync);
}

static void test_vectored(void **state)
{
    run(work_vectored);
}

static void test_append(void **state)
{
    run(work_append);
}

static void test_names(void **state)
{
    run(work_names);
}

static void test_copy(void **state)
{
    run(work_copy);
}

static void test_shared(void **state)
{
    run(work_shared);
}

static void test_threads(void **state)
{
    struct session session = {0};
    static bool seen[THREADS * EACH];
    uint64_t next[THREADS] = {0};
    size_t writes = 0;

    record(&recorder_bpf, &session, work_threads);
    session_only_folder(&session);
    session_sort(&session);
    for (size_t i = 0; i < session.op_count; i++) {
        const struct trace_op *op = &session.ops[i];
        uint64_t at = op->offset / 64;

        if (op->kind != TRACE_WRITE)
            continue;
        assert_true(at < THREADS * EACH && !seen[at]);
        assert_int_equal(op->result, 64);
        /* Each thread's own order is kept. */
        assert_int_equal(at % EACH, next[at / EACH]++);
        seen[at] = true;
        writes++;
    }
    assert_int_equal(writes, THREADS * EACH);
    assert_true(session.stream_count >= THREADS);
    session_clear(&session);
}

static void test_forks(void **state)
{
    struct session session = {0};
    bool seen[32] = {false}, stream[64] = {false};

    record(&recorder_bpf, &session, work_forks);
    session_only_folder(&session);
    for (size_t i = 0; i < session.op_count; i++) {
        const struct trace_op *op = &session.ops[i];

        if (op->kind != TRACE_WRITE)
            continue;
        assert_true(op->offset < 512 && op->offset % 16 == 0 && !seen[op->offset / 16]);
        seen[op->offset / 16] = true;
        assert_true(op->stream < 64 && !stream[op->stream]);
        stream[op->stream] = true;
    }
    for (int i = 0; i < 32; i++)
        assert_true(seen[i]);
    session_clear(&session);
}

/* Attached to a process that is running: descriptors open already, a call under way. */
static int work_attach(void)
{
    return 0;
}

static void attach_child(int go, int fd, int slow)
{
    char byte;

    for (;;) {
        if (read(go, &byte, 1) != 1 || byte == 'q')
            _exit(0);
        if (byte == 'w' && pwrite(fd, buffer, 10, 100) != 10)
            _exit(1);
        if (byte == 'r') /* waits for ever: the pipe stays empty */
            _exit(read(slow, &byte, 1) == 1);
    }
}

static void test_attach(void **state)
{
    struct session session = {0};
    int go[2], slow[2], fd = open("at", O_CREAT | O_RDWR, 0600);
    struct capture_scope *scope = &session.scope;
    void *recorder;
    pid_t pid;

    (void)work_attach;
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(slow), 0);
    assert_int_equal(pwrite(fd, buffer, 50, 0), 50);
    pid = fork();
    if (pid == 0) {
        close(go[1]);
        close(slow[1]);
        attach_child(go[0], fd, slow[0]);
    }
    scope->pids = &pid;
    scope->pid_count = 1;
    scope->all_fds = true;
    assert_int_equal(recorder_bpf.open(&session, &recorder), 0);
    assert_int_equal(write(go[1], "wwr", 3), 3);
    for (int i = 0; i < 10; i++)
        assert_true(recorder_bpf.poll(recorder, 20) >= 0);
    recorder_drain(&recorder_bpf, recorder);
    recorder_bpf.close(recorder);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);

    size_t writes = 0, running = 0;
    for (size_t i = 0; i < session.op_count; i++) {
        const struct trace_op *op = &session.ops[i];

        if (op->kind == TRACE_WRITE &&
            strcmp(leaf_of(session.files[op->file].path), "at") == 0) {
            /* The size before the first touch. */
            assert_int_equal(session.files[op->file].facts.size_bytes, 50);
            assert_int_equal(op->offset, 100);
            writes++;
        }
        if (op->flags & TRACE_F_INFLIGHT) {
            assert_int_equal(op->kind, TRACE_READ);
            assert_int_equal(op->result, TRACE_UNKNOWN_I64);
            assert_int_equal(op->completion, TRACE_COMPLETION_UNKNOWN);
            running++;
        }
    }
    assert_int_equal(writes, 2);
    assert_int_equal(running, 1);
    session_clear(&session);
}

static void test_no_such_pid(void **state)
{
    struct session session = {0};
    pid_t pid = 0x3ffffff;
    void *recorder;

    session.scope.pids = &pid;
    session.scope.pid_count = 1;
    assert_int_equal(recorder_bpf.open(&session, &recorder), -ESRCH);
    assert_non_null(strstr(session.diag.text, "there is none"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sync),    cmocka_unit_test(test_vectored),
        cmocka_unit_test(test_append),  cmocka_unit_test(test_names),
        cmocka_unit_test(test_copy),    cmocka_unit_test(test_shared),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_forks),
        cmocka_unit_test(test_attach),  cmocka_unit_test(test_no_such_pid),
    };

    recorder_need(&recorder_bpf);
    truths_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
