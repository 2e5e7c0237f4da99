/* SPDX-License-Identifier: MIT */
/*
 * Every importer over the same bytes: none may crash, hang, leak or hand on an op that breaks
 * the tape's rules, whatever it is given. The first byte of an input picks nothing: all are run.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "convert/import.h"
#include "convert/input.h"
#include "convert/sniff.h"

#define OPS_MAX 1000000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take(void *context, const struct trace_op *ops, size_t count)
{
    uint64_t *taken = context;

    for (size_t i = 0; i < count; i++) {
        assert(ops[i].kind < TRACE_OP_COUNT);
        assert(ops[i].api < TRACE_API_COUNT);
        assert(ops[i].completion < TRACE_COMPLETION_COUNT);
        assert(ops[i].length <= INT64_MAX);
        assert(ops[i].offset == TRACE_UNKNOWN_U64 ||
               ops[i].offset + ops[i].length <= INT64_MAX);
    }
    *taken += count;
    return *taken > OPS_MAX ? -E2BIG : 0; /* a specification may ask for any number */
}

static void run_one(const struct importer *importer, const uint8_t *data, size_t size,
                    const struct import_options *options, uint64_t skip_bad)
{
    struct diag diag = DIAG_INIT;
    struct input_list inputs = {0};
    struct import *import = malloc(sizeof(*import));
    void *conf = calloc(1, importer->conf_size ? importer->conf_size : 1);
    uint64_t taken = 0;

    if (!import || !conf)
        abort();
    import_init(import, options, skip_bad, take, &taken, &diag);
    if (importer->opts && opts_defaults(importer->opts, conf, &diag) < 0)
        abort(); /* a wrong table */
    if (input_list_add_memory(&inputs, "input", data, size, &diag) < 0)
        abort();
    import_begin_run(import, 0, false);
    if (importer->run(inputs.items, 1, import, conf) >= 0)
        (void)!import_flush(import);
    else
        assert(diag.error < 0 || taken > OPS_MAX); /* said once, where it is known */
    if (importer->opts)
        opts_release(importer->opts, conf);
    import_release(import);
    input_list_release(&inputs);
    free(import);
    free(conf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct import_options plain;
    static const struct import_options told = {
        .time_unit_ns_num = 1000, .time_unit_ns_den = 1, .sector_bytes = 4096, .event = 'D',
        .columns = "time,op,offset,length,latency,file,pid,comm", .all_fds = true};
    const struct importer *importer;
    const struct importer *chosen;
    struct diag diag = DIAG_INIT;

    (void)!sniff_bytes("input", data, size, true, &chosen, &diag);
    for (unsigned int i = 0; (importer = importer_at(i)); i++) {
        if (importer->unavailable)
            continue;
        run_one(importer, data, size, &plain, 0);
        run_one(importer, data, size, &told, UINT64_MAX);
    }
    return 0;
}
