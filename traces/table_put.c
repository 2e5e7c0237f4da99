/* SPDX-License-Identifier: MIT */
/* Table entries as bytes. */
#include <string.h>

#include "traces/table.h"

void table_put_file(struct buf *out, const struct trace_file *file, const char *previous)
{
    size_t length = strlen(file->path), shared = 0;

    while (previous[shared] && previous[shared] == file->path[shared])
        shared++;
    buf_varint(out, shared);
    buf_varint(out, length - shared);
    buf_append(out, file->path + shared, length - shared);
    buf_varint(out, file->size_bytes + 1);
    buf_varint(out, file->inode);
    buf_varint(out, file->device);
    buf_varint(out, file->mode);
    buf_varint(out, file->flags);
    buf_u8(out, file->kind);
}

void table_put_stream(struct buf *out, const struct trace_stream *stream)
{
    const char *comm = stream->comm ? stream->comm : "";
    size_t length = strlen(comm);

    buf_varint(out, stream->pid);
    buf_varint(out, stream->tid);
    buf_varint(out, stream->ppid);
    buf_varint(out, length);
    buf_append(out, comm, length);
}

void table_put_meta(struct buf *out, const char *key, const char *value)
{
    size_t key_length = strlen(key), value_length = strlen(value);

    buf_varint(out, key_length);
    buf_append(out, key, key_length);
    buf_varint(out, value_length);
    buf_append(out, value, value_length);
}

void table_put_totals(struct buf *out, uint32_t index, uint64_t ops, uint64_t bytes,
                      uint64_t max_end)
{
    buf_varint(out, index);
    buf_varint(out, ops);
    buf_varint(out, bytes);
    buf_varint(out, max_end + 1);
}
