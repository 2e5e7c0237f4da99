/* SPDX-License-Identifier: MIT */
#include "convert/fiojob_conf.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum value {
    VALUE_TEXT,
    VALUE_NUMBER,
    VALUE_FLAG, /* 0 or 1; bare: 1 */
    VALUE_NOT_FLAG,
    VALUE_SIZE,
    VALUE_PART,         /* a size or PCT%; kept as text */
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
    {"bs_unaligned", VALUE_FLAG, AT(unaligned_sizes)},
    {"blocksize_unaligned", VALUE_FLAG, AT(unaligned_sizes)},
    {"bsrange", VALUE_TEXT, AT(bsrange)},
    {"blocksize_range", VALUE_TEXT, AT(bsrange)},
    {"bssplit", VALUE_TEXT, AT(bssplit)},
    {"ba", VALUE_SIZE, AT(align_bytes)},
    {"blockalign", VALUE_SIZE, AT(align_bytes)},
    {"size", VALUE_PART, AT(size)},
    {"io_size", VALUE_PART, AT(io_size)},
    {"io_limit", VALUE_PART, AT(io_size)},
    {"filesize", VALUE_PART, AT(filesize)},
    {"offset", VALUE_PART, AT(offset)},
    {"offset_increment", VALUE_PART, AT(offset_increment)},
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
    {"rate", VALUE_TEXT, AT(rate)},
    {"rate_process", VALUE_TEXT, AT(rate_process)},
    {"thinktime", VALUE_MICROSECONDS, AT(think_ns)},
    {"thinktime_blocks", VALUE_NUMBER, AT(think_blocks)},
    {"random_distribution", VALUE_TEXT, AT(random)},
    {"percentage_random", VALUE_TEXT, AT(random_pct)},
    {"rw_sequencer", VALUE_TEXT, AT(sequencer)},
    {"file_service_type", VALUE_TEXT, AT(service)},
    {"filename_format", VALUE_TEXT, AT(name_format)},
    {"stonewall", VALUE_FLAG, AT(stonewall)},
    {"wait_for_previous", VALUE_FLAG, AT(stonewall)},
    {"startdelay", VALUE_SECONDS, AT(start_delay_ns)},
    {"start_delay", VALUE_SECONDS, AT(start_delay_ns)},
    {"ramp_time", VALUE_SECONDS, AT(ramp_ns)},
    {"fill_device", VALUE_FLAG, AT(fill_device)},
    {"fill_fs", VALUE_FLAG, AT(fill_device)},
    {"norandommap", VALUE_FLAG, AT(no_random_map)},
    {"loops", VALUE_NUMBER, AT(loops)},
    {"fsync", VALUE_NUMBER, AT(fsync)},
    {"fdatasync", VALUE_NUMBER, AT(fdatasync)},
    {"end_fsync", VALUE_FLAG, AT(end_fsync)},
    {"fsync_on_close", VALUE_FLAG, AT(fsync_on_close)},
    {"direct", VALUE_FLAG, AT(direct)},
    {"buffered", VALUE_NOT_FLAG, AT(direct)},
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
    {"create_only", VALUE_FLAG, AT(create_only)},
    {"kb_base", VALUE_NUMBER, AT(kb_base)},
};

/* How fio reports and logs. */
static const char *const reporting[] = {
    "name",
    "description",
    "group_reporting",
    "new_group",
    "stats",
    "write_bw_log",
    "write_lat_log",
    "write_iops_log",
    "write_hist_log",
    "write_iolog",
    "per_job_logs",
    "log_avg_msec",
    "log_window_value",
    "log_max_value",
    "log_offset",
    "log_prio",
    "log_compression",
    "log_store_compressed",
    "log_unix_epoch",
    "log_alternate_epoch",
    "log_hist_msec",
    "log_hist_coarseness",
    "log_entries",
    "block_error_percentiles",
    "bwavgtime",
    "iopsavgtime",
    "disable_lat",
    "disable_clat",
    "disable_slat",
    "disable_bw",
    "disable_bw_measurement",
    "gtod_reduce",
    "gtod_cpu",
    "clocksource",
    "percentile_list",
    "clat_percentiles",
    "lat_percentiles",
    "slat_percentiles",
    "unified_rw_reporting",
    "eta",
    "eta_interval",
    "status_interval",
    "minimal",
    "output_format",
    "significant_figures",
    "unit_base",
    "disk_util",
    "steadystate_check_interval",
    "error_dump",
    "rate_cycle",
    "rate_min",
    "rate_iops_min",
    "ratemin",
};

/* Which memory, data or processors fio uses, and how it prepares files: not which I/O it does.
 */
static const char *const no_effect[] = {
    "randrepeat",
    "allrandrepeat",
    "refill_buffers",
    "scramble_buffers",
    "zero_buffers",
    "buffer_compress_percentage",
    "buffer_compress_chunk",
    "buffer_pattern",
    "dedupe_global",
    "dedupe_mode",
    "dedupe_working_set_percentage",
    "dedupe_percentage",
    "invalidate",
    "fallocate",
    "create_on_open",
    "create_serialize",
    "create_fsync",
    "allow_file_create",
    "allow_mounted_write",
    "overwrite",
    "unique_filename",
    "unlink",
    "unlink_each_loop",
    "random_generator",
    "rwmixcycle",
    "softrandommap",
    "exitall",
    "exitall_on_error",
    "exit_what",
    "pre_read",
    "openfiles",
    "thinktime_spin",
    "io_submit_mode",
    "serialize_overlap",
    "registerfiles",
    "fixedbufs",
    "hipri",
    "sqthread_poll",
    "userspace_reap",
    "nowait",
    "nonvectored",
    "force_async",
    "lockmem",
    "mem",
    "iomem",
    "mem_align",
    "iomem_align",
    "hugepage-size",
    "nice",
    "prio",
    "prioclass",
    "cpus_allowed",
    "cpumask",
    "cpus_allowed_policy",
    "cgroup",
    "cgroup_weight",
    "cgroup_nodelete",
    "ioscheduler",
    "cmdprio_percentage",
    "cmdprio_class",
    "cmdprio",
    "priohint",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "uid",
    "gid",
    "max_latency",
    "continue_on_error",
    "ignore_error",
    "fadvise_hint",
    "exec_prerun",
    "exec_postrun",
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
                                 .kb_base = 1024,
                                 .seed = 1,
                                 .random = "random",
                                 .rate_process = "linear",
                                 .sequencer = "sequential",
                                 .service = "roundrobin",
                                 .sync = "none"};
}

int fiojob_size(const struct fiojob_conf *conf, const char *text, size_t length,
                uint64_t *ret_bytes)
{
    static const char letters[] = "bkmgtpe";
    uint64_t value = 0, base = conf->kb_base;
    const char *letter = letters;
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
        at++;
        if (length - at == 2 && strncasecmp(text + at, "ib", 2) == 0) {
            base = base == 1000 ? 1024 : 1000;
            at += 2;
        } else if (length - at == 1 && strchr("iIbB", text[at]) != NULL) {
            at++;
        }
    }
    if (at != length)
        return -EINVAL;
    for (; letter > letters; letter--)
        if (__builtin_mul_overflow(value, base, &value))
            return -ERANGE;
    if (value > INT64_MAX)
        return -ERANGE;
    *ret_bytes = value;
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
    case VALUE_PART:
        err = fiojob_size(conf, text, strcspn(text, "%"), &number);
        if (err < 0 || (strchr(text, '%') && (number > 100 || strchr(text, '%')[1] != '\0')))
            return -EINVAL;
        memcpy(at, &text, sizeof(text));
        return 0;
    case VALUE_TEXT:
        if (text[0] == '\0')
            return -EINVAL;
        memcpy(at, &text, sizeof(text));
        return 0;
    case VALUE_FLAG: err = text[0] ? parse_number(text, &number) : 0; break;
    case VALUE_NOT_FLAG:
        err = text[0] ? parse_number(text, &number) : 0;
        number = !number;
        break;
    case VALUE_NUMBER: err = parse_number(text, &number); break;
    case VALUE_SIZE: err = fiojob_size(conf, text, strlen(text), &number); break;
    case VALUE_SECONDS: err = parse_time(text, 1000000000, &number); break;
    case VALUE_MICROSECONDS: err = parse_time(text, 1000, &number); break;
    }
    if (offset == AT(kb_base) && number != 1000 && number != 1024)
        err = -EINVAL;
    if (err == 0)
        memcpy(at, &number, sizeof(number));
    return err;
}

static bool is_one_of(const char *const *keys, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

enum fiojob_set fiojob_conf_set(struct fiojob_conf *conf, const char *key, const char *text)
{
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (strcmp(options[i].key, key) == 0)
            return store(conf, options[i].value, options[i].offset, text) < 0 ? FIOJOB_BAD_VALUE
                                                                              : FIOJOB_TAKEN;
    /* Verification that is switched off; switched on, it reads what the job does not say. */
    if (strcmp(key, "verify") == 0 && (strcmp(text, "0") == 0 || strcmp(text, "none") == 0))
        return FIOJOB_NO_EFFECT;
    if (is_one_of(reporting, sizeof(reporting) / sizeof(reporting[0]), key))
        return FIOJOB_REPORTING;
    if (is_one_of(no_effect, sizeof(no_effect) / sizeof(no_effect[0]), key))
        return FIOJOB_NO_EFFECT;
    return FIOJOB_UNKNOWN;
}
