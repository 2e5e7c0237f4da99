/* SPDX-License-Identifier: MIT */
#include "replay/locate.h"

#include "replay/classify.h"
#include "replay/conf.h"
#include "replay/target.h"
#include "traces/diag.h"

static bool concerned(const struct trace_reader *reader, const struct conf *conf,
                      const struct target_set *targets, enum locate_what what,
                      const struct trace_op *recorded)
{
    struct trace_op room;
    const struct trace_op *op = classify_op(conf, recorded, &room);
    const struct trace_file *file =
        op->file == TRACE_NONE_U32 ? NULL : trace_reader_file(reader, op->file);
    bool direct = conf->direct || (!conf->buffered && (op->flags & TRACE_F_DIRECT));
    const struct target *target;
    enum skip_reason skip;
    uint32_t index;

    if (op->offset == TRACE_UNKNOWN_U64 ||
        classify(conf, file, op, &skip) == PREPARED_SKIP)
        return false;
    index = targets_find(targets, op->file, direct);
    if (index == TRACE_NONE_U32)
        return false;
    target = &targets->items[index];
    if (what == LOCATE_UNALIGNED)
        return (op->kind == TRACE_READ || op->kind == TRACE_WRITE) && target->direct &&
               ((op->offset | op->length) & (target->align - 1)) != 0;
    return trace_op_has_range(op->kind) && op->length > 0 &&
           op->offset + op->length > target->size_bytes;
}

int locate(struct trace_reader *reader, const struct conf *conf, const struct target_set *targets,
           enum locate_what what, struct located *ret_located, struct diag *diag)
{
    struct located located = {0};
    const struct trace_op *ops;
    uint64_t index = 0;
    size_t count;
    int err = trace_reader_rewind(reader);

    if (err != 0)
        return diag_errno(diag, err, "%s", trace_reader_name(reader));
    while ((err = trace_reader_next(reader, &ops, &count)) > 0) {
        for (size_t i = 0; i < count; i++, index++) {
            if (!concerned(reader, conf, targets, what, &ops[i]))
                continue;
            if (located.count++ == 0) {
                located.first = index;
                located.offset = ops[i].offset;
                located.length = ops[i].length;
            }
        }
    }
    if (err != 0)
        return err;
    *ret_located = located;
    return 0;
}
