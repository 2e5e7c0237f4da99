/* SPDX-License-Identifier: MIT */
/* The words of the format's numbers. */
#include <errno.h>
#include <string.h>

#include "traces/trace.h"

static const char *const op_names[TRACE_OP_COUNT] = {
    [TRACE_READ] = "read",
    [TRACE_WRITE] = "write",
    [TRACE_FSYNC] = "fsync",
    [TRACE_FDATASYNC] = "fdatasync",
    [TRACE_SYNC_RANGE] = "sync_range",
    [TRACE_DISCARD] = "discard",
    [TRACE_WRITE_ZEROES] = "write_zeroes",
    [TRACE_FLUSH] = "flush",
    [TRACE_SYNCFS] = "syncfs",
    [TRACE_COPY] = "copy",
    [TRACE_READAHEAD] = "readahead",
    [TRACE_MSYNC] = "msync",
    [TRACE_MMAP] = "mmap",
    [TRACE_MUNMAP] = "munmap",
    [TRACE_FALLOCATE] = "fallocate",
    [TRACE_TRUNCATE] = "truncate",
    [TRACE_OPEN] = "open",
    [TRACE_CLOSE] = "close",
    [TRACE_CREATE] = "create",
    [TRACE_UNLINK] = "unlink",
    [TRACE_RENAME] = "rename",
    [TRACE_LINK] = "link",
    [TRACE_SYMLINK] = "symlink",
    [TRACE_MKDIR] = "mkdir",
    [TRACE_RMDIR] = "rmdir",
    [TRACE_ZONE_APPEND] = "zone_append",
    [TRACE_ZONE_RESET] = "zone_reset",
    [TRACE_ZONE_OPEN] = "zone_open",
    [TRACE_ZONE_CLOSE] = "zone_close",
    [TRACE_ZONE_FINISH] = "zone_finish",
    [TRACE_PASSTHROUGH] = "passthrough",
    [TRACE_FILL] = "fill",
    [TRACE_WRITEBACK] = "writeback",
};

static const char *const api_names[TRACE_API_COUNT] = {
    [TRACE_API_UNKNOWN] = "unknown",   [TRACE_API_SYNC] = "sync",
    [TRACE_API_VECTORED] = "vectored", [TRACE_API_LIBAIO] = "libaio",
    [TRACE_API_IO_URING] = "io_uring", [TRACE_API_POSIX_AIO] = "posix_aio",
    [TRACE_API_MMAP] = "mmap",         [TRACE_API_BLOCK] = "block",
    [TRACE_API_STDIO] = "stdio",
};

static const char *const cause_names[TRACE_CAUSE_COUNT] = {
    [TRACE_CAUSE_NONE] = "none",           [TRACE_CAUSE_WORKER_BUSY] = "worker_busy",
    [TRACE_CAUSE_DEPTH_CAP] = "depth_cap", [TRACE_CAUSE_ORDER] = "order",
    [TRACE_CAUSE_DECODER] = "decoder",     [TRACE_CAUSE_RESULT_RING] = "result_ring",
    [TRACE_CAUSE_WAKEUP] = "wakeup",
};

/* By bit number of enum trace_op_flags. */
static const char *const flag_names[] = {
    "direct",   "sync",       "dsync",     "nowait",       "polled",  "append",
    "fua",      "preflush",   "readahead", "meta",         "derived", "inflight",
    "position", "fixed_file", "fixed_buf", "link",         "drain",   "sqpoll",
    "requeued", "merged",     "atomic",    "fixed_result", "rounded",
};
#define FLAG_COUNT (sizeof(flag_names) / sizeof(flag_names[0]))
_Static_assert(TRACE_F_ROUNDED == 1u << (FLAG_COUNT - 1), "a name for every flag");

static int name_find(const char *const *names, unsigned int count, const char *name,
                     size_t length)
{
    for (unsigned int i = 0; i < count; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return (int)i;
    return -EINVAL;
}

const char *trace_op_name(unsigned int kind)
{
    return kind < TRACE_OP_COUNT ? op_names[kind] : "?";
}

const char *trace_api_name(unsigned int api)
{
    return api < TRACE_API_COUNT ? api_names[api] : "?";
}

const char *trace_cause_name(unsigned int cause)
{
    return cause < TRACE_CAUSE_COUNT ? cause_names[cause] : "?";
}

int trace_op_from_name(const char *name, size_t length)
{
    return name_find(op_names, TRACE_OP_COUNT, name, length);
}

int trace_api_from_name(const char *name, size_t length)
{
    return name_find(api_names, TRACE_API_COUNT, name, length);
}

int trace_flag_from_name(const char *name, size_t length, uint32_t *ret_flag)
{
    int bit = name_find(flag_names, FLAG_COUNT, name, length);

    if (bit < 0)
        return bit;
    *ret_flag = 1u << bit;
    return 0;
}

const char *trace_flags_text(uint32_t flags, char *buf, size_t size)
{
    size_t used = 0;

    if (size == 0)
        return buf;
    buf[0] = '\0';
    for (unsigned int bit = 0; bit < FLAG_COUNT; bit++) {
        size_t length = strlen(flag_names[bit]);

        if (!(flags & 1u << bit))
            continue;
        if (used + length + 2 > size)
            break;
        if (used > 0)
            buf[used++] = '|';
        memcpy(buf + used, flag_names[bit], length + 1);
        used += length;
    }
    return buf;
}

bool trace_op_is_io(unsigned int kind)
{
    switch (kind) {
    case TRACE_MMAP:
    case TRACE_MUNMAP:
    case TRACE_FALLOCATE:
    case TRACE_TRUNCATE:
    case TRACE_OPEN:
    case TRACE_CLOSE:
    case TRACE_CREATE:
    case TRACE_UNLINK:
    case TRACE_RENAME:
    case TRACE_LINK:
    case TRACE_SYMLINK:
    case TRACE_MKDIR:
    case TRACE_RMDIR: return false;
    default: return kind < TRACE_OP_COUNT;
    }
}

bool trace_op_has_range(unsigned int kind)
{
    return kind == TRACE_READ || kind == TRACE_WRITE || kind == TRACE_DISCARD ||
           kind == TRACE_WRITE_ZEROES;
}
