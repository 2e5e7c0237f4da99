/* SPDX-License-Identifier: MIT */
#include "replay/compare_sides_plot.h"

#include <errno.h>
#include <math.h>

#include "replay/compare_plot.h"

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

/* A data block of one line over time, in seconds since the first op; false: nothing to draw.
 * The last stretch is not whole: its rate would fall off. */
static bool write_series(FILE *script, const struct side *side, unsigned int number,
                         stretch_figure *figure)
{
    const struct series *series = &side->series;
    unsigned int last = series->used > 8 ? series->used - 1 : series->used, i;
    bool any = false;
    double value;

    for (i = 0; side->io_ops > 0 && i < last; i++) {
        value = figure(series, &series->stretch[i]);
        if (isnan(value))
            continue;
        if (!any)
            fprintf(script, "$d%u << EOD\n", number);
        fprintf(script, "%.7g %.6g\n", (double)i * (double)series->width_ns / 1e9, value);
        any = true;
    }
    if (any)
        fputs("EOD\n", script);
    return any;
}

/* The lines of a plot from data blocks $d0 ..., titled; those that are there alone. */
static void write_lines(FILE *script, const struct plot_side *sides, unsigned int count,
                        const bool *there, const char *how)
{
    const char *separator = "plot ";
    unsigned int i;

    for (i = 0; i < count; i++) {
        if (!there[i])
            continue;
        fprintf(script, "%s$d%u using 1:2 with %s lc rgb '%s' title ", separator, i, how,
                plot_colour(i));
        plot_quote(script, sides[i].name);
        separator = ", ";
    }
    fputs(*separator == 'p' ? "plot NaN notitle\n" : "\n", script);
}

static int plot_over_time(struct page *page, const struct plot_side *sides, unsigned int count,
                          const char *name, const char *axis, stretch_figure *figure,
                          const char *caption)
{
    bool there[SIDES_PLOT_MOST], any = false;
    struct plot *plot;
    FILE *script;
    unsigned int i;
    int err;

    err = plot_new(&plot, name, 220 + 20 * count, &script);
    if (err < 0)
        return err;
    fprintf(script,
            "set xlabel 'seconds since the first op'\nset ylabel '%s'\nset yrange [0:*]\n",
            axis);
    for (i = 0; i < count; i++) {
        there[i] = write_series(script, sides[i].side, i, figure);
        any = any || there[i];
    }
    write_lines(script, sides, count, there, "steps lw 1.5");
    if (!any) {
        plot_drop(plot);
        return 0;
    }
    return page_plot(page, plot, caption);
}

int sides_plot_over_time(struct page *page, const struct plot_side *sides, unsigned int count)
{
    static const struct {
        const char *name, *axis;
        stretch_figure *figure;
        const char *caption;
    } plots[] = {
        {"rate", "ops a second", ops_per_s, "I/O operations issued a second, over time."},
        {"bytes", "MiB a second", mib_per_s, "Bytes asked for a second, over time."},
        {"depth", "ops in flight", depth_mean, "Depth: ops in flight, over time."},
        {"latency", "latency, us", latency_mean_us,
         "Mean latency of exact completions, over time."},
        {"lag", "lag, us", lag_mean_us, "Mean lag (issued after due), over time."},
        {"lagmax", "lag, us", lag_max_us, "Largest lag, over time."},
    };
    size_t i;
    int err = 0;

    for (i = 0; i < sizeof plots / sizeof *plots && err == 0; i++)
        err = plot_over_time(page, sides, count, plots[i].name, plots[i].axis, plots[i].figure,
                             plots[i].caption);
    return err;
}

double plot_nines(double fraction)
{
    return -log10(1 - fraction);
}

void plot_nines_axis(FILE *script)
{
    fputs("set xtics ('0' 0, '50' 0.30103, '90' 1, '99' 2, '99.9' 3, '99.99' 4, '99.999' 5)\n"
          "set xlabel 'percent of ops at or below'\n"
          "set logscale y\nset ylabel 'latency, us'\nset format y '%g'\n",
          script);
}

/* As far as the number of ops bears, then the largest. */
static void write_curve(FILE *script, const struct hist *hist, unsigned int number)
{
    unsigned int point;

    fprintf(script, "$d%u << EOD\n", number);
    for (point = 0; point < CURVE_POINTS; point++)
        if ((1 - curve_fraction[point]) * (double)hist->count >= 1)
            fprintf(script, "%.6g %.9g\n", plot_nines(curve_fraction[point]),
                    fmax(1, (double)hist_quantile(hist, curve_fraction[point])) / 1e3);
    fprintf(script, "%.6g %.9g\nEOD\n", plot_nines(1 - 1 / fmax(2, (double)hist->count)),
            fmax(1, (double)hist->max) / 1e3);
}

int sides_plot_curves(struct page *page, const struct plot_side *sides, unsigned int count)
{
    bool there[SIDES_PLOT_MOST], any = false;
    struct plot *plot;
    FILE *script;
    unsigned int i;
    int err;

    for (i = 0; i < count; i++) {
        there[i] = sides[i].side->latency.count > 0;
        any = any || there[i];
    }
    if (!any)
        return 0;
    err = plot_new(&plot, "curves", 280 + 20 * count, &script);
    if (err < 0)
        return err;
    plot_nines_axis(script);
    for (i = 0; i < count; i++)
        if (there[i])
            write_curve(script, &sides[i].side->latency, i);
    write_lines(script, sides, count, there, "linespoints lw 2 ps 0.4 pt 7");
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

static int plot_map(struct page *page, const struct plot_side *side, unsigned int number)
{
    static const char *const words[2] = {"reads", "writes and the rest"};
    const struct series *series = &side->side->series;
    const char *separator = "plot ";
    char name[16], caption[256];
    struct plot *plot;
    FILE *script;
    bool any[2];
    unsigned int i;
    int err;

    if (side->side->io_ops == 0 || series->rows_used == 0)
        return 0;
    snprintf(name, sizeof name, "map%u", number);
    snprintf(caption, sizeof caption, "%s: offset over time, files laid end to end.",
             side->name);
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
                    "%s$m%u using 1:2:3 with points pt 5 ps variable lc rgb '%s' title '%s'",
                    separator, i, plot_colour(i), words[i]);
            separator = ", ";
        }
    fputs(any[0] || any[1] ? "\n" : "plot NaN notitle\n", script);
    return page_plot(page, plot, caption);
}

int sides_plot_maps(struct page *page, const struct plot_side *sides, unsigned int count)
{
    unsigned int i;
    int err = 0;

    for (i = 0; i < count && err == 0; i++)
        err = plot_map(page, &sides[i], i);
    return err;
}
