/* SPDX-License-Identifier: MIT */
#include "replay/classify.h"

#include <fcntl.h>

#include "replay/conf.h"

bool classify_in_window(const struct conf *conf, int64_t issue_ns)
{
    /* Without --start what came before time 0 is in. */
    if (conf->start_ns != 0 && issue_ns < (int64_t)conf->start_ns)
        return false;
    return conf->end_ns == 0 || issue_ns < (int64_t)conf->end_ns;
}

bool classify_mutates(const struct trace_op *op)
{
    switch (op->kind) {
    case TRACE_WRITE:
    case TRACE_DISCARD:
    case TRACE_WRITE_ZEROES:
    case TRACE_COPY:
    case TRACE_FALLOCATE:
    case TRACE_TRUNCATE:
    case TRACE_CREATE:
    case TRACE_UNLINK:
    case TRACE_RENAME:
    case TRACE_LINK:
    case TRACE_MKDIR:
    case TRACE_RMDIR: return true;
    case TRACE_OPEN: return (op->arg & (O_TRUNC | O_CREAT)) != 0;
    default: return false;
    }
}

bool classify_renames(unsigned int kind)
{
    return kind == TRACE_CREATE || kind == TRACE_UNLINK || kind == TRACE_RENAME ||
           kind == TRACE_LINK;
}

bool classify_barrier(unsigned int kind, uint32_t arg)
{
    switch (kind) {
    case TRACE_CREATE:
    case TRACE_UNLINK:
    case TRACE_RENAME:
    case TRACE_LINK:
    case TRACE_MKDIR:
    case TRACE_RMDIR:
    case TRACE_TRUNCATE:
    case TRACE_FALLOCATE: return true;
    case TRACE_OPEN: return (arg & (O_TRUNC | O_CREAT)) != 0;
    default: return false;
    }
}

static enum skip_reason skip_by_kind(const struct conf *conf, const struct trace_op *op)
{
    switch (op->kind) {
    case TRACE_MMAP:
    case TRACE_MUNMAP:
    case TRACE_FILL:
    case TRACE_WRITEBACK: return SKIP_MAPPING;
    case TRACE_COPY: return SKIP_COPY;       /* the tape does not hold where in the second file */
    case TRACE_SYMLINK: return SKIP_SYMLINK; /* could lead out of the root whoever follows it */
    case TRACE_ZONE_APPEND:
    case TRACE_ZONE_RESET:
    case TRACE_ZONE_OPEN:
    case TRACE_ZONE_CLOSE:
    case TRACE_ZONE_FINISH: return SKIP_ZONE;
    case TRACE_PASSTHROUGH: return SKIP_PASSTHROUGH;
    case TRACE_CLOSE: return SKIP_CLOSE;
    case TRACE_OPEN:
    case TRACE_CREATE:
    case TRACE_UNLINK:
    case TRACE_RENAME:
    case TRACE_LINK:
    case TRACE_MKDIR:
    case TRACE_RMDIR:
    case TRACE_TRUNCATE:
    case TRACE_FALLOCATE: return conf->target != NULL ? SKIP_NAMES : SKIP_NONE;
    default: return SKIP_NONE;
    }
}

static enum skip_reason skip_by_file(const struct trace_file *file, const struct trace_op *op)
{
    if (file == NULL)
        return SKIP_NONE;
    switch (file->kind) {
    case TRACE_FILE_CHAR:
    case TRACE_FILE_PIPE:
    case TRACE_FILE_SOCKET:
    case TRACE_FILE_OTHER: return SKIP_NOT_A_FILE;
    case TRACE_FILE_DIRECTORY:
        return op->kind == TRACE_READ || op->kind == TRACE_WRITE ? SKIP_NOT_A_FILE : SKIP_NONE;
    default: return SKIP_NONE;
    }
}

static enum skip_reason skip_by_range(const struct conf *conf, const struct trace_op *op)
{
    bool append = op->kind == TRACE_WRITE && (op->flags & TRACE_F_APPEND) && conf->target == NULL;

    switch (op->kind) {
    case TRACE_READ:
    case TRACE_WRITE:
        return op->offset == TRACE_UNKNOWN_U64 && !append ? SKIP_NO_RANGE : SKIP_NONE;
    case TRACE_DISCARD:
    case TRACE_WRITE_ZEROES:
    case TRACE_READAHEAD:
    case TRACE_SYNC_RANGE:
    case TRACE_FALLOCATE: return op->offset == TRACE_UNKNOWN_U64 ? SKIP_NO_RANGE : SKIP_NONE;
    default: return SKIP_NONE;
    }
}

unsigned int classify_kind(unsigned int kind)
{
    return kind == TRACE_FILL ? TRACE_READ : kind == TRACE_WRITEBACK ? TRACE_WRITE : kind;
}

const struct trace_op *classify_op(const struct conf *conf, const struct trace_op *op,
                                   struct trace_op *room)
{
    if ((op->kind != TRACE_FILL && op->kind != TRACE_WRITEBACK) || conf->mapped == MAPPED_SKIP)
        return op;
    *room = *op;
    room->kind = (uint8_t)classify_kind(op->kind);
    room->flags &= ~(uint32_t)TRACE_F_DIRECT;
    return room;
}

enum prepared_action classify(const struct conf *conf, const struct trace_file *file,
                              const struct trace_op *op, enum skip_reason *ret_skip)
{
    const struct engine *engine = conf->engine.engine;
    bool own = (engine->ops & ENGINE_OP(op->kind)) != 0;
    enum skip_reason skip;

    *ret_skip = SKIP_NONE;
    if (engine->flags & ENGINE_NO_TARGET) {
        /* It touches nothing: there is nothing to guard and nothing to look up. */
        *ret_skip = own ? SKIP_NONE : SKIP_UNSUPPORTED;
        return own ? PREPARED_ENGINE : PREPARED_SKIP;
    }
    skip = skip_by_kind(conf, op);
    if (skip == SKIP_NONE)
        skip = skip_by_file(file, op);
    if (skip == SKIP_NONE)
        skip = skip_by_range(conf, op);
    if (skip == SKIP_NONE && !conf->writes && classify_mutates(op))
        skip = SKIP_READ_ONLY;
    if (skip != SKIP_NONE) {
        *ret_skip = skip;
        return PREPARED_SKIP;
    }
    return own && trace_op_is_io(op->kind) ? PREPARED_ENGINE : PREPARED_CORE;
}
