/* SPDX-License-Identifier: MIT */
/*
 * The shape most published trace sets share: a text line is an op, a column is a field of it.
 * An importer of such a set is a rows_spec and two lines of code.
 */
#ifndef CONVERT_ROWS_H
#define CONVERT_ROWS_H

#include "convert/fields.h"
#include "convert/importer.h"

#define ROWS_MAX_FIELDS 40
#define ROWS_NONE       (-1)

struct rows_word {
    const char *text;
    int kind; /* enum trace_op_kind, or ROWS_NONE: leave the row out, counted as skip */
    const char *skip;
};

struct rows_spec {
    char separator;                      /* as fields_split */
    unsigned int min_fields, max_fields; /* max_fields 0: extra ones are allowed and ignored */
    /* Column numbers from 0; ROWS_NONE = the set has no such column. */
    int time, latency, op, offset, length, file, stream;
    uint64_t time_num, time_den;       /* ns a unit of the time column */
    uint64_t latency_num, latency_den; /* likewise */
    uint64_t offset_unit, length_unit; /* bytes; --sector-size replaces those above 1 */
    uint64_t time_base;    /* subtracted from whole time stamps at or above it: another epoch */
    uint64_t time_grid_ns; /* what the source's stamps can tell apart; 0 = 1 ns */
    const struct rows_word *words; /* what the op column may say; ended by a NULL text */
    bool words_any_case;
    bool time_is_completion;   /* issue = time - latency */
    const char *file_prefix;   /* "disk": files are named disk0, disk1 ...; "" = as it stands */
    const char *file_name;     /* where there is no file column: the one file's name */
    bool preamble;             /* lines that do not begin with a digit are text to pass over */
    const char *const *header; /* MAY: names of a header line, any case; NULL-ended */
    const char *comment;       /* MAY: lines that begin so are passed over: "#" */
    uint8_t api;               /* enum trace_api */
    uint8_t file_kind;         /* enum trace_file_kind */
    /* Sniffing: whole numbers the time column must lie between (0, 0 = any). */
    uint64_t least_time, most_time;
    bool time_needs_point, time_forbids_point;
    /* MAY: looks at the fields of a row (and changes op): 0 = take it, 1 = leave it out
     * (already counted), else -errno with the diag set. */
    int (*row)(const struct rows_spec *spec, const struct field *fields, size_t count,
               struct trace_op *op, struct input *input, struct import *import);
};

/* An importer's run: every input to its end. --time-unit, --sector-size and --device apply. */
int rows_run(const struct rows_spec *spec, struct input **inputs, size_t count,
             struct import *import);

/*
 * likely when the whole lines in bytes (up to 32, at least one) fit spec but for one in eight, else
 * IMPORT_NO. A header line that fits spec->header makes it IMPORT_SURE.
 */
int rows_sniff(const struct rows_spec *spec, const uint8_t *bytes, size_t length, bool at_end,
               int likely);

/* For sniffers: the next line of bytes from *at on, without its newline; false at the end or
 * when the last line is cut (no newline and not at_end). */
bool rows_next_line(const uint8_t *bytes, size_t length, bool at_end, size_t *at,
                    const char **ret_line, size_t *ret_length);

#endif
