/* SPDX-License-Identifier: MIT */
/*
 * One event of the block layer, whatever format it was read from (blktrace records, blkparse
 * text), and two stages that turn events into operations:
 *
 *     decoder --> blk_merge (time order over CPUs and files, bounded) --> blk_tracker -->
 * import_op
 */
#ifndef CONVERT_BLK_EVENT_H
#define CONVERT_BLK_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "convert/importer.h"

/* What happened: blktrace's action numbers, and our own for a process name. */
enum blk_act {
    BLK_ACT_QUEUE = 1,
    BLK_ACT_BACK_MERGE = 2,
    BLK_ACT_FRONT_MERGE = 3,
    BLK_ACT_GET_REQUEST = 4,
    BLK_ACT_SLEEP = 5,
    BLK_ACT_REQUEUE = 6,
    BLK_ACT_ISSUE = 7,
    BLK_ACT_COMPLETE = 8,
    BLK_ACT_PLUG = 9,
    BLK_ACT_UNPLUG_IO = 10,
    BLK_ACT_UNPLUG_TIMER = 11,
    BLK_ACT_INSERT = 12,
    BLK_ACT_SPLIT = 13,
    BLK_ACT_BOUNCE = 14,
    BLK_ACT_REMAP = 15,
    BLK_ACT_ABORT = 16,
    BLK_ACT_DRIVER_DATA = 17,
    BLK_ACT_ZONE_PLUG = 18,
    BLK_ACT_ZONE_UNPLUG = 19,
    BLK_ACT_ZONE_MANAGE = 20,
    BLK_ACT_NAME = 30, /* comm is the name of process pid */
    BLK_ACT_LIMIT = 32,
};

/* What kind of request: blktrace's category mask, shifted down. */
enum blk_category {
    BLK_CAT_READ = 1u << 0,
    BLK_CAT_WRITE = 1u << 1,
    BLK_CAT_FLUSH = 1u << 2, /* flush before the data */
    BLK_CAT_SYNC = 1u << 3,
    BLK_CAT_PC = 1u << 9, /* pass-through */
    BLK_CAT_NOTIFY = 1u << 10,
    BLK_CAT_AHEAD = 1u << 11,
    BLK_CAT_META = 1u << 12,
    BLK_CAT_DISCARD = 1u << 13,
    BLK_CAT_FUA = 1u << 15,
    BLK_CAT_ZONE_APPEND = 1u << 16,
    BLK_CAT_ZONE_RESET = 1u << 17,
    BLK_CAT_ZONE_RESET_ALL = 1u << 18,
    BLK_CAT_ZONE_FINISH = 1u << 19,
    BLK_CAT_ZONE_OPEN = 1u << 20,
    BLK_CAT_ZONE_CLOSE = 1u << 21,
    BLK_CAT_WRITE_ZEROES = 1u << 22,
};

#define BLK_COMM_MAX 16

struct blk_event {
    uint64_t time_ns; /* on the source's clock */
    union {
        struct {
            uint64_t sector; /* 512 bytes each, whatever the device's block */
            uint64_t arg;    /* split: the new sector; remap: the device it came from */
        };
        char comm[BLK_COMM_MAX]; /* BLK_ACT_NAME; NUL padded, may fill it */
    };
    uint64_t bytes;
    uint32_t pid;
    uint32_t device; /* major << 20 | minor */
    uint32_t cpu;
    uint32_t category; /* enum blk_category */
    uint32_t stream;   /* TRACE_NONE_U32: by pid and the last BLK_ACT_NAME */
    uint16_t error;    /* completion: -errno as 16 bits */
    uint8_t act;       /* enum blk_act */
};

/* ---- time order ---- */

/*
 * Merges inputs whose events are each in time order per CPU but not over CPUs: per-CPU files,
 * and single streams in which a recorder wrote one CPU's buffer after another's. At most
 * `window` events are held; the caller fills every input up to its share before it pops, so an
 * event is out of place only when a stream steps back further than that. One thread.
 */
struct blk_merge;

int blk_merge_new(struct blk_merge **ret_merge, size_t inputs, size_t window) TRACE_MUST_CHECK;
void blk_merge_free(struct blk_merge *merge); /* NULL is fine */
/* How many events of an input are wanted now, 0 = enough. */
size_t blk_merge_room(const struct blk_merge *merge, size_t input);
/* Copies an event in; 0 or -ENOMEM. A BLK_ACT_NAME keeps its place behind the event before it,
 * whatever its own time. */
int blk_merge_push(struct blk_merge *merge, size_t input,
                   const struct blk_event *event) TRACE_MUST_CHECK;
/* The earliest event, valid until the next call; NULL when none is held. *ret_input is its
 * input. */
const struct blk_event *blk_merge_pop(struct blk_merge *merge, size_t *ret_input);

/* ---- events to operations ---- */

/*
 * Pairs what was asked with its completion and delivers operations.
 *
 * One event a device stands for the I/O: Q where the device has any among the events seen
 * before the first is added, else D, else C; or the one that was asked for. The operation's
 * latency is from that event to the completion of its last byte. A completion that covers
 * merged bios completes each; a request that completes in parts, or was split, completes with
 * its last part; one that was requeued and issued again stays one operation; a write of a flush
 * sequence completes with the closing event of 0 bytes where there is one. At most
 * BLK_TRACKER_PENDING operations wait at a time: the oldest is delivered without latency when
 * one more comes.
 */
#define BLK_TRACKER_PENDING (256u * 1024)

struct blk_tracker;

/* event: 'Q', 'D', 'C' or 0; device: "8,0" or NULL, from import_options. -EINVAL with the diag
 * of the import set when device is not two numbers. */
int blk_tracker_new(struct blk_tracker **ret_tracker, struct import *import) TRACE_MUST_CHECK;
void blk_tracker_free(struct blk_tracker *tracker); /* NULL is fine */
/* Every event, as soon as it is decoded: choice of the event, names. 0 or -errno. */
int blk_tracker_see(struct blk_tracker *tracker,
                    const struct blk_event *event) TRACE_MUST_CHECK;
/* Every event in time order. 0 or -errno. */
int blk_tracker_add(struct blk_tracker *tracker,
                    const struct blk_event *event) TRACE_MUST_CHECK;
/* Delivers what still waits, and the counts and notes of the report. 0 or -errno. */
int blk_tracker_finish(struct blk_tracker *tracker) TRACE_MUST_CHECK;
/* Time of the earliest operation delivered so far; false when there was none. */
bool blk_tracker_first_ns(const struct blk_tracker *tracker, uint64_t *ret_time_ns);

#endif
