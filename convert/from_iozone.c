/* SPDX-License-Identifier: MIT */
/*
 * IOzone telemetry (iozone -Y and -Z): "offset length delay", bytes and milliseconds of think
 * time before the request. Three numbers a line could be anything, and the direction is not in
 * the file.
 */
#include <errno.h>
#include <string.h>

#include "convert/rows.h"

struct iozone_conf {
    int op;
    const char *file;
};

static const char *const iozone_ops[] = {"unsaid", "read", "write", NULL};

static const struct opt iozone_opts[] = {
    {.name = "op",
     .type = OPT_ENUM,
     .offset = offsetof(struct iozone_conf, op),
     .values = iozone_ops,
     .def = "unsaid",
     .arg = "OP",
     .help = "what the requests are: a file given to iozone -Y holds writes, one given to -Z "
             "reads"},
    {.name = "file",
     .type = OPT_STRING,
     .offset = offsetof(struct iozone_conf, file),
     .def = "iozone.tmp",
     .arg = "NAME",
     .help = "the file's name in the tape"},
    {0},
};

static int iozone_sniff(const uint8_t *bytes, size_t length, bool at_end)
{
    return IMPORT_NO;
}

static int iozone_input(struct input *input, struct import *import, const char *name,
                        unsigned int kind)
{
    struct field fields[4];
    int64_t now_ns = 0, delay_ns;
    size_t length, count;
    uint32_t file;
    char *line;
    int err;

    err = import_file(import, name, strlen(name), &file);
    while (!err && (err = input_line(input, &line, &length)) > 0) {
        struct trace_op op = TRACE_OP_INIT;

        err = 0;
        count = fields_split(line, length, ' ', fields, 4);
        if (!count || fields[0].at[0] == '#')
            continue;
        if (count != 3 || field_u64(&fields[0], &op.offset) < 0 ||
            field_u64(&fields[1], &op.length) < 0 ||
            field_scaled(&fields[2], 1000000, 1, &delay_ns) < 0 || delay_ns < 0 ||
            __builtin_add_overflow(now_ns, delay_ns, &now_ns)) {
            err = import_bad(import, input, 1, "expected offset, length and milliseconds");
            continue;
        }
        op.issue_ns = now_ns;
        op.kind = (uint8_t)kind;
        op.file = file;
        op.api = TRACE_API_SYNC;
        err = import_op(import, &op);
    }
    return err;
}

static int iozone_run(struct input **inputs, size_t count, struct import *import,
                      const void *conf)
{
    const struct iozone_conf *iozone = conf;
    int err = import_cannot_tell(import, "latency");

    if (!iozone->op)
        return diag_set(import_diag(import), -EINVAL,
                        "%s: the file does not say whether it reads or writes: give --from "
                        "iozone:op=read or iozone:op=write",
                        input_name(inputs[0]));
    import_note(
        import,
        "times are the sum of the think times alone: the requests' own time is unknown");
    if (!err)
        err = import_cannot_tell(import, "result");
    for (size_t i = 0; i < count && !err; i++)
        err = iozone_input(inputs[i], import, iozone->file,
                           iozone->op == 1 ? TRACE_READ : TRACE_WRITE);
    return err;
}

const struct importer importer_iozone = {
    .name = "iozone",
    .summary = "IOzone telemetry files (-Y, -Z)",
    .help = "Lines of offset, length (bytes) and think time (ms) before the request; # begins "
            "a comment. op=read "
            "or op=write must be given. Kept: think time, offset, length.",
    .flags = IMPORTER_FORCED,
    .sniff = iozone_sniff,
    .run = iozone_run,
    .opts = iozone_opts,
    .conf_size = sizeof(struct iozone_conf),
};
