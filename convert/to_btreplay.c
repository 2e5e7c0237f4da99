/* SPDX-License-Identifier: MIT */
/* Bunches for btreplay; see btreplay_format.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert/btreplay_format.h"
#include "convert/exporter.h"
#include "traces/bytes.h"

struct conf {
    uint64_t window_ns, packets;
};

/* The header in front holds totals that only the end knows: the bunches wait in a temporary
 * file. */
struct state {
    FILE *spool;
    uint64_t window_ns, most;
    uint64_t bunches, packets, genesis_ns;
    uint32_t file;
    bool began;
    uint64_t bunch_ns, bunch_packets;
    uint8_t bunch[BTREPLAY_PACKETS_MAX * BTREPLAY_PACKET];
};

/* btreplay takes a time of 0 as none. */
#define BASE_NS 1000000000ull

static int begin(struct export *export, const void *conf, void **ret_state)
{
    const struct conf *options = conf;
    struct state *state = calloc(1, sizeof(*state));
    const char *dir = getenv("TMPDIR");
    char path[4096];
    int fd;

    if (state == NULL)
        return -ENOMEM;
    *ret_state = state;
    state->window_ns = options->window_ns;
    state->most = options->packets;
    state->file = TRACE_NONE_U32;
    if ((size_t)snprintf(path, sizeof(path), "%s/iotape-XXXXXX", dir && *dir ? dir : "/tmp") >=
        sizeof(path))
        return -ENAMETOOLONG;
    fd = mkstemp(path);
    if (fd < 0)
        return diag_errno(export_diag(export), -errno, "%s", path);
    unlink(path);
    state->spool = fdopen(fd, "w+");
    if (state->spool == NULL) {
        close(fd);
        return -ENOMEM;
    }
    return 0;
}

static int flush_bunch(struct state *state)
{
    uint8_t header[BTREPLAY_BUNCH];
    size_t bytes = state->bunch_packets * BTREPLAY_PACKET;

    if (state->bunch_packets == 0)
        return 0;
    store_le64(header, state->bunch_packets);
    store_le64(header + BTREPLAY_BUNCH_TIME, state->bunch_ns);
    if (fwrite(header, 1, sizeof(header), state->spool) != sizeof(header) ||
        fwrite(state->bunch, 1, bytes, state->spool) != bytes)
        return -EIO;
    state->bunches++;
    state->packets += state->bunch_packets;
    state->bunch_packets = 0;
    return 0;
}

static const char *unfit(const struct state *state, const struct trace_op *op)
{
    if (op->kind != TRACE_READ && op->kind != TRACE_WRITE)
        return trace_op_name(op->kind);
    if (op->offset == TRACE_UNKNOWN_U64)
        return "op without an offset";
    if (op->length == 0)
        return "op of 0 bytes";
    if (op->issue_ns < 0)
        return "op before time 0";
    if (state->file != TRACE_NONE_U32 && op->file != state->file)
        return "op of another device: one file is for one (--file, --device)";
    return NULL;
}

static int write_op(struct state *state, struct export *export, const struct trace_op *op)
{
    const char *why = unfit(state, op);
    uint64_t time_ns = (uint64_t)op->issue_ns + BASE_NS;
    uint8_t *packet;
    int err = 0;

    if (why != NULL) {
        export_skip(export, why, 1);
        return 0;
    }
    state->file = op->file;
    if ((op->offset | op->length) & 511)
        export_lost_field(export, "offset below a sector", 1);
    if (op->latency_ns != TRACE_UNKNOWN_U64)
        export_lost_field(export, "latency", 1);
    if (op->result != TRACE_UNKNOWN_I64)
        export_lost_field(export, "result", 1);
    if (op->stream != TRACE_NONE_U32)
        export_lost_field(export, "stream", 1);
    if (op->flags != 0)
        export_lost_field(export, "flags", 1);
    if (!state->began) {
        state->began = true;
        state->genesis_ns = time_ns;
    }
    if (state->bunch_packets > 0 &&
        (state->bunch_packets >= state->most || time_ns - state->bunch_ns > state->window_ns))
        err = flush_bunch(state);
    if (state->bunch_packets == 0)
        state->bunch_ns = time_ns;
    else if (time_ns != state->bunch_ns)
        export_lost_field(export, "time within a bunch", 1);
    packet = state->bunch + state->bunch_packets++ * BTREPLAY_PACKET;
    store_le64(packet, op->offset / 512);
    store_le64(packet + BTREPLAY_PACKET_BYTES, op->length);
    store_le64(packet + BTREPLAY_PACKET_READ, op->kind == TRACE_READ ? 1 : 0);
    return err;
}

static int ops(void *state, struct export *export, const struct trace_op *list, size_t count)
{
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++)
        err = write_op(state, export, &list[i]);
    return err;
}

static int end(void *context, struct export *export)
{
    struct state *state = context;
    uint8_t buffer[65536];
    size_t got;
    int err = flush_bunch(state);

    if (err == 0 && (fflush(state->spool) != 0 || fseek(state->spool, 0, SEEK_SET) != 0))
        err = -errno;
    if (err < 0)
        return diag_errno(export_diag(export), err, "temporary file");
    store_le64(buffer, BTREPLAY_VERSION);
    store_le64(buffer + BTREPLAY_GENESIS, state->genesis_ns);
    store_le64(buffer + BTREPLAY_BUNCHES, state->bunches);
    store_le64(buffer + BTREPLAY_PACKETS, state->packets);
    err = export_write(export, buffer, BTREPLAY_HEADER);
    while (err == 0 && (got = fread(buffer, 1, sizeof(buffer), state->spool)) > 0)
        err = export_write(export, buffer, got);
    return err < 0 ? err : ferror(state->spool) ? -EIO : 0;
}

static void release(void *context)
{
    struct state *state = context;

    if (state != NULL && state->spool != NULL)
        fclose(state->spool);
    free(state);
}

static const struct opt options_table[] = {
    {"window", 0, OPT_TIME, offsetof(struct conf, window_ns), .def = "0", .arg = "TIME",
     .help = "ops this close to a bunch's first join it and are replayed with it; btrecord "
             "uses 10ms"},
    {"packets", 0, OPT_COUNT, offsetof(struct conf, packets), .def = "512", .min = 1,
     .max = BTREPLAY_PACKETS_MAX, .arg = "N", .help = "most ops in a bunch"},
    {0},
};

const struct exporter exporter_btreplay = {
    .name = "btreplay",
    .summary = "bunches for btreplay (name it DEVICE.replay.0)",
    .help = "One device and one CPU a file. Kept: time in ns (of the bunch's first op), reads "
            "and writes with their "
            "sector and bytes. Not kept, and counted: other ops and devices, latencies, "
            "results, streams, flags. "
            "btreplay -d DIR DEVICE replays it.",
    .suffixes = ".replay.0",
    .begin = begin,
    .ops = ops,
    .end = end,
    .release = release,
    .opts = options_table,
    .conf_size = sizeof(struct conf),
};
