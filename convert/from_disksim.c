/* SPDX-License-Identifier: MIT */
/* DiskSim 4 ASCII: floating milliseconds; flag bit 0 set is a read. */
#include "convert/rows.h"

static const struct rows_word words[] = {
    {"0", TRACE_WRITE, NULL},
    {"1", TRACE_READ, NULL},
    /* bit 1: asynchronous, in some sets */
    {"2", TRACE_WRITE, NULL},
    {"3", TRACE_READ, NULL},
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
    .time_num = 1000000,
    .time_den = 1,
    .offset_unit = 512,
    .length_unit = 512,
    .file_prefix = "dev",
    .api = TRACE_API_BLOCK,
    .file_kind = TRACE_FILE_BLOCK,
    .time_needs_point = true,
    .words = words,
};

static int disksim_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    return rows_sniff(&spec, bytes, length, at_end, IMPORT_LIKELY);
}

static int disksim_run(struct input **inputs, size_t count, struct import *import,
                       const void *conf)
{
    return rows_run(&spec, inputs, count, import);
}

const struct importer importer_disksim = {
    .name = "disksim",
    .summary = "DiskSim ASCII traces",
    .help = "Five blank-separated columns: time in milliseconds with a fraction, device, "
            "block, blocks, flags (bit 0 "
            "set: a read). Blocks are 512 bytes unless --sector-size (1 for the variant in "
            "bytes). Files with whole "
            "numbers in front are mqsim's. Each device is a file devN. Kept: time, op, file, "
            "offset, length.",
    .sniff = disksim_sniff,
    .run = disksim_run,
};
