/* SPDX-License-Identifier: MIT */
#include "capture/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/filter.h"
#include "capture/sample.h"
#include "traces/units.h"

#define DEFAULT_TAPE "iotape.tape"

/* --rotate takes a size or a time: a time always has a unit that no size has. */
static int parse_rotate(const struct opt *opt, void *conf, const char *text, struct diag *diag)
{
    struct options *options = conf;

    if (units_parse_time(text, &options->rotate_ns) == 0 && options->rotate_ns > 0)
        return 0;
    options->rotate_ns = 0;
    if (units_parse_size(text, &options->rotate_bytes) == 0 && options->rotate_bytes > 0)
        return 0;
    return diag_set(diag, -EINVAL,
                    "option --%s: '%s': expected a size such as 1GiB or a time "
                    "such as 10min",
                    opt->name, text);
}

static const char *const overhead_actions[] = {
    [OVERHEAD_STOP] = "stop", [OVERHEAD_SAMPLE] = "sample", NULL};

#define AT(field) offsetof(struct options, field)

static const struct opt table[] = {
    {.type = OPT_HEADING, .help = "What to record (one of these, or -- CMD)"},
    {"pid", 'p', OPT_LIST, AT(pids), .arg = "N",
     .help = "a running process, its threads and children; may be repeated"},
    {"cgroup", 0, OPT_STRING, AT(cgroup), .arg = "DIR", .help = "every process of a cgroup v2"},
    {"system", 0, OPT_FLAG, AT(system), .help = "every process but this one"},
    {"comm", 0, OPT_STRING, AT(comm), .arg = "NAME",
     .help = "with --system: only processes of this name"},
    {"device", 0, OPT_LIST, AT(devices), .arg = "DEV",
     .help = "the requests of a block device; may be repeated"},
    {.type = OPT_HEADING, .help = "How"},
    {"recorder", 'r', OPT_STRING, AT(recorder), .arg = "NAME",
     .help = "which recorder; without it the first that can run: bpf, preload (block for "
             "--device)"},
    {"list", 0, OPT_FLAG, AT(list),
     .help = "the recorders, whether each can run here, and what each sees"},
    {"output", 'o', OPT_STRING, AT(tape), .arg = "T.tape", .def = DEFAULT_TAPE,
     .help = "the tape; - is standard output"},
    {"force", 'f', OPT_FLAG, AT(force), .help = "overwrite an existing tape"},
    {"all-fds", 0, OPT_FLAG, AT(all_fds),
     .help = "pipes, sockets and terminals too, not only files and block devices"},
    {"filter", 0, OPT_LIST, AT(filters), .arg = "COND",
     .help = "keep only ops with path=GLOB, path!=GLOB, op=NAME,..., op!=NAME,..., size>=N, "
             "size<N ...; given more than once, all must hold"},
    {"ring-size", 0, OPT_SIZE, AT(ring_bytes), .arg = "SIZE", .def = "4MiB", .min = 65536,
     .max = UINT64_C(1) << 30, .help = "event memory for each thread (preload) or CPU"},
    {"content", 0, OPT_FLAG, AT(content),
     .help = "sample how far written data compresses, so that replay can fill alike (preload)"},
    {"max-overhead", 0, OPT_DOUBLE, AT(max_overhead_pct), .arg = "PCT",
     .help = "stop recording (or sample) when it takes more than PCT percent of one CPU for a "
             "second: the recorder's own time and what it takes from the programs"},
    {"overhead-action", 0, OPT_ENUM, AT(overhead_action), .arg = "ACTION", .def = "stop",
     .values = overhead_actions,
     .help = "at --max-overhead: stop, or sample: go on with fewer threads, as --sample"},
    {"sample", 0, OPT_COUNT, AT(sample), .arg = "N", .def = "1", .min = 1, .max = SAMPLE_MOST,
     .help = "record one thread in N, whole, and count what the others do (bpf, preload)"},
    {"anonymise", 0, OPT_FLAG, AT(anonymise),
     .help = "replace the names in paths by keyed hashes while recording"},
    {.type = OPT_HEADING, .help = "How long"},
    {"duration", 'd', OPT_TIME, AT(duration_ns), .arg = "TIME",
     .help = "stop recording after this long; the command runs on"},
    {"max-size", 0, OPT_SIZE, AT(max_bytes), .arg = "SIZE",
     .help = "stop recording when the tape has reached this"},
    {"rotate", 0, OPT_CALL, 0, .arg = "SIZE|TIME", .parse = parse_rotate,
     .help = "begin another tape (T.1.tape ...) after this many bytes or this long"},
    {"ring", 0, OPT_TIME, AT(keep_ns), .arg = "TIME",
     .help = "keep only the last TIME in memory; written at SIGUSR1, a trigger and the end"},
    {"ring-memory", 0, OPT_SIZE, AT(keep_bytes), .arg = "SIZE", .def = "256MiB", .min = 1048576,
     .help = "with --ring: memory for it"},
    {"trigger", 0, OPT_STRING, AT(trigger), .arg = "CMD",
     .help = "with --ring: a shell command; whenever it exits with 0 the ring is written"},
    {.type = OPT_HEADING, .help = "Other"},
    {"quiet", 'q', OPT_FLAG, AT(quiet), .help = "no progress, notes or summary"},
    {"help", 'h', OPT_FLAG, AT(help), .help = "this text"},
    {"version", 'V', OPT_FLAG, AT(version), .help = "the version"},
    {0}};

const struct opt *options_table(void)
{
    return table;
}

void options_help(FILE *out)
{
    fputs("usage: iotape capture [options] [--] CMD [ARG ...]\n"
          "       iotape capture [options] --pid N | --cgroup DIR | --system | --device DEV\n\n"
          "Records the I/O of a command and of everything it starts, of running processes, or\n"
          "of block devices, as a tape.\n\n",
          out);
    opts_help(table, out);
    fputs(
        "\nThe exit status is the command's own (128 + N when signal N ended it), 1 when the\n"
        "capture failed, 2 for a usage error.\n",
        out);
}

static int check_scope(const struct options *options, char **command, struct diag *diag)
{
    int given = (command != NULL) + (options->pids.count > 0) + (options->cgroup != NULL) +
                options->system + (options->devices.count > 0);

    if (given == 0)
        return diag_set(diag, -EINVAL,
                        "nothing to record: give -- CMD, --pid, --cgroup, "
                        "--system or --device");
    if (given > 1)
        return diag_set(diag, -EINVAL,
                        "give one of -- CMD, --pid, --cgroup, --system and "
                        "--device");
    if (options->comm && !options->system)
        return diag_set(diag, -EINVAL, "--comm goes with --system");
    if (options->overhead_action == OVERHEAD_SAMPLE && options->max_overhead_pct <= 0)
        return diag_set(diag, -EINVAL, "--overhead-action sample goes with --max-overhead");
    if (options->trigger && !options->keep_ns)
        return diag_set(diag, -EINVAL, "--trigger goes with --ring");
    if (options->keep_ns && (options->rotate_ns || options->rotate_bytes || options->max_bytes))
        return diag_set(diag, -EINVAL, "--ring does not go with --rotate or --max-size");
    if (options->keep_ns && !strcmp(options->tape, "-"))
        return diag_set(diag, -EINVAL, "--ring writes several tapes: -o needs a file");
    if ((options->rotate_ns || options->rotate_bytes) && !strcmp(options->tape, "-"))
        return diag_set(diag, -EINVAL, "--rotate writes several tapes: -o needs a file");
    return 0;
}

static int check_filters(const struct options *options, struct diag *diag)
{
    struct filter *filter = NULL;
    int err = filter_new(&filter, options->filters.items, options->filters.count, diag);

    filter_free(filter);
    return err;
}

static int parse_pids(struct options *options, struct diag *diag)
{
    options->pid_numbers = calloc(options->pids.count + 1, sizeof(*options->pid_numbers));
    if (!options->pid_numbers)
        return diag_errno(diag, -ENOMEM, "--pid");
    for (size_t i = 0; i < options->pids.count; i++) {
        uint64_t pid;

        if (units_parse_count(options->pids.items[i], &pid) < 0 || pid < 1 || pid > 1u << 22)
            return diag_set(diag, -EINVAL, "option --pid: '%s': expected a process number",
                            options->pids.items[i]);
        options->pid_numbers[i] = (pid_t)pid;
    }
    return 0;
}

int options_parse(struct options *options, int argc, char **argv, struct diag *diag)
{
    struct session_conf *session = &options->session;
    char **command = NULL;
    int operands = 0, err;

    memset(options, 0, sizeof(*options));
    err = opts_defaults(table, options, diag);
    if (!err)
        err = opts_parse(table, options, argc, argv, true, NULL, &operands, diag);
    if (err || options->help || options->version || options->list)
        return err;
    if (operands > 0) {
        command = argv + 1;
        command[operands] = NULL;
    }
    err = check_scope(options, command, diag);
    if (!err)
        err = check_filters(options, diag);
    if (!err)
        err = parse_pids(options, diag);
    if (err)
        return err;
    *session = (struct session_conf){
        .tape = options->tape,
        .force = options->force,
        .filters = options->filters.items,
        .filter_count = options->filters.count,
        .max_bytes = options->max_bytes,
        .rotate_bytes = options->rotate_bytes,
        .rotate_ns = options->rotate_ns,
        .keep_ns = options->keep_ns,
        .keep_bytes = options->keep_bytes,
        .anonymise = options->anonymise,
        .scope = {.command = command,
                  .pids = options->pid_numbers,
                  .pid_count = options->pids.count,
                  .cgroup = options->cgroup,
                  .system = options->system,
                  .devices = options->devices.items,
                  .device_count = options->devices.count,
                  .comm = options->comm,
                  .all_fds = options->all_fds,
                  .ring_bytes = options->ring_bytes,
                  .content = options->content,
                  .sample = (unsigned int)options->sample,
                  .may_sample = options->overhead_action == OVERHEAD_SAMPLE},
    };
    return 0;
}

void options_release(struct options *options)
{
    opts_release(table, options);
    free(options->pid_numbers);
}
