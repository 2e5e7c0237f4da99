/* SPDX-License-Identifier: MIT */
/* Event lines as blkparse prints them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/blk_emit.h"

struct conf {
    bool issue;
};

struct state {
    uint32_t sequence;
};

static void letters_of(const struct blk_event *event, char *letters)
{
    uint32_t category = event->category;

    if (category & BLK_CAT_FLUSH)
        *letters++ = 'F';
    *letters++ = category & BLK_CAT_DISCARD ? 'D'
                 : category & BLK_CAT_WRITE ? 'W'
                 : event->bytes > 0         ? 'R'
                                            : 'N';
    if (category & BLK_CAT_FUA)
        *letters++ = 'F';
    if (category & BLK_CAT_AHEAD)
        *letters++ = 'A';
    if (category & BLK_CAT_SYNC)
        *letters++ = 'S';
    if (category & BLK_CAT_META)
        *letters++ = 'M';
    *letters = '\0';
}

static int write_event(void *context, struct export *export, const struct blk_event *event,
                       const char *comm, bool first_of_pid)
{
    struct state *state = context;
    bool complete = event->act == BLK_ACT_COMPLETE;
    uint64_t time_ns = event->time_ns - BLK_EMIT_BASE_NS;
    char letters[8], name[BLK_COMM_MAX + 1] = "";
    int err;

    (void)first_of_pid;
    memcpy(name, comm, BLK_COMM_MAX);
    for (char *at = name; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = '?';
    letters_of(event, letters);
    err = export_printf(export, "%3u,%-3u %2u %8u %5llu.%09llu %5u %2s %3s ",
                        event->device >> 20, event->device & 0xfffff, 0u, ++state->sequence,
                        (unsigned long long)(time_ns / 1000000000),
                        (unsigned long long)(time_ns % 1000000000), event->pid,
                        complete                      ? "C"
                        : event->act == BLK_ACT_ISSUE ? "D"
                                                      : "Q",
                        letters);
    if (err == 0 && event->bytes > 0)
        err = export_printf(export, "%llu + %llu ", (unsigned long long)event->sector,
                            (unsigned long long)(event->bytes >> 9));
    else if (err == 0 && complete)
        err = export_printf(export, "%llu ", (unsigned long long)event->sector);
    if (err == 0)
        err = complete ? export_printf(export, "[%u]\n", event->error)
                       : export_printf(export, "[%s]\n", name);
    return err;
}

static int begin(struct export *export, const void *conf, void **ret_state)
{
    return blk_emit_begin(export, ((const struct conf *)conf)->issue, write_event,
                          sizeof(struct state), ret_state);
}

static const struct opt options_table[] = {
    {"issue", 0, OPT_FLAG, offsetof(struct conf, issue), .def = "1",
     .help = "write a D (issue) line at the time of each Q; issue=0 leaves it out"},
    {0},
};

const struct exporter exporter_blkparse = {
    .name = "blkparse",
    .summary = "event lines as blkparse prints them",
    .help = "As the exporter blktrace, in text: Q, D and C lines with times from the first "
            "event, without the "
            "summaries. Lengths are whole sectors there.",
    .suffixes = ".blkparse",
    .begin = begin,
    .ops = blk_emit_ops,
    .end = blk_emit_end,
    .release = blk_emit_release,
    .opts = options_table,
    .conf_size = sizeof(struct conf),
};
