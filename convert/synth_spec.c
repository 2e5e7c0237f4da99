/* SPDX-License-Identifier: MIT */
#include "convert/synth_state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "traces/units.h"

#define SPEC(member) offsetof(struct synth_spec, member)

/* In the order of enum synth_rw. */
static const char *const rws[SYNTH_RW_COUNT + 1] = {
    "read",     "write",   "randread", "randwrite", "rw",       "randrw",     "trim",
    "randtrim", "rewrite", "reread",   "backread",  "rerecord", "strideread", "trimwrite",
    "randtrimwrite"};
static const char *const file_orders[] = {"turn", "random", "one-by-one", NULL};
static const char *const arrivals[] = {"constant", "poisson", "burst", NULL};
static const char *const syncs[] = {"fsync", "fdatasync", NULL};
/* In the order of enum trace_api. */
static const char *const apis[] = {"unknown", "sync", "vectored", "libaio", "io_uring",
                                   "posix_aio", "mmap", "block", "stdio", NULL};

const struct opt synth_opts[] = {
    {.help = "What"},
    {"rw", 0, OPT_ENUM, SPEC(rw), .arg = "KIND", .def = "read", .values = rws,
     .help = "read, write, randread, randwrite, rw (sequential, mixed), randrw, trim, randtrim, "
             "trimwrite, randtrimwrite"},
    {"stages", 0, OPT_STRING, SPEC(stages), .arg = "A:B",
     .help = "several kinds one after the other, each over the whole of every file unless ops "
             "says less: write:rewrite:read:reread:randread:randwrite:backread:rerecord:"
             "strideread"},
    {"rwmix", 0, OPT_COUNT, SPEC(rwmix), .arg = "PCT", .def = "50", .max = 100,
     .help = "percent of reads in rw and randrw"},
    {"bs", 0, OPT_STRING, SPEC(bs), .arg = "SIZE|A-B", .def = "4k",
     .help = "bytes an op (aio-stress, iozone: record size), or any multiple of A up to B"},
    {"bssplit", 0, OPT_STRING, SPEC(bssplit), .arg = "SIZE/PCT:...",
     .help = "sizes and how often, 4k/60:64k/40"},
    {"bs_write", 0, OPT_STRING, SPEC(bs_write), .arg = "SIZE|A-B",
     .help = "of writes and discards, where they differ from bs"},
    {"bssplit_write", 0, OPT_STRING, SPEC(bssplit_write), .arg = "SIZE/PCT:...",
     .help = "of writes and discards, where they differ from bssplit"},
    {"size", 0, OPT_SIZE, SPEC(size_bytes), .arg = "SIZE", .def = "1g", .min = 1,
     .max = 1ull << 62, .help = "bytes of each file"},
    {"offset", 0, OPT_SIZE, SPEC(offset_bytes), .arg = "SIZE", .max = 1ull << 62,
     .help = "where in each file the ops begin"},
    {"align", 0, OPT_SIZE, SPEC(align_bytes), .arg = "SIZE",
     .help = "random offsets are multiples of it; bs when not given"},
    {"stride", 0, OPT_SIZE, SPEC(stride_bytes), .arg = "SIZE", .def = "1m", .min = 1,
     .help = "strideread: from one op's start to the next"},
    {"random", 0, OPT_STRING, SPEC(random), .arg = "HOW", .def = "uniform",
     .help = "random offsets: uniform, once (each block once), zipf:THETA, or "
             "zoned:OPS/PLACES:... in percent"},
    {"follow", 0, OPT_COUNT, SPEC(follow_pct), .arg = "PCT", .max = 100,
     .help = "percent of random ops that follow the one before in place"},
    {"run", 0, OPT_COUNT, SPEC(run_ops), .arg = "N",
     .help = "random offsets only for every Nth op, the others follow in place"},
    {"run_identical", 0, OPT_FLAG, SPEC(run_identical),
     .help = "the others of a run go to the same place"},
    {"hole", 0, OPT_SIZE, SPEC(hole_bytes), .arg = "SIZE", .max = 1ull << 62,
     .help = "sequential: left out between one op and the next"},
    {"back", 0, OPT_SIZE, SPEC(back_bytes), .arg = "SIZE",
     .help = "sequential ops go back by it from the end of the one before; from the start to "
             "the end of the file"},
    {"own_places", 0, OPT_FLAG, SPEC(own_places),
     .help = "rw: reads and writes each go through the file by themselves"},

    {.help = "Where"},
    {"path", 0, OPT_STRING, SPEC(path), .arg = "PATH", .def = "/synth",
     .help = "name of the file; several get .0, .1 ..."},
    {"files", 0, OPT_COUNT, SPEC(files), .arg = "N", .def = "1", .min = 1, .max = 1u << 24,
     .help = "files, of every stream when private"},
    {"contexts", 0, OPT_COUNT, SPEC(contexts), .arg = "N", .def = "1", .min = 1, .max = 1024,
     .help = "sequential cursors in each file (aio-stress -c)"},
    {"context_offset", 0, OPT_SIZE, SPEC(context_offset_bytes), .arg = "SIZE", .def = "2m",
     .help = "from one cursor's start to the next (aio-stress -C)"},
    {"switch", 0, OPT_COUNT, SPEC(switch_ops), .arg = "N", .def = "1", .min = 1,
     .help = "ops to one file before the next file (aio-stress -i)"},
    {"file_order", 0, OPT_ENUM, SPEC(file_order), .arg = "HOW", .def = "turn",
     .values = file_orders, .help = "the next file: turn, random, one-by-one (each to its end)"},
    {"streams", 0, OPT_COUNT, SPEC(streams), .arg = "N", .def = "1", .min = 1, .max = 1u << 20,
     .help = "threads that issue"},
    {"processes", 0, OPT_FLAG, SPEC(processes), .help = "streams are processes"},
    {"private", 0, OPT_FLAG, SPEC(private_files), .help = "each stream has files of its own"},
    {"device", 0, OPT_FLAG, SPEC(device), .help = "path is a block device"},
    {"opens", 0, OPT_FLAG, SPEC(opens), .help = "open and close the files around each stage"},

    {.help = "How much"},
    {"ops", 0, OPT_COUNT, SPEC(ops), .arg = "N",
     .help = "ops of a stage, over all streams; when not given each file is gone through once"},
    {"runtime", 0, OPT_TIME, SPEC(runtime_ns), .arg = "T",
     .help = "with rate or think: as many ops as fit"},

    {.help = "When"},
    {"rate", 0, OPT_DOUBLE, SPEC(rate), .arg = "IOPS", .help = "ops a second, over all streams"},
    {"arrival", 0, OPT_ENUM, SPEC(arrival), .arg = "HOW", .def = "constant", .values = arrivals,
     .help = "how ops arrive at that rate: constant, poisson, burst"},
    {"burst", 0, OPT_COUNT, SPEC(burst), .arg = "N", .def = "64", .min = 1, .max = 1u << 20,
     .help = "ops that arrive at once"},
    {"think", 0, OPT_TIME, SPEC(think_ns), .arg = "T", .max = 1ull << 60,
     .help = "from one batch of a stream to its next"},
    {"depth", 0, OPT_COUNT, SPEC(depth), .arg = "N", .def = "1", .min = 1,
     .help = "ops in flight it is meant for: kept in the tape's metadata, said in the report"},
    {"batch", 0, OPT_COUNT, SPEC(batch), .arg = "N", .def = "1", .min = 1, .max = 1u << 20,
     .help = "ops of one submission call"},

    {.help = "How"},
    {"fsync", 0, OPT_COUNT, SPEC(fsync_every), .arg = "N",
     .help = "sync a file after every N writes of a stream to it"},
    {"fsync_end", 0, OPT_FLAG, SPEC(fsync_end), .help = "sync written files after each stage"},
    {"sync", 0, OPT_ENUM, SPEC(sync), .arg = "HOW", .def = "fsync", .values = syncs,
     .help = "the call for these: fsync, fdatasync"},
    {"direct", 0, OPT_FLAG, SPEC(direct), .help = "O_DIRECT"},
    {"osync", 0, OPT_FLAG, SPEC(osync), .help = "O_SYNC"},
    {"dsync", 0, OPT_FLAG, SPEC(dsync), .help = "O_DSYNC"},
    {"nowait", 0, OPT_FLAG, SPEC(nowait), .help = "RWF_NOWAIT"},
    {"append", 0, OPT_FLAG, SPEC(append), .help = "writes append"},
    {"api", 0, OPT_ENUM, SPEC(api), .arg = "API", .def = "sync", .values = apis,
     .help = "call they are said to be made through: sync, vectored, libaio, io_uring, posix_aio"},
    {"seed", 0, OPT_COUNT, SPEC(seed), .arg = "N", .def = "1", .help = "another N, other numbers"},
    {0},
};

int synth_wrong(const struct synth *synth, const char *what)
{
    return diag_set(import_diag(synth->import), -EBADMSG, "synth: %s", what);
}

static int parse_split(const struct synth *synth, const char *text, struct sizes *sizes)
{
    double total = 0;

    sizes->least = UINT64_MAX;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ":"), size = strcspn(at, "/:");
        char word[32], *end;
        uint64_t *bytes = &sizes->sizes[sizes->count];
        double share;

        if (sizes->count == SYNTH_SIZES_MAX || size >= sizeof(word) || size == length)
            return synth_wrong(synth, "bssplit is not SIZE/PCT:SIZE/PCT ...");
        memcpy(word, at, size);
        word[size] = '\0';
        if (units_parse_size(word, bytes) < 0 || !*bytes)
            return synth_wrong(synth, "bssplit has a size that is none");
        share = strtod(at + size + 1, &end);
        if (end != at + length || !(share >= 0))
            return synth_wrong(synth, "bssplit has a percentage that is none");
        total += share;
        sizes->shares[sizes->count++] = total / 100;
        sizes->mean += (double)*bytes * share / 100;
        if (*bytes < sizes->least)
            sizes->least = *bytes;
        if (*bytes > sizes->most)
            sizes->most = *bytes;
        at += length + (at[length] == ':');
    }
    if (!sizes->count || fabs(total - 100) > 0.01)
        return synth_wrong(synth, "the percentages of bssplit do not add up to 100");
    return 0;
}

static int parse_range(const struct synth *synth, const char *text, struct sizes *sizes)
{
    const char *dash = strchr(text, '-');
    char least[32];

    if (dash && (size_t)(dash - text) < sizeof(least)) {
        memcpy(least, text, (size_t)(dash - text));
        least[dash - text] = '\0';
        if (units_parse_size(least, &sizes->least) < 0 ||
            units_parse_size(dash + 1, &sizes->most) < 0)
            return synth_wrong(synth, "bs is not SIZE or A-B");
    } else if (units_parse_size(text, &sizes->least) < 0) {
        return synth_wrong(synth, "bs is not SIZE or A-B");
    } else {
        sizes->most = sizes->least;
    }
    if (!sizes->least || sizes->most < sizes->least)
        return synth_wrong(synth, "bs is 0, or upside down");
    sizes->most -= sizes->most % sizes->least;
    sizes->mean = ((double)sizes->least + (double)sizes->most) / 2;
    return 0;
}

static int parse_sizes(struct synth *synth)
{
    const struct synth_spec *spec = synth->spec;
    int err = 0;

    synth->least = UINT64_MAX;
    for (unsigned int way = 0; way < WAYS && err == 0; way++) {
        struct sizes *sizes = &synth->sizes[way];
        const char *bs = way && spec->bs_write ? spec->bs_write : spec->bs;
        const char *split = way && spec->bssplit_write            ? spec->bssplit_write
                            : way && spec->bs_write != NULL ? NULL
                                                            : spec->bssplit;

        err = split ? parse_split(synth, split, sizes) : parse_range(synth, bs, sizes);
        if (sizes->least < synth->least)
            synth->least = sizes->least;
        if (sizes->most > synth->most)
            synth->most = sizes->most;
    }
    return err;
}

double synth_stage_mean(const struct synth *synth, int rw)
{
    double mix = (double)synth->spec->rwmix / 100;

    if (rw == SYNTH_RW || rw == SYNTH_RANDRW)
        return mix * synth->sizes[WAY_READ].mean + (1 - mix) * synth->sizes[WAY_WRITE].mean;
    return synth->sizes[synth_rw_writes(rw) ? WAY_WRITE : WAY_READ].mean;
}

double synth_mean_bytes(const struct synth_spec *spec, struct import *import)
{
    struct synth synth = {.spec = spec, .import = import};

    return parse_sizes(&synth) < 0 ? 0 : synth_stage_mean(&synth, spec->rw);
}

static int parse_stages(struct synth *synth)
{
    if (!synth->spec->stages) {
        synth->stages[synth->stage_count++] = synth->spec->rw;
        return 0;
    }
    for (const char *at = synth->spec->stages; *at;) {
        size_t length = strcspn(at, ":");
        int rw = 0;

        while (rw < SYNTH_RW_COUNT &&
               (strlen(rws[rw]) != length || strncmp(rws[rw], at, length)))
            rw++;
        if (rw == SYNTH_RW_COUNT || synth->stage_count == SYNTH_STAGES_MAX)
            return diag_set(import_diag(synth->import), -EBADMSG,
                            "synth: stage '%.*s' is not one, or too many", (int)length, at);
        synth->stages[synth->stage_count++] = rw;
        at += length + (at[length] == ':');
    }
    return synth->stage_count ? 0 : synth_wrong(synth, "stages names none");
}

/* "50/5:30/15:20/80": half of the ops in the first twentieth of the places, and so on. */
static int parse_zones(struct synth *synth, const char *text)
{
    struct zone sum = {0};
    char *at = (char *)text;

    synth->pick = PICK_ZONED;
    do {
        struct zone *zone = &synth->zones[synth->zone_count];
        double ops = strtod(at, &at), places;

        if (*at != '/' || synth->zone_count == SYNTH_ZONES_MAX)
            return synth_wrong(synth, "random=zoned is not OPS/PLACES:OPS/PLACES...");
        places = strtod(at + 1, &at);
        if (!(ops >= 0) || !(places > 0) || (*at != ':' && *at != '\0'))
            return synth_wrong(synth, "random=zoned is not OPS/PLACES:OPS/PLACES...");
        sum.ops += ops / 100;
        sum.places += places / 100;
        *zone = sum;
        synth->zone_count++;
    } while (*at++ == ':');
    if (fabs(sum.ops - 1) > 0.001 || fabs(sum.places - 1) > 0.001)
        return synth_wrong(synth, "the parts of random=zoned do not add up to 100 percent");
    return 0;
}

static int parse_random(struct synth *synth)
{
    const char *text = synth->spec->random;
    uint64_t units = (synth->span - synth->least) / synth->align + 1;
    char *end;
    double theta;

    if (!strcmp(text, "uniform"))
        return 0;
    if (!strncmp(text, "zoned:", 6))
        return parse_zones(synth, text + 6);
    synth_shuffle_init(&synth->shuffle, units, synth->spec->seed);
    if (!strcmp(text, "once")) {
        synth->pick = PICK_ONCE;
        return synth->least == synth->most ? 0 : synth_wrong(synth, "random=once needs one bs");
    }
    theta = strncmp(text, "zipf:", 5) ? 0 : strtod(text + 5, &end);
    if (!(theta > 0) || *end || theta > 10)
        return synth_wrong(synth, "random is not uniform, once, zoned:OPS/PLACES:... or "
                                  "zipf:THETA (THETA above 0)");
    synth->pick = PICK_ZIPF;
    synth_zipf_init(&synth->zipf, units, theta);
    return 0;
}

int synth_check(struct synth *synth)
{
    const struct synth_spec *spec = synth->spec;
    int err = parse_sizes(synth);

    if (err == 0)
        err = parse_stages(synth);
    if (err < 0)
        return err;
    if (spec->offset_bytes >= spec->size_bytes ||
        spec->size_bytes - spec->offset_bytes < synth->most)
        return synth_wrong(synth, "size holds not one op after offset");
    if (spec->back_bytes > spec->size_bytes - spec->offset_bytes)
        return synth_wrong(synth, "back is more than the whole file");
    if (spec->contexts > 1 && spec->own_places)
        return synth_wrong(synth, "contexts and own_places exclude each other");
    if (spec->runtime_ns && !(spec->rate > 0) && !spec->think_ns)
        return synth_wrong(synth, "runtime needs rate or think: without them every op is due at 0");
    if (spec->rate > 0 && spec->think_ns)
        return synth_wrong(synth, "rate and think exclude each other");
    if (spec->rate < 0 || spec->rate > 1e9)
        return synth_wrong(synth, "rate is not between 0 and 1e9");
    synth->file_count = spec->private_files ? spec->files * spec->streams : spec->files;
    if (spec->files * spec->streams * spec->contexts > SYNTH_CURSORS_MAX)
        return synth_wrong(synth, "streams x files x contexts is above 16 m");
    synth->span = spec->size_bytes - spec->offset_bytes;
    synth->align = spec->align_bytes ? spec->align_bytes : synth->least;
    return parse_random(synth);
}
