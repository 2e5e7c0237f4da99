/* SPDX-License-Identifier: MIT */
/*
 * Plots of what one or several tapes say of themselves, put into a page: latency curves, rates,
 * depth, latency and lag over time, offsets over time. A plot for which no side has anything is
 * left out. gnuplot must be there (plot_possible).
 */
#ifndef REPLAY_COMPARE_SIDES_PLOT_H
#define REPLAY_COMPARE_SIDES_PLOT_H

#include "replay/compare_page.h"
#include "replay/compare_side.h"

#define SIDES_PLOT_MOST 8

struct plot_side {
    const struct side *side;
    const char *name;
};

/* count: 1 .. SIDES_PLOT_MOST. All return 0 or -ENOMEM. */
int sides_plot_curves(struct page *page, const struct plot_side *sides, unsigned int count);
int sides_plot_over_time(struct page *page, const struct plot_side *sides, unsigned int count);
int sides_plot_maps(struct page *page, const struct plot_side *sides, unsigned int count);

/* The x axis of latency curves: a fraction's place, and the marks. 0.9 is 1, 0.99 is 2: the
 * foot of a curve is as wide as its tail. */
double plot_nines(double fraction);
void plot_nines_axis(FILE *script);

#endif
