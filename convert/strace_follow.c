/* SPDX-License-Identifier: MIT */
#include "convert/strace_follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- which process ---- */

static struct strace_process *new_process(struct strace_follow *follow, uint32_t pid)
{
    struct strace_process *process = strace_world_process(follow->trace->world, pid);
    struct strace_slice text;

    if (process == NULL || follow->forking == NULL || follow->forking->pending == NULL)
        return process;
    /* Its parent is inside fork or clone: the child begins with what the parent has. */
    text = (struct strace_slice){follow->forking->pending, follow->forking->pending_length};
    if (strace_process_fork(follow->forking, process, strace_has_word(text, "CLONE_FILES"),
                            strace_has_word(text, "CLONE_THREAD")) < 0)
        return NULL;
    follow->forking = NULL;
    return process;
}

struct sole {
    struct strace_process *process;
    unsigned int count;
};

static void count_live(void *context, struct strace_process *process)
{
    struct sole *sole = context;

    if (process->live) {
        sole->process = process;
        sole->count++;
    }
}

static bool is_fork(struct strace_slice name)
{
    return strace_is(name, "clone") || strace_is(name, "clone3") || strace_is(name, "fork") ||
           strace_is(name, "vfork");
}

static struct strace_process *process_of(struct strace_follow *follow,
                                         const struct strace_line *line)
{
    struct strace_process *process;
    struct sole sole = {0};

    if (!line->has_pid && follow->file_pid == 0) {
        /* With -f on a terminal the pid is left out while there is one process. */
        if (follow->main == NULL) {
            follow->main = strace_world_process(follow->trace->world, 0);
        } else if (!follow->main->live) {
            strace_world_each(follow->trace->world, count_live, &sole);
            return sole.count == 1 ? sole.process : follow->main;
        }
        return follow->main;
    }
    process =
        strace_world_find(follow->trace->world, line->has_pid ? line->pid : follow->file_pid);
    if (process == NULL && line->bracketed && follow->main != NULL && !follow->main_named &&
        (follow->forking != follow->main ||
         (line->shape == STRACE_RESUMED && is_fork(line->name)))) {
        /* The first one named that nobody made is the one that had no name. */
        follow->main->pid = follow->main->group = line->pid;
        follow->main->stream = TRACE_NONE_U32;
        follow->main_named = true;
        return follow->main;
    }
    if (process == NULL && follow->main_named && line->has_pid &&
        follow->main->pid == line->pid)
        return follow->main;
    if (process == NULL)
        process = new_process(follow, line->has_pid ? line->pid : follow->file_pid);
    if (process != NULL)
        process->live = true;
    return process;
}

static void take_comm(struct strace_process *process, struct strace_slice comm)
{
    size_t length =
        comm.length < sizeof(process->comm) - 1 ? comm.length : sizeof(process->comm) - 1;

    if (comm.length == 0 || (strnlen(process->comm, sizeof(process->comm)) == length &&
                             memcmp(process->comm, comm.at, length) == 0))
        return;
    memset(process->comm, 0, sizeof(process->comm));
    memcpy(process->comm, comm.at, length);
    process->stream = TRACE_NONE_U32;
}

/* ---- calls ---- */

static void parse_result(struct strace_call *call)
{
    struct strace_slice text = call->result_text;

    call->has_result = strace_number(text, &call->result);
    if (call->has_result && call->result == -1 && text.length > 2)
        call->result = strace_errno((struct strace_slice){text.at + 2, text.length - 2});
}

static int do_call(struct strace_follow *follow, struct strace_process *process,
                   const struct strace_line *line, struct strace_slice args, int64_t issue_ns,
                   struct strace_call *call)
{
    call->process = process;
    call->name = line->name;
    call->arg_count = strace_args_split(args, call->args, STRACE_ARGS_MAX);
    if (call->arg_count > STRACE_ARGS_MAX)
        call->arg_count = STRACE_ARGS_MAX;
    call->result_text = line->result;
    call->issue_ns = issue_ns;
    parse_result(call);
    if (line->duration_ns != TRACE_UNKNOWN_U64) {
        follow->any_duration = true;
        call->latency_ns = line->duration_ns;
        call->completion = TRACE_COMPLETION_EXACT;
    }
    return strace_call_take(follow->trace, call);
}

static int begin_fork(struct strace_follow *follow, struct strace_process *parent,
                      const struct strace_line *line)
{
    struct strace_process *child =
        follow->attached_pid ? strace_world_find(follow->trace->world, follow->attached_pid)
                             : NULL;

    follow->attached_pid = 0;
    follow->forking = child == NULL || child->live ? parent : NULL;
    if (follow->forking != NULL)
        return 0;
    return strace_process_fork(parent, child, strace_has_word(line->args, "CLONE_FILES"),
                               strace_has_word(line->args, "CLONE_THREAD"));
}

static int begin_call(struct strace_follow *follow, struct strace_process *process,
                      const struct strace_line *line)
{
    struct strace_fd fd;
    int err;

    if (process->pending != NULL)
        follow->trace->counts.no_result++;
    strace_process_pending_clear(process);
    process->pending = malloc(line->args.length + 1);
    if (process->pending == NULL)
        return -ENOMEM;
    memcpy(process->pending, line->args.at, line->args.length);
    process->pending[line->args.length] = '\0';
    process->pending_length = line->args.length;
    process->pending_ns = follow->now_ns;
    process->pending_time = line->clock != STRACE_NO_TIME;
    if (is_fork(line->name) && (err = begin_fork(follow, process, line)) < 0)
        return err;
    if (!strace_fd_parse(line->args, &fd) || fd.fd < 0)
        return 0;
    process->pending_open = strace_open_ref(strace_fd_get(process, fd.fd));
    /* The number is free as soon as close is entered: another thread may get it before this
     * returns. */
    if (strace_is(line->name, "close")) {
        strace_fd_close(process, fd.fd);
        process->pending_done = true;
    }
    return 0;
}

/* A call that was begun in another line: the arguments of both are put together. */
static int end_call(struct strace_follow *follow, struct strace_process *process,
                    const struct strace_line *line)
{
    struct strace_call call = {.latency_ns = TRACE_UNKNOWN_U64};
    struct strace_slice args = line->args;
    int64_t issue_ns = follow->now_ns, end_ns = issue_ns;
    char *joined = NULL;
    int err;

    if (process->pending == NULL) {
        follow->resumed_alone++;
        if (!is_fork(line->name))
            return 0;
    } else {
        args.length = process->pending_length + line->args.length;
        joined = malloc(args.length + 1);
        if (joined == NULL)
            return -ENOMEM;
        memcpy(joined, process->pending, process->pending_length);
        memcpy(joined + process->pending_length, line->args.at, line->args.length);
        args.at = joined;
        issue_ns = process->pending_ns;
        if (process->pending_time && line->clock != STRACE_NO_TIME && end_ns >= issue_ns) {
            call.latency_ns = (uint64_t)(end_ns - issue_ns);
            call.completion = TRACE_COMPLETION_UPPER;
        }
        call.open_at_entry = process->pending_open;
        call.done_at_entry = process->pending_done;
    }
    if (follow->forking == process)
        follow->forking = NULL;
    err = do_call(follow, process, line, args, issue_ns, &call);
    free(joined);
    strace_process_pending_clear(process);
    return err;
}

/* A thread called exec: it goes on under the number of its process. */
static int supersede(struct strace_follow *follow, struct strace_process *process, uint32_t by)
{
    struct strace_process *thread = strace_world_find(follow->trace->world, by);

    if (thread == NULL || thread == process)
        return 0;
    strace_process_pending_clear(process);
    strace_process_move(thread, process);
    process->pending = thread->pending;
    process->pending_length = thread->pending_length;
    process->pending_ns = thread->pending_ns;
    process->pending_time = thread->pending_time;
    thread->pending = NULL;
    strace_process_exit(thread);
    return 0;
}

int strace_follow_attached(struct strace_follow *follow, uint32_t pid)
{
    bool known = strace_world_find(follow->trace->world, pid) != NULL,
         forked = follow->forking != NULL;
    struct strace_process *process;

    if (known)
        return 0;
    process = new_process(follow, pid);
    if (process == NULL)
        return -ENOMEM;
    /* Not made from a parent yet: the parent's return will do it. */
    process->live = forked;
    follow->attached_pid = forked ? 0 : pid;
    return 0;
}

int strace_follow_take(struct strace_follow *follow, const struct strace_line *line)
{
    struct strace_call call = {.latency_ns = TRACE_UNKNOWN_U64};
    struct strace_process *process;

    if (line->shape == STRACE_BLANK || line->shape == STRACE_SIGNAL) {
        follow->signals += line->shape == STRACE_SIGNAL;
        return 0;
    }
    if (line->shape == STRACE_ATTACHED)
        return strace_follow_attached(follow, line->other_pid);
    process = process_of(follow, line);
    if (process == NULL)
        return diag_errno(import_diag(follow->trace->import), -ENOMEM,
                          "processes of the strace");
    take_comm(process, line->comm);
    switch (line->shape) {
    case STRACE_CALL: return do_call(follow, process, line, line->args, follow->now_ns, &call);
    case STRACE_UNFINISHED: return begin_call(follow, process, line);
    case STRACE_RESUMED: return end_call(follow, process, line);
    case STRACE_SUPERSEDED: return supersede(follow, process, line->other_pid);
    case STRACE_EXIT:
        if (process->pending != NULL)
            follow->trace->counts.no_result++;
        if (follow->forking == process)
            follow->forking = NULL;
        strace_process_exit(process);
        return 0;
    case STRACE_FOREIGN:
    case STRACE_BLANK:
    case STRACE_PARTIAL:
    case STRACE_SIGNAL:
    case STRACE_ATTACHED: break;
    }
    return 0;
}
