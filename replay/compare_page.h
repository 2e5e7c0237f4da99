/* SPDX-License-Identifier: MIT */
/*
 * One self-contained HTML page: no script, nothing fetched, readable on a phone and without its
 * plots. Whatever text comes from outside goes through page_text.
 *
 * Lifecycle: page_new, sections, page_finish. One thread; writes go to memory.
 */
#ifndef REPLAY_COMPARE_PAGE_H
#define REPLAY_COMPARE_PAGE_H

#include <stdio.h>

#include "replay/compare_grid.h"

struct diag;
struct page;
struct plot;

int page_new(struct page **ret_page, const char *title); /* -ENOMEM */
FILE *page_out(struct page *page);
void page_text(FILE *out, const char *text);         /* escaped */
void page_preformatted(FILE *out, const char *text); /* likewise, lines kept */
void page_section(struct page *page, const char *id, const char *title);
/* A table in a frame that scrolls by itself, by keyboard too. grid NULL: nothing. */
int page_table(struct page *page, const char *label, const struct grid *grid);
/* Items of a list. */
void page_list_begin(struct page *page);
void page_list_item(void *page, const char *text);
void page_list_fact(void *page, const char *name, const char *value);
void page_list_end(struct page *page);
/* Finishes the plot and puts it in with its caption; where it fails the page says so. */
int page_plot(struct page *page, struct plot *plot, const char *caption);
/* Writes the page to path and frees it, whatever is returned. */
int page_finish(struct page *page, const char *path, struct diag *diag);
void page_abandon(struct page *page); /* NULL is fine */

#endif
