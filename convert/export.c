/* SPDX-License-Identifier: MIT */
#include "convert/export.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int export_open(struct export *export, struct import *import, const struct exporter *exporter,
                const void *conf, struct trace_sink *sink)
{
    int err;

    memset(export, 0, sizeof(*export));
    export->import = import;
    export->exporter = exporter;
    export->sink = *sink;
    export->sink_open = true;
    export->buffer = malloc(EXPORT_BUFFER_BYTES);
    if (!export->buffer)
        return diag_errno(import->diag, -ENOMEM, "output buffer");
    export->began = true;
    err = exporter->begin(export, conf, &export->state);
    return err < 0 ? err : 0;
}

int export_ops(struct export *export, const struct trace_op *ops, size_t count)
{
    int err = export->exporter->ops(export->state, export, ops, count);

    return err < 0 ? err : export->error;
}

bool export_wall(struct export *export, int64_t *ret_tape_ns, uint64_t *ret_wall_ns)
{
    bool has = export->has_wall;

    if (has) {
        *ret_tape_ns = export->wall_tape_ns;
        *ret_wall_ns = export->wall_ns;
    }
    export->has_wall = false;
    return has;
}

static int drain(struct export *export)
{
    size_t used = export->used;

    export->used = 0;
    if (export->error == 0 && used) {
        int err = export->sink.write(export->sink.context, export->buffer, used);

        if (err < 0)
            export->error = diag_errno(export->import->diag, err, "%s",
                                       export->sink.name ? export->sink.name : "output");
    }
    return export->error;
}

int export_close(struct export *export, bool keep)
{
    int err = 0;

    if (export->began) {
        if (keep)
            err = export->exporter->end(export->state, export);
        if (export->exporter->release)
            export->exporter->release(export->state);
        export->began = false;
    }
    if (keep && err == 0)
        err = drain(export);
    if (export->sink_open) {
        int closed = export->sink.close(export->sink.context, keep && err == 0);

        export->sink_open = false;
        if (err == 0 && keep && closed < 0)
            err = diag_errno(export->import->diag, closed, "%s",
                             export->sink.name ? export->sink.name : "output");
    }
    free(export->buffer);
    export->buffer = NULL;
    return err;
}

void export_release(struct export *export)
{
    kinds_release(&export->skipped);
    kinds_release(&export->lost_fields);
    for (size_t i = 0; i < export->note_count; i++)
        free(export->notes[i]);
    export->note_count = 0;
}

const struct trace_file *export_file(const struct export *export, uint32_t file)
{
    return catalog_file_at(&export->import->tables, file);
}

const struct trace_stream *export_stream(const struct export *export, uint32_t stream)
{
    return catalog_stream_at(&export->import->tables, stream);
}

const char *export_meta(const struct export *export, const char *key)
{
    return import_meta_value(export->import, key);
}

const char *export_meta_at(const struct export *export, size_t index, const char **ret_value)
{
    if (index >= export->import->meta_count)
        return NULL;
    *ret_value = export->import->meta[index].value;
    return export->import->meta[index].key;
}

const char *export_lost_at(const struct export *export, size_t index, uint64_t *ret_count)
{
    const struct kinds *lost = &export->import->lost;

    if (index >= lost->count)
        return NULL;
    *ret_count = lost->items[index].count;
    return lost->items[index].kind;
}

int export_write(struct export *export, const void *bytes, size_t length)
{
    const uint8_t *from = bytes;

    export->bytes += length;
    while (export->error == 0 && length) {
        size_t room = EXPORT_BUFFER_BYTES - export->used;
        size_t part = length < room ? length : room;

        memcpy(export->buffer + export->used, from, part);
        export->used += part;
        from += part;
        length -= part;
        if (export->used == EXPORT_BUFFER_BYTES)
            drain(export);
    }
    return export->error;
}

int export_printf(struct export *export, const char *format, ...)
{
    char small[1024], *text = small;
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(small, sizeof(small), format, args);
    va_end(args);
    if (length >= (int)sizeof(small)) {
        va_start(args, format);
        length = vasprintf(&text, format, args);
        va_end(args);
    }
    if (length < 0)
        return export->error = diag_errno(export->import->diag, -ENOMEM, "output");
    export_write(export, text, (size_t)length);
    if (text != small)
        free(text);
    return export->error;
}

void export_skip(struct export *export, const char *kind, uint64_t count)
{
    kinds_add(&export->skipped, kind, count);
}

void export_lost_field(struct export *export, const char *kind, uint64_t count)
{
    kinds_add(&export->lost_fields, kind, count);
}

void export_note(struct export *export, const char *format, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    if (text && export->note_count < IMPORT_NOTES_MAX)
        export->notes[export->note_count++] = text;
    else
        free(text);
}

struct diag *export_diag(struct export *export)
{
    return export->import->diag;
}
