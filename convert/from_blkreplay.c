/* SPDX-License-Identifier: MIT */
/* blkreplay .load: a preamble of any text, then one header line, now and then both twice. */
#include "convert/rows.h"

static const struct rows_word words[] = {
    {"R", TRACE_READ, NULL},
    {"W", TRACE_WRITE, NULL},
    {NULL, 0, NULL},
};

static const struct rows_spec spec = {
    .separator = ';',
    .min_fields = 4,
    .time = 0,
    .latency = ROWS_NONE,
    .op = 3,
    .offset = 1,
    .length = 2,
    .file = ROWS_NONE,
    .stream = ROWS_NONE,
    .time_num = 1000000000,
    .time_den = 1,
    .offset_unit = 512,
    .length_unit = 512,
    .api = TRACE_API_BLOCK,
    .file_kind = TRACE_FILE_BLOCK,
    .file_name = "disk",
    .preamble = true,
    .words = words,
};

static int blkreplay_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    const char *line;
    size_t at = 0, line_length;

    while (rows_next_line(bytes, length, at_end, &at, &line, &line_length)) {
        struct field fields[4];

        if (fields_split(line, line_length, ';', fields, 4) >= 4 &&
            field_is(&fields[0], "start") && field_is(&fields[1], "sector") &&
            field_is(&fields[2], "length"))
            return IMPORT_SURE;
    }
    return IMPORT_NO;
}

static int blkreplay_run(struct input **inputs, size_t count, struct import *import,
                         const void *conf)
{
    return rows_run(&spec, inputs, count, import);
}

const struct importer importer_blkreplay = {
    .name = "blkreplay",
    .summary = "blkreplay load files",
    .help = "Semicolon-separated start, sector, length, op and two delays, after a free-text "
            "preamble that ends at "
            "the line of column names (it may stand twice). Seconds and 512-byte sectors. The "
            "last delay, where "
            "given, is the recorded service time. Kept: time, latency, op, offset, length.",
    .sniff = blkreplay_sniff,
    .run = blkreplay_run,
};
