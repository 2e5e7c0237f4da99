/* SPDX-License-Identifier: MIT */
#include "replay/compare_tapes_report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "replay/compare_page.h"
#include "replay/compare_plot.h"
#include "traces/diag.h"

/* A figure of a stretch of time; NAN where there is none. */
typedef double stretch_figure(const struct series *series,
                              const struct series_stretch *stretch);

static double ops_per_s(const struct series *series, const struct series_stretch *stretch)
{
    return (double)stretch->ops * 1e9 / (double)series->width_ns;
}

static double mib_per_s(const struct series *series, const struct series_stretch *stretch)
{
    return (double)stretch->bytes / 1048576 * 1e9 / (double)series->width_ns;
}

static double depth_mean(const struct series *series, const struct series_stretch *stretch)
{
    return stretch->depth_ns / (double)series->width_ns;
}

static double latency_mean_us(const struct series *series, const struct series_stretch *stretch)
{
    return stretch->latency_count > 0
               ? (double)stretch->latency_sum_ns / (double)stretch->latency_count / 1e3
               : NAN;
}

static double lag_mean_us(const struct series *series, const struct series_stretch *stretch)
{
    return stretch->lag_count > 0 ? stretch->lag_sum_ns / (double)stretch->lag_count / 1e3
                                  : NAN;
}

static double lag_max_us(const struct series *series, const struct series_stretch *stretch)
{
    return stretch->lag_count > 0 ? (double)stretch->lag_max_ns / 1e3 : NAN;
}

/* "-" data of one line over time, in seconds since the first op. */
static bool write_series(FILE *script, const struct side *side, stretch_figure *figure)
{
    const struct series *series = &side->series;
    double value;
    unsigned int i;
    bool any = false;

    for (i = 0; i < series->used; i++) {
        value = figure(series, &series->stretch[i]);
        if (isnan(value))
            continue;
        fprintf(script, "%.9g %.9g\n", (double)i * (double)series->width_ns / 1e9, value);
        any = true;
    }
    return any;
}

/* Does the figure exist anywhere on the side? An empty data block is an error of gnuplot's. */
static bool side_has(const struct side *side, stretch_figure *figure)
{
    unsigned int i;

    for (i = 0; side->io_ops > 0 && i < side->series.used; i++)
        if (!isnan(figure(&side->series, &side->series.stretch[i])))
            return true;
    return false;
}

/* One figure of both tapes over time; lines that have nothing are left out. */
static int plot_over_time(struct page *page, const struct tapes *tapes, const char *name,
                          const char *axis, stretch_figure *figure, const char *caption)
{
    const char *separator = "plot ";
    struct plot *plot;
    FILE *script;
    unsigned int i;
    int err;

    if (!side_has(tapes->side[0], figure) && !side_has(tapes->side[1], figure))
        return 0;
    err = plot_new(&plot, name, 260, &script);
    if (err < 0)
        return err;
    fprintf(script,
            "set xlabel 'seconds since the first op'\nset ylabel '%s'\nset yrange [0:*]\n",
            axis);
    for (i = 0; i < 2; i++)
        if (side_has(tapes->side[i], figure)) {
            fprintf(script, "$d%u << EOD\n", i);
            write_series(script, tapes->side[i], figure);
            fputs("EOD\n", script);
        }
    for (i = 0; i < 2; i++)
        if (side_has(tapes->side[i], figure)) {
            fprintf(script, "%s$d%u using 1:2 with steps lw 1.5 lc rgb '%s' title '%c'",
                    separator, i, plot_colour(i), "AB"[i]);
            separator = ", ";
        }
    fputc('\n', script);
    return page_plot(page, plot, caption);
}

/* How many nines: 0.9 is 1, 0.99 is 2. The foot of a curve is as wide as its tail. */
static double nines(double fraction)
{
    return -log10(1 - fraction);
}

static void write_nines_axis(FILE *script)
{
    fputs("set xtics ('0' 0, '50' 0.30103, '90' 1, '99' 2, '99.9' 3, '99.99' 4, '99.999' 5)\n"
          "set xlabel 'percent of ops at or below'\n",
          script);
}

static int plot_curves(struct page *page, const struct tapes *tapes)
{
    const char *separator = "plot ";
    struct plot *plot;
    FILE *script;
    unsigned int i, point;
    int err;

    if (tapes->no_latency[0] && tapes->no_latency[1])
        return 0;
    err = plot_new(&plot, "curves", 320, &script);
    if (err < 0)
        return err;
    fputs("set logscale y\nset ylabel 'latency, us'\nset format y '%g'\n", script);
    write_nines_axis(script);
    for (i = 0; i < 2; i++) {
        const struct hist *hist = &tapes->side[i]->latency;

        if (hist->count == 0)
            continue;
        fprintf(script, "$d%u << EOD\n", i);
        for (point = 0; point < CURVE_POINTS; point++)
            if ((1 - curve_fraction[point]) * (double)hist->count >= 1)
                fprintf(script, "%.6g %.9g\n", nines(curve_fraction[point]),
                        fmax(1, (double)hist_quantile(hist, curve_fraction[point])) / 1e3);
        fprintf(script, "%.6g %.9g\nEOD\n", nines(1 - 1 / fmax(2, (double)hist->count)),
                fmax(1, (double)hist->max) / 1e3);
    }
    for (i = 0; i < 2; i++)
        if (tapes->side[i]->latency.count > 0) {
            fprintf(script,
                    "%s$d%u using 1:2 with linespoints lw 2 ps 0.4 pt 7 lc rgb '%s' "
                    "title '%c'",
                    separator, i, plot_colour(i), "AB"[i]);
            separator = ", ";
        }
    fputc('\n', script);
    return page_plot(
        page, plot, "Latency curves: every quantile of the exact completions, to the largest.");
}

/* Reads or writes on the offset map, as dots whose size grows with the number of ops. Two
 * stretches and two rows make one dot: an eye sees no more, and the page stays small. */
static bool write_map(FILE *script, const struct series *series, unsigned int what)
{
    unsigned int row, i;
    bool any = false;

    for (row = 0; row < series->rows_used; row += 2)
        for (i = 0; i < series->used; i += 2) {
            const uint32_t(*map)[SERIES_STRETCHES] = &series->map[what][row];
            uint32_t count = map[0][i] + map[0][i + 1] + map[1][i] + map[1][i + 1];

            if (count == 0)
                continue;
            if (!any)
                fprintf(script, "$m%u << EOD\n", what);
            fprintf(script, "%.6g %.6g %.2g\n",
                    (double)(i + 1) * (double)series->width_ns / 1e9,
                    (row + 1) * (double)series->row_bytes / 1048576,
                    fmin(0.8, 0.2 + 0.06 * log2(count)));
            any = true;
        }
    if (any)
        fputs("EOD\n", script);
    return any;
}

static int plot_map(struct page *page, const struct tapes *tapes, unsigned int which)
{
    static const char *const words[2] = {"reads", "writes and the rest"};
    const struct series *series = &tapes->side[which]->series;
    const char *separator = "plot ";
    char name[16], caption[128];
    struct plot *plot;
    FILE *script;
    bool any[2];
    unsigned int i;
    int err;

    if (tapes->side[which]->io_ops == 0 || series->rows_used == 0)
        return 0;
    snprintf(name, sizeof name, "map%u", which);
    snprintf(caption, sizeof caption, "%c: offset over time, files laid end to end.",
             "AB"[which]);
    err = plot_new(&plot, name, 320, &script);
    if (err < 0)
        return err;
    fputs(
        "set xlabel 'seconds since the first op'\nset ylabel 'offset, MiB'\nset yrange [0:*]\n",
        script);
    for (i = 0; i < 2; i++)
        any[i] = write_map(script, series, i);
    for (i = 0; i < 2; i++)
        if (any[i]) {
            fprintf(script,
                    "%s$m%u using 1:2:3 with points pt 5 ps variable lc rgb '%s' "
                    "title '%s'",
                    separator, i, plot_colour(i), words[i]);
            separator = ", ";
        }
    fputs(any[0] || any[1] ? "\n" : "plot NaN notitle\n", script);
    return page_plot(page, plot, caption);
}

/* How far from the expected time: the cumulative share over the error's size and sign. */
static int plot_issue_error(struct page *page, const struct tapes *tapes)
{
    const struct curve_signed *curve = &tapes->pairs->issue_error;
    struct plot *plot;
    FILE *script;
    int err, i;

    if (tapes->asap || tapes->no_times[0] || tapes->no_times[1] ||
        curve_signed_count(curve) == 0)
        return 0;
    err = plot_new(&plot, "error", 260, &script);
    if (err < 0)
        return err;
    fputs("set ylabel 'share of ops, %'\nset xlabel 'issued after the expected time, us'\n"
          "set yrange [0:100]\nunset key\n$d << EOD\n",
          script);
    for (i = 0; i <= 200; i++)
        fprintf(script, "%.9g %.4g\n",
                (double)curve_signed_quantile(curve, 0.001 + i * 0.998 / 200) / 1e3,
                (0.001 + i * 0.998 / 200) * 100);
    fprintf(script, "EOD\nplot $d using 1:2 with lines lw 2 lc rgb '%s'\n", plot_colour(1));
    return page_plot(
        page, plot,
        "Issue-time error of B against A, from the 0.1 to the 99.9 percent quantile.");
}

static int add_plots(struct page *page, const struct tapes *tapes)
{
    const struct {
        const char *name, *axis;
        stretch_figure *figure;
        const char *caption;
    } over_time[] = {
        {"rate", "ops a second", ops_per_s, "I/O operations issued a second, over time."},
        {"bytes", "MiB a second", mib_per_s, "Bytes asked for a second, over time."},
        {"depth", "ops in flight", depth_mean, "Depth: ops in flight, over time."},
        {"latency", "latency, us", latency_mean_us,
         "Mean latency of exact completions, over time."},
        {"lag", "lag, us", lag_mean_us, "Mean lag (issued after due), over time."},
        {"lagmax", "lag, us", lag_max_us, "Largest lag, over time."},
    };
    size_t i;
    int err;

    page_section(page, "plots", "Plots");
    if (!plot_possible()) {
        fputs("<p>No plots: gnuplot is not installed here.</p>\n", page_out(page));
        return 0;
    }
    fputs("<div class=\"plots\">\n", page_out(page));
    err = plot_curves(page, tapes);
    if (err == 0)
        err = plot_issue_error(page, tapes);
    for (i = 0; i < sizeof over_time / sizeof *over_time && err == 0; i++)
        err = plot_over_time(page, tapes, over_time[i].name, over_time[i].axis,
                             over_time[i].figure, over_time[i].caption);
    for (i = 0; i < 2 && err == 0; i++)
        err = plot_map(page, tapes, (unsigned int)i);
    fputs("</div>\n", page_out(page));
    return err;
}

/* Text that is aligned by blanks, in a frame of its own. */
static int add_text(struct page *page, const char *label, const struct tapes *tapes,
                    void (*print)(const struct tapes *tapes, FILE *out))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    const char *at;

    if (!out)
        return -ENOMEM;
    print(tapes, out);
    if (fclose(out) != 0) {
        free(text);
        return -ENOMEM;
    }
    fprintf(page_out(page),
            "<div class=\"frame\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><pre>",
            label);
    for (at = text; *at; at++) {
        const char one[2] = {*at, '\0'};

        if (*at == '\n')
            fputc('\n', page_out(page));
        else
            page_text(page_out(page), one);
    }
    fputs("</pre></div>\n", page_out(page));
    free(text);
    return 0;
}

static void print_both(const struct tapes *tapes, FILE *out)
{
    tapes_print_about(tapes, 0, out);
    tapes_print_about(tapes, 1, out);
}

static int fill_page(struct page *page, const struct tapes *tapes)
{
    struct grid *sides = tapes_sides_grid(tapes), *groups = tapes_groups_grid(tapes);
    int err = sides && groups ? 0 : -ENOMEM;

    fputs("<nav aria-label=\"Sections\"><ul><li><a href=\"#tapes\">Tapes</a></li>"
          "<li><a href=\"#figures\">Side by side</a></li>"
          "<li><a href=\"#fidelity\">Fidelity</a></li><li><a href=\"#plots\">Plots</a></li>"
          "</ul></nav>\n<main id=\"main\">\n",
          page_out(page));
    page_section(page, "tapes", "The two tapes");
    if (err == 0)
        err = add_text(page, "The two tapes", tapes, print_both);
    page_list_begin(page);
    tapes_remarks(tapes, page_list_item, page);
    page_list_end(page);
    page_section(page, "figures", "Side by side");
    if (err == 0)
        err = page_table(page, "Figures of both tapes", sides);
    page_section(page, "fidelity", "Fidelity of B to A");
    if (err == 0)
        err = add_text(page, "Fidelity", tapes, tapes_print_fidelity);
    if (err == 0 && tapes->pairs->latency_pairs > 0) {
        fputs("<h3>Latency of matched ops</h3>\n", page_out(page));
        err = page_table(page, "Latency of matched ops", groups);
    }
    if (err == 0)
        err = add_plots(page, tapes);
    grid_free(sides);
    grid_free(groups);
    return err;
}

int tapes_html(const struct tapes *tapes, const char *path, struct diag *diag)
{
    struct page *page = NULL;
    char title[512];
    int err;

    snprintf(title, sizeof title, "%s against %s", trace_reader_name(tapes->feed[1].reader),
             trace_reader_name(tapes->feed[0].reader));
    err = page_new(&page, title);
    if (err == 0)
        err = fill_page(page, tapes);
    if (err < 0) {
        page_abandon(page);
        return diag_set(diag, err, "%s: not enough memory for the page", path);
    }
    return page_finish(page, path, diag);
}
