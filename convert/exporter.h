/* SPDX-License-Identifier: MIT */
/*
 * The contract of an exporter: a normalised stream of operations in, another tool's format out.
 *
 * convert/to_NAME.c defines `const struct exporter exporter_NAME`; make writes the registry.
 * The man page's table says which fields each format keeps; what the format cannot hold is
 * counted by kind through export_lost_field or export_skip, and printed.
 */
#ifndef CONVERT_EXPORTER_H
#define CONVERT_EXPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traces/diag.h"
#include "traces/opts.h"
#include "traces/trace.h"

struct export; /* one conversion: the tables and where the bytes go */

/* Ops arrive sorted by issue time, time 0 at the first I/O op. Table entries named by an op exist
 * by the time the op arrives and never move. */
const struct trace_file *export_file(const struct export *export, uint32_t file); /* NULL = none */
const struct trace_stream *export_stream(const struct export *export, uint32_t stream);
const char *export_meta(const struct export *export, const char *key);
/* Walk all keys: 0 .. until NULL. Complete by the time of begin. */
const char *export_meta_at(const struct export *export, size_t index, const char **ret_value);
/* Events the source lost, by kind: 0 .. until NULL. Complete by the time of begin. */
const char *export_lost_at(const struct export *export, size_t index, uint64_t *ret_count);
/* What the wall clock (Unix ns) read by the ops that come next: each reading once, false when
 * there is none. */
bool export_wall(struct export *export, int64_t *ret_tape_ns, uint64_t *ret_wall_ns);
/* Buffered bytes to the output; -errno is kept and returned by every later call too. */
int export_write(struct export *export, const void *bytes, size_t length);
int export_printf(struct export *export, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* An op that the format cannot hold was left out; a field of an op that it cannot hold. */
void export_skip(struct export *export, const char *kind, uint64_t count);
void export_lost_field(struct export *export, const char *kind, uint64_t count);
void export_note(struct export *export, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct diag *export_diag(struct export *export);

struct exporter {
    const char *name;
    const char *summary;
    const char *help;
    const char *unavailable;
    const char *suffixes; /* MAY: output name endings that choose it, ".csv" (blank separated) */
    /* MUST. begin allocates *ret_state (may stay NULL); ops in order; end writes the tail. Each 0 or
     * -errno. release is called once, always. */
    int (*begin)(struct export *export, const void *conf, void **ret_state);
    int (*ops)(void *state, struct export *export, const struct trace_op *ops, size_t count);
    int (*end)(void *state, struct export *export);
    void (*release)(void *state);
    const struct opt *opts; /* MAY: given as --to NAME:key=val,... */
    size_t conf_size;
};

const struct exporter *exporter_at(unsigned int index);
const struct exporter *exporter_find(const char *name, size_t length);

#endif
