/* SPDX-License-Identifier: MIT */
/* One section of a fio job file as workloads of synth. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/fiojob.h"
#include "convert/synth.h"
#include "traces/opts.h"

#define NAMES_MAX    (1u << 20)
#define BATCHES_EACH (1ull << 40)
/* From the last due time of jobs without times to the first of those that wait for them. */
#define STONEWALL_NS 1000000
#define TIME_MAX_NS  (INT64_MAX / 4)

/* ---- one section as workloads ---- */

static int refuse(struct fiojob *job, const char *what, const char *value)
{
    return diag_set(import_diag(job->import), -EBADMSG,
                    "%s: job '%s': %s '%s' is not understood", input_name(job->input),
                    job->section.name, what, value);
}

static bool is_mixed(const struct synth_spec *spec)
{
    return spec->rw == SYNTH_RW || spec->rw == SYNTH_RANDRW;
}

static bool is_random(const struct synth_spec *spec)
{
    return spec->rw == SYNTH_RANDREAD || spec->rw == SYNTH_RANDWRITE ||
           spec->rw == SYNTH_RANDRW || spec->rw == SYNTH_RANDTRIM ||
           spec->rw == SYNTH_RANDTRIMWRITE;
}

/* rw=randread:8, a new place every 8 ops; rw=write:4k, 4k left out behind each; rw=read:-8k, each
 * 8k before the end of the last. */
static int set_sequence(struct fiojob *job, struct synth_spec *spec, const char *text)
{
    bool back = text[0] == '-' && !is_random(spec);
    uint64_t number;

    text += back;
    if (fiojob_size(&job->section, text, strlen(text), &number) < 0)
        return refuse(job, "rw", job->section.rw);
    if (back) {
        spec->back_bytes = number;
        return 0;
    }
    if (!is_random(spec)) {
        spec->hole_bytes = number;
        return 0;
    }
    spec->run_ops = number;
    if (strcmp(job->section.sequencer, "identical") == 0)
        spec->run_identical = true;
    else if (strcmp(job->section.sequencer, "sequential") != 0)
        return refuse(job, "rw_sequencer", job->section.sequencer);
    return 0;
}

static int set_kind(struct fiojob *job, struct synth_spec *spec)
{
    static const struct {
        const char *word;
        int rw;
    } kinds[] = {{"read", SYNTH_READ},
                 {"write", SYNTH_WRITE},
                 {"randread", SYNTH_RANDREAD},
                 {"randwrite", SYNTH_RANDWRITE},
                 {"rw", SYNTH_RW},
                 {"readwrite", SYNTH_RW},
                 {"randrw", SYNTH_RANDRW},
                 {"trim", SYNTH_TRIM},
                 {"randtrim", SYNTH_RANDTRIM},
                 {"trimwrite", SYNTH_TRIMWRITE},
                 {"randtrimwrite", SYNTH_RANDTRIMWRITE}};
    const char *text = job->section.rw, *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strlen(kinds[i].word) == length && memcmp(text, kinds[i].word, length) == 0) {
            spec->rw = kinds[i].rw;
            job->writes |= spec->rw != SYNTH_READ && spec->rw != SYNTH_RANDREAD;
            return colon ? set_sequence(job, spec, colon + 1) : 0;
        }
    }
    return refuse(job, "rw", job->section.rw);
}

enum {
    READS,
    WRITES,
    TRIMS,
    WAYS
};

/* The part of "READS,WRITES,TRIMS" that is of `way`; a part that is not there is the last that
 * is. *ret_length is 0 where it is left empty. */
static const char *part_of(const char *text, unsigned int way, size_t *ret_length)
{
    for (; way > 0 && strchr(text, ',') != NULL && strchr(text, ',')[1] != '\0'; way--)
        text = strchr(text, ',') + 1;
    *ret_length = strcspn(text, ",");
    return text;
}

/* fio's "4k" or "1k-4k" of one way as synth takes it. */
static int set_block(struct fiojob *job, unsigned int way, const char **ret_bs)
{
    const struct fiojob_conf *conf = &job->section;
    const char *whole = conf->bsrange ? conf->bsrange : conf->bs, *dash;
    size_t length, first;
    const char *text = part_of(whole, way, &length);
    uint64_t least, most;
    char made[64];

    if (length == 0) {
        text = "4k";
        length = 2;
    }
    dash = memchr(text, '-', length);
    if (dash == NULL && conf->bsrange)
        dash = memchr(text, ':', length);
    first = dash ? (size_t)(dash - text) : length;
    if (fiojob_size(&job->section, text, first, &least) < 0 || least == 0)
        return refuse(job, "block size", whole);
    most = least;
    if (dash != NULL &&
        (fiojob_size(&job->section, dash + 1, length - first - 1, &most) < 0 || most < least))
        return refuse(job, "bsrange", whole);
    /* Sizes of the range are multiples of its least; others are told apart nowhere. */
    if (most != least && conf->unaligned_sizes)
        return refuse(job, "bs_unaligned with a range of sizes", whole);
    snprintf(made, sizeof(made), most != least ? "%llu-%llu" : "%llu",
             (unsigned long long)least, (unsigned long long)most);
    *ret_bs = fiojob_keep(job, made, strlen(made));
    return *ret_bs ? 0 : -ENOMEM;
}

/* fio's "4k/50:8k/" of one way with its sizes and missing percentages, as synth takes it. */
static int set_split(struct fiojob *job, unsigned int way, const char **ret_split)
{
    size_t whole;
    const char *text = part_of(job->section.bssplit, way, &whole), *part = text;
    uint64_t sizes[SYNTH_SIZES_MAX], missing = 0;
    double shares[SYNTH_SIZES_MAX], given = 0;
    char made[SYNTH_SIZES_MAX * 48], *end;
    size_t count = 0, at = 0;

    for (; part < text + whole; count++) {
        size_t length = strcspn(part, ":,"), size = strcspn(part, "/:,");

        if (count == SYNTH_SIZES_MAX ||
            fiojob_size(&job->section, part, size, &sizes[count]) < 0)
            return refuse(job, "bssplit", job->section.bssplit);
        shares[count] = -1;
        if (size + 1 < length) {
            shares[count] = strtod(part + size + 1, &end);
            if (end != part + length)
                return refuse(job, "bssplit", job->section.bssplit);
            given += shares[count];
        } else {
            missing++;
        }
        part += length + (part[length] == ':');
    }
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(made + at, sizeof(made) - at, "%s%llu/%.6f", i ? ":" : "",
                               (unsigned long long)sizes[i],
                               shares[i] < 0 ? (100 - given) / (double)missing : shares[i]);
    *ret_split = fiojob_keep(job, made, at);
    return *ret_split ? 0 : -ENOMEM;
}

/* Sizes of the ways that the kind of I/O has. */
static int set_sizes(struct fiojob *job, struct synth_spec *spec)
{
    bool split = job->section.bssplit != NULL;
    unsigned int way = spec->rw == SYNTH_TRIM || spec->rw == SYNTH_RANDTRIM ||
                               spec->rw == SYNTH_TRIMWRITE || spec->rw == SYNTH_RANDTRIMWRITE
                           ? TRIMS
                       : spec->rw == SYNTH_WRITE || spec->rw == SYNTH_RANDWRITE ? WRITES
                                                                                : READS;
    int err = split ? set_split(job, way, &spec->bssplit) : set_block(job, way, &spec->bs);

    if (err == 0 && is_mixed(spec))
        err = split ? set_split(job, WRITES, &spec->bssplit_write)
                    : set_block(job, WRITES, &spec->bs_write);
    return err;
}

/* percentage_random=N: the others follow in place. */
static int set_follow(struct fiojob *job, struct synth_spec *spec)
{
    const char *text = job->section.random_pct;
    unsigned int first = spec->rw == SYNTH_RANDWRITE  ? WRITES
                         : spec->rw == SYNTH_RANDTRIM ? TRIMS
                                                      : READS;
    uint64_t pct[WAYS];

    if (text == NULL || !is_random(spec))
        return 0;
    for (unsigned int way = 0; way < WAYS; way++) {
        size_t length;
        const char *part = part_of(text, way, &length);

        pct[way] = 100;
        if ((length > 0 && fiojob_size(&job->section, part, length, &pct[way]) < 0) ||
            pct[way] > 100)
            return refuse(job, "percentage_random", text);
    }
    if (is_mixed(spec) && pct[READS] != pct[WRITES])
        return refuse(job, "percentage_random that differs by direction", text);
    spec->follow_pct = 100 - pct[first];
    return 0;
}

/* The one size that all ops have; 0 where they differ. */
static uint64_t fixed_bytes(struct fiojob *job, const struct synth_spec *spec)
{
    uint64_t bytes = 0;

    if (spec->bssplit || strchr(spec->bs, '-') ||
        (spec->bs_write && strcmp(spec->bs, spec->bs_write) != 0) ||
        fiojob_size(&job->section, spec->bs, strlen(spec->bs), &bytes) < 0)
        return 0;
    return bytes;
}

static int set_random(struct fiojob *job, struct synth_spec *spec)
{
    const char *text = job->section.random;

    if (strncmp(text, "zipf:", 5) == 0 || strncmp(text, "zoned:", 6) == 0) {
        spec->random = text;
    } else if (strcmp(text, "random") == 0) {
        /* fio's random map visits each block once, where the blocks are of one size. */
        bool fixed = fixed_bytes(job, spec) > 0;
        bool mapped = !job->section.no_random_map && fixed && !spec->align_bytes;

        spec->random =
            mapped && spec->run_ops <= 1 && spec->follow_pct == 0 ? "once" : "uniform";
    } else {
        return refuse(job, "random_distribution", text);
    }
    return 0;
}

/* The limits of "N,N" as ops a second of reads and of writes. */
static int read_limits(struct fiojob *job, const char *text, bool bytes, double limits[2])
{
    for (unsigned int way = 0; way < 2; way++) {
        size_t length;
        const char *part = part_of(text, way, &length);
        uint64_t number = 0;

        if (length > 0 &&
            (fiojob_size(&job->section, part, length, &number) < 0 || number == 0))
            return refuse(job, bytes ? "rate" : "rate_iops", text);
        limits[way] = length > 0 ? (double)number : INFINITY;
    }
    return 0;
}

/* rate_iops=N and rate=N cap each direction of a mix: the rarer one never reaches its own. */
static int set_rate(struct fiojob *job, struct synth_spec *spec)
{
    const struct fiojob_conf *conf = &job->section;
    const char *text = conf->rate_iops ? conf->rate_iops : conf->rate;
    double limits[2], mix = (double)spec->rwmix / 100, reads, writes;
    bool mixed = is_mixed(spec);
    int err;

    if (text == NULL)
        return 0;
    if (conf->rate_iops && conf->rate)
        return refuse(job, "rate beside rate_iops", conf->rate);
    if ((err = read_limits(job, text, text == conf->rate, limits)) < 0)
        return err;
    if (!mixed)
        mix = spec->rw == SYNTH_READ || spec->rw == SYNTH_RANDREAD;
    reads = mix > 0 ? limits[0] / mix : INFINITY;
    writes = mix < 1 ? limits[1] / (1 - mix) : INFINITY;
    if (text == conf->rate) {
        struct synth_spec only = *spec;

        only.rwmix = 100;
        reads /= synth_mean_bytes(mixed ? &only : spec, job->import);
        only.rwmix = 0;
        writes /= synth_mean_bytes(mixed ? &only : spec, job->import);
    }
    spec->rate = fmin(reads, writes);
    if (isinf(spec->rate)) {
        spec->rate = 0;
        return 0;
    }
    spec->rate *= (double)spec->streams;
    if (strcmp(conf->rate_process, "poisson") == 0)
        spec->arrival = SYNTH_POISSON;
    else if (strcmp(conf->rate_process, "linear") != 0)
        return refuse(job, "rate_process", conf->rate_process);
    return 0;
}

/* file_service_type=HOW[:N]: N ops of a file before the next. */
static int set_file_order(struct fiojob *job, struct synth_spec *spec)
{
    static const struct {
        const char *word;
        int order;
    } orders[] = {{"roundrobin", SYNTH_FILES_TURN},
                  {"random", SYNTH_FILES_RANDOM},
                  {"sequential", SYNTH_FILES_ONE_BY_ONE}};
    const char *text = job->section.service;
    size_t length = strcspn(text, ":");

    if (text[length] == ':' && (fiojob_size(&job->section, text + length + 1,
                                            strlen(text + length + 1), &spec->switch_ops) < 0 ||
                                spec->switch_ops == 0))
        return refuse(job, "file_service_type", text);
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        if (strlen(orders[i].word) == length && memcmp(text, orders[i].word, length) == 0) {
            spec->file_order = orders[i].order;
            return 0;
        }
    }
    return refuse(job, "file_service_type", text);
}

static int set_engine(struct fiojob *job, struct synth_spec *spec)
{
    static const struct {
        const char *fio, *ours;
        int api;
    } engines[] = {
        {"psync", "sync", TRACE_API_SYNC},
        {"sync", "sync", TRACE_API_SYNC},
        {"vsync", "vsync", TRACE_API_VECTORED},
        {"pvsync", "vsync", TRACE_API_VECTORED},
        {"pvsync2", "vsync", TRACE_API_VECTORED},
        {"libaio", "libaio", TRACE_API_LIBAIO},
        {"io_uring", "io_uring", TRACE_API_IO_URING},
        {"posixaio", "posixaio", TRACE_API_POSIX_AIO},
        {"mmap", "mmap", TRACE_API_MMAP},
        {"null", "null", TRACE_API_UNKNOWN},
    };

    for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
        if (strcmp(job->section.ioengine, engines[i].fio) != 0)
            continue;
        spec->api = engines[i].api;
        if (job->engine == NULL)
            job->engine = engines[i].ours;
        else if (strcmp(job->engine, engines[i].ours) != 0)
            import_note(job->import,
                        "jobs with different engines: the command names that of the first");
        return 0;
    }
    return refuse(job, "ioengine", job->section.ioengine);
}

/* The file'th name of filename=A:B, in which "\\:" is a colon. */
static size_t listed_name(const char *list, uint64_t file, char *made, size_t at, size_t size)
{
    for (; *list && at + 1 < size; list++) {
        if (*list == '\\' && list[1] == ':')
            list++;
        else if (*list == ':') {
            if (file-- == 0)
                break;
            continue;
        }
        if (file == 0)
            made[at++] = *list;
    }
    made[at] = '\0';
    return at;
}

/* filename_format with its $jobname, $jobnum, $filenum. */
static size_t formatted_name(const struct fiojob_conf *conf, uint64_t number, uint64_t file,
                             char *made, size_t at, size_t size)
{
    const char *format = conf->name_format ? conf->name_format : "$jobname.$jobnum.$filenum";

    while (*format && at + 32 < size) {
        if (strncmp(format, "$jobname", 8) == 0) {
            at += (size_t)snprintf(made + at, size - at, "%s", conf->name);
            format += 8;
        } else if (strncmp(format, "$jobnum", 7) == 0) {
            at += (size_t)snprintf(made + at, size - at, "%llu", (unsigned long long)number);
            format += 7;
        } else if (strncmp(format, "$filenum", 8) == 0) {
            at += (size_t)snprintf(made + at, size - at, "%llu", (unsigned long long)file);
            format += 8;
        } else {
            made[at++] = *format++;
        }
        if (at >= size)
            at = size - 1;
    }
    made[at] = '\0';
    return at;
}

static uint64_t listed_count(const char *list)
{
    uint64_t count = 1;

    for (const char *at = list; *at; at++)
        count += *at == ':' && (at == list || at[-1] != '\\');
    return count;
}

/* Names of every file, as fio makes them: by filename_format, or those of filename= shared by
 * all. */
static int set_names(struct fiojob *job, struct synth_spec *spec, char ***ret_names)
{
    const struct fiojob_conf *conf = &job->section;
    uint64_t dirs = conf->directory ? listed_count(conf->directory) : 0, total;
    char **names;

    *ret_names = NULL;
    if (conf->filename != NULL)
        spec->files = listed_count(conf->filename);
    /* A format without the job's number or name is one set of files for all clones. */
    spec->private_files =
        dirs > 1 || (conf->filename == NULL &&
                     (!conf->name_format || strstr(conf->name_format, "$jobnum")));
    total = spec->private_files ? spec->files * spec->streams : spec->files;
    if (spec->files > NAMES_MAX || total > NAMES_MAX)
        return refuse(job, "a number of files above a million", conf->name);
    names = calloc(total ? total : 1, sizeof(*names));
    if (names == NULL)
        return -ENOMEM;
    *ret_names = names;
    for (uint64_t i = 0; i < total; i++) {
        char made[4352];
        uint64_t clone = i / spec->files, file = i % spec->files;
        size_t at = 0;

        /* Of several folders each clone has one. */
        if (dirs > 0)
            at = listed_name(conf->directory, clone % dirs, made, 0, sizeof(made) - 1);
        if (dirs > 0 && at > 0)
            made[at++] = '/';
        at = conf->filename ? listed_name(conf->filename, file, made, at, sizeof(made))
                            : formatted_name(conf, clone, file, made, at, sizeof(made));
        names[i] = fiojob_keep(job, made, at);
        if (names[i] == NULL)
            return -ENOMEM;
    }
    spec->device = conf->filename != NULL && strncmp(names[0], "/dev/", 5) == 0;
    spec->names = (const char *const *)names;
    return 0;
}

/* SIZE, or PCT% of whole_bytes (0 = not known). A text that is not there is 0. */
static int part_bytes(struct fiojob *job, const char *key, const char *text,
                      uint64_t whole_bytes, uint64_t *ret_bytes)
{
    size_t length = text ? strlen(text) : 0;
    uint64_t pct;

    *ret_bytes = 0;
    if (length == 0)
        return 0;
    if (text[length - 1] != '%')
        return fiojob_size(&job->section, text, length, ret_bytes) < 0 ? refuse(job, key, text)
                                                                       : 0;
    if (fiojob_size(&job->section, text, length - 1, &pct) < 0 || pct == 0 || pct > 100)
        return refuse(job, key, text);
    if (whole_bytes == 0)
        return diag_set(import_diag(job->import), -EBADMSG,
                        "%s: job '%s': %s=%s is part of a file whose size the job does not "
                        "say: add filesize= or give --from fiojob:filesize=SIZE",
                        input_name(job->input), job->section.name, key, text);
    *ret_bytes = (uint64_t)((long double)whole_bytes * (long double)pct / 100);
    return 0;
}

/* How many ops end the job; 0: those that go once through bytes of each file. The op that
 * reaches io_bytes is done whole. */
static void set_ops(struct fiojob *job, struct synth_spec *spec, uint64_t io_bytes,
                    uint64_t bytes, double mean)
{
    const struct fiojob_conf *conf = &job->section;

    spec->ops = conf->ops * spec->streams;
    if (conf->ops == 0 && io_bytes > 0)
        spec->ops = (uint64_t)ceil((double)io_bytes / mean) * spec->streams;
    else if (conf->ops == 0 && spec->runtime_ns && !conf->time_based)
        /* the size or the time, what ends first */
        spec->ops = (uint64_t)((double)bytes / mean) * spec->files * spec->streams;
}

static int set_size(struct fiojob *job, struct synth_spec *spec, uint64_t *ret_increment)
{
    const struct fiojob_conf *conf = &job->section;
    uint64_t file_bytes = 0, size_bytes = 0, offset_bytes = 0, io_bytes = 0, bytes;
    uint64_t fixed = fixed_bytes(job, spec);
    double mean = synth_mean_bytes(spec, job->import);
    bool part;
    int err;

    err = part_bytes(job, "filesize", conf->filesize, 0, &file_bytes);
    /* A size in bytes says how far the files go, too. */
    part = conf->size && conf->size[strlen(conf->size) - 1] == '%';
    if (err == 0 && file_bytes == 0 && (part || conf->size == NULL))
        file_bytes = job->asked_file_bytes;
    job->section_file_bytes = file_bytes;
    if (err == 0)
        err = part_bytes(job, "size", conf->size, file_bytes, &size_bytes);
    if (err == 0)
        err = part_bytes(job, "offset", conf->offset, file_bytes, &offset_bytes);
    if (err == 0)
        err = part_bytes(job, "offset_increment", conf->offset_increment, file_bytes,
                         ret_increment);
    if (err == 0)
        err = part_bytes(job, "io_size", conf->io_size, size_bytes ? size_bytes : file_bytes,
                         &io_bytes);
    if (err < 0 || mean <= 0)
        return err < 0 ? err : refuse(job, "block size", conf->bs);
    if (file_bytes > 0 && file_bytes <= offset_bytes)
        return refuse(job, "filesize", conf->filesize);
    /* A percentage narrows the files; a number of bytes, where files have a size of their own,
     * only ends the job sooner. */
    bytes = part ? size_bytes : size_bytes / spec->files;
    if (bytes == 0 && file_bytes == 0)
        return diag_set(import_diag(job->import), -EBADMSG,
                        "%s: job '%s' has no size: add size=, or give --from "
                        "fiojob:filesize=SIZE of its files or device",
                        input_name(job->input), conf->name);
    if (file_bytes > 0 && (bytes == 0 || !part || bytes > file_bytes - offset_bytes)) {
        if (io_bytes == 0 && bytes > 0 && bytes < file_bytes - offset_bytes)
            io_bytes = size_bytes;
        bytes = file_bytes - offset_bytes;
    }
    /* fio does no op that is cut short by the end, where all are of one size. */
    if (fixed > 0 && bytes > fixed && spec->hole_bytes == 0)
        bytes -= bytes % fixed;
    if (__builtin_add_overflow(bytes, offset_bytes, &spec->size_bytes))
        return refuse(job, "offset", conf->offset);
    spec->offset_bytes = offset_bytes;
    set_ops(job, spec, io_bytes, bytes, mean);
    return 0;
}

/* What the replay command has to say for all jobs together. */
static void remember(struct fiojob *job, const struct synth_spec *spec)
{
    const struct fiojob_conf *conf = &job->section;

#define MOST(ours, theirs) ((ours) = (ours) > (theirs) ? (ours) : (theirs))
    MOST(job->depth, conf->depth);
    MOST(job->batch, conf->batch);
    MOST(job->loops, conf->loops);
    MOST(job->complete_min, conf->complete_min);
    MOST(job->complete_max, conf->complete_max);
    MOST(job->depth_low, conf->depth_low);
    MOST(job->runtime_ns, conf->time_based || !conf->size ? conf->runtime_ns : 0);
#undef MOST
    job->group_workers += spec->streams;
    if (job->group_workers > job->workers)
        job->workers = job->group_workers;
    job->direct |= spec->direct;
    job->all_direct &= spec->direct;
    job->timed |= spec->rate > 0 || spec->think_ns > 0 || conf->start_delay_ns > 0;
    job->processes |= spec->processes;
    job->device |= spec->device;
}

static int fill_spec(struct fiojob *job, struct synth_spec *spec)
{
    const struct fiojob_conf *conf = &job->section;
    int err;

    spec->streams = conf->jobs ? conf->jobs : 1;
    spec->files = conf->files ? conf->files : 1;
    spec->processes = !conf->thread;
    spec->rwmix = conf->mix_write_pct <= 100 ? 100 - conf->mix_write_pct : conf->mix_read_pct;
    if (spec->rwmix > 100)
        return refuse(job, "rwmixread above 100", conf->name);
    spec->align_bytes = conf->align_bytes;
    spec->direct = conf->direct;
    spec->osync = strcmp(conf->sync, "1") == 0 || strcmp(conf->sync, "sync") == 0;
    spec->dsync = strcmp(conf->sync, "dsync") == 0;
    spec->fsync_every = conf->fsync ? conf->fsync : conf->fdatasync;
    spec->sync = conf->fsync ? SYNTH_FSYNC : conf->fdatasync ? SYNTH_FDATASYNC : SYNTH_FSYNC;
    spec->fsync_end = conf->end_fsync || conf->fsync_on_close;
    spec->think_ns = conf->think_ns;
    spec->batch = conf->think_ns ? conf->think_blocks : conf->batch ? conf->batch : 1;
    spec->depth = conf->depth;
    spec->seed = conf->seed + job->jobs;
    spec->first_pid = job->next_pid;
    spec->first_batch = job->jobs * BATCHES_EACH;
    spec->comm = conf->name;
    spec->silent = true;
    spec->own_places = true;
    err = set_kind(job, spec);
    if (err == 0)
        err = set_sizes(job, spec);
    if (err == 0)
        err = set_follow(job, spec);
    if (err == 0)
        err = set_file_order(job, spec);
    if (err == 0)
        err = set_random(job, spec);
    if (err == 0)
        err = set_rate(job, spec);
    if (err == 0)
        err = set_engine(job, spec);
    if (err == 0 && (spec->rate > 0 || spec->think_ns) && conf->runtime_ns)
        spec->runtime_ns = conf->runtime_ns + conf->ramp_ns;
    return err;
}

/* Jobs begin together, or where the jobs before the last stonewall end. */
static int set_start(struct fiojob *job, struct synth_spec *spec)
{
    if (job->section.stonewall && job->jobs > 0) {
        job->group_start_ns = job->group_end_ns + STONEWALL_NS;
        job->group_workers = 0;
        job->staged = true;
    }
    if (job->group_start_ns > TIME_MAX_NS || job->section.start_delay_ns > TIME_MAX_NS ||
        spec->runtime_ns > TIME_MAX_NS)
        return refuse(job, "a time of more than 73 years at", job->section.rw);
    spec->start_ns = job->group_start_ns + (int64_t)job->section.start_delay_ns;
    return 0;
}

/* The workloads of one section: one, or one for each clone with an offset of its own. */
static int generate_all(struct fiojob *job, struct synth_spec *spec, char *const *names,
                        uint64_t increment)
{
    uint64_t clones = increment ? spec->streams : 1;
    int err = 0;

    for (uint64_t i = 0; i < clones && err == 0; i++) {
        int64_t end_ns = 0;

        if (clones > 1) {
            spec->streams = 1;
            spec->rate = i == 0 ? spec->rate / (double)clones : spec->rate;
            spec->ops = i == 0 ? spec->ops / clones : spec->ops;
            spec->names =
                (const char *const *)names + (spec->private_files ? i * spec->files : 0);
            spec->offset_bytes += i ? increment : 0;
            spec->size_bytes += i ? increment : 0;
            if (job->section_file_bytes > 0 && spec->size_bytes > job->section_file_bytes)
                spec->size_bytes = job->section_file_bytes;
            if (spec->offset_bytes >= spec->size_bytes)
                return refuse(job, "offset_increment beyond the file",
                              job->section.offset_increment);
            spec->first_pid = job->next_pid;
            spec->seed++;
        }
        err = synth_generate(spec, job->import, &end_ns);
        if (end_ns > job->group_end_ns)
            job->group_end_ns = end_ns;
        job->next_pid += (uint32_t)spec->streams;
        job->jobs++;
        spec->first_batch = job->jobs * BATCHES_EACH;
    }
    return err;
}

int fiojob_generate(struct fiojob *job)
{
    struct fiojob_conf *conf = &job->section;
    struct synth_spec spec = {0};
    uint64_t increment = 0;
    char **names = NULL;
    int err;

    if (conf->think_ns && (conf->rate_iops || conf->rate))
        return refuse(job, "thinktime beside rate or rate_iops",
                      conf->rate ? conf->rate : conf->rate_iops);
    if (conf->fsync && conf->fdatasync)
        return refuse(job, "fdatasync beside fsync in", conf->rw);
    if (conf->fill_device)
        return refuse(job, "fill_device", "1: until a device of unknown size is full");
    err = opts_defaults(synth_opts, &spec, import_diag(job->import));
    if (err == 0)
        err = fill_spec(job, &spec);
    if (err == 0)
        err = set_names(job, &spec, &names);
    if (err == 0)
        err = set_size(job, &spec, &increment);
    if (err == 0)
        err = set_start(job, &spec);
    if (err == 0) {
        remember(job, &spec);
        err = generate_all(job, &spec, names, increment);
    }
    free(names);
    return err;
}
