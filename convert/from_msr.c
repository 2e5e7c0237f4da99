/* SPDX-License-Identifier: MIT */
/* MSR Cambridge (SNIA IOTTA 388): 100 ns ticks since 1601, one line a request, time of issue.
 */
#include "convert/rows.h"

#include <string.h>

/* The disk's number means something only together with the host. */
static int msr_row(const struct rows_spec *spec, const struct field *fields, size_t count,
                   struct trace_op *op, struct input *input, struct import *import)
{
    char name[256];
    size_t host = fields[1].length, disk = fields[2].length;

    if (host + disk + 2 > sizeof(name) || !host) {
        int err = import_bad(import, input, fields[1].column, "not a host name");

        return err ? err : 1;
    }
    memcpy(name, fields[1].at, host);
    name[host] = '.';
    memcpy(name + host + 1, fields[2].at, disk);
    return import_file(import, name, host + 1 + disk, &op->file);
}

static const struct rows_word words[] = {
    {"Read", TRACE_READ, NULL},
    {"Write", TRACE_WRITE, NULL},
    {NULL, 0, NULL},
};

static const char *const header[] = {"Timestamp", "Hostname", "DiskNumber",   "Type",
                                     "Offset",    "Size",     "ResponseTime", NULL};

static const struct rows_spec spec = {
    /* 100 ns ticks from 1601 to 1970 */
    .time_base = 116444736000000000ull,
    .separator = ',',
    .min_fields = 7,
    .max_fields = 7,
    .time = 0,
    .latency = 6,
    .op = 3,
    .offset = 4,
    .length = 5,
    .file = 2,
    .stream = ROWS_NONE,
    .time_num = 100,
    .time_den = 1,
    .latency_num = 100,
    .latency_den = 1,
    .offset_unit = 1,
    .length_unit = 1,
    .time_grid_ns = 100,
    .file_prefix = "disk",
    .words_any_case = true,
    .api = TRACE_API_BLOCK,
    .file_kind = TRACE_FILE_BLOCK,
    .row = msr_row,
    .time_forbids_point = true,
    .words = words,
    .header = header,
};

static int msr_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    return rows_sniff(&spec, bytes, length, at_end, IMPORT_LIKELY);
}

static int msr_run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    return rows_run(&spec, inputs, count, import);
}

const struct importer importer_msr = {
    .name = "msr",
    .summary = "MSR Cambridge block traces (CSV)",
    .help = "Columns Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime. Times are "
            "Windows file times: "
            "100 ns ticks since 1601, kept exactly; sets whose times were reset to 0 are read "
            "as ticks too. "
            "Each host and disk is a file HOST.DISK. Kept: time, latency, op, file, offset, "
            "length.",
    .sniff = msr_sniff,
    .run = msr_run,
};
