/* SPDX-License-Identifier: MIT */
/* Tencent CBS: five whole numbers, told from other such files by the Unix second in front. */
#include "convert/rows.h"

static const struct rows_word words[] = {
    {"0", TRACE_READ, NULL},
    {"1", TRACE_WRITE, NULL},
    {NULL, 0, NULL},
};

static const char *const header[] = {"Timestamp", "Offset", "Size", "IOType", "VolumeID", NULL};

static const struct rows_spec spec = {
    .separator = ',',
    .min_fields = 5,
    .max_fields = 5,
    .time = 0,
    .latency = ROWS_NONE,
    .op = 3,
    .offset = 1,
    .length = 2,
    .file = 4,
    .stream = ROWS_NONE,
    .time_num = 1000000000,
    .time_den = 1,
    .offset_unit = 512,
    .length_unit = 512,
    .time_grid_ns = 1000000000,
    .file_prefix = "volume",
    .api = TRACE_API_BLOCK,
    .file_kind = TRACE_FILE_BLOCK,
    .time_forbids_point = true,
    /* 2001 to 2100 */
    .least_time = 1000000000,
    .most_time = 4102444800,
    .words = words,
    .header = header,
};

static int tencent_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    return rows_sniff(&spec, bytes, length, at_end, IMPORT_LIKELY);
}

static int tencent_run(struct input **inputs, size_t count, struct import *import,
                       const void *conf)
{
    return rows_run(&spec, inputs, count, import);
}

const struct importer importer_tencent = {
    .name = "tencent",
    .summary = "Tencent Cloud block storage traces (CSV)",
    .help = "Columns Timestamp,Offset,Size,IOType,VolumeID, no header: whole Unix seconds, "
            "sectors, 0 = read, "
            "1 = write. Inside a second only the order is known. Each volume is a file "
            "volumeN; --device N takes "
            "one. Kept: time, op, file, offset, length.",
    .sniff = tencent_sniff,
    .run = tencent_run,
};
