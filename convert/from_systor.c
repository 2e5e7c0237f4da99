/* SPDX-License-Identifier: MIT */
/* SYSTOR '17 (SNIA IOTTA 4964): rows with an empty op or response had no reply. */
#include "convert/rows.h"

static const struct rows_word words[] = {
    {"R", TRACE_READ, NULL},
    {"W", TRACE_WRITE, NULL},
    {"", ROWS_NONE, "request without a reply"},
    {NULL, 0, NULL},
};

static const char *const header[] = {"Timestamp", "Response", "IOType", "LUN",
                                     "Offset",    "Size",     NULL};

static const struct rows_spec spec = {
    .separator = ',',
    .min_fields = 6,
    .max_fields = 6,
    .time = 0,
    .latency = 1,
    .op = 2,
    .offset = 4,
    .length = 5,
    .file = 3,
    .stream = ROWS_NONE,
    .time_num = 1000000000,
    .time_den = 1,
    .latency_num = 1000000000,
    .latency_den = 1,
    .offset_unit = 1,
    .length_unit = 1,
    .time_grid_ns = 1000,
    .file_prefix = "lun",
    .api = TRACE_API_BLOCK,
    .file_kind = TRACE_FILE_BLOCK,
    .time_needs_point = true,
    .words = words,
    .header = header,
};

static int systor_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    return rows_sniff(&spec, bytes, length, at_end, IMPORT_LIKELY);
}

static int systor_run(struct input **inputs, size_t count, struct import *import,
                      const void *conf)
{
    return rows_run(&spec, inputs, count, import);
}

const struct importer importer_systor = {
    .name = "systor",
    .summary = "SYSTOR 2017 enterprise VDI traces (CSV)",
    .help = "Columns Timestamp,Response,IOType,LUN,Offset,Size: Unix seconds, of which only "
            "the microseconds are "
            "real; response in seconds. Rows without an op had no reply and are left out, "
            "counted. Each LUN is a "
            "file lunN. Kept: time, latency, op, file, offset, length.",
    .sniff = systor_sniff,
    .run = systor_run,
};
