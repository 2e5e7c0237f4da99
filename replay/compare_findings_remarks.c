/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "replay/compare_findings.h"

struct remarks {
    void (*each)(void *context, const char *text);
    void *context;
};

__attribute__((format(printf, 2, 3))) static void remark(const struct remarks *remarks,
                                                         const char *format, ...)
{
    char text[768];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    remarks->each(remarks->context, text);
}

static void remark_method(const struct findings *findings, const struct remarks *remarks)
{
    const struct design *design = findings->design;
    const struct judge_rules *rules = findings->rules;
    unsigned int least;

    if (findings->simulated)
        remark(remarks,
               "the trials ran on a SIMULATED clock: times are a model's, no device's");
    if (findings->witnessed)
        remark(remarks, "the commands ran under a recorder: what they cost includes its cost");
    remark(remarks,
           "%u trials a cell%s in %u random blocks, seed %llu; a trial is a fresh process and "
           "the unit of every verdict",
           design->trials, design->warmup > 0 ? " after warm-up," : "", design->trials,
           (unsigned long long)design->seed);
    if (findings->judge->count == 0)
        return;
    remark(remarks,
           "ratio: geometric mean of %s over the baseline's, paired within blocks (worked on "
           "logarithms); interval: studentised bootstrap; different: permutation test, at most "
           "%g %% chance of a wrong 'different' anywhere (%u compared, Holm)",
           metrics[rules->metric[0]].name, rules->infer.alpha * 100, findings->judge->count);
    if (design->trials < INFER_LEAST_PAIRS)
        remark(remarks, "under %d trials no interval is claimed and nothing is decided",
               INFER_LEAST_PAIRS);
    least = infer_least_pairs(findings->judge->count, rules->infer.alpha);
    if (design->trials >= INFER_LEAST_PAIRS && design->trials < least)
        remark(remarks,
               "with %u comparisons no difference, however large, is decided under %u trials",
               findings->judge->count, least);
    if (isnan(findings->judge->deviation))
        return;
    if (findings->judge->trials_needed > 0)
        remark(remarks,
               "to find a difference of %g %% with this noise (paired deviation %.3g %%) in 90 "
               "of 100 such experiments: --trials %u",
               rules->detect * 100, expm1(findings->judge->deviation) * 100,
               findings->judge->trials_needed);
    else
        remark(remarks, "the noise (paired deviation %.3g %%) is too large to find %g %%",
               expm1(findings->judge->deviation) * 100, rules->detect * 100);
}

/* -1: below the baseline's curve for certain, 1 above, 0 not told apart. */
static int curve_side(const struct judge_cell *found, unsigned int point)
{
    if (found->ratio_curve[point].high < 1)
        return -1;
    return found->ratio_curve[point].low > 1;
}

/* Where the latency curve lies off the baseline's, as stretches of percentiles. */
/* By which means every trial began with the same files, and what that took. */
static void remark_restore(const struct findings *findings, const struct remarks *remarks)
{
    const struct journal *journal = findings->journal;
    const char *method = NULL;
    char time[METRIC_TEXT];
    double sum_ns = 0;
    unsigned int i, count = 0;

    for (i = 0; i < journal->count; i++) {
        const struct record *record = &journal->records[i];

        if (!record->restored[0] || isnan(record->value[METRIC_RESTORE]))
            continue;
        method = record->restored;
        sum_ns += record->value[METRIC_RESTORE];
        count++;
    }
    if (method)
        remark(remarks, "before each run the files were put back as they had been (by %s, %s a run)",
               method, metric_text(&metrics[METRIC_RESTORE], sum_ns / count, time));
}

static void remark_curve(const struct findings *findings, unsigned int cell,
                         const struct remarks *remarks)
{
    const struct judge_cell *found = &findings->judge->cells[cell];
    char name[160], text[512];
    unsigned int point, end, shown = 0;
    size_t used = 0;

    if (!found->has_ratio_curve)
        return;
    for (point = 0; point < CURVE_POINTS; point = end) {
        for (end = point + 1; end < CURVE_POINTS; end++)
            if (curve_side(found, end) != curve_side(found, point))
                break;
        if (curve_side(found, point) == 0 || shown == 4)
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "%s%s from p%g to p%g (%+.1f %%)", shown++ ? ", " : "",
                                 curve_side(found, point) < 0 ? "lower" : "higher",
                                 curve_fraction[point] * 100, curve_fraction[end - 1] * 100,
                                 (found->ratio_curve[(point + end - 1) / 2].ratio - 1) * 100);
    }
    if (shown > 0)
        remark(remarks, "%s: service time %s; a band about the whole curve",
               findings_cell_name(findings, cell, name, sizeof name), text);
}

static void remark_cell(const struct findings *findings, unsigned int cell,
                        const struct remarks *remarks)
{
    const struct judge_cell *found = &findings->judge->cells[cell];
    unsigned int metric = findings->rules->metric[0];
    char name[160], low[METRIC_TEXT], high[METRIC_TEXT];

    findings_cell_name(findings, cell, name, sizeof name);
    if (findings->design->cells[cell].excluded) {
        remark(remarks, "%s: n/a: %s", name, findings->design->cells[cell].excluded);
        return;
    }
    remark_curve(findings, cell, remarks);
    if (found->voids > 0)
        remark(remarks, "%s: %u runs failed and were run again", name, found->voids);
    if (found->doubts & JUDGE_UNSTABLE)
        remark(remarks, "%s: unstable: %s scatters by %.1f %% between trials", name,
               metrics[metric].name, found->scatter[metric] * 100);
    if (found->doubts & JUDGE_TWO_HUMPED)
        remark(remarks, "%s: two-humped: %u trials about %s, %u about %s", name,
               found->humps.low_count, metric_text(&metrics[metric], found->humps.low, low),
               found->trials - found->humps.low_count,
               metric_text(&metrics[metric], found->humps.high, high));
    if (found->doubts & JUDGE_UNSTEADY)
        remark(remarks,
               "%s: not steady: the second half of a trial runs %.0f %% %s than the first",
               name, fabs(expm1(found->steady)) * 100, found->steady > 0 ? "faster" : "slower");
    if (found->doubts & JUDGE_ERRORS)
        remark(remarks, "%s: %.6g failed and %.6g short ops a trial", name,
               isnan(found->mean[METRIC_ERRORS]) ? 0 : found->mean[METRIC_ERRORS],
               isnan(found->mean[METRIC_SHORT]) ? 0 : found->mean[METRIC_SHORT]);
}

void findings_remarks(const struct findings *findings,
                      void (*each)(void *context, const char *text), void *context)
{
    const struct remarks remarks = {each, context};
    const struct judge *judge = findings->judge;
    char name[160];
    unsigned int i;

    remark_method(findings, &remarks);
    remark_restore(findings, &remarks);
    if (judge->drifts)
        remark(&remarks,
               "drift: %s moved by %+.1f %% from the first trial to the last; pairing within "
               "blocks keeps it out of the ratios",
               metrics[findings->rules->metric[0]].name, expm1(judge->trend.change) * 100);
    for (i = 0; i < findings->design->count; i++)
        remark_cell(findings, i, &remarks);
    for (i = 0; i < judge->count; i++)
        if (judge->comparisons[i].refused[0])
            remark(&remarks, "%s: verdict on %s refused: %s",
                   findings_cell_name(findings, judge->comparisons[i].cell, name, sizeof name),
                   metrics[judge->comparisons[i].metric].name, judge->comparisons[i].refused);
}
