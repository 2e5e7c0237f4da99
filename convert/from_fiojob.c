/* SPDX-License-Identifier: MIT */
/* A fio job file as the workload it describes, and the replay command that matches it. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/fiojob.h"

#define JOBS_MAX  1024u
#define FIRST_PID 1000u

static int bad(struct fiojob *job, uint64_t column, const char *what, const char *key)
{
    return import_bad(job->import, job->input, column, "%s: '%s'", what, key);
}

char *fiojob_keep(struct fiojob *job, const char *text, size_t length)
{
    char **texts = realloc(job->texts, (job->text_count + 1) * sizeof(*texts));
    char *copy = texts ? strndup(text, length) : NULL;

    if (texts != NULL)
        job->texts = texts;
    if (copy != NULL)
        texts[job->text_count++] = copy;
    return copy;
}

/* ---- the file ---- */

static int end_section(struct fiojob *job)
{
    if (job->in_global)
        job->global = job->section;
    if (!job->in_job)
        return 0;
    if (job->section.create_only) {
        import_note(job->import,
                    "job '%.60s' has create_only: it makes its files and does no I/O",
                    job->section.name);
        return 0;
    }
    if (job->jobs >= JOBS_MAX)
        return bad(job, 1, "more than 1024 jobs", job->section.name);
    return fiojob_generate(job);
}

static int begin_section(struct fiojob *job, const char *at, size_t length)
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
    job->section.name = fiojob_keep(job, at + 1, length - 2);
    return job->section.name ? 0 : -ENOMEM;
}

/* ${NAME} is what the environment says, as fio has it; but a name it lacks is no empty value.
 */
static int expand(struct fiojob *job, uint64_t column, const char *text, char **ret_text)
{
    char made[4096];
    size_t at = 0;

    while (*text) {
        const char *end = strncmp(text, "${", 2) == 0 ? strchr(text, '}') : NULL;
        char name[256] = "";
        const char *value = text;
        size_t length = 1;

        if (end != NULL && (size_t)(end - text) - 2 < sizeof(name)) {
            memcpy(name, text + 2, (size_t)(end - text) - 2);
            value = getenv(name);
            if (value == NULL)
                return bad(job, column, "the environment has no such variable", name);
            length = strlen(value);
        }
        if (length >= sizeof(made) - at)
            return bad(job, column, "too long with its variables", text);
        memcpy(made + at, value, length);
        at += length;
        text = end != NULL ? end + 1 : text + 1;
    }
    *ret_text = fiojob_keep(job, made, at);
    return *ret_text ? 0 : -ENOMEM;
}

static int take_option(struct fiojob *job, const char *line, size_t length)
{
    const char *equals = memchr(line, '=', length);
    size_t key_length = equals ? (size_t)(equals - line) : length;
    const char *value = equals ? equals + 1 : line + length, *end = line + length;
    char *key, *text;

    while (key_length > 0 && isspace((unsigned char)line[key_length - 1]))
        key_length--;
    while (value < end && isspace((unsigned char)*value))
        value++;
    key = fiojob_keep(job, line, key_length);
    text = fiojob_keep(job, value, (size_t)(end - value));
    if (key == NULL || text == NULL)
        return -ENOMEM;
    if (strncmp(key, "include ", 8) == 0)
        return bad(job, 1, "another file is not read: put its lines here, or join both", key);
    if (strstr(text, "${") != NULL) {
        int err = expand(job, key_length + 2, text, &text);

        if (err < 0)
            return err;
    }
    switch (fiojob_conf_set(&job->section, key, text)) {
    case FIOJOB_TAKEN:
    case FIOJOB_REPORTING: return 0;
    case FIOJOB_NO_EFFECT:
        import_note(job->import,
                    "option '%.60s' says nothing about the I/O itself: passed over", key);
        return 0;
    case FIOJOB_BAD_VALUE: return bad(job, key_length + 2, "not a value for this option", text);
    case FIOJOB_UNKNOWN: break;
    }
    return bad(job, 1, "an option that is not understood here", key);
}

/* How much of an option's line is before a comment; fio knows no quotes. */
static size_t comment_at(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (line[i] == ';' || line[i] == '#')
            return i;
    return length;
}

static int take_line(struct fiojob *job, const char *line, size_t length)
{
    const char *close;

    while (length > 0 && isspace((unsigned char)*line)) {
        line++;
        length--;
    }
    if (length == 0 || *line == ';' || *line == '#')
        return 0;
    /* A comment also ends a line: behind the bracket, or anywhere in an option. */
    if (*line == '[')
        length = (close = memchr(line, ']', length)) ? (size_t)(close - line) + 1 : length;
    else
        length = comment_at(line, length);
    while (length > 0 && isspace((unsigned char)line[length - 1]))
        length--;
    if (*line == '[')
        return begin_section(job, line, length);
    if (!job->in_global && !job->in_job)
        return import_bad(job->import, job->input, 1,
                          "expected [global] or [JOB] before options");
    return take_option(job, line, length);
}

static void note_command(struct fiojob *job)
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
    if (job->staged)
        import_note(job->import,
                    "jobs behind a stonewall come after the earlier ones in the tape; %s",
                    job->workers > 1 ? "each worker goes on to them by itself"
                                     : "one worker keeps them apart");
    import_note(
        job->import,
        "replay it with: iotape replay T.tape --engine %s --depth %llu --pace %s%s%s%s%s",
        job->engine ? job->engine : "sync", (unsigned long long)job->depth,
        job->timed ? "recorded" : "asap", more, runtime, job->writes ? " --writes" : "",
        job->device ? " --target DEV" : " --root DIR --prepare");
}

/* What the job file leaves to the machine it runs on. */
struct fiojob_asked {
    uint64_t file_bytes;
};

static const struct opt asked_opts[] = {
    {.name = "filesize",
     .type = OPT_SIZE,
     .offset = offsetof(struct fiojob_asked, file_bytes),
     .max = INT64_MAX,
     .arg = "SIZE",
     .help = "size of the files or devices of jobs that do not say it"},
    {0},
};

static int run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    const struct fiojob_asked *asked = conf;
    struct fiojob *job = calloc(1, sizeof(*job));
    size_t length;
    char *line;
    int err = 0, got;

    (void)count;
    if (job == NULL)
        return -ENOMEM;
    job->import = import;
    job->input = inputs[0];
    job->next_pid = FIRST_PID;
    job->all_direct = true;
    job->asked_file_bytes = asked->file_bytes;
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
        "Sections and [global] become ops: rw with its :N, rw_sequencer, bs, bsrange and "
        "bssplit by direction, blockalign, size, filesize, io_size, offset and "
        "offset_increment (also as percents of filesize), nrfiles, file_service_type, numjobs, "
        "rwmixread, percentage_random, random_distribution, norandommap, iodepth and its "
        "batches, rate, rate_iops, rate_process, thinktime, startdelay, stonewall, runtime, "
        "ramp_time, loops, number_ios, fsync, fdatasync, direct, sync, filename, "
        "filename_format, directory, create_only and kb_base. As for fio, KiB is 1000 bytes "
        "unless kb_base=1000. ${NAME} is taken from the environment. Devices and files of "
        "which neither size nor filesize tells are as large as filesize= says here. The "
        "report ends with the replay command that matches. An option that is not understood is "
        "an "
        "error that names it; options of reporting are passed over, those of memory, data and "
        "processors are passed over and named.",
    .sniff = sniff,
    .run = run,
    .opts = asked_opts,
    .conf_size = sizeof(struct fiojob_asked),
};
