/* SPDX-License-Identifier: MIT */
/* System calls that make, copy and close descriptors, change processes, or change names. */
#include "convert/strace_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_CREAT     0x40u
#define OPEN_EXCL      0x80u
#define OPEN_APPEND    0x400u
#define OPEN_DIRECT    0x4000u
#define OPEN_DIRECTORY 0x10000u
#define OPEN_CLOEXEC   0x80000u
#define OPEN_PATH      0x200000u
#define NO_ARG         (-1)

static const struct strace_slice no_dir;

static struct strace_slice arg_of(const struct strace_call *call, int index)
{
    return index >= 0 && (size_t)index < call->arg_count ? call->args[index] : no_dir;
}

static bool succeeded(const struct strace_call *call)
{
    return call->has_result && call->result >= 0;
}

/* ---- open and close ---- */

static int emit_open(struct strace_trace *trace, struct strace_call *call,
                     struct strace_open *open)
{
    struct trace_op op;
    int err;

    if (open->kind != TRACE_FILE_REGULAR && open->kind != TRACE_FILE_BLOCK)
        return 0;
    err = strace_call_op(trace, call,
                         (open->flags & (OPEN_CREAT | OPEN_EXCL)) == (OPEN_CREAT | OPEN_EXCL)
                             ? TRACE_CREATE
                             : TRACE_OPEN,
                         open, &op);
    if (err < 0)
        return err;
    op.arg = open->flags;
    if (op.kind == TRACE_CREATE && (err = strace_call_created(trace, open)) < 0)
        return err;
    return strace_call_emit(trace, &op);
}

static int take_open(struct strace_trace *trace, struct strace_call *call, int dir_arg,
                     int path_arg, struct strace_slice flags)
{
    char path[STRACE_PATH_MAX];
    struct strace_open *open;
    struct strace_fd fd;
    int length, err = 0;

    if (!succeeded(call)) {
        trace->counts.failed_names++;
        return 1;
    }
    open = strace_open_new();
    if (open == NULL)
        return -ENOMEM;
    open->flags = strace_is(call->name, "creat") ? 0x241u : strace_open_flags(flags);
    open->position = 0;
    if (open->flags & OPEN_DIRECTORY)
        open->kind = TRACE_FILE_DIRECTORY;
    if (strace_fd_parse(call->result_text, &fd) && fd.shown.length > 0) {
        err = strace_open_describe(open, &fd);
    } else if ((length = strace_path(call->process, arg_of(call, dir_arg),
                                     arg_of(call, path_arg), path, sizeof(path))) > 0) {
        struct strace_fd made = {.shown = {path, (size_t)length}};

        if (path[0] == '/') {
            err = strace_open_describe(open, &made);
        } else {
            if (open->kind == TRACE_FILE_UNKNOWN)
                open->kind = TRACE_FILE_REGULAR;
            err = strace_open_name(open, path, (size_t)length);
        }
    } else {
        trace->counts.cut_paths++;
    }
    if (open->flags & OPEN_PATH)
        open->kind = TRACE_FILE_OTHER;
    if (err < 0) {
        strace_open_unref(open);
        return err;
    }
    strace_open_ref(open);
    err = strace_fd_set(call->process, (int)(call->result < INT32_MAX ? call->result : -1),
                        open, (open->flags & OPEN_CLOEXEC) != 0);
    if (err == 0)
        err = emit_open(trace, call, open);
    strace_open_unref(open);
    return err < 0 ? err : 1;
}

static int take_close(struct strace_trace *trace, struct strace_call *call)
{
    struct strace_open *open = strace_call_open(trace, call, 0);
    struct strace_fd fd;
    struct trace_op op;
    int err = 0;

    if (open == NULL || !strace_fd_parse(call->args[0], &fd))
        return 0;
    /* A copy (dup, fork) keeps the file open: only the last one closes it. */
    if (open->refs == 1 && open->file != TRACE_NONE_U32 &&
        (open->kind == TRACE_FILE_REGULAR || open->kind == TRACE_FILE_BLOCK) &&
        (!call->has_result || call->result >= 0)) {
        err = strace_call_op(trace, call, TRACE_CLOSE, open, &op);
        if (err == 0)
            err = strace_call_emit(trace, &op);
    }
    if (!call->done_at_entry)
        strace_fd_close(call->process, fd.fd);
    return err < 0 ? err : 1;
}

static int take_close_range(struct strace_call *call)
{
    uint64_t first, last;

    if (!succeeded(call) || call->arg_count < 3 || !strace_unsigned(call->args[0], &first) ||
        !strace_unsigned(call->args[1], &last))
        return 0;
    for (uint64_t fd = first; fd <= last && fd < (uint64_t)call->process->fds->count; fd++) {
        if (strace_has_word(call->args[2], "CLOSE_RANGE_CLOEXEC"))
            strace_fd_cloexec(call->process, (int)fd, true);
        else
            strace_fd_close(call->process, (int)fd);
    }
    return 1;
}

static int copy_fd(struct strace_trace *trace, struct strace_call *call, bool cloexec)
{
    struct strace_open *open = strace_call_open(trace, call, 0);
    int err;

    if (open == NULL || !succeeded(call))
        return 0;
    err = strace_fd_set(call->process, (int)(call->result < INT32_MAX ? call->result : -1),
                        strace_open_ref(open), cloexec);
    return err < 0 ? err : 1;
}

static int take_fcntl(struct strace_trace *trace, struct strace_call *call)
{
    struct strace_slice what = arg_of(call, 1), flags = arg_of(call, 2);
    struct strace_open *open;
    struct strace_fd fd;

    if (strace_is(what, "F_DUPFD") || strace_is(what, "F_DUPFD_CLOEXEC"))
        return copy_fd(trace, call, strace_is(what, "F_DUPFD_CLOEXEC"));
    if (!succeeded(call) || (open = strace_call_open(trace, call, 0)) == NULL ||
        !strace_fd_parse(call->args[0], &fd))
        return 0;
    if (strace_is(what, "F_SETFD"))
        strace_fd_cloexec(call->process, fd.fd, strace_has_word(flags, "FD_CLOEXEC"));
    else if (strace_is(what, "F_SETFL"))
        open->flags = (open->flags & ~(OPEN_APPEND | OPEN_DIRECT)) |
                      (strace_open_flags(flags) & (OPEN_APPEND | OPEN_DIRECT));
    return 0;
}

/* Calls whose result is a descriptor of something that is no file. */
static int take_other_fd(struct strace_call *call)
{
    static const struct {
        const char *name;
        uint8_t kind;
    } makers[] = {
        {"socket", TRACE_FILE_SOCKET},         {"accept", TRACE_FILE_SOCKET},
        {"accept4", TRACE_FILE_SOCKET},        {"epoll_create", TRACE_FILE_OTHER},
        {"epoll_create1", TRACE_FILE_OTHER},   {"eventfd", TRACE_FILE_OTHER},
        {"eventfd2", TRACE_FILE_OTHER},        {"timerfd_create", TRACE_FILE_OTHER},
        {"signalfd", TRACE_FILE_OTHER},        {"signalfd4", TRACE_FILE_OTHER},
        {"inotify_init", TRACE_FILE_OTHER},    {"inotify_init1", TRACE_FILE_OTHER},
        {"memfd_create", TRACE_FILE_OTHER},    {"pidfd_open", TRACE_FILE_OTHER},
        {"userfaultfd", TRACE_FILE_OTHER},     {"io_uring_setup", TRACE_FILE_OTHER},
        {"perf_event_open", TRACE_FILE_OTHER}, {"bpf", TRACE_FILE_OTHER},
        {"fanotify_init", TRACE_FILE_OTHER},   {"pidfd_getfd", TRACE_FILE_UNKNOWN},
        {"mq_open", TRACE_FILE_OTHER},
    };

    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        struct strace_open *open;
        int err;

        if (!strace_is(call->name, makers[i].name))
            continue;
        if (!succeeded(call) || (open = strace_open_new()) == NULL)
            return 0;
        open->kind = makers[i].kind;
        err = strace_fd_set(call->process, (int)(call->result < INT32_MAX ? call->result : -1),
                            open,
                            strace_contains(arg_of(call, 0), "CLOEXEC") ||
                                strace_contains(arg_of(call, 1), "CLOEXEC") ||
                                strace_contains(arg_of(call, 2), "CLOEXEC"));
        return err < 0 ? err : 0;
    }
    return 0;
}

/* pipe([3, 4]), pipe2([3, 4], flags), socketpair(.., .., .., [3, 4]). */
static int take_fd_pair(struct strace_call *call, int arg, uint8_t kind)
{
    struct strace_slice ends[2];
    int err = 0;

    if (!succeeded(call) || strace_list_split(arg_of(call, arg), ends, 2) != 2)
        return 0;
    for (int i = 0; i < 2 && err == 0; i++) {
        struct strace_open *open = strace_open_new();
        struct strace_fd fd;

        if (open == NULL)
            return -ENOMEM;
        open->kind = kind;
        if (!strace_fd_parse(ends[i], &fd))
            fd.fd = -1;
        err = strace_fd_set(call->process, fd.fd, open,
                            strace_contains(arg_of(call, 1), "CLOEXEC"));
    }
    return err;
}

/* ---- processes ---- */

static int take_fork(struct strace_trace *trace, struct strace_call *call)
{
    struct strace_process *child;
    bool share = false, thread = false, known;

    if (!succeeded(call) || call->result <= 0 || call->result > INT32_MAX)
        return 0;
    for (size_t i = 0; i < call->arg_count; i++) {
        share |= strace_has_word(call->args[i], "CLONE_FILES");
        thread |= strace_has_word(call->args[i], "CLONE_THREAD");
    }
    known = strace_world_find(trace->world, (uint32_t)call->result) != NULL;
    child = strace_world_process(trace->world, (uint32_t)call->result);
    if (child == NULL)
        return -ENOMEM;
    /* A child whose lines came before its parent's return was made from the call's start. */
    if (known && child->live)
        return 0;
    return strace_process_fork(call->process, child, share, thread);
}

static int take_exec(struct strace_trace *trace, struct strace_call *call)
{
    char path[STRACE_PATH_MAX];
    int length, at, err;

    (void)trace;
    if (!succeeded(call))
        return 0;
    err = strace_process_exec(call->process);
    length = strace_path(call->process, no_dir,
                         arg_of(call, strace_is(call->name, "execveat") ? 1 : 0), path,
                         sizeof(path));
    if (err < 0 || length <= 0)
        return err;
    for (at = length; at > 0 && path[at - 1] != '/'; at--)
        ;
    memset(call->process->comm, 0, sizeof(call->process->comm));
    memcpy(call->process->comm, path + at,
           (size_t)(length - at) < sizeof(call->process->comm) - 1
               ? (size_t)(length - at)
               : sizeof(call->process->comm) - 1);
    return 0;
}

static int take_chdir(struct strace_trace *trace, struct strace_call *call)
{
    char path[STRACE_PATH_MAX + 1];
    const struct strace_open *open;
    int length = -1;
    char *copy;

    if (!succeeded(call))
        return 0;
    if (strace_is(call->name, "fchdir")) {
        open = strace_call_open(trace, call, 0);
        if (open != NULL && open->path != NULL && open->path_length < STRACE_PATH_MAX) {
            length = (int)open->path_length;
            memcpy(path, open->path, open->path_length);
        }
    } else {
        length = strace_path(call->process, no_dir, arg_of(call, 0), path, STRACE_PATH_MAX);
    }
    if (length <= 0 || path[0] != '/')
        return 0;
    path[length] = '\0';
    copy = strdup(path);
    if (copy == NULL)
        return -ENOMEM;
    free(call->process->cwd);
    call->process->cwd = copy;
    return 0;
}

/* ---- names ---- */

struct name_call {
    const char *name;
    unsigned int kind;
    int dir, path, dir2, path2; /* argument numbers */
    int length, mode;
};

static const struct name_call name_calls[] = {
    {"unlink", TRACE_UNLINK, NO_ARG, 0, NO_ARG, NO_ARG, NO_ARG, NO_ARG},
    {"unlinkat", TRACE_UNLINK, 0, 1, NO_ARG, NO_ARG, NO_ARG, NO_ARG},
    {"rmdir", TRACE_RMDIR, NO_ARG, 0, NO_ARG, NO_ARG, NO_ARG, NO_ARG},
    {"rename", TRACE_RENAME, NO_ARG, 0, NO_ARG, 1, NO_ARG, NO_ARG},
    {"renameat", TRACE_RENAME, 0, 1, 2, 3, NO_ARG, NO_ARG},
    {"renameat2", TRACE_RENAME, 0, 1, 2, 3, NO_ARG, NO_ARG},
    {"link", TRACE_LINK, NO_ARG, 0, NO_ARG, 1, NO_ARG, NO_ARG},
    {"linkat", TRACE_LINK, 0, 1, 2, 3, NO_ARG, NO_ARG},
    {"symlink", TRACE_SYMLINK, NO_ARG, 0, NO_ARG, 1, NO_ARG, NO_ARG},
    {"symlinkat", TRACE_SYMLINK, NO_ARG, 0, 1, 2, NO_ARG, NO_ARG},
    {"mkdir", TRACE_MKDIR, NO_ARG, 0, NO_ARG, NO_ARG, NO_ARG, 1},
    {"mkdirat", TRACE_MKDIR, 0, 1, NO_ARG, NO_ARG, NO_ARG, 2},
    {"truncate", TRACE_TRUNCATE, NO_ARG, 0, NO_ARG, NO_ARG, 1, NO_ARG},
    {"truncate64", TRACE_TRUNCATE, NO_ARG, 0, NO_ARG, NO_ARG, 1, NO_ARG},
};

static int name_file(struct strace_trace *trace, struct strace_call *call, int dir,
                     int path_arg, bool raw, uint32_t *ret_file)
{
    char path[STRACE_PATH_MAX];
    bool first;
    int length = raw ? strace_unquote(arg_of(call, path_arg), path, sizeof(path))
                     : strace_path(call->process, arg_of(call, dir), arg_of(call, path_arg),
                                   path, sizeof(path));

    if (length <= 0 || memchr(path, '\0', (size_t)length) != NULL)
        return -1;
    return strace_call_name(trace, path, (size_t)length, ret_file, &first);
}

/* Descriptors open under the old name show the new one from now on. */
static int rename_open(struct strace_call *call, const struct name_call *name)
{
    char from[STRACE_PATH_MAX], to[STRACE_PATH_MAX];
    int from_length = strace_path(call->process, arg_of(call, name->dir),
                                  arg_of(call, name->path), from, sizeof(from));
    int to_length = strace_path(call->process, arg_of(call, name->dir2),
                                arg_of(call, name->path2), to, sizeof(to));
    int err = 0;

    if (from_length <= 0 || to_length <= 0)
        return 0;
    for (int fd = 0; fd < call->process->fds->count && err == 0; fd++) {
        struct strace_open *open = call->process->fds->slots[fd].open;

        if (open != NULL && open->path_length == (size_t)from_length && open->path != NULL &&
            memcmp(open->path, from, (size_t)from_length) == 0)
            err = strace_open_name(open, to, (size_t)to_length);
    }
    return err;
}

static int take_name(struct strace_trace *trace, struct strace_call *call,
                     const struct name_call *name)
{
    struct trace_op op;
    uint64_t value;
    int err, ret;

    if (!succeeded(call)) {
        trace->counts.failed_names++;
        return 1;
    }
    err = strace_call_op(trace, call, name->kind, NULL, &op);
    if (err < 0)
        return err;
    if (name->kind == TRACE_UNLINK && strace_has_word(arg_of(call, 2), "AT_REMOVEDIR"))
        op.kind = TRACE_RMDIR;
    ret = name_file(trace, call, name->dir, name->path, name->kind == TRACE_SYMLINK, &op.file);
    if (ret == 0 && name->path2 != NO_ARG)
        ret = name_file(trace, call, name->dir2, name->path2, false, &op.file2);
    if (ret == -1) {
        trace->counts.cut_paths++;
        return 1;
    }
    if (ret < 0)
        return ret;
    if (name->length != NO_ARG && strace_unsigned(arg_of(call, name->length), &value))
        op.length = value;
    if (name->mode != NO_ARG && strace_unsigned(arg_of(call, name->mode), &value))
        op.arg = (uint32_t)value;
    err = name->kind == TRACE_RENAME ? rename_open(call, name) : 0;
    if (err == 0)
        err = strace_call_emit(trace, &op);
    return err < 0 ? err : 1;
}

/* ---- stat: what a file is and how large it was ---- */

static int take_stat(struct strace_trace *trace, struct strace_call *call)
{
    bool statx = strace_is(call->name, "statx"), at = strace_is(call->name, "newfstatat");
    struct strace_slice mode, size, list = arg_of(call, statx ? 4 : at ? 2 : 1);
    struct strace_open *open;
    uint64_t bytes;
    uint8_t was;

    if (!succeeded(call) || ((statx || at) && !strace_is(arg_of(call, 1), "\"\"")) ||
        !strace_field(list, statx ? "stx_mode" : "st_mode", &mode) ||
        (open = strace_call_open(trace, call, 0)) == NULL)
        return 0;
    was = open->kind;
    open->kind = strace_has_word(mode, "S_IFREG")    ? TRACE_FILE_REGULAR
                 : strace_has_word(mode, "S_IFBLK")  ? TRACE_FILE_BLOCK
                 : strace_has_word(mode, "S_IFDIR")  ? TRACE_FILE_DIRECTORY
                 : strace_has_word(mode, "S_IFCHR")  ? TRACE_FILE_CHAR
                 : strace_has_word(mode, "S_IFIFO")  ? TRACE_FILE_PIPE
                 : strace_has_word(mode, "S_IFSOCK") ? TRACE_FILE_SOCKET
                                                     : open->kind;
    if (open->kind == TRACE_FILE_REGULAR && open->size_bytes == TRACE_UNKNOWN_U64 &&
        strace_field(list, statx ? "stx_size" : "st_size", &size) &&
        strace_unsigned(size, &bytes))
        open->size_bytes = bytes;
    else if (open->kind == was)
        return 0;
    return strace_call_facts(trace, open);
}

/* What is listed is a folder, however it was opened. */
static int take_listing(struct strace_trace *trace, struct strace_call *call)
{
    struct strace_open *open = succeeded(call) ? strace_call_open(trace, call, 0) : NULL;

    if (open == NULL || open->kind == TRACE_FILE_DIRECTORY)
        return 0;
    open->kind = TRACE_FILE_DIRECTORY;
    return strace_call_facts(trace, open);
}

static int take_prctl(struct strace_call *call)
{
    char name[64];
    int length;

    if (!succeeded(call) || !strace_is(arg_of(call, 0), "PR_SET_NAME"))
        return 0;
    length = strace_unquote(arg_of(call, 1), name, sizeof(name));
    if (length <= 0)
        return 0;
    memset(call->process->comm, 0, sizeof(call->process->comm));
    memcpy(call->process->comm, name, (size_t)(length < 15 ? length : 15));
    call->process->stream = TRACE_NONE_U32;
    return 0;
}

static int take_getcwd(struct strace_call *call)
{
    char path[STRACE_PATH_MAX + 1];
    int length;
    char *copy;

    if (call->process->cwd != NULL || !succeeded(call))
        return 0;
    length = strace_unquote(arg_of(call, 0), path, STRACE_PATH_MAX);
    if (length <= 0 || path[0] != '/')
        return 0;
    path[length] = '\0';
    copy = strdup(path);
    if (copy == NULL)
        return -ENOMEM;
    call->process->cwd = copy;
    return 0;
}

static int take_process(struct strace_trace *trace, struct strace_call *call)
{
    struct strace_slice name = call->name;

    if (strace_is(name, "fork") || strace_is(name, "vfork") || strace_is(name, "clone") ||
        strace_is(name, "clone3"))
        return take_fork(trace, call);
    if (strace_is(name, "execve") || strace_is(name, "execveat"))
        return take_exec(trace, call);
    if (strace_is(name, "unshare") && succeeded(call) &&
        strace_has_word(arg_of(call, 0), "CLONE_FILES"))
        return strace_process_unshare(call->process);
    if (strace_is(name, "chdir") || strace_is(name, "fchdir"))
        return take_chdir(trace, call);
    if (strace_is(name, "getcwd"))
        return take_getcwd(call);
    if (strace_is(name, "prctl"))
        return take_prctl(call);
    return take_other_fd(call);
}

int strace_names_take(struct strace_trace *trace, struct strace_call *call)
{
    struct strace_slice name = call->name, flags;

    if (strace_is(name, "openat"))
        return take_open(trace, call, 0, 1, arg_of(call, 2));
    if (strace_is(name, "open") || strace_is(name, "creat"))
        return take_open(trace, call, NO_ARG, 0, arg_of(call, 1));
    if (strace_is(name, "openat2"))
        return take_open(trace, call, 0, 1,
                         strace_field(arg_of(call, 2), "flags", &flags) ? flags : no_dir);
    if (strace_is(name, "close"))
        return take_close(trace, call);
    if (strace_is(name, "close_range"))
        return take_close_range(call);
    if (strace_is(name, "dup") || strace_is(name, "dup2") || strace_is(name, "dup3"))
        return copy_fd(trace, call, strace_has_word(arg_of(call, 2), "O_CLOEXEC"));
    if (strace_is(name, "fcntl") || strace_is(name, "fcntl64"))
        return take_fcntl(trace, call);
    if (strace_is(name, "pipe") || strace_is(name, "pipe2"))
        return take_fd_pair(call, 0, TRACE_FILE_PIPE);
    if (strace_is(name, "socketpair"))
        return take_fd_pair(call, 3, TRACE_FILE_SOCKET);
    if (strace_is(name, "fstat") || strace_is(name, "fstat64") ||
        strace_is(name, "newfstatat") || strace_is(name, "statx"))
        return take_stat(trace, call);
    if (strace_is(name, "getdents64") || strace_is(name, "getdents"))
        return take_listing(trace, call);
    for (size_t i = 0; i < sizeof(name_calls) / sizeof(name_calls[0]); i++)
        if (strace_is(name, name_calls[i].name))
            return take_name(trace, call, &name_calls[i]);
    return take_process(trace, call);
}
