/* SPDX-License-Identifier: MIT */
#include "replay/compare_findings.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "replay/compare_environment.h"

/* A column that no cell has anything for is left out. */
static const struct column {
    enum metric_index metric;
    const char *name;
    bool of_replays, of_commands;
} all_columns[] = {
    {METRIC_WALL, "wall", false, true},
    {METRIC_CMD_CPU, "CPU", false, true},
    {METRIC_CMD_RSS, "memory", false, true},
    {METRIC_CMD_VALUE, "value", false, true},
    {METRIC_OPS, "ops", false, true},
    {METRIC_BANDWIDTH, "bandwidth", true, true},
    {METRIC_IOPS, "IOPS", true, false},
    {METRIC_P50, "p50", true, true},
    {METRIC_P99, "p99", true, true},
    {METRIC_CPU, "CPU/op", true, false},
    {METRIC_DEPTH_MAX, "reached", true, false},
};
#define ALL_COLUMNS (sizeof all_columns / sizeof *all_columns)

static bool column_shown(const struct findings *findings, const struct column *column)
{
    unsigned int cell;

    if (!(findings->commands ? column->of_commands : column->of_replays))
        return false;
    for (cell = 0; cell < findings->design->count; cell++)
        if (!isnan(findings->judge->cells[cell].mean[column->metric]))
            return true;
    return false;
}

/* Fills ret_columns, room for ALL_COLUMNS; returns how many. */
static unsigned int columns_choose(const struct findings *findings,
                                   const struct column **ret_columns)
{
    unsigned int i, count = 0;

    for (i = 0; i < ALL_COLUMNS; i++)
        if (column_shown(findings, &all_columns[i]))
            ret_columns[count++] = &all_columns[i];
    return count;
}

const char *findings_cell_name(const struct findings *findings, unsigned int cell, char *buf,
                               size_t size)
{
    if (!findings->commands)
        return design_label(findings->design, cell, buf, size);
    snprintf(buf, size, "%c", (int)('A' + cell % 26));
    return buf;
}

/* Which way a difference goes; "" where neither is better. */
static const char *direction(const struct judge_comparison *comparison)
{
    bool up = comparison->infer.ratio > 1;

    if (comparison->infer.verdict != INFER_DIFFERENT ||
        comparison->metric == METRIC_CMD_VALUE || comparison->metric == METRIC_OPS ||
        comparison->metric == METRIC_DEPTH_MEAN || comparison->metric == METRIC_DEPTH_MAX)
        return "";
    return up == metrics[comparison->metric].more_is_better ? ", better" : ", worse";
}

const char *findings_verdict(const struct findings *findings, unsigned int cell,
                             unsigned int metric, char *buf, size_t size)
{
    const struct judge_comparison *comparison = judge_find(findings->judge, cell, metric);
    const struct infer_comparison *infer = comparison ? &comparison->infer : NULL;

    if (findings->design->cells[cell].excluded)
        snprintf(buf, size, "n/a");
    else if (findings->design->cells[cell].baseline == cell)
        snprintf(buf, size, "baseline");
    else if (!comparison)
        snprintf(buf, size, "n/a");
    else if (comparison->refused[0])
        snprintf(buf, size, "undecided (refused)");
    else if (infer->verdict == INFER_EQUIVALENT)
        snprintf(buf, size, "equivalent within %g %%", findings->rules->infer.margin * 100);
    else
        snprintf(
            buf, size, "%s%s%s", infer_verdict_names[infer->verdict], direction(comparison),
            infer->verdict == INFER_DIFFERENT && infer->within_margin ? " (within the margin)"
                                                                      : "");
    return buf;
}

/* ---- the tables --------------------------------------------------------------------- */

static const char *unit_suffix(enum metric_unit unit)
{
    switch (unit) {
    case METRIC_TIME_NS: return "_ns";
    case METRIC_SIZE: return "_bytes";
    case METRIC_SIZE_PER_S: return "_bytes_per_s";
    case METRIC_PER_S:
    case METRIC_NUMBER: break;
    }
    return "";
}

static void head_row(const struct findings *findings, struct grid *grid, bool raw)
{
    const struct metric *metric = &metrics[findings->rules->metric[0]];
    const struct column *columns[ALL_COLUMNS];
    unsigned int count = columns_choose(findings, columns), i;

    for (i = 0; i < findings->design->dimensions; i++)
        grid_cell(grid, "%s", findings->design->dimension[i].name);
    grid_cell(grid, "trials");
    for (i = 0; i < count; i++)
        if (raw)
            grid_cell(grid, "%s%s", metrics[columns[i]->metric].name,
                      unit_suffix(metrics[columns[i]->metric].unit));
        else
            grid_cell(grid, "%s", columns[i]->name);
    grid_cell(grid, "%s%cratio", metric->name, raw ? '_' : ' ');
    if (raw) {
        grid_cell(grid, "ratio_low");
        grid_cell(grid, "ratio_high");
    } else {
        grid_cell(grid, "%g %% interval", findings->rules->infer.level * 100);
    }
    grid_cell(grid, "verdict");
    grid_end_row(grid);
}

/* For CSV: nothing where nothing is known. */
static void cell_number(struct grid *grid, double value)
{
    if (isnan(value))
        grid_cell(grid, "%s", "");
    else
        grid_cell(grid, "%.12g", value);
}

static void cells_of_ratio(const struct judge_comparison *comparison, struct grid *grid,
                           bool raw)
{
    const struct infer_comparison *infer = comparison ? &comparison->infer : NULL;

    if (!infer) {
        grid_cell(grid, "%s", "");
        grid_cell(grid, "%s", "");
        if (raw)
            grid_cell(grid, "%s", "");
    } else if (raw) {
        grid_cell(grid, "%.9g", infer->ratio);
        cell_number(grid, infer->low);
        cell_number(grid, infer->high);
    } else {
        grid_cell(grid, "%.3f", infer->ratio);
        if (isnan(infer->low))
            grid_cell(grid, "under %d trials", INFER_LEAST_PAIRS);
        else
            grid_cell(grid, "%.3f - %.3f", infer->low, infer->high);
    }
}

static void cell_row(const struct findings *findings, struct grid *grid, unsigned int cell,
                     bool raw)
{
    const struct design *design = findings->design;
    const struct judge_cell *found = &findings->judge->cells[cell];
    const struct column *columns[ALL_COLUMNS];
    unsigned int count = columns_choose(findings, columns), i, metric;
    char text[METRIC_TEXT], verdict[80];

    for (i = 0; i < design->dimensions; i++)
        if (findings->commands && i == 0 && !raw)
            grid_cell(grid, "%c", (int)('A' + cell % 26));
        else
            grid_cell(grid, "%s", design->dimension[i].values[design->cells[cell].value[i]]);
    grid_cell(grid, "%u", found->trials);
    for (i = 0; i < count; i++) {
        metric = columns[i]->metric;
        if (raw)
            cell_number(grid, found->mean[metric]);
        else
            grid_cell(grid, "%s", metric_text(&metrics[metric], found->mean[metric], text));
    }
    cells_of_ratio(judge_find(findings->judge, cell, findings->rules->metric[0]), grid, raw);
    grid_cell(
        grid, "%s",
        findings_verdict(findings, cell, findings->rules->metric[0], verdict, sizeof verdict));
    grid_end_row(grid);
}

struct grid *findings_table(const struct findings *findings, bool raw)
{
    const struct column *columns[ALL_COLUMNS];
    char align[DESIGN_DIMENSIONS + ALL_COLUMNS + 8];
    unsigned int i, used = 0;
    struct grid *grid;

    for (i = 0; i < findings->design->dimensions; i++)
        align[used++] = i == 0 ? 'l' : 'r';
    for (i = 0; i < columns_choose(findings, columns) + (raw ? 4 : 3); i++)
        align[used++] = 'r';
    align[used++] = 'l';
    align[used] = '\0';
    grid = grid_new(align);
    if (!grid)
        return NULL;
    head_row(findings, grid, raw);
    for (i = 0; i < findings->design->count; i++)
        cell_row(findings, grid, i, raw);
    return grid;
}

struct grid *findings_other_figures(const struct findings *findings)
{
    char name[160], verdict[80];
    struct grid *grid;
    unsigned int i;

    if (findings->rules->metrics < 2)
        return NULL;
    grid = grid_new("llrrl");
    if (!grid)
        return NULL;
    grid_cell(grid, "cell");
    grid_cell(grid, "figure");
    grid_cell(grid, "ratio");
    grid_cell(grid, "%g %% interval", findings->rules->infer.level * 100);
    grid_cell(grid, "verdict");
    for (i = 0; i < findings->judge->count; i++) {
        const struct judge_comparison *comparison = &findings->judge->comparisons[i];

        if (comparison->metric == findings->rules->metric[0])
            continue;
        grid_cell(grid, "%s",
                  findings_cell_name(findings, comparison->cell, name, sizeof name));
        grid_cell(grid, "%s", metrics[comparison->metric].name);
        cells_of_ratio(comparison, grid, false);
        grid_cell(grid, "%s",
                  findings_verdict(findings, comparison->cell, comparison->metric, verdict,
                                   sizeof verdict));
    }
    return grid;
}

/* ---- as text ------------------------------------------------------------------------ */

struct line_writer {
    FILE *out;
    const char *before;
};

static void write_line(void *context, const char *text)
{
    const struct line_writer *writer = context;

    fprintf(writer->out, "%s%s\n", writer->before, text);
}

static void write_fact(void *context, const char *name, const char *value)
{
    const struct line_writer *writer = context;

    fprintf(writer->out, "%s%s: %s\n", writer->before, name, value);
}

static void write_commands(const struct findings *findings, FILE *out, const char *before,
                           const char *quote)
{
    unsigned int i;

    for (i = 0; findings->commands && i < findings->design->count; i++)
        fprintf(out, "%s%c: %s%s%s\n", before, (int)('A' + i % 26), quote,
                findings->design->dimension[0].values[i], quote);
}

int findings_print(const struct findings *findings, FILE *out, bool bold)
{
    struct grid *table = findings_table(findings, false),
                *other = findings_other_figures(findings);
    struct line_writer notes = {out, "note: "};
    int err = table ? 0 : -ENOMEM;

    write_commands(findings, out, "", "");
    if (err == 0)
        err = grid_print(table, out, GRID_TEXT, bold);
    if (err == 0 && other) {
        fputc('\n', out);
        err = grid_print(other, out, GRID_TEXT, bold);
    }
    fputc('\n', out);
    findings_remarks(findings, write_line, &notes);
    grid_free(table);
    grid_free(other);
    return err;
}

int findings_print_markdown(const struct findings *findings, FILE *out)
{
    struct grid *table = findings_table(findings, false),
                *other = findings_other_figures(findings);
    struct line_writer lines = {out, "- "};
    int err = table ? 0 : -ENOMEM;

    write_commands(findings, out, "- ", "`");
    if (findings->commands)
        fputc('\n', out);
    if (err == 0)
        err = grid_print(table, out, GRID_MARKDOWN, false);
    if (err == 0 && other) {
        fputc('\n', out);
        err = grid_print(other, out, GRID_MARKDOWN, false);
    }
    fputc('\n', out);
    findings_remarks(findings, write_line, &lines);
    fputs("\nEnvironment:\n\n", out);
    environment_each(json_object_get(findings->plan, "environment"), write_fact, &lines);
    grid_free(table);
    grid_free(other);
    return err;
}

int findings_print_csv(const struct findings *findings, FILE *out)
{
    struct grid *table = findings_table(findings, true);
    int err = table ? grid_print(table, out, GRID_CSV, false) : -ENOMEM;

    grid_free(table);
    return err;
}
