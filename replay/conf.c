/* SPDX-License-Identifier: MIT */
#include "replay/conf.h"

#include <errno.h>
#include <string.h>

#include "traces/diag.h"
#include "traces/units.h"

static const char *const pace_words[] = {"asap", "recorded", "think", NULL};
static const char *const wait_words[] = {"hybrid", "sleep", "spin", NULL};
static const char *const cache_words[] = {"asis", "cold", "warm", NULL};
static const char *const fit_words[] = {"none", "wrap", "scale", "pack", NULL};
static const char *const unaligned_words[] = {"error", "buffered", "round", NULL};
static const char *const mapped_words[] = {"replay", "skip", NULL};
static const char *const restore_words[] = {"auto", "reflink", "extents", NULL};
static const char *const on_error_words[] = {"continue", "stop", NULL};
static const char *const priority_words[] = {"auto", "normal", "high", "realtime", NULL};
static const char *const clock_words[] = {"real", "simulated", NULL};

static const struct {
    const char *name;
    uint32_t bit;
} order_words[] = {
    {"none", 0},
    {"overlap", ORDER_OVERLAP},
    {"file", ORDER_FILE},
    {"stream", ORDER_STREAM},
    {"all", ORDER_ALL},
};

static int parse_order(const struct opt *opt, void *conf_ptr, const char *text,
                       struct diag *diag)
{
    struct conf *conf = conf_ptr;
    uint32_t order = 0;
    const char *at = text;

    for (;;) {
        size_t length = strcspn(at, ",");
        size_t i;

        for (i = 0; i < sizeof order_words / sizeof order_words[0]; i++)
            if (strlen(order_words[i].name) == length &&
                strncmp(order_words[i].name, at, length) == 0)
                break;
        if (i == sizeof order_words / sizeof order_words[0])
            return diag_set(diag, -EINVAL,
                            "--%s: '%.*s' is none of none, overlap, file, stream, all",
                            opt->name, (int)length, at);
        order |= order_words[i].bit;
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    conf->order = order;
    return 0;
}

static int parse_drop_flags(const struct opt *opt, void *conf_ptr, const char *text,
                            struct diag *diag)
{
    struct conf *conf = conf_ptr;
    const char *at = text;
    uint32_t flags = 0;

    for (;;) {
        size_t length = strcspn(at, ",");
        uint32_t flag;

        if (trace_flag_from_name(at, length, &flag) != 0)
            return diag_set(diag, -EINVAL, "--%s: '%.*s' is no flag of an operation", opt->name,
                            (int)length, at);
        if (flag == TRACE_F_DIRECT)
            return diag_set(diag, -EINVAL, "--%s direct: say --buffered", opt->name);
        flags |= flag;
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    conf->drop_flags = flags;
    return 0;
}

static int parse_numa(const struct opt *opt, void *conf_ptr, const char *text, struct diag *diag)
{
    struct conf *conf = conf_ptr;
    uint64_t node;

    if (units_parse_count(text, &node) != 0 || node >= CONF_NODES_MAX)
        return diag_set(diag, -EINVAL, "--%s: '%s' is not the number of a node", opt->name, text);
    conf->numa = (uint32_t)node;
    conf->numa_given = true;
    return 0;
}

static int parse_assume(const struct opt *opt, void *conf_ptr, const char *text,
                        struct diag *diag)
{
    struct conf *conf = conf_ptr;

    if (units_parse_time(text, &conf->assume_latency_ns) != 0)
        return diag_set(diag, -EINVAL, "--%s: '%s' is not a time (100us, 2ms)", opt->name, text);
    conf->latency_assumed = true;
    return 0;
}

static int parse_fill(const struct opt *opt, void *conf_ptr, const char *text, struct diag *diag)
{
    struct conf *conf = conf_ptr;
    uint64_t pct;

    if (strcmp(text, "zero") == 0) {
        conf->fill = FILL_ZERO;
    } else if (strcmp(text, "random") == 0) {
        conf->fill = FILL_RANDOM;
    } else if (strncmp(text, "compress=", 9) == 0 &&
               units_parse_count(text + 9, &pct) == 0 && pct <= 100) {
        conf->fill = FILL_COMPRESS;
        conf->fill_pct = (uint32_t)pct;
    } else {
        return diag_set(diag, -EINVAL,
                        "--%s: '%s' is none of zero, random, compress=PCT (0 to 100)",
                        opt->name, text);
    }
    return 0;
}

#define AT(field) offsetof(struct conf, field)
const struct opt conf_table[] = {
    {.type = OPT_HEADING, .help = "Engine and shape of the load"},
    {"engine", 'e', OPT_STRING, AT(engine_text), .arg = "E[:opt=val,...]", .def = "sync",
     .help = "how operations are issued; --list-engines lists them"},
    {"depth", 'd', OPT_COUNT, AT(depth), .arg = "N", .min = 1, .max = 65536,
     .help = "operations in flight per worker. Default: 1 at pace asap; at the other paces as "
             "many as the engine can hold. Given, it caps, and operations held back are counted"},
    {"depth-low", 0, OPT_COUNT, AT(depth_low), .arg = "N", .max = 65535,
     .help = "once the depth is reached, drain to N before issuing again (pace asap)"},
    {"batch", 'b', OPT_COUNT, AT(batch), .arg = "N", .min = 1, .max = 65536,
     .help = "most operations handed over in one call; never waits for one not yet due. "
             "Default: the depth, at most 32 at pace asap"},
    {"batch-wait", 0, OPT_FLAG, AT(batch_wait),
     .help = "gather a whole batch before submitting (pace asap)"},
    {"recorded-batches", 0, OPT_FLAG, AT(recorded_batches),
     .help = "submit together what the recording submitted together"},
    {"batch-complete-min", 0, OPT_COUNT, AT(complete_min), .arg = "N", .def = "1", .min = 1,
     .max = 65536, .help = "least completions to wait for in one call (pace asap)"},
    {"batch-complete-max", 0, OPT_COUNT, AT(complete_max), .arg = "N", .max = 65536,
     .help = "most completions taken in one call. Default: the depth"},
    {"workers", 'w', OPT_COUNT, AT(workers), .arg = "N", .def = "1", .min = 1, .max = 1024,
     .help = "threads that issue; streams are spread over them (files are, with --order overlap)"},
    {"processes", 0, OPT_COUNT, AT(processes), .arg = "N", .max = 1024,
     .help = "the same, as processes"},
    {"clones", 0, OPT_COUNT, AT(clones), .arg = "N", .max = 1024,
     .help = "replay the whole tape N times at once, each on a private copy of the file set in "
             "DIR/clone.0, DIR/clone.1 ... below --root; N workers"},
    {"pin", 0, OPT_STRING, AT(pin), .arg = "CPUS",
     .help = "bind the workers to these CPUs in turn, as in 0-3,6"},
    {"numa", 0, OPT_CALL, AT(numa), .arg = "NODE", .parse = parse_numa,
     .help = "take the workers' memory from this node only, and run them on its CPUs unless --pin "
             "says otherwise"},
    {"priority", 0, OPT_ENUM, AT(priority), .arg = "P", .def = "auto", .values = priority_words,
     .help = "of the threads that issue: normal; high (nice -20); realtime (SCHED_FIFO 1); auto is "
             "normal at pace asap, else realtime where allowed and a CPU is left over, else high "
             "where allowed. The report says what it was"},

    {.type = OPT_HEADING, .help = "When and in what order"},
    {"pace", 'p', OPT_ENUM, AT(pace), .arg = "P", .def = "asap", .values = pace_words,
     .help = "asap: closed loop at --depth; recorded: at the recorded times; think: each "
             "operation waits for what it waited for, plus the recorded think time"},
    {"speed", 0, OPT_DOUBLE, AT(speed), .arg = "X", .def = "1",
     .help = "divide the recorded times and think times by X"},
    {"max-gap", 0, OPT_TIME, AT(max_gap_ns), .arg = "T",
     .help = "shorten longer gaps between operations to T"},
    {"start", 0, OPT_TIME, AT(start_ns), .arg = "T", .help = "begin at this tape time"},
    {"end", 0, OPT_TIME, AT(end_ns), .arg = "T", .help = "leave out what was issued from T on"},
    {"loops", 0, OPT_COUNT, AT(loops), .arg = "N", .def = "1", .min = 1, .max = 1000000000,
     .help = "replay the tape N times over"},
    {"runtime", 0, OPT_TIME, AT(runtime_ns), .arg = "T", .help = "issue nothing after this long"},
    {"wait", 0, OPT_ENUM, AT(wait), .arg = "W", .def = "hybrid", .values = wait_words,
     .help = "until an operation is due: hybrid sleeps, then spins for as long as wake-ups were "
             "seen to be late; sleep never spins; spin never sleeps"},
    {"late", 0, OPT_TIME, AT(late_ns), .arg = "T", .def = "1ms",
     .help = "an operation issued more than T after it was due counts as late"},
    {"order", 'o', OPT_CALL, AT(order), .arg = "A,B", .parse = parse_order,
     .help = "what must have completed first: overlap (operations on the same bytes, one of them "
             "a write), file, stream, all (what had completed when it was recorded, in the same "
             "file, stream, anywhere), none (the default)"},
    {"assume-latency", 0, OPT_CALL, AT(assume_latency_ns), .arg = "T", .parse = parse_assume,
     .help = "take T where the tape has no latency (pace think, order file, stream, all)"},
    {"clock", 0, OPT_ENUM, AT(clock), .arg = "C", .def = "real", .values = clock_words,
     .help = "simulated: time jumps to the next event; engine model only"},

    {.type = OPT_HEADING, .help = "Where it goes"},
    {"root", 0, OPT_STRING, AT(root), .arg = "DIR",
     .help = "recorded paths are taken below DIR, never outside it"},
    {"target", 0, OPT_STRING, AT(target), .arg = "FILE",
     .help = "every operation goes to this device or file"},
    {"map", 0, OPT_LIST, AT(maps), .arg = "A=B",
     .help = "the recorded file or directory A is B here; may be repeated"},
    {"writes", 0, OPT_FLAG, AT(writes),
     .help = "issue what changes data; without it such operations are skipped"},
    {"destroy", 0, OPT_LIST, AT(destroy), .arg = "DEV",
     .help = "with --writes: this block device may be overwritten"},
    {"prepare", 0, OPT_FLAG, AT(prepare),
     .help = "first make the files that the tape needs, with their recorded sizes"},
    {"restore", 0, OPT_STRING, AT(restore), .arg = "DIR",
     .help = "with --writes: first put back what the last replay with this DIR changed, then keep in "
             "DIR what this one will change"},
    {"restore-by", 0, OPT_ENUM, AT(restore_by), .arg = "HOW", .def = "auto",
     .values = restore_words,
     .help = "how --restore keeps it: reflink (a clone of each file; DIR on the same file system), "
             "extents (the 64 KiB chunks that the tape writes), auto (reflink where it can be)"},
    {"restore-only", 0, OPT_FLAG, AT(restore_only),
     .help = "put back what DIR of --restore holds, remove DIR, replay nothing"},
    {"fit", 0, OPT_ENUM, AT(fit), .arg = "F", .def = "none", .values = fit_words,
     .help = "where the tape reaches beyond the target: wrap (modulo its size), scale, pack (the "
             "parts touched, side by side in order)"},
    {"direct", 0, OPT_FLAG, AT(direct), .help = "O_DIRECT everywhere. Default: as recorded"},
    {"buffered", 0, OPT_FLAG, AT(buffered), .help = "no O_DIRECT anywhere"},
    {"mapped", 0, OPT_ENUM, AT(mapped), .arg = "M", .def = "replay", .values = mapped_words,
     .help = "what loads and stores did to mapped files: replay it as buffered reads and writes of the "
             "pages, or skip it"},
    {"drop-flags", 0, OPT_CALL, AT(drop_flags), .arg = "A,B", .parse = parse_drop_flags,
     .help = "recorded flags not to honour: dsync, sync, nowait, append, fua, preflush, polled, "
             "readahead, link, drain, atomic"},
    {"unaligned", 0, OPT_ENUM, AT(unaligned), .arg = "U", .def = "error",
     .values = unaligned_words,
     .help = "direct operations that the target's alignment forbids: error; buffered (issue those "
             "without O_DIRECT); round (reads to whole blocks, writes buffered)"},
    {"cache", 0, OPT_ENUM, AT(cache), .arg = "C", .def = "asis", .values = cache_words,
     .help = "page cache of the files before the start: cold, warm (both verified) or asis"},
    {"fill", 0, OPT_CALL, AT(fill), .arg = "DATA", .parse = parse_fill,
     .help = "what is written: zero, random, or compress=PCT (PCT percent can be compressed "
             "away). Default: random"},
    {"verify", 0, OPT_FLAG, AT(verify),
     .help = "mark every written 512-byte block with its place and sequence, and check every "
             "block read; implies --order overlap"},
    {"on-error", 0, OPT_ENUM, AT(on_error), .arg = "A", .def = "continue",
     .values = on_error_words, .help = "a failed operation is counted; then continue, or stop"},
    {"seed", 0, OPT_COUNT, AT(seed), .arg = "N", .def = "1",
     .help = "seed of random data and of engines that draw numbers"},

    {.type = OPT_HEADING, .help = "Results"},
    {"json", 0, OPT_STRING, AT(json), .arg = "FILE", .help = "the report as JSON; - is stdout"},
    {"html", 0, OPT_STRING, AT(html), .arg = "FILE",
     .help = "the report as a page, with plots where gnuplot is installed"},
    {"result", 0, OPT_STRING, AT(result), .arg = "R.tape",
     .help = "a tape of what was done: when each operation was due, issued, completed"},
    {"force", 0, OPT_FLAG, AT(force), .help = "replace an existing result tape"},
    {"plan", 0, OPT_FLAG, AT(plan), .help = "say what would be done, and do nothing"},
    {"quiet", 'q', OPT_FLAG, AT(quiet), .help = "no report and no progress; errors still show"},
    {"list-engines", 0, OPT_FLAG, AT(list_engines), .help = "the engines, and which can run here"},
    {"help-engine", 0, OPT_STRING, AT(help_engine), .arg = "E", .help = "an engine's options"},
    {"help", 'h', OPT_FLAG, AT(help), .help = "this text"},
    {"version", 'V', OPT_FLAG, AT(version), .help = "the version"},
    {0}};
#undef AT

const char *conf_word(const char *option, int value)
{
    for (const struct opt *opt = conf_table; opt->name != NULL || opt->help != NULL; opt++)
        if (opt->name != NULL && opt->type == OPT_ENUM && strcmp(opt->name, option) == 0)
            return opt->values[value];
    return "?";
}

const char *conf_order_text(uint32_t order, char *buf)
{
    char *at = buf;

    *at = '\0';
    for (size_t i = 1; i < sizeof order_words / sizeof order_words[0]; i++)
        if (order & order_words[i].bit)
            at += sprintf(at, "%s%s", at == buf ? "" : ",", order_words[i].name);
    return at == buf ? strcpy(buf, "none") : buf;
}

static int check_load(const struct conf *conf, struct diag *diag)
{
    if (conf->direct && conf->buffered)
        return diag_set(diag, -EINVAL, "--direct and --buffered exclude each other");
    if (conf->speed <= 0)
        return diag_set(diag, -EINVAL, "--speed must be above 0");
    if (conf->end_ns != 0 && conf->end_ns <= conf->start_ns)
        return diag_set(diag, -EINVAL, "--end must be after --start");
    if (conf->depth_low != 0 && (conf->pace != PACE_ASAP || conf->depth_low >= conf->depth))
        return diag_set(diag, -EINVAL,
                        "--depth-low needs --pace asap and must be below --depth");
    if (conf->batch_wait && conf->pace != PACE_ASAP)
        return diag_set(diag, -EINVAL, "--batch-wait needs --pace asap: elsewhere it would make "
                                       "operations late");
    if (conf->depth != 0 && conf->batch > conf->depth)
        return diag_set(diag, -EINVAL, "--batch %llu is above --depth %llu",
                        (unsigned long long)conf->batch, (unsigned long long)conf->depth);
    if (conf->complete_max != 0 && conf->complete_max < conf->complete_min)
        return diag_set(diag, -EINVAL, "--batch-complete-max is below --batch-complete-min");
    if (conf->processes != 0 && conf->workers != 1)
        return diag_set(diag, -EINVAL, "give --workers or --processes, not both");
    if (conf->clones != 0 && (conf->processes != 0 || conf->workers != 1))
        return diag_set(diag, -EINVAL, "--clones sets the number of workers itself");
    if (conf->pace == PACE_THINK && (conf->order & ORDER_OVERLAP) &&
        (conf->workers > 1 || conf->processes > 1))
        return diag_set(diag, -EINVAL,
                        "--pace think keeps a stream in one worker and --order overlap a file: "
                        "together they need a single worker");
    return 0;
}

static int check_where(const struct conf *conf, struct diag *diag)
{
    unsigned int flags = conf->engine.engine->flags;

    if (conf->simulated && !(flags & ENGINE_SIMULATES))
        return diag_set(diag, -EINVAL, "--clock simulated needs an engine that simulates "
                                       "(--engine model), not %s", conf->engine.engine->name);
    if (conf->simulated && (conf->workers > 1 || conf->processes > 0 || conf->clones > 1))
        return diag_set(diag, -EINVAL, "--clock simulated runs one worker");
    if (conf->root != NULL && conf->target != NULL)
        return diag_set(diag, -EINVAL, "--root and --target exclude each other");
    if (conf->target != NULL && conf->maps.count != 0)
        return diag_set(diag, -EINVAL, "--target takes everything: --map has nothing to say");
    if (conf->root == NULL && conf->target == NULL && conf->maps.count == 0 &&
        !(flags & ENGINE_NO_TARGET))
        return diag_set(diag, -EINVAL,
                        "where to? --root DIR, --target FILE or --map A=B must say");
    if (conf->json != NULL && conf->result != NULL && strcmp(conf->json, "-") == 0 &&
        strcmp(conf->result, "-") == 0)
        return diag_set(diag, -EINVAL, "--json - and --result - cannot share standard output");
    if (conf->clones != 0 && conf->root == NULL)
        return diag_set(diag, -EINVAL, "--clones needs --root");
    if (conf->destroy.count != 0 && !conf->writes)
        return diag_set(diag, -EINVAL, "--destroy without --writes writes nothing");
    if (conf->restore != NULL && !conf->writes)
        return diag_set(diag, -EINVAL, "--restore goes with --writes: reading changes nothing");
    if (conf->restore_only && conf->restore == NULL)
        return diag_set(diag, -EINVAL, "--restore-only: from which --restore DIR?");
    if (conf->fit != FIT_NONE && conf->target == NULL && conf->maps.count == 0)
        return diag_set(diag, -EINVAL, "--fit needs --target or --map");
    if (conf->verify && (flags & ENGINE_NO_TARGET))
        return diag_set(diag, -EINVAL, "--verify: engine %s moves no data",
                        conf->engine.engine->name);
    for (size_t i = 0; i < conf->maps.count; i++) {
        const char *sign = strchr(conf->maps.items[i], '=');

        if (sign == NULL || sign == conf->maps.items[i] || sign[1] == '\0')
            return diag_set(diag, -EINVAL, "--map: '%s' is not A=B", conf->maps.items[i]);
    }
    return 0;
}

int conf_parse(struct conf *conf, int argc, char **argv, struct diag *diag)
{
    int operands = 0;
    int err;

    memset(conf, 0, sizeof *conf);
    err = opts_defaults(conf_table, conf, diag);
    conf->fill = FILL_RANDOM;
    if (err == 0)
        err = opts_parse(conf_table, conf, argc, argv, false, NULL, &operands, diag);
    if (err != 0)
        return err;
    if (conf->help || conf->version || conf->list_engines || conf->help_engine != NULL)
        return 0;
    if (operands != 1)
        return diag_set(diag, -EINVAL, operands == 0 ? "which tape?" : "one tape at a time");
    conf->tape = argv[1];
    conf->simulated = conf->clock == 1;
    if (conf->verify)
        conf->order |= ORDER_OVERLAP;
    err = engine_choice_parse(&conf->engine, conf->engine_text, diag);
    if (err == 0)
        err = check_load(conf, diag);
    if (err == 0)
        err = check_where(conf, diag);
    return err;
}

void conf_release(struct conf *conf)
{
    opts_release(conf_table, conf);
    if (conf->engine.engine != NULL)
        engine_choice_release(&conf->engine);
    memset(&conf->engine, 0, sizeof conf->engine);
}
