/* SPDX-License-Identifier: MIT */
#include "replay/compare_matrix.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "replay/compare_environment.h"
#include "replay/compare_experiment.h"
#include "replay/compare_findings.h"
#include "replay/compare_output.h"
#include "replay/compare_process.h"
#include "replay/compare_restore.h"
#include "traces/diag.h"
#include "traces/trace.h"
#include "traces/units.h"

/* Everything that one run holds. */
struct matrix {
    const struct compare_conf *conf;
    struct design design;
    struct journal journal;
    struct judge_rules rules;
    struct judge *judge;
    json_t *plan;
    char *folder, *replay, *capture, *restore;
    char **passed;
};

/* ---- the design from the options ----------------------------------------------------- */

static int add_set(struct design *design, const char *text, struct diag *diag)
{
    size_t length = strcspn(text, "=");
    char *name;
    int err;

    if (length == 0)
        return diag_set(diag, -EINVAL, "--set '%s': expected NAME=VALUE,...", text);
    name = strndup(text, length);
    if (!name)
        return diag_set(diag, -ENOMEM, "not enough memory");
    err = design_add(design, name, text[length] ? text + length + 1 : "yes", diag);
    free(name);
    return err;
}

static int design_replays(struct design *design, const struct compare_conf *conf,
                          struct diag *diag)
{
    const struct {
        const char *name, *text;
    } lists[] = {
        {"depth", conf->depth},     {"batch", conf->batch}, {"processes", conf->processes},
        {"workers", conf->workers}, {"pace", conf->pace},
    };
    size_t i;
    int err = 0;

    for (i = 0; i < conf->engines.count && err == 0; i++)
        err = design_add_engines(design, conf->engines.items[i], diag);
    for (i = 0; i < sizeof lists / sizeof *lists && err == 0; i++)
        if (lists[i].text)
            err = design_add(design, lists[i].name, lists[i].text, diag);
    for (i = 0; i < conf->sets.count && err == 0; i++)
        err = add_set(design, conf->sets.items[i], diag);
    return err;
}

static int design_make(struct matrix *matrix, struct diag *diag)
{
    const struct compare_conf *conf = matrix->conf;
    struct design *design = &matrix->design;
    int err = 0, i;

    design->trials = (unsigned int)conf->trials;
    design->warmup = (unsigned int)conf->warmup;
    design->seed = conf->seed;
    if (conf->ab)
        for (i = 0; i < conf->operand_count && err == 0; i++)
            err = design_add_one(design, "command", conf->operands[i], diag);
    else
        err = design_replays(design, conf, diag);
    return err < 0 ? err : design_cross(design, conf->baseline, diag);
}

/* ---- what is judged ------------------------------------------------------------------- */

static int rules_add(struct judge_rules *rules, const char *name, size_t length,
                     const struct compare_conf *conf, struct diag *diag)
{
    int metric = metric_find(name, length);
    unsigned int i;

    if (metric < 0 || (metrics[metric].from_command != conf->ab &&
                       !(conf->witness && metric_of_tape((unsigned int)metric))))
        return diag_set(diag, -EINVAL,
                        "--metric: no figure '%.*s' of a %s; iotape-compare(1) has them",
                        (int)length, name, conf->ab ? "command" : "replay");
    for (i = 0; i < rules->metrics; i++)
        if (rules->metric[i] == (unsigned int)metric)
            return 0;
    if (rules->metrics == JUDGE_METRICS)
        return diag_set(diag, -EINVAL, "more than %d figures to judge", JUDGE_METRICS);
    rules->metric[rules->metrics++] = (unsigned int)metric;
    return 0;
}

static const char *default_metric(const struct compare_conf *conf)
{
    if (conf->ab)
        return conf->value_regex || conf->value_json ? "value" : "wall";
    return conf->pace && !strstr(conf->pace, "asap") ? "response_p99" : "iops";
}

/* The figures of --metric, and those of relative conditions: they join the same family. */
static int rules_make(struct judge_rules *rules, const struct compare_conf *conf,
                      struct diag *diag)
{
    const char *text = conf->metrics ? conf->metrics : default_metric(conf);
    struct condition condition;
    size_t i, length;
    int err = 0;

    rules->infer =
        (struct infer_rules){conf->alpha_pct / 100, INFER_LEVEL, conf->margin_pct / 100,
                             (unsigned int)conf->draws, conf->seed};
    rules->detect = conf->detect_pct / 100;
    rules->unstable = conf->unstable_pct / 100;
    while (err == 0 && *text) {
        length = strcspn(text, ",");
        err = rules_add(rules, text, length, conf, diag);
        text += length + (text[length] == ',');
    }
    for (i = 0; i < conf->fail_if.count && err == 0; i++) {
        err = condition_parse(&condition, conf->fail_if.items[i], diag);
        if (err == 0 && condition.relative)
            err = rules_add(rules, condition.metric, strlen(condition.metric), conf, diag);
        else if (err == 0 && metric_find(condition.metric, strlen(condition.metric)) < 0)
            err = diag_set(diag, -EINVAL, "--fail-if '%s': no such figure", condition.text);
    }
    return err;
}

/* ---- the plan ------------------------------------------------------------------------- */

static json_t *plan_dimensions(const struct design *design)
{
    json_t *array = json_array();
    unsigned int i, j;

    for (i = 0; i < design->dimensions; i++) {
        json_t *values = json_array();

        for (j = 0; j < design->dimension[i].count; j++)
            json_array_append_new(values, json_string(design->dimension[i].values[j]));
        json_array_append_new(
            array, json_pack("{s:s,s:o}", "name", design->dimension[i].name, "values", values));
    }
    return array;
}

static const char *place_of(const struct compare_conf *conf)
{
    if (conf->target)
        return conf->target;
    if (conf->root)
        return conf->root;
    return ".";
}

static json_t *plan_make(const struct matrix *matrix)
{
    const struct compare_conf *conf = matrix->conf;
    json_t *plan = json_object(), *passed = json_array();
    char started[32], real[PATH_MAX];
    time_t now = time(NULL);
    struct stat stat_buf;
    struct tm when;
    size_t i;

    for (i = 0; matrix->passed[i]; i++)
        json_array_append_new(passed, json_string(matrix->passed[i]));
    json_object_set_new(plan, "version", json_string(IOTAPE_VERSION));
    json_object_set_new(plan, "dimensions", plan_dimensions(&matrix->design));
    json_object_set_new(plan, "passed", passed);
    if (!conf->ab && stat(conf->operands[0], &stat_buf) == 0)
        json_object_set_new(
            plan, "tape",
            json_pack("{s:s,s:I}", "path",
                      realpath(conf->operands[0], real) ? real : conf->operands[0], "bytes",
                      (json_int_t)stat_buf.st_size));
    json_object_set_new(plan, "trials", json_integer(matrix->design.trials));
    json_object_set_new(plan, "warmup", json_integer(matrix->design.warmup));
    json_object_set_new(plan, "seed", json_integer((json_int_t)matrix->design.seed));
    json_object_set_new(plan, "cool_down_ns", json_integer((json_int_t)conf->cool_down_ns));
    json_object_set_new(plan, "reset", conf->reset ? json_string(conf->reset) : json_null());
    json_object_set_new(plan, "restore_by",
                        json_string(compare_restore_words[conf->restore_by]));
    json_object_set_new(plan, "result_tapes", json_boolean(conf->result_tapes && !conf->ab));
    json_object_set_new(plan, "value",
                        conf->value_regex  ? json_string(conf->value_regex)
                        : conf->value_json ? json_string(conf->value_json)
                                           : json_null());
    json_object_set_new(plan, "witness", json_boolean(conf->witness));
    json_object_set_new(plan, "environment", environment_read(place_of(conf)));
    gmtime_r(&now, &when);
    strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &when);
    json_object_set_new(plan, "started", json_string(started));
    return plan;
}

/* From the first op to the last, by the headers of the blocks; 0 where that cannot be read: the
 * trials will say why. */
static uint64_t tape_duration_ns(const char *path)
{
    struct trace_block_summary summary;
    struct trace_reader *reader = NULL;
    struct diag diag = DIAG_INIT;
    int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;

    if (trace_reader_open_path(&reader, path, &diag) < 0)
        return 0;
    while (trace_reader_next_summary(reader, &summary) > 0) {
        first_ns = summary.first_ns < first_ns ? summary.first_ns : first_ns;
        last_ns = summary.last_ns > last_ns ? summary.last_ns : last_ns;
    }
    trace_reader_free(reader);
    return last_ns > first_ns ? (uint64_t)(last_ns - first_ns) : 0;
}

/* Trials at the recorded pace take what the recording took. */
static void announce_time(const struct matrix *matrix, struct diag *diag)
{
    const struct compare_conf *conf = matrix->conf;
    double speed = conf->speed ? strtod(conf->speed, NULL) : 1, total_ns = 0;
    const struct design *design = &matrix->design;
    char text[UNITS_TEXT];
    const char *pace;
    unsigned int i;

    for (i = 0; i < design->count; i++) {
        pace = design_value(design, i, "pace");
        if (pace && strcmp(pace, "recorded") == 0 && !design->cells[i].excluded)
            total_ns += design->warmup + design->trials;
    }
    if (total_ns == 0 || (conf->clock && strcmp(conf->clock, "simulated") == 0) || !(speed > 0))
        return;
    total_ns *= (double)tape_duration_ns(conf->operands[0]) / speed;
    diag_note(diag, "the runs at the recorded pace take %s",
              units_time((uint64_t)total_ns, text));
}

/* What the matrix takes, before it starts. */
static void announce(const struct matrix *matrix, struct diag *diag)
{
    const struct design *design = &matrix->design;
    unsigned int comparisons = design_comparisons(design) * matrix->rules.metrics, i;
    unsigned int can = 0, blocks = design->warmup + design->trials, needed;
    double noise = matrix->conf->noise_pct / 100 * M_SQRT2;

    for (i = 0; i < design->count; i++)
        can += !design->cells[i].excluded;
    diag_note(diag, "%u cells, %u can run here, %u trials each: %u runs, %u done; kept in %s",
              design->count, can, blocks, can * blocks, matrix->journal.count, matrix->folder);
    announce_time(matrix, diag);
    if (matrix->conf->writes && !matrix->restore && !matrix->conf->reset)
        diag_note(diag, "trials write, and nothing restores the files between them");
    if (comparisons == 0)
        return;
    needed = infer_trials_needed(comparisons, matrix->rules.infer.alpha, noise,
                                 matrix->rules.detect, INFER_POWER);
    diag_note(diag, "%u comparisons; with %g %% noise a difference of %g %% needs --trials %u",
              comparisons, matrix->conf->noise_pct, matrix->conf->detect_pct, needed);
}

/* ---- running -------------------------------------------------------------------------- */

static int matrix_open(struct matrix *matrix, struct diag *diag)
{
    const struct compare_conf *conf = matrix->conf;
    int err;

    if (!conf->ab && access(conf->operands[0], R_OK) < 0)
        return diag_errno(diag, -errno, "%s", conf->operands[0]);
    err = design_make(matrix, diag);
    if (err == 0)
        err = rules_make(&matrix->rules, conf, diag);
    if (err == 0)
        err = compare_conf_passed(conf, &matrix->passed, diag);
    if (err == 0 && !conf->ab)
        err = process_beside("iotape-replay", &matrix->replay, diag);
    if (err == 0 && conf->witness)
        err = process_beside("iotape-capture", &matrix->capture, diag);
    if (err == 0 && !conf->ab)
        err = experiment_check(&matrix->design, diag);
    if (err < 0)
        return err;
    matrix->folder = conf->dir ? strdup(conf->dir)
                               : journal_new_folder(conf->ab ? "commands" : conf->operands[0]);
    matrix->plan = plan_make(matrix);
    if (!matrix->folder || !matrix->plan)
        return diag_set(diag, -ENOMEM, "not enough memory");
    err = compare_restore_folder(&matrix->restore, conf, matrix->folder, diag);
    if (err == 0)
        err = compare_restore_check(conf, matrix->restore, diag);
    if (err < 0)
        return err;
    return journal_open(&matrix->journal, matrix->folder, conf->resume, matrix->plan, diag);
}

static int matrix_trials(struct matrix *matrix, const volatile sig_atomic_t *stop,
                         struct diag *diag)
{
    const struct compare_conf *conf = matrix->conf;
    struct experiment experiment = {
        .design = &matrix->design,
        .journal = &matrix->journal,
        .trial = {.design = &matrix->design,
                  .folder = matrix->folder,
                  .replay = matrix->replay,
                  .capture = matrix->capture,
                  .tape = conf->operands[0],
                  .passed = (const char *const *)matrix->passed,
                  .restore = matrix->restore,
                  .restore_by = compare_restore_words[conf->restore_by],
                  .result_tapes = conf->result_tapes,
                  .allow_fallback = conf->allow_fallback,
                  .value_regex = conf->value_regex,
                  .value_json = conf->value_json,
                  .stop = stop},
        .cool_down_ns = conf->cool_down_ns,
        .reset = conf->reset,
        .progress = !conf->quiet && isatty(STDERR_FILENO),
        .notes = !conf->quiet,
    };
    unsigned int i;
    struct diag put_back = DIAG_INIT;
    int err, put_back_err;

    err = experiment_run(&experiment, diag);
    /* However it ended, the user's files are as they were. */
    put_back_err = compare_restore_end(&experiment.trial, &put_back);
    if (put_back_err < 0 && err == 0)
        err = diag_set(diag, put_back_err, "%s", put_back.text);
    else if (put_back_err < 0)
        diag_note(diag, "%s", put_back.text);
    if (err == -EINTR)
        return diag_set(diag, err,
                        "stopped after %u trials; the same command with --dir %s "
                        "--resume goes on",
                        matrix->journal.count, matrix->folder);
    for (i = 0; err == 0 && i < matrix->design.count; i++)
        if (!matrix->design.cells[i].excluded)
            return 0;
    if (err == 0)
        err = diag_set(diag, -ENODEV, "no cell can run: %s", matrix->design.cells[0].excluded);
    return err;
}

/* ---- reports and outcome -------------------------------------------------------------- */

static int write_grid_file(const struct findings *findings, const char *path,
                           int (*print)(const struct findings *findings, FILE *out),
                           struct diag *diag)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    int err;

    if (!out)
        return diag_set(diag, -ENOMEM, "%s: not enough memory for the report", path);
    err = print(findings, out);
    if (fclose(out) != 0 && err == 0)
        err = -ENOMEM;
    err = err < 0 ? diag_errno(diag, err, "%s", path) : output_text(path, text, bytes, diag);
    free(text);
    return err;
}

static int judge_conditions(const struct matrix *matrix, json_t *report,
                            enum compare_outcome *outcome, struct diag *diag)
{
    const struct compare_conf *conf = matrix->conf;
    json_t *outcomes = json_array();
    enum condition_outcome came;
    struct condition condition;
    unsigned int i;
    size_t at;
    int err;

    for (i = 0; conf->require_decision && i < matrix->judge->count; i++)
        if (matrix->judge->comparisons[i].infer.verdict == INFER_UNDECIDED)
            *outcome = COMPARE_NOT_DECIDED;
    json_object_set_new(report, "conditions", outcomes);
    for (at = 0; at < conf->fail_if.count; at++) {
        err = condition_parse(&condition, conf->fail_if.items[at], diag);
        if (err == 0)
            err = judge_condition(matrix->judge, &matrix->design, &matrix->journal,
                                  &matrix->rules, &condition, &came);
        if (err < 0)
            return diag_errno(diag, err, "--fail-if %s", conf->fail_if.items[at]);
        json_array_append_new(outcomes, json_pack("{s:s,s:s}", "condition", condition.text,
                                                  "outcome", condition_outcome_names[came]));
        diag_note(diag, "--fail-if %s: %s", condition.text, condition_outcome_names[came]);
        if (came == CONDITION_HOLDS)
            *outcome = COMPARE_CONDITION_TRUE;
        else if (came == CONDITION_UNDECIDED && conf->require_decision &&
                 *outcome == COMPARE_FINE)
            *outcome = COMPARE_NOT_DECIDED;
    }
    return 0;
}

static int matrix_report(const struct matrix *matrix, enum compare_outcome *outcome,
                         struct diag *diag)
{
    const struct compare_conf *conf = matrix->conf;
    const struct findings findings = {
        .design = &matrix->design,
        .journal = &matrix->journal,
        .judge = matrix->judge,
        .rules = &matrix->rules,
        .plan = matrix->plan,
        .commands = conf->ab,
        .witnessed = conf->witness,
        .simulated = conf->clock && strcmp(conf->clock, "simulated") == 0,
    };
    bool to_stdout = conf->json && strcmp(conf->json, "-") == 0;
    json_t *report = findings_json(&findings);
    int err;

    err = report ? judge_conditions(matrix, report, outcome, diag)
                 : diag_set(diag, -ENOMEM, "not enough memory for the report");
    if (err == 0 && !conf->quiet && !to_stdout)
        err = findings_print(&findings, stdout, isatty(STDOUT_FILENO));
    if (err == 0 && conf->csv)
        err = write_grid_file(&findings, conf->csv, findings_print_csv, diag);
    if (err == 0 && conf->markdown)
        err = write_grid_file(&findings, conf->markdown, findings_print_markdown, diag);
    if (err == 0 && conf->html)
        err = findings_html(&findings, conf->html, diag);
    if (err == 0 && conf->json)
        err = output_json(conf->json, report, diag);
    json_decref(report);
    return err;
}

static void matrix_close(struct matrix *matrix)
{
    size_t i;

    judge_free(matrix->judge);
    journal_close(&matrix->journal);
    design_release(&matrix->design);
    json_decref(matrix->plan);
    free(matrix->folder);
    free(matrix->restore);
    free(matrix->replay);
    free(matrix->capture);
    for (i = 0; matrix->passed && matrix->passed[i]; i++)
        free(matrix->passed[i]);
    free(matrix->passed);
}

int matrix_run(const struct compare_conf *conf, const volatile sig_atomic_t *stop,
               enum compare_outcome *ret_outcome, struct diag *diag)
{
    struct matrix matrix = {.conf = conf, .journal = {.fd = -1}};
    enum compare_outcome outcome = COMPARE_FINE;
    int err;

    design_init(&matrix.design);
    err = conf->value_regex ? trial_check_regex(conf->value_regex, diag) : 0;
    if (err == 0)
        err = matrix_open(&matrix, diag);
    if (err == 0 && !conf->quiet)
        announce(&matrix, diag);
    if (err == 0)
        err = matrix_trials(&matrix, stop, diag);
    if (err == 0 &&
        judge_new(&matrix.judge, &matrix.design, &matrix.journal, &matrix.rules) < 0)
        err = diag_set(diag, -ENOMEM, "not enough memory to judge the trials");
    if (err == 0)
        err = matrix_report(&matrix, &outcome, diag);
    matrix_close(&matrix);
    if (err == 0)
        *ret_outcome = outcome;
    return err;
}
