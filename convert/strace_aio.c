/* SPDX-License-Identifier: MIT */
/* libaio calls as strace prints them, and what it shows of io_uring: only counts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/inflight.h"
#include "convert/strace_calls.h"

#define AIO_PENDING_MAX (128u * 1024)
#define IOCBS_MAX       1024

struct strace_aio {
    struct inflight *inflight; /* made at the first io_submit */
};

int strace_aio_new(struct strace_aio **ret_aio)
{
    *ret_aio = calloc(1, sizeof(**ret_aio));
    return *ret_aio ? 0 : -ENOMEM;
}

void strace_aio_free(struct strace_aio *aio)
{
    if (aio == NULL)
        return;
    inflight_free(aio->inflight);
    free(aio);
}

/* A field under its present or its older name. */
static bool iocb_field(struct strace_slice iocb, const char *name, const char *older,
                       struct strace_slice *ret)
{
    return strace_field(iocb, name, ret) || strace_field(iocb, older, ret);
}

static unsigned int iocb_kind(struct strace_slice iocb, bool *ret_vectored)
{
    static const struct {
        const char *word, *older;
        unsigned int kind;
        bool vectored;
    } kinds[] = {
        {"IOCB_CMD_PREAD", "pread", TRACE_READ, false},
        {"IOCB_CMD_PWRITE", "pwrite", TRACE_WRITE, false},
        {"IOCB_CMD_PREADV", "preadv", TRACE_READ, true},
        {"IOCB_CMD_PWRITEV", "pwritev", TRACE_WRITE, true},
        {"IOCB_CMD_FSYNC", "fsync", TRACE_FSYNC, false},
        {"IOCB_CMD_FDSYNC", "fdsync", TRACE_FDATASYNC, false},
    };
    struct strace_slice code;

    if (!iocb_field(iocb, "aio_lio_opcode", "lio_opcode", &code))
        code = iocb; /* "{pread, fildes=3, ...}" */
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strace_has_word(code, kinds[i].word) || strace_has_word(code, kinds[i].older)) {
            *ret_vectored = kinds[i].vectored;
            return kinds[i].kind;
        }
    }
    return TRACE_OP_COUNT;
}

static bool iocb_file(struct strace_slice iocb, struct strace_slice *ret)
{
    return iocb_field(iocb, "aio_fildes", "fildes", ret) || strace_field(iocb, "filedes", ret);
}

/* Requests that are no file I/O, and are not missed. */
static bool iocb_is_other(struct strace_slice iocb)
{
    return strace_has_word(iocb, "IOCB_CMD_POLL") || strace_has_word(iocb, "IOCB_CMD_NOOP") ||
           strace_has_word(iocb, "poll") || strace_has_word(iocb, "noop");
}

/* One iocb as an op that waits for its event. */
static int submit_one(struct strace_trace *trace, struct strace_call *call,
                      struct strace_slice iocb)
{
    struct strace_call each = *call;
    struct inflight_key key = {call->process->group, 0, 0};
    struct strace_slice value;
    struct strace_open *open;
    struct trace_op op, evicted;
    bool vectored = false;
    unsigned int kind = iocb_kind(iocb, &vectored);
    uint64_t number;
    int err;

    if (kind == TRACE_OP_COUNT || !iocb_file(iocb, &each.args[0])) {
        trace->counts.cut_iocbs += !iocb_is_other(iocb);
        return 0;
    }
    each.arg_count = 1;
    each.open_at_entry = NULL;
    open = strace_call_open(trace, &each, 0);
    if (open == NULL)
        return 0;
    open->seekable = true; /* the kernel takes nothing else here */
    if (!strace_call_wanted(trace, open))
        return 0;
    err = strace_call_op(trace, &each, kind, open, &op);
    if (err < 0)
        return err;
    op.api = TRACE_API_LIBAIO;
    op.flags = strace_open_op_flags(open, kind == TRACE_WRITE);
    op.latency_ns = TRACE_UNKNOWN_U64;
    op.completion = TRACE_COMPLETION_UNKNOWN;
    op.result = TRACE_UNKNOWN_I64;
    op.submit_ns = call->latency_ns;
    op.batch = trace->batches;
    if (iocb_field(iocb, "aio_offset", "offset", &value) && strace_unsigned(value, &number) &&
        kind <= TRACE_WRITE)
        op.offset = number;
    if (vectored && iocb_field(iocb, "aio_buf", "iovec", &value)) {
        op.length = strace_iovec_bytes(value);
        trace->counts.cut_vectors += strace_contains(value, ", ...]");
    } else if (iocb_field(iocb, "aio_nbytes", "nbytes", &value) &&
               strace_unsigned(value, &number)) {
        op.length = number;
    }
    if (iocb_field(iocb, "aio_data", "data", &value) && strace_unsigned(value, &number))
        key.sector = number;
    if (strace_field(iocb, "aio_rw_flags", &value) && strace_has_word(value, "RWF_NOWAIT"))
        op.flags |= TRACE_F_NOWAIT;
    if (inflight_put(trace->aio->inflight, &key, &op, &evicted))
        return strace_call_emit(trace, &evicted);
    return 0;
}

static int take_submit(struct strace_trace *trace, struct strace_call *call)
{
    struct strace_slice *iocbs;
    size_t count;
    int err = 0;

    if (!call->has_result || call->result <= 0 || call->arg_count < 3)
        return 1;
    if (trace->aio->inflight == NULL)
        trace->aio->inflight = inflight_new(AIO_PENDING_MAX);
    iocbs = malloc(IOCBS_MAX * sizeof(*iocbs));
    if (trace->aio->inflight == NULL || iocbs == NULL) {
        free(iocbs);
        return -ENOMEM;
    }
    count = strace_list_split(call->args[2], iocbs, IOCBS_MAX);
    trace->batches++;
    for (size_t i = 0; i < (size_t)call->result && err == 0; i++) {
        if (i >= count || i >= IOCBS_MAX || strace_is(iocbs[i], "...")) {
            trace->counts.cut_iocbs += (uint64_t)call->result - i;
            break;
        }
        err = submit_one(trace, call, iocbs[i]);
    }
    free(iocbs);
    return err < 0 ? err : 1;
}

/* "{data=0x1, obj=.., res=4096, res2=0}"; without names in older straces. */
static void event_fields(struct strace_slice event, struct strace_slice *ret_data,
                         struct strace_slice *ret_result)
{
    struct strace_slice parts[8];
    size_t count;

    *ret_data = *ret_result = (struct strace_slice){NULL, 0};
    if (strace_field(event, "data", ret_data) && strace_field(event, "res", ret_result))
        return;
    count = strace_list_split(event, parts, 8);
    if (count == 4) {
        *ret_data = parts[0];
        *ret_result = parts[2];
    }
}

/* The events of an io_getevents: each ends a request at the latest when the call returned. */
static int take_events(struct strace_trace *trace, struct strace_call *call)
{
    struct strace_slice events[IOCBS_MAX], word, value;
    size_t count;

    if (!call->has_result || call->result <= 0 || call->arg_count < 4 ||
        trace->aio->inflight == NULL)
        return 1;
    count = strace_list_split(call->args[3], events, IOCBS_MAX);
    for (size_t i = 0; i < count && i < IOCBS_MAX; i++) {
        struct inflight_key key = {call->process->group, 0, 0};
        struct trace_op op;
        int64_t result, end_ns;
        uint64_t data;
        int err;

        event_fields(events[i], &word, &value);
        if (strace_unsigned(word, &data))
            key.sector = data;
        if (!inflight_take(trace->aio->inflight, &key, &op)) {
            trace->counts.aio_unmatched++;
            continue;
        }
        if (strace_number(value, &result))
            op.result = result;
        /* Of a long iovec strace shows the beginning. */
        if (op.result > 0 && op.result != TRACE_UNKNOWN_I64 &&
            (uint64_t)op.result > op.length && op.kind <= TRACE_WRITE) {
            op.length = (uint64_t)op.result;
            trace->counts.cut_vectors -= trace->counts.cut_vectors > 0;
        }
        if (call->latency_ns != TRACE_UNKNOWN_U64) {
            end_ns = call->issue_ns + (int64_t)call->latency_ns;
            op.latency_ns = end_ns > op.issue_ns ? (uint64_t)(end_ns - op.issue_ns) : 0;
            op.completion = TRACE_COMPLETION_UPPER;
        }
        err = strace_call_emit(trace, &op);
        if (err < 0)
            return err;
    }
    return 1;
}

int strace_aio_finish(struct strace_trace *trace)
{
    struct trace_op op;
    int err = 0;

    while (err == 0 && trace->aio->inflight != NULL &&
           inflight_take_any(trace->aio->inflight, &op))
        err = strace_call_emit(trace, &op);
    return err;
}

int strace_aio_take(struct strace_trace *trace, struct strace_call *call)
{
    if (strace_is(call->name, "io_submit"))
        return take_submit(trace, call);
    if (strace_is(call->name, "io_getevents") || strace_is(call->name, "io_pgetevents"))
        return take_events(trace, call);
    if (strace_is(call->name, "io_uring_enter")) {
        if (call->has_result && call->result > 0)
            trace->counts.uring += (uint64_t)call->result;
        return 1;
    }
    if (strace_is(call->name, "io_uring_setup") && call->arg_count > 1 &&
        strace_has_word(call->args[1], "IORING_SETUP_SQPOLL"))
        trace->counts.uring_polled++;
    return 0;
}
