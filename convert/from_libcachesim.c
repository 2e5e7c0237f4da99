/* SPDX-License-Identifier: MIT */
/* libCacheSim's CloudPhysics CSV: the op is a SCSI opcode, in hexadecimal without 0x. */
#include "convert/rows.h"

static const struct rows_word words[] = {
    {"28", TRACE_READ, NULL},    {"2a", TRACE_WRITE, NULL}, {"88", TRACE_READ, NULL},
    {"8a", TRACE_WRITE, NULL},   {"8", TRACE_READ, NULL},   {"a", TRACE_WRITE, NULL},
    {"a8", TRACE_READ, NULL},    {"aa", TRACE_WRITE, NULL}, {"35", TRACE_FLUSH, NULL},
    {"42", TRACE_DISCARD, NULL}, {NULL, 0, NULL},
};

static const char *const header[] = {"version", "time", "op", "size", "lbn", NULL};

static const struct rows_spec spec = {
    .separator = ',',
    .min_fields = 5,
    .max_fields = 5,
    .time = 1,
    .latency = ROWS_NONE,
    .op = 2,
    .offset = 4,
    .length = 3,
    .file = ROWS_NONE,
    .stream = ROWS_NONE,
    .time_num = 1000000000,
    .time_den = 1,
    .offset_unit = 512,
    .length_unit = 1,
    .time_grid_ns = 1000000000,
    .words_any_case = true,
    .api = TRACE_API_BLOCK,
    .file_kind = TRACE_FILE_BLOCK,
    .file_name = "disk",
    .words = words,
    .header = header,
};

static int libcachesim_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    return rows_sniff(&spec, bytes, length, at_end, IMPORT_NO);
}

static int libcachesim_run(struct input **inputs, size_t count, struct import *import,
                           const void *conf)
{
    return rows_run(&spec, inputs, count, import);
}

const struct importer importer_libcachesim = {
    .name = "libcachesim",
    .summary = "libCacheSim block traces (CSV with header)",
    .help = "Columns version,time,op,size,lbn: whole seconds, a SCSI opcode in hexadecimal (28 "
            "and 88 read, 2a and "
            "8a write), bytes, and 512-byte blocks. Kept: time, op, offset, length.",
    .sniff = libcachesim_sniff,
    .run = libcachesim_run,
};
