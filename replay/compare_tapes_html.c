/* SPDX-License-Identifier: MIT */
#include "replay/compare_tapes_report.h"

#include <errno.h>
#include <stdlib.h>

#include "replay/compare_page.h"
#include "replay/compare_plot.h"
#include "replay/compare_sides_plot.h"
#include "traces/diag.h"

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
    const struct plot_side sides[2] = {{tapes->side[0], "A"}, {tapes->side[1], "B"}};
    int err;

    page_section(page, "plots", "Plots");
    if (!plot_possible()) {
        fputs("<p>No plots: gnuplot is not installed here.</p>\n", page_out(page));
        return 0;
    }
    fputs("<div class=\"plots\">\n", page_out(page));
    err = sides_plot_curves(page, sides, 2);
    if (err == 0)
        err = plot_issue_error(page, tapes);
    if (err == 0)
        err = sides_plot_over_time(page, sides, 2);
    if (err == 0)
        err = sides_plot_maps(page, sides, 2);
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
    page_preformatted(page_out(page), text);
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
    if (err == 0 && tapes->pairs->matched > 0) {
        fputs("<h3>By op kind, stream and file</h3>\n", page_out(page));
        err = page_table(page, "Matched ops by kind, stream and file", groups);
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
