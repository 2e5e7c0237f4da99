/* SPDX-License-Identifier: MIT */
/*
 * What compare says of two tapes: as text for people, as JSON, and single figures for
 * --fail-if. Nothing here changes the comparison.
 */
#ifndef REPLAY_COMPARE_TAPES_REPORT_H
#define REPLAY_COMPARE_TAPES_REPORT_H

#include <stdio.h>

#include <jansson.h>

#include "replay/compare_grid.h"
#include "replay/compare_tapes.h"

/* Remarks a reader must know before believing a figure; called for each in turn. */
void tapes_remarks(const struct tapes *tapes, void (*each)(void *context, const char *text),
                   void *context);
/* 0, -ENOMEM or -EIO. bold: terminal headings. */
int tapes_print(const struct tapes *tapes, FILE *out, bool bold);
/* The parts of that text, for other forms. Grids: NULL without memory. */
struct grid *tapes_sides_grid(const struct tapes *tapes);
struct grid *
tapes_groups_grid(const struct tapes *tapes); /* matched ops by kind, stream, file */
void tapes_print_about(const struct tapes *tapes, unsigned int which, FILE *out);
void tapes_print_fidelity(const struct tapes *tapes, FILE *out);
/* One self-contained page with plots. -errno with diag. */
int tapes_html(const struct tapes *tapes, const char *path, struct diag *diag);
/* A new reference, or NULL without memory. */
json_t *tapes_json(const struct tapes *tapes);

/*
 * A figure by name: iops, bandwidth, ops, bytes, duration, errors, short_transfers, late,
 * p50 ... p99_9, max, mean (latency; "read.p99" of one kind), response_*, lag_*, submit_*,
 * depth_mean, depth_max; of the pair: lost, extra, unmatched, overtaken, issue_error_p50, _p99,
 * _max (sizes, without sign), gap_ks, size_ks, depth_ks. Times in ns. *ret_a is 0 for those of
 * the pair. -EINVAL: no such figure; -ENODATA: the tapes do not tell it.
 */
int tapes_figure(const struct tapes *tapes, const char *name, double *ret_a, double *ret_b);

/* Quantiles by name: "p50", "p99_9", "max", "mean", "min". -EINVAL: no such name. */
int figure_of_hist(const struct hist *hist, const char *name, double *ret_value);

#endif
