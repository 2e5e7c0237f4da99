/* SPDX-License-Identifier: MIT */
#include "replay/compare_trial.h"

#include <errno.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engines/engine.h"
#include "replay/compare_feed.h"
#include "replay/compare_process.h"
#include "replay/compare_side.h"
#include "traces/diag.h"
#include "traces/trace.h"

#define REASON_LENGTH 400
#define OUTPUT_LIMIT  (64u << 20)

/* The names of a trial's files. */
struct trial_files {
    char *out, *err, *json, *tape;
};

static void files_release(struct trial_files *files)
{
    free(files->out);
    free(files->err);
    free(files->json);
    free(files->tape);
}

static int files_name(struct trial_files *files, const struct trial_conf *conf,
                      unsigned int block, unsigned int cell, struct diag *diag)
{
    static const char *const ends[4] = {"out", "err", "json", "tape"};
    char **const names[4] = {&files->out, &files->err, &files->json, &files->tape};
    int i;

    memset(files, 0, sizeof *files);
    for (i = 0; i < 4; i++)
        if (asprintf(names[i], "%s/trial-%04u-%04u.%s", conf->folder, block, cell, ends[i]) <
            0) {
            *names[i] = NULL;
            files_release(files);
            return diag_set(diag, -ENOMEM, "not enough memory");
        }
    return 0;
}

__attribute__((format(printf, 2, 3))) static int record_fail(struct record *record,
                                                             const char *format, ...)
{
    char text[REASON_LENGTH];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    record->failed = strdup(text);
    return record->failed ? 0 : -ENOMEM;
}

/* ---- a replay ----------------------------------------------------------------------- */

/* A growing argument list; every string is owned. */
struct arguments {
    char *item[DESIGN_DIMENSIONS + 256];
    unsigned int count;
    bool broken;
};

__attribute__((format(printf, 2, 3))) static void arguments_add(struct arguments *arguments,
                                                                const char *format, ...)
{
    va_list args;
    char *text;

    if (arguments->count + 1 == sizeof arguments->item / sizeof *arguments->item) {
        arguments->broken = true;
        return;
    }
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        arguments->broken = true;
    else
        arguments->item[arguments->count++] = text;
    va_end(args);
}

static void arguments_release(struct arguments *arguments)
{
    while (arguments->count > 0)
        free(arguments->item[--arguments->count]);
}

static void arguments_add_value(struct arguments *arguments, const char *name,
                                const char *value)
{
    if (strcmp(value, "yes") == 0)
        arguments_add(arguments, "--%s", name);
    else if (strcmp(value, "no") == 0)
        arguments_add(arguments, "--no-%s", name);
    else
        arguments_add(arguments, "--%s=%s", name, value);
}

/* What the cell's replays have in common. */
static void cell_arguments(struct arguments *arguments, const struct trial_conf *conf,
                           unsigned int cell)
{
    const struct design *design = conf->design;
    unsigned int i;

    arguments_add(arguments, "%s", conf->replay);
    for (i = 0; i < design->dimensions; i++)
        arguments_add_value(arguments, design->dimension[i].name,
                            design->dimension[i].values[design->cells[cell].value[i]]);
    for (i = 0; conf->passed && conf->passed[i]; i++)
        arguments_add(arguments, "%s", conf->passed[i]);
    if (conf->restore) {
        arguments_add(arguments, "--restore=%s", conf->restore);
        arguments_add(arguments, "--restore-by=%s", conf->restore_by);
    }
}

static void replay_arguments(struct arguments *arguments, const struct trial_conf *conf,
                             unsigned int block, unsigned int cell,
                             const struct trial_files *files)
{
    const struct design *design = conf->design;

    cell_arguments(arguments, conf, cell);
    arguments_add(arguments, "--seed=%llu",
                  (unsigned long long)design_trial_seed(design, block, cell));
    arguments_add(arguments, "--json=%s", files->json);
    if (conf->result_tapes)
        arguments_add(arguments, "--result=%s", files->tape);
    arguments_add(arguments, "--quiet");
    arguments_add(arguments, "--force");
    arguments_add(arguments, "--");
    arguments_add(arguments, "%s", conf->tape);
}

/* Ops of one half of the trial's time, as completed, and the service times. */
struct halves {
    struct hist service;
    int64_t first_ns, last_ns;
    bool begun;
};

static void halves_add(struct halves *halves, const struct trace_op *op)
{
    if (!trace_op_is_io(op->kind) || op->completion != TRACE_COMPLETION_EXACT)
        return;
    hist_add(&halves->service, op->latency_ns);
    if (!halves->begun || op->issue_ns < halves->first_ns)
        halves->first_ns = op->issue_ns;
    if (!halves->begun || op->issue_ns > halves->last_ns)
        halves->last_ns = op->issue_ns;
    halves->begun = true;
}

/* Issues in the second half of the time over those of the first, as a log: 0 is steady. A tape
 * is read twice: the middle is known only after the first time. */
static double halves_steady(struct trace_reader *reader, const struct halves *halves)
{
    int64_t middle_ns = halves->first_ns + (halves->last_ns - halves->first_ns) / 2;
    uint64_t early = 0, late = 0;
    const struct trace_op *ops;
    size_t count, i;

    if (trace_reader_rewind(reader) < 0)
        return NAN;
    while (trace_reader_next(reader, &ops, &count) > 0)
        for (i = 0; i < count; i++)
            if (trace_op_is_io(ops[i].kind))
                *(ops[i].issue_ns <= middle_ns ? &early : &late) += 1;
    return early >= 100 && late > 0 ? log((double)late / (double)early) : NAN;
}

static int record_read_tape(struct record *record, const char *path, struct diag *diag)
{
    struct trace_reader *reader = NULL;
    struct halves *halves = calloc(1, sizeof *halves);
    const struct trace_op *ops;
    size_t count, i;
    int err;

    if (!halves)
        return diag_set(diag, -ENOMEM, "not enough memory");
    hist_init(&halves->service);
    err = trace_reader_open_path(&reader, path, diag);
    while (err >= 0 && (err = trace_reader_next(reader, &ops, &count)) > 0)
        for (i = 0; i < count; i++)
            halves_add(halves, &ops[i]);
    record->has_curve = err == 0 && halves->service.count > 0;
    for (i = 0; record->has_curve && i < CURVE_POINTS; i++)
        record->curve[i] = (double)hist_quantile(&halves->service, curve_fraction[i]);
    if (record->has_curve)
        record->steady = halves_steady(reader, halves);
    trace_reader_free(reader);
    free(halves);
    return err;
}

static int record_read_replay(struct record *record, const struct trial_conf *conf,
                              const struct trial_files *files, struct diag *diag)
{
    json_error_t error;
    json_t *report = json_load_file(files->json, 0, &error);
    const char *restored;
    int err = 0;

    if (!report)
        return record_fail(record, "its report could not be read: %s", error.text);
    metrics_read(report, record->value);
    restored = json_string_value(json_object_get(json_object_get(report, "restore"), "method"));
    if (restored && strcmp(restored, "nothing") != 0)
        snprintf(record->restored, sizeof record->restored, "%s", restored);
    if (json_is_true(json_object_get(report, "engine_downgraded")) && !conf->allow_fallback)
        err = record_fail(record,
                          "the engine granted less than asked for (%s); "
                          "--allow-fallback takes it as it is",
                          json_string_value(json_object_get(report, "engine_granted")));
    else if (isnan(record->value[METRIC_IOPS]))
        err = record_fail(record, "its report has no rate");
    json_decref(report);
    if (err == 0 && conf->result_tapes && !record->failed)
        err = record_read_tape(record, files->tape, diag);
    return err;
}

static int replay_trial(const struct trial_conf *conf, unsigned int block, unsigned int cell,
                        const struct trial_files *files, struct record *record,
                        struct diag *diag)
{
    struct arguments arguments = {.count = 0};
    struct process_cost cost;
    char line[REASON_LENGTH];
    int err;

    replay_arguments(&arguments, conf, block, cell, files);
    err = arguments.broken
              ? diag_set(diag, -E2BIG, "too many options for a trial")
              : process_run(arguments.item, files->out, files->err, conf->stop, &cost, diag);
    arguments_release(&arguments);
    if (err < 0)
        return err;
    if (cost.stopped)
        return -EINTR;
    record->wall_ns = (double)cost.wall_ns;
    if (cost.status != 0) {
        process_error_line(files->err, cost.status, line, sizeof line);
        return record_fail(record, "exit %d%s%s", cost.status, line[0] ? ": " : "", line);
    }
    return record_read_replay(record, conf, files, diag);
}

/* Does the cell's engine touch files at all? */
static bool cell_has_targets(const struct design *design, unsigned int cell)
{
    struct engine_choice choice;
    struct diag diag = DIAG_INIT;
    bool has = engine_choice_parse(&choice, design_value(design, cell, "engine"), &diag) == 0 &&
               !(choice.engine->flags & ENGINE_NO_TARGET);

    engine_choice_release(&choice);
    return has;
}

int trial_put_back(const struct trial_conf *conf, const char *out_path, const char *err_path,
                   const volatile sig_atomic_t *stop, struct process_cost *ret_cost,
                   struct diag *diag)
{
    struct arguments arguments = {.count = 0};
    unsigned int cell = 0;
    int err;

    while (cell + 1 < conf->design->count && !cell_has_targets(conf->design, cell))
        cell++;
    cell_arguments(&arguments, conf, cell);
    arguments_add(&arguments, "--restore-only");
    arguments_add(&arguments, "--");
    arguments_add(&arguments, "%s", conf->tape);
    err = arguments.broken ? diag_set(diag, -E2BIG, "too many options for a trial")
                           : process_run(arguments.item, out_path, err_path, stop, ret_cost, diag);
    arguments_release(&arguments);
    return err;
}

/* ---- a command ---------------------------------------------------------------------- */

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t used = 0, room = 0, got;

    while (file && used < OUTPUT_LIMIT) {
        if (used + 4096 > room) {
            char *grown = realloc(text, room = room * 2 + 8192);

            if (!grown)
                break;
            text = grown;
        }
        got = fread(text + used, 1, room - used - 1, file);
        used += got;
        if (got == 0)
            break;
    }
    if (file)
        fclose(file);
    if (text)
        text[used] = '\0';
    return text;
}

int trial_check_regex(const char *text, struct diag *diag)
{
    char reason[128];
    regex_t regex;
    int code = regcomp(&regex, text, REG_EXTENDED | REG_NEWLINE);

    if (code != 0) {
        regerror(code, &regex, reason, sizeof reason);
        return diag_set(diag, -EINVAL, "--value-regex '%s': %s", text, reason);
    }
    code = regex.re_nsub > 0 ? 0
                             : diag_set(diag, -EINVAL,
                                        "--value-regex '%s': needs a group, as in "
                                        "'IOPS=([0-9.]+)'",
                                        text);
    regfree(&regex);
    return code;
}

static double value_by_regex(const char *text, const char *expression)
{
    regmatch_t match[2];
    regex_t regex;
    double value = NAN;
    char *end;

    if (regcomp(&regex, expression, REG_EXTENDED | REG_NEWLINE) != 0)
        return NAN;
    if (regexec(&regex, text, 2, match, 0) == 0 && match[1].rm_so >= 0) {
        value = strtod(text + match[1].rm_so, &end);
        if (end == text + match[1].rm_so)
            value = NAN;
    }
    regfree(&regex);
    return value;
}

/* ".jobs[0].read.iops"; the leading dot may be left out. Text before the first brace, which
 * some programs print, is passed over. */
static double value_by_path(const char *text, const char *path)
{
    const char *begin = strpbrk(text, "{[");
    json_t *root = begin ? json_loads(begin, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    const json_t *at = root;
    char key[128];
    size_t length;
    double value;

    while (at && *path) {
        if (*path == '.')
            path++;
        if (*path == '[') {
            at = json_array_get(at, strtoul(path + 1, NULL, 10));
            path += strcspn(path, "]");
            path += *path == ']';
            continue;
        }
        length = strcspn(path, ".[");
        if (length >= sizeof key)
            break;
        memcpy(key, path, length);
        key[length] = '\0';
        at = json_object_get(at, key);
        path += length;
    }
    value = !*path && json_is_number(at) ? json_number_value(at) : NAN;
    json_decref(root);
    return value;
}

/* A program that looks for a file where there is none has not failed; short reads at the end of
 * a file are as they should be. */
static uint64_t io_errors(const struct side *side)
{
    uint64_t errors = 0;
    unsigned int kind;

    for (kind = 0; kind < TRACE_OP_COUNT; kind++)
        if (side->kind[kind] && trace_op_is_io(kind))
            errors += side->kind[kind]->errors;
    return errors;
}

/* What the recorder saw of the command, as figures. */
static int record_read_witness(struct record *record, const char *path, struct diag *diag)
{
    const struct trace_op *op;
    struct tape_feed feed;
    struct side *side = NULL;
    double *value = record->value;
    unsigned int i;
    int err;

    err = tape_feed_open(&feed, path, diag);
    if (err < 0)
        return err;
    err = side_new(&side);
    while (err >= 0 && (err = tape_feed_next(&feed, &op)) > 0)
        err = side_add(side, op);
    tape_feed_close(&feed);
    if (err == 0) {
        side_finish(side);
        value[METRIC_OPS] = (double)side->io_ops;
        value[METRIC_ERRORS] = (double)io_errors(side);
        value[METRIC_IOPS] = side_per_s(side, side->io_ops);
        value[METRIC_BANDWIDTH] = side_per_s(side, side->bytes);
        value[METRIC_DURATION] = (double)side_duration_ns(side);
        value[METRIC_DEPTH_MEAN] = hist_mean(&side->depth_time);
        value[METRIC_DEPTH_MAX] = side->depth_time.count ? (double)side->depth_time.max : NAN;
        record->has_curve = side->latency.count > 0;
        for (i = 0; record->has_curve && i < CURVE_POINTS; i++)
            record->curve[i] = (double)hist_quantile(&side->latency, curve_fraction[i]);
        if (record->has_curve) {
            value[METRIC_MEAN] = hist_mean(&side->latency);
            value[METRIC_P50] = (double)hist_quantile(&side->latency, 0.5);
            value[METRIC_P90] = (double)hist_quantile(&side->latency, 0.9);
            value[METRIC_P99] = (double)hist_quantile(&side->latency, 0.99);
            value[METRIC_P99_9] = (double)hist_quantile(&side->latency, 0.999);
            value[METRIC_MAX] = (double)side->latency.max;
        }
    }
    side_free(side);
    return err;
}

static int record_read_output(struct record *record, const struct trial_conf *conf,
                              const struct trial_files *files, struct diag *diag)
{
    char *output = read_whole(files->out);

    if (!output)
        return diag_set(diag, -ENOMEM, "%s: could not be read", files->out);
    record->value[METRIC_CMD_VALUE] = conf->value_regex
                                          ? value_by_regex(output, conf->value_regex)
                                          : value_by_path(output, conf->value_json);
    free(output);
    if (isnan(record->value[METRIC_CMD_VALUE]))
        return record_fail(record, "no number at %s in its output",
                           conf->value_regex ? conf->value_regex : conf->value_json);
    return 0;
}

static void record_set_cost(struct record *record, const struct process_cost *cost)
{
    record->wall_ns = record->value[METRIC_WALL] = (double)cost->wall_ns;
    record->value[METRIC_CMD_USER] = (double)cost->user_ns;
    record->value[METRIC_CMD_SYS] = (double)cost->sys_ns;
    record->value[METRIC_CMD_CPU] = (double)(cost->user_ns + cost->sys_ns);
    record->value[METRIC_CMD_RSS] = (double)cost->rss_bytes;
}

static int command_trial(const struct trial_conf *conf, unsigned int block, unsigned int cell,
                         const struct trial_files *files, struct record *record,
                         struct diag *diag)
{
    const struct design *design = conf->design;
    char *command = design->dimension[0].values[design->cells[cell].value[0]];
    char *const plain[] = {(char *)"/bin/sh", (char *)"-c", command, NULL};
    char *const watched[] = {(char *)conf->capture, (char *)"--force", (char *)"-o",
                             files->tape,           (char *)"--",      (char *)"/bin/sh",
                             (char *)"-c",          command,           NULL};
    char line[REASON_LENGTH], seed[32];
    struct process_cost cost;
    int err;

    snprintf(seed, sizeof seed, "%llu",
             (unsigned long long)design_trial_seed(design, block, cell));
    if (setenv("IOTAPE_TRIAL_SEED", seed, 1) < 0)
        return diag_errno(diag, -errno, "IOTAPE_TRIAL_SEED");
    err = process_run(conf->capture ? watched : plain, files->out, files->err, conf->stop,
                      &cost, diag);
    if (err < 0)
        return err;
    if (cost.stopped)
        return -EINTR;
    record_set_cost(record, &cost);
    if (cost.status != 0) {
        process_error_line(files->err, cost.status, line, sizeof line);
        return record_fail(record, "exit %d%s%s", cost.status, line[0] ? ": " : "", line);
    }
    if (conf->capture)
        err = record_read_witness(record, files->tape, diag);
    if (err == 0 && (conf->value_regex || conf->value_json))
        err = record_read_output(record, conf, files, diag);
    return err;
}

int trial_run(const struct trial_conf *conf, unsigned int block, unsigned int cell,
              struct record *ret_record, struct diag *diag)
{
    struct record record = {.block = block, .cell = cell, .steady = NAN};
    struct trial_files files;
    int err, i;

    for (i = 0; i < METRIC_COUNT; i++)
        record.value[i] = NAN;
    err = files_name(&files, conf, block, cell, diag);
    if (err < 0)
        return err;
    err = conf->replay ? replay_trial(conf, block, cell, &files, &record, diag)
                       : command_trial(conf, block, cell, &files, &record, diag);
    if (err == 0 && conf->replay && !record.failed) {
        unlink(files.out);
        unlink(files.err);
    }
    if (err == -EINTR && conf->replay) {
        unlink(files.json);
        unlink(files.tape);
    }
    files_release(&files);
    if (err < 0) {
        free(record.failed);
        return err == -ENOMEM ? diag_set(diag, err, "not enough memory") : err;
    }
    *ret_record = record;
    return 0;
}
