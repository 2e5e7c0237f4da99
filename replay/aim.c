/* SPDX-License-Identifier: MIT */
#include "replay/aim.h"

#include "replay/conf.h"
#include "replay/prepared.h"
#include "replay/target.h"

/* A direct transfer that the target's alignment forbids: a wider read, or a buffered write. Is it
 * still direct? */
static bool aim_unaligned(const struct conf *conf, const struct target *target,
                          const struct trace_op *op, struct prepared *p)
{
    uint64_t end = (p->offset + p->length + target->align - 1) & ~(target->align - 1ull);

    if (conf->unaligned != UNALIGNED_ROUND || op->kind != TRACE_READ)
        return false;
    p->offset &= ~(target->align - 1ull);
    p->length = end - p->offset;
    p->flags |= TRACE_F_ROUNDED;
    p->marks &= (uint8_t)~PREPARED_EXPECTED;
    return true;
}

static void aim_file(const struct conf *conf, const struct target_set *targets,
                     const struct trace_op *op, struct prepared *p)
{
    const struct target *target;
    bool transfer = op->kind == TRACE_READ || op->kind == TRACE_WRITE;
    bool direct = transfer && !conf->buffered && (conf->direct || (op->flags & TRACE_F_DIRECT));

    p->flags &= ~(uint32_t)TRACE_F_DIRECT;
    if (conf->target != NULL)
        p->flags &= ~(uint32_t)TRACE_F_APPEND; /* its end is not where the file's was */
    p->target = targets_find(targets, op->file, direct);
    if (p->target == TRACE_NONE_U32)
        return;
    target = &targets->items[p->target];
    if (direct && ((p->offset | p->length) & (target->align - 1)) != 0 &&
        p->offset != TRACE_UNKNOWN_U64 && !aim_unaligned(conf, target, op, p)) {
        direct = false;
        p->target = targets_find(targets, op->file, false);
        target = &targets->items[p->target];
    }
    if (direct)
        p->flags |= TRACE_F_DIRECT;
    if (target->fit.how != FIT_NONE && trace_op_has_range(op->kind) && p->length > 0 &&
        p->offset != TRACE_UNKNOWN_U64)
        p->offset = fit_offset(&target->fit, op->file, p->offset,
                               p->length < target->size_bytes ? p->length : target->size_bytes);
}

void aim(const struct conf *conf, const struct target_set *targets, const struct trace_op *op,
         struct prepared *p)
{
    aim_file(conf, targets, op, p);
    if (op->file2 != TRACE_NONE_U32 && (op->kind == TRACE_RENAME || op->kind == TRACE_LINK) &&
        p->action == PREPARED_CORE)
        p->offset = (uint64_t)op->file2 << 32 | targets_find(targets, op->file2, false);
}
