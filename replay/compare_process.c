/* SPDX-License-Identifier: MIT */
#include "replay/compare_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engines/clock.h"
#include "traces/diag.h"

#define LINGER_NS 10000000000u
#define POLL_NS   20000000

/* In the child. Never returns; 127 as a shell's "could not be run". */
static void child_become(char *const *argv, const int fd[3], pid_t parent)
{
    sigset_t none;
    int i;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (i = 0; i < 3; i++)
        if (dup2(fd[i], i) < 0)
            _exit(127);
    execv(argv[0], argv);
    dprintf(2, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static uint64_t time_ns(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

/*
 * Waits for the child; forwards the stop flag. The signals that raise it are blocked but while
 * waiting (outside: the mask of then), so that none slips in between the test and the wait.
 */
static int child_wait(pid_t child, const volatile sig_atomic_t *stop, const sigset_t *outside,
                      struct rusage *ret_usage, int *ret_status, bool *ret_stopped)
{
    const struct timespec nap = {0, POLL_NS};
    struct pollfd watch = {.fd = pidfd_open(child, 0), .events = POLLIN};
    uint64_t asked_ns = 0;
    pid_t got;

    *ret_stopped = false;
    if (watch.fd < 0)
        return -errno;
    while ((got = wait4(child, ret_status, WNOHANG, ret_usage)) == 0) {
        if (*stop && !*ret_stopped) {
            *ret_stopped = true;
            asked_ns = clock_now_ns(&clock_real);
            kill(-child, SIGTERM);
        }
        if (*ret_stopped && clock_now_ns(&clock_real) - asked_ns > LINGER_NS)
            kill(-child, SIGKILL);
        if (ppoll(&watch, 1, *ret_stopped ? &nap : NULL, outside) < 0 && errno != EINTR)
            break;
    }
    close(watch.fd);
    if (*ret_stopped)
        kill(-child, SIGKILL); /* what its leader left behind */
    return got == child ? 0 : -errno;
}

static void block_signals(sigset_t *ret_outside)
{
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, ret_outside);
}

static int open_streams(const char *out_path, const char *err_path, int fd[3],
                        struct diag *diag)
{
    fd[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    fd[1] = open(out_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fd[2] = open(err_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd[1] < 0)
        return diag_errno(diag, -errno, "%s", out_path);
    if (fd[0] < 0 || fd[2] < 0)
        return diag_errno(diag, -errno, "%s", fd[0] < 0 ? "/dev/null" : err_path);
    return 0;
}

int process_run(char *const *argv, const char *out_path, const char *err_path,
                const volatile sig_atomic_t *stop, struct process_cost *ret_cost,
                struct diag *diag)
{
    struct process_cost cost = {0};
    struct rusage usage;
    int fd[3] = {-1, -1, -1}, err, status, i;
    pid_t child, parent = getpid();
    sigset_t outside;
    uint64_t start_ns;

    block_signals(&outside);
    err = open_streams(out_path, err_path, fd, diag);
    if (err < 0)
        goto out;
    start_ns = clock_now_ns(&clock_real);
    child = fork();
    if (child == 0)
        child_become(argv, fd, parent);
    if (child < 0) {
        err = diag_errno(diag, -errno, "%s: could not be started", argv[0]);
        goto out;
    }
    setpgid(child, child); /* both sides: whoever comes first */
    err = child_wait(child, stop, &outside, &usage, &status, &cost.stopped);
    cost.wall_ns = clock_now_ns(&clock_real) - start_ns;
    if (err < 0) {
        err = diag_errno(diag, err, "%s: could not be waited for", argv[0]);
        goto out;
    }
    cost.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    cost.user_ns = time_ns(&usage.ru_utime);
    cost.sys_ns = time_ns(&usage.ru_stime);
    cost.rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
    *ret_cost = cost;
out:
    sigprocmask(SIG_SETMASK, &outside, NULL);
    for (i = 0; i < 3; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    return err;
}

int process_beside(const char *name, char **ret_path, struct diag *diag)
{
    char self[PATH_MAX], *slash, *path;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

    if (length < 0)
        return diag_errno(diag, -errno, "/proc/self/exe");
    self[length] = '\0';
    slash = strrchr(self, '/');
    if (!slash)
        return diag_set(diag, -ENOENT, "%s: no folder in this program's name", self);
    *slash = '\0';
    if (asprintf(&path, "%s/%s", self, name) < 0)
        return diag_set(diag, -ENOMEM, "not enough memory");
    if (access(path, X_OK) < 0) {
        int err = diag_errno(diag, -errno, "%s", path);

        free(path);
        return err;
    }
    *ret_path = path;
    return 0;
}

void process_error_line(const char *path, int status, char *buf, unsigned int size)
{
    FILE *file = fopen(path, "re");
    char line[1024], *at;

    buf[0] = '\0';
    if (!file)
        return;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        /* What the recorder says at its end is not why its command failed. */
        if (!line[0] || strncmp(line, "iotape capture: ", 16) == 0)
            continue;
        for (at = line; *at; at++)
            if ((unsigned char)*at < 0x20 || *at == 0x7f)
                *at = '?';
        snprintf(buf, size, "%s", line);
        if (status == 2)
            break;
    }
    fclose(file);
}
