/* SPDX-License-Identifier: MIT */
#include "replay/compare_grid.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "traces/plain.h"

struct grid {
    char *align;
    unsigned int columns;
    char **cells; /* row after row; NULL = empty */
    size_t count, room;
    bool broken;
};

struct grid *grid_new(const char *align)
{
    struct grid *grid = calloc(1, sizeof *grid);

    if (!grid)
        return NULL;
    grid->align = strdup(align);
    if (!grid->align) {
        free(grid);
        return NULL;
    }
    grid->columns = (unsigned int)strlen(align);
    return grid;
}

void grid_free(struct grid *grid)
{
    size_t i;

    if (!grid)
        return;
    for (i = 0; i < grid->count; i++)
        free(grid->cells[i]);
    free(grid->cells);
    free(grid->align);
    free(grid);
}

/* Takes text over. */
static void grid_push(struct grid *grid, char *text)
{
    char **grown;

    if (grid->count == grid->room) {
        grown = realloc(grid->cells, (grid->room * 2 + 64) * sizeof *grown);
        if (!grown) {
            grid->broken = true;
            free(text);
            return;
        }
        grid->cells = grown;
        grid->room = grid->room * 2 + 64;
    }
    grid->cells[grid->count++] = text;
}

void grid_cell(struct grid *grid, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    int length;

    va_start(args, format);
    length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0) {
        grid->broken = true;
        return;
    }
    plain_clean(text);
    grid_push(grid, text);
}

void grid_end_row(struct grid *grid)
{
    while (grid->count % grid->columns != 0 && !grid->broken)
        grid_push(grid, NULL);
}

unsigned int grid_rows(const struct grid *grid)
{
    return (unsigned int)((grid->count + grid->columns - 1) / grid->columns);
}

static const char *grid_at(const struct grid *grid, unsigned int row, unsigned int column)
{
    size_t at = (size_t)row * grid->columns + column;

    return at < grid->count && grid->cells[at] ? grid->cells[at] : "";
}

/* Characters, not bytes: continuation bytes of UTF-8 take no room. */
static int text_width(const char *text)
{
    int width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static int column_width(const struct grid *grid, unsigned int column)
{
    unsigned int row;
    int most = 0, width;

    for (row = 0; row < grid_rows(grid); row++) {
        width = text_width(grid_at(grid, row, column));
        if (width > most)
            most = width;
    }
    return most;
}

static void print_padded(FILE *out, const char *text, int width, bool right, bool last)
{
    int pad = width - text_width(text);

    if (right)
        fprintf(out, "%*s%s", pad, "", text);
    else
        fprintf(out, "%s%*s", text, last ? 0 : pad, "");
}

static void print_text(const struct grid *grid, FILE *out, bool bold)
{
    unsigned int row, column;

    for (row = 0; row < grid_rows(grid); row++) {
        if (bold && row == 0)
            fputs("\033[1m", out);
        for (column = 0; column < grid->columns; column++) {
            if (column > 0)
                fputs("  ", out);
            print_padded(out, grid_at(grid, row, column), column_width(grid, column),
                         grid->align[column] == 'r', column + 1 == grid->columns);
        }
        fputs(bold && row == 0 ? "\033[0m\n" : "\n", out);
    }
}

static void print_markdown(const struct grid *grid, FILE *out)
{
    unsigned int row, column;
    const char *at;

    for (row = 0; row < grid_rows(grid); row++) {
        for (column = 0; column < grid->columns; column++) {
            fputs("| ", out);
            for (at = grid_at(grid, row, column); *at; at++) {
                if (*at == '|')
                    fputc('\\', out);
                fputc(*at, out);
            }
            fputc(' ', out);
        }
        fputs("|\n", out);
        if (row > 0)
            continue;
        for (column = 0; column < grid->columns; column++)
            fputs(grid->align[column] == 'r' ? "| ---: " : "| --- ", out);
        fputs("|\n", out);
    }
}

static void print_csv_cell(const char *text, FILE *out)
{
    if (!strpbrk(text, ",\"")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void print_csv(const struct grid *grid, FILE *out)
{
    unsigned int row, column;

    for (row = 0; row < grid_rows(grid); row++) {
        for (column = 0; column < grid->columns; column++) {
            if (column > 0)
                fputc(',', out);
            print_csv_cell(grid_at(grid, row, column), out);
        }
        fputc('\n', out);
    }
}

static void print_html_text(const char *text, FILE *out)
{
    for (; *text; text++)
        switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc(*text, out);
        }
}

static void print_html(const struct grid *grid, FILE *out)
{
    unsigned int row, column;
    const char *tag;

    fputs("<table>\n", out);
    for (row = 0; row < grid_rows(grid); row++) {
        fputs(row == 0 ? "<thead><tr>" : row == 1 ? "<tbody>\n<tr>" : "<tr>", out);
        for (column = 0; column < grid->columns; column++) {
            tag = row == 0 || column == 0 ? "th" : "td";
            fprintf(out, "<%s%s%s>", tag,
                    row == 0      ? " scope=\"col\""
                    : column == 0 ? " scope=\"row\""
                                  : "",
                    grid->align[column] == 'r' ? " class=\"n\"" : "");
            print_html_text(grid_at(grid, row, column), out);
            fprintf(out, "</%s>", tag);
        }
        fputs(row == 0 ? "</tr></thead>\n" : "</tr>\n", out);
    }
    fputs(row > 1 ? "</tbody></table>\n" : "</table>\n", out);
}

int grid_print(const struct grid *grid, FILE *out, enum grid_form form, bool bold)
{
    if (grid->broken)
        return -ENOMEM;
    switch (form) {
    case GRID_TEXT: print_text(grid, out, bold); break;
    case GRID_MARKDOWN: print_markdown(grid, out); break;
    case GRID_CSV: print_csv(grid, out); break;
    case GRID_HTML: print_html(grid, out); break;
    }
    return ferror(out) ? -EIO : 0;
}
