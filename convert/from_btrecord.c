/* SPDX-License-Identifier: MIT */
/* btrecord's bunches; see btreplay_format.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "convert/blktrace_format.h"
#include "convert/btreplay_format.h"
#include "convert/importer.h"

struct totals {
    uint64_t bunches, packets, claimed_bunches, claimed_packets, batch;
    bool zero_genesis;
};

static bool is_version(const uint8_t *bytes, bool *ret_swap)
{
    *ret_swap = blktrace_u64(bytes, false) != BTREPLAY_VERSION;
    return blktrace_u64(bytes, *ret_swap) == BTREPLAY_VERSION;
}

static int sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    uint64_t packets;
    bool swap;

    if (length < BTREPLAY_HEADER || !is_version(bytes, &swap))
        return IMPORT_NO;
    if (length < BTREPLAY_HEADER + BTREPLAY_BUNCH)
        return at_end && length == BTREPLAY_HEADER ? IMPORT_LIKELY : IMPORT_NO;
    packets = blktrace_u64(bytes + BTREPLAY_HEADER, swap);
    return packets >= 1 && packets <= BTREPLAY_PACKETS_MAX ? IMPORT_SURE : IMPORT_NO;
}

/* "dir/sda.replay.0" is of device sda. */
static int device_file(struct import *import, const char *name, uint32_t *ret_file)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name,
               *end = strstr(base, ".replay.");
    size_t length = end && end > base ? (size_t)(end - base) : strlen(base);
    struct trace_file facts = {.size_bytes = TRACE_UNKNOWN_U64,
                               .kind = TRACE_FILE_BLOCK,
                               .ops = TRACE_UNKNOWN_U64,
                               .bytes = TRACE_UNKNOWN_U64,
                               .max_end = TRACE_UNKNOWN_U64};
    int err = import_file(import, length ? base : "device", length ? length : 6, ret_file);

    return err < 0 ? err : import_file_facts(import, *ret_file, &facts);
}

static int take_packet(struct input *input, struct import *import, const uint8_t *packet,
                       bool swap, struct trace_op *op)
{
    uint64_t sector = blktrace_u64(packet, swap),
             bytes = blktrace_u64(packet + BTREPLAY_PACKET_BYTES, swap);
    uint32_t read = blktrace_u32(packet + BTREPLAY_PACKET_READ, swap);

    if (read > 1 || sector > INT64_MAX / 512 || bytes > INT64_MAX - sector * 512)
        return import_bad(import, input, 0,
                          "not a packet: sector %llu, %llu bytes, direction %u",
                          (unsigned long long)sector, (unsigned long long)bytes, read);
    op->kind = read ? TRACE_READ : TRACE_WRITE;
    op->offset = sector * 512;
    op->length = bytes;
    return import_op(import, op);
}

/* 1, 0 at the end of the input, or -errno. */
static int take_bunch(struct input *input, struct import *import, bool swap, uint32_t file,
                      struct totals *totals)
{
    const struct import_options *options = import_options(import);
    struct trace_op op = TRACE_OP_INIT;
    const uint8_t *bytes;
    int64_t got = input_peek(input, &bytes, BTREPLAY_BUNCH);
    uint64_t packets, time;
    unsigned __int128 time_ns;

    if (got <= 0)
        return (int)got;
    packets = got == BTREPLAY_BUNCH ? blktrace_u64(bytes, swap) : 1;
    if (packets < 1 || packets > BTREPLAY_PACKETS_MAX)
        return diag_set(import_diag(import), -EBADMSG,
                        "%s: byte %llu: a bunch of %llu packets (1 to %d are possible)",
                        input_name(input), (unsigned long long)input_offset(input),
                        (unsigned long long)packets, BTREPLAY_PACKETS_MAX);
    got = input_peek(input, &bytes, BTREPLAY_BUNCH + packets * BTREPLAY_PACKET);
    if (got < 0)
        return (int)got;
    if ((uint64_t)got < BTREPLAY_BUNCH + packets * BTREPLAY_PACKET) {
        import_note(import,
                    "%s: byte %llu: the last bunch is cut short; everything before it was kept",
                    input_name(input), (unsigned long long)input_offset(input));
        import_lost(import, "cut-bunch", 1);
        input_skip(input, (size_t)got);
        return 0;
    }
    time = blktrace_u64(bytes + BTREPLAY_BUNCH_TIME, swap);
    time_ns = time;
    if (options->time_unit_ns_den != 0)
        time_ns = time_ns * options->time_unit_ns_num / options->time_unit_ns_den;
    if (time_ns > INT64_MAX)
        return import_bad(import, input, 0, "a time of %llu is out of range",
                          (unsigned long long)time);
    op.issue_ns = (int64_t)time_ns;
    op.file = file;
    op.api = TRACE_API_BLOCK;
    op.batch = totals->batch++;
    for (uint64_t i = 0; i < packets; i++) {
        int err =
            take_packet(input, import, bytes + BTREPLAY_BUNCH + i * BTREPLAY_PACKET, swap, &op);

        if (err < 0)
            return err;
    }
    totals->bunches++;
    totals->packets += packets;
    input_skip(input, BTREPLAY_BUNCH + packets * BTREPLAY_PACKET);
    return 1;
}

static int run_one(struct input *input, struct import *import, struct totals *totals)
{
    const uint8_t *bytes;
    int64_t got = input_peek(input, &bytes, BTREPLAY_HEADER);
    uint32_t file;
    bool swap;
    int err;

    if (got <= 0)
        return (int)got;
    if (got < BTREPLAY_HEADER || !is_version(bytes, &swap))
        return diag_set(import_diag(import), -EBADMSG,
                        "%s: byte 0: not a btrecord header of version 1.0.0",
                        input_name(input));
    totals->zero_genesis |= blktrace_u64(bytes + BTREPLAY_GENESIS, swap) == 0;
    totals->claimed_bunches += blktrace_u64(bytes + BTREPLAY_BUNCHES, swap);
    totals->claimed_packets += blktrace_u64(bytes + BTREPLAY_PACKETS, swap);
    input_skip(input, BTREPLAY_HEADER);
    err = device_file(import, input_name(input), &file);
    while (err == 0 && (err = take_bunch(input, import, swap, file, totals)) == 1)
        err = 0;
    return err;
}

static int run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    static const char *const unknown[] = {"latency", "result", "stream"};
    struct totals totals = {0};
    int err = 0;

    (void)conf;
    for (size_t i = 0; i < count && err == 0; i++)
        err = run_one(inputs[i], import, &totals);
    if (err < 0)
        return err;
    if (totals.claimed_bunches != totals.bunches || totals.claimed_packets != totals.packets)
        import_note(import,
                    "the headers claim %llu bunches of %llu packets, there are %llu of %llu: "
                    "read to the end",
                    (unsigned long long)totals.claimed_bunches,
                    (unsigned long long)totals.claimed_packets,
                    (unsigned long long)totals.bunches, (unsigned long long)totals.packets);
    if (totals.zero_genesis && import_options(import)->time_unit_ns_den == 0)
        import_note(
            import,
            "times read as ns, as btrecord writes them; this file was not begun by btrecord "
            "(genesis 0), some writers store microseconds: --time-unit us");
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]) && err == 0; i++)
        err = import_cannot_tell(import, unknown[i]);
    return err;
}

const struct importer importer_btrecord = {
    .name = "btrecord",
    .summary = "btrecord's bunches for btreplay (DEVICE.replay.CPU)",
    .help = "All files of one recording are read together. The ops of a bunch share its time "
            "and its batch, as "
            "btreplay would submit them. The device is named by the file; totals in the header "
            "are not trusted. "
            "--time-unit us is for writers that store microseconds.",
    .flags = IMPORTER_JOINS,
    .sniff = sniff,
    .run = run,
};
