/* SPDX-License-Identifier: MIT */
#include "replay/compare_page.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "replay/compare_output.h"
#include "replay/compare_plot.h"
#include "traces/diag.h"

struct page {
    FILE *out;
    char *text;
    size_t bytes;
    bool in_section;
};

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1b1b1b;--soft:#555;--line:#ccc;--paper:#fff;"
    "--row:#f5f6f8;--link:#0b57a4}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--soft:#b0b0b0;--line:#444;"
    "--paper:#16181b;--row:#202327;--link:#8ab8f0}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;max-width:72rem;padding:1rem;font:1rem/1.5 system-ui,sans-serif;"
    "color:var(--ink);background:var(--paper)}\n"
    "h1{font-size:1.5rem;line-height:1.25;overflow-wrap:anywhere}\n"
    "h2{font-size:1.15rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}\n"
    "h3{font-size:1rem;margin:1.2rem 0 .4rem}\n"
    "a{color:var(--link)}\n"
    ".skip{position:absolute;left:-99rem}.skip:focus{position:static}\n"
    "nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1rem;list-style:none;padding:0}\n"
    "nav a{display:inline-block;padding:.4rem 0}\n"
    ".frame{overflow-x:auto;border:1px solid var(--line);border-radius:4px}\n"
    ".frame:focus-visible,a:focus-visible,summary:focus-visible{outline:3px solid var(--link);"
    "outline-offset:2px}\n"
    "table{border-collapse:collapse;font-size:.875rem;width:100%}\n"
    "th,td{padding:.3rem .5rem;text-align:left;white-space:nowrap;vertical-align:top}\n"
    "th[scope=row]{font-weight:normal}\n"
    "thead th{border-bottom:2px solid var(--line)}\n"
    ".n{text-align:right;font-variant-numeric:tabular-nums}\n"
    "tbody tr:nth-child(odd){background:var(--row)}\n"
    ".plots{display:grid;gap:1rem;"
    "grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr))}\n"
    "figure{margin:0}\n"
    "pre{margin:0;padding:.6rem;font-size:.85rem}\n"
    "figure svg{display:block;width:100%;height:auto;background:#fff;"
    "border:1px solid var(--line);border-radius:4px}\n"
    "figcaption{color:var(--soft);font-size:.9rem;padding-top:.3rem}\n"
    "li{overflow-wrap:anywhere}\n"
    "summary{cursor:pointer;padding:.4rem 0}\n"
    "@media print{nav,.skip{display:none}.frame{overflow:visible}}\n";

void page_preformatted(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        case '\n': fputc('\n', out); break;
        default: fputc((unsigned char)*text < 0x20 ? '?' : *text, out);
        }
}

void page_text(FILE *out, const char *text)
{
    for (; *text; text++)
        if (*text == '\n')
            fputc('?', out);
        else
            page_preformatted(out, (const char[]){*text, '\0'});
}

int page_new(struct page **ret_page, const char *title)
{
    struct page *page = calloc(1, sizeof *page);

    if (!page)
        return -ENOMEM;
    page->out = open_memstream(&page->text, &page->bytes);
    if (!page->out) {
        free(page);
        return -ENOMEM;
    }
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
          page->out);
    page_text(page->out, title);
    fprintf(
        page->out,
        "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n%s</style>\n</head>\n<body>\n"
        "<a class=\"skip\" href=\"#main\">To the findings</a>\n<header>\n<h1>",
        style);
    page_text(page->out, title);
    fputs("</h1>\n</header>\n", page->out);
    *ret_page = page;
    return 0;
}

FILE *page_out(struct page *page)
{
    return page->out;
}

static void section_end(struct page *page)
{
    if (page->in_section)
        fputs("</section>\n", page->out);
    page->in_section = false;
}

void page_section(struct page *page, const char *id, const char *title)
{
    section_end(page);
    fprintf(page->out, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">", id, id);
    page_text(page->out, title);
    fputs("</h2>\n", page->out);
    page->in_section = true;
}

int page_table(struct page *page, const char *label, const struct grid *grid)
{
    int err = 0;

    if (!grid)
        return 0;
    fputs("<div class=\"frame\" tabindex=\"0\" role=\"region\" aria-label=\"", page->out);
    page_text(page->out, label);
    fputs("\">\n", page->out);
    err = grid_print(grid, page->out, GRID_HTML, false);
    fputs("</div>\n", page->out);
    return err;
}

void page_list_begin(struct page *page)
{
    fputs("<ul>\n", page->out);
}

void page_list_item(void *context, const char *text)
{
    struct page *page = context;

    fputs("<li>", page->out);
    page_text(page->out, text);
    fputs("</li>\n", page->out);
}

void page_list_fact(void *context, const char *name, const char *value)
{
    struct page *page = context;

    fputs("<li>", page->out);
    page_text(page->out, name);
    fputs(": ", page->out);
    page_text(page->out, value);
    fputs("</li>\n", page->out);
}

void page_list_end(struct page *page)
{
    fputs("</ul>\n", page->out);
}

int page_plot(struct page *page, struct plot *plot, const char *caption)
{
    char *svg;
    int err = plot_finish(plot, caption, &svg);

    if (err == -ENOMEM)
        return err;
    fputs("<figure>\n", page->out);
    if (err == 0) {
        fputs(svg, page->out);
        free(svg);
    } else {
        fputs("<p>gnuplot could not draw this.</p>\n", page->out);
    }
    fputs("<figcaption>", page->out);
    page_text(page->out, caption);
    fputs("</figcaption>\n</figure>\n", page->out);
    return 0;
}

int page_finish(struct page *page, const char *path, struct diag *diag)
{
    int err;

    section_end(page);
    fputs("</main>\n<footer><p>Made by iotape " IOTAPE_VERSION ".</p></footer>\n</body>\n"
          "</html>\n",
          page->out);
    err = fclose(page->out) == 0 ? output_text(path, page->text, page->bytes, diag)
                                 : diag_set(diag, -ENOMEM, "%s: not enough memory", path);
    free(page->text);
    free(page);
    return err;
}

void page_abandon(struct page *page)
{
    if (!page)
        return;
    fclose(page->out);
    free(page->text);
    free(page);
}
