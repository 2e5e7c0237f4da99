/* SPDX-License-Identifier: MIT */
#include "replay/tape.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traces/diag.h"
#include "traces/sort.h"

/* Normalises what the reader holds into an unlinked temporary and opens that instead. */
static int normalise(struct tape *tape, struct diag *diag)
{
    const char *dir = getenv("TMPDIR");
    struct trace_reader *whole = NULL;
    struct trace_sink sink;
    struct trace_damage damage;
    char path[4096];
    int fd, err;

    snprintf(path, sizeof path, "%s/iotape-replay.XXXXXX", dir && *dir ? dir : "/tmp");
    fd = mkstemp(path);
    if (fd < 0)
        return diag_errno(diag, -errno, "%s", path);
    close(fd);
    diag_note(diag, "%s is %s: normalised to a temporary first", trace_reader_name(tape->reader),
              trace_reader_is_raw(tape->reader) ? "raw" : "not a file");
    err = trace_sink_path(&sink, path, TRACE_SINK_IN_PLACE, true, diag);
    if (err == 0)
        err = trace_normalise(tape->reader, &sink, NULL, diag);
    trace_reader_damage(tape->reader, &damage);
    tape->damaged_ops = damage.ops;
    tape->truncated = damage.truncated;
    tape->lost = trace_reader_lost(tape->reader);
    if (err == 0)
        err = trace_reader_open_path(&whole, path, diag);
    unlink(path);
    if (err != 0)
        return err;
    trace_reader_free(tape->reader);
    tape->reader = whole;
    tape->normalised = true;
    return 0;
}

int tape_open(struct tape *ret_tape, const char *path, struct diag *diag)
{
    struct tape tape = {0};
    int err = trace_reader_open_path(&tape.reader, path, diag);

    if (err != 0)
        return err;
    if (trace_reader_is_raw(tape.reader) || !trace_reader_can_seek(tape.reader))
        err = normalise(&tape, diag);
    if (err == 0)
        err = trace_reader_load_tables(tape.reader);
    if (err != 0) {
        diag_errno(diag, err, "%s", path);
        trace_reader_free(tape.reader);
        return err;
    }
    *ret_tape = tape;
    return 0;
}

void tape_close(struct tape *tape)
{
    trace_reader_free(tape->reader);
    tape->reader = NULL;
}
