/* SPDX-License-Identifier: MIT */
/* iotape-convert: any trace to a tape and back; and what is in a tape (info, dump). */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "convert/conf.h"
#include "convert/dump.h"
#include "convert/exporter.h"
#include "convert/info.h"
#include "convert/input.h"
#include "convert/operands.h"
#include "convert/pipeline.h"
#include "convert/report.h"
#include "convert/view.h"
#include "traces/diag.h"

#define NOTES_SHOWN  10u
#define HELP_COLUMNS 90u

enum {
    EXIT_FINE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2
};

static void on_signal(int number)
{
    (void)number;
    input_interrupt();
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal}, old;

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* A lost terminal too, unless nohup had it ignored. */
    if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL); /* a write beyond ulimit -f is an error like a full disk */
}

/* A tape may be damaged in thousands of places: the first say enough, and info has the sums. */
static void print_note(void *context, const char *text)
{
    unsigned int *printed = context;

    if (*printed < NOTES_SHOWN)
        fprintf(stderr, "iotape: %s\n", text);
    else if (*printed == NOTES_SHOWN)
        fprintf(stderr, "iotape: further notes are not shown\n");
    if (*printed <= NOTES_SHOWN)
        ++*printed;
}

static int complain(const struct diag *diag)
{
    /* The reader of our output left (dump | head): nothing to say. */
    if (diag->error == -EPIPE)
        return EXIT_FAILED;
    fprintf(stderr, "iotape: %s\n", diag->error ? diag->text : "failed");
    return diag->error == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

/* ---- lists and help ------------------------------------------------------------------- */

static void list_formats(void)
{
    const struct importer *importer;
    const struct exporter *exporter;

    for (unsigned int i = 0; (importer = importer_at(i)); i++)
        printf("in   %-14s %s%s%s%s\n", importer->name, importer->summary,
               importer->flags & (IMPORTER_FORCED | IMPORTER_TEXT) ? " (needs --from)" : "",
               importer->unavailable ? "; unavailable: " : "",
               importer->unavailable ? importer->unavailable : "");
    for (unsigned int i = 0; (exporter = exporter_at(i)); i++)
        printf("out  %-14s %s%s%s\n", exporter->name, exporter->summary,
               exporter->unavailable ? "; unavailable: " : "",
               exporter->unavailable ? exporter->unavailable : "");
}

/* Help is written as paragraphs; a line that is too long is broken at blanks. */
static void print_wrapped(const char *text)
{
    while (*text) {
        size_t line = strcspn(text, "\n"), part = line;

        if (part > HELP_COLUMNS) {
            part = HELP_COLUMNS;
            while (part && text[part] != ' ')
                part--;
            if (!part)
                part = strcspn(text, " \n");
        }
        printf("%.*s\n", (int)part, text);
        text += part;
        text += *text == ' ' || *text == '\n';
    }
}

static void print_format(const char *way, const char *name, const char *summary,
                         const char *help, const struct opt *opts)
{
    printf("%s %s: %s\n", way, name, summary);
    if (help) {
        putchar('\n');
        print_wrapped(help);
    }
    if (opts) {
        printf("\noptions, as %s %s:key=value,...\n", way, name);
        opts_help(opts, stdout);
    }
}

static int help_format(const char *name, struct diag *diag)
{
    const struct importer *importer = importer_find(name, strlen(name));
    const struct exporter *exporter = exporter_find(name, strlen(name));

    if (!importer && !exporter)
        return diag_set(diag, -EINVAL, "no format '%s' (--list-formats)", name);
    if (importer)
        print_format("--from", importer->name, importer->summary, importer->help,
                     importer->opts);
    if (importer && exporter)
        putchar('\n');
    if (exporter)
        print_format("--to", exporter->name, exporter->summary, exporter->help, exporter->opts);
    return 0;
}

static void print_help(const char *usage, const struct opt *opts)
{
    printf("usage: %s\n\n", usage);
    opts_help(opts, stdout);
}

/* ---- convert -------------------------------------------------------------------------- */

static int gather(struct operands *operands, const struct convert_conf *conf, char **words,
                  int count, struct diag *diag)
{
    const struct importer *importer = NULL;
    const char *opts;
    int err = 0;

    if (conf->from) {
        importer = importer_find(conf->from, pipeline_format_name(conf->from, &opts));
        if (!importer)
            return diag_set(diag, -EINVAL, "--from: no format '%s' (--list-formats)",
                            conf->from);
    }
    for (int i = 0; i < count && err == 0; i++)
        err = operands_add(operands, words[i], importer, diag);
    if (err == 0 && strcmp(conf->output, "-") && operands_include(operands, conf->output))
        err = diag_set(diag, -EEXIST, "%s: is an input too: give another output", conf->output);
    return err;
}

static int convert(struct convert_conf *conf, char **words, int count, struct diag *diag)
{
    struct operands operands = {0};
    struct pipeline pipeline;
    bool begun = false;
    int err;

    err = gather(&operands, conf, words, count, diag);
    if (err == 0) {
        begun = true;
        err = pipeline_init(&pipeline, conf, &operands, diag);
    }
    if (err == 0)
        err = pipeline_run(&pipeline, &operands, NULL);
    if (err == 0 && conf->report_json)
        err = report_json(&pipeline, &operands, conf->report_json, diag);
    if (err == 0 && !conf->quiet)
        report_print(&pipeline, &operands,
                     !strcmp(conf->output, "-") ||
                             (conf->report_json && !strcmp(conf->report_json, "-"))
                         ? stderr
                         : stdout);
    if (begun)
        pipeline_release(&pipeline);
    operands_release(&operands);
    return err;
}

static int command_convert(int argc, char **argv, struct diag *diag)
{
    static const char usage[] = "iotape convert IN... -o OUT [options]";
    struct convert_conf conf;
    int count = 0, err;

    memset(&conf, 0, sizeof(conf));
    err = opts_defaults(convert_opts, &conf, diag);
    if (err == 0)
        err = opts_parse(convert_opts, &conf, argc, argv, false, NULL, &count, diag);
    if (err == 0 && conf.help)
        print_help(usage, convert_opts);
    else if (err == 0 && conf.version)
        puts("iotape " IOTAPE_VERSION);
    else if (err == 0 && conf.list_formats)
        list_formats();
    else if (err == 0 && conf.help_format)
        err = help_format(conf.help_format, diag);
    else if (err == 0 && !count)
        err = diag_set(diag, -EINVAL, "no input given; usage: %s", usage);
    else if (err == 0 && !conf.output)
        err = diag_set(diag, -EINVAL, "no output given: say -o OUT");
    else if (err == 0) {
        err = convert_conf_check(&conf, diag);
        if (err == 0)
            err = convert(&conf, argv + 1, count, diag);
    }
    opts_release(convert_opts, &conf);
    return err;
}

/* ---- info and dump -------------------------------------------------------------------- */

static int command_view(int argc, char **argv, bool info, struct diag *diag)
{
    const char *usage = info ? "iotape info T [options]" : "iotape dump T [options]";
    const struct opt *opts = info ? info_opts : dump_opts;
    struct convert_conf conf;
    struct view view = {.fd = -1};
    int count = 0, err;

    memset(&conf, 0, sizeof(conf));
    conf.transform.speed = 1;
    err = opts_defaults(opts, &conf, diag);
    if (err == 0)
        err = opts_parse(opts, &conf, argc, argv, false, NULL, &count, diag);
    if (err == 0 && conf.help) {
        print_help(usage, opts);
    } else if (err == 0 && !count) {
        err = diag_set(diag, -EINVAL, "no tape given; usage: %s", usage);
    } else if (err == 0) {
        err = view_open(&view, &conf, argv + 1, count, diag);
        if (err == 0)
            err = info ? info_tape(view.reader, &conf, view.format, stdout, diag)
                       : dump_tape(view.reader, &conf.filter, stdout, diag);
        view_release(&view);
    }
    opts_release(opts, &conf);
    return err;
}

int main(int argc, char **argv)
{
    unsigned int notes = 0;
    struct diag diag = {.note = print_note, .note_context = &notes};
    int err;

    setlocale(LC_CTYPE, "C");
    catch_signals();
    if (argc > 1 && (!strcmp(argv[1], "info") || !strcmp(argv[1], "dump")))
        err = command_view(argc - 1, argv + 1, argv[1][0] == 'i', &diag);
    else
        err = command_convert(argc, argv, &diag);
    if (err < 0)
        return complain(&diag);
    if (fflush(stdout) == EOF) {
        fprintf(stderr, "iotape: standard output: %s\n", strerror(errno));
        return EXIT_FAILED;
    }
    return EXIT_FINE;
}
