/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/compare_environment.h"
#include "replay/compare_feed.h"
#include "replay/compare_findings.h"
#include "replay/compare_page.h"
#include "replay/compare_plot.h"
#include "replay/compare_sides_plot.h"
#include "traces/diag.h"

#define NAME_LENGTH 160

static const struct metric *main_metric(const struct findings *findings)
{
    return &metrics[findings->rules->metric[0]];
}

static double main_value(const struct findings *findings, const struct record *record)
{
    return record->value[findings->rules->metric[0]];
}

/* Times in us, the rest as it is: what a plot's axis says. */
static double plotted(const struct metric *metric, double value)
{
    return metric->unit == METRIC_TIME_NS ? value / 1e3 : value;
}

static const char *plotted_unit(const struct metric *metric)
{
    switch (metric->unit) {
    case METRIC_TIME_NS: return ", us";
    case METRIC_SIZE: return ", bytes";
    case METRIC_SIZE_PER_S: return ", bytes a second";
    case METRIC_PER_S: return " a second";
    case METRIC_NUMBER: break;
    }
    return "";
}

static void write_axis(FILE *script, const struct findings *findings)
{
    fprintf(script, "set ylabel '%s%s'\nset format y '%%.1s %%c'\n",
            main_metric(findings)->name, plotted_unit(main_metric(findings)));
}

/* ---- trials one by one ---------------------------------------------------------------- */

/* A cell by its values alone, for the marks of an axis. */
static void values_name(const struct findings *findings, unsigned int cell, char *buf,
                        size_t size)
{
    const struct design *design = findings->design;
    size_t used = 0;
    unsigned int i;

    if (findings->commands) {
        findings_cell_name(findings, cell, buf, size);
        return;
    }
    for (i = 0, buf[0] = '\0'; i < design->dimensions && used < size; i++)
        if (design->dimension[i].count > 1 || design->dimensions == 1)
            used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? " " : "",
                                     design->dimension[i].values[design->cells[cell].value[i]]);
}

static int plot_cells(struct page *page, const struct findings *findings)
{
    const struct design *design = findings->design;
    char name[NAME_LENGTH];
    struct plot *plot;
    FILE *script;
    unsigned int i;
    int err = plot_new(&plot, "cells", design->count > 8 ? 420 : 340, &script);

    if (err < 0)
        return err;
    write_axis(script, findings);
    fprintf(script,
            "set xrange [-0.6:%u.6]\nset yrange [0:*]\nunset key\nset xtics rotate by -35 (",
            design->count - 1);
    for (i = 0; i < design->count; i++) {
        if (i > 0)
            fputs(", ", script);
        values_name(findings, i, name, 32);
        plot_quote(script, name);
        fprintf(script, " %u", i);
    }
    fputs(")\n$d << EOD\nNaN NaN\n", script);
    for (i = 0; i < findings->journal->count; i++) {
        const struct record *record = &findings->journal->records[i];

        if (!record->failed && record->block >= design->warmup &&
            !isnan(main_value(findings, record)))
            fprintf(script, "%.4f %.9g\n",
                    record->cell + 0.4 * ((record->block * 7 % 11) / 10.0 - 0.5),
                    plotted(main_metric(findings), main_value(findings, record)));
    }
    fprintf(script, "EOD\nplot $d using 1:2 with points pt 7 ps 0.4 lc rgb '%s'\n",
            plot_colour(0));
    return page_plot(page, plot, "Every judged trial, by cell.");
}

static int plot_order(struct page *page, const struct findings *findings)
{
    struct plot *plot;
    FILE *script;
    unsigned int i;
    int err = plot_new(&plot, "order", 300, &script);

    if (err < 0)
        return err;
    fputs("set ylabel 'trial over the mean of its cell'\nset xlabel 'trials in the order run'\n"
          "unset key\n$d << EOD\nNaN NaN\n",
          script);
    for (i = 0; i < findings->journal->count; i++) {
        const struct record *record = &findings->journal->records[i];
        double mean = findings->judge->cells[record->cell].mean[findings->rules->metric[0]];

        if (!record->failed && mean > 0 && !isnan(main_value(findings, record)))
            fprintf(script, "%u %.9g\n", record->position, main_value(findings, record) / mean);
    }
    fprintf(script,
            "EOD\nplot 1 lc rgb '#999999', $d using 1:2 with points pt 7 ps 0.4 lc rgb "
            "'%s'\n",
            plot_colour(1));
    return page_plot(page, plot, "Drift: every trial in the order run, warm-up too.");
}

/* ---- the heat map --------------------------------------------------------------------- */

/* The first dimension of several values goes across, all others down. */
static unsigned int across(const struct design *design)
{
    unsigned int i;

    for (i = 0; i < design->dimensions; i++)
        if (design->dimension[i].count > 1)
            return i;
    return 0;
}

static unsigned int row_of(const struct design *design, unsigned int cell, unsigned int column)
{
    unsigned int i, at = 0;

    for (i = 0; i < design->dimensions; i++)
        if (i != column)
            at = at * design->dimension[i].count + design->cells[cell].value[i];
    return at;
}

static void row_name(const struct design *design, unsigned int cell, unsigned int column,
                     char *buf, size_t size)
{
    size_t used = 0;
    unsigned int i;

    buf[0] = '\0';
    for (i = 0; i < design->dimensions && used < size; i++)
        if (i != column && design->dimension[i].count > 1)
            used += (size_t)snprintf(buf + used, size - used, "%s%s %s", used ? ", " : "",
                                     design->dimension[i].name,
                                     design->dimension[i].values[design->cells[cell].value[i]]);
}

static void write_heat_axes(FILE *script, const struct design *design, unsigned int column,
                            unsigned int rows)
{
    char name[NAME_LENGTH];
    unsigned int i;

    fprintf(script, "set xrange [-0.5:%u.5]\nset yrange [%u.5:-0.5]\nset xtics rotate by -25 (",
            design->dimension[column].count - 1, rows - 1);
    for (i = 0; i < design->dimension[column].count; i++) {
        fputs(i > 0 ? ", " : "", script);
        snprintf(name, sizeof name, "%.30s", design->dimension[column].values[i]);
        plot_quote(script, name);
        fprintf(script, " %u", i);
    }
    fputs(")\nset ytics (", script);
    for (i = 0; i < design->count; i++) {
        if (design->cells[i].value[column] != 0)
            continue;
        fputs(row_of(design, i, column) > 0 ? ", " : "", script);
        row_name(design, i, column, name, sizeof name);
        plot_quote(script, name);
        fprintf(script, " %u", row_of(design, i, column));
    }
    fputs(")\n", script);
}

static int plot_heat(struct page *page, const struct findings *findings)
{
    const struct design *design = findings->design;
    unsigned int column = across(design), rows, i;
    char text[METRIC_TEXT];
    struct plot *plot;
    double mean;
    FILE *script;
    int err;

    rows = design->count / design->dimension[column].count;
    if (rows < 2 || rows > 60 || findings->commands)
        return 0;
    err = plot_new(&plot, "heat", 180 + 26 * rows, &script);
    if (err < 0)
        return err;
    write_heat_axes(script, design, column, rows);
    fprintf(
        script,
        "unset grid\nunset key\nset palette defined (0 '#f7fbff', 1 '#6baed6', 2 '#2171b5')\n"
        "set cblabel '%s%s'\nset format cb '%%.1s %%c'\n$d << EOD\n",
        main_metric(findings)->name, plotted_unit(main_metric(findings)));
    for (i = 0; i < design->count; i++) {
        mean = findings->judge->cells[i].mean[findings->rules->metric[0]];
        if (design->cells[i].excluded || isnan(mean))
            continue;
        fprintf(script, "%u %u %.9g \"%s\"\n", design->cells[i].value[column],
                row_of(design, i, column), plotted(main_metric(findings), mean),
                metric_text(main_metric(findings), mean, text));
    }
    fputs("EOD\nplot $d using 1:2:(0.48):(0.46):3 with boxxyerror fs solid 1 noborder lc "
          "palette, "
          "$d using 1:2:4 with labels tc rgb '#000000' font 'sans,11'\n",
          script);
    return page_plot(page, plot,
                     "Heat map: means of the main figure; cells that cannot run are blank.");
}

/* ---- latency curves with bands -------------------------------------------------------- */

static int plot_bands(struct page *page, const struct findings *findings)
{
    const struct design *design = findings->design;
    const char *separator = "plot ";
    unsigned int shown[SIDES_PLOT_MOST], count = 0, i, point;
    char name[NAME_LENGTH];
    struct plot *plot;
    FILE *script;
    int err;

    for (i = 0; i < design->count && count < SIDES_PLOT_MOST; i++)
        if (findings->judge->cells[i].has_curve)
            shown[count++] = i;
    if (count == 0)
        return 0;
    err = plot_new(&plot, "bands", 400, &script);
    if (err < 0)
        return err;
    plot_nines_axis(script);
    for (i = 0; i < count; i++) {
        const struct judge_cell *cell = &findings->judge->cells[shown[i]];

        fprintf(script, "$d%u << EOD\n", i);
        for (point = 0; point < CURVE_POINTS; point++)
            fprintf(script, "%.6g %.9g %.9g %.9g\n", plot_nines(curve_fraction[point]),
                    cell->curve_low[point] / 1e3, cell->curve[point] / 1e3,
                    cell->curve_high[point] / 1e3);
        fputs("EOD\n", script);
    }
    for (i = 0; i < count; i++) {
        fprintf(script,
                "%s$d%u using 1:2:4 with filledcurves fs transparent solid 0.2 lc rgb '%s' "
                "notitle, $d%u using 1:3 with lines lw 2 lc rgb '%s' title ",
                separator, i, plot_colour(i), i, plot_colour(i));
        findings_cell_name(findings, shown[i], name, sizeof name);
        plot_quote(script, name);
        separator = ", ";
    }
    fputs("\n", script);
    return page_plot(
        page, plot,
        "Service time of the first cells, the mean of each quantile over the trials; "
        "the band is its 95 % interval (under 6 trials: least to most).");
}

/* Curves over the baseline's: 1 is as the baseline. */
static int plot_ratios(struct page *page, const struct findings *findings)
{
    const struct design *design = findings->design;
    const char *separator = "plot 1 lc rgb '#555555' notitle, ";
    unsigned int shown[SIDES_PLOT_MOST], count = 0, i, point;
    char name[NAME_LENGTH];
    struct plot *plot;
    FILE *script;
    int err;

    for (i = 0; i < design->count && count < SIDES_PLOT_MOST; i++)
        if (findings->judge->cells[i].has_ratio_curve)
            shown[count++] = i;
    if (count == 0)
        return 0;
    err = plot_new(&plot, "ratios", 260 + 20 * count, &script);
    if (err < 0)
        return err;
    plot_nines_axis(script);
    fputs("unset logscale y\nset ylabel 'service time over the baseline'\n", script);
    for (i = 0; i < count; i++) {
        fprintf(script, "$d%u << EOD\n", i);
        for (point = 0; point < CURVE_POINTS; point++) {
            const struct band_point *at = &findings->judge->cells[shown[i]].ratio_curve[point];

            fprintf(script, "%.6g %.6g %.6g %.6g\n", plot_nines(curve_fraction[point]), at->low,
                    at->ratio, at->high);
        }
        fputs("EOD\n", script);
    }
    for (i = 0; i < count; i++) {
        fprintf(script,
                "%s$d%u using 1:2:4 with filledcurves fs transparent solid 0.2 lc rgb '%s' "
                "notitle, $d%u using 1:3 with lines lw 2 lc rgb '%s' title ",
                separator, i, plot_colour(i), i, plot_colour(i));
        findings_cell_name(findings, shown[i], name, sizeof name);
        plot_quote(script, name);
        separator = ", ";
    }
    fputs("\n", script);
    return page_plot(page, plot,
                     "Service time over the baseline's at every quantile; each band holds its "
                     "whole curve with 95 % confidence.");
}

/* ---- one trial over time -------------------------------------------------------------- */

/* The block of the cell's trial whose main figure is in the middle; false: none has a tape. */
static bool middle_trial(const struct findings *findings, unsigned int cell,
                         unsigned int *ret_block)
{
    double mean = findings->judge->cells[cell].mean[findings->rules->metric[0]],
           best = INFINITY;
    unsigned int i;
    bool found = false;

    for (i = 0; i < findings->journal->count; i++) {
        const struct record *record = &findings->journal->records[i];
        double away = fabs(main_value(findings, record) - mean);

        if (record->cell != cell || record->failed || !record->has_curve ||
            record->block < findings->design->warmup || !(away < best))
            continue;
        best = away;
        *ret_block = record->block;
        found = true;
    }
    return found;
}

/* A tape that cannot be read any more is no reason to give up the page: NULL then. */
static struct side *trial_side(const struct findings *findings, unsigned int cell)
{
    struct diag diag = DIAG_INIT;
    const struct trace_op *op;
    struct side *side = NULL;
    struct tape_feed feed;
    unsigned int block;
    char path[4096];
    int err;

    if (!middle_trial(findings, cell, &block))
        return NULL;
    snprintf(path, sizeof path, "%s/trial-%04u-%04u.tape", findings->journal->folder, block,
             cell);
    if (tape_feed_open(&feed, path, &diag) < 0)
        return NULL;
    err = side_new(&side);
    if (err == 0 && feed.tables_known)
        err = side_lay_files(side, feed.reader);
    while (err >= 0 && (err = tape_feed_next(&feed, &op)) > 0)
        err = side_add(side, op);
    if (err == 0)
        side_finish(side);
    tape_feed_close(&feed);
    if (err < 0) {
        side_free(side);
        side = NULL;
    }
    return side;
}

static int plot_trials(struct page *page, const struct findings *findings)
{
    struct plot_side sides[SIDES_PLOT_MOST];
    char names[SIDES_PLOT_MOST][NAME_LENGTH];
    struct side *owned[SIDES_PLOT_MOST];
    unsigned int count = 0, i;
    int err = 0;

    for (i = 0; i < findings->design->count && count < SIDES_PLOT_MOST; i++) {
        owned[count] = trial_side(findings, i);
        if (!owned[count])
            continue;
        findings_cell_name(findings, i, names[count], sizeof names[count]);
        sides[count] = (struct plot_side){owned[count], names[count]};
        count++;
    }
    if (count > 0) {
        fputs("</div>\n<h3>The middle trial of the first cells, over time</h3>\n"
              "<div class=\"plots\">\n",
              page_out(page));
        err = sides_plot_over_time(page, sides, count);
        if (err == 0)
            err = sides_plot_maps(page, sides, 1);
    }
    for (i = 0; i < count; i++)
        side_free(owned[i]);
    return err;
}

/* ---- the page ------------------------------------------------------------------------- */

static int add_plots(struct page *page, const struct findings *findings)
{
    int err;

    page_section(page, "plots", "Plots");
    if (!plot_possible()) {
        fputs("<p>No plots: gnuplot is not installed here.</p>\n", page_out(page));
        return 0;
    }
    fputs("<div class=\"plots\">\n", page_out(page));
    err = plot_cells(page, findings);
    if (err == 0)
        err = plot_heat(page, findings);
    if (err == 0)
        err = plot_bands(page, findings);
    if (err == 0)
        err = plot_ratios(page, findings);
    if (err == 0)
        err = plot_order(page, findings);
    if (err == 0)
        err = plot_trials(page, findings);
    fputs("</div>\n", page_out(page));
    return err;
}

static void add_commands(struct page *page, const struct findings *findings)
{
    char name[8];
    unsigned int i;

    if (!findings->commands)
        return;
    page_list_begin(page);
    for (i = 0; i < findings->design->count; i++) {
        snprintf(name, sizeof name, "%c", (int)('A' + i % 26));
        page_list_fact(page, name, findings->design->dimension[0].values[i]);
    }
    page_list_end(page);
}

static void add_environment(struct page *page, const struct findings *findings)
{
    char *plan = json_dumps(findings->plan, JSON_INDENT(2));

    page_section(page, "environment", "Environment and plan");
    page_list_begin(page);
    environment_each(json_object_get(findings->plan, "environment"), page_list_fact, page);
    page_list_end(page);
    if (plan) {
        fputs("<details><summary>The whole plan</summary>\n<div class=\"frame\" tabindex=\"0\" "
              "role=\"region\" aria-label=\"The whole plan\"><pre>",
              page_out(page));
        page_preformatted(page_out(page), plan);
        fputs("</pre></div></details>\n", page_out(page));
    }
    free(plan);
}

static int fill_page(struct page *page, const struct findings *findings)
{
    struct grid *table = findings_table(findings, false);
    struct grid *other = findings_other_figures(findings);
    int err = table ? 0 : -ENOMEM;

    fputs("<nav aria-label=\"Sections\"><ul><li><a href=\"#table\">Table</a></li>"
          "<li><a href=\"#notes\">Notes</a></li><li><a href=\"#plots\">Plots</a></li>"
          "<li><a href=\"#environment\">Environment</a></li></ul></nav>\n<main id=\"main\">\n",
          page_out(page));
    page_section(page, "table", "What was found");
    add_commands(page, findings);
    if (err == 0)
        err = page_table(page, "Every cell, and its ratio to the baseline", table);
    if (err == 0 && other) {
        fputs("<h3>Other figures</h3>\n", page_out(page));
        err = page_table(page, "Other figures", other);
    }
    page_section(page, "notes", "How to read it, and what to doubt");
    page_list_begin(page);
    findings_remarks(findings, page_list_item, page);
    page_list_end(page);
    if (err == 0)
        err = add_plots(page, findings);
    add_environment(page, findings);
    grid_free(table);
    grid_free(other);
    return err;
}

int findings_html(const struct findings *findings, const char *path, struct diag *diag)
{
    const json_t *tape = json_object_get(findings->plan, "tape");
    const char *name = json_string_value(json_object_get(tape, "path"));
    struct page *page = NULL;
    char title[512];
    int err;

    name = name && strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    snprintf(title, sizeof title, "%s: %u cells, %u trials each", name ? name : "Commands",
             findings->design->count, findings->design->trials);
    err = page_new(&page, title);
    if (err == 0)
        err = fill_page(page, findings);
    if (err < 0) {
        page_abandon(page);
        return diag_set(diag, err, "%s: not enough memory for the page", path);
    }
    return page_finish(page, path, diag);
}
