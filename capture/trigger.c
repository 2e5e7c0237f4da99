/* SPDX-License-Identifier: MIT */
#include "capture/trigger.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RETRY_NS UINT64_C(1000000000)

void trigger_init(struct trigger *trigger, const char *command, uint64_t rest_ns)
{
    memset(trigger, 0, sizeof(*trigger));
    trigger->command = command;
    trigger->rest_ns = rest_ns;
}

void trigger_run(struct trigger *trigger, uint64_t now_ns)
{
    pid_t pid;

    if (!trigger->command || trigger->pid)
        return;
    if (trigger->rest_due_ns) { /* it has just ended: its rest begins */
        trigger->not_before_ns = now_ns + trigger->rest_due_ns;
        trigger->rest_due_ns = 0;
    }
    if (now_ns < trigger->not_before_ns)
        return;
    pid = fork();
    if (pid < 0) {
        trigger->not_before_ns = now_ns + RETRY_NS;
        return;
    }
    if (pid == 0) {
        setpgid(0, 0);
        signal(SIGPIPE, SIG_DFL);
        execl("/bin/sh", "sh", "-c", trigger->command, (char *)NULL);
        _exit(127);
    }
    setpgid(pid, pid);
    trigger->pid = pid;
}

bool trigger_ended(struct trigger *trigger, pid_t pid, int status)
{
    if (!trigger->pid || pid != trigger->pid)
        return false;
    trigger->pid = 0;
    trigger->fired = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    trigger->rest_due_ns = trigger->fired ? trigger->rest_ns : RETRY_NS;
    return true;
}

void trigger_reap(struct trigger *trigger)
{
    int status;

    if (trigger->pid && waitpid(trigger->pid, &status, WNOHANG) == trigger->pid)
        trigger_ended(trigger, trigger->pid, status);
}

bool trigger_fired(struct trigger *trigger)
{
    bool fired = trigger->fired;

    trigger->fired = false;
    return fired;
}

void trigger_stop(struct trigger *trigger)
{
    trigger->command = NULL;
    if (!trigger->pid)
        return;
    kill(-trigger->pid, SIGKILL);
    waitpid(trigger->pid, NULL, 0);
    trigger->pid = 0;
}
