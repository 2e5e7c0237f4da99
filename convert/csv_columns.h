/* SPDX-License-Identifier: MIT */
/*
 * What the columns of a table are: from --columns, or from a header line. One list makes the
 * importer, the exporter's header and the manual.
 */
#ifndef CONVERT_CSV_COLUMNS_H
#define CONVERT_CSV_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;

#define CSV_COLUMNS_MAX 64u

enum csv_what {
    CSV_IGNORE,
    CSV_TIME,      /* of issue */
    CSV_COMPLETED, /* time of completion */
    CSV_LATENCY,
    CSV_OP,
    CSV_FILE,
    CSV_OFFSET,
    CSV_LENGTH,
    CSV_RESULT,
    CSV_PID,
    CSV_TID,
    CSV_COMM,
    CSV_API,
    CSV_FLAGS,
    CSV_BATCH,
    CSV_COMPLETION,
    CSV_ARG,
    CSV_FILE2,
    CSV_DUE,
    CSV_SUBMIT,
    CSV_REF,
    CSV_CAUSE,
    CSV_FILE_SIZE,
    CSV_WHAT_COUNT
};

struct csv_column {
    int what;          /* enum csv_what */
    uint64_t num, den; /* ns or bytes a unit; 0/0: not said */
    bool default_unit; /* --time-unit or --sector-size may replace it */
};

struct csv_columns {
    struct csv_column items[CSV_COLUMNS_MAX];
    size_t count;
    bool ours; /* the exporter's own header: every field exact */
};

/* "time:s,op,offset:sector,length,-": -EINVAL with the diag set. */
int csv_columns_parse(struct csv_columns *columns, const char *text, struct diag *diag);
/* Names as a header has them ("Timestamp", "offset_sectors", "size [bytes]"). Unknown names are
 * ignored columns; *ret_known counts the others. */
void csv_columns_header(struct csv_columns *columns, const char *const *names,
                        const size_t *lengths, size_t count, size_t *ret_known);
/* An op can be made of them: an op or none of it, offset and length. */
bool csv_columns_enough(const struct csv_columns *columns);
/* The header of to_csv, with its columns in this order. */
extern const char csv_own_header[];

#endif
