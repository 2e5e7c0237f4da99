/* SPDX-License-Identifier: MIT */
/* System calls that move or order data. */
#include "convert/strace_calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_APPEND 0x400u
#define IOVECS_MAX  1024

/* ---- reads and writes ---- */

uint64_t strace_iovec_bytes(struct strace_slice list)
{
    struct strace_slice items[IOVECS_MAX], value, parts[4];
    size_t count = strace_list_split(list, items, IOVECS_MAX);
    uint64_t total = 0, bytes;

    for (size_t i = 0; i < count && i < IOVECS_MAX; i++) {
        if (!strace_field(items[i], "iov_len", &value)) {
            if (strace_list_split(items[i], parts, 4) != 2)
                continue;
            value = parts[1];
        }
        if (strace_unsigned(value, &bytes) && bytes <= INT64_MAX - total)
            total += bytes;
    }
    return total;
}

struct transfer {
    const char *name;
    bool write, vectored;
    int offset_arg, flags_arg; /* -1: none */
};

static const struct transfer transfers[] = {
    {"read", false, false, -1, -1},   {"write", true, false, -1, -1},
    {"pread64", false, false, 3, -1}, {"pread", false, false, 3, -1},
    {"pwrite64", true, false, 3, -1}, {"pwrite", true, false, 3, -1},
    {"readv", false, true, -1, -1},   {"writev", true, true, -1, -1},
    {"preadv", false, true, 3, -1},   {"pwritev", true, true, 3, -1},
    {"preadv2", false, true, 3, 4},   {"pwritev2", true, true, 3, 4},
};

static uint32_t rwf_flags(struct strace_slice words)
{
    static const struct {
        const char *word;
        uint32_t flag;
    } map[] = {{"RWF_HIPRI", TRACE_F_POLLED},  {"RWF_DSYNC", TRACE_F_DSYNC},
               {"RWF_SYNC", TRACE_F_SYNC},     {"RWF_NOWAIT", TRACE_F_NOWAIT},
               {"RWF_APPEND", TRACE_F_APPEND}, {"RWF_ATOMIC", TRACE_F_ATOMIC}};
    uint32_t flags = 0;

    for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
        if (strace_has_word(words, map[i].word))
            flags |= map[i].flag;
    return flags;
}

/* Where a call that uses the file position transfers, and where it leaves the position. */
static void use_position(struct strace_trace *trace, struct strace_open *open,
                         struct trace_op *op)
{
    op->flags |= TRACE_F_POSITION;
    if (!strace_open_is_file(open))
        return;
    if (op->kind == TRACE_WRITE &&
        ((open->flags & OPEN_APPEND) || (op->flags & TRACE_F_APPEND))) {
        /* The end of the file is known to the kernel alone. */
        op->flags |= TRACE_F_APPEND;
        if (op->result > 0)
            open->position = TRACE_UNKNOWN_U64;
        return;
    }
    op->offset = open->position;
    if (open->position == TRACE_UNKNOWN_U64)
        trace->counts.unknown_position++;
    else if (op->result > 0)
        open->position += (uint64_t)op->result;
}

static int take_transfer(struct strace_trace *trace, struct strace_call *call,
                         const struct transfer *transfer)
{
    struct strace_open *open = strace_call_open(trace, call, 0);
    int64_t offset = -1;
    struct trace_op op;
    uint64_t length;
    bool placed;
    int err;

    if (open == NULL || call->arg_count < 3) {
        trace->counts.other_calls++;
        return 0;
    }
    if (!call->has_result) {
        trace->counts.no_result++;
        return 0;
    }
    placed = transfer->offset_arg >= 0 && (size_t)transfer->offset_arg < call->arg_count &&
             strace_number(call->args[transfer->offset_arg], &offset) && offset >= 0;
    if (placed && call->result >= 0)
        open->seekable = true;
    if (!strace_call_wanted(trace, open))
        return 0;
    if (call->result < 0 && !strace_open_is_file(open)) {
        trace->counts.not_files++;
        return 0;
    }
    if (transfer->vectored)
        length = strace_iovec_bytes(call->args[1]);
    else if (!strace_unsigned(call->args[2], &length))
        length = 0;
    if (call->result > 0 && (uint64_t)call->result > length)
        length = (uint64_t)call->result; /* an abbreviated list */
    err = strace_call_op(trace, call, transfer->write ? TRACE_WRITE : TRACE_READ, open, &op);
    if (err < 0)
        return err;
    op.length = length;
    op.api = transfer->vectored ? TRACE_API_VECTORED : TRACE_API_SYNC;
    op.flags = strace_open_op_flags(open, transfer->write);
    if (transfer->flags_arg >= 0 && (size_t)transfer->flags_arg < call->arg_count)
        op.flags |= rwf_flags(call->args[transfer->flags_arg]);
    if (placed)
        op.offset = (uint64_t)offset;
    else
        use_position(trace, open, &op);
    return strace_call_emit(trace, &op);
}

/* ---- what orders or changes data ---- */

struct range_call {
    const char *name;
    unsigned int kind;
    int offset_arg, length_arg; /* -1: none */
};

static const struct range_call range_calls[] = {
    {"fsync", TRACE_FSYNC, -1, -1},
    {"fdatasync", TRACE_FDATASYNC, -1, -1},
    {"syncfs", TRACE_SYNCFS, -1, -1},
    {"sync_file_range", TRACE_SYNC_RANGE, 1, 2},
    {"sync_file_range2", TRACE_SYNC_RANGE, 2, 3},
    {"readahead", TRACE_READAHEAD, 1, 2},
    {"fadvise64", TRACE_READAHEAD, 1, 2},
    {"fadvise64_64", TRACE_READAHEAD, 1, 2},
    {"ftruncate", TRACE_TRUNCATE, -1, 1},
    {"ftruncate64", TRACE_TRUNCATE, -1, 1},
    {"fallocate", TRACE_FALLOCATE, 2, 3},
};

static unsigned int fallocate_mode(struct strace_slice words)
{
    static const struct {
        const char *word;
        unsigned int value;
    } map[] = {{"FALLOC_FL_KEEP_SIZE", 1},     {"FALLOC_FL_PUNCH_HOLE", 2},
               {"FALLOC_FL_NO_HIDE_STALE", 4}, {"FALLOC_FL_COLLAPSE_RANGE", 8},
               {"FALLOC_FL_ZERO_RANGE", 16},   {"FALLOC_FL_INSERT_RANGE", 32},
               {"FALLOC_FL_UNSHARE_RANGE", 64}};
    unsigned int mode = 0;
    uint64_t number;

    for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
        if (strace_has_word(words, map[i].word))
            mode |= map[i].value;
    return mode == 0 && strace_unsigned(words, &number) ? (unsigned int)number : mode;
}

static int take_range(struct strace_trace *trace, struct strace_call *call,
                      const struct range_call *range)
{
    struct strace_open *open = strace_call_open(trace, call, 0);
    struct trace_op op;
    uint64_t value;
    int err;

    if (open == NULL ||
        (strace_contains(call->name, "fadvise") &&
         (call->arg_count < 4 || !strace_contains(call->args[3], "WILLNEED")))) {
        trace->counts.other_calls++;
        return 0;
    }
    if (call->has_result && call->result >= 0 && range->kind != TRACE_SYNCFS)
        open->seekable = true;
    if (!strace_call_wanted(trace, open))
        return 0;
    err = strace_call_op(trace, call, range->kind, open, &op);
    if (err < 0)
        return err;
    if (range->offset_arg >= 0 && (size_t)range->offset_arg < call->arg_count &&
        strace_unsigned(call->args[range->offset_arg], &value))
        op.offset = value;
    if (range->length_arg >= 0 && (size_t)range->length_arg < call->arg_count &&
        strace_unsigned(call->args[range->length_arg], &value))
        op.length = value;
    if (range->kind == TRACE_FALLOCATE && call->arg_count > 1) {
        op.arg = fallocate_mode(call->args[1]);
        if (op.arg & 2)
            op.kind = TRACE_DISCARD;
        else if (op.arg & 16)
            op.kind = TRACE_WRITE_ZEROES;
    }
    return strace_call_emit(trace, &op);
}

/* "[4096]", "[4096] => [8192]", NULL. */
static bool pointed_number(struct strace_slice slice, uint64_t *ret_value)
{
    if (slice.length < 2 || slice.at[0] != '[')
        return false;
    return strace_unsigned((struct strace_slice){slice.at + 1, slice.length - 1}, ret_value);
}

/* copy_file_range, splice (in, off, out, off, len), sendfile (out, in, off, len). */
static int take_copy(struct strace_trace *trace, struct strace_call *call)
{
    bool sendfile = strace_contains(call->name, "sendfile");
    size_t in_arg = sendfile ? 1 : 0, out_arg = sendfile ? 0 : 2, off_arg = sendfile ? 2 : 1;
    struct strace_open *in = strace_call_open(trace, call, in_arg);
    struct strace_open *out = strace_call_open(trace, call, out_arg);
    struct trace_op op;
    uint64_t value;
    int err;

    if (in == NULL || out == NULL || !call->has_result ||
        (!strace_open_is_file(in) && !strace_open_is_file(out))) {
        trace->counts.not_files++;
        return 0;
    }
    /* To or from a pipe or socket only one side is file I/O. */
    err = strace_call_op(trace, call,
                         strace_open_is_file(in) && strace_open_is_file(out) ? TRACE_COPY
                         : strace_open_is_file(in)                           ? TRACE_READ
                                                                             : TRACE_WRITE,
                         strace_open_is_file(in) ? in : out, &op);
    if (err == 0 && op.kind == TRACE_COPY)
        err = strace_call_file(trace, call, out, &op.file2);
    if (err < 0)
        return err;
    if (op.kind != TRACE_COPY)
        op.flags |= TRACE_F_DERIVED;
    if (strace_unsigned(call->args[sendfile ? 3 : 4], &value))
        op.length = value;
    if (op.kind == TRACE_WRITE)
        off_arg = 3;
    if (pointed_number(call->args[off_arg], &value))
        op.offset = value;
    else
        use_position(trace, op.kind == TRACE_WRITE ? out : in, &op);
    if (op.kind == TRACE_COPY && strace_open_is_file(out) &&
        out->position != TRACE_UNKNOWN_U64 && op.result > 0 &&
        (sendfile || !pointed_number(call->args[3], &value)))
        out->position += (uint64_t)op.result;
    /* Asked for is often "all there is", up to 2^63. */
    if (op.result >= 0)
        op.length = (uint64_t)op.result;
    return strace_call_emit(trace, &op);
}

static int take_mmap(struct strace_trace *trace, struct strace_call *call)
{
    struct strace_open *open = call->arg_count >= 6 ? strace_call_open(trace, call, 4) : NULL;
    struct trace_op op;
    uint64_t value;
    int err;

    if (open == NULL || strace_has_word(call->args[3], "MAP_ANONYMOUS") || !call->has_result ||
        !strace_open_is_file(open)) {
        trace->counts.other_calls++;
        return 0;
    }
    if (strace_is(call->result_text, "-1") || (call->result < 0 && call->result > -4096)) {
        trace->counts.failed_names++;
        return 0;
    }
    err = strace_call_op(trace, call, TRACE_MMAP, open, &op);
    if (err < 0)
        return err;
    op.api = TRACE_API_MMAP;
    op.result = 0;
    if (strace_unsigned(call->args[1], &value))
        op.length = value;
    if (strace_unsigned(call->args[5], &value))
        op.offset = value;
    op.arg = (strace_has_word(call->args[2], "PROT_READ") ? 1u : 0u) |
             (strace_has_word(call->args[2], "PROT_WRITE") ? 2u : 0u) |
             (strace_has_word(call->args[2], "PROT_EXEC") ? 4u : 0u);
    trace->counts.mappings++;
    return strace_call_emit(trace, &op);
}

static int take_seek(struct strace_trace *trace, struct strace_call *call)
{
    struct strace_open *open = strace_call_open(trace, call, 0);
    uint64_t position;

    trace->counts.other_calls++;
    if (open == NULL || !call->has_result || call->result < 0)
        return 0;
    if (strace_is(call->name, "_llseek")) {
        if (call->arg_count < 3 || !pointed_number(call->args[2], &position))
            return 0;
    } else {
        position = (uint64_t)call->result;
    }
    if (open->kind == TRACE_FILE_UNKNOWN)
        open->seekable = true;
    open->position = position;
    return 0;
}

static int take_sync(struct strace_trace *trace, struct strace_call *call)
{
    struct trace_op op;
    int err = strace_call_op(trace, call, TRACE_SYNCFS, NULL, &op);

    return err < 0 ? err : strace_call_emit(trace, &op);
}

int strace_call_take(struct strace_trace *trace, struct strace_call *call)
{
    int ret;

    for (size_t i = 0; i < sizeof(transfers) / sizeof(transfers[0]); i++)
        if (strace_is(call->name, transfers[i].name))
            return take_transfer(trace, call, &transfers[i]);
    for (size_t i = 0; i < sizeof(range_calls) / sizeof(range_calls[0]); i++)
        if (strace_is(call->name, range_calls[i].name))
            return take_range(trace, call, &range_calls[i]);
    if (strace_is(call->name, "lseek") || strace_is(call->name, "_llseek"))
        return take_seek(trace, call);
    if (strace_is(call->name, "mmap") || strace_is(call->name, "mmap2"))
        return take_mmap(trace, call);
    if (call->arg_count >= 4 &&
        (strace_is(call->name, "sendfile") || strace_is(call->name, "sendfile64")))
        return take_copy(trace, call);
    if (call->arg_count >= 5 &&
        (strace_is(call->name, "copy_file_range") || strace_is(call->name, "splice")))
        return take_copy(trace, call);
    if (strace_is(call->name, "sync"))
        return take_sync(trace, call);
    ret = strace_aio_take(trace, call);
    if (ret == 0)
        ret = strace_names_take(trace, call);
    if (ret == 0)
        trace->counts.other_calls++;
    return ret < 0 ? ret : 0;
}
