/* SPDX-License-Identifier: MIT */
#include "replay/compare_experiment.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "engines/clock.h"
#include "engines/engine.h"
#include "replay/compare_process.h"
#include "traces/diag.h"
#include "traces/units.h"

#define NOTE_FROM_NS 10e9
#define VOID_TRIALS  3 /* runs again of one trial, before its cell is given up */

/* ---- can the cells run? ------------------------------------------------------------- */

static uint64_t value_count(const struct design *design, unsigned int cell, const char *name,
                            uint64_t absent)
{
    const char *text = design_value(design, cell, name);
    uint64_t count;

    return text && units_parse_count(text, &count) == 0 && count > 0 ? count : absent;
}

/* Why the cell cannot run, in reason; "" when nothing speaks against it. */
static void cell_reason(const struct design *design, unsigned int cell, char *reason,
                        size_t size)
{
    struct diag diag = DIAG_INIT;
    struct engine_choice choice;
    struct engine_capacity capacity = {0};
    uint64_t depth = value_count(design, cell, "depth", 1);
    uint64_t many =
        value_count(design, cell, "processes", 1) * value_count(design, cell, "workers", 1);
    struct sysinfo info;

    reason[0] = '\0';
    if (engine_choice_parse(&choice, design_value(design, cell, "engine"), &diag) < 0) {
        snprintf(reason, size, "%.500s", diag.text);
        return;
    }
    if (engine_choice_probe(&choice, &diag) < 0) {
        snprintf(reason, size, "%.500s", diag.text);
    } else if (value_count(design, cell, "batch", 1) > depth &&
               design_value(design, cell, "depth")) {
        snprintf(reason, size, "batch %s is above depth %" PRIu64,
                 design_value(design, cell, "batch"), depth);
    } else if (many > 65536) {
        snprintf(reason, size, "%" PRIu64 " workers are above 65536", many);
    } else if (depth > 65536) {
        snprintf(reason, size, "depth %" PRIu64 " is above 65536", depth);
    } else {
        engine_choice_capacity(&choice, (uint32_t)depth, (uint32_t)many, &capacity);
        if (capacity.max_depth > 0 && capacity.max_depth < depth)
            snprintf(reason, size, "at most depth %" PRIu32 "%s%s", capacity.max_depth,
                     capacity.reason[0] ? ": " : "", capacity.reason);
        else if (sysinfo(&info) == 0 &&
                 capacity.memory_bytes > (uint64_t)info.totalram * info.mem_unit)
            snprintf(reason, size, "needs more memory than there is");
    }
    engine_choice_release(&choice);
}

int experiment_check(struct design *design, struct diag *diag)
{
    char reason[512];
    unsigned int i;

    for (i = 0; i < design->count; i++) {
        cell_reason(design, i, reason, sizeof reason);
        if (reason[0] && design_exclude(design, i, reason) < 0)
            return diag_set(diag, -ENOMEM, "not enough memory");
    }
    return 0;
}

/* ---- running ------------------------------------------------------------------------ */

static void sleep_ns(uint64_t ns, const volatile sig_atomic_t *stop)
{
    struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

    while (!*stop && nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

static void show_progress(const struct experiment *experiment, unsigned int block,
                          unsigned int done, unsigned int total, unsigned int cell)
{
    const struct design *design = experiment->design;
    char label[96], left[UNITS_TEXT] = "?";
    double each_ns;

    if (!experiment->progress)
        return;
    if (experiment->ran > 0) {
        each_ns = experiment->ran_ns / experiment->ran;
        units_time((uint64_t)(each_ns * (total - done)), left);
    }
    fprintf(stderr, "\r\033[Ktrial %u of %u, block %u of %u%s: %s (about %s left)", done + 1,
            total, block + 1, design->warmup + design->trials,
            block < design->warmup ? " (warm-up)" : "",
            design_label(design, cell, label, sizeof label), left);
}

static void clear_progress(const struct experiment *experiment)
{
    if (experiment->progress)
        fputs("\r\033[K", stderr);
}

static int run_reset(const struct experiment *experiment, struct diag *diag)
{
    char *const argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)experiment->reset, NULL};
    struct process_cost cost;
    char *out = NULL, *errors = NULL, line[256];
    int err;

    if (asprintf(&out, "%s/reset.out", experiment->trial.folder) < 0)
        out = NULL;
    if (asprintf(&errors, "%s/reset.err", experiment->trial.folder) < 0)
        errors = NULL;
    err = out && errors ? process_run(argv, out, errors, experiment->trial.stop, &cost, diag)
                        : diag_set(diag, -ENOMEM, "not enough memory");
    if (err == 0 && cost.stopped)
        err = -EINTR;
    if (err == 0 && cost.status != 0) {
        process_error_line(errors, cost.status, line, sizeof line);
        err = diag_set(diag, -EIO, "--reset: exit %d%s%s", cost.status, line[0] ? ": " : "",
                       line);
    }
    free(out);
    free(errors);
    return err;
}

/* Did the cell ever give figures? Then a failure may be the moment's: a cache that was robbed.
 */
static bool has_worked(const struct experiment *experiment, unsigned int cell)
{
    unsigned int i;

    for (i = 0; i < experiment->journal->count; i++)
        if (experiment->journal->records[i].cell == cell &&
            !experiment->journal->records[i].failed)
            return true;
    return false;
}

/* One trial, rested before and reset; run again when it is void and the cell has worked. */
static int run_until_valid(struct experiment *experiment, unsigned int block, unsigned int cell,
                           struct record *ret_record, struct diag *diag)
{
    unsigned int voids = 0;
    int err = 0;

    for (;;) {
        if (*experiment->trial.stop)
            return -EINTR;
        if (experiment->cool_down_ns > 0 && experiment->ran > 0)
            sleep_ns(experiment->cool_down_ns, experiment->trial.stop);
        if (experiment->reset)
            err = run_reset(experiment, diag);
        if (err == 0)
            err = trial_run(&experiment->trial, block, cell, ret_record, diag);
        if (err < 0)
            return err;
        if (!ret_record->failed || voids == VOID_TRIALS || !has_worked(experiment, cell))
            break;
        if (experiment->notes) {
            clear_progress(experiment);
            diag_note(diag, "a void trial is run again: %s", ret_record->failed);
        }
        free(ret_record->failed);
        voids++;
    }
    ret_record->voids = voids;
    return 0;
}

static int run_one(struct experiment *experiment, unsigned int block, unsigned int cell,
                   unsigned int position, struct diag *diag)
{
    uint64_t begun_ns = clock_now_ns(&clock_real);
    struct record record;
    int err = run_until_valid(experiment, block, cell, &record, diag);

    if (err < 0)
        return err;
    record.position = position;
    experiment->ran++;
    experiment->ran_ns += (double)(clock_now_ns(&clock_real) - begun_ns);
    if (record.failed && design_exclude(experiment->design, cell, record.failed) < 0)
        err = diag_set(diag, -ENOMEM, "not enough memory");
    if (err == 0)
        err = journal_add(experiment->journal, &record, diag);
    if (err < 0)
        free(record.failed);
    return err;
}

/* A block; *position counts the trials of the whole experiment, done or to do. */
static int run_block(struct experiment *experiment, unsigned int block, uint32_t *order,
                     unsigned int *position, struct diag *diag)
{
    struct design *design = experiment->design;
    unsigned int count = design_order(design, block, order), i;
    const struct record *record;
    int err = 0;

    for (i = 0; i < count && err == 0; i++) {
        record = journal_find(experiment->journal, block, order[i]);
        if (!record) {
            show_progress(experiment, block, *position,
                          *position - i + count * (design->warmup + design->trials - block),
                          order[i]);
            err = run_one(experiment, block, order[i], *position, diag);
        } else if (record->failed) {
            err = design_exclude(design, order[i], record->failed);
        }
        (*position)++;
    }
    return err;
}

/* Once, when a block has shown what a trial takes. */
static void note_left(struct experiment *experiment, unsigned int blocks_left,
                      unsigned int cells, struct diag *diag)
{
    double left_ns;
    char text[UNITS_TEXT];

    if (!experiment->notes || experiment->noted || experiment->ran == 0)
        return;
    experiment->noted = true;
    left_ns = experiment->ran_ns / experiment->ran * blocks_left * cells;
    if (left_ns < NOTE_FROM_NS)
        return;
    clear_progress(experiment);
    diag_note(diag, "about %s for the other %u runs", units_time((uint64_t)left_ns, text),
              blocks_left * cells);
}

int experiment_run(struct experiment *experiment, struct diag *diag)
{
    struct design *design = experiment->design;
    unsigned int blocks = design->warmup + design->trials, block, position = 0;
    uint32_t *order = malloc((design->count + 1) * sizeof *order);
    int err = 0;

    if (!order)
        return diag_set(diag, -ENOMEM, "not enough memory");
    for (block = 0; block < blocks && err == 0; block++) {
        err = run_block(experiment, block, order, &position, diag);
        if (err == 0)
            note_left(experiment, blocks - block - 1, design_order(design, block, order), diag);
    }
    clear_progress(experiment);
    free(order);
    if (err == -ENOMEM)
        diag_set(diag, err, "not enough memory");
    return err;
}
