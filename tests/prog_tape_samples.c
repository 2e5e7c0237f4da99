/* SPDX-License-Identifier: MIT */
/*
 * Writes the tapes of traces/samples, whole ones and damaged ones:
 *     prog_tape_samples DIR
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tape_samples.h"
#include "traces/block.h"
#include "traces/bytes.h"
#include "traces/crc32c.h"
#include "traces/diag.h"

static const char *dir;

static void fail(const char *what)
{
    fprintf(stderr, "prog_tape_samples: %s\n", what);
    exit(1);
}

static const char *name_in(const char *name)
{
    static char path[4096];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void tape_make(const char *name, const struct trace_writer_conf *conf, uint32_t files,
                      uint32_t streams, uint32_t ops)
{
    struct diag diag = DIAG_INIT;
    struct trace_writer *writer = NULL;
    struct trace_sink sink;
    uint32_t index;
    int err;

    err = trace_sink_path(&sink, name_in(name), TRACE_SINK_RENAME, true, &diag);
    if (err == 0)
        err = trace_writer_open(&writer, &sink, conf, &diag);
    if (err < 0)
        fail(diag.text);
    err = trace_writer_meta(writer, TRACE_META_SOURCE, "sample");
    for (uint32_t i = 0; i < files && err == 0; i++) {
        struct trace_file file;
        char path[64];

        sample_file(&file, path, sizeof(path), i);
        err = trace_writer_file(writer, &file, &index);
    }
    for (uint32_t i = 0; i < streams && err == 0; i++) {
        struct trace_stream stream;
        char comm[32];

        sample_stream(&stream, comm, sizeof(comm), i);
        err = trace_writer_stream(writer, &stream, &index);
    }
    trace_writer_wall(writer, 0, 1700000000000000000u);
    for (uint32_t i = 0; i < ops && err == 0; i++) {
        struct trace_op op;

        sample_op(&op, i, conf->result);
        err = trace_writer_ops(writer, &op, 1);
    }
    if (err == 0)
        err = trace_writer_lost(writer, "ring-full", 7);
    for (uint32_t i = 0; i < files && err == 0 && !conf->raw; i++)
        err = trace_writer_file_totals(writer, i, i, i * 2, i * 3);
    if (err == 0)
        err = trace_writer_close(writer);
    if (err < 0)
        fail(diag.text);
}

struct bytes {
    uint8_t data[1 << 20];
    size_t size;
};

static void bytes_load(struct bytes *bytes, const char *name)
{
    FILE *file = fopen(name_in(name), "rb");

    if (!file)
        fail(name);
    bytes->size = fread(bytes->data, 1, sizeof(bytes->data), file);
    fclose(file);
}

static void bytes_store(const struct bytes *bytes, const char *name, size_t size)
{
    FILE *file = fopen(name_in(name), "wb");

    if (!file || fwrite(bytes->data, 1, size, file) != size || fclose(file) != 0)
        fail(name);
}

/* Offset of the block of operations with this place among them. */
static size_t ops_block(const struct bytes *bytes, unsigned int place)
{
    size_t at = TAPE_HEADER_BYTES;
    struct block_header header;

    while (block_header_load(&header, bytes->data + at, bytes->size - at) == 0) {
        if (header.type == BLOCK_OPS && place-- == 0)
            return at;
        at += header.header_bytes + (size_t)header.payload_bytes;
    }
    fail("no such block");
    return 0;
}

int main(int argc, char **argv)
{
    const struct trace_writer_conf good = {.small = true, .block_ops = 200};
    const struct trace_writer_conf raw = {.raw = true, .block_ops = 200};
    const struct trace_writer_conf result = {.result = true, .raw = true, .block_ops = 300};
    static struct bytes whole, broken;
    size_t at;

    if (argc != 2) {
        fprintf(stderr, "usage: prog_tape_samples DIR\n");
        return 2;
    }
    dir = argv[1];
    tape_make("good.tape", &good, SAMPLE_FILES, SAMPLE_STREAMS, SAMPLE_OPS);
    tape_make("raw.tape", &raw, SAMPLE_FILES, SAMPLE_STREAMS, SAMPLE_OPS);
    tape_make("result.tape", &result, SAMPLE_FILES, SAMPLE_STREAMS, SAMPLE_OPS);
    tape_make("empty.tape", &good, 0, 0, 0);
    tape_make("big-tables.tape", &good, SAMPLE_BIG_FILES, SAMPLE_BIG_STREAMS, 100);

    bytes_load(&whole, "good.tape");
    /* In the middle of the fourth block of operations. */
    bytes_store(&whole, "truncated.tape", ops_block(&whole, 3) + 200);
    broken = whole;
    broken.data[ops_block(&whole, 1) + 300] ^= 0x10;
    bytes_store(&broken, "bad-payload.tape", broken.size);
    broken = whole;
    at = ops_block(&whole, 2);
    broken.data[at + 17] ^= 0x40;
    bytes_store(&broken, "bad-header.tape", broken.size);
    broken = whole;
    /* The second block of all holds the files. */
    at = TAPE_HEADER_BYTES + load_le16(whole.data + TAPE_HEADER_BYTES + 10) +
         load_le32(whole.data + TAPE_HEADER_BYTES + 16);
    broken.data[at + 140] ^= 0x01;
    bytes_store(&broken, "bad-table.tape", broken.size);
    broken = whole;
    store_le16(broken.data + 8, TAPE_VERSION + 1);
    store_le32(broken.data + 60, crc32c(0, broken.data, 60));
    bytes_store(&broken, "wrong-version.tape", broken.size);
    return 0;
}
