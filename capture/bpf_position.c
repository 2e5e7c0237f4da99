/* SPDX-License-Identifier: MIT */
#include "capture/bpf_position.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    GAPS_MAX = 64
}; /* calls under way at once; the oldest gap is forgotten */

struct gap {
    uint64_t start, end;
};

struct position_file {
    uint64_t base, end; /* between them all is taken, but for the gaps */
    unsigned int count;
    struct gap *gaps; /* room for GAPS_MAX, made with the first */
};

void bpf_positions_init(struct bpf_positions *self)
{
    bpf_table_init(&self->files);
}

void bpf_positions_release(struct bpf_positions *self)
{
    struct position_file *file;
    size_t at = 0;

    while ((file = bpf_table_next(&self->files, &at, NULL))) {
        free(file->gaps);
        free(file);
    }
    bpf_table_release(&self->files);
}

static int gap_add(struct position_file *file, uint64_t start, uint64_t end)
{
    if (start >= end)
        return 0;
    if (!file->gaps)
        file->gaps = calloc(GAPS_MAX, sizeof(*file->gaps));
    if (!file->gaps)
        return -ENOMEM;
    if (file->count == GAPS_MAX)
        memmove(file->gaps, file->gaps + 1, --file->count * sizeof(file->gaps[0]));
    file->gaps[file->count++] = (struct gap){start, end};
    return 0;
}

/* Cuts [start, end) out of the index-th gap, which holds it. */
static int gap_take(struct position_file *file, unsigned int index, uint64_t start,
                    uint64_t end)
{
    struct gap gap = file->gaps[index];

    file->count--;
    memmove(file->gaps + index, file->gaps + index + 1,
            (file->count - index) * sizeof(file->gaps[0]));
    return gap_add(file, gap.start, start) ? -ENOMEM : gap_add(file, end, gap.end);
}

static bool gap_holding(const struct position_file *file, uint64_t start, uint64_t end,
                        unsigned int *ret_index)
{
    for (unsigned int i = 0; i < file->count; i++)
        if (file->gaps[i].start <= start && file->gaps[i].end >= end) {
            *ret_index = i;
            return true;
        }
    return false;
}

/* A gap of just that size, else the first that is large enough. */
static bool gap_fitting(const struct position_file *file, uint64_t bytes,
                        unsigned int *ret_index)
{
    bool found = false;

    for (unsigned int i = 0; i < file->count; i++) {
        uint64_t size = file->gaps[i].end - file->gaps[i].start;

        if (size == bytes) {
            *ret_index = i;
            return true;
        }
        if (size > bytes && !found) {
            *ret_index = i;
            found = true;
        }
    }
    return found;
}

static struct position_file *file_make(struct bpf_positions *self, uint64_t address,
                                       uint64_t end)
{
    struct bpf_table_key key = {address, 0, 0};
    struct position_file *file = bpf_table_find(&self->files, key);

    if (file)
        return file;
    file = calloc(1, sizeof(*file));
    if (!file || bpf_table_put(&self->files, key, file) != 0) {
        free(file);
        return NULL;
    }
    file->base = file->end = end;
    return file;
}

/* What comes beyond the end leaves a gap, or somebody moved the position on. */
static int end_move(struct position_file *file, uint64_t start, uint64_t end)
{
    int rc = gap_add(file, file->end, start);

    file->end = end;
    return rc;
}

/* Somebody moved the position back, or this is another file where one was: begin anew. */
static int end_reset(struct position_file *file, uint64_t start, uint64_t end)
{
    file->base = start;
    file->end = end;
    file->count = 0;
    return 0;
}

/* The position was here once: what lies between it and the first known place is still to come.
 */
static int base_move(struct position_file *file, uint64_t before)
{
    int rc = 0;

    if (before < file->base) {
        rc = gap_add(file, before, file->base);
        file->base = before;
    }
    return rc;
}

int bpf_positions_place(struct bpf_positions *self, uint64_t address, uint64_t before,
                        uint64_t after, uint64_t bytes, uint64_t *ret_offset)
{
    uint64_t start = after - bytes;
    struct position_file *file = file_make(self, address, before < start ? before : start);
    unsigned int index;

    if (!file)
        return -ENOMEM;
    *ret_offset = start;
    if (base_move(file, before) != 0)
        return -ENOMEM;
    if (start >= file->end)
        return end_move(file, start, after);
    if (gap_holding(file, start, after, &index))
        return gap_take(file, index, start, after);
    if (!gap_fitting(file, bytes, &index))
        return end_reset(file, start, after);
    start = file->gaps[index].start;
    *ret_offset = start;
    return gap_take(file, index, start, start + bytes);
}

int bpf_positions_taken(struct bpf_positions *self, uint64_t address, uint64_t offset,
                        uint64_t bytes)
{
    struct position_file *file = file_make(self, address, offset);
    unsigned int index;

    if (!file)
        return -ENOMEM;
    if (offset >= file->end)
        return end_move(file, offset, offset + bytes);
    if (gap_holding(file, offset, offset + bytes, &index))
        return gap_take(file, index, offset, offset + bytes);
    return end_reset(file, offset, offset + bytes);
}
