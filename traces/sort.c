/* SPDX-License-Identifier: MIT */
#include "traces/sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traces/diag.h"
#include "traces/run.h"

#define MEMORY_DEFAULT (64u << 20)
#define MEMORY_LEAST   (1u << 20)
#define RUNS_MERGED    64 /* at once: each takes some 150 KiB */
#define PIECE_OPS      512

struct key {
    int64_t issue_ns;
    uint32_t index; /* in ops */
};

struct trace_sorter {
    struct diag *diag;
    const char *temp_dir;
    /* Operations in memory, in the order they came; keys is that order sorted, up to sorted. */
    struct trace_op *ops;
    struct key *keys, *other;
    uint32_t count, capacity;
    uint32_t given; /* of keys: already delivered */
    bool sorted;
    bool finished;
    int64_t floor_ns;
    /* Runs on disk, oldest first. */
    struct run_file file;
    struct run *runs;
    size_t run_count;
    struct run_reader *readers; /* while merging */
    size_t reader_count;
    size_t *heap; /* of readers, by next time, then by age */
    size_t heap_count;
    size_t taken;      /* delivered from the top reader, not yet taken away */
    int64_t newest_ns; /* of all that were added */
    bool any;
    uint64_t backward_steps, largest_step_ns;
    struct trace_op piece[PIECE_OPS];
};

int trace_sorter_new(struct trace_sorter **ret_sorter, const struct trace_sorter_conf *conf,
                     struct diag *diag)
{
    struct trace_sorter *sorter = calloc(1, sizeof(*sorter));
    size_t memory = conf && conf->memory_bytes ? conf->memory_bytes : MEMORY_DEFAULT;
    size_t capacity;

    if (!sorter)
        return diag_errno(diag, -ENOMEM, "sorting");
    if (memory < MEMORY_LEAST)
        memory = MEMORY_LEAST;
    capacity = memory / (sizeof(*sorter->ops) + 2 * sizeof(*sorter->keys));
    if (capacity > UINT32_MAX / 2)
        capacity = UINT32_MAX / 2;
    sorter->capacity = (uint32_t)capacity;
    sorter->diag = diag;
    sorter->temp_dir = conf ? conf->temp_dir : NULL;
    sorter->file.fd = -1;
    sorter->floor_ns = INT64_MIN;
    sorter->sorted = true;
    sorter->ops = malloc(capacity * sizeof(*sorter->ops));
    sorter->keys = malloc(capacity * sizeof(*sorter->keys));
    sorter->other = malloc(capacity * sizeof(*sorter->other));
    if (!sorter->ops || !sorter->keys || !sorter->other) {
        trace_sorter_free(sorter);
        return diag_errno(diag, -ENOMEM, "sorting");
    }
    *ret_sorter = sorter;
    return 0;
}

void trace_sorter_free(struct trace_sorter *sorter)
{
    if (!sorter)
        return;
    for (size_t i = 0; i < sorter->reader_count; i++)
        run_reader_release(&sorter->readers[i]);
    run_file_release(&sorter->file);
    free(sorter->readers);
    free(sorter->heap);
    free(sorter->runs);
    free(sorter->ops);
    free(sorter->keys);
    free(sorter->other);
    free(sorter);
}

/* ---- in memory ---- */

/* Length of the ascending run of keys that begins at from. */
static uint32_t ascent(const struct key *keys, uint32_t from, uint32_t count)
{
    uint32_t to = from + 1;

    while (to < count && keys[to - 1].issue_ns <= keys[to].issue_ns)
        to++;
    return to;
}

static void keys_merge(const struct key *a, const struct key *a_end, const struct key *b,
                       const struct key *b_end, struct key *to)
{
    while (a < a_end && b < b_end)
        *to++ = b->issue_ns < a->issue_ns ? *b++ : *a++;
    while (a < a_end)
        *to++ = *a++;
    while (b < b_end)
        *to++ = *b++;
}

/* Short stretches by insertion, so that merging begins with runs of some length. */
static void keys_insert(struct key *keys, uint32_t from, uint32_t to)
{
    for (uint32_t i = from + 1; i < to; i++) {
        struct key key = keys[i];
        uint32_t at = i;

        for (; at > from && keys[at - 1].issue_ns > key.issue_ns; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

#define INSERT_KEYS 16

/* Natural merge sort, stable: linear in what is sorted already. */
static void keys_sort(struct trace_sorter *sorter)
{
    struct key *keys = sorter->keys, *other = sorter->other;
    uint32_t count = sorter->count;

    if (ascent(keys, 0, count) >= count)
        return;
    for (uint32_t at = 0; at < count;) {
        uint32_t end = ascent(keys, at, count);

        if (end - at < INSERT_KEYS) {
            end = count - at < INSERT_KEYS ? count : at + INSERT_KEYS;
            keys_insert(keys, at, end);
        }
        at = end;
    }
    for (;;) {
        uint32_t at = 0, runs = 0;

        while (at < count) {
            uint32_t middle = ascent(keys, at, count), end = middle;

            if (middle < count)
                end = ascent(keys, middle, count);
            keys_merge(keys + at, keys + middle, keys + middle, keys + end, other + at);
            at = end;
            runs++;
        }
        struct key *swap = keys;
        keys = other;
        other = swap;
        if (runs <= 1)
            break;
    }
    sorter->keys = keys;
    sorter->other = other;
}

static void memory_sort(struct trace_sorter *sorter)
{
    if (sorter->sorted)
        return;
    keys_sort(sorter);
    sorter->sorted = true;
}

/* Up to PIECE_OPS of the sorted operations in memory, below limit_ns (inclusive when whole). */
static size_t memory_take(struct trace_sorter *sorter, int64_t below_ns, bool whole)
{
    size_t count = 0;

    memory_sort(sorter);
    while (sorter->given < sorter->count && count < PIECE_OPS) {
        const struct key *key = &sorter->keys[sorter->given];

        if (!whole && key->issue_ns >= below_ns)
            break;
        sorter->piece[count++] = sorter->ops[key->index];
        sorter->given++;
    }
    return count;
}

/* Closes the gaps that delivered operations left, keeping the order of arrival. */
static int memory_compact(struct trace_sorter *sorter)
{
    uint32_t left = sorter->count - sorter->given;
    struct trace_op *kept;

    if (sorter->given == 0)
        return 0;
    /* What is left is sorted, and stands before anything new that has the same time. */
    kept = left ? malloc(left * sizeof(*kept)) : NULL;
    if (left && !kept)
        return diag_errno(sorter->diag, -ENOMEM, "sorting");
    for (uint32_t i = 0; i < left; i++)
        kept[i] = sorter->ops[sorter->keys[sorter->given + i].index];
    if (left)
        memcpy(sorter->ops, kept, left * sizeof(*kept));
    free(kept);
    for (uint32_t i = 0; i < left; i++)
        sorter->keys[i] = (struct key){.issue_ns = sorter->ops[i].issue_ns, .index = i};
    sorter->count = left;
    sorter->given = 0;
    return 0;
}

/* ---- on disk ---- */

static int sorter_error(struct trace_sorter *sorter, int err)
{
    return diag_errno(sorter->diag, err, "sorting: temporary file");
}

static int run_add(struct trace_sorter *sorter, const struct run *run)
{
    struct run *more = realloc(sorter->runs, (sorter->run_count + 1) * sizeof(*more));

    if (!more)
        return -ENOMEM;
    sorter->runs = more;
    more[sorter->run_count++] = *run;
    return 0;
}

static int memory_spill(struct trace_sorter *sorter)
{
    struct run run;
    size_t count;
    int err = 0;

    if (sorter->file.fd < 0)
        err = run_file_open(&sorter->file, sorter->temp_dir, sorter->diag);
    run.start = sorter->file.bytes;
    while (err == 0 && (count = memory_take(sorter, 0, true)) > 0)
        err = run_file_write(&sorter->file, sorter->piece, count);
    if (err == 0)
        err = run_file_end(&sorter->file, &run);
    if (err == 0)
        err = run_add(sorter, &run);
    sorter->count = sorter->given = 0;
    sorter->sorted = true;
    return err < 0 ? sorter_error(sorter, err) : 0;
}

static bool reader_before(const struct trace_sorter *sorter, size_t a, size_t b)
{
    int64_t a_ns = sorter->readers[a].at->issue_ns, b_ns = sorter->readers[b].at->issue_ns;

    return a_ns < b_ns || (a_ns == b_ns && a < b);
}

static void heap_sink(struct trace_sorter *sorter, size_t at)
{
    size_t *heap = sorter->heap;

    for (;;) {
        size_t least = at, swap;

        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < sorter->heap_count;
             child++)
            if (reader_before(sorter, heap[child], heap[least]))
                least = child;
        if (least == at)
            return;
        swap = heap[at];
        heap[at] = heap[least];
        heap[least] = swap;
        at = least;
    }
}

/* Opens runs [first, first + count) for merging. */
static int merge_open(struct trace_sorter *sorter, size_t first, size_t count)
{
    int err;

    sorter->readers = calloc(count, sizeof(*sorter->readers));
    sorter->heap = calloc(count, sizeof(*sorter->heap));
    if (!sorter->readers || !sorter->heap)
        return -ENOMEM;
    sorter->heap_count = 0;
    for (size_t i = 0; i < count; i++) {
        err = run_reader_open(&sorter->readers[i], &sorter->file, &sorter->runs[first + i]);
        sorter->reader_count = i + 1;
        if (err < 0)
            return err;
        if (sorter->readers[i].left > 0)
            sorter->heap[sorter->heap_count++] = i;
    }
    for (size_t i = sorter->heap_count; i-- > 0;)
        heap_sink(sorter, i);
    return 0;
}

static void merge_close(struct trace_sorter *sorter)
{
    for (size_t i = 0; i < sorter->reader_count; i++)
        run_reader_release(&sorter->readers[i]);
    free(sorter->readers);
    free(sorter->heap);
    sorter->readers = NULL;
    sorter->heap = NULL;
    sorter->reader_count = sorter->heap_count = 0;
}

/* How many operations of the top reader come before all others'. */
static size_t merge_stretch(const struct trace_sorter *sorter)
{
    const struct run_reader *top = &sorter->readers[sorter->heap[0]];
    size_t second, count = 1;
    int64_t limit_ns;
    bool older;

    if (sorter->heap_count == 1)
        return top->left;
    second = 1;
    if (sorter->heap_count > 2 && reader_before(sorter, sorter->heap[2], sorter->heap[1]))
        second = 2;
    limit_ns = sorter->readers[sorter->heap[second]].at->issue_ns;
    older = sorter->heap[0] < sorter->heap[second];
    while (count < top->left && (top->at[count].issue_ns < limit_ns ||
                                 (older && top->at[count].issue_ns == limit_ns)))
        count++;
    return count;
}

static int merge_take(struct trace_sorter *sorter, size_t count)
{
    struct run_reader *top = &sorter->readers[sorter->heap[0]];
    int err = run_reader_take(top, count);

    if (err < 0)
        return err;
    if (top->left == 0)
        sorter->heap[0] = sorter->heap[--sorter->heap_count];
    heap_sink(sorter, 0);
    return 0;
}

/* The next stretch, gathered into the piece: 0 at the end. */
static int merge_next(struct trace_sorter *sorter, const struct trace_op **ret_ops,
                      size_t *ret_count)
{
    size_t count = 0;
    int err;

    if (sorter->taken > 0) {
        err = merge_take(sorter, sorter->taken);
        sorter->taken = 0;
        if (err < 0)
            return err;
    }
    while (sorter->heap_count > 0 && count < PIECE_OPS) {
        const struct run_reader *top = &sorter->readers[sorter->heap[0]];
        size_t stretch = merge_stretch(sorter);

        /* A long stretch is delivered where it lies. */
        if (count == 0 && stretch >= 32) {
            sorter->taken = stretch;
            *ret_ops = top->at;
            *ret_count = stretch;
            return 1;
        }
        if (stretch > PIECE_OPS - count)
            stretch = PIECE_OPS - count;
        memcpy(sorter->piece + count, top->at, stretch * sizeof(*top->at));
        count += stretch;
        err = merge_take(sorter, stretch);
        if (err < 0)
            return err;
    }
    *ret_ops = sorter->piece;
    *ret_count = count;
    return count > 0;
}

/* Merges RUNS_MERGED neighbours at a time into one, until few enough are left. */
static int runs_reduce(struct trace_sorter *sorter)
{
    while (sorter->run_count > RUNS_MERGED) {
        size_t to = 0;

        for (size_t from = 0; from < sorter->run_count; from += RUNS_MERGED, to++) {
            size_t count = sorter->run_count - from, ops_count;
            struct run run = {.start = sorter->file.bytes};
            const struct trace_op *ops;
            int got;

            if (count > RUNS_MERGED)
                count = RUNS_MERGED;
            got = merge_open(sorter, from, count);
            while (got >= 0 && (got = merge_next(sorter, &ops, &ops_count)) > 0)
                got = run_file_write(&sorter->file, ops, ops_count);
            merge_close(sorter);
            if (got == 0)
                got = run_file_end(&sorter->file, &run);
            if (got < 0)
                return got;
            for (size_t i = 0; i < count; i++)
                run_file_drop(&sorter->file, &sorter->runs[from + i]);
            sorter->runs[to] = run;
        }
        sorter->run_count = to;
    }
    return 0;
}

/* ---- the sorter ---- */

int trace_sorter_add(struct trace_sorter *sorter, const struct trace_op *ops, size_t count)
{
    int err;

    /* What was delivered must not be sorted in again. */
    err = memory_compact(sorter);
    if (err < 0)
        return err;
    for (size_t i = 0; i < count; i++) {
        int64_t issue_ns = ops[i].issue_ns;

        if (issue_ns < sorter->floor_ns)
            return diag_set(sorter->diag, -EBADMSG,
                            "sorting: an operation is earlier than was promised");
        if (sorter->count == sorter->capacity) {
            err = memory_spill(sorter);
            if (err < 0)
                return err;
        }
        if (sorter->any && issue_ns < sorter->newest_ns) {
            uint64_t step = (uint64_t)sorter->newest_ns - (uint64_t)issue_ns;

            sorter->backward_steps++;
            if (step > sorter->largest_step_ns)
                sorter->largest_step_ns = step;
        }
        if (!sorter->any || issue_ns > sorter->newest_ns)
            sorter->newest_ns = issue_ns;
        sorter->any = true;
        sorter->keys[sorter->count] =
            (struct key){.issue_ns = issue_ns, .index = sorter->count};
        sorter->ops[sorter->count++] = ops[i];
        sorter->sorted = false;
    }
    return 0;
}

void trace_sorter_floor(struct trace_sorter *sorter, int64_t floor_ns)
{
    sorter->floor_ns = floor_ns;
}

int trace_sorter_finish(struct trace_sorter *sorter)
{
    int err;

    sorter->finished = true;
    if (sorter->run_count == 0)
        return 0;
    if (sorter->count > sorter->given) {
        err = memory_spill(sorter);
        if (err < 0)
            return err;
    }
    /* The merge needs its memory more. */
    free(sorter->ops);
    free(sorter->keys);
    free(sorter->other);
    sorter->ops = NULL;
    sorter->keys = sorter->other = NULL;
    sorter->count = sorter->given = 0;
    err = runs_reduce(sorter);
    if (err == 0)
        err = merge_open(sorter, 0, sorter->run_count);
    return err < 0 ? sorter_error(sorter, err) : 0;
}

int trace_sorter_next(struct trace_sorter *sorter, const struct trace_op **ret_ops,
                      size_t *ret_count)
{
    size_t count;
    int got;

    if (sorter->run_count > 0) {
        if (!sorter->finished)
            return 0;
        got = merge_next(sorter, ret_ops, ret_count);
        return got < 0 ? sorter_error(sorter, got) : got;
    }
    count = memory_take(sorter, sorter->floor_ns, sorter->finished);
    if (count == 0)
        return 0;
    *ret_ops = sorter->piece;
    *ret_count = count;
    return 1;
}

void trace_sorter_disorder(const struct trace_sorter *sorter, uint64_t *ret_backward_steps,
                           uint64_t *ret_largest_step_ns)
{
    *ret_backward_steps = sorter->backward_steps;
    *ret_largest_step_ns = sorter->largest_step_ns;
}
