/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "replay/compare_findings.h"

static void set_real(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, isnan(value) ? json_null() : json_real(value));
}

static json_t *json_of_figure(const struct findings *findings, unsigned int cell,
                              unsigned int metric)
{
    const struct judge_cell *found = &findings->judge->cells[cell];
    const struct design *design = findings->design;
    json_t *object = json_object(), *trials = json_array();
    unsigned int block;

    set_real(object, "mean", found->mean[metric]);
    set_real(object, "scatter", found->scatter[metric]);
    for (block = design->warmup; block < design->warmup + design->trials; block++) {
        const struct record *record = journal_find(findings->journal, block, cell);

        json_array_append_new(trials, record && !record->failed && !isnan(record->value[metric])
                                          ? json_real(record->value[metric])
                                          : json_null());
    }
    json_object_set_new(object, "trials", trials);
    return object;
}

static json_t *json_of_comparison(const struct judge_comparison *comparison)
{
    const struct infer_comparison *infer = &comparison->infer;
    json_t *object = json_object();

    json_object_set_new(object, "pairs", json_integer(infer->pairs));
    json_object_set_new(object, "ratio", json_real(infer->ratio));
    set_real(object, "low", infer->low);
    set_real(object, "high", infer->high);
    json_object_set_new(object, "p", json_real(infer->p));
    json_object_set_new(object, "p_holm", json_real(infer->p_holm));
    json_object_set_new(object, "log_deviation", json_real(infer->deviation));
    json_object_set_new(object, "verdict", json_string(infer_verdict_names[infer->verdict]));
    json_object_set_new(object, "within_margin", json_boolean(infer->within_margin));
    json_object_set_new(object, "refused",
                        comparison->refused[0] ? json_string(comparison->refused)
                                               : json_null());
    return object;
}

static json_t *json_of_doubts(const struct judge_cell *found)
{
    static const char *const names[] = {"unstable", "two-humped", "not-steady", "errors"};
    json_t *array = json_array();
    unsigned int i;

    for (i = 0; i < 4; i++)
        if (found->doubts & 1u << i)
            json_array_append_new(array, json_string(names[i]));
    return array;
}

static json_t *json_of_curve(const struct judge_cell *found)
{
    json_t *array = json_array();
    unsigned int i;

    for (i = 0; found->has_curve && i < CURVE_POINTS; i++)
        json_array_append_new(array, json_pack("[f,f,f,f]", curve_fraction[i], found->curve[i],
                                               found->curve_low[i], found->curve_high[i]));
    return array;
}

static json_t *json_of_ratio_curve(const struct judge_cell *found)
{
    json_t *array = json_array();
    unsigned int i;

    for (i = 0; found->has_ratio_curve && i < CURVE_POINTS; i++)
        json_array_append_new(
            array, json_pack("[f,f,f,f]", curve_fraction[i], found->ratio_curve[i].ratio,
                             found->ratio_curve[i].low, found->ratio_curve[i].high));
    return array;
}

static json_t *json_of_cell(const struct findings *findings, unsigned int cell)
{
    const struct design *design = findings->design;
    const struct judge_cell *found = &findings->judge->cells[cell];
    json_t *object = json_object(), *values = json_object(), *figures = json_object();
    json_t *comparisons = json_object();
    unsigned int i;

    for (i = 0; i < design->dimensions; i++)
        json_object_set_new(
            values, design->dimension[i].name,
            json_string(design->dimension[i].values[design->cells[cell].value[i]]));
    for (i = 0; i < METRIC_COUNT; i++)
        if (!isnan(found->mean[i]))
            json_object_set_new(figures, metrics[i].name, json_of_figure(findings, cell, i));
    for (i = 0; i < findings->judge->count; i++)
        if (findings->judge->comparisons[i].cell == cell)
            json_object_set_new(comparisons,
                                metrics[findings->judge->comparisons[i].metric].name,
                                json_of_comparison(&findings->judge->comparisons[i]));
    json_object_set_new(object, "values", values);
    json_object_set_new(object, "baseline", json_integer(design->cells[cell].baseline));
    json_object_set_new(object, "excluded",
                        design->cells[cell].excluded ? json_string(design->cells[cell].excluded)
                                                     : json_null());
    json_object_set_new(object, "trials", json_integer(found->trials));
    json_object_set_new(object, "voids", json_integer(found->voids));
    json_object_set_new(object, "figures", figures);
    json_object_set_new(object, "comparisons", comparisons);
    json_object_set_new(object, "doubts", json_of_doubts(found));
    set_real(object, "second_half_log_rate", found->steady);
    json_object_set_new(object, "service_curve_ns", json_of_curve(found));
    json_object_set_new(object, "service_curve_ratio", json_of_ratio_curve(found));
    return object;
}

static void remark_to_json(void *context, const char *text)
{
    json_array_append_new(context, json_string(text));
}

json_t *findings_json(const struct findings *findings)
{
    const struct judge *judge = findings->judge;
    json_t *root = json_object(), *cells = json_array(), *remarks = json_array();
    unsigned int i;

    if (!root || !cells || !remarks)
        return NULL;
    findings_remarks(findings, remark_to_json, remarks);
    for (i = 0; i < findings->design->count; i++)
        json_array_append_new(cells, json_of_cell(findings, i));
    json_object_set_new(root, "report", json_string("compare-matrix"));
    json_object_set_new(root, "version", json_string(IOTAPE_VERSION));
    json_object_set(root, "plan", (json_t *)findings->plan);
    json_object_set_new(root, "remarks", remarks);
    json_object_set_new(root, "cells", cells);
    json_object_set_new(root, "comparisons", json_integer(judge->count));
    json_object_set_new(root, "drift",
                        json_pack("{s:f,s:f,s:b}", "log_change", judge->trend.change, "p",
                                  judge->trend.p, "found", judge->drifts));
    set_real(root, "log_deviation", judge->deviation);
    json_object_set_new(root, "trials_needed",
                        judge->trials_needed > 0 ? json_integer(judge->trials_needed)
                                                 : json_null());
    return root;
}
