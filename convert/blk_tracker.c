/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/blk_event.h"
#include "convert/blk_names.h"
#include "convert/blk_pending.h"

#define TRACKER_DEVICES_MAX 4096u
#define TRACKER_REMAPS_MAX  64u
/* An operation without a completion for this long before the end had its completion lost. */
#define TRACKER_IN_FLIGHT_NS (120ull * 1000 * 1000 * 1000)

/* What makes two requests of one sector different things. */
enum lane {
    LANE_READ,
    LANE_WRITE,
    LANE_DISCARD,
    LANE_APPEND,
    LANE_NONE,
    LANE_PC
};

struct device {
    uint32_t number, file;
    uint64_t seen[3]; /* events of reads and writes and the like: Q, D, C */
    uint64_t ops;
    char event; /* 'Q', 'D', 'C' once chosen */
    bool has_file;
};

struct blk_tracker {
    struct import *import;
    struct device *devices;
    uint32_t device_count, device_size, device_last;
    char event_asked;
    bool only_set, started;
    uint32_t only;
    struct blk_pending *pending;
    struct blk_names *names;
    uint64_t acts[BLK_ACT_LIMIT]; /* events that became no operation, by kind */
    uint64_t passthrough, reissued, closing, unmatched, no_kind, other_device, no_latency,
        with_latency;
    uint64_t inflight, late_queue, out_of_range;
    uint32_t remaps[TRACKER_REMAPS_MAX][2]; /* from, to */
    uint32_t remap_count;
    uint64_t last_ns, first_op_ns;
    bool any_op;
};

static int parse_device(struct blk_tracker *tracker, const char *text)
{
    unsigned long major, minor;
    char *end;

    if (text == NULL)
        return 0;
    errno = 0;
    major = strtoul(text, &end, 10);
    if (end != text && (*end == ',' || *end == ':') && end[1] >= '0' && end[1] <= '9') {
        minor = strtoul(end + 1, &end, 10);
        if (*end == '\0' && errno == 0 && major < 4096 && minor < 1048576) {
            tracker->only_set = true;
            tracker->only = (uint32_t)(major << 20 | minor);
            return 0;
        }
    }
    return diag_set(import_diag(tracker->import), -EINVAL,
                    "--device %s: a block trace names devices by number: MAJOR,MINOR, as 8,0",
                    text);
}

int blk_tracker_new(struct blk_tracker **ret_tracker, struct import *import)
{
    const struct import_options *options = import_options(import);
    struct blk_tracker *tracker = calloc(1, sizeof(*tracker));
    int err = -ENOMEM;

    if (tracker == NULL)
        return -ENOMEM;
    tracker->import = import;
    tracker->event_asked = options->event;
    err = parse_device(tracker, options->device);
    if (err == 0)
        err = blk_pending_new(&tracker->pending, import, BLK_TRACKER_PENDING);
    if (err == 0)
        err = blk_names_new(&tracker->names, import);
    if (err < 0) {
        blk_tracker_free(tracker);
        return err;
    }
    *ret_tracker = tracker;
    return 0;
}

void blk_tracker_free(struct blk_tracker *tracker)
{
    if (tracker == NULL)
        return;
    blk_pending_free(tracker->pending);
    blk_names_free(tracker->names);
    free(tracker->devices);
    free(tracker);
}

bool blk_tracker_first_ns(const struct blk_tracker *tracker, uint64_t *ret_time_ns)
{
    if (tracker->any_op)
        *ret_time_ns = tracker->first_op_ns;
    return tracker->any_op;
}

static int device_of(struct blk_tracker *tracker, uint32_t number, uint32_t *ret_index)
{
    uint32_t i = tracker->device_last;

    if (i < tracker->device_count && tracker->devices[i].number == number) {
        *ret_index = i;
        return 0;
    }
    for (i = 0; i < tracker->device_count; i++)
        if (tracker->devices[i].number == number)
            break;
    if (i == TRACKER_DEVICES_MAX)
        return diag_set(import_diag(tracker->import), -E2BIG,
                        "more than %u devices in one block trace", TRACKER_DEVICES_MAX);
    if (i == tracker->device_count) {
        if (i == tracker->device_size) {
            uint32_t size = i ? 2 * i : 16;
            struct device *devices = realloc(tracker->devices, size * sizeof(*devices));

            if (devices == NULL)
                return -ENOMEM;
            tracker->devices = devices;
            tracker->device_size = size;
        }
        tracker->devices[i] = (struct device){.number = number};
        tracker->device_count++;
    }
    tracker->device_last = *ret_index = i;
    return 0;
}

int blk_tracker_see(struct blk_tracker *tracker, const struct blk_event *event)
{
    uint32_t index;
    int err, slot;

    if (event->act == BLK_ACT_NAME)
        return blk_names_see(tracker->names, event->pid, event->comm);
    slot = event->act == BLK_ACT_QUEUE      ? 0
           : event->act == BLK_ACT_ISSUE    ? 1
           : event->act == BLK_ACT_COMPLETE ? 2
                                            : -1;
    if (slot < 0)
        return 0;
    if ((err = device_of(tracker, event->device, &index)) < 0)
        return err;
    tracker->devices[index].seen[slot]++;
    return 0;
}

/* The automatic choice, once, when the first event in time order comes. */
static void choose_events(struct blk_tracker *tracker)
{
    for (uint32_t i = 0; i < tracker->device_count; i++) {
        struct device *device = &tracker->devices[i];

        if (device->event != 0)
            continue;
        device->event = tracker->event_asked ? tracker->event_asked
                        : device->seen[0]    ? 'Q'
                        : device->seen[1]    ? 'D'
                        : device->seen[2]    ? 'C'
                                             : 0;
    }
    tracker->started = true;
}

static enum lane lane_of(const struct blk_event *event)
{
    if (event->category & BLK_CAT_PC)
        return LANE_PC;
    if (event->category & BLK_CAT_DISCARD)
        return LANE_DISCARD;
    if (event->category & BLK_CAT_ZONE_APPEND)
        return LANE_APPEND;
    if (event->category & BLK_CAT_WRITE)
        return LANE_WRITE;
    /* Text prints no size for a split. */
    if (event->bytes > 0 || (event->act == BLK_ACT_SPLIT && (event->category & BLK_CAT_READ)))
        return LANE_READ;
    return LANE_NONE;
}

static bool is_flush(const struct blk_event *event)
{
    return (event->category & (BLK_CAT_FLUSH | BLK_CAT_PC | BLK_CAT_DISCARD)) ==
               BLK_CAT_FLUSH &&
           event->bytes == 0;
}

static unsigned int zone_kind(uint32_t category)
{
    if (category & BLK_CAT_ZONE_APPEND)
        return TRACE_ZONE_APPEND;
    if (category & (BLK_CAT_ZONE_RESET | BLK_CAT_ZONE_RESET_ALL))
        return TRACE_ZONE_RESET;
    if (category & BLK_CAT_ZONE_FINISH)
        return TRACE_ZONE_FINISH;
    if (category & BLK_CAT_ZONE_OPEN)
        return TRACE_ZONE_OPEN;
    if (category & BLK_CAT_ZONE_CLOSE)
        return TRACE_ZONE_CLOSE;
    return TRACE_OP_COUNT;
}

static unsigned int kind_of(const struct blk_event *event, enum lane lane)
{
    unsigned int zone = zone_kind(event->category);

    if (lane == LANE_PC)
        return TRACE_PASSTHROUGH;
    if (zone != TRACE_OP_COUNT)
        return zone;
    if (event->category & BLK_CAT_WRITE_ZEROES)
        return TRACE_WRITE_ZEROES;
    if (is_flush(event))
        return TRACE_FLUSH;
    switch (lane) {
    case LANE_READ: return TRACE_READ;
    case LANE_WRITE: return TRACE_WRITE;
    case LANE_DISCARD: return TRACE_DISCARD;
    case LANE_APPEND:
    case LANE_NONE:
    case LANE_PC: break;
    }
    return TRACE_PASSTHROUGH;
}

static uint32_t flags_of(uint32_t category)
{
    static const struct {
        uint32_t category, flag;
    } map[] = {
        {BLK_CAT_FLUSH, TRACE_F_PREFLUSH}, {BLK_CAT_FUA, TRACE_F_FUA},
        {BLK_CAT_SYNC, TRACE_F_SYNC},      {BLK_CAT_AHEAD, TRACE_F_READAHEAD},
        {BLK_CAT_META, TRACE_F_META},
    };
    uint32_t flags = 0;

    for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
        if (category & map[i].category)
            flags |= map[i].flag;
    return flags;
}

static int fill_op(struct blk_tracker *tracker, struct device *device,
                   const struct blk_event *event, enum lane lane, struct trace_op *op)
{
    int err;

    if (!device->has_file) {
        err = import_device(tracker->import, device->number >> 20, device->number & 0xfffff,
                            &device->file);
        if (err < 0)
            return err;
        device->has_file = true;
    }
    *op = (struct trace_op)TRACE_OP_INIT;
    op->issue_ns = (int64_t)event->time_ns;
    op->kind = (uint8_t)kind_of(event, lane);
    op->api = TRACE_API_BLOCK;
    op->file = device->file;
    op->flags = flags_of(event->category);
    if (op->kind == TRACE_FLUSH)
        op->flags &= ~(uint32_t)TRACE_F_PREFLUSH;
    else
        op->length = event->bytes;
    if (op->kind != TRACE_FLUSH && op->kind != TRACE_PASSTHROUGH &&
        event->sector <= UINT64_MAX / 512)
        op->offset = event->sector * 512;
    if (event->stream != TRACE_NONE_U32)
        op->stream = event->stream;
    else if (device->event != 'C' &&
             (err = blk_names_stream(tracker->names, event->pid, &op->stream)) < 0)
        return err;
    return 0;
}

static enum blk_wait wait_of(char stands, const struct blk_event *event, enum lane lane)
{
    if (event->bytes == 0)
        return BLK_WAIT_PLAIN;
    if (lane == LANE_APPEND || (lane == LANE_DISCARD && stands == 'Q'))
        return BLK_WAIT_LOOSE;
    return stands == 'Q' && lane == LANE_WRITE &&
                   (event->category & (BLK_CAT_FLUSH | BLK_CAT_FUA))
               ? BLK_WAIT_SEQUENCE
               : BLK_WAIT_PLAIN;
}

/* The event that stands for the I/O: a new operation. */
static int begin_op(struct blk_tracker *tracker, uint32_t index, const struct blk_event *event,
                    enum lane lane)
{
    struct device *device = &tracker->devices[index];
    struct blk_piece_key key = {event->sector, index, (uint8_t)lane};
    struct trace_op op;
    int err;

    if (event->time_ns > INT64_MAX) {
        tracker->out_of_range++;
        return 0;
    }
    if (device->event == 'D' && blk_pending_reissue(tracker->pending, &key, event->bytes)) {
        tracker->reissued++;
        return 0;
    }
    if ((err = fill_op(tracker, device, event, lane, &op)) < 0)
        return err;
    if (lane == LANE_NONE && op.kind == TRACE_PASSTHROUGH)
        tracker->no_kind++;
    if (!tracker->any_op || event->time_ns < tracker->first_op_ns)
        tracker->first_op_ns = event->time_ns;
    tracker->any_op = true;
    device->ops++;
    if (device->event == 'C') {
        int16_t error = (int16_t)event->error;

        op.result = error != 0 ? (error < 0 ? error : -error) : (int64_t)event->bytes;
        return import_op(tracker->import, &op);
    }
    if (device->seen[2] == 0)
        return import_op(tracker->import, &op);
    if (event->bytes == 0 || lane == LANE_PC)
        key.sector = 0;
    return blk_pending_add(tracker->pending, &key, &op, lane == LANE_PC ? 0 : event->bytes,
                           wait_of(device->event, event, lane));
}

static int complete(struct blk_tracker *tracker, uint32_t index, const struct blk_event *event,
                    enum lane lane)
{
    struct blk_piece_key key = {event->sector, index, (uint8_t)lane};
    int16_t error = (int16_t)event->error;
    struct blk_completion done = {event->time_ns, error > 0 ? -error : error, event->bytes};
    int ret;

    if (lane == LANE_PC)
        key.sector = 0;
    if (lane == LANE_APPEND)
        ret = blk_pending_complete_append(tracker->pending, &key, &done);
    else if (event->bytes > 0 && lane != LANE_PC)
        ret = blk_pending_complete(tracker->pending, &key, &done);
    else
        ret = blk_pending_complete_empty(tracker->pending, &key, &done);
    if (ret == 0 && lane == LANE_WRITE && event->bytes > 0) {
        /* Where the kernel makes appends of writes, only the queue event says append. */
        key.lane = LANE_APPEND;
        ret = blk_pending_complete_append(tracker->pending, &key, &done);
    }
    if (ret == 0 && event->bytes == 0)
        tracker->closing++;
    else if (ret == 0)
        tracker->unmatched++;
    return ret < 0 ? ret : 0;
}

static void note_remap(struct blk_tracker *tracker, const struct blk_event *event)
{
    uint32_t from = (uint32_t)event->arg;

    for (uint32_t i = 0; i < tracker->remap_count; i++)
        if (tracker->remaps[i][0] == from && tracker->remaps[i][1] == event->device)
            return;
    if (tracker->remap_count == TRACKER_REMAPS_MAX)
        return;
    tracker->remaps[tracker->remap_count][0] = from;
    tracker->remaps[tracker->remap_count++][1] = event->device;
}

/* Events that change what is known of an operation that waits. */
static void amend(struct blk_tracker *tracker, uint32_t index, const struct blk_event *event,
                  enum lane lane)
{
    struct blk_piece_key key = {event->sector, index, (uint8_t)lane};

    tracker->acts[event->act]++;
    switch (event->act) {
    case BLK_ACT_BACK_MERGE:
    case BLK_ACT_FRONT_MERGE: blk_pending_merged(tracker->pending, &key, event->bytes); break;
    case BLK_ACT_REQUEUE: blk_pending_requeued(tracker->pending, &key, event->bytes); break;
    case BLK_ACT_SPLIT: blk_pending_split(tracker->pending, &key, event->arg); break;
    case BLK_ACT_REMAP: note_remap(tracker, event); break;
    default: break;
    }
}

int blk_tracker_add(struct blk_tracker *tracker, const struct blk_event *event)
{
    enum lane lane = lane_of(event);
    struct device *device;
    uint32_t index;
    char stands;
    int err;

    if (event->act == BLK_ACT_NAME)
        return blk_names_set(tracker->names, event->pid, event->comm);
    if (tracker->only_set && event->device != tracker->only) {
        tracker->other_device++;
        return 0;
    }
    if ((err = device_of(tracker, event->device, &index)) < 0)
        return err;
    if (!tracker->started || tracker->devices[index].event == 0)
        choose_events(tracker);
    device = &tracker->devices[index];
    if (event->time_ns > tracker->last_ns)
        tracker->last_ns = event->time_ns;
    stands = event->act == BLK_ACT_QUEUE      ? 'Q'
             : event->act == BLK_ACT_ISSUE    ? 'D'
             : event->act == BLK_ACT_COMPLETE ? 'C'
                                              : 0;
    if (stands != 0 && stands == device->event) {
        /* Only the closing events of flush sequences are empty writes. */
        if (stands != 'C' || lane != LANE_WRITE || event->bytes > 0)
            return begin_op(tracker, index, event, lane);
        tracker->closing++;
        return 0;
    }
    if (stands == 'C')
        return complete(tracker, index, event, lane);
    if (stands == 'D' && lane == LANE_PC)
        tracker->passthrough++;
    if (stands == 'D' && lane == LANE_DISCARD)
        blk_pending_issued(tracker->pending,
                           &(struct blk_piece_key){event->sector, index, (uint8_t)lane},
                           event->bytes);
    if (stands == 'Q' && tracker->event_asked == 0)
        tracker->late_queue++;
    amend(tracker, index, event, lane);
    return 0;
}

static const char *const act_kinds[BLK_ACT_LIMIT] = {
    [BLK_ACT_QUEUE] = "queue event",
    [BLK_ACT_BACK_MERGE] = "merge event",
    [BLK_ACT_FRONT_MERGE] = "front merge event",
    [BLK_ACT_GET_REQUEST] = "get-request event",
    [BLK_ACT_SLEEP] = "wait-for-request event",
    [BLK_ACT_REQUEUE] = "requeue event",
    [BLK_ACT_ISSUE] = "issue event",
    [BLK_ACT_PLUG] = "plug event",
    [BLK_ACT_UNPLUG_IO] = "unplug event",
    [BLK_ACT_UNPLUG_TIMER] = "timer unplug event",
    [BLK_ACT_INSERT] = "insert event",
    [BLK_ACT_SPLIT] = "split event",
    [BLK_ACT_BOUNCE] = "bounce event",
    [BLK_ACT_REMAP] = "remap event",
    [BLK_ACT_ABORT] = "abort event",
    [BLK_ACT_DRIVER_DATA] = "driver data event",
    [BLK_ACT_ZONE_PLUG] = "zone plug event",
    [BLK_ACT_ZONE_UNPLUG] = "zone unplug event",
    [BLK_ACT_ZONE_MANAGE] = "zone management event",
};

static void report_skips(struct blk_tracker *tracker)
{
    struct import *import = tracker->import;

    for (unsigned int act = 0; act < BLK_ACT_LIMIT; act++)
        if (tracker->acts[act] > 0)
            import_skip(import, act_kinds[act] ? act_kinds[act] : "unknown event",
                        tracker->acts[act]);
    if (tracker->other_device > 0)
        import_skip(import, "event of another device", tracker->other_device);
    if (tracker->reissued > 0)
        import_skip(import, "issue after a requeue", tracker->reissued);
    if (tracker->closing > 0)
        import_skip(import, "completion of 0 bytes", tracker->closing);
    if (tracker->unmatched > 0)
        import_skip(import, "completion of nothing seen", tracker->unmatched);
    if (tracker->out_of_range > 0)
        import_skip(import, "event with a time out of range", tracker->out_of_range);
    if (tracker->passthrough > 0)
        import_note(import,
                    "%llu pass-through requests were issued beside the I/O; they have no Q "
                    "event and are no operations here",
                    (unsigned long long)tracker->passthrough);
    if (tracker->no_kind > 0)
        import_note(import,
                    "%llu requests moved no data and were no flush: kept as passthrough",
                    (unsigned long long)tracker->no_kind);
    if (tracker->late_queue > 0)
        import_note(import, "%llu Q events came after D or C was chosen: --event Q takes them",
                    (unsigned long long)tracker->late_queue);
}

static void note_device_event(struct blk_tracker *tracker, const struct device *device)
{
    static const char *const words[] = {"queued", "issued to the device", "completed"};
    const char *word = words[device->event == 'Q' ? 0 : device->event == 'D' ? 1 : 2];

    if (device->event == 'C')
        import_note(
            tracker->import,
            "device %u,%u: C (completed) stands for the I/O%s: times are completions, there "
            "are no latencies and no processes",
            device->number >> 20, device->number & 0xfffff,
            tracker->event_asked ? "" : ", as it has no Q or D");
    else
        import_note(tracker->import, "device %u,%u: %c (%s) stands for the I/O%s%s",
                    device->number >> 20, device->number & 0xfffff, device->event, word,
                    device->event == 'D' && !tracker->event_asked ? ", as it has no Q" : "",
                    device->seen[2] ? ", latency is from it to C"
                                    : "; it has no C, so no latencies");
}

/* Stacked devices in one capture carry the same bytes twice. */
static void note_stacked(struct blk_tracker *tracker)
{
    for (uint32_t i = 0; i < tracker->remap_count; i++) {
        const struct device *from = NULL, *to = NULL;

        for (uint32_t d = 0; d < tracker->device_count; d++) {
            if (tracker->devices[d].number == tracker->remaps[i][0])
                from = &tracker->devices[d];
            if (tracker->devices[d].number == tracker->remaps[i][1])
                to = &tracker->devices[d];
        }
        if (from == NULL || to == NULL || from == to || from->ops == 0 || to->ops == 0)
            continue;
        import_note(
            tracker->import,
            "device %u,%u lies on %u,%u and both were traced: the same I/O is here twice; "
            "--device takes one",
            from->number >> 20, from->number & 0xfffff, to->number >> 20, to->number & 0xfffff);
    }
}

static int report_events(struct blk_tracker *tracker)
{
    char text[4] = "";
    bool completions = false;
    int err = 0;

    for (uint32_t i = 0; i < tracker->device_count; i++) {
        const struct device *device = &tracker->devices[i];

        if (device->event == 0 || (tracker->only_set && device->number != tracker->only))
            continue;
        note_device_event(tracker, device);
        if (device->event != 'C' && device->seen[2] > 0)
            completions = true;
        if (strchr(text, device->event) == NULL && strlen(text) < 3)
            strncat(text, &device->event, 1);
    }
    if (text[0] != '\0')
        err = import_meta(tracker->import, TRACE_META_EVENT, text);
    if (err == 0 && !completions)
        err = import_cannot_tell(tracker->import, "latency");
    if (err == 0 && !completions && strchr(text, 'C') == NULL)
        err = import_cannot_tell(tracker->import, "result");
    if (err == 0 && strchr(text, 'C') != NULL)
        err = import_cannot_tell(tracker->import, "stream");
    return err;
}

int blk_tracker_finish(struct blk_tracker *tracker)
{
    uint64_t flight_ns =
        tracker->last_ns > TRACKER_IN_FLIGHT_NS ? tracker->last_ns - TRACKER_IN_FLIGHT_NS : 0;
    struct blk_pending_counts counts;
    int err;

    if (!tracker->started)
        choose_events(tracker);
    err = blk_pending_finish(tracker->pending, flight_ns, &counts);
    if (err < 0)
        return err;
    report_skips(tracker);
    if (counts.in_flight > 0)
        import_note(tracker->import, "%llu operations had not completed when the capture ended",
                    (unsigned long long)counts.in_flight);
    if (counts.given_up > 0)
        import_note(tracker->import,
                    "%llu operations have no completion in the capture: no latency",
                    (unsigned long long)counts.given_up);
    note_stacked(tracker);
    return report_events(tracker);
}
