/* SPDX-License-Identifier: MIT */
#include "replay/compare_conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/compare_condition.h"
#include "replay/compare_infer.h"
#include "replay/compare_tapes.h"
#include "traces/diag.h"

#define AT(field) offsetof(struct compare_conf, field)

const char *const compare_restore_words[] = {"auto", "reflink", "extents", "none", NULL};

static const struct opt options[] = {
    {.type = OPT_HEADING, .help = "Tape against tape"},
    {"match", 0, OPT_ENUM, AT(match), .arg = "HOW", .def = "auto", .values = tapes_how_names,
     .help = "how ops are matched: ref (a result tape carries the index of the op it replays), "
             "content (the k-th op of a kind, file, offset and length), auto"},
    {"files", 0, OPT_ENUM, AT(files), .arg = "HOW", .def = "auto", .values = tapes_files_names,
     .help =
         "which files are the same when matching by content: those with the same path, base "
         "(last component) or number in the table; auto takes the first that fits"},
    {"window", 0, OPT_COUNT, AT(window), .arg = "N", .def = "131072", .min = 16,
     .max = 1u << 28,
     .help = "ops that may wait for their partner at once (about 140 bytes each)"},

    {.type = OPT_HEADING, .help = "The matrix: every cell where these lists cross"},
    {"engine", 'e', OPT_LIST, AT(engines), .arg = "E[:opt=val,...],...",
     .help =
         "engines; a comma starts a new one where an engine's name follows. May be repeated"},
    {"depth", 'd', OPT_STRING, AT(depth), .arg = "N,...", .help = "ops in flight a worker"},
    {"batch", 'b', OPT_STRING, AT(batch), .arg = "N,...", .help = "ops a submission"},
    {"processes", 0, OPT_STRING, AT(processes), .arg = "N,...", .help = "replaying processes"},
    {"workers", 'w', OPT_STRING, AT(workers), .arg = "N,...", .help = "worker threads"},
    {"pace", 'p', OPT_STRING, AT(pace), .arg = "P,...", .help = "asap, recorded, think"},
    {"set", 0, OPT_LIST, AT(sets), .arg = "NAME=VALUE,...",
     .help = "any other option of iotape replay as a dimension; yes and no for those without a "
             "value; \\, is a comma within a value. May be repeated"},
    {"baseline", 0, OPT_STRING, AT(baseline), .arg = "NAME=VALUE,...",
     .help = "what each cell is compared with: the cell with these values and else the same; "
             "first: the first cell. Default: the first value of the first list of several"},

    {.type = OPT_HEADING, .help = "Two commands"},
    {"ab", 0, OPT_FLAG, AT(ab),
     .help =
         "the operands are shell commands, compared under the same design; each trial's seed "
         "is in IOTAPE_TRIAL_SEED"},
    {"value-regex", 0, OPT_STRING, AT(value_regex), .arg = "REGEX",
     .help = "the number in its first group, in the command's output, is the figure value"},
    {"value-json", 0, OPT_STRING, AT(value_json), .arg = "PATH",
     .help = "the number at .a.b[0].c of the JSON it prints is the figure value"},

    {"witness", 0, OPT_FLAG, AT(witness),
     .help = "each command runs under iotape capture: the ops, bytes and latencies it saw are "
             "figures too, and its tape is kept; the costs include the recorder's"},

    {.type = OPT_HEADING, .help = "The experiment"},
    {"trials", 'n', OPT_COUNT, AT(trials), .arg = "N", .def = "10", .min = 1, .max = 10000,
     .help = "trials of each cell"},
    {"warmup", 0, OPT_COUNT, AT(warmup), .arg = "N", .def = "0", .max = 1000,
     .help = "trials of each cell that are run first and not judged"},
    {"cool-down", 0, OPT_TIME, AT(cool_down_ns), .arg = "TIME", .def = "0",
     .help = "rest between trials"},
    {"seed", 0, OPT_COUNT, AT(seed), .arg = "N", .def = "1",
     .help = "of the order of the trials, of each trial, and of what the statistics draw"},
    {"dir", 0, OPT_STRING, AT(dir), .arg = "DIR",
     .help = "keeps every trial's report and result tape, and the journal. Default: "
             "TAPE.compare-1, -2 ... here"},
    {"resume", 0, OPT_FLAG, AT(resume),
     .help = "go on with the experiment in --dir; more --trials may be asked for"},
    {"restore", 0, OPT_STRING, AT(restore), .arg = "DIR",
     .help = "where trials that write keep what they change, to put it back before the next one and "
             "after the last. Default: .iotape-restore in --root, else a folder in --dir"},
    {"restore-by", 0, OPT_ENUM, AT(restore_by), .arg = "HOW", .def = "auto",
     .values = compare_restore_words,
     .help = "reflink, extents (only the parts that the tape writes), auto (reflink where it can be), "
             "none (trials start from what the last one left)"},
    {"reset", 0, OPT_STRING, AT(reset), .arg = "CMD",
     .help = "a shell command run before each trial, to restore the files in place of --restore"},
    {"result-tapes", 0, OPT_FLAG, AT(result_tapes), .def = "yes",
     .help = "each trial writes a result tape, for latency curves (the default); the no- form "
             "spares the "
             "time and room"},
    {"allow-fallback", 0, OPT_FLAG, AT(allow_fallback),
     .help = "an engine that is granted less than asked for is compared as it is"},

    {.type = OPT_HEADING, .help = "Passed on to each trial, see iotape replay --help"},
    {"root", 0, OPT_STRING, AT(root), .arg = "DIR", .help = "recorded paths below DIR"},
    {"target", 0, OPT_STRING, AT(target), .arg = "FILE", .help = "everything to FILE"},
    {"map", 0, OPT_LIST, AT(maps), .arg = "A=B", .help = "recorded path A is B"},
    {"writes", 0, OPT_FLAG, AT(writes), .help = "allow writes"},
    {"destroy", 0, OPT_LIST, AT(destroy), .arg = "DEV", .help = "allow writes to this device"},
    {"prepare", 0, OPT_FLAG, AT(prepare), .help = "make the files with the sizes needed"},
    {"direct", 0, OPT_FLAG, AT(direct), .help = "O_DIRECT everywhere"},
    {"buffered", 0, OPT_FLAG, AT(buffered), .help = "no O_DIRECT anywhere"},
    {"cache", 0, OPT_STRING, AT(cache), .arg = "C",
     .help = "cold, warm, asis before each trial"},
    {"speed", 0, OPT_STRING, AT(speed), .arg = "X", .help = "times the recorded pace"},
    {"order", 'o', OPT_STRING, AT(order), .arg = "A,B", .help = "what waits for what"},
    {"fit", 0, OPT_STRING, AT(fit), .arg = "F", .help = "none, wrap, scale, pack"},
    {"unaligned", 0, OPT_STRING, AT(unaligned), .arg = "U", .help = "error, round, buffered"},
    {"runtime", 0, OPT_STRING, AT(runtime), .arg = "TIME", .help = "issue nothing after this"},
    {"verify", 0, OPT_FLAG, AT(verify), .help = "check what is read"},
    {"clock", 0, OPT_STRING, AT(clock), .arg = "C", .help = "real, simulated"},

    {.type = OPT_HEADING, .help = "Decisions"},
    {"metric", 'm', OPT_STRING, AT(metrics), .arg = "NAME,...",
     .help = "figures to judge, the first in the table. Default: iops at pace asap, else "
             "response_p99; wall for commands"},
    {"margin", 0, OPT_DOUBLE, AT(margin_pct), .arg = "PCT", .def = "5", .max = 100,
     .help = "equivalent means within this many percent"},
    {"detect", 0, OPT_DOUBLE, AT(detect_pct), .arg = "PCT", .def = "3", .max = 1000,
     .help = "difference that the trials needed are worked out for"},
    {"noise", 0, OPT_DOUBLE, AT(noise_pct), .arg = "PCT", .def = "2", .max = 1000,
     .help = "deviation between trials to plan with, before any is known"},
    {"alpha", 0, OPT_DOUBLE, AT(alpha_pct), .arg = "PCT", .def = "4", .max = 50,
     .help = "chance of a wrong 'different' anywhere in the matrix, at most"},
    {"unstable", 0, OPT_DOUBLE, AT(unstable_pct), .arg = "PCT", .def = "10", .max = 1000,
     .help = "a cell whose trials scatter more is called unstable"},
    {"draws", 0, OPT_COUNT, AT(draws), .arg = "N", .def = "10000", .min = 100, .max = 10000000,
     .help = "resamples of an interval"},
    {"fail-if", 0, OPT_LIST, AT(fail_if), .arg = "CONDITION",
     .help = "exit 3 when it is true: METRIC>LIMIT or METRIC<LIMIT, as p99>+5% or lost>0; in a "
             "matrix only when decided. May be repeated"},
    {"require-decision", 0, OPT_FLAG, AT(require_decision),
     .help = "exit 4 when a verdict or a --fail-if is undecided"},

    {.type = OPT_HEADING, .help = "Reports"},
    {"json", 0, OPT_STRING, AT(json), .arg = "FILE",
     .help = "everything as JSON; - is standard output, then nothing else is printed there"},
    {"csv", 0, OPT_STRING, AT(csv), .arg = "FILE", .help = "the matrix as CSV"},
    {"markdown", 0, OPT_STRING, AT(markdown), .arg = "FILE", .help = "the matrix for a mail"},
    {"html", 0, OPT_STRING, AT(html), .arg = "FILE",
     .help = "one page with plots (made by gnuplot; without it, without plots)"},
    {"quiet", 'q', OPT_FLAG, AT(quiet), .help = "no table and no progress; errors still show"},
    {"help", 'h', OPT_FLAG, AT(help), .help = "this text"},
    {"version", 'V', OPT_FLAG, AT(version), .help = "the version"},
    {0},
};

static int check_mode(struct compare_conf *conf, struct diag *diag)
{
    if (conf->ab) {
        conf->mode = COMPARE_COMMANDS;
        if (conf->operand_count < 2 || conf->operand_count > 26)
            return diag_set(diag, -EINVAL, "--ab: expected two commands, or up to 26");
        if (conf->engines.count > 0 || conf->sets.count > 0 || conf->depth || conf->batch ||
            conf->processes || conf->workers || conf->pace)
            return diag_set(diag, -EINVAL, "--ab: commands cannot be crossed with other lists");
        return 0;
    }
    conf->mode = conf->operand_count == 2 ? COMPARE_TAPES : COMPARE_MATRIX;
    if (conf->operand_count == 1 && conf->engines.count == 0)
        return diag_set(diag, -EINVAL,
                        "expected --engine with one tape, or a second tape to compare with");
    if (conf->operand_count < 1 || conf->operand_count > 2)
        return diag_set(diag, -EINVAL,
                        "expected one tape and --engine, or two tapes; see iotape compare "
                        "--help");
    if (conf->mode == COMPARE_TAPES && conf->engines.count > 0)
        return diag_set(diag, -EINVAL, "--engine: a matrix takes one tape, not two");
    if (conf->mode == COMPARE_MATRIX && strcmp(conf->operands[0], "-") == 0)
        return diag_set(diag, -EINVAL, "a matrix reads its tape many times: not from a pipe");
    return 0;
}

static int check_rest(const struct compare_conf *conf, struct diag *diag)
{
    struct condition condition;
    size_t i;
    int err = 0;

    for (i = 0; i < conf->fail_if.count && err == 0; i++)
        err = condition_parse(&condition, conf->fail_if.items[i], diag);
    if (err < 0)
        return err;
    if (conf->resume && !conf->dir)
        return diag_set(diag, -EINVAL, "--resume: which --dir?");
    if (conf->mode != COMPARE_COMMANDS &&
        (conf->value_regex || conf->value_json || conf->witness))
        return diag_set(diag, -EINVAL,
                        "--value-regex, --value-json and --witness go with --ab");
    if (conf->restore && (conf->mode != COMPARE_MATRIX || !conf->writes))
        return diag_set(diag, -EINVAL, "--restore goes with a matrix whose trials write (--writes)");
    if (conf->restore && (conf->reset || conf->restore_by == COMPARE_RESTORE_NONE))
        return diag_set(diag, -EINVAL, "--restore: %s excludes it",
                        conf->reset ? "--reset" : "--restore-by none");
    if (conf->value_regex && conf->value_json)
        return diag_set(diag, -EINVAL, "--value-regex or --value-json, not both");
    if (conf->mode == COMPARE_TAPES && (conf->csv || conf->markdown))
        return diag_set(diag, -EINVAL, "--csv and --markdown go with a matrix");
    return 0;
}

int compare_conf_parse(struct compare_conf *conf, int argc, char **argv, struct diag *diag)
{
    int err;

    memset(conf, 0, sizeof *conf);
    err = opts_defaults(options, conf, diag);
    if (err == 0)
        err = opts_parse(options, conf, argc, argv, false, NULL, &conf->operand_count, diag);
    conf->operands = argv + 1;
    if (err < 0 || conf->help || conf->version)
        return err;
    err = check_mode(conf, diag);
    return err < 0 ? err : check_rest(conf, diag);
}

void compare_conf_release(struct compare_conf *conf)
{
    opts_release(options, conf);
}

void compare_conf_help(FILE *out)
{
    fputs("usage: iotape compare A.tape B.tape [options]          is B like A, what moved?\n"
          "       iotape compare T.tape --engine A,B [options]    which engine is better?\n"
          "       iotape compare --ab 'CMD A' 'CMD B' [options]   which command is better?\n",
          out);
    opts_help(options, out);
}

/* ---- what goes through to the trials ------------------------------------------------- */

struct passing {
    char **items;
    size_t count;
    bool broken;
};

static bool is_passed(const char *name)
{
    static const char *const names[] = {
        "root",  "target", "map",   "writes", "destroy",   "prepare", "direct", "buffered",
        "cache", "speed",  "order", "fit",    "unaligned", "runtime", "verify", "clock",
    };
    size_t i;

    for (i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static void pass_option(void *context, const struct opt *opt, const char *text)
{
    struct passing *passing = context;
    char **grown, *item;
    int made;

    if (!is_passed(opt->name) || (opt->type == OPT_FLAG && text[0] != '1'))
        return;
    made = opt->type == OPT_FLAG ? asprintf(&item, "--%s", opt->name)
                                 : asprintf(&item, "--%s=%s", opt->name, text);
    grown = made < 0 ? NULL
                     : realloc(passing->items, (passing->count + 2) * sizeof *passing->items);
    if (!grown) {
        if (made >= 0)
            free(item);
        passing->broken = true;
        return;
    }
    grown[passing->count++] = item;
    grown[passing->count] = NULL;
    passing->items = grown;
}

int compare_conf_passed(const struct compare_conf *conf, char ***ret_passed, struct diag *diag)
{
    struct passing passing = {calloc(1, sizeof *passing.items), 0, false};

    if (passing.items)
        opts_each(options, conf, pass_option, &passing);
    if (!passing.items || passing.broken) {
        while (passing.count > 0)
            free(passing.items[--passing.count]);
        free(passing.items);
        return diag_set(diag, -ENOMEM, "not enough memory");
    }
    *ret_passed = passing.items;
    return 0;
}
