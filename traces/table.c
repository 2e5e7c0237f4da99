/* SPDX-License-Identifier: MIT */
/* The tables a reader gathers. */
#include "traces/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_CHUNK  1024 /* entries */
#define STRING_CHUNK (64 * 1024)

struct table_chunk {
    struct table_chunk *next;
    size_t used, capacity;
    char text[];
};

static char *string_room(struct tables *tables, size_t bytes)
{
    struct table_chunk *chunk = tables->strings;
    size_t capacity = bytes > STRING_CHUNK / 4 ? bytes : STRING_CHUNK;
    char *text;

    if (!chunk || chunk->capacity - chunk->used < bytes) {
        chunk = malloc(sizeof(*chunk) + capacity);
        if (!chunk)
            return NULL;
        tables->memory_bytes += capacity;
        chunk->used = 0;
        chunk->capacity = capacity;
        chunk->next = tables->strings;
        tables->strings = chunk;
    }
    text = chunk->text + chunk->used;
    chunk->used += bytes;
    return text;
}

static const char *string_copy(struct tables *tables, const uint8_t *bytes, size_t length)
{
    char *text = string_room(tables, length + 1);

    if (!text)
        return NULL;
    if (length > 0)
        memcpy(text, bytes, length);
    text[length] = '\0';
    return text;
}

void tables_release(struct tables *tables)
{
    for (uint32_t at = 0; at < tables->file_count; at += TABLE_CHUNK)
        free(tables->files[at / TABLE_CHUNK]);
    for (uint32_t at = 0; at < tables->stream_count; at += TABLE_CHUNK)
        free(tables->streams[at / TABLE_CHUNK]);
    for (size_t i = 0; i < tables->meta_count; i++) {
        free(tables->meta[i].key);
        free(tables->meta[i].value);
    }
    while (tables->strings) {
        struct table_chunk *next = tables->strings->next;

        free(tables->strings);
        tables->strings = next;
    }
    free(tables->files);
    free(tables->streams);
    free(tables->meta);
    *tables = (struct tables)TABLES_INIT;
}

const struct trace_file *tables_file(const struct tables *tables, uint32_t index)
{
    if (index >= tables->file_count)
        return NULL;
    return &tables->files[index / TABLE_CHUNK][index % TABLE_CHUNK];
}

const struct trace_stream *tables_stream(const struct tables *tables, uint32_t index)
{
    if (index >= tables->stream_count)
        return NULL;
    return &tables->streams[index / TABLE_CHUNK][index % TABLE_CHUNK];
}

const char *tables_meta(const struct tables *tables, const char *key)
{
    for (size_t i = 0; i < tables->meta_count; i++)
        if (strcmp(tables->meta[i].key, key) == 0)
            return tables->meta[i].value;
    return NULL;
}

/* A zeroed entry at the end of a chunked array of count entries; NULL: no memory. */
static void *entry_add(void ***chunks, uint32_t count, size_t entry_bytes)
{
    uint32_t chunk = count / TABLE_CHUNK;
    void **more;

    if (count % TABLE_CHUNK == 0) {
        /* The list of chunks grows by doubling, at the powers of two. */
        if ((chunk & (chunk - 1)) == 0) {
            more = realloc(*chunks, (chunk ? chunk * 2 : 1) * sizeof(**chunks));
            if (!more)
                return NULL;
            *chunks = more;
        }
        (*chunks)[chunk] = calloc(TABLE_CHUNK, entry_bytes);
        if (!(*chunks)[chunk])
            return NULL;
    }
    return (char *)(*chunks)[chunk] + (count % TABLE_CHUNK) * entry_bytes;
}

static int file_add(struct tables *tables, const struct trace_file *file)
{
    struct trace_file *entry;

    entry = entry_add((void ***)&tables->files, tables->file_count, sizeof(*entry));
    if (!entry)
        return -ENOMEM;
    *entry = *file;
    tables->memory_bytes += sizeof(*entry);
    tables->file_count++;
    return 0;
}

static int stream_add(struct tables *tables, const struct trace_stream *stream)
{
    struct trace_stream *entry;

    entry = entry_add((void ***)&tables->streams, tables->stream_count, sizeof(*entry));
    if (!entry)
        return -ENOMEM;
    *entry = *stream;
    tables->memory_bytes += sizeof(*entry);
    tables->stream_count++;
    return 0;
}

static int file_fill(struct tables *tables)
{
    struct trace_file file = {
        .size_bytes = TRACE_UNKNOWN_U64,
        .ops = TRACE_UNKNOWN_U64,
        .bytes = TRACE_UNKNOWN_U64,
        .max_end = TRACE_UNKNOWN_U64,
    };
    char name[32];
    int length = snprintf(name, sizeof(name), "unknown-file-%u", tables->file_count);

    file.path = string_copy(tables, (const uint8_t *)name, (size_t)length);
    if (!file.path)
        return -ENOMEM;
    return file_add(tables, &file);
}

int tables_fill(struct tables *tables, uint32_t files, uint32_t streams)
{
    const struct trace_stream nobody = {.comm = ""};
    uint64_t missing = 0;
    int err;

    if (files > tables->file_count)
        missing += files - tables->file_count;
    if (streams > tables->stream_count)
        missing += streams - tables->stream_count;
    if (missing == 0)
        return 0;
    if (tables->missing + missing > TABLE_MISSING_MAX)
        return -EBADMSG;
    tables->missing += missing;
    while (tables->file_count < files) {
        err = file_fill(tables);
        if (err < 0)
            return err;
    }
    while (tables->stream_count < streams) {
        err = stream_add(tables, &nobody);
        if (err < 0)
            return err;
    }
    return 1;
}

/* Front-coded: the start that this path shares with the one before is not repeated. */
static int file_take(struct tables *tables, struct cursor *in, bool add, const char **previous,
                     size_t *previous_length)
{
    struct trace_file file = {
        .ops = TRACE_UNKNOWN_U64, .bytes = TRACE_UNKNOWN_U64, .max_end = TRACE_UNKNOWN_U64};
    uint64_t shared = cursor_varint(in), length = cursor_varint(in);
    const uint8_t *rest = cursor_bytes(in, length);
    char *path;

    file.size_bytes = cursor_varint(in) - 1;
    file.inode = cursor_varint(in);
    file.device = cursor_varint(in);
    file.mode = (uint32_t)cursor_varint(in);
    file.flags = (uint32_t)cursor_varint(in);
    file.kind = cursor_u8(in);
    if (in->failed || !rest || shared > *previous_length || shared + length > TABLE_PATH_MAX ||
        memchr(rest, '\0', length) || file.kind >= TRACE_FILE_KIND_COUNT)
        return -EBADMSG;
    path = string_room(tables, shared + length + 1);
    if (!path)
        return -ENOMEM;
    memcpy(path, *previous, shared);
    memcpy(path + shared, rest, length);
    path[shared + length] = '\0';
    *previous = file.path = path;
    *previous_length = shared + length;
    return add ? file_add(tables, &file) : 0;
}

int tables_take_files(struct tables *tables, struct cursor *in, uint32_t first, uint32_t count)
{
    const char *previous = "";
    size_t previous_length = 0;
    uint64_t text_bytes = 0;
    int err;

    err = tables_fill(tables, first, 0);
    for (uint32_t i = 0; i < count && err >= 0; i++) {
        err =
            file_take(tables, in, first + i >= tables->file_count, &previous, &previous_length);
        text_bytes += previous_length + 1;
        if (err >= 0 &&
            (text_bytes > TABLE_BLOCK_TEXT_MAX || tables->memory_bytes > TABLE_MEMORY_MAX))
            err = -EBADMSG;
    }
    return err < 0 ? err : 0;
}

static int stream_take(struct tables *tables, struct cursor *in, bool add)
{
    struct trace_stream stream = {0};
    const uint8_t *comm;
    uint64_t length;

    stream.pid = (uint32_t)cursor_varint(in);
    stream.tid = (uint32_t)cursor_varint(in);
    stream.ppid = (uint32_t)cursor_varint(in);
    length = cursor_varint(in);
    comm = cursor_bytes(in, length);
    if (in->failed || !comm || length > TABLE_PATH_MAX || memchr(comm, '\0', length))
        return -EBADMSG;
    if (!add)
        return 0;
    stream.comm = string_copy(tables, comm, length);
    if (!stream.comm)
        return -ENOMEM;
    return stream_add(tables, &stream);
}

int tables_take_streams(struct tables *tables, struct cursor *in, uint32_t first,
                        uint32_t count)
{
    int err;

    err = tables_fill(tables, 0, first);
    for (uint32_t i = 0; i < count && err >= 0; i++) {
        err = stream_take(tables, in, first + i >= tables->stream_count);
        if (err >= 0 && tables->memory_bytes > TABLE_MEMORY_MAX)
            err = -EBADMSG;
    }
    return err < 0 ? err : 0;
}

static int meta_set(struct tables *tables, char *key, char *value)
{
    struct table_meta *more;

    for (size_t i = 0; i < tables->meta_count; i++) {
        if (strcmp(tables->meta[i].key, key) != 0)
            continue;
        free(tables->meta[i].value);
        tables->meta[i].value = value;
        free(key);
        return 0;
    }
    if (tables->meta_count >= TABLE_KEYS_MAX)
        return -EBADMSG;
    more = realloc(tables->meta, (tables->meta_count + 1) * sizeof(*more));
    if (!more)
        return -ENOMEM;
    tables->meta = more;
    more[tables->meta_count++] = (struct table_meta){.key = key, .value = value};
    return 0;
}

static int meta_take(struct tables *tables, struct cursor *in)
{
    uint64_t key_length = cursor_varint(in);
    const uint8_t *key = cursor_bytes(in, key_length);
    uint64_t value_length = cursor_varint(in);
    const uint8_t *value = cursor_bytes(in, value_length);
    char *key_copy, *value_copy;
    int err = -ENOMEM;

    if (in->failed || !key || !value || key_length == 0 || key_length > TABLE_PATH_MAX ||
        value_length > TABLE_VALUE_MAX || memchr(key, '\0', key_length) ||
        memchr(value, '\0', value_length))
        return -EBADMSG;
    key_copy = strndup((const char *)key, key_length);
    value_copy = strndup((const char *)value, value_length);
    if (key_copy && value_copy)
        err = meta_set(tables, key_copy, value_copy);
    if (err < 0) {
        free(key_copy);
        free(value_copy);
    }
    return err;
}

int tables_take_meta(struct tables *tables, struct cursor *in, uint32_t count)
{
    int err = 0;

    for (uint32_t i = 0; i < count && err == 0; i++)
        err = meta_take(tables, in);
    return err;
}

int tables_take_totals(struct tables *tables, struct cursor *in, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t index = cursor_varint(in), ops = cursor_varint(in);
        uint64_t bytes = cursor_varint(in), max_end = cursor_varint(in) - 1;
        struct trace_file *file;

        if (in->failed)
            return -EBADMSG;
        if (index >= tables->file_count)
            continue;
        file = &tables->files[index / TABLE_CHUNK][index % TABLE_CHUNK];
        file->ops = ops;
        file->bytes = bytes;
        file->max_end = max_end;
    }
    return 0;
}
