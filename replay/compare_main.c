/* SPDX-License-Identifier: MIT */
/*
 * iotape-compare: which of the comparisons is meant, and the exit status. The only file here
 * that prints errors.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "replay/compare_conf.h"
#include "replay/compare_matrix.h"
#include "replay/compare_tapes_run.h"
#include "traces/diag.h"

enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_CONDITION = 3,
    EXIT_UNDECIDED = 4
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    stop = 1;
}

/* Without SA_RESTART: waiting for a trial must end. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal}, old;

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* A lost terminal too, unless nohup had it ignored. */
    if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
}

static void print_note(void *context, const char *text)
{
    fprintf(stderr, "iotape compare: %s\n", text);
}

static int run(const struct compare_conf *conf, struct diag *diag)
{
    enum compare_outcome outcome = COMPARE_FINE;
    int err;

    if (conf->mode == COMPARE_TAPES) {
        err = tapes_run(conf, &outcome, diag);
    } else {
        catch_signals();
        err = matrix_run(conf, &stop, &outcome, diag);
    }
    if (err < 0)
        return err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
    switch (outcome) {
    case COMPARE_CONDITION_TRUE: return EXIT_CONDITION;
    case COMPARE_NOT_DECIDED: return EXIT_UNDECIDED;
    case COMPARE_FINE: break;
    }
    return EXIT_OK;
}

int main(int argc, char **argv)
{
    struct diag diag = {.note = print_note};
    struct compare_conf conf;
    int status = EXIT_OK, err;

    err = compare_conf_parse(&conf, argc, argv, &diag);
    if (err < 0)
        status = EXIT_USAGE;
    else if (conf.help)
        compare_conf_help(stdout);
    else if (conf.version)
        puts("iotape " IOTAPE_VERSION);
    else
        status = run(&conf, &diag);
    if (diag.error)
        fprintf(stderr, "iotape compare: %s\n", diag.text);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("iotape compare: standard output could not be written\n", stderr);
        status = EXIT_FAILED;
    }
    compare_conf_release(&conf);
    return status;
}
