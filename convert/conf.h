/* SPDX-License-Identifier: MIT */
/* What the command line of `iotape convert` asks for: one table makes parser, --help and
 * report. */
#ifndef CONVERT_CONF_H
#define CONVERT_CONF_H

#include "convert/filter.h"
#include "convert/importer.h"
#include "convert/transform.h"
#include "traces/opts.h"

struct convert_conf {
    const char *output; /* "-" is standard output */
    const char *from, *to;
    const char *report_json;
    const char *help_format;
    bool quiet, list_formats, help, version;
    bool json, quick; /* info */
    uint64_t skip_bad;
    struct import_options import;
    struct filter_conf filter;
    struct transform_conf transform;
    bool anonymise, strip;
    uint64_t memory_bytes;
    const char *temp_dir;
};

extern const struct opt convert_opts[];

/* What hangs together: ranges that are upside down, options that exclude each other. -EINVAL
 * with the diag set. */
int convert_conf_check(struct convert_conf *conf, struct diag *diag);

#endif
