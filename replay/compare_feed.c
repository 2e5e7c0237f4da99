/* SPDX-License-Identifier: MIT */
#include "replay/compare_feed.h"

#include <errno.h>
#include <string.h>

#include "traces/diag.h"

static int tape_feed_sort(struct tape_feed *feed)
{
    const struct trace_op *ops;
    size_t count;
    int err;

    err = trace_sorter_new(&feed->sorter, NULL, feed->diag);
    if (err < 0)
        return err;
    while ((err = trace_reader_next(feed->reader, &ops, &count)) > 0) {
        err = trace_sorter_add(feed->sorter, ops, count);
        if (err < 0)
            return err;
    }
    if (err < 0)
        return err;
    return trace_sorter_finish(feed->sorter);
}

int tape_feed_open(struct tape_feed *feed, const char *path, struct diag *diag)
{
    int err;

    memset(feed, 0, sizeof *feed);
    feed->diag = diag;
    err = trace_reader_open_path(&feed->reader, path, diag);
    if (err < 0)
        return err;
    if (trace_reader_can_seek(feed->reader)) {
        err = trace_reader_load_tables(feed->reader);
        if (err < 0)
            goto out;
        feed->tables_known = true;
    }
    err = 0;
    if (trace_reader_is_raw(feed->reader)) {
        err = tape_feed_sort(feed);
        feed->tables_known = true;
    }
out:
    if (err < 0)
        tape_feed_close(feed);
    return err;
}

int tape_feed_next(struct tape_feed *feed, const struct trace_op **ret_op)
{
    int got;

    while (feed->run_at == feed->run_count) {
        if (feed->sorter)
            got = trace_sorter_next(feed->sorter, &feed->run, &feed->run_count);
        else
            got = trace_reader_next(feed->reader, &feed->run, &feed->run_count);
        feed->run_at = 0;
        if (got <= 0) {
            feed->run_count = 0;
            return got;
        }
    }
    *ret_op = &feed->run[feed->run_at++];
    feed->index++;
    return 1;
}

void tape_feed_close(struct tape_feed *feed)
{
    trace_sorter_free(feed->sorter);
    trace_reader_free(feed->reader);
    memset(feed, 0, sizeof *feed);
}
