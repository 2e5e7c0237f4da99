/* SPDX-License-Identifier: MIT */
/* A line of a table as fields, quotes taken off. Grows with the longest line; one thread. */
#ifndef CONVERT_CSV_ROW_H
#define CONVERT_CSV_ROW_H

#include "convert/csv_columns.h"
#include "convert/fields.h"
#include "convert/importer.h"

#define CSV_QUOTED_MAX (1u << 20) /* bytes of a quoted field that spans lines */

struct csv_row {
    struct field fields[CSV_COLUMNS_MAX];
    size_t count; /* fields of the line, those past the array counted too */
    char *joined; /* a row that spans lines, or whose quotes were taken off */
    size_t joined_capacity;
};

/*
 * Reads the next line that is not blank and does not begin with comment ("" = none) and splits
 * it at separator (' ' = runs of blanks and tabs). 1, 0 at the end, -errno; a quote that never
 * closes is import_bad: 1 with count 0 when that is skipped.
 */
int csv_row_next(struct csv_row *row, struct input *input, struct import *import,
                 char separator, const char *comment);
/* Splits one line that has no quotes spanning lines; for headers and sniffing. */
size_t csv_row_split(struct field *fields, char *line, size_t length, char separator);
void csv_row_release(struct csv_row *row);

#endif
