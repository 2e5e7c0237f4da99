/* SPDX-License-Identifier: MIT */
/*
 * A table of text cells, printed aligned for a terminal, as Markdown for a mail, as CSV, or as
 * an HTML table.
 *
 * Lifecycle: grid_new, grid_cell row by row (the first row is the heading), grid_print,
 * grid_free. Memory trouble is remembered and told by grid_print. One thread.
 */
#ifndef REPLAY_COMPARE_GRID_H
#define REPLAY_COMPARE_GRID_H

#include <stdbool.h>
#include <stdio.h>

enum grid_form {
    GRID_TEXT,
    GRID_MARKDOWN,
    GRID_CSV,
    GRID_HTML
};

struct grid;

/* align: one letter a column, 'l' or 'r'; copied. NULL without memory. */
struct grid *grid_new(const char *align);
void grid_free(struct grid *grid); /* NULL is fine */
/* The next cell, left to right, then the next row. Control characters become '?'. */
void grid_cell(struct grid *grid, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Ends the row: cells that were not given are empty. */
void grid_end_row(struct grid *grid);
unsigned int grid_rows(const struct grid *grid); /* heading included */
/* 0, or -ENOMEM when a cell was lost, or -EIO. bold: the heading in bold (terminals; text). */
int grid_print(const struct grid *grid, FILE *out, enum grid_form form, bool bold);

#endif
