/* SPDX-License-Identifier: MIT */
#include "convert/outlet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int outlet_open(struct outlet *outlet, struct import *import, const struct exporter *exporter,
                const void *exporter_conf, const char *path, struct trace_sink *given)
{
    struct trace_sink sink;
    int err = 0;

    memset(outlet, 0, sizeof(*outlet));
    outlet->import = import;
    outlet->exporter = exporter;
    outlet->exporter_conf = exporter_conf;
    outlet->exports = calloc(1, sizeof(*outlet->exports));
    if (!outlet->exports)
        return diag_errno(import->diag, -ENOMEM, "output");
    if (given)
        sink = *given;
    else
        err = trace_sink_path(&sink, path, TRACE_SINK_RENAME, true, import->diag);
    if (err < 0)
        return err;
    outlet->opened = true;
    outlet->count = 1;
    return export_open(&outlet->exports[0], import, exporter, exporter_conf, &sink);
}

int outlet_ops(struct outlet *outlet, const struct trace_op *ops, size_t count)
{
    return export_ops(&outlet->exports[0], ops, count);
}

int outlet_close(struct outlet *outlet, bool keep)
{
    int err = 0;

    for (size_t i = 0; i < outlet->count; i++) {
        int closed = export_close(&outlet->exports[i], keep && err == 0);

        if (err == 0)
            err = closed;
    }
    outlet->opened = false;
    return err;
}

void outlet_release(struct outlet *outlet)
{
    if (outlet->opened)
        (void)outlet_close(outlet, false);
    for (size_t i = 0; i < outlet->count; i++)
        export_release(&outlet->exports[i]);
    free(outlet->exports);
    memset(outlet, 0, sizeof(*outlet));
}
