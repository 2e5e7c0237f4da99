/* SPDX-License-Identifier: MIT */
/* blktrace's binary records, version 7, as one CPU's file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/blk_emit.h"
#include "convert/blktrace_format.h"
#include "traces/bytes.h"

struct conf {
    bool issue;
};

struct state {
    uint32_t sequence;
    bool began;
};

static void header(uint8_t *at, const struct blk_event *event, uint32_t sequence,
                   uint32_t action, uint16_t pdu_bytes)
{
    bool notice = action & BLK_TC_ACT(BLK_TC_NOTIFY);

    memset(at, 0, BLKTRACE_V7_HEADER);
    store_le32(at, BLKTRACE_MAGIC_V7);
    store_le32(at + BLKTRACE_SEQUENCE, sequence);
    store_le64(at + BLKTRACE_TIME, event->time_ns);
    store_le64(at + BLKTRACE_SECTOR, notice ? 0 : event->sector);
    store_le32(at + BLKTRACE_BYTES, notice ? 0 : (uint32_t)event->bytes);
    store_le32(at + BLKTRACE_V7_ACTION, action);
    store_le32(at + BLKTRACE_V7_PID, event->pid);
    store_le32(at + BLKTRACE_V7_DEVICE, event->device);
    store_le32(at + BLKTRACE_V7_CPU, 0);
    store_le16(at + BLKTRACE_V7_ERROR, notice ? 0 : event->error);
    store_le16(at + BLKTRACE_V7_PDU_LEN, pdu_bytes);
}

/* The wall clock at the first event, in front of everything. */
static int write_wall(struct export *export, const struct blk_event *event)
{
    const char *wall = export_meta(export, TRACE_META_START_WALL);
    uint8_t bytes[BLKTRACE_V7_HEADER + 8];
    struct blk_event at = *event;
    long long wall_ns = wall ? strtoll(wall, NULL, 10) : 0;

    if (wall_ns <= 0 || wall_ns / 1000000000 > UINT32_MAX)
        return 0;
    at.pid = 0;
    at.time_ns = BLK_EMIT_BASE_NS;
    header(bytes, &at, 0, BLK_TN_TIMESTAMP, 8);
    store_le32(bytes + BLKTRACE_V7_HEADER, (uint32_t)(wall_ns / 1000000000));
    store_le32(bytes + BLKTRACE_V7_HEADER + 4, (uint32_t)(wall_ns % 1000000000));
    return export_write(export, bytes, sizeof(bytes));
}

static int write_event(void *context, struct export *export, const struct blk_event *event,
                       const char *comm, bool first_of_pid)
{
    struct state *state = context;
    uint32_t category = event->category;
    uint8_t bytes[BLKTRACE_V7_HEADER + BLK_COMM_MAX];
    int err = 0;

    if (!state->began) {
        state->began = true;
        err = write_wall(export, event);
    }
    if (err == 0 && first_of_pid && comm[0] != '\0') {
        header(bytes, event, 0, BLK_TN_PROCESS, BLK_COMM_MAX);
        memcpy(bytes + BLKTRACE_V7_HEADER, comm, BLK_COMM_MAX);
        err = export_write(export, bytes, sizeof(bytes));
    }
    if (err < 0)
        return err;
    category |= event->act == BLK_ACT_QUEUE   ? BLK_TC_QUEUE
                : event->act == BLK_ACT_ISSUE ? BLK_TC_ISSUE
                                              : BLK_TC_COMPLETE;
    header(bytes, event, ++state->sequence, category << BLK_TC_SHIFT | event->act, 0);
    return export_write(export, bytes, BLKTRACE_V7_HEADER);
}

static int begin(struct export *export, const void *conf, void **ret_state)
{
    return blk_emit_begin(export, ((const struct conf *)conf)->issue, write_event,
                          sizeof(struct state), ret_state);
}

static const struct opt options_table[] = {
    {"issue", 0, OPT_FLAG, offsetof(struct conf, issue), .def = "1",
     .help = "write a D (issue) event at the time of each Q, which btt and iowatcher need; "
             "issue=0 leaves it out"},
    {0},
};

const struct exporter exporter_blktrace = {
    .name = "blktrace",
    .summary = "blktrace's binary records (version 7), one CPU's file",
    .help = "Each read, write, discard and flush becomes a Q, a D at the same time (unless "
            "issue=0) and, when its "
            "latency is known, a C. Kept: time, latency, kind, offset and length in sectors, "
            "process id and name, the "
            "flags fua, preflush, sync, readahead and meta, errors. Not kept, and counted: "
            "other ops, bytes below a "
            "sector, short results, batches, other flags. Files that are no numbered devices "
            "get device numbers with "
            "major 240, which are printed. Name it NAME.blktrace.0 for blkparse -i NAME, btt "
            "and btrecord.",
    .suffixes = ".blktrace.0",
    .begin = begin,
    .ops = blk_emit_ops,
    .end = blk_emit_end,
    .release = blk_emit_release,
    .opts = options_table,
    .conf_size = sizeof(struct conf),
};
