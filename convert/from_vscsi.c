/* SPDX-License-Identifier: MIT */
/*
 * VMware vscsiStats traces as CloudPhysics published them: fixed binary records, version 1 of
 * 32 bytes and version 2 of 40, little-endian, no header. The version stands in every record.
 */
#include <string.h>

#include "convert/importer.h"
#include "traces/bytes.h"

#define VSCSI_V1_BYTES 32
#define VSCSI_V2_BYTES 40
#define VSCSI_BLOCK    512
#define VSCSI_SNIFF    64 /* records */

struct vscsi {
    uint32_t length;
    uint16_t command, version;
    uint64_t block, us, latency_us;
};

static void vscsi_load(const uint8_t *at, unsigned int version, struct vscsi *record)
{
    memset(record, 0, sizeof(*record));
    if (version == 1) {
        record->length = load_le32(at + 4);
        record->command = load_le16(at + 12);
        record->version = load_le16(at + 14);
        record->block = load_le64(at + 16);
        record->us = load_le64(at + 24);
    } else {
        record->command = load_le16(at);
        record->version = load_le16(at + 2);
        record->length = load_le32(at + 8);
        record->block = load_le64(at + 16);
        record->us = load_le64(at + 24);
        record->latency_us = load_le64(at + 32);
    }
}

/* The op, -1 for a command that moves no data of the disk, -2 for one that is none. */
static int vscsi_kind(uint16_t command)
{
    switch (command) {
    case 0x08:
    case 0x28:
    case 0x88:
    case 0xa8: return TRACE_READ;
    case 0x0a:
    case 0x2a:
    case 0x8a:
    case 0xaa: return TRACE_WRITE;
    case 0x35:
    case 0x91: return TRACE_FLUSH;
    case 0x42: return TRACE_DISCARD;
    case 0x41:
    case 0x93: return TRACE_WRITE_ZEROES;
    }
    return command <= 0xff ? -1 : -2;
}

static bool vscsi_fits(const uint8_t *bytes, size_t length, unsigned int version, size_t size)
{
    size_t records = length / size;

    if (!records)
        return false;
    for (size_t i = 0; i < records && i < VSCSI_SNIFF; i++) {
        struct vscsi record;

        vscsi_load(bytes + i * size, version, &record);
        if (record.version >> 8 != version || vscsi_kind(record.command) == -2)
            return false;
    }
    return true;
}

static unsigned int vscsi_version(const uint8_t *bytes, size_t length)
{
    if (vscsi_fits(bytes, length, 1, VSCSI_V1_BYTES))
        return 1;
    return vscsi_fits(bytes, length, 2, VSCSI_V2_BYTES) ? 2 : 0;
}

static int vscsi_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    /* Two bytes of version a record: one record alone is too little to go by. */
    if (length < 2 * VSCSI_V2_BYTES)
        return vscsi_version(bytes, length) ? IMPORT_MAYBE : IMPORT_NO;
    return vscsi_version(bytes, length) ? IMPORT_LIKELY : IMPORT_NO;
}

static int vscsi_take(struct import *import, struct input *input, const struct vscsi *record,
                      unsigned int version, uint32_t file)
{
    struct trace_op op = TRACE_OP_INIT;
    uint64_t sector = import_options(import)->sector_bytes;
    int kind = vscsi_kind(record->command);

    if (record->version >> 8 != version || kind == -2)
        return import_bad(import, input, 0, "record version 0x%04x, command 0x%04x: not vscsi",
                          record->version, record->command);
    if (kind < 0) {
        import_skip(import, "SCSI command that moves no data", 1);
        return 0;
    }
    if (!sector)
        sector = VSCSI_BLOCK;
    if (record->us > INT64_MAX / 1000 || record->block > INT64_MAX / sector)
        return import_bad(import, input, 0, "time or block number does not fit");
    op.kind = (uint8_t)kind;
    op.api = TRACE_API_BLOCK;
    op.issue_ns = (int64_t)(record->us * 1000);
    if (version == 2 && record->latency_us < UINT64_MAX / 1000) {
        op.latency_ns = record->latency_us * 1000;
        op.completion = TRACE_COMPLETION_EXACT;
    }
    op.offset = record->block * sector;
    op.length = record->length;
    op.file = file;
    return import_op(import, &op);
}

static int vscsi_input(struct input *input, struct import *import)
{
    const uint8_t *bytes;
    int64_t got = input_peek(input, &bytes, VSCSI_SNIFF * VSCSI_V2_BYTES);
    unsigned int version = got > 0 ? vscsi_version(bytes, (size_t)got) : 0;
    size_t size = version == 1 ? VSCSI_V1_BYTES : VSCSI_V2_BYTES;
    uint32_t file;
    int err;

    if (got < 0)
        return (int)got;
    if (!version)
        return import_bad(import, input, 0, "neither vscsi version 1 nor 2");
    err = import_file(import, "disk", 4, &file);
    if (!err && version == 1)
        err = import_cannot_tell(import, "latency");
    while (!err && (got = input_peek(input, &bytes, size)) > 0) {
        struct vscsi record;

        if ((size_t)got < size)
            return import_bad(import, input, 0, "%d bytes are left, a record has %zu", (int)got,
                              size);
        vscsi_load(bytes, version, &record);
        err = vscsi_take(import, input, &record, version, file);
        input_skip(input, size);
    }
    return err ? err : got < 0 ? (int)got : 0;
}

static int vscsi_run(struct input **inputs, size_t count, struct import *import,
                     const void *conf)
{
    int err = import_cannot_tell(import, "result");

    if (!err)
        err = import_cannot_tell(import, "stream");
    if (!err)
        err = import_meta(import, TRACE_META_TIME_UNIT_NS, "1000");
    for (size_t i = 0; i < count && !err; i++)
        err = vscsi_input(inputs[i], import);
    return err;
}

const struct importer importer_vscsi = {
    .name = "vscsi",
    .summary = "VMware vscsiStats / CloudPhysics binary traces",
    .help = "Records of 32 (version 1) or 40 bytes (version 2, with response times): "
            "microseconds, SCSI "
            "commands, 512-byte blocks. Kept: time, latency (version 2), op, offset, length.",
    .sniff = vscsi_sniff,
    .run = vscsi_run,
};
