/* SPDX-License-Identifier: MIT */
/*
 * Where converted ops leave: one output, or those that --split makes of it. One thread.
 */
#ifndef CONVERT_OUTLET_H
#define CONVERT_OUTLET_H

#include "convert/export.h"
#include "convert/transform.h"

struct outlet {
    struct import *import;
    const struct exporter *exporter;
    const void *exporter_conf;
    struct export *exports; /* room for all that may be */
    size_t count;
    bool opened;
};

/* Writes to path ("-" is standard output), or to sink when it is not NULL (taken over). */
int outlet_open(struct outlet *outlet, struct import *import, const struct exporter *exporter,
                const void *exporter_conf, const char *path, struct trace_sink *sink);
int outlet_ops(struct outlet *outlet, const struct trace_op *ops, size_t count);
/* keep false: nothing is left. The counts stay readable until outlet_release. */
int outlet_close(struct outlet *outlet, bool keep);
void outlet_release(struct outlet *outlet);

#endif
