/* SPDX-License-Identifier: MIT */
#include "convert/fiojob_conf.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum value {
    VALUE_TEXT,
    VALUE_NUMBER,
    VALUE_FLAG, /* 0 or 1; bare: 1 */
    VALUE_SIZE,
    VALUE_SECONDS,      /* a bare number is seconds; stored in ns */
    VALUE_MICROSECONDS, /* a bare number is microseconds; stored in ns */
};

#define AT(member) offsetof(struct fiojob_conf, member)

static const struct {
    const char *key;
    enum value value;
    size_t offset;
} options[] = {
    {"rw", VALUE_TEXT, AT(rw)},
    {"readwrite", VALUE_TEXT, AT(rw)},
    {"bs", VALUE_TEXT, AT(bs)},
    {"blocksize", VALUE_TEXT, AT(bs)},
    {"bsrange", VALUE_TEXT, AT(bsrange)},
    {"blocksize_range", VALUE_TEXT, AT(bsrange)},
    {"bssplit", VALUE_TEXT, AT(bssplit)},
    {"ba", VALUE_SIZE, AT(align_bytes)},
    {"blockalign", VALUE_SIZE, AT(align_bytes)},
    {"size", VALUE_SIZE, AT(size_bytes)},
    {"io_size", VALUE_SIZE, AT(io_size_bytes)},
    {"io_limit", VALUE_SIZE, AT(io_size_bytes)},
    {"filesize", VALUE_TEXT, AT(filesize)},
    {"offset", VALUE_SIZE, AT(offset_bytes)},
    {"offset_increment", VALUE_SIZE, AT(offset_increment_bytes)},
    {"nrfiles", VALUE_NUMBER, AT(files)},
    {"nr_files", VALUE_NUMBER, AT(files)},
    {"numjobs", VALUE_NUMBER, AT(jobs)},
    {"rwmixread", VALUE_NUMBER, AT(mix_read_pct)},
    {"rwmixwrite", VALUE_NUMBER, AT(mix_write_pct)},
    {"iodepth", VALUE_NUMBER, AT(depth)},
    {"iodepth_batch", VALUE_NUMBER, AT(batch)},
    {"iodepth_batch_submit", VALUE_NUMBER, AT(batch)},
    {"iodepth_batch_complete", VALUE_NUMBER, AT(complete_min)},
    {"iodepth_batch_complete_min", VALUE_NUMBER, AT(complete_min)},
    {"iodepth_batch_complete_max", VALUE_NUMBER, AT(complete_max)},
    {"iodepth_low", VALUE_NUMBER, AT(depth_low)},
    {"rate_iops", VALUE_TEXT, AT(rate_iops)},
    {"rate_process", VALUE_TEXT, AT(rate_process)},
    {"thinktime", VALUE_MICROSECONDS, AT(think_ns)},
    {"thinktime_blocks", VALUE_NUMBER, AT(think_blocks)},
    {"random_distribution", VALUE_TEXT, AT(random)},
    {"norandommap", VALUE_FLAG, AT(no_random_map)},
    {"loops", VALUE_NUMBER, AT(loops)},
    {"fsync", VALUE_NUMBER, AT(fsync)},
    {"fdatasync", VALUE_NUMBER, AT(fdatasync)},
    {"end_fsync", VALUE_FLAG, AT(end_fsync)},
    {"fsync_on_close", VALUE_FLAG, AT(fsync_on_close)},
    {"direct", VALUE_FLAG, AT(direct)},
    {"buffered", VALUE_FLAG, AT(buffered)},
    {"sync", VALUE_TEXT, AT(sync)},
    {"runtime", VALUE_SECONDS, AT(runtime_ns)},
    {"timeout", VALUE_SECONDS, AT(runtime_ns)},
    {"time_based", VALUE_FLAG, AT(time_based)},
    {"number_ios", VALUE_NUMBER, AT(ops)},
    {"filename", VALUE_TEXT, AT(filename)},
    {"directory", VALUE_TEXT, AT(directory)},
    {"ioengine", VALUE_TEXT, AT(ioengine)},
    {"randseed", VALUE_NUMBER, AT(seed)},
    {"thread", VALUE_FLAG, AT(thread)},
};

/* They change how fio reports, names or prepares things, not which I/O it does. */
static const char *const no_effect[] = {
    "name",
    "description",
    "group_reporting",
    "randrepeat",
    "allrandrepeat",
    "write_bw_log",
    "write_lat_log",
    "write_iops_log",
    "write_hist_log",
    "log_avg_msec",
    "log_offset",
    "log_max_value",
    "disable_lat",
    "disable_clat",
    "disable_slat",
    "disable_bw",
    "disable_bw_measurement",
    "gtod_reduce",
    "clocksource",
    "percentile_list",
    "clat_percentiles",
    "lat_percentiles",
    "slat_percentiles",
    "unified_rw_reporting",
    "refill_buffers",
    "scramble_buffers",
    "zero_buffers",
    "buffer_compress_percentage",
    "buffer_compress_chunk",
    "buffer_pattern",
    "dedupe_percentage",
    "invalidate",
    "fallocate",
    "create_on_open",
    "create_serialize",
    "create_fsync",
    "create_only",
    "overwrite",
    "unlink",
    "random_generator",
    "eta",
    "eta_interval",
    "status_interval",
    "minimal",
    "significant_figures",
    "per_job_logs",
    "ramp_time",
    "exitall",
    "new_group",
    "stats",
    "kb_base",
    "unit_base",
    "write_iolog",
    "pre_read",
    "file_service_type",
    "disk_util",
    "registerfiles",
    "fixedbufs",
    "hipri",
    "sqthread_poll",
    "userspace_reap",
    "nowait",
    "lockmem",
    "mem",
    "iomem",
    "nice",
    "prio",
    "prioclass",
    "cpus_allowed",
    "cpumask",
    "cpus_allowed_policy",
    "numa_cpu_nodes",
    "numa_mem_policy",
};

void fiojob_conf_init(struct fiojob_conf *conf)
{
    *conf = (struct fiojob_conf){.rw = "read",
                                 .bs = "4k",
                                 .ioengine = "psync",
                                 .files = 1,
                                 .jobs = 1,
                                 .mix_read_pct = 50,
                                 .mix_write_pct = 101,
                                 .depth = 1,
                                 .batch = 1,
                                 .complete_min = 1,
                                 .think_blocks = 1,
                                 .loops = 1,
                                 .seed = 1,
                                 .random = "random",
                                 .rate_process = "linear",
                                 .sync = "none"};
}

int fiojob_size(const char *text, size_t length, uint64_t *ret_bytes)
{
    static const char letters[] = "bkmgtpe";
    uint64_t value = 0;
    unsigned int shift = 0;
    const char *letter;
    size_t at = 0;

    for (; at < length && isdigit((unsigned char)text[at]); at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[at] - '0'), &value))
            return -ERANGE;
    if (at == 0)
        return -EINVAL;
    if (at < length) {
        letter = strchr(letters, tolower((unsigned char)text[at]));
        if (letter == NULL || *letter == '\0')
            return -EINVAL;
        shift = 10 * (unsigned int)(letter - letters);
        at++;
        if (at < length && tolower((unsigned char)text[at]) == 'i')
            at++;
        if (at < length && tolower((unsigned char)text[at]) == 'b')
            at++;
    }
    if (at != length)
        return -EINVAL;
    if (shift >= 64 || value > (uint64_t)INT64_MAX >> shift)
        return -ERANGE;
    *ret_bytes = value << shift;
    return 0;
}

/* A number with s, m, h, d, ms, us, ns; bare numbers count bare_ns each. */
static int parse_time(const char *text, uint64_t bare_ns, uint64_t *ret_ns)
{
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {{"ns", 1},
                 {"us", 1000},
                 {"usec", 1000},
                 {"ms", 1000000},
                 {"msec", 1000000},
                 {"s", 1000000000},
                 {"sec", 1000000000},
                 {"m", 60000000000},
                 {"min", 60000000000},
                 {"h", 3600000000000},
                 {"d", 86400000000000}};
    uint64_t value, each = 0;
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return -EINVAL;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0)
        return -ERANGE;
    if (*end == '\0')
        each = bare_ns;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(end, units[i].unit) == 0)
            each = units[i].ns;
    if (each == 0)
        return -EINVAL;
    return __builtin_mul_overflow(value, each, ret_ns) || *ret_ns > INT64_MAX ? -ERANGE : 0;
}

static int parse_number(const char *text, uint64_t *ret_value)
{
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return -EINVAL;
    errno = 0;
    *ret_value = strtoull(text, &end, 0);
    return errno != 0 || *end != '\0' ? -EINVAL : 0;
}

static int store(struct fiojob_conf *conf, enum value value, size_t offset, const char *text)
{
    char *at = (char *)conf + offset;
    uint64_t number = 1;
    int err = 0;

    switch (value) {
    case VALUE_TEXT:
        if (text[0] == '\0')
            return -EINVAL;
        memcpy(at, &text, sizeof(text));
        return 0;
    case VALUE_FLAG: err = text[0] ? parse_number(text, &number) : 0; break;
    case VALUE_NUMBER: err = parse_number(text, &number); break;
    case VALUE_SIZE: err = fiojob_size(text, strlen(text), &number); break;
    case VALUE_SECONDS: err = parse_time(text, 1000000000, &number); break;
    case VALUE_MICROSECONDS: err = parse_time(text, 1000, &number); break;
    }
    if (err == 0)
        memcpy(at, &number, sizeof(number));
    return err;
}

enum fiojob_set fiojob_conf_set(struct fiojob_conf *conf, const char *key, const char *text)
{
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (strcmp(options[i].key, key) == 0)
            return store(conf, options[i].value, options[i].offset, text) < 0 ? FIOJOB_BAD_VALUE
                                                                              : FIOJOB_TAKEN;
    for (size_t i = 0; i < sizeof(no_effect) / sizeof(no_effect[0]); i++)
        if (strcmp(no_effect[i], key) == 0)
            return FIOJOB_NO_EFFECT;
    return FIOJOB_UNKNOWN;
}
