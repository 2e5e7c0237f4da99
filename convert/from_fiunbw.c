/* SPDX-License-Identifier: MIT */
/*
 * FIU NBW file-level traces: "seq ts op inode inodesize offset size HIT|MISS|APPEND"; the lines
 * of calls without a range stop after the inode's size.
 */
#include <stdio.h>
#include <string.h>

#include "convert/rows.h"

struct fiunbw_word {
    const char *text;
    int kind;
    bool ranged;
};

static const struct fiunbw_word words[] = {
    {"READ", TRACE_READ, true},    {"WRITE", TRACE_WRITE, true},
    {"OPEN", TRACE_OPEN, false},   {"CLOSE", TRACE_CLOSE, false},
    {"FSYNC", TRACE_FSYNC, false}, {"FDATASYNC", TRACE_FDATASYNC, false},
};

static const struct fiunbw_word *find_word(const struct field *field)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (field_is_word(field, words[i].text))
            return &words[i];
    return NULL;
}

struct fiunbw_row {
    struct trace_op op;
    uint64_t inode, inode_bytes;
};

static const struct field *parse_row(const struct field *fields, size_t count,
                                     struct fiunbw_row *row)
{
    const struct fiunbw_word *word = find_word(&fields[2]);
    uint64_t sequence;

    if (field_u64(&fields[0], &sequence) < 0)
        return &fields[0];
    if (field_scaled(&fields[1], 1, 1, &row->op.issue_ns) < 0)
        return &fields[1];
    if (!word || (word->ranged && count < 7))
        return &fields[2];
    if (field_u64(&fields[3], &row->inode) < 0)
        return &fields[3];
    if (field_u64(&fields[4], &row->inode_bytes) < 0)
        return &fields[4];
    row->op.kind = (uint8_t)word->kind;
    if (!word->ranged)
        return NULL;
    if (field_u64(&fields[5], &row->op.offset) < 0)
        return &fields[5];
    if (field_u64(&fields[6], &row->op.length) < 0)
        return &fields[6];
    if (count > 7 && field_is_word(&fields[7], "APPEND"))
        row->op.flags |= TRACE_F_APPEND;
    return NULL;
}

static int fiunbw_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    const char *line;
    size_t at = 0, line_length;
    unsigned int rows = 0;

    while (rows < 16 && rows_next_line(bytes, length, at_end, &at, &line, &line_length)) {
        struct fiunbw_row row = {.op = TRACE_OP_INIT};
        struct field fields[9];
        size_t count = fields_split(line, line_length, ' ', fields, 9);

        if (count == 0)
            continue;
        if (count < 5 || count > 8 || parse_row(fields, count, &row))
            return IMPORT_NO;
        rows++;
    }
    return rows ? IMPORT_LIKELY : IMPORT_NO;
}

static int take_row(struct import *import, struct fiunbw_row *row)
{
    struct trace_file facts = {.ops = TRACE_UNKNOWN_U64,
                               .bytes = TRACE_UNKNOWN_U64,
                               .max_end = TRACE_UNKNOWN_U64,
                               .kind = TRACE_FILE_REGULAR};
    char name[32];
    int length = snprintf(name, sizeof(name), "inode%llu", (unsigned long long)row->inode);
    int err = import_file(import, name, (size_t)length, &row->op.file);

    facts.size_bytes = row->inode_bytes;
    facts.inode = row->inode;
    if (!err)
        err = import_file_facts(import, row->op.file, &facts);
    row->op.api = TRACE_API_SYNC;
    return err ? err : import_op(import, &row->op);
}

static int fiunbw_run(struct input **inputs, size_t count, struct import *import,
                      const void *conf)
{
    int err = import_cannot_tell(import, "latency");

    if (!err)
        err = import_cannot_tell(import, "result");
    if (!err)
        err = import_cannot_tell(import, "stream");
    for (size_t i = 0; i < count && !err; i++) {
        size_t length;
        char *line;

        while (!err && (err = input_line(inputs[i], &line, &length)) > 0) {
            struct fiunbw_row row = {.op = TRACE_OP_INIT};
            struct field fields[9];
            size_t found = fields_split(line, length, ' ', fields, 9);
            const struct field *wrong;

            err = 0;
            if (!found)
                continue;
            wrong = found < 5 || found > 8 ? &fields[0] : parse_row(fields, found, &row);
            err = wrong ? import_bad(import, inputs[i], wrong->column,
                                     "not a line of an NBW trace at '%.*s'",
                                     (int)(wrong->length < 40 ? wrong->length : 40), wrong->at)
                        : take_row(import, &row);
        }
    }
    return err;
}

const struct importer importer_fiunbw = {
    .name = "fiunbw",
    .summary = "FIU NBW file-level traces",
    .help = "Blank-separated seq ts op inode inodesize [offset size HIT|MISS|APPEND]: "
            "nanoseconds and bytes. "
            "Give all per-core files at once; they are merged by time. Kept: time, op, inode "
            "as file with its "
            "size, offset, length, append.",
    .sniff = fiunbw_sniff,
    .run = fiunbw_run,
};
