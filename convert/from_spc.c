/* SPDX-License-Identifier: MIT */
/* SPC trace file format 1.0.1: the block size is in a separate description. */
#include "convert/rows.h"

static const struct rows_word words[] = {
    {"R", TRACE_READ, NULL},
    {"W", TRACE_WRITE, NULL},
    {NULL, 0, NULL},
};

static const struct rows_spec spec = {
    .separator = ',',
    .min_fields = 5,
    .time = 4,
    .latency = ROWS_NONE,
    .op = 3,
    .offset = 1,
    .length = 2,
    .file = 0,
    .stream = ROWS_NONE,
    .time_num = 1000000000,
    .time_den = 1,
    .offset_unit = 512,
    .length_unit = 1,
    .file_prefix = "asu",
    .words_any_case = true,
    .api = TRACE_API_BLOCK,
    .file_kind = TRACE_FILE_BLOCK,
    .time_needs_point = true,
    .words = words,
};

static int spc_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    return rows_sniff(&spec, bytes, length, at_end, IMPORT_LIKELY);
}

static int spc_run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    return rows_run(&spec, inputs, count, import);
}

const struct importer importer_spc = {
    .name = "spc",
    .summary = "Storage Performance Council traces (UMass: Financial, WebSearch)",
    .help = "Columns ASU,LBA,Size,Opcode,Timestamp and any further ones, which are ignored. "
            "Times are seconds from "
            "the start, sizes bytes, and LBA counts blocks whose size the file does not say: "
            "512 bytes unless "
            "--sector-size. Each ASU is a file asuN. Kept: time, op, file, offset, length.",
    .sniff = spc_sniff,
    .run = spc_run,
};
