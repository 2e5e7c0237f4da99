/* SPDX-License-Identifier: MIT */
#include "convert/import.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/input.h"

void import_init(struct import *import, const struct import_options *options, uint64_t skip_bad,
                 int (*sink)(void *context, const struct trace_op *ops, size_t count),
                 void *sink_context, struct diag *diag)
{
    memset(import, 0, sizeof(*import));
    catalog_init(&import->tables);
    import->options = *options;
    import->skip_bad = skip_bad;
    import->sink = sink;
    import->sink_context = sink_context;
    import->diag = diag;
}

void import_release(struct import *import)
{
    free(import->walls);
    catalog_release(&import->tables);
    kinds_release(&import->skipped);
    kinds_release(&import->lost);
    for (size_t i = 0; i < import->note_count; i++)
        free(import->notes[i]);
    for (size_t i = 0; i < import->meta_count; i++) {
        free(import->meta[i].key);
        free(import->meta[i].value);
    }
    free(import->meta);
    memset(import, 0, sizeof(*import));
}

const struct import_options *import_options(const struct import *import)
{
    return &import->options;
}

struct diag *import_diag(struct import *import)
{
    return import->diag;
}

/* ---- tables --------------------------------------------------------------------------- */

int import_file(struct import *import, const char *path, size_t length, uint32_t *ret_file)
{
    int err;

    length = strnlen(path, length);
    err = catalog_file(&import->tables, path, length, ret_file);
    if (err == -E2BIG)
        return diag_set(import->diag, err, "a path of %zu bytes, or too many files", length);
    return err < 0 ? diag_errno(import->diag, err, "file table") : 0;
}

int import_device(struct import *import, uint32_t major, uint32_t minor, uint32_t *ret_file)
{
    struct trace_file *file;
    char path[32];
    int length = snprintf(path, sizeof(path), "%u,%u", major, minor);
    int err = import_file(import, path, (size_t)length, ret_file);

    if (err < 0)
        return err;
    file = catalog_file_at(&import->tables, *ret_file);
    file->kind = TRACE_FILE_BLOCK;
    file->device = (uint64_t)major << 20 | minor;
    return 0;
}

int import_file_facts(struct import *import, uint32_t index, const struct trace_file *facts)
{
    struct trace_file *file = catalog_file_at(&import->tables, index);

    if (!file)
        return diag_set(import->diag, -EINVAL, "file %u is not in the table", index);
    if (facts->size_bytes != TRACE_UNKNOWN_U64)
        file->size_bytes = facts->size_bytes;
    if (facts->inode)
        file->inode = facts->inode;
    if (facts->device)
        file->device = facts->device;
    if (facts->mode)
        file->mode = facts->mode;
    if (facts->kind != TRACE_FILE_UNKNOWN && facts->kind < TRACE_FILE_KIND_COUNT)
        file->kind = facts->kind;
    file->flags |= facts->flags;
    return 0;
}

int import_stream(struct import *import, uint32_t pid, uint32_t tid, const char *comm,
                  size_t comm_length, uint32_t *ret_stream)
{
    int err = catalog_stream(&import->tables, pid, tid, comm ? comm : "",
                             comm ? strnlen(comm, comm_length) : 0, ret_stream);

    return err < 0 ? diag_errno(import->diag, err, "stream table") : 0;
}

/* ---- ops ------------------------------------------------------------------------------ */

int import_flush(struct import *import)
{
    size_t count = import->batch_count;

    import->batch_count = 0;
    if (!count)
        return 0;
    if (input_interrupted())
        return diag_set(import->diag, -EINTR, "interrupted");
    return import->sink(import->sink_context, import->batch, count);
}

void import_begin_run(struct import *import, int64_t shift_ns, bool align_start)
{
    import->runs++;
    import->run_ops = 0;
    import->shift_ns = shift_ns;
    import->align_start = align_start;
    import->batch_base = import->batch_next;
}

/* Where the op stands among those of all runs. */
static void op_place(struct import *import, struct trace_op *op)
{
    if (import->run_ops++ == 0 && import->align_start)
        import->shift_ns -= op->issue_ns;
    op->issue_ns += import->shift_ns;
    if (op->due_ns != TRACE_UNKNOWN_I64)
        op->due_ns += import->shift_ns;
    if (op->batch != TRACE_UNKNOWN_U64) {
        op->batch += import->batch_base;
        if (op->batch >= import->batch_next)
            import->batch_next = op->batch + 1;
    }
    /* An importer that knows when it completed need not say how exactly. */
    if (op->latency_ns != TRACE_UNKNOWN_U64 && op->completion == TRACE_COMPLETION_UNKNOWN)
        op->completion = TRACE_COMPLETION_EXACT;
}

/* What is wrong with the op as a fact of the source: a kind for the report, else NULL. */
static const char *op_fault(const struct trace_op *op)
{
    if (op->issue_ns > IMPORT_TIME_MAX / 2 || op->issue_ns < -IMPORT_TIME_MAX / 2)
        return "time out of range";
    if (op->length > (uint64_t)INT64_MAX)
        return "length beyond 2^63";
    if (op->offset != TRACE_UNKNOWN_U64 &&
        (op->offset > (uint64_t)INT64_MAX || op->offset + op->length > (uint64_t)INT64_MAX))
        return "range beyond 2^63";
    if (op->latency_ns != TRACE_UNKNOWN_U64 && op->latency_ns > (uint64_t)IMPORT_TIME_MAX)
        return "latency out of range";
    return NULL;
}

static bool op_is_valid(const struct import *import, const struct trace_op *op)
{
    const struct catalog *tables = &import->tables;

    return op->kind < TRACE_OP_COUNT && op->api < TRACE_API_COUNT &&
           op->completion < TRACE_COMPLETION_COUNT && op->cause < TRACE_CAUSE_COUNT &&
           (op->file == TRACE_NONE_U32 || op->file < tables->file_count) &&
           (op->file2 == TRACE_NONE_U32 || op->file2 < tables->file_count) &&
           (op->stream == TRACE_NONE_U32 || op->stream < tables->stream_count);
}

int import_op(struct import *import, const struct trace_op *op)
{
    const char *fault = op_fault(op);

    if (fault) {
        import_skip(import, fault, 1);
        return 0;
    }
    if (!op_is_valid(import, op))
        return diag_set(import->diag, -EINVAL, "an op that names what is not in the tables");
    import->ops++;
    import->op_count[op->kind]++;
    import->op_bytes[op->kind] += trace_op_bytes(op);
    import->batch[import->batch_count] = *op;
    op_place(import, &import->batch[import->batch_count]);
    if (++import->batch_count < IMPORT_BATCH)
        return 0;
    return import_flush(import);
}

/* ---- what else there is to say -------------------------------------------------------- */

void import_skip(struct import *import, const char *kind, uint64_t count)
{
    kinds_add(&import->skipped, kind, count);
}

void import_lost(struct import *import, const char *kind, uint64_t count)
{
    if (count)
        kinds_add(&import->lost, kind, count);
}

void import_note(struct import *import, const char *format, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    if (!text)
        return;
    for (size_t i = 0; i < import->note_count; i++)
        if (!strcmp(import->notes[i], text)) {
            free(text);
            return;
        }
    if (import->note_count == IMPORT_NOTES_MAX) {
        free(text);
        import_skip(import, "note beyond the first 64", 1);
        return;
    }
    import->notes[import->note_count++] = text;
}

int import_bad(struct import *import, const struct input *input, uint64_t column,
               const char *format, ...)
{
    char words[512], where[512];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    if (column)
        snprintf(where, sizeof(where), "%s:%llu:%llu", input_name(input),
                 (unsigned long long)input_line_number(input), (unsigned long long)column);
    else
        snprintf(where, sizeof(where), "%s: byte %llu", input_name(input),
                 (unsigned long long)input_offset(input));
    if (import->bad >= import->skip_bad)
        return diag_set(import->diag, -EBADMSG, "%s: %s", where, words);
    if (import->bad++ == 0)
        snprintf(import->first_bad, sizeof(import->first_bad), "%.120s: %.120s", where, words);
    return 0;
}

const char *import_meta_value(const struct import *import, const char *key)
{
    for (size_t i = 0; i < import->meta_count; i++)
        if (!strcmp(import->meta[i].key, key))
            return import->meta[i].value;
    return NULL;
}

/* The wall clock of a run: it places the run among the others. */
static void meet_wall(struct import *import, const char *value)
{
    char *end;
    long long wall_ns;

    errno = 0;
    wall_ns = strtoll(value, &end, 10);
    if (errno || end == value || *end || wall_ns > IMPORT_TIME_MAX ||
        wall_ns < -IMPORT_TIME_MAX)
        return;
    if (!import->wall_known && import->runs <= 1) {
        import->wall_known = true;
        import->wall_ns = wall_ns;
    } else if (import->wall_known && import->runs > 1 && !import->align_start &&
               import->run_ops == 0) {
        import->shift_ns += wall_ns - import->wall_ns;
    }
}

int import_wall(struct import *import, int64_t at_ns, uint64_t wall_ns)
{
    /* Inputs that begin together are not where their clocks say. */
    if (import->align_start || at_ns > IMPORT_TIME_MAX / 2 || at_ns < -IMPORT_TIME_MAX / 2)
        return 0;
    if (!import->walls) {
        import->walls = calloc(IMPORT_WALLS_MAX, sizeof(*import->walls));
        import->wall_stride = 1;
    }
    if (!import->walls)
        return diag_errno(import->diag, -ENOMEM, "clock readings");
    if (++import->wall_skipped < import->wall_stride)
        return 0;
    import->wall_skipped = 0;
    if (import->wall_count == IMPORT_WALLS_MAX) {
        for (size_t i = 0; i < IMPORT_WALLS_MAX / 2; i++)
            import->walls[i] = import->walls[2 * i];
        import->wall_count /= 2;
        import->wall_stride *= 2;
    }
    import->walls[import->wall_count++] =
        (struct import_wall){at_ns + import->shift_ns, wall_ns};
    return 0;
}

static int compare_walls(const void *a, const void *b)
{
    const struct import_wall *x = a, *y = b;

    return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

void import_walls_sort(struct import *import)
{
    if (import->wall_count)
        qsort(import->walls, import->wall_count, sizeof(*import->walls), compare_walls);
}

int import_meta(struct import *import, const char *key, const char *value)
{
    struct import_pair *grown;
    char *copy, *key_copy;

    if (!strcmp(key, TRACE_META_START_WALL))
        meet_wall(import, value);
    for (size_t i = 0; i < import->meta_count; i++)
        if (!strcmp(import->meta[i].key, key)) {
            /* What the first input said stands. */
            if (import->runs > 1)
                return 0;
            copy = strdup(value);
            if (!copy)
                return diag_errno(import->diag, -ENOMEM, "metadata");
            free(import->meta[i].value);
            import->meta[i].value = copy;
            return 0;
        }
    copy = strdup(value);
    key_copy = strdup(key);
    grown = copy && key_copy ? realloc(import->meta, (import->meta_count + 1) * sizeof(*grown))
                             : NULL;
    if (!grown) {
        free(copy);
        free(key_copy);
        return diag_errno(import->diag, -ENOMEM, "metadata");
    }
    import->meta = grown;
    grown[import->meta_count++] = (struct import_pair){key_copy, copy};
    return 0;
}

void import_meta_drop(struct import *import, const char *key)
{
    for (size_t i = 0; i < import->meta_count; i++)
        if (!strcmp(import->meta[i].key, key)) {
            free(import->meta[i].key);
            free(import->meta[i].value);
            import->meta[i] = import->meta[--import->meta_count];
            return;
        }
}

int import_cannot_tell(struct import *import, const char *word)
{
    size_t length = strlen(import->cannot_tell), word_length = strlen(word);

    for (const char *at = import->cannot_tell; *at;) {
        size_t span = strcspn(at, ",");

        if (span == word_length && !memcmp(at, word, span))
            return 0;
        at += span + (at[span] == ',');
    }
    if (length + word_length + 2 > sizeof(import->cannot_tell))
        return diag_set(import->diag, -E2BIG, "too many cannot_tell words");
    snprintf(import->cannot_tell + length, sizeof(import->cannot_tell) - length, "%s%s",
             length ? "," : "", word);
    return 0;
}
