/* SPDX-License-Identifier: MIT */
/*
 * One conversion's export side as the core makes it: convert/exporter.h is what an exporter
 * sees. Buffered bytes go to a trace_sink; tables and metadata are the import's. One thread.
 */
#ifndef CONVERT_EXPORT_H
#define CONVERT_EXPORT_H

#include "convert/exporter.h"
#include "convert/import.h"

#define EXPORT_BUFFER_BYTES (1u << 20)

struct export
{
    struct import *import;
    const struct exporter *exporter;
    void *state;
    bool began;
    struct trace_sink sink;
    bool sink_open;
    uint8_t *buffer;
    size_t used;
    uint64_t bytes; /* written, buffered ones included */
    int error;
    struct kinds skipped, lost_fields;
    char *notes[IMPORT_NOTES_MAX];
    size_t note_count;
    bool has_wall; /* a reading of the wall clock that export_wall has not given yet */
    int64_t wall_tape_ns;
    uint64_t wall_ns;
};

/* The sink is taken over, also on failure. conf belongs to the caller and outlives the export.
 */
int export_open(struct export *export, struct import *import, const struct exporter *exporter,
                const void *conf, struct trace_sink *sink);
int export_ops(struct export *export, const struct trace_op *ops, size_t count);
/* keep: the tail is written and the output put in place; else it is removed. Frees everything
 * but the counts and notes, which export_release does. */
int export_close(struct export *export, bool keep);
void export_release(struct export *export);

#endif
