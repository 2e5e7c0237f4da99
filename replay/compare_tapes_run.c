/* SPDX-License-Identifier: MIT */
#include "replay/compare_tapes_run.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "replay/compare_condition.h"
#include "replay/compare_output.h"
#include "replay/compare_tapes.h"
#include "replay/compare_tapes_report.h"
#include "traces/diag.h"

/* One pair of tapes: a condition is held against the figures as they are. */
static int judge_conditions(const struct tapes *tapes, const struct compare_conf *conf,
                            json_t *report, enum compare_outcome *outcome, struct diag *diag)
{
    json_t *outcomes = json_array();
    struct condition condition;
    enum condition_outcome came;
    double a, b;
    size_t i;
    int err;

    json_object_set_new(report, "conditions", outcomes);
    for (i = 0; i < conf->fail_if.count; i++) {
        err = condition_parse(&condition, conf->fail_if.items[i], diag);
        if (err < 0)
            return err;
        err = tapes_figure(tapes, condition.metric, &a, &b);
        if (err == -EINVAL)
            return diag_set(diag, err, "--fail-if '%s': no such figure: %s", condition.text,
                            condition.metric);
        if (err < 0)
            came = CONDITION_UNDECIDED;
        else
            came = condition_met(&condition, b, a) ? CONDITION_HOLDS : CONDITION_FAILS;
        json_array_append_new(outcomes, json_pack("{s:s,s:s}", "condition", condition.text,
                                                  "outcome", condition_outcome_names[came]));
        if (came == CONDITION_HOLDS)
            *outcome = COMPARE_CONDITION_TRUE;
        else if (came == CONDITION_UNDECIDED && conf->require_decision &&
                 *outcome == COMPARE_FINE)
            *outcome = COMPARE_NOT_DECIDED;
        diag_note(diag, "--fail-if %s: %s", condition.text, condition_outcome_names[came]);
    }
    return 0;
}

int tapes_run(const struct compare_conf *conf, enum compare_outcome *ret_outcome,
              struct diag *diag)
{
    const struct tapes_conf tapes_conf = {conf->match, conf->files, (uint32_t)conf->window};
    bool to_stdout = conf->json && strcmp(conf->json, "-") == 0;
    enum compare_outcome outcome = COMPARE_FINE;
    struct tapes tapes;
    json_t *report;
    int err;

    err = tapes_compare(&tapes, conf->operands[0], conf->operands[1], &tapes_conf, diag);
    if (err < 0)
        return err;
    report = tapes_json(&tapes);
    err = report ? judge_conditions(&tapes, conf, report, &outcome, diag)
                 : diag_set(diag, -ENOMEM, "not enough memory for the report");
    if (err == 0 && !conf->quiet && !to_stdout)
        err = tapes_print(&tapes, stdout, isatty(STDOUT_FILENO));
    if (err == 0 && conf->html)
        err = tapes_html(&tapes, conf->html, diag);
    if (err == 0 && conf->json)
        err = output_json(conf->json, report, diag);
    json_decref(report);
    tapes_release(&tapes);
    if (err == 0)
        *ret_outcome = outcome;
    return err;
}
