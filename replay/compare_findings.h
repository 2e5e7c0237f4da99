/* SPDX-License-Identifier: MIT */
/*
 * What an experiment found, as a table for the terminal, Markdown for a mail, CSV and JSON.
 * Nothing here changes what was found, and the same trials give the same text.
 */
#ifndef REPLAY_COMPARE_FINDINGS_H
#define REPLAY_COMPARE_FINDINGS_H

#include <stdio.h>

#include <jansson.h>

#include "replay/compare_grid.h"
#include "replay/compare_judge.h"

struct diag;

struct findings {
    const struct design *design;
    const struct journal *journal;
    const struct judge *judge;
    const struct judge_rules *rules;
    const json_t *plan; /* as kept in the experiment's folder: options, environment */
    bool commands;      /* --ab: the first dimension holds commands */
    bool witnessed;     /* --witness: the commands ran under a recorder */
    bool simulated;     /* the trials ran on a simulated clock */
};

/* The main table. NULL without memory. raw: numbers without units or rounding, for CSV. */
struct grid *findings_table(const struct findings *findings, bool raw);
/* The other figures that were judged, one row a comparison; NULL: none, or without memory. */
struct grid *findings_other_figures(const struct findings *findings);
/* What a reader must know to believe or doubt the table, a line at a time. */
void findings_remarks(const struct findings *findings,
                      void (*each)(void *context, const char *text), void *context);

/* 0, -ENOMEM or -EIO. */
int findings_print(const struct findings *findings, FILE *out, bool bold);
int findings_print_markdown(const struct findings *findings, FILE *out);
int findings_print_csv(const struct findings *findings, FILE *out);
json_t *
findings_json(const struct findings *findings); /* a new reference, or NULL without memory */

/* One self-contained page with plots. -errno with diag. */
int findings_html(const struct findings *findings, const char *path, struct diag *diag);

/* A cell as words: its values, or for commands "A", "B" ... Returns buf. */
const char *findings_cell_name(const struct findings *findings, unsigned int cell, char *buf,
                               size_t size);
/* "different", "equivalent within 5 %" ...; "baseline", "n/a" where there is no comparison. */
const char *findings_verdict(const struct findings *findings, unsigned int cell,
                             unsigned int metric, char *buf, size_t size);

#endif
