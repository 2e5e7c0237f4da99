/* SPDX-License-Identifier: MIT */
/*
 * libCacheSim's oracleGeneral: packed little-endian records of 24 bytes without a header, so
 * the content cannot be told from any other bytes. What the object number means is not in the
 * file.
 */
#include <errno.h>
#include <string.h>

#include "convert/importer.h"
#include "traces/bytes.h"

#define ORACLE_BYTES 24

struct oracle_conf {
    int unit;
};

enum {
    ORACLE_UNIT_UNSAID,
    ORACLE_UNIT_BYTE,
    ORACLE_UNIT_SECTOR,
    ORACLE_UNIT_PAGE
};
static const char *const oracle_units[] = {"unsaid", "byte", "sector", "page", NULL};

static const struct opt oracle_opts[] = {
    {.name = "unit",
     .type = OPT_ENUM,
     .offset = offsetof(struct oracle_conf, unit),
     .values = oracle_units,
     .def = "unsaid",
     .arg = "UNIT",
     .help = "what an object number counts: bytes, 512-byte sectors or 4096-byte pages"},
    {0},
};

static int oracle_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    return IMPORT_NO;
}

static int oracle_input(struct input *input, struct import *import, uint64_t unit)
{
    const uint8_t *bytes;
    uint32_t file;
    int64_t got = 0;
    int err = import_file(import, "disk", 4, &file);

    while (!err && (got = input_peek(input, &bytes, ORACLE_BYTES)) > 0) {
        struct trace_op op = TRACE_OP_INIT;
        uint64_t object;

        if (got < ORACLE_BYTES)
            return import_bad(import, input, 0, "%d bytes are left, a record has %d", (int)got,
                              ORACLE_BYTES);
        object = load_le64(bytes + 4);
        op.issue_ns = (int64_t)load_le32(bytes) * 1000000000;
        op.length = load_le32(bytes + 12);
        op.file = file;
        op.api = TRACE_API_BLOCK;
        if (__builtin_mul_overflow(object, unit, &op.offset))
            err = import_bad(import, input, 0, "object number does not fit as an offset");
        else
            err = import_op(import, &op);
        input_skip(input, ORACLE_BYTES);
    }
    return err ? err : got < 0 ? (int)got : 0;
}

static int oracle_run(struct input **inputs, size_t count, struct import *import,
                      const void *conf)
{
    static const uint64_t bytes[] = {
        [ORACLE_UNIT_BYTE] = 1, [ORACLE_UNIT_SECTOR] = 512, [ORACLE_UNIT_PAGE] = 4096};
    const struct oracle_conf *oracle = conf;
    static const char *const unknown[] = {"latency", "result", "stream", "op"};
    int err = 0;

    if (oracle->unit == ORACLE_UNIT_UNSAID)
        return diag_set(import_diag(import), -EINVAL,
                        "%s: the file does not say what an object number counts: give --from "
                        "oraclegeneral:unit=byte, sector or page",
                        input_name(inputs[0]));
    import_note(import, "the format has no operations: every request is taken as a read");
    for (size_t i = 0; i < 4 && !err; i++)
        err = import_cannot_tell(import, unknown[i]);
    if (!err)
        err = import_meta(import, TRACE_META_TIME_UNIT_NS, "1000000000");
    for (size_t i = 0; i < count && !err; i++)
        err = oracle_input(inputs[i], import, bytes[oracle->unit]);
    return err;
}

const struct importer importer_oraclegeneral = {
    .name = "oraclegeneral",
    .summary = "libCacheSim oracleGeneral binary traces",
    .help = "Records of 24 bytes: seconds, object number, size, next access. There is no op "
            "(all are taken "
            "as reads) and the meaning of the number is not in the file: unit=byte|sector|page "
            "must be "
            "given. Kept: time, offset, length.",
    .flags = IMPORTER_FORCED,
    .sniff = oracle_sniff,
    .run = oracle_run,
    .opts = oracle_opts,
    .conf_size = sizeof(struct oracle_conf),
};
