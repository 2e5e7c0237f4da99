/* SPDX-License-Identifier: MIT */
/* MQSim and SSDsim: whole numbers, 0 is a WRITE. A fraction in the time makes it DiskSim's. */
#include "convert/rows.h"

static const struct rows_word words[] = {
    {"0", TRACE_WRITE, NULL},
    {"1", TRACE_READ, NULL},
    {NULL, 0, NULL},
};

static const struct rows_spec spec = {
    .separator = ' ',
    .min_fields = 5,
    .max_fields = 5,
    .time = 0,
    .latency = ROWS_NONE,
    .op = 4,
    .offset = 2,
    .length = 3,
    .file = 1,
    .stream = ROWS_NONE,
    .time_num = 1,
    .time_den = 1,
    .offset_unit = 512,
    .length_unit = 512,
    .file_prefix = "dev",
    .api = TRACE_API_BLOCK,
    .file_kind = TRACE_FILE_BLOCK,
    .time_forbids_point = true,
    .words = words,
};

static int mqsim_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    return rows_sniff(&spec, bytes, length, at_end, IMPORT_LIKELY);
}

static int mqsim_run(struct input **inputs, size_t count, struct import *import,
                     const void *conf)
{
    return rows_run(&spec, inputs, count, import);
}

const struct importer importer_mqsim = {
    .name = "mqsim",
    .summary = "MQSim and SSDsim ASCII traces",
    .help = "Five blank-separated columns: time in whole nanoseconds (--time-unit where the "
            "set says otherwise), "
            "device, sector, sectors, 0 = write or 1 = read. Each device is a file devN. Kept: "
            "time, op, file, "
            "offset, length.",
    .sniff = mqsim_sniff,
    .run = mqsim_run,
};
