/* SPDX-License-Identifier: MIT */
/* What a strace tells of the files behind descriptors, and ops on them on their way to the
 * tape. */
#include "convert/strace_calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_DSYNC  0x1000u
#define OPEN_DIRECT 0x4000u
#define OPEN_SYNC   0x101000u

static uint8_t kind_of_path(const char *path, size_t length)
{
    static const char *const chars[] = {
        "null", "zero", "full", "random", "urandom", "tty",    "pts/",   "ptmx", "console",
        "kmsg", "fuse", "net/", "stdin",  "stdout",  "stderr", "input/", "snd/", "dri/"};

    if (length < 5 || memcmp(path, "/dev/", 5) != 0)
        return TRACE_FILE_REGULAR;
    if (length > 9 && (memcmp(path, "/dev/shm/", 9) == 0 || memcmp(path, "/dev/huge", 9) == 0))
        return TRACE_FILE_REGULAR;
    for (size_t i = 0; i < sizeof(chars) / sizeof(chars[0]); i++) {
        size_t size = strlen(chars[i]);

        if (length >= 5 + size && memcmp(path + 5, chars[i], size) == 0)
            return TRACE_FILE_CHAR;
    }
    return TRACE_FILE_BLOCK;
}

static uint8_t kind_of_shown(struct strace_slice shown)
{
    static const char *const sockets[] = {"socket",  "TCP", "UDP", "UNIX",
                                          "NETLINK", "RAW", "PING"};

    /* A path that somebody has made relative. */
    if (!strace_contains(shown, ":[") && !strace_contains(shown, "anon_inode:"))
        return TRACE_FILE_REGULAR;
    if (shown.length >= 4 && memcmp(shown.at, "pipe", 4) == 0)
        return TRACE_FILE_PIPE;
    for (size_t i = 0; i < sizeof(sockets) / sizeof(sockets[0]); i++)
        if (shown.length >= strlen(sockets[i]) &&
            memcmp(shown.at, sockets[i], strlen(sockets[i])) == 0)
            return TRACE_FILE_SOCKET;
    return TRACE_FILE_OTHER;
}

int strace_open_describe(struct strace_open *open, const struct strace_fd *fd)
{
    char path[STRACE_PATH_MAX];
    int length = strace_unescape(fd->shown, path, sizeof(path));

    if (length <= 0 || memchr(path, '\0', (size_t)length) != NULL)
        return 0;
    if (path[0] != '/')
        open->kind = kind_of_shown(fd->shown);
    else if (fd->device.length > 0)
        open->kind = fd->device.at[0] == 'b' ? TRACE_FILE_BLOCK : TRACE_FILE_CHAR;
    else if (open->kind != TRACE_FILE_DIRECTORY)
        open->kind = kind_of_path(path, (size_t)length);
    return strace_open_name(open, path, (size_t)length);
}

static bool shows_other(const struct strace_open *open, const struct strace_fd *fd)
{
    char path[STRACE_PATH_MAX];
    int length;

    if (fd->shown.length == 0 || open->path == NULL)
        return false;
    length = strace_unescape(fd->shown, path, sizeof(path));
    return length > 0 && ((size_t)length != open->path_length ||
                          memcmp(path, open->path, (size_t)length) != 0);
}

struct strace_open *strace_call_open(struct strace_trace *trace, struct strace_call *call,
                                     size_t arg)
{
    struct strace_open *open;
    struct strace_fd fd;

    (void)trace;
    if (arg >= call->arg_count || !strace_fd_parse(call->args[arg], &fd) || fd.fd < 0)
        return NULL;
    open = arg == 0 && call->open_at_entry ? call->open_at_entry
                                           : strace_fd_get(call->process, fd.fd);
    if (open != NULL && !shows_other(open, &fd)) {
        if (fd.shown.length > 0 && open->path == NULL && strace_open_describe(open, &fd) < 0)
            return NULL;
        return open;
    }
    if (fd.fd >= STRACE_FD_MAX)
        return NULL;
    open = strace_open_new();
    if (open == NULL)
        return NULL;
    if (strace_open_describe(open, &fd) < 0) {
        strace_open_unref(open);
        return NULL;
    }
    return strace_fd_set(call->process, fd.fd, open, false) < 0 ? NULL : open;
}

bool strace_open_is_file(const struct strace_open *open)
{
    return open->kind == TRACE_FILE_REGULAR || open->kind == TRACE_FILE_BLOCK ||
           open->kind == TRACE_FILE_DIRECTORY ||
           (open->kind == TRACE_FILE_UNKNOWN && open->seekable);
}

bool strace_call_wanted(struct strace_trace *trace, const struct strace_open *open)
{
    if (trace->all_fds || strace_open_is_file(open))
        return true;
    if (open->kind == TRACE_FILE_UNKNOWN)
        trace->counts.unknown_files++;
    else
        trace->counts.not_files++;
    return false;
}

/* What is known of a file by its number. */
enum {
    FILE_SIZED = 1,
    FILE_SEEN = 2,
    FILE_FOLDER = 4,
};

static int touch(struct strace_trace *trace, uint32_t file, unsigned int what)
{
    if (file >= trace->touched_count) {
        uint32_t count = file + file / 2 + 64;
        uint8_t *touched = realloc(trace->touched, count);

        if (touched == NULL)
            return -ENOMEM;
        memset(touched + trace->touched_count, 0, count - trace->touched_count);
        trace->touched = touched;
        trace->touched_count = count;
    }
    trace->touched[file] |= (uint8_t)what;
    return 0;
}

static int is_folder(void *context, uint32_t file)
{
    struct strace_trace *trace = context;
    struct trace_file facts = {.size_bytes = TRACE_UNKNOWN_U64,
                               .kind = TRACE_FILE_DIRECTORY,
                               .ops = TRACE_UNKNOWN_U64,
                               .bytes = TRACE_UNKNOWN_U64,
                               .max_end = TRACE_UNKNOWN_U64};
    int err = touch(trace, file, FILE_FOLDER);

    return err < 0 ? err : import_file_facts(trace->import, file, &facts);
}

int strace_call_name(struct strace_trace *trace, const char *path, size_t length,
                     uint32_t *ret_file, bool *ret_first)
{
    int err = import_file(trace->import, path, length, ret_file);

    if (err < 0)
        return err;
    *ret_first = *ret_file >= trace->touched_count || !(trace->touched[*ret_file] & FILE_SEEN);
    err = touch(trace, *ret_file, FILE_SEEN);
    if (err == 0 && *ret_first)
        err = strace_paths_add(trace->paths, path, length, *ret_file, is_folder, trace);
    return err;
}

int strace_call_created(struct strace_trace *trace, struct strace_open *open)
{
    struct trace_file facts = {.kind = open->kind,
                               .flags = TRACE_FILE_CREATED,
                               .ops = TRACE_UNKNOWN_U64,
                               .bytes = TRACE_UNKNOWN_U64,
                               .max_end = TRACE_UNKNOWN_U64};
    int err = 0;

    if (open->file == TRACE_NONE_U32 || !open->first)
        return 0;
    err = touch(trace, open->file, FILE_SIZED);
    return err < 0 ? err : import_file_facts(trace->import, open->file, &facts);
}

int strace_call_facts(struct strace_trace *trace, struct strace_open *open)
{
    struct trace_file facts = {.size_bytes = TRACE_UNKNOWN_U64,
                               .kind = open->kind,
                               .ops = TRACE_UNKNOWN_U64,
                               .bytes = TRACE_UNKNOWN_U64,
                               .max_end = TRACE_UNKNOWN_U64};
    uint32_t file = open->file;
    int err;

    if (file == TRACE_NONE_U32)
        return 0;
    if (file < trace->touched_count && (trace->touched[file] & FILE_FOLDER))
        facts.kind = open->kind = TRACE_FILE_DIRECTORY;
    if (open->kind == TRACE_FILE_REGULAR &&
        (file >= trace->touched_count || !(trace->touched[file] & FILE_SIZED)) &&
        open->size_bytes != TRACE_UNKNOWN_U64) {
        facts.size_bytes = open->size_bytes;
        err = touch(trace, file, FILE_SIZED);
        if (err < 0)
            return err;
    }
    return import_file_facts(trace->import, file, &facts);
}

int strace_call_file(struct strace_trace *trace, struct strace_call *call,
                     struct strace_open *open, uint32_t *ret_file)
{
    char made_up[64];
    struct strace_fd fd;
    int err;

    if (open->file == TRACE_NONE_U32) {
        if (open->path != NULL) {
            err = strace_call_name(trace, open->path, open->path_length, &open->file,
                                   &open->first);
        } else {
            if (!strace_fd_parse(call->args[0], &fd))
                fd.fd = -1;
            snprintf(made_up, sizeof(made_up), "fd:%d@%u", fd.fd, call->process->group);
            err = strace_call_name(trace, made_up, strlen(made_up), &open->file, &open->first);
        }
        if (err == 0)
            err = strace_call_facts(trace, open);
        if (err < 0)
            return err;
    }
    *ret_file = open->file;
    return 0;
}

uint32_t strace_open_op_flags(const struct strace_open *open, bool write)
{
    uint32_t flags = open->flags & OPEN_DIRECT ? TRACE_F_DIRECT : 0;

    if (write && (open->flags & OPEN_SYNC) == OPEN_SYNC)
        flags |= TRACE_F_SYNC;
    else if (write && (open->flags & OPEN_DSYNC))
        flags |= TRACE_F_DSYNC;
    return flags;
}

int strace_call_op(struct strace_trace *trace, struct strace_call *call, unsigned int kind,
                   struct strace_open *open, struct trace_op *ret_op)
{
    int err;

    *ret_op = (struct trace_op)TRACE_OP_INIT;
    ret_op->kind = (uint8_t)kind;
    ret_op->api = TRACE_API_SYNC;
    ret_op->issue_ns = call->issue_ns;
    ret_op->latency_ns = call->latency_ns;
    ret_op->completion = call->completion;
    if (call->has_result)
        ret_op->result = call->result;
    err = strace_process_stream(trace->world, call->process, &ret_op->stream);
    if (err == 0 && open != NULL)
        err = strace_call_file(trace, call, open, &ret_op->file);
    return err;
}

int strace_call_emit(struct strace_trace *trace, const struct trace_op *op)
{
    bool changes =
        op->kind == TRACE_WRITE || op->kind == TRACE_TRUNCATE || op->kind == TRACE_FALLOCATE;
    int err = changes && op->file != TRACE_NONE_U32 ? touch(trace, op->file, FILE_SIZED) : 0;

    return err < 0 ? err : import_op(trace->import, op);
}
