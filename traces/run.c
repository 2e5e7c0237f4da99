/* SPDX-License-Identifier: MIT */
#include "traces/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traces/bytes.h"
#include "traces/diag.h"

/* Before each block: its bytes, their size unpacked, its operations. */
#define RUN_HEADER_BYTES 12

int run_file_open(struct run_file *file, const char *dir, struct diag *diag)
{
    char *name;
    int err;

    if (!dir || !*dir)
        dir = getenv("TMPDIR");
    if (!dir || !*dir)
        dir = "/tmp";
    file->columns = columns_writer_new(1, NUMBERS_QUICK, true);
    file->waiting = malloc(RUN_BLOCK_OPS * sizeof(*file->waiting));
    if (!file->columns || !file->waiting || asprintf(&name, "%s/iotape-sort.XXXXXX", dir) < 0)
        return diag_errno(diag, -ENOMEM, "sorting");
    file->fd = mkostemp(name, O_CLOEXEC);
    err = -errno;
    if (file->fd >= 0)
        unlink(name);
    else
        diag_errno(diag, err, "%s: cannot make a temporary file", name);
    free(name);
    return file->fd < 0 ? err : 0;
}

void run_file_release(struct run_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    columns_writer_free(file->columns);
    buf_release(&file->block);
    free(file->waiting);
    *file = (struct run_file){.fd = -1};
}

static int run_block_write(struct run_file *file)
{
    static const uint8_t blank[RUN_HEADER_BYTES];
    uint32_t raw_bytes;
    size_t put = 0;
    int err;

    buf_clear(&file->block);
    buf_append(&file->block, blank, sizeof(blank));
    err = columns_write(file->columns, file->waiting, file->waiting_count, &file->block,
                        &raw_bytes);
    if (err < 0)
        return err;
    store_le32(file->block.data, (uint32_t)(file->block.length - RUN_HEADER_BYTES));
    store_le32(file->block.data + 4, raw_bytes);
    store_le32(file->block.data + 8, file->waiting_count);
    while (put < file->block.length) {
        ssize_t wrote = pwrite(file->fd, file->block.data + put, file->block.length - put,
                               (off_t)(file->bytes + put));

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return wrote < 0 ? -errno : -EIO;
        put += (size_t)wrote;
    }
    file->bytes += file->block.length;
    file->waiting_count = 0;
    return 0;
}

int run_file_write(struct run_file *file, const struct trace_op *ops, size_t count)
{
    int err;

    while (count > 0) {
        size_t room = RUN_BLOCK_OPS - file->waiting_count;
        size_t now = count < room ? count : room;

        memcpy(file->waiting + file->waiting_count, ops, now * sizeof(*ops));
        file->waiting_count += (uint32_t)now;
        ops += now;
        count -= now;
        if (file->waiting_count < RUN_BLOCK_OPS)
            continue;
        err = run_block_write(file);
        if (err < 0)
            return err;
    }
    return 0;
}

int run_file_end(struct run_file *file, struct run *run)
{
    int err = file->waiting_count > 0 ? run_block_write(file) : 0;

    run->end = file->bytes;
    return err;
}

void run_file_drop(struct run_file *file, const struct run *run)
{
    /* Only saves space: a file system that cannot is no error. */
    if (fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)run->start,
                  (off_t)(run->end - run->start)) < 0)
        return;
}

static int run_pread(struct run_reader *reader, uint8_t *to, size_t bytes)
{
    while (bytes > 0) {
        ssize_t got = pread(reader->fd, to, bytes, (off_t)reader->offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -EIO;
        to += got;
        bytes -= (size_t)got;
        reader->offset += (uint64_t)got;
    }
    return 0;
}

static int run_block_read(struct run_reader *reader)
{
    uint8_t header[RUN_HEADER_BYTES], *payload;
    uint32_t bytes;
    int err;

    err = run_pread(reader, header, sizeof(header));
    if (err < 0)
        return err;
    bytes = load_le32(header);
    buf_clear(&reader->block);
    payload = buf_reserve(&reader->block, bytes);
    if (!payload)
        return -ENOMEM;
    err = run_pread(reader, payload, bytes);
    if (err < 0)
        return err;
    return columns_reader_begin(reader->columns, payload, bytes, load_le32(header + 4),
                                load_le32(header + 8), UINT32_MAX, UINT32_MAX);
}

static int run_reader_fill(struct run_reader *reader)
{
    int got;

    for (;;) {
        got = columns_reader_next(reader->columns, &reader->at, &reader->left);
        if (got != 0 || reader->offset >= reader->end)
            return got < 0 ? got : 0;
        got = run_block_read(reader);
        if (got < 0)
            return got;
    }
}

int run_reader_open(struct run_reader *reader, const struct run_file *file,
                    const struct run *run)
{
    *reader = (struct run_reader){.fd = file->fd, .offset = run->start, .end = run->end};
    reader->columns = columns_reader_new();
    return reader->columns ? run_reader_fill(reader) : -ENOMEM;
}

int run_reader_take(struct run_reader *reader, size_t count)
{
    reader->at += count;
    reader->left -= count;
    return reader->left == 0 ? run_reader_fill(reader) : 0;
}

void run_reader_release(struct run_reader *reader)
{
    columns_reader_free(reader->columns);
    buf_release(&reader->block);
    *reader = (struct run_reader){.fd = -1};
}
