/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a tape, through a file and through a pipe: read whole, tables, summaries, seeks.
 * The first byte picks whether checksums are made right first, so that what lies behind them is
 * reached, and whether the tape is normalised as well.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "traces/block.h"
#include "traces/bytes.h"
#include "traces/crc32c.h"
#include "traces/diag.h"
#include "traces/sort.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    const uint8_t *data;
    size_t size, at;
};

static int64_t bytes_read(void *context, void *buffer, size_t bytes)
{
    struct bytes *self = context;
    size_t left = self->size - self->at, now = bytes < left ? bytes : left;

    if (now > 0)
        memcpy(buffer, self->data + self->at, now);
    self->at += now;
    return (int64_t)now;
}

static int64_t bytes_pread(void *context, void *buffer, size_t bytes, uint64_t offset)
{
    struct bytes *self = context;

    if (offset >= self->size)
        return 0;
    if (bytes > self->size - offset)
        bytes = self->size - (size_t)offset;
    memcpy(buffer, self->data + offset, bytes);
    return (int64_t)bytes;
}

/* Walks the blocks as their lengths say and writes right checksums. */
static void checksums_mend(uint8_t *data, size_t size)
{
    size_t at = TAPE_HEADER_BYTES;

    if (size >= TAPE_HEADER_BYTES)
        store_le32(data + 60, crc32c(0, data, 60));
    while (at + BLOCK_HEADER_MIN <= size) {
        size_t header = load_le16(data + at + 10), payload = load_le32(data + at + 16);

        if (header < BLOCK_HEADER_MIN || header > BLOCK_HEADER_MAX || header > size - at ||
            payload > size - at - header)
            return;
        store_le32(data + at + 24, crc32c(0, data + at + header, payload));
        store_le32(data + at + header - 4, crc32c(0, data + at, header - 4));
        at += header + payload;
    }
}

static void reader_drain(struct trace_reader *reader)
{
    const struct trace_op *ops;
    uint64_t sum = 0;
    size_t count;

    while (trace_reader_next(reader, &ops, &count) == 1)
        for (size_t i = 0; i < count; i++) {
            const struct trace_file *file = trace_reader_file(reader, ops[i].file);
            const struct trace_stream *stream = trace_reader_stream(reader, ops[i].stream);

            if ((!file && ops[i].file != TRACE_NONE_U32) ||
                (!stream && ops[i].stream != TRACE_NONE_U32) || ops[i].kind >= TRACE_OP_COUNT)
                abort();
            sum += (file ? strlen(file->path) : 0) + (stream ? strlen(stream->comm) : 0);
        }
    /* Kept from being optimised away. */
    if (sum == UINT64_MAX)
        abort();
}

static void tape_try(const uint8_t *data, size_t size, bool pipe)
{
    struct bytes bytes = {.data = data, .size = size};
    struct trace_source source = {.read = bytes_read,
                                  .pread = pipe ? NULL : bytes_pread,
                                  .size_bytes = pipe ? TRACE_UNKNOWN_U64 : size,
                                  .context = &bytes,
                                  .name = "fuzz"};
    struct trace_block_summary summary = {0};
    struct trace_damage damage;
    struct trace_reader *reader;
    struct diag diag = DIAG_INIT;

    if (trace_reader_open(&reader, &source, &diag) < 0)
        return;
    reader_drain(reader);
    trace_reader_damage(reader, &damage);
    if (!pipe && trace_reader_load_tables(reader) == 0 && trace_reader_rewind(reader) == 0) {
        while (trace_reader_next_summary(reader, &summary) == 1)
            if (summary.ops == 0)
                abort();
        if (trace_reader_seek_ns(reader, summary.first_ns) == 0)
            reader_drain(reader);
        (void)trace_reader_op_count(reader);
    }
    trace_reader_free(reader);
}

static int nowhere_write(void *context, const void *buffer, size_t bytes)
{
    return 0;
}

static void tape_normalise(const uint8_t *data, size_t size, bool pipe)
{
    struct trace_sorter_conf conf = {.memory_bytes = 1 << 20};
    struct bytes bytes = {.data = data, .size = size};
    struct trace_source source = {.read = bytes_read,
                                  .pread = pipe ? NULL : bytes_pread,
                                  .size_bytes = pipe ? TRACE_UNKNOWN_U64 : size,
                                  .context = &bytes,
                                  .name = "fuzz"};
    struct trace_sink sink = {.write = nowhere_write, .name = "nowhere"};
    struct trace_reader *reader;
    struct diag diag = DIAG_INIT;

    if (trace_reader_open(&reader, &source, &diag) < 0)
        return;
    if (trace_normalise(reader, &sink, &conf, &diag) < 0 && diag.error == 0)
        abort();
    trace_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy;

    if (size < 1 || size > 1 << 20)
        return 0;
    copy = malloc(size);
    if (!copy)
        return 0;
    memcpy(copy, data + 1, size - 1);
    if (data[0] & 1)
        checksums_mend(copy, size - 1);
    tape_try(copy, size - 1, false);
    tape_try(copy, size - 1, true);
    if (data[0] & 2)
        tape_normalise(copy, size - 1, data[0] & 4);
    free(copy);
    return 0;
}
