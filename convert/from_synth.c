/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "convert/importer.h"
#include "convert/synth.h"

static int run(struct input **inputs, size_t count, struct import *import, const void *conf)
{
    struct synth_spec spec = *(const struct synth_spec *)conf;
    char *line, *storage = NULL;
    size_t length;
    int err;

    (void)count;
    err = input_line(inputs[0], &line, &length);
    if (err <= 0)
        return err;
    err = import_meta(import, TRACE_META_COMMAND, line);
    if (err == 0)
        err = opts_parse_text(synth_opts, &spec, line, NULL, &storage, import_diag(import));
    if (err == 0)
        err = synth_generate(&spec, import, NULL);
    free(storage);
    return err;
}

const struct importer importer_synth = {
    .name = "synth",
    .summary = "a workload made from a specification; the input is the specification itself",
    .help =
        "iotape convert --from synth 'rw=randread,bs=4k,size=1g,ops=1m,seed=1' -o T.tape\n"
        "\n"
        "With rate, ops have exact times for --pace recorded; with think, each stream issues\n"
        "a batch every think; with neither all are due at 0, for --pace asap. Latencies are\n"
        "not known. The same seed gives the same ops.\n"
        "\n"
        "aio-stress -s 4g -r 64k -d 64 -i 8 -b 8 is\n"
        "    rw=write,size=4g,bs=64k,depth=64,switch=8,batch=8,api=libaio,direct\n"
        "iozone -r 64 -i 0 -i 1 -s 1g -e is\n"
        "    stages=write:rewrite:read:reread,bs=64k,size=1g,fsync_end,opens",
    .flags = IMPORTER_TEXT | IMPORTER_FORCED,
    .run = run,
    .opts = synth_opts,
    .conf_size = sizeof(struct synth_spec),
};
