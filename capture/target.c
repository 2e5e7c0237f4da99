/* SPDX-License-Identifier: MIT */
#include "capture/target.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: the signal state of a program that a shell started, then wait, then exec. */
static void __attribute__((noreturn))
child_main(char **argv, target_prepare *prepare, void *context, int go_fd, int error_fd)
{
    sigset_t none;
    char go;
    int err = 0;
    ssize_t got;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (prepare)
        err = prepare(context);
    if (!err) {
        do {
            got = read(go_fd, &go, 1);
        } while (got < 0 && errno == EINTR);
        if (got != 1)
            _exit(1); /* the recorder gave up */
        execvp(argv[0], argv);
        err = -errno;
    }
    (void)!write(error_fd, &err, sizeof(err));
    _exit(127);
}

int target_fork(struct target *target, char **argv, target_prepare *prepare, void *context,
                struct diag *diag)
{
    int go[2] = {-1, -1}, error[2] = {-1, -1}, err = 0;
    pid_t pid;

    memset(target, 0, sizeof(*target));
    target->go_fd = target->error_fd = -1;
    if (pipe2(go, O_CLOEXEC) < 0 || pipe2(error, O_CLOEXEC) < 0) {
        err = diag_errno(diag, -errno, "cannot start %s", argv[0]);
        goto out;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    pid = fork();
    if (pid < 0) {
        err = diag_errno(diag, -errno, "cannot start %s", argv[0]);
        goto out;
    }
    if (pid == 0) {
        close(go[1]);
        close(error[0]);
        child_main(argv, prepare, context, go[0], error[1]);
    }
    target->pid = pid;
    target->go_fd = go[1];
    target->error_fd = error[0];
    go[1] = error[0] = -1;
out:
    for (int i = 0; i < 2; i++) {
        if (go[i] >= 0)
            close(go[i]);
        if (error[i] >= 0)
            close(error[i]);
    }
    return err;
}

int target_run(struct target *target, char **argv, struct diag *diag)
{
    int err = 0;
    ssize_t got;

    (void)!write(target->go_fd, "g", 1);
    close(target->go_fd);
    target->go_fd = -1;
    do {
        got = read(target->error_fd, &err, sizeof(err));
    } while (got < 0 && errno == EINTR);
    close(target->error_fd);
    target->error_fd = -1;
    if (got != sizeof(err))
        return 0; /* closed by a successful exec */
    waitpid(target->pid, NULL, 0);
    target->pid = 0;
    return diag_errno(diag, err, "cannot run %s", argv[0]);
}

void target_reap(struct target *target, struct trigger *trigger)
{
    int status;
    pid_t pid;

    if (target->pid == 0 || target->all_ended)
        return;
    for (;;) {
        pid = waitpid(-1, &status, WNOHANG);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0)
            break;
        if (!trigger_ended(trigger, pid, status) && pid == target->pid) {
            target->ended = true;
            target->status = status;
        }
    }
    if (pid < 0 && errno == ECHILD)
        target->ended = target->all_ended = true;
}

void target_cancel(struct target *target)
{
    if (target->go_fd < 0)
        return;
    close(target->go_fd); /* the child reads the end and exits */
    close(target->error_fd);
    target->go_fd = target->error_fd = -1;
    waitpid(target->pid, NULL, 0);
    target->pid = 0;
}

int target_exit_status(const struct target *target)
{
    if (WIFSIGNALED(target->status))
        return 128 + WTERMSIG(target->status);
    return WEXITSTATUS(target->status);
}
