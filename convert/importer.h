/* SPDX-License-Identifier: MIT */
/*
 * The contract of an importer: bytes of somebody's trace format in, operations out.
 *
 * convert/from_NAME.c defines `const struct importer importer_NAME`; make writes the registry
 * from the file names (from_blktrace.c is format "blktrace"). It needs a sample pair
 * tests/samples/NAME.in (any suffix after .in) and tests/samples/NAME.out (what `iotape dump`
 * prints of it): the conformance run fails without one.
 *
 * An importer gets byte streams, never paths, so one fuzz target drives them all. It reports
 * each thing it could not represent by kind through import_skip, and a line it cannot parse through
 * import_bad, which applies --skip-bad. It prints nothing.
 *
 * Bytes are hostile: no struct casts, no fixed line buffers, every length against a named limit,
 * 64-bit arithmetic that saturates or is refused, integers of time kept as integers.
 */
#ifndef CONVERT_IMPORTER_H
#define CONVERT_IMPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traces/diag.h"
#include "traces/opts.h"
#include "traces/trace.h"

/* ---- what an importer reads from ------------------------------------------------------ */

struct input; /* one already decompressed stream, with its name and position */

const char *input_name(const struct input *input);
/* Up to bytes at the read position without consuming: a short count only at the end. The pointer
 * is valid until the next input call. bytes <= INPUT_PEEK_MAX. -errno on a read or decompression error
 * (diag set). */
#define INPUT_PEEK_MAX (1u << 20)
int64_t input_peek(struct input *input, const uint8_t **ret_bytes, size_t bytes);
void input_skip(struct input *input, size_t bytes); /* of bytes that were peeked */
/* The next line without its newline (and without '\r'), NUL-terminated, valid until the next
 * input call; 1, or 0 at the end. Any length up to INPUT_LINE_MAX; beyond: -E2BIG. *ret_length may
 * include NULs of binary input. */
#define INPUT_LINE_MAX (64u << 20)
int input_line(struct input *input, char **ret_line, size_t *ret_length);
uint64_t input_line_number(const struct input *input); /* of the line last returned, from 1 */
uint64_t input_offset(const struct input *input);      /* bytes consumed (decompressed) */

/* ---- where an importer delivers to ------------------------------------------------------ */

struct import; /* one conversion: tables, ops, counts */

/* Tables with look-up: the same path or (pid, tid, comm) gives the same number. */
int import_file(struct import *import, const char *path, size_t length, uint32_t *ret_file)
    TRACE_MUST_CHECK;
/* "8,0" devices of block traces: path "8,0" until --map or a device name gives a better one. */
int import_device(struct import *import, uint32_t major, uint32_t minor, uint32_t *ret_file)
    TRACE_MUST_CHECK;
/* Fill in what is known of a file: entries of set->... that are not unknown replace the old. */
int import_file_facts(struct import *import, uint32_t file, const struct trace_file *facts)
    TRACE_MUST_CHECK;
int import_stream(struct import *import, uint32_t pid, uint32_t tid, const char *comm,
                  size_t comm_length, uint32_t *ret_stream) TRACE_MUST_CHECK;

/*
 * One operation. issue_ns is on the source's own clock (absolute is fine: Unix ns, ns since boot);
 * the core subtracts the first I/O op's. Order does not matter: the core sorts. The core rejects
 * offset + length above 2^63 and counts it.
 */
int import_op(struct import *import, const struct trace_op *op) TRACE_MUST_CHECK;

/* Something of the source that a tape does not hold or that was left out on purpose, by kind
 * ("merge event", "socket read"): counted and reported. kind is a string constant. */
void import_skip(struct import *import, const char *kind, uint64_t count);
/* Events the source says it lost. */
void import_lost(struct import *import, const char *kind, uint64_t count);
/* A thing to tell the user once, in the report. */
void import_note(struct import *import, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/*
 * A line or record that cannot be parsed. Returns 0 when --skip-bad still allows it (go on), else
 * -EBADMSG with the diag "NAME:LINE:COLUMN: expected ..." (line input) or "NAME: byte OFFSET: ..."
 * (column 0 and line 0). Hand the return value up.
 */
int import_bad(struct import *import, const struct input *input, uint64_t column,
               const char *format, ...) __attribute__((format(printf, 4, 5)));
/* TRACE_META_START_WALL is the Unix ns at the importer's own time 0 ("0" when issue_ns is Unix
 * time): give it before the input's first op; the core shifts it to the tape's time 0. */
int import_meta(struct import *import, const char *key, const char *value) TRACE_MUST_CHECK;
/* What the wall clock (Unix ns) read at at_ns, on the importer's own clock, beside START_WALL: a
 * tape keeps such readings, of very many an even part. 0 or -ENOMEM. */
int import_wall(struct import *import, int64_t at_ns, uint64_t wall_ns) TRACE_MUST_CHECK;
/* What this source cannot tell: a TRACE_META_CANNOT_TELL word, "latency". */
int import_cannot_tell(struct import *import, const char *word) TRACE_MUST_CHECK;

/* Options every importer may look at (set by the command line or left at "not given"). */
struct import_options {
    uint64_t time_unit_ns_num, time_unit_ns_den; /* --time-unit; 0/0 = the format's own */
    uint64_t sector_bytes;                       /* --sector-size; 0 = the format's own (512) */
    char event;                                  /* --event Q|D|C, 0 = automatic */
    const char *device;                          /* --device: only this one ("8,0", a disk id) */
    const char *epoch;                           /* --epoch, format-specific; NULL */
    const char *columns;                         /* --columns, csv only; NULL */
    bool all_fds;                                /* keep sockets, pipes (strace); --all-fds */
    bool assume_result;                          /* unused by importers */
};
const struct import_options *import_options(const struct import *import);
struct diag *import_diag(struct import *import);

/* ---- the importer ---------------------------------------------------------------------- */

enum import_confidence {
    IMPORT_NO = 0,
    IMPORT_MAYBE = 10,  /* the shape fits, others may fit as well */
    IMPORT_LIKELY = 50, /* a header line or several telling columns */
    IMPORT_SURE = 100,  /* a magic number or an unmistakable first line */
};

enum importer_flags {
    /* Takes all inputs of one trace at once (per-CPU files): run gets every input. Otherwise run
     * is called once an input. */
    IMPORTER_JOINS = 1u << 0,
    /* The input argument is not a file but text (synth). One input whose bytes are the text. */
    IMPORTER_TEXT = 1u << 1,
    /* The input is a directory (ocf iotrace): inputs are its files, names kept. */
    IMPORTER_DIRECTORY = 1u << 2,
    /* Never chosen by content (csv without a header, fiojob ...): needs --from. */
    IMPORTER_FORCED = 1u << 3,
};

struct importer {
    const char *name;    /* MUST be the file's name without from_ */
    const char *summary; /* MUST: one line */
    const char *help;    /* MAY: paragraphs for --help-format */
    const char *unavailable;
    unsigned int flags;
    /* How sure, from the first bytes (up to 64 KiB, at_end when that is all there is). */
    int (*sniff)(const uint8_t *bytes, size_t length, bool at_end);
    /* Reads inputs to their ends. 0 or -errno with the diag set. conf is filled from opts. */
    int (*run)(struct input **inputs, size_t count, struct import *import, const void *conf);
    const struct opt *opts; /* MAY: given as --from NAME:key=val,... */
    size_t conf_size;
};

const struct importer *importer_at(unsigned int index); /* sorted by name; NULL after the last */
const struct importer *importer_find(const char *name, size_t length);

#endif
