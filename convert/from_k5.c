/* SPDX-License-Identifier: MIT */
/* Fujitsu K5 (SNIA IOTTA): identifiers are unique only inside one set. */
#include "convert/rows.h"

static const struct rows_word words[] = {
    {"R", TRACE_READ, NULL},
    {"W", TRACE_WRITE, NULL},
    {NULL, 0, NULL},
};

static const char *const header[] = {"ID", "Timestamp", "Type", "Offset", "Length", NULL};

static const struct rows_spec spec = {
    .separator = ',',
    .min_fields = 5,
    .max_fields = 5,
    .time = 1,
    .latency = ROWS_NONE,
    .op = 2,
    .offset = 3,
    .length = 4,
    .file = 0,
    .stream = ROWS_NONE,
    .time_num = 1000000000,
    .time_den = 1,
    .offset_unit = 1,
    .length_unit = 1,
    .time_grid_ns = 1000,
    .file_prefix = "volume",
    .api = TRACE_API_BLOCK,
    .file_kind = TRACE_FILE_BLOCK,
    .time_needs_point = true,
    .words = words,
    .header = header,
};

static int k5_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    return rows_sniff(&spec, bytes, length, at_end, IMPORT_LIKELY);
}

static int k5_run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    return rows_run(&spec, inputs, count, import);
}

const struct importer importer_k5 = {
    .name = "k5",
    .summary = "Fujitsu K5 cloud storage traces (CSV)",
    .help = "Columns ID,Timestamp,Type,Offset,Length: seconds with microseconds from the "
            "start, bytes. Each ID is a "
            "file volumeN, unique only inside one set. Kept: time, op, file, offset, length.",
    .sniff = k5_sniff,
    .run = k5_run,
};
