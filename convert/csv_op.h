/* SPDX-License-Identifier: MIT */
/* A row of a table as an op: what from_csv.c sets up once an input, and does with each row. */
#ifndef CONVERT_CSV_OP_H
#define CONVERT_CSV_OP_H

#include "convert/csv_columns.h"
#include "convert/csv_row.h"
#include "convert/importer.h"

struct from_csv_conf {
    const char *separator, *comment, *file, *op;
    const char *read, *write, *discard, *flush, *fsync;
    int header;
};

#define CSV_WORDS 4u /* words of the op and api columns that are remembered */

struct csv_word {
    char text[16];
    size_t length; /* 0: none yet */
    int what;      /* CSV_OP or CSV_API */
    int number;
};

struct from_csv {
    const struct from_csv_conf *conf;
    struct input *input;
    struct import *import;
    struct csv_columns columns;
    struct csv_row row;
    char separator;
    int column_of[CSV_WHAT_COUNT]; /* its index, or -1 */
    size_t needed;                 /* fields a row must have */
    uint64_t epoch;                /* in units of the time column */
    char first_name[32];           /* the header's first name, "" without a header */
    uint32_t default_file;
    int default_op;
    struct csv_word words[CSV_WORDS];
    unsigned int next_word;
    uint32_t sized_file; /* whose size the last row said, and how */
    char size_text[24];
    size_t size_length;  /* 0: none yet */
    /* the row's stream */
    uint64_t pid, tid;
    const struct field *comm;
};

/* The op that a word of the op column means, by the options of csv and by the tape's own names;
 * or -EINVAL. */
int csv_parse_op(const struct from_csv *csv, const struct field *field);
/* Hands on the op of csv->row. 0, also for a bad row that --skip-bad allows; else -errno. */
int csv_take_row(struct from_csv *csv);

#endif
