/* SPDX-License-Identifier: MIT */
/*
 * The folder of an experiment: what is planned (plan.json), one line for each trial that is
 * done (journal.jsonl), and the trials' own files. Whatever kills the program, what was done
 * stays done: a line is appended and synced when its trial is whole, and a torn last line is
 * dropped.
 *
 * Lifecycle: journal_open, journal_add, journal_close. One process at a time holds a folder (a
 * lock on the journal). One thread. Errors: -errno, in diag.
 */
#ifndef REPLAY_COMPARE_JOURNAL_H
#define REPLAY_COMPARE_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "replay/compare_curve.h"
#include "replay/compare_metric.h"

struct diag;

/* One trial. */
struct record {
    unsigned int block, cell;
    unsigned int position;      /* in the order of the whole experiment, from 0 */
    char *failed;               /* why it gave no figures, or NULL */
    unsigned int voids;         /* runs of it that failed before this one did not */
    double value[METRIC_COUNT]; /* NAN: not known */
    bool has_curve;
    double curve[CURVE_POINTS]; /* service time, ns, at curve_fraction[] */
    double steady;  /* log of the rate of its second half over its first's; NAN: not known */
    char restored[24]; /* how the files were put back before it; "": they were not */
    double wall_ns; /* how long the trial took, set-up and all */
};

struct journal {
    char *folder;
    int fd;
    struct record *records; /* by block, then cell */
    unsigned int count, room;
    bool resumed; /* it held trials already */
};

/*
 * folder is made, or, with resume, continued: plan must then equal the one in it but for the
 * keys "environment" and "started", which are replaced in *plan by those kept, and "trials":
 * more may be asked for. Without resume a folder that holds trials is -EEXIST.
 */
int journal_open(struct journal *journal, const char *folder, bool resume, json_t *plan,
                 struct diag *diag);
/* Takes record->failed over. */
int journal_add(struct journal *journal, const struct record *record, struct diag *diag);
/* The trial of that block and cell, or NULL; good until the next journal_add. */
const struct record *journal_find(const struct journal *journal, unsigned int block,
                                  unsigned int cell);
void journal_close(struct journal *journal); /* a zeroed one with fd -1 is fine */

/* The first free name of TAPE.compare-1, -2 ... in the present folder, for experiments that
 * were given none. The caller frees it; NULL without memory. */
char *journal_new_folder(const char *tape);

#endif
