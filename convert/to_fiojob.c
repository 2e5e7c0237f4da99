/* SPDX-License-Identifier: MIT */
/* A fio job file that imitates a tape statistically: a job a file, with its mix, sizes, range,
 * rate and depth. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "convert/exporter.h"

#define SIZES_MAX 24u
#define SPLIT_MAX 12u /* sizes of a bssplit */
#define DEPTH_MAX 65536u
#define NS_PER_S  1e9

enum direction {
    DIR_READ,
    DIR_WRITE,
    DIR_TRIM,
    DIR_COUNT
};

struct conf {
    uint64_t jobs;
    const char *engine;
};

struct sizes {
    uint64_t bytes[SIZES_MAX], count[SIZES_MAX];
    unsigned int used;
};

struct tally {
    bool used;
    uint64_t ops[DIR_COUNT], sequential[DIR_COUNT];
    uint64_t next_offset[DIR_COUNT];
    struct sizes sizes[DIR_COUNT];
    uint64_t syncs, data_syncs, direct;
    uint64_t least_offset, max_end;
    int64_t first_ns, last_ns;
    double gap_sum, gap_squares; /* between ops of this file */
    uint64_t *ends_ns;           /* heap of completions in flight */
    uint32_t in_flight, heap_size, depth;
    bool latencies;
};

struct state {
    const struct conf *conf;
    struct tally *tallies; /* by file */
    uint32_t count;
    uint64_t imitated;
};

static int begin(struct export *export, const void *conf, void **ret_state)
{
    struct state *state = calloc(1, sizeof(*state));

    (void)export;
    if (state == NULL)
        return -ENOMEM;
    state->conf = conf;
    *ret_state = state;
    return 0;
}

/* ---- counting ---- */

static int tally_of(struct state *state, uint32_t file, struct tally **ret_tally)
{
    if (file >= state->count) {
        uint32_t count = file + file / 2 + 16;
        struct tally *tallies = realloc(state->tallies, count * sizeof(*tallies));

        if (tallies == NULL)
            return -ENOMEM;
        memset(tallies + state->count, 0, (count - state->count) * sizeof(*tallies));
        state->tallies = tallies;
        state->count = count;
    }
    *ret_tally = &state->tallies[file];
    return 0;
}

static void add_size(struct sizes *sizes, uint64_t bytes)
{
    unsigned int nearest = 0;

    for (unsigned int i = 0; i < sizes->used; i++) {
        if (sizes->bytes[i] == bytes) {
            sizes->count[i]++;
            return;
        }
        if (llabs((long long)(sizes->bytes[i] - bytes)) <
            llabs((long long)(sizes->bytes[nearest] - bytes)))
            nearest = i;
    }
    if (sizes->used < SIZES_MAX) {
        sizes->bytes[sizes->used] = bytes;
        sizes->count[sizes->used++] = 1;
    } else {
        sizes->count[nearest]++;
    }
}

static void heap_drop(struct tally *tally)
{
    uint64_t last = tally->ends_ns[--tally->in_flight];
    uint32_t at = 0;

    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child >= tally->in_flight)
            break;
        if (child + 1 < tally->in_flight && tally->ends_ns[child + 1] < tally->ends_ns[child])
            child++;
        if (tally->ends_ns[child] >= last)
            break;
        tally->ends_ns[at] = tally->ends_ns[child];
        at = child;
    }
    tally->ends_ns[at] = last;
}

/* The most ops in flight at once. */
static int add_flight(struct tally *tally, const struct trace_op *op)
{
    uint64_t end_ns;
    uint32_t at;

    if (op->latency_ns == TRACE_UNKNOWN_U64 || op->issue_ns < 0 ||
        __builtin_add_overflow((uint64_t)op->issue_ns, op->latency_ns, &end_ns))
        return 0;
    tally->latencies = true;
    while (tally->in_flight > 0 && tally->ends_ns[0] <= (uint64_t)op->issue_ns)
        heap_drop(tally);
    if (tally->in_flight == DEPTH_MAX)
        return 0;
    if (tally->in_flight == tally->heap_size) {
        uint32_t size = tally->heap_size ? 2 * tally->heap_size : 16;
        uint64_t *heap = realloc(tally->ends_ns, size * sizeof(*heap));

        if (heap == NULL)
            return -ENOMEM;
        tally->ends_ns = heap;
        tally->heap_size = size;
    }
    at = tally->in_flight++;
    for (; at > 0 && tally->ends_ns[(at - 1) / 2] > end_ns; at = (at - 1) / 2)
        tally->ends_ns[at] = tally->ends_ns[(at - 1) / 2];
    tally->ends_ns[at] = end_ns;
    if (tally->in_flight > tally->depth)
        tally->depth = tally->in_flight;
    return 0;
}

static void add_range(struct tally *tally, enum direction direction, const struct trace_op *op)
{
    if (!tally->used) {
        tally->used = true;
        tally->least_offset = UINT64_MAX;
        tally->first_ns = tally->last_ns = op->issue_ns;
    }
    if (op->issue_ns > tally->first_ns) {
        double gap = (double)(op->issue_ns - tally->last_ns);

        tally->gap_sum += gap;
        tally->gap_squares += gap * gap;
    }
    tally->last_ns = op->issue_ns;
    if (tally->ops[direction] > 0 && op->offset == tally->next_offset[direction])
        tally->sequential[direction]++;
    tally->next_offset[direction] = op->offset + op->length;
    tally->ops[direction]++;
    add_size(&tally->sizes[direction], op->length);
    if (op->offset < tally->least_offset)
        tally->least_offset = op->offset;
    if (op->offset + op->length > tally->max_end)
        tally->max_end = op->offset + op->length;
    tally->direct += (op->flags & TRACE_F_DIRECT) != 0 || op->api == TRACE_API_BLOCK;
}

static int add_op(struct state *state, struct export *export, const struct trace_op *op)
{
    enum direction direction = op->kind == TRACE_READ    ? DIR_READ
                               : op->kind == TRACE_WRITE ? DIR_WRITE
                                                         : DIR_TRIM;
    bool sync =
        op->kind == TRACE_FSYNC || op->kind == TRACE_FDATASYNC || op->kind == TRACE_FLUSH;
    bool range = op->kind == TRACE_READ || op->kind == TRACE_WRITE || op->kind == TRACE_DISCARD;
    struct tally *tally;
    int err;

    if ((!sync && !range) || op->file == TRACE_NONE_U32) {
        export_skip(export, trace_op_name(op->kind), 1);
        return 0;
    }
    if (range && (op->length == 0 || op->offset == TRACE_UNKNOWN_U64)) {
        export_skip(export, "op without an offset or length", 1);
        return 0;
    }
    err = tally_of(state, op->file, &tally);
    if (err < 0)
        return err;
    state->imitated++;
    if (sync) {
        tally->syncs++;
        tally->data_syncs += op->kind == TRACE_FDATASYNC;
        return 0;
    }
    add_range(tally, direction, op);
    return add_flight(tally, op);
}

static int ops(void *state, struct export *export, const struct trace_op *list, size_t count)
{
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++)
        err = add_op(state, export, &list[i]);
    return err;
}

/* ---- writing ---- */

/* "4096/60:8192/40": the commonest sizes, whole percents that add up to 100. */
static int write_split(struct export *export, const struct sizes *all)
{
    struct sizes sizes = *all;
    unsigned int percents[SPLIT_MAX], left = 100, used;
    uint64_t total = 0;
    int err = 0;

    for (unsigned int i = 0; i < sizes.used; i++) /* few: the simplest sort does */
        for (unsigned int j = i + 1; j < sizes.used; j++)
            if (sizes.count[j] > sizes.count[i]) {
                uint64_t count = sizes.count[i], bytes = sizes.bytes[i];

                sizes.count[i] = sizes.count[j];
                sizes.bytes[i] = sizes.bytes[j];
                sizes.count[j] = count;
                sizes.bytes[j] = bytes;
            }
    used = sizes.used < SPLIT_MAX ? sizes.used : SPLIT_MAX;
    for (unsigned int i = 0; i < used; i++)
        total += sizes.count[i];
    for (unsigned int i = used; i-- > 0;) {
        percents[i] =
            i == 0 ? left : (unsigned int)((double)sizes.count[i] * 100 / (double)total + 0.5);
        if (percents[i] > left)
            percents[i] = left;
        left -= percents[i];
    }
    for (unsigned int i = 0, shown = 0; i < used && err == 0; i++) {
        if (percents[i] == 0)
            continue;
        err = export_printf(export, "%s%llu/%u", shown++ ? ":" : "",
                            (unsigned long long)sizes.bytes[i], percents[i]);
    }
    return err;
}

static int write_sizes(struct export *export, const struct tally *tally, bool trims)
{
    static const struct sizes any = {.bytes = {4096}, .count = {1}, .used = 1};
    int err = export_printf(export, "bssplit=");

    for (int direction = DIR_READ; direction < DIR_COUNT && err == 0; direction++) {
        const struct sizes *sizes = &tally->sizes[trims ? DIR_TRIM : direction];

        if (direction == DIR_TRIM && !trims)
            break;
        err = write_split(export, sizes->used ? sizes
                                  : tally->sizes[!direction].used && !trims
                                      ? &tally->sizes[!direction]
                                      : &any);
        if (err == 0 && direction < (trims ? DIR_TRIM : DIR_WRITE))
            err = export_printf(export, ",");
    }
    return err < 0 ? err : export_printf(export, "\n");
}

/* How far the ops of a direction are random, in percent. */
static unsigned int random_pct(const struct tally *tally, enum direction direction)
{
    if (tally->ops[direction] < 2)
        return 100;
    return 100 -
           (unsigned int)(tally->sequential[direction] * 100 / (tally->ops[direction] - 1));
}

static int write_pattern(struct export *export, const struct tally *tally, bool trims)
{
    uint64_t reads = tally->ops[DIR_READ], writes = tally->ops[DIR_WRITE];
    unsigned int pct[2] = {random_pct(tally, trims ? DIR_TRIM : DIR_READ),
                           random_pct(tally, DIR_WRITE)};
    unsigned int most = trims || writes == 0 ? pct[0]
                        : reads == 0         ? pct[1]
                        : pct[0] > pct[1]    ? pct[0]
                                             : pct[1];
    const char *kind = trims ? "trim" : reads && writes ? "rw" : reads ? "read" : "write";
    int err = export_printf(export, "rw=%s%s\n", most > 5 ? "rand" : "", kind);

    if (err == 0 && reads && writes && !trims)
        err =
            export_printf(export, "rwmixread=%u\n",
                          (unsigned int)((double)reads * 100 / (double)(reads + writes) + 0.5));
    if (err == 0 && most > 5 && most < 95) {
        if (trims || !(reads && writes))
            err = export_printf(export, "percentage_random=%u\n", most);
        else
            err = export_printf(export, "percentage_random=%u,%u\n", pct[0], pct[1]);
    }
    return err;
}

static int write_rate(struct export *export, const struct tally *tally, bool trims)
{
    double seconds = (double)(tally->last_ns - tally->first_ns) / NS_PER_S;
    uint64_t ops_all = tally->ops[DIR_READ] + tally->ops[DIR_WRITE] + tally->ops[DIR_TRIM];
    double mean = ops_all > 1 ? tally->gap_sum / (double)(ops_all - 1) : 0;
    double variance =
        ops_all > 1 ? tally->gap_squares / (double)(ops_all - 1) - mean * mean : 0;
    double rates[DIR_COUNT];
    int err;

    if (seconds < 1e-3 || ops_all < 2)
        return 0;
    for (int direction = 0; direction < DIR_COUNT; direction++) {
        rates[direction] = (double)tally->ops[direction] / seconds;
        if (rates[direction] > 0 && rates[direction] < 1)
            rates[direction] = 1; /* fio takes whole numbers */
    }
    if (trims)
        err = export_printf(export, "rate_iops=,,%.0f\n", rates[DIR_TRIM]);
    else if (tally->ops[DIR_READ] && tally->ops[DIR_WRITE])
        err = export_printf(export, "rate_iops=%.0f,%.0f\n", rates[DIR_READ], rates[DIR_WRITE]);
    else if (tally->ops[DIR_READ])
        err = export_printf(export, "rate_iops=%.0f\n", rates[DIR_READ]);
    else
        err = export_printf(export, "rate_iops=,%.0f\n", rates[DIR_WRITE]);
    /* Gaps that vary much are imitated by Poisson arrivals, even ones by a steady rate. */
    if (err == 0 && mean > 0 && sqrt(variance > 0 ? variance : 0) > 0.3 * mean)
        err = export_printf(export, "rate_process=poisson\n");
    return err;
}

/* A colon separates names in fio. */
static int write_name(struct export *export, const char *path)
{
    int err = export_printf(export, "filename=");

    for (const char *at = path; *at && err == 0; at++) {
        if (*at == ':')
            err = export_write(export, "\\", 1);
        if (err == 0)
            err = export_write(export, *at == '\n' ? "?" : at, 1);
    }
    return err < 0 ? err : export_write(export, "\n", 1);
}

static int write_job(struct export *export, uint32_t file, const struct tally *tally,
                     bool trims)
{
    uint64_t data = tally->ops[DIR_READ] + tally->ops[DIR_WRITE],
             all = data + tally->ops[DIR_TRIM];
    uint64_t writes = tally->ops[DIR_WRITE];
    int err = export_printf(export, "\n[file%u%s]\n", file, trims ? "-trim" : "");

    if (err == 0)
        err = write_name(export, export_file(export, file)->path);
    if (err == 0)
        err = write_pattern(export, tally, trims);
    if (err == 0)
        err = write_sizes(export, tally, trims);
    if (err == 0)
        err = export_printf(export,
                            "offset=%llu\nsize=%llu\nnumber_ios=%llu\niodepth=%u\ndirect=%d\n",
                            (unsigned long long)tally->least_offset,
                            (unsigned long long)(tally->max_end - tally->least_offset),
                            (unsigned long long)(trims ? tally->ops[DIR_TRIM] : data),
                            tally->depth ? tally->depth : 32, tally->direct * 2 > all);
    if (err == 0 && !trims && tally->syncs && writes)
        err = export_printf(
            export, "%s=%llu\n", tally->data_syncs * 2 > tally->syncs ? "fdatasync" : "fsync",
            (unsigned long long)(writes / tally->syncs ? writes / tally->syncs : 1));
    return err < 0 ? err : write_rate(export, tally, trims);
}

static uint64_t ops_of(const struct tally *tally)
{
    return tally->ops[DIR_READ] + tally->ops[DIR_WRITE] + tally->ops[DIR_TRIM];
}

/* The count that a file needs to be among the busiest `most`. */
static uint64_t least_ops(const struct state *state, uint64_t most)
{
    uint64_t least = 1;

    for (;;) {
        uint64_t files = 0, next = UINT64_MAX;

        for (uint32_t i = 0; i < state->count; i++) {
            if (ops_of(&state->tallies[i]) < least)
                continue;
            files++;
            if (ops_of(&state->tallies[i]) > least && ops_of(&state->tallies[i]) < next)
                next = ops_of(&state->tallies[i]);
        }
        if (files <= most || next == UINT64_MAX)
            return least;
        least = next;
    }
}

static int end(void *context, struct export *export)
{
    struct state *state = context;
    uint64_t least = least_ops(state, state->conf->jobs), jobs = 0;
    int err = export_printf(
        export,
        "; A statistical imitation of %llu operations: mix, sizes, ranges, rates and\n"
        "; depths are alike, the order and the exact offsets are not.\n"
        "[global]\nioengine=%s\nnorandommap\nthread\n",
        (unsigned long long)state->imitated, state->conf->engine);

    for (uint32_t file = 0; file < state->count && err == 0; file++) {
        const struct tally *tally = &state->tallies[file];

        if (!tally->used)
            continue;
        if (ops_of(tally) < least || jobs >= state->conf->jobs) {
            export_skip(export, "op of one of the less busy files (jobs=N)", ops_of(tally));
            continue;
        }
        jobs++;
        if (tally->ops[DIR_READ] + tally->ops[DIR_WRITE] > 0)
            err = write_job(export, file, tally, false);
        if (err == 0 && tally->ops[DIR_TRIM] > 0)
            err = write_job(export, file, tally, true);
        if (!tally->latencies)
            export_note(export, "no latencies in the source: iodepth=32 for file%u is a guess",
                        file);
    }
    export_lost_field(export, "exact time and offset", state->imitated);
    return err;
}

static void release(void *context)
{
    struct state *state = context;

    if (state == NULL)
        return;
    for (uint32_t i = 0; i < state->count; i++)
        free(state->tallies[i].ends_ns);
    free(state->tallies);
    free(state);
}

static const struct opt options_table[] = {
    {"jobs", 0, OPT_COUNT, offsetof(struct conf, jobs), .def = "16", .min = 1, .max = 1024,
     .arg = "N", .help = "most files that get a job, the busiest first"},
    {"engine", 0, OPT_STRING, offsetof(struct conf, engine), .def = "libaio", .arg = "NAME",
     .help = "fio's ioengine"},
    {0},
};

const struct exporter exporter_fiojob = {
    .name = "fiojob",
    .summary = "a fio job file that imitates the tape statistically",
    .help = "A job a file: the mix of reads and writes, block sizes by frequency, how far they "
            "are random, the range "
            "touched, mean rates with Poisson or steady arrivals, the most ops in flight as "
            "iodepth, syncs by writes. "
            "Discards get a job of their own. Not kept: order, exact times and offsets, "
            "streams, results.",
    .suffixes = ".fio",
    .begin = begin,
    .ops = ops,
    .end = end,
    .release = release,
    .opts = options_table,
    .conf_size = sizeof(struct conf),
};
