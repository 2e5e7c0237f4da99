/* SPDX-License-Identifier: MIT */
/* The report as one page, with plots where gnuplot is. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/compare_page.h"
#include "replay/compare_plot.h"
#include "replay/conf.h"
#include "replay/report.h"
#include "traces/diag.h"

/* A figure of one slice of the run. */
typedef double slice_figure(const struct stats_bucket *slice, double width_ns);

static double ops_per_s(const struct stats_bucket *slice, double width_ns)
{
    return (double)slice->completed * 1e9 / width_ns;
}

static double mib_per_s(const struct stats_bucket *slice, double width_ns)
{
    return (double)slice->bytes * 1e9 / width_ns / 1048576;
}

static double depth_mean(const struct stats_bucket *slice, double width_ns)
{
    return (double)slice->depth_ns / width_ns;
}

static double service_us(const struct stats_bucket *slice, double width_ns)
{
    (void)width_ns;
    return slice->completed ? (double)slice->service_ns / (double)slice->completed / 1e3 : NAN;
}

static double lag_us(const struct stats_bucket *slice, double width_ns)
{
    (void)width_ns;
    return slice->completed ? (double)slice->lag_ns / (double)slice->completed / 1e3 : NAN;
}

static double lag_max_us(const struct stats_bucket *slice, double width_ns)
{
    (void)width_ns;
    return slice->completed ? (double)slice->lag_max_ns / 1e3 : NAN;
}

static unsigned int slices_used(const struct stats_timeline *timeline)
{
    unsigned int used = STATS_BUCKETS;

    while (used > 0 && timeline->buckets[used - 1].completed == 0 &&
           timeline->buckets[used - 1].depth_ns == 0)
        used--;
    return used;
}

static int plot_slices(struct page *page, const struct stats_timeline *timeline, const char *name,
                       const char *axis, slice_figure *figure, const char *caption)
{
    unsigned int used = slices_used(timeline);
    struct plot *plot;
    FILE *script;
    int err = plot_new(&plot, name, 240, &script);

    if (err != 0)
        return err;
    fprintf(script, "set xlabel 'seconds since the start'\nset ylabel '%s'\nset yrange [0:*]\n"
                    "$d << EOD\n", axis);
    for (unsigned int i = 0; i < used; i++) {
        double value = figure(&timeline->buckets[i], (double)timeline->width_ns);

        if (!isnan(value))
            fprintf(script, "%.7g %.6g\n", (double)i * (double)timeline->width_ns / 1e9, value);
    }
    fprintf(script, "EOD\nplot $d using 1:2 with steps lw 1.5 lc rgb '%s' notitle\n",
            plot_colour(0));
    return page_plot(page, plot, caption);
}

static const double curve_points[] = {0,    0.1,   0.25,  0.5,    0.75,   0.9,
                                      0.95, 0.99,  0.995, 0.999,  0.9995, 0.9999,
                                      0.99999};

static void curve(FILE *script, const struct hist *hist, unsigned int number)
{
    fprintf(script, "$c%u << EOD\n", number);
    for (size_t i = 0; i < sizeof curve_points / sizeof curve_points[0]; i++)
        if ((1 - curve_points[i]) * (double)hist->count >= 1)
            fprintf(script, "%.6g %.9g\n", -log10(1 - curve_points[i]),
                    fmax(1, (double)hist_quantile(hist, curve_points[i])) / 1e3);
    fprintf(script, "%.6g %.9g\nEOD\n", log10(fmax(2, (double)hist->count)),
            fmax(1, (double)hist->max) / 1e3);
}

static int plot_curves(struct page *page, const struct stats *stats)
{
    const struct hist *hists[STATS_CLASS_COUNT + 2] = {&stats->lag, &stats->response};
    const char *names[STATS_CLASS_COUNT + 2] = {"lag", "response"};
    const char *separator = "plot ";
    struct plot *plot;
    FILE *script;
    int err = plot_new(&plot, "curves", 320, &script);

    if (err != 0)
        return err;
    for (unsigned int i = 0; i < STATS_CLASS_COUNT; i++) {
        hists[i + 2] = &stats->service[i];
        names[i + 2] = stats_class_words[i];
    }
    fputs("set xtics ('0' 0, '50' 0.30103, '90' 1, '99' 2, '99.9' 3, '99.99' 4, '99.999' 5)\n"
          "set xlabel 'percent of ops at or below'\nset logscale y\nset ylabel 'us'\n"
          "set format y '%g'\nset key left top\n", script);
    for (unsigned int i = 0; i < STATS_CLASS_COUNT + 2; i++)
        if (hists[i]->count != 0)
            curve(script, hists[i], i);
    for (unsigned int i = 0; i < STATS_CLASS_COUNT + 2; i++) {
        if (hists[i]->count == 0)
            continue;
        fprintf(script, "%s$c%u using 1:2 with linespoints lw 1.5 ps 0.5 lc rgb '%s' title '%s'",
                separator, i, plot_colour(i), names[i]);
        separator = ", ";
    }
    fputc('\n', script);
    return page_plot(page, plot, "Service time by kind, and lag and response time, at each "
                                 "percentile.");
}

static int plots(struct page *page, const struct run_report *report, const struct conf *conf)
{
    static const struct {
        const char *name, *axis;
        slice_figure *figure;
        bool paced;
        const char *caption;
    } list[] = {
        {"rate", "ops a second", ops_per_s, false, "Operations completed a second, over time."},
        {"bytes", "MiB a second", mib_per_s, false, "Bytes moved a second, over time."},
        {"depth", "ops in flight", depth_mean, false, "Depth: operations in flight, over time."},
        {"service", "us", service_us, false, "Mean service time, over time."},
        {"lag", "us", lag_us, true, "Mean lag (issued after due), over time."},
        {"lagmax", "us", lag_max_us, true, "Largest lag, over time."},
    };
    int err = plot_curves(page, report->stats);

    for (size_t i = 0; i < sizeof list / sizeof list[0] && err == 0; i++)
        if (!list[i].paced || conf->pace != PACE_ASAP)
            err = plot_slices(page, &report->stats->timeline, list[i].name, list[i].axis,
                              list[i].figure, list[i].caption);
    return err;
}

/* Lines as they are, in a frame that scrolls by itself. */
static void preformatted(struct page *page, const char *text)
{
    fputs("<div class=\"frame\" tabindex=\"0\" role=\"region\" aria-label=\"text\"><pre>", page_out(page));
    page_preformatted(page_out(page), text);
    fputs("</pre></div>\n", page_out(page));
}

/* The tables of report_text, as text. */
static int text_section(struct page *page, const struct run_report *report,
                        const struct conf *conf)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL)
        return -ENOMEM;
    report_text(report, conf, out);
    if (fclose(out) != 0) {
        free(text);
        return -ENOMEM;
    }
    page_section(page, "report", "Report");
    preformatted(page, text);
    free(text);
    return 0;
}

int report_html(const struct run_report *report, const struct conf *conf, const char *path,
                struct diag *diag)
{
    struct page *page;
    int err = page_new(&page, "Replay");

    if (err != 0)
        return diag_errno(diag, err, "%s", path);
    err = text_section(page, report, conf);
    if (err == 0 && report->stats->issued != 0) {
        page_section(page, "plots", "Plots");
        if (plot_possible())
            err = plots(page, report, conf);
        else
            page_text(page_out(page), "No plots: gnuplot is not installed here.");
    }
    if (err == 0) {
        page_section(page, "config", "Options");
        preformatted(page, report->config);
        return page_finish(page, path, diag);
    }
    page_abandon(page);
    return diag_errno(diag, err, "%s", path);
}
