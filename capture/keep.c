/* SPDX-License-Identifier: MIT */
#include "capture/keep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void keep_init(struct keep *keep, uint64_t span_ns, uint64_t limit_bytes)
{
    memset(keep, 0, sizeof(*keep));
    keep->span_ns = span_ns;
    keep->limit = (size_t)(limit_bytes / sizeof(struct trace_op));
    if (keep->limit < 1024)
        keep->limit = 1024;
}

void keep_release(struct keep *keep)
{
    free(keep->ops);
    memset(keep, 0, sizeof(*keep));
}

static int keep_grow(struct keep *keep)
{
    size_t room = keep->room ? keep->room * 2 : 1024;
    struct trace_op *ops;

    if (room > keep->limit)
        room = keep->limit;
    ops = malloc(room * sizeof(*ops));
    if (!ops)
        return -ENOMEM;
    for (size_t i = 0; i < keep->count; i++)
        ops[i] = keep->ops[(keep->first + i) % keep->room];
    free(keep->ops);
    keep->ops = ops;
    keep->first = 0;
    keep->room = room;
    return 0;
}

static void keep_drop_first(struct keep *keep)
{
    keep->first = (keep->first + 1) % keep->room;
    keep->count--;
}

int keep_add(struct keep *keep, const struct trace_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (keep->count == keep->room && keep->room < keep->limit) {
            int err = keep_grow(keep);

            if (err)
                return err;
        }
        if (keep->count == keep->room) {
            keep_drop_first(keep);
            keep->cut++;
        }
        keep->ops[(keep->first + keep->count++) % keep->room] = ops[i];
    }
    return 0;
}

void keep_expire(struct keep *keep, int64_t now_ns)
{
    while (keep->count > 0 && keep->ops[keep->first].issue_ns < now_ns - (int64_t)keep->span_ns)
        keep_drop_first(keep);
}

size_t keep_run(const struct keep *keep, size_t index, const struct trace_op **ret_ops)
{
    size_t at, run;

    if (index >= keep->count)
        return 0;
    at = (keep->first + index) % keep->room;
    run = keep->count - index;
    if (run > keep->room - at)
        run = keep->room - at;
    *ret_ops = &keep->ops[at];
    return run;
}

void keep_clear(struct keep *keep)
{
    keep->first = keep->count = 0;
    keep->cut = 0;
}
