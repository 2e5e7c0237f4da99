/* SPDX-License-Identifier: MIT */
/* The report of a replay in its forms. None of them changes anything; all may be called once the
 * run has ended. */
#ifndef REPLAY_REPORT_H
#define REPLAY_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "replay/run.h"

struct conf;
struct diag;

/* Tables for people. */
void report_text(const struct run_report *report, const struct conf *conf, FILE *out);
/* --plan: what would be done. */
void report_plan(const struct run_report *report, const struct conf *conf, FILE *out);
/* --restore-only: what was put back. */
void report_restored(const struct run_report *report, FILE *out);
/* One self-contained page to path, with plots where gnuplot is installed; renamed into place. */
int report_html(const struct run_report *report, const struct conf *conf, const char *path,
                struct diag *diag);
/* One JSON object to path, renamed into place when whole; "-" is standard output. */
int report_json(const struct run_report *report, const struct conf *conf, const char *path,
                struct diag *diag);
/* The options, with the depth and batch that were chosen, as JSON into text. */
void report_config(const struct conf *conf, uint32_t depth, uint32_t batch, char *text,
                   size_t size);

#endif
