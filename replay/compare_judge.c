/* SPDX-License-Identifier: MIT */
#include "replay/compare_judge.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A doubt is raised when chance alone would raise it in one cell of a hundred. */
#define DOUBT_P       0.01
#define DRIFT_LEAST   0.01 /* share below which a drift is not worth a word */
#define HUMPS_LEAST   0.02
#define UNSTEADY_RATE 0.10
#define SMALL_SHARE   0.1 /* what the replayer adds is small below this share of a difference */

static bool record_counts(const struct design *design, const struct record *record)
{
    return !record->failed && record->block >= design->warmup &&
           record->block < design->warmup + design->trials && record->cell < design->count;
}

/* The values of a figure over the trials of a cell, in order of blocks; returns how many. */
static unsigned int cell_values(const struct design *design, const struct journal *journal,
                                unsigned int cell, unsigned int metric, double *values)
{
    const struct record *record;
    unsigned int block, count = 0;

    for (block = design->warmup; block < design->warmup + design->trials; block++) {
        record = journal_find(journal, block, cell);
        if (record && record_counts(design, record) && !isnan(record->value[metric]))
            values[count++] = record->value[metric];
    }
    return count;
}

static void summarise_metric(struct judge_cell *cell, unsigned int metric, const double *values,
                             unsigned int count)
{
    double logs = 0, mean = infer_mean(values, count);
    bool positive = true;
    unsigned int i;

    cell->mean[metric] = cell->scatter[metric] = NAN;
    if (count == 0)
        return;
    for (i = 0; i < count; i++) {
        positive = positive && values[i] > 0;
        logs += positive ? log(values[i]) : 0;
    }
    cell->mean[metric] = positive ? exp(logs / count) : mean;
    if (count > 1)
        cell->scatter[metric] = mean != 0 ? infer_deviation(values, count) / fabs(mean) : 0;
}

static void summarise_curve(struct judge_cell *cell, const struct design *design,
                            const struct journal *journal, unsigned int index, double *values)
{
    unsigned int point, i, count = 0;
    double mean, reach, low, high;

    for (point = 0; point < CURVE_POINTS; point++) {
        for (i = 0, count = 0; i < journal->count; i++)
            if (journal->records[i].cell == index && journal->records[i].has_curve &&
                record_counts(design, &journal->records[i]))
                values[count++] = log(fmax(1, journal->records[i].curve[point]));
        if (count == 0)
            return;
        mean = infer_mean(values, count);
        if (count >= INFER_LEAST_PAIRS) {
            reach = infer_t_quantile(0.975, count - 1) * infer_deviation(values, count) /
                    sqrt(count);
            low = mean - reach;
            high = mean + reach;
        } else {
            for (i = 1, low = high = values[0]; i < count; i++) {
                low = fmin(low, values[i]);
                high = fmax(high, values[i]);
            }
        }
        cell->curve[point] = exp(mean);
        cell->curve_low[point] = exp(low);
        cell->curve_high[point] = exp(high);
    }
    cell->has_curve = true;
}

static int doubt_cell(struct judge_cell *cell, const struct judge_rules *rules,
                      const double *values, unsigned int count)
{
    unsigned int main_metric = rules->metric[0];
    int err = infer_humps_find(values, count, rules->infer.seed, &cell->humps);

    if (err < 0)
        return err;
    if (cell->scatter[main_metric] > rules->unstable)
        cell->doubts |= JUDGE_UNSTABLE;
    if (cell->humps.p < DOUBT_P && cell->humps.low > 0 &&
        cell->humps.high / cell->humps.low - 1 > HUMPS_LEAST)
        cell->doubts |= JUDGE_TWO_HUMPED;
    if (fabs(cell->steady) > log(1 + UNSTEADY_RATE))
        cell->doubts |= JUDGE_UNSTEADY;
    if (cell->mean[METRIC_ERRORS] > 0 || cell->mean[METRIC_SHORT] > 0)
        cell->doubts |= JUDGE_ERRORS;
    return 0;
}

static int summarise_cell(struct judge_cell *cell, const struct design *design,
                          const struct journal *journal, const struct judge_rules *rules,
                          unsigned int index, double *values)
{
    unsigned int metric, i, count = 0;

    for (i = 0; i < journal->count; i++)
        if (journal->records[i].cell == index && record_counts(design, &journal->records[i])) {
            cell->trials++;
            cell->voids += journal->records[i].voids;
            if (!isnan(journal->records[i].steady))
                values[count++] = journal->records[i].steady;
        }
    cell->steady = count > 0 ? infer_quantile(values, count, 0.5) : NAN;
    /* At a recorded pace the rate is the recording's own, steady or not. */
    if (isnan(cell->steady) || cell_values(design, journal, index, METRIC_LAG_MEAN, values) > 0)
        cell->steady = NAN;
    for (metric = 0; metric < METRIC_COUNT; metric++)
        summarise_metric(cell, metric, values,
                         cell_values(design, journal, index, metric, values));
    summarise_curve(cell, design, journal, index, values);
    count = cell_values(design, journal, index, rules->metric[0], values);
    return doubt_cell(cell, rules, values, count);
}

/* The main figure's logs without their cells' means, in the order the trials ran. */
static int find_trend(struct judge *judge, const struct design *design,
                      const struct journal *journal, const struct judge_rules *rules)
{
    unsigned int positions = 0, i, count = 0, metric = rules->metric[0];
    double *by_position;
    int err;

    for (i = 0; i < journal->count; i++)
        if (journal->records[i].position >= positions)
            positions = journal->records[i].position + 1;
    by_position = malloc((positions + 1) * sizeof *by_position);
    if (!by_position)
        return -ENOMEM;
    for (i = 0; i < positions; i++)
        by_position[i] = NAN;
    for (i = 0; i < journal->count; i++) {
        const struct record *record = &journal->records[i];

        if (record_counts(design, record) && record->value[metric] > 0 &&
            judge->cells[record->cell].mean[metric] > 0)
            by_position[record->position] =
                log(record->value[metric] / judge->cells[record->cell].mean[metric]);
    }
    for (i = 0; i < positions; i++)
        if (!isnan(by_position[i]))
            by_position[count++] = by_position[i];
    err = infer_trend_find(by_position, count, rules->infer.seed, &judge->trend);
    free(by_position);
    judge->drifts = judge->trend.p < DOUBT_P && fabs(judge->trend.change) > DRIFT_LEAST;
    return err;
}

/* ---- comparisons -------------------------------------------------------------------- */

/* Log ratios of the blocks where both sides have the figure, and it is above 0. */
static unsigned int pair_values(const struct design *design, const struct journal *journal,
                                unsigned int cell, unsigned int metric, double *ret_ratios)
{
    const struct record *here, *there;
    unsigned int block, count = 0;

    for (block = design->warmup; block < design->warmup + design->trials; block++) {
        here = journal_find(journal, block, cell);
        there = journal_find(journal, block, design->cells[cell].baseline);
        if (here && there && record_counts(design, here) && record_counts(design, there) &&
            here->value[metric] > 0 && there->value[metric] > 0)
            ret_ratios[count++] = log(here->value[metric] / there->value[metric]);
    }
    return count;
}

static double larger(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : fmax(a, b);
}

/*
 * A verdict stands only where what the replayer itself did is small against the difference it
 * rests on (or, for an equivalence, against the margin): the lag for times, the share of ops
 * held back by the depth cap for everything at a recorded pace.
 */
static void refuse(struct judge *judge, const struct design *design,
                   const struct judge_rules *rules, struct judge_comparison *comparison)
{
    const struct judge_cell *here = &judge->cells[comparison->cell];
    const struct judge_cell *there = &judge->cells[design->cells[comparison->cell].baseline];
    double lag_ns = larger(here->mean[METRIC_LAG_MEAN], there->mean[METRIC_LAG_MEAN]);
    double held = larger(here->mean[METRIC_HOLDS] / here->mean[METRIC_OPS],
                         there->mean[METRIC_HOLDS] / there->mean[METRIC_OPS]);
    double share = fabs(comparison->infer.ratio - 1), room_ns;

    if (isnan(lag_ns) || comparison->infer.verdict == INFER_UNDECIDED)
        return;
    if (comparison->infer.verdict == INFER_EQUIVALENT)
        share = rules->infer.margin;
    room_ns = share * there->mean[comparison->metric];
    if (metrics[comparison->metric].unit == METRIC_TIME_NS &&
        comparison->metric != METRIC_CPU && comparison->metric != METRIC_CPU_USER &&
        comparison->metric != METRIC_CPU_SYS && comparison->metric != METRIC_DURATION &&
        lag_ns > SMALL_SHARE * room_ns)
        snprintf(comparison->refused, sizeof comparison->refused,
                 "the replayer's lag (mean %.3g us) is not small against %.3g us", lag_ns / 1e3,
                 room_ns / 1e3);
    else if (held > SMALL_SHARE * share)
        snprintf(comparison->refused, sizeof comparison->refused,
                 "%.2g %% of the ops were held back by the depth cap", held * 100);
    if (comparison->refused[0])
        comparison->infer.verdict = INFER_UNDECIDED;
}

static bool can_compare(const struct design *design, unsigned int cell)
{
    return !design->cells[cell].excluded &&
           !design->cells[design->cells[cell].baseline].excluded;
}

static int compare_cells(struct judge *judge, const struct design *design,
                         const struct journal *journal, const struct judge_rules *rules)
{
    unsigned int most = design->count * rules->metrics, cell, i, pairs;
    struct infer_comparison *infer = calloc(most ? most : 1, sizeof *infer);
    double *at;
    int err;

    judge->comparisons = calloc(most ? most : 1, sizeof *judge->comparisons);
    judge->log_ratios = calloc((size_t)most * design->trials + 1, sizeof *judge->log_ratios);
    if (!infer || !judge->comparisons || !judge->log_ratios) {
        free(infer);
        return -ENOMEM;
    }
    at = judge->log_ratios;
    for (cell = 0; cell < design->count; cell++)
        for (i = 0; design->cells[cell].baseline != cell && i < rules->metrics; i++) {
            pairs = can_compare(design, cell)
                        ? pair_values(design, journal, cell, rules->metric[i], at)
                        : 0;
            if (pairs == 0)
                continue;
            infer[judge->count] = (struct infer_comparison){.log_ratio = at, .pairs = pairs};
            judge->comparisons[judge->count].cell = cell;
            judge->comparisons[judge->count++].metric = rules->metric[i];
            at += pairs;
        }
    err = infer_judge(infer, judge->count, &rules->infer);
    for (i = 0; err == 0 && i < judge->count; i++) {
        judge->comparisons[i].infer = infer[i];
        refuse(judge, design, rules, &judge->comparisons[i]);
    }
    free(infer);
    return err;
}

/* More resamples of whole curves than this take long and say no more. */
#define BAND_DRAWS 2000

static int compare_curve_of(struct judge *judge, const struct design *design,
                            const struct journal *journal, const struct judge_rules *rules,
                            unsigned int cell, double *logs)
{
    struct judge_cell *found = &judge->cells[cell];
    unsigned int block, pairs = 0, point;
    const struct record *here, *there;
    int err;

    for (block = design->warmup; block < design->warmup + design->trials; block++) {
        here = journal_find(journal, block, cell);
        there = journal_find(journal, block, design->cells[cell].baseline);
        if (!here || !there || !here->has_curve || !there->has_curve)
            continue;
        for (point = 0; point < CURVE_POINTS; point++)
            logs[pairs * CURVE_POINTS + point] =
                log(fmax(1, here->curve[point]) / fmax(1, there->curve[point]));
        pairs++;
    }
    err = band_of_ratios(logs, pairs, CURVE_POINTS, rules->infer.level,
                         rules->infer.draws < BAND_DRAWS ? rules->infer.draws : BAND_DRAWS,
                         rules->infer.seed + cell, found->ratio_curve);
    found->has_ratio_curve = err == 0;
    return err == -EDOM ? 0 : err;
}

static int compare_curves(struct judge *judge, const struct design *design,
                          const struct journal *journal, const struct judge_rules *rules)
{
    double *logs = malloc((design->trials + 1) * CURVE_POINTS * sizeof *logs);
    unsigned int cell;
    int err = 0;

    if (!logs)
        return -ENOMEM;
    for (cell = 0; cell < design->count && err == 0; cell++)
        if (design->cells[cell].baseline != cell && can_compare(design, cell))
            err = compare_curve_of(judge, design, journal, rules, cell, logs);
    free(logs);
    return err;
}

static void plan_trials(struct judge *judge, const struct judge_rules *rules)
{
    double squares = 0;
    unsigned int i, counted = 0;

    for (i = 0; i < judge->count; i++)
        if (judge->comparisons[i].metric == rules->metric[0] &&
            judge->comparisons[i].infer.pairs > 1) {
            squares +=
                judge->comparisons[i].infer.deviation * judge->comparisons[i].infer.deviation;
            counted++;
        }
    judge->deviation = counted > 0 ? sqrt(squares / counted) : NAN;
    if (counted > 0)
        judge->trials_needed = infer_trials_needed(
            judge->count, rules->infer.alpha, judge->deviation, rules->detect, INFER_POWER);
}

int judge_new(struct judge **ret_judge, const struct design *design,
              const struct journal *journal, const struct judge_rules *rules)
{
    struct judge *judge = calloc(1, sizeof *judge);
    double *values = malloc((design->trials + journal->count + 1) * sizeof *values);
    unsigned int i;
    int err = -ENOMEM;

    if (judge)
        judge->cells = calloc(design->count ? design->count : 1, sizeof *judge->cells);
    if (!judge || !judge->cells || !values)
        goto out;
    for (i = 0, err = 0; i < design->count && err == 0; i++)
        err = summarise_cell(&judge->cells[i], design, journal, rules, i, values);
    if (err == 0)
        err = find_trend(judge, design, journal, rules);
    if (err == 0)
        err = compare_cells(judge, design, journal, rules);
    if (err == 0)
        err = compare_curves(judge, design, journal, rules);
    if (err == 0)
        plan_trials(judge, rules);
out:
    free(values);
    if (err < 0)
        judge_free(judge);
    else
        *ret_judge = judge;
    return err;
}

void judge_free(struct judge *judge)
{
    if (!judge)
        return;
    free(judge->cells);
    free(judge->comparisons);
    free(judge->log_ratios);
    free(judge);
}

const struct judge_comparison *judge_find(const struct judge *judge, unsigned int cell,
                                          unsigned int metric)
{
    unsigned int i;

    for (i = 0; i < judge->count; i++)
        if (judge->comparisons[i].cell == cell && judge->comparisons[i].metric == metric)
            return &judge->comparisons[i];
    return NULL;
}

/* ---- conditions --------------------------------------------------------------------- */

/* Where a whole interval lies to a limit. */
static enum condition_outcome
interval_outcome(double low, double high, const struct condition *condition, bool different)
{
    if (isnan(low))
        return CONDITION_UNDECIDED;
    if (condition->above ? low > condition->limit : high < condition->limit)
        return different ? CONDITION_HOLDS : CONDITION_UNDECIDED;
    return (condition->above ? high <= condition->limit : low >= condition->limit)
               ? CONDITION_FAILS
               : CONDITION_UNDECIDED;
}

static void outcome_join(enum condition_outcome *outcome, enum condition_outcome next)
{
    if (*outcome == CONDITION_HOLDS || next == CONDITION_FAILS)
        return;
    *outcome = next;
}

/* The interval of a cell's own mean; arithmetic, for counts that may be 0. */
static int cell_outcome(const struct design *design, const struct journal *journal,
                        const struct judge_rules *rules, const struct condition *condition,
                        unsigned int cell, unsigned int metric, enum condition_outcome *outcome)
{
    double *values = malloc((design->trials + 1) * sizeof *values);
    struct infer_interval interval = {NAN, NAN};
    unsigned int count;
    int err;

    if (!values)
        return -ENOMEM;
    count = cell_values(design, journal, cell, metric, values);
    err = infer_bootstrap_t(values, count, rules->infer.level, rules->infer.draws,
                            rules->infer.seed, &interval);
    free(values);
    if (err == -ENOMEM)
        return err;
    outcome_join(outcome, interval_outcome(interval.low, interval.high, condition, true));
    return 0;
}

int judge_condition(const struct judge *judge, const struct design *design,
                    const struct journal *journal, const struct judge_rules *rules,
                    const struct condition *condition, enum condition_outcome *ret_outcome)
{
    int metric = metric_find(condition->metric, strlen(condition->metric)), err = 0;
    enum condition_outcome outcome = CONDITION_FAILS;
    bool any = false;
    unsigned int i;

    if (metric < 0)
        return metric;
    for (i = 0; condition->relative && i < judge->count; i++) {
        const struct infer_comparison *infer = &judge->comparisons[i].infer;

        if (judge->comparisons[i].metric != (unsigned int)metric)
            continue;
        any = true;
        outcome_join(&outcome,
                     judge->comparisons[i].refused[0]
                         ? CONDITION_UNDECIDED
                         : interval_outcome(infer->low - 1, infer->high - 1, condition,
                                            infer->verdict == INFER_DIFFERENT));
    }
    for (i = 0; !condition->relative && err == 0 && i < design->count; i++)
        if (judge->cells[i].trials > 0) {
            any = true;
            err = cell_outcome(design, journal, rules, condition, i, (unsigned int)metric,
                               &outcome);
        }
    if (err < 0)
        return err;
    *ret_outcome = any ? outcome : CONDITION_UNDECIDED;
    return 0;
}
