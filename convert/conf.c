/* SPDX-License-Identifier: MIT */
#include "convert/conf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/info.h"
#include "traces/diag.h"
#include "traces/units.h"

#define CONF(member) offsetof(struct convert_conf, member)

static const char *const events[] = {"auto", "Q", "D", "C", NULL};
static const char *const samples[] = {"op", "file", "stream", "region", NULL};
static const char *const aligns[] = {"wall", "start", NULL};
static const char *const fits[] = {"none", "wrap", "scale", "pack", NULL};

/* "us", "100ns", "1/2ns": how long one unit of the source's time is. */
static int parse_time_unit(const struct opt *opt, void *conf, const char *text,
                           struct diag *diag)
{
    struct import_options *options = (struct import_options *)((char *)conf + opt->offset);
    uint64_t number = 1, den = 1, unit_ns;
    const char *at = text;
    char unit[32], *end;

    if (*at >= '0' && *at <= '9') {
        number = strtoull(at, &end, 10);
        at = end;
        if (*at == '/') {
            den = strtoull(at + 1, &end, 10);
            at = end;
        }
    }
    snprintf(unit, sizeof(unit), "1%.20s", at);
    if (!number || !den || number > 1000000000 || den > 1000000000 ||
        units_parse_time(unit, &unit_ns) < 0 || unit_ns > 86400000000000u)
        return diag_set(diag, -EINVAL,
                        "--%s: '%s' is not a unit of time (s, ms, us, ns, 100ns, 1/2ns)",
                        opt->name, text);
    options->time_unit_ns_num = number * unit_ns;
    options->time_unit_ns_den = den;
    return 0;
}

static int parse_event(const struct opt *opt, void *conf, const char *text, struct diag *diag)
{
    struct import_options *options = (struct import_options *)((char *)conf + opt->offset);

    for (unsigned int i = 0; events[i]; i++)
        if (!strcmp(text, events[i])) {
            options->event = i ? events[i][0] : 0;
            return 0;
        }
    return diag_set(diag, -EINVAL, "--%s: '%s' is not Q, D, C or auto", opt->name, text);
}

const struct opt convert_opts[] = {
    {.help = "Formats"},
    {"output", 'o', OPT_STRING, CONF(output), .arg = "OUT",
     .help = "where to write; - is standard output"},
    {"from", 0, OPT_STRING, CONF(from), .arg = "F[:OPTS]",
     .help = "format of the inputs; recognised by content when not given"},
    {"to", 0, OPT_STRING, CONF(to), .arg = "F[:OPTS]",
     .help = "format of the output; by the output's suffix when not given, else tape"},
    {"list-formats", 0, OPT_FLAG, CONF(list_formats), .help = "list the formats and exit"},
    {"help-format", 0, OPT_STRING, CONF(help_format), .arg = "F",
     .help = "explain one format and its options and exit"},

    {.help = "What the source does not say"},
    {"time-unit", 0, OPT_CALL, CONF(import), .arg = "UNIT", .parse = parse_time_unit,
     .help = "unit of the source's times: s, ms, us, ns, 100ns, 1/2ns"},
    {"sector-size", 0, OPT_SIZE, CONF(import.sector_bytes), .arg = "SIZE", .max = 1u << 30,
     .help = "bytes of a sector or block of the source"},
    {"event", 0, OPT_CALL, CONF(import), .arg = "Q|D|C", .parse = parse_event,
     .help = "block traces: the event that stands for the I/O; Q, else D, else C when auto"},
    {"device", 0, OPT_STRING, CONF(import.device), .arg = "DEV",
     .help = "keep this device or disk only, as the source names it (8,0)"},
    {"epoch", 0, OPT_STRING, CONF(import.epoch), .arg = "TEXT",
     .help = "what time 0 of the source is, for formats that take it"},
    {"columns", 0, OPT_STRING, CONF(import.columns), .arg = "LIST",
     .help = "csv: what the columns are: time:s,op,offset:sector,length,- ..."},
    {"all-fds", 0, OPT_FLAG, CONF(import.all_fds),
     .help = "keep sockets, pipes and terminals too"},
    {"skip-bad", 0, OPT_COUNT, CONF(skip_bad), .arg = "N",
     .help = "pass over up to N lines or records that cannot be parsed"},

    {.help = "Filters"},
    {"time", 0, OPT_CALL, CONF(filter), .arg = "A..B", .parse = filter_parse_time,
     .help = "ops issued from A to before B after the first I/O (10s..1m, 5ms..)"},
    {"op", 0, OPT_CALL, CONF(filter), .arg = "KIND,...", .parse = filter_parse_ops,
     .help = "these kinds of ops only"},
    {"stream", 0, OPT_LIST, CONF(filter.streams), .arg = "PID|PID/TID|COMM",
     .help = "these streams only; COMM is a glob; may be repeated"},
    {"file", 0, OPT_LIST, CONF(filter.files), .arg = "GLOB",
     .help = "files whose path fits the glob; may be repeated"},
    {"range", 0, OPT_CALL, CONF(filter), .arg = "A..B", .parse = filter_parse_range,
     .help = "ops that touch the bytes from A to before B (0..10g)"},
    {"sample", 0, OPT_DOUBLE, CONF(filter.sample_pct), .arg = "PCT", .max = 100,
     .help = "keep about PCT percent, chosen by hash"},
    {"sample-by", 0, OPT_ENUM, CONF(filter.sample_by), .arg = "WHAT", .values = samples,
     .def = "op", .help = "what is kept or left as a whole: op, file, stream, region (1 MiB)"},
    {"sample-seed", 0, OPT_COUNT, CONF(filter.sample_seed), .arg = "N",
     .help = "another choice for another N"},
    {"head", 0, OPT_COUNT, CONF(filter.head), .arg = "N", .help = "the first N ops only"},

    {.help = "Transforms"},
    {"speed", 0, OPT_DOUBLE, CONF(transform.speed), .arg = "X", .def = "1",
     .help = "divide times by X: 2 is twice as fast"},
    {"clamp-gaps", 0, OPT_TIME, CONF(transform.clamp_gap_ns), .arg = "T",
     .help = "a longer time between two issues becomes T"},
    {"map", 0, OPT_LIST, CONF(transform.maps), .arg = "OLD=NEW",
     .help = "rename a file, or all files below a folder; may be repeated"},
    {"shift", 0, OPT_LIST, CONF(transform.shifts), .arg = "N:TIME",
     .help = "input N (from 1) is TIME later, or earlier when negative; may be repeated"},
    {"align", 0, OPT_ENUM, CONF(transform.align), .arg = "HOW", .values = aligns, .def = "wall",
     .help = "several inputs meet by their clocks (wall) or all begin together (start)"},
    {"fit", 0, OPT_ENUM, CONF(transform.fit.mode), .arg = "HOW", .values = fits, .def = "none",
     .help = "move offsets onto a smaller device: wrap, scale, or pack (touched parts side by "
             "side)"},
    {"fit-size", 0, OPT_SIZE, CONF(transform.fit.size_bytes), .arg = "SIZE",
     .help = "what each file must fit in"},
    {"fit-grain", 0, OPT_SIZE, CONF(transform.fit.grain_bytes), .arg = "SIZE", .def = "1m",
     .help = "pack: a part is this large, a power of two"},
    {"split", 0, OPT_CALL, CONF(transform), .arg = "HOW", .parse = transform_parse_split,
     .help = "an output for each file, stream, or time:T (time:10s); numbered before OUT's "
             "suffix"},
    {"anonymise", 0, OPT_FLAG, CONF(anonymise),
     .help = "replace the parts of paths by keyed hashes; the key is not stored; implies "
             "--strip"},
    {"strip", 0, OPT_FLAG, CONF(strip), .help = "drop command names, command lines and hosts"},

    {.help = "Running"},
    {"report-json", 0, OPT_STRING, CONF(report_json), .arg = "FILE",
     .help = "write the report as JSON; - is standard output"},
    {"memory", 0, OPT_SIZE, CONF(memory_bytes), .arg = "SIZE", .def = "64m", .min = 1u << 20,
     .help = "for sorting; what does not fit goes to temporary files"},
    {"temp-dir", 0, OPT_STRING, CONF(temp_dir), .arg = "DIR",
     .help = "for those files; TMPDIR, else /tmp, when not given"},
    {"quiet", 'q', OPT_FLAG, CONF(quiet), .help = "no report"},
    {"version", 'V', OPT_FLAG, CONF(version), .help = "print the version and exit"},
    {"help", 'h', OPT_FLAG, CONF(help), .help = "print this and exit"},
    {0},
};

#define VIEW_OPTS                                                                              \
    {"from", 0, OPT_STRING, CONF(from), .arg = "F[:OPTS]",                                     \
     .help = "format, when it is not a tape and not recognised by content"},                   \
        {"time-unit", 0, OPT_CALL, CONF(import), .arg = "UNIT", .parse = parse_time_unit,      \
         .help = "as for convert, as are the next three"},                                     \
        {"sector-size", 0, OPT_SIZE, CONF(import.sector_bytes), .arg = "SIZE",                 \
         .max = 1u << 30, .help = "bytes of a sector of the source"},                          \
        {"event", 0, OPT_CALL, CONF(import), .arg = "Q|D|C", .parse = parse_event,             \
         .help = "block traces: the event that stands for the I/O"},                           \
        {"columns", 0, OPT_STRING, CONF(import.columns), .arg = "LIST",                        \
         .help = "csv: what the columns are"},                                                 \
        {"temp-dir", 0, OPT_STRING, CONF(temp_dir), .arg = "DIR",                              \
         .help = "for temporary files"},                                                       \
    {                                                                                          \
        "help", 'h', OPT_FLAG, CONF(help), .help = "print this and exit"                       \
    }

const struct opt info_opts[] = {
    {"json", 0, OPT_FLAG, CONF(json), .help = "as JSON; numbers are numbers, units end the names"},
    {"quick", 0, OPT_FLAG, CONF(quick),
     .help = "read block headers only: counts, bytes, duration"},
    VIEW_OPTS,
    {0},
};

const struct opt dump_opts[] = {
    {"time", 0, OPT_CALL, CONF(filter), .arg = "A..B", .parse = filter_parse_time,
     .help = "ops issued from A to before B after the first I/O"},
    {"op", 0, OPT_CALL, CONF(filter), .arg = "KIND,...", .parse = filter_parse_ops,
     .help = "these kinds of ops only"},
    {"stream", 0, OPT_LIST, CONF(filter.streams), .arg = "PID|PID/TID|COMM",
     .help = "these streams only; COMM is a glob; may be repeated"},
    {"file", 0, OPT_LIST, CONF(filter.files), .arg = "GLOB",
     .help = "files whose path fits the glob; may be repeated"},
    {"range", 0, OPT_CALL, CONF(filter), .arg = "A..B", .parse = filter_parse_range,
     .help = "ops that touch the bytes from A to before B"},
    {"sample", 0, OPT_DOUBLE, CONF(filter.sample_pct), .arg = "PCT", .max = 100,
     .help = "about PCT percent of the ops, chosen by hash"},
    {"head", 0, OPT_COUNT, CONF(filter.head), .arg = "N", .help = "the first N ops only"},
    VIEW_OPTS,
    {0},
};

int convert_conf_check(struct convert_conf *conf, struct diag *diag)
{
    if (!(conf->transform.speed > 0))
        return diag_set(diag, -EINVAL, "--speed: must be above 0");
    if (conf->transform.clamp_gap_ns > (uint64_t)INT64_MAX)
        return diag_set(diag, -EINVAL, "--clamp-gaps: too long");
    if (conf->transform.split && conf->output && !strcmp(conf->output, "-"))
        return diag_set(diag, -EINVAL, "--split writes several files: give a name to -o");
    if (conf->report_json && conf->output && !strcmp(conf->output, "-") &&
        !strcmp(conf->report_json, "-"))
        return diag_set(diag, -EINVAL, "--output and --report-json cannot both be -");
    return transform_conf_check(&conf->transform, diag);
}
