/* SPDX-License-Identifier: MIT */
/* Alibaba 2020 block traces: many disks in one file. */
#include "convert/rows.h"

static const struct rows_word words[] = {
    {"R", TRACE_READ, NULL},
    {"W", TRACE_WRITE, NULL},
    {NULL, 0, NULL},
};

static const char *const header[] = {"device_id", "opcode",    "offset",
                                     "length",    "timestamp", NULL};

static const struct rows_spec spec = {
    .separator = ',',
    .min_fields = 5,
    .max_fields = 5,
    .time = 4,
    .latency = ROWS_NONE,
    .op = 1,
    .offset = 2,
    .length = 3,
    .file = 0,
    .stream = ROWS_NONE,
    .time_num = 1000,
    .time_den = 1,
    .offset_unit = 1,
    .length_unit = 1,
    .time_grid_ns = 1000,
    .file_prefix = "disk",
    .api = TRACE_API_BLOCK,
    .file_kind = TRACE_FILE_BLOCK,
    .time_forbids_point = true,
    .words = words,
    .header = header,
};

static int alibaba_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    return rows_sniff(&spec, bytes, length, at_end, IMPORT_LIKELY);
}

static int alibaba_run(struct input **inputs, size_t count, struct import *import,
                       const void *conf)
{
    return rows_run(&spec, inputs, count, import);
}

const struct importer importer_alibaba = {
    .name = "alibaba",
    .summary = "Alibaba Cloud block traces 2020 (CSV)",
    .help = "Columns device_id,opcode,offset,length,timestamp, no header: bytes, microseconds "
            "since 1970. A thousand "
            "disks are mixed; each is a file diskN; --device N takes one. Kept: time, op, "
            "file, offset, length.",
    .sniff = alibaba_sniff,
    .run = alibaba_run,
};
