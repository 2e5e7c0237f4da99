/* SPDX-License-Identifier: MIT */
/*
 * Plots by gnuplot, as SVG to be put into a page. gnuplot runs as a child and reads its
 * commands and data from a pipe; nothing is written to disk. Where it is not installed there
 * are no plots.
 *
 * One thread. The text a plot is made of must hold no data of a stranger's in quotes: titles go
 * through plot_quote.
 */
#ifndef REPLAY_COMPARE_PLOT_H
#define REPLAY_COMPARE_PLOT_H

#include <stdbool.h>
#include <stdio.h>

/* Is there a gnuplot that can write SVG? Looked for once. */
bool plot_possible(void);

/*
 * Starts a plot: *ret_script takes gnuplot commands (terminal and output are set). name: a
 * word, unique in the page. height in pixels, of a width of 540. -ENOMEM.
 */
struct plot;
int plot_new(struct plot **ret_plot, const char *name, unsigned int height, FILE **ret_script);
/*
 * Runs it and frees the plot. *ret_svg: the svg element, which the caller frees. label: what
 * the plot shows, for those who do not see it. -ENOMEM, or -EIO: gnuplot failed.
 */
int plot_finish(struct plot *plot, const char *label, char **ret_svg);

void plot_drop(struct plot *plot); /* frees one that is not wanted after all */

/* The text as a gnuplot string in single quotes. */
void plot_quote(FILE *script, const char *text);
/* The colour of the n-th of several lines: told apart by colour-blind eyes too. */
const char *plot_colour(unsigned int n);

#endif
