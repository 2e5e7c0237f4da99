/* SPDX-License-Identifier: MIT */
/*
 * OrangeFS / IOFSL server traces: tab-separated "time handle type offset size". The letters are
 * the server's view of the network: "W" is a read of the file and "R" a write.
 */
#include "convert/rows.h"

static const struct rows_word words[] = {
    {"W", TRACE_READ, NULL},
    {"R", TRACE_WRITE, NULL},
    /* the PFS half of the set */
    {"0", TRACE_READ, NULL},
    {"1", TRACE_WRITE, NULL},
    {NULL, 0, NULL},
};

static const struct rows_spec spec = {
    .separator = '\t',
    .min_fields = 5,
    .max_fields = 5,
    .time = 0,
    .latency = ROWS_NONE,
    .op = 2,
    .offset = 3,
    .length = 4,
    .file = 1,
    .stream = ROWS_NONE,
    .time_num = 1,
    .time_den = 1,
    .offset_unit = 1,
    .length_unit = 1,
    .file_prefix = "handle-",
    .api = TRACE_API_SYNC,
    .file_kind = TRACE_FILE_REGULAR,
    .time_forbids_point = true,
    .words = words,
};

static int iofsl_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    return rows_sniff(&spec, bytes, length, at_end, IMPORT_LIKELY);
}

static int iofsl_run(struct input **inputs, size_t count, struct import *import,
                     const void *conf)
{
    return rows_run(&spec, inputs, count, import);
}

const struct importer importer_iofsl = {
    .name = "iofsl",
    .summary = "OrangeFS / IOFSL server traces",
    .help = "Tab-separated time, handle, type, offset, size: nanoseconds and bytes. In this "
            "set W means read "
            "and R means write (0 read, 1 write in its PFS half). Kept: time, op, handle as "
            "file, offset, "
            "length.",
    .sniff = iofsl_sniff,
    .run = iofsl_run,
};
