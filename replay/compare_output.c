/* SPDX-License-Identifier: MIT */
#include "replay/compare_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traces/diag.h"
#include "traces/trace.h"

int output_text(const char *path, const char *text, size_t bytes, struct diag *diag)
{
    struct trace_sink sink;
    int err, closed;

    err = trace_sink_path(&sink, path, TRACE_SINK_RENAME, true, diag);
    if (err < 0)
        return err;
    err = sink.write(sink.context, text, bytes);
    closed = sink.close(sink.context, err == 0);
    if (err == 0)
        err = closed;
    return err < 0 ? diag_errno(diag, err, "%s", path) : 0;
}

int output_json(const char *path, const json_t *root, struct diag *diag)
{
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : NULL;
    size_t bytes;
    int err;

    if (!text)
        return diag_set(diag, -ENOMEM, "%s: not enough memory for the report", path);
    bytes = strlen(text);
    text[bytes++] = '\n'; /* in place of the end mark: the length is passed along */
    err = output_text(path, text, bytes, diag);
    free(text);
    return err;
}
