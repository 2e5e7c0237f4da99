/* SPDX-License-Identifier: MIT */
/* iotape-replay: the only place of the program that prints errors and picks the exit status. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/conf.h"
#include "replay/report.h"
#include "replay/run.h"
#include "traces/diag.h"

static void print_note(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "iotape-replay: %s\n", text);
}

static int fail(const struct diag *diag, bool usage)
{
    fprintf(stderr, "iotape-replay: %s\n", diag->error ? diag->text : "failed");
    if (usage)
        fprintf(stderr, "iotape-replay --help tells more\n");
    return usage ? 2 : 1;
}

static void print_help(void)
{
    printf("usage: iotape replay TAPE [--engine E[:opt=val,...]] [options]\n\n"
           "Reissues the operations of a tape and reports how they went. Reads only, unless\n"
           "--writes is given. See iotape-replay(1).\n\n");
    opts_help(conf_table, stdout);
}

static void print_engines(void)
{
    const struct engine *engine;

    for (unsigned int i = 0; (engine = engine_at(i)) != NULL; i++) {
        const struct engine_choice choice = {.engine = engine};
        struct diag diag = DIAG_INIT;

        printf("%-10s %s\n", engine->name, engine->summary);
        if (engine_choice_probe(&choice, &diag) != 0)
            printf("%-10s not here: %s\n", "", diag.text);
    }
}

static int print_engine_help(const char *name)
{
    const struct engine *engine = engine_find(name, strlen(name));

    if (engine == NULL) {
        fprintf(stderr, "iotape-replay: no engine is called '%s'; --list-engines lists them\n",
                name);
        return 2;
    }
    printf("%s: %s\n", engine->name, engine->summary);
    if (engine->help != NULL)
        printf("\n%s\n", engine->help);
    if (engine->opts != NULL) {
        printf("\nOptions, as --engine %s:name=value,...\n", engine->name);
        opts_help(engine->opts, stdout);
    }
    return 0;
}

static int replay(const struct conf *conf, struct diag *diag)
{
    struct run_report *report = calloc(1, sizeof *report);
    struct run *run = NULL;
    bool usage = false;
    bool quiet = conf->quiet || (conf->json != NULL && strcmp(conf->json, "-") == 0) ||
                 (conf->result != NULL && strcmp(conf->result, "-") == 0);
    int err, output_err = 0, status;

    if (report == NULL)
        return 1;
    err = run_replay(&run, conf, report, &usage, diag);
    if (err == 0 && conf->plan)
        report_plan(report, conf, stdout);
    if (err == 0 && conf->restore_only && !conf->plan && !quiet)
        report_restored(report, stdout);
    if (report->stats != NULL) {
        if (!quiet)
            report_text(report, conf, stdout);
        if (report->notes[0] != '\0')
            fprintf(stderr, "iotape-replay: %s", report->notes);
        if (conf->json != NULL)
            output_err = report_json(report, conf, conf->json, diag);
        if (conf->html != NULL && output_err == 0)
            output_err = report_html(report, conf, conf->html, diag);
    }
    status = err != 0 || output_err != 0 ? fail(diag, usage) : 0;
    if (status == 0 && report->stats != NULL &&
        (report->end == RUN_ERROR_STOP || report->stats->verify_errors != 0))
        status = 1;
    if (status == 0 && report->signal != 0)
        status = 128 + report->signal;
    run_release(run);
    free(report);
    return status;
}

int main(int argc, char **argv)
{
    static struct conf conf;
    struct diag diag = DIAG_INIT;
    int status = 0;

    diag.note = print_note;
    signal(SIGXFSZ, SIG_IGN); /* a write beyond ulimit -f is an error like a full disk */
    if (conf_parse(&conf, argc, argv, &diag) != 0)
        status = fail(&diag, true);
    else if (conf.help)
        print_help();
    else if (conf.version)
        printf("iotape %s\n", IOTAPE_VERSION);
    else if (conf.list_engines)
        print_engines();
    else if (conf.help_engine != NULL)
        status = print_engine_help(conf.help_engine);
    else
        status = replay(&conf, &diag);
    conf_release(&conf);
    if (fflush(stdout) != 0 && status == 0) {
        perror("iotape-replay: standard output");
        status = 1;
    }
    return status;
}
