/* SPDX-License-Identifier: MIT */
/* A fio job file as the workload it describes, and the replay command that matches it. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/fiojob_conf.h"
#include "convert/synth.h"
#include "traces/opts.h"

#define JOBS_MAX     1024u
#define NAMES_MAX    (1u << 20)
#define FIRST_PID    1000u
#define BATCHES_EACH (1ull << 40)

struct job {
    struct import *import;
    struct input *input;
    struct fiojob_conf global, section;
    bool in_global, in_job;
    uint32_t jobs, next_pid;
    char **texts; /* that confs point into */
    size_t text_count;
    /* what the replay command needs */
    const char *engine;
    uint64_t depth, batch, loops, workers, complete_min, complete_max, depth_low, runtime_ns;
    double mean_bytes; /* of the section's ops */
    bool writes, direct, all_direct, timed, processes, device;
};

static int bad(struct job *job, uint64_t column, const char *what, const char *key)
{
    return import_bad(job->import, job->input, column, "%s: '%s'", what, key);
}

static char *keep(struct job *job, const char *text, size_t length)
{
    char **texts = realloc(job->texts, (job->text_count + 1) * sizeof(*texts));
    char *copy = texts ? strndup(text, length) : NULL;

    if (texts != NULL)
        job->texts = texts;
    if (copy != NULL)
        texts[job->text_count++] = copy;
    return copy;
}

/* ---- one section as workloads ---- */

static int refuse(struct job *job, const char *what, const char *value)
{
    return diag_set(import_diag(job->import), -EBADMSG,
                    "%s: job '%s': %s '%s' is not understood", input_name(job->input),
                    job->section.name, what, value);
}

static int set_kind(struct job *job, struct synth_spec *spec)
{
    static const struct {
        const char *word;
        int rw;
    } kinds[] = {
        {"read", SYNTH_READ},           {"write", SYNTH_WRITE}, {"randread", SYNTH_RANDREAD},
        {"randwrite", SYNTH_RANDWRITE}, {"rw", SYNTH_RW},       {"readwrite", SYNTH_RW},
        {"randrw", SYNTH_RANDRW},       {"trim", SYNTH_TRIM},   {"randtrim", SYNTH_RANDTRIM}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(job->section.rw, kinds[i].word) == 0) {
            spec->rw = kinds[i].rw;
            job->writes |= spec->rw != SYNTH_READ && spec->rw != SYNTH_RANDREAD;
            return 0;
        }
    }
    return refuse(job, "rw", job->section.rw);
}

/* "4k" or "4k,4k,4k": the three kinds of I/O must agree. */
static int set_block(struct job *job, struct synth_spec *spec)
{
    const struct fiojob_conf *conf = &job->section;
    const char *text = conf->bsrange ? conf->bsrange : conf->bs, *dash = strchr(text, '-');
    uint64_t least, most;
    char made[64];
    size_t length = dash ? (size_t)(dash - text) : strcspn(text, ",");

    if (conf->bssplit != NULL) {
        spec->bssplit = conf->bssplit;
        return 0;
    }
    if (fiojob_size(text, length, &least) < 0 || least == 0)
        return refuse(job, "block size", text);
    most = least;
    if (dash != NULL && (fiojob_size(dash + 1, strlen(dash + 1), &most) < 0 || most < least))
        return refuse(job, "bsrange", text);
    for (const char *at = text + length; !dash && *at == ',';) {
        size_t size = strcspn(at + 1, ",");
        uint64_t other;

        if (size > 0 && (fiojob_size(at + 1, size, &other) < 0 || other != least))
            return refuse(job, "a block size that differs by direction", text);
        at += 1 + size;
    }
    job->mean_bytes = ((double)least + (double)most) / 2;
    snprintf(made, sizeof(made), dash ? "%llu-%llu" : "%llu", (unsigned long long)least,
             (unsigned long long)most);
    spec->bs = keep(job, made, strlen(made));
    return spec->bs ? 0 : -ENOMEM;
}

/* fio's "4k/50:8k/" with its sizes and missing percentages, as synth takes it. */
static int set_split(struct job *job, struct synth_spec *spec)
{
    const char *text = job->section.bssplit;
    uint64_t sizes[SYNTH_SIZES_MAX], missing = 0;
    double shares[SYNTH_SIZES_MAX], given = 0;
    char made[SYNTH_SIZES_MAX * 48], *end;
    size_t count = 0, at = 0;

    if (strchr(text, ',') != NULL)
        return refuse(job, "a bssplit that differs by direction", text);
    for (const char *part = text; *part; count++) {
        size_t length = strcspn(part, ":"), size = strcspn(part, "/:");

        if (count == SYNTH_SIZES_MAX || fiojob_size(part, size, &sizes[count]) < 0)
            return refuse(job, "bssplit", text);
        shares[count] = -1;
        if (size + 1 < length) {
            shares[count] = strtod(part + size + 1, &end);
            if (end != part + length)
                return refuse(job, "bssplit", text);
            given += shares[count];
        } else {
            missing++;
        }
        part += length + (part[length] == ':');
    }
    job->mean_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        double share = shares[i] < 0 ? (100 - given) / (double)missing : shares[i];

        job->mean_bytes += (double)sizes[i] * share / 100;
        at += (size_t)snprintf(made + at, sizeof(made) - at, "%s%llu/%.6f", i ? ":" : "",
                               (unsigned long long)sizes[i], share);
    }
    spec->bssplit = keep(job, made, at);
    return spec->bssplit ? 0 : -ENOMEM;
}

static int set_random(struct job *job, struct synth_spec *spec)
{
    const char *text = job->section.random;

    if (strncmp(text, "zipf:", 5) == 0) {
        spec->random = text;
    } else if (strcmp(text, "random") == 0) {
        /* fio's random map visits each block once, where the blocks are of one size. */
        bool mapped = !job->section.no_random_map && !spec->bssplit && !job->section.bsrange;

        spec->random = mapped && !spec->align_bytes ? "once" : "uniform";
    } else {
        return refuse(job, "random_distribution", text);
    }
    return 0;
}

/* rate_iops=N caps each direction of a mix: the rarer one never reaches its own. */
static int set_rate(struct job *job, struct synth_spec *spec)
{
    const struct fiojob_conf *conf = &job->section;
    double first, second, mix = (double)spec->rwmix / 100;
    char *end;

    if (conf->rate_iops == NULL)
        return 0;
    first = strtod(conf->rate_iops, &end);
    second = *end == ',' && end[1] != '\0' && end[1] != ',' ? strtod(end + 1, &end) : first;
    if ((*end != '\0' && *end != ',') || !(first > 0) || !(second > 0))
        return refuse(job, "rate_iops", conf->rate_iops);
    if (spec->rw == SYNTH_RW || spec->rw == SYNTH_RANDRW) {
        double by_reads = mix > 0 ? first / mix : 1e18,
               by_writes = mix < 1 ? second / (1 - mix) : 1e18;

        spec->rate = by_reads < by_writes ? by_reads : by_writes;
    } else {
        spec->rate = spec->rw == SYNTH_WRITE || spec->rw == SYNTH_RANDWRITE ? second : first;
    }
    spec->rate *= (double)spec->streams;
    if (strcmp(conf->rate_process, "poisson") == 0)
        spec->arrival = SYNTH_POISSON;
    else if (strcmp(conf->rate_process, "linear") != 0)
        return refuse(job, "rate_process", conf->rate_process);
    return 0;
}

static int set_engine(struct job *job, struct synth_spec *spec)
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

/* Names of every file, as fio makes them: NAME.JOB.FILE, or those of filename= shared by all.
 */
static int set_names(struct job *job, struct synth_spec *spec, char ***ret_names)
{
    const struct fiojob_conf *conf = &job->section;
    const char *dir = conf->directory ? conf->directory : "";
    const char *slash = dir[0] ? "/" : "";
    uint64_t count = 0, total;
    char **names;

    *ret_names = NULL;
    if (conf->filename != NULL) {
        for (const char *at = conf->filename; *at; at++)
            count += *at == ':' && (at == conf->filename || at[-1] != '\\');
        spec->files = count + 1;
    }
    spec->private_files = conf->filename == NULL;
    total = spec->private_files ? spec->files * spec->streams : spec->files;
    if (spec->files > NAMES_MAX || total > NAMES_MAX)
        return refuse(job, "a number of files above a million", conf->name);
    names = calloc(total ? total : 1, sizeof(*names));
    if (names == NULL)
        return -ENOMEM;
    *ret_names = names;
    for (uint64_t i = 0; i < total; i++) {
        char made[4352];

        if (conf->filename != NULL) {
            const char *from = conf->filename;
            size_t at = (size_t)snprintf(made, sizeof(made), "%s%s", dir, slash);

            for (uint64_t skip = i; skip > 0; from++)
                skip -= *from == ':' && (from == conf->filename || from[-1] != '\\');
            for (; *from && (*from != ':' || (from > conf->filename && from[-1] == '\\')) &&
                   at + 1 < sizeof(made);
                 from++)
                if (*from != '\\' || from[1] != ':')
                    made[at++] = *from;
            made[at] = '\0';
        } else {
            snprintf(made, sizeof(made), "%s%s%s.%llu.%llu", dir, slash, conf->name,
                     (unsigned long long)(i / spec->files),
                     (unsigned long long)(i % spec->files));
        }
        names[i] = keep(job, made, strlen(made));
        if (names[i] == NULL)
            return -ENOMEM;
    }
    spec->device = conf->filename != NULL && strncmp(names[0], "/dev/", 5) == 0;
    spec->names = (const char *const *)names;
    return 0;
}

static int set_size(struct job *job, struct synth_spec *spec)
{
    const struct fiojob_conf *conf = &job->section;
    uint64_t file_bytes = UINT64_MAX, bytes = conf->size_bytes / spec->files;

    if (conf->filesize != NULL &&
        (fiojob_size(conf->filesize, strlen(conf->filesize), &file_bytes) < 0 ||
         file_bytes <= conf->offset_bytes))
        return refuse(job, "filesize", conf->filesize);
    if (bytes == 0 && conf->filesize == NULL)
        return diag_set(import_diag(job->import), -EBADMSG, "%s: job '%s' has no size",
                        input_name(job->input), conf->name);
    if (bytes == 0 || bytes > file_bytes - conf->offset_bytes)
        bytes = file_bytes - conf->offset_bytes;
    spec->size_bytes = bytes + conf->offset_bytes;
    spec->offset_bytes = conf->offset_bytes;
    spec->ops = conf->ops * spec->streams;
    if (conf->ops == 0 && conf->io_size_bytes > 0)
        spec->ops = (uint64_t)((double)conf->io_size_bytes / job->mean_bytes) * spec->streams;
    else if (conf->ops == 0 && spec->runtime_ns &&
             !conf->time_based) /* the size or the time, what ends first */
        spec->ops =
            (uint64_t)((double)(spec->size_bytes - spec->offset_bytes) / job->mean_bytes) *
            spec->files * spec->streams;
    return 0;
}

/* What the replay command has to say for all jobs together. */
static void remember(struct job *job, const struct synth_spec *spec)
{
    const struct fiojob_conf *conf = &job->section;

#define MOST(ours, theirs) ((ours) = (ours) > (theirs) ? (ours) : (theirs))
    MOST(job->depth, conf->depth);
    MOST(job->batch, conf->batch);
    MOST(job->loops, conf->loops);
    MOST(job->complete_min, conf->complete_min);
    MOST(job->complete_max, conf->complete_max);
    MOST(job->depth_low, conf->depth_low);
    MOST(job->runtime_ns, conf->time_based || !conf->size_bytes ? conf->runtime_ns : 0);
#undef MOST
    job->workers += spec->streams;
    job->direct |= spec->direct;
    job->all_direct &= spec->direct;
    job->timed |= spec->rate > 0 || spec->think_ns > 0;
    job->processes |= spec->processes;
    job->device |= spec->device;
}

static int fill_spec(struct job *job, struct synth_spec *spec)
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
    spec->direct = conf->direct && !conf->buffered;
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
    err = set_kind(job, spec);
    if (err == 0)
        err = set_block(job, spec);
    if (err == 0 && conf->bssplit != NULL)
        err = set_split(job, spec);
    if (err == 0)
        err = set_random(job, spec);
    if (err == 0)
        err = set_rate(job, spec);
    if (err == 0)
        err = set_engine(job, spec);
    if (err == 0 && (spec->rate > 0 || spec->think_ns) && conf->runtime_ns)
        spec->runtime_ns = conf->runtime_ns;
    return err;
}

static int generate(struct job *job)
{
    struct fiojob_conf *conf = &job->section;
    uint64_t clones = conf->offset_increment_bytes ? conf->jobs : 1;
    struct synth_spec spec = {0};
    char **names = NULL;
    int err;

    if (conf->think_ns && conf->rate_iops != NULL)
        return refuse(job, "thinktime beside rate_iops", conf->rate_iops);
    err = opts_defaults(synth_opts, &spec, import_diag(job->import));
    if (err == 0)
        err = fill_spec(job, &spec);
    if (err == 0)
        err = set_names(job, &spec, &names);
    if (err == 0)
        err = set_size(job, &spec);
    if (err == 0)
        remember(job, &spec);
    /* Jobs that begin at different offsets are workloads of their own. */
    for (uint64_t i = 0; i < clones && err == 0; i++) {
        if (clones > 1) {
            spec.streams = 1;
            spec.rate = i == 0 ? spec.rate / (double)clones : spec.rate;
            spec.ops = i == 0 ? spec.ops / clones : spec.ops;
            spec.names = (const char *const *)names + (spec.private_files ? i * spec.files : 0);
            spec.offset_bytes = conf->offset_bytes + i * conf->offset_increment_bytes;
            spec.size_bytes += i ? conf->offset_increment_bytes : 0;
            spec.first_pid = job->next_pid;
            spec.seed++;
        }
        err = synth_generate(&spec, job->import);
        job->next_pid += (uint32_t)spec.streams;
        job->jobs++;
        spec.first_batch = job->jobs * BATCHES_EACH;
    }
    free(names);
    return err;
}

/* ---- the file ---- */

static int end_section(struct job *job)
{
    if (job->in_global)
        job->global = job->section;
    if (!job->in_job)
        return 0;
    if (job->jobs >= JOBS_MAX)
        return refuse(job, "more than 1024 jobs", job->section.name);
    return generate(job);
}

static int begin_section(struct job *job, const char *at, size_t length)
{
    int err;

    if (length < 3 || at[length - 1] != ']')
        return import_bad(job->import, job->input, length, "expected ']'");
    err = end_section(job);
    if (err < 0)
        return err;
    job->section = job->global;
    job->in_global = length == 8 && memcmp(at, "[global]", 8) == 0;
    job->in_job = !job->in_global;
    job->section.name = keep(job, at + 1, length - 2);
    return job->section.name ? 0 : -ENOMEM;
}

static int take_option(struct job *job, const char *line, size_t length)
{
    const char *equals = memchr(line, '=', length);
    size_t key_length = equals ? (size_t)(equals - line) : length;
    const char *value = equals ? equals + 1 : line + length, *end = line + length;
    char *key, *text;

    while (key_length > 0 && isspace((unsigned char)line[key_length - 1]))
        key_length--;
    while (value < end && isspace((unsigned char)*value))
        value++;
    key = keep(job, line, key_length);
    text = keep(job, value, (size_t)(end - value));
    if (key == NULL || text == NULL)
        return -ENOMEM;
    if (strstr(text, "${") != NULL)
        return bad(job, key_length + 2, "a value from the environment is not understood", text);
    switch (fiojob_conf_set(&job->section, key, text)) {
    case FIOJOB_TAKEN: return 0;
    case FIOJOB_NO_EFFECT:
        import_note(job->import,
                    "option '%.60s' says nothing about the I/O itself: passed over", key);
        return 0;
    case FIOJOB_BAD_VALUE: return bad(job, key_length + 2, "not a value for this option", text);
    case FIOJOB_UNKNOWN: break;
    }
    return bad(job, 1, "an option that is not understood here", key);
}

static int take_line(struct job *job, const char *line, size_t length)
{
    while (length > 0 && isspace((unsigned char)line[length - 1]))
        length--;
    while (length > 0 && isspace((unsigned char)*line)) {
        line++;
        length--;
    }
    if (length == 0 || *line == ';' || *line == '#')
        return 0;
    if (*line == '[')
        return begin_section(job, line, length);
    if (!job->in_global && !job->in_job)
        return import_bad(job->import, job->input, 1,
                          "expected [global] or [JOB] before options");
    return take_option(job, line, length);
}

static void note_command(struct job *job)
{
    char more[256] = "", runtime[48] = "";
    size_t at = 0;

#define ADD(...)                                                                               \
    (at += (size_t)snprintf(more + at, at < sizeof(more) ? sizeof(more) - at : 0, __VA_ARGS__))
    if (job->batch > 1)
        ADD(" --batch %llu", (unsigned long long)job->batch);
    if (job->complete_min > 1)
        ADD(" --batch-complete-min %llu", (unsigned long long)job->complete_min);
    if (job->complete_max > 0)
        ADD(" --batch-complete-max %llu", (unsigned long long)job->complete_max);
    if (job->depth_low > 0)
        ADD(" --depth-low %llu", (unsigned long long)job->depth_low);
    if (job->workers > 1)
        ADD(" --%s %llu", job->processes ? "processes" : "workers",
            (unsigned long long)job->workers);
    if (job->loops > 1)
        ADD(" --loops %llu", (unsigned long long)job->loops);
    if (job->all_direct)
        ADD(" --direct");
#undef ADD
    if (job->runtime_ns > 0 && !job->timed)
        snprintf(runtime, sizeof(runtime), " --loops 1000000 --runtime %llums",
                 (unsigned long long)(job->runtime_ns / 1000000));
    import_note(
        job->import,
        "replay it with: iotape replay T.tape --engine %s --depth %llu --pace %s%s%s%s%s",
        job->engine ? job->engine : "sync", (unsigned long long)job->depth,
        job->timed ? "recorded" : "asap", more, runtime, job->writes ? " --writes" : "",
        job->device ? " --target DEV" : " --root DIR --prepare");
}

static int run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    struct job *job = calloc(1, sizeof(*job));
    size_t length;
    char *line;
    int err = 0, got;

    (void)count;
    (void)conf;
    if (job == NULL)
        return -ENOMEM;
    job->import = import;
    job->input = inputs[0];
    job->next_pid = FIRST_PID;
    job->all_direct = true;
    fiojob_conf_init(&job->global);
    while (err == 0 && (got = input_line(job->input, &line, &length)) != 0)
        err = got < 0 ? got : take_line(job, line, length);
    if (err == 0)
        err = end_section(job);
    if (err == 0)
        note_command(job);
    for (size_t i = 0; i < job->text_count; i++)
        free(job->texts[i]);
    free(job->texts);
    free(job);
    return err;
}

static int sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    static const char *const tells[] = {
        "\nrw=", "\nreadwrite=", "\nioengine=", "\nbs=", "\niodepth=", "\nnumjobs="};
    size_t at = 0;

    (void)at_end;
    /* A section comes first, behind comments. */
    while (at < length && (isspace(bytes[at]) || bytes[at] == ';' || bytes[at] == '#')) {
        const uint8_t *newline =
            isspace(bytes[at]) ? bytes + at : memchr(bytes + at, '\n', length - at);

        if (newline == NULL)
            return IMPORT_NO;
        at = (size_t)(newline - bytes) + 1;
    }
    if (at == length || bytes[at] != '[')
        return IMPORT_NO;
    for (size_t i = 0; i < sizeof(tells) / sizeof(tells[0]); i++)
        if (memmem(bytes + at, length - at, tells[i], strlen(tells[i])) != NULL)
            return IMPORT_SURE;
    return IMPORT_NO;
}

const struct importer importer_fiojob = {
    .name = "fiojob",
    .summary = "a fio job file, as the workload it describes",
    .help =
        "Sections and [global] with rw, bs, bsrange, bssplit, size, filesize, io_size, "
        "nrfiles, numjobs, "
        "rwmixread, iodepth and its batches, rate_iops, rate_process, thinktime, "
        "random_distribution, norandommap, "
        "offset, offset_increment, loops, fsync, fdatasync, direct, sync, runtime, number_ios, "
        "filename and "
        "directory become ops; the report ends with the replay command that matches. An option "
        "that is not "
        "understood is an error that names it; options of reporting are passed over and named.",
    .sniff = sniff,
    .run = run,
};
