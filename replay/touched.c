/* SPDX-License-Identifier: MIT */
#include "replay/touched.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "replay/aim.h"
#include "replay/chunks.h"
#include "replay/classify.h"
#include "replay/conf.h"
#include "replay/prepared.h"
#include "replay/target.h"
#include "traces/diag.h"

static void touch(struct touched *touched, uint32_t target, unsigned int how)
{
    if (target != TRACE_NONE_U32)
        touched->how[target] |= (uint8_t)how;
}

/* What is written past the end, or at a place the tape does not know (an append), changes the
 * length alone. */
static int touch_range(struct touched *touched, const struct prepared *p)
{
    touch(touched, p->target, TOUCHED_CHUNKS);
    if (p->offset == TRACE_UNKNOWN_U64 || p->length == 0 || (p->flags & TRACE_F_APPEND))
        return 0;
    return chunks_touch(touched->chunks, p->target, p->offset, p->length);
}

static int touch_op(struct touched *touched, const struct prepared *p)
{
    switch (p->kind) {
    case TRACE_WRITE:
    case TRACE_DISCARD:
    case TRACE_WRITE_ZEROES: return touch_range(touched, p);
    case TRACE_FALLOCATE:
        if (!(p->arg & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE)))
            return touch_range(touched, p);
        touch(touched, p->target, TOUCHED_WHOLE);
        return 0;
    case TRACE_OPEN:
    case TRACE_CREATE:
        touch(touched, p->target,
              p->kind == TRACE_CREATE || (p->arg & O_TRUNC) ? TOUCHED_WHOLE | TOUCHED_NAME
                                                            : TOUCHED_NAME);
        return 0;
    case TRACE_MKDIR:
    case TRACE_RMDIR: touch(touched, p->target, TOUCHED_NAME); return 0;
    case TRACE_RENAME:
    case TRACE_LINK: /* what is written by the one name changes the other */
        touch(touched, (uint32_t)p->offset, TOUCHED_WHOLE | TOUCHED_NAME);
        touch(touched, p->target, TOUCHED_WHOLE | TOUCHED_NAME);
        return 0;
    default: touch(touched, p->target, TOUCHED_WHOLE | TOUCHED_NAME); return 0;
    }
}

static int read_op(struct touched *touched, const struct conf *conf,
                   const struct target_set *set, const struct trace_reader *reader,
                   const struct trace_op *recorded)
{
    struct trace_op room;
    const struct trace_op *op = classify_op(conf, recorded, &room);
    const struct trace_file *file =
        op->file == TRACE_NONE_U32 ? NULL : trace_reader_file(reader, op->file);
    struct prepared p = {.offset = op->offset,
                         .length = op->length,
                         .target = TRACE_NONE_U32,
                         .flags = op->flags & ~conf->drop_flags,
                         .arg = op->arg,
                         .kind = op->kind};
    enum skip_reason skip;

    if (!classify_mutates(op) || !classify_in_window(conf, op->issue_ns))
        return 0;
    p.action = (uint8_t)classify(conf, file, op, &skip);
    if (p.action == PREPARED_SKIP)
        return 0;
    aim(conf, set, op, &p);
    return p.target == TRACE_NONE_U32 ? 0 : touch_op(touched, &p);
}

int touched_read(struct touched *touched, const struct conf *conf, const struct target_set *set,
                 struct trace_reader *reader, struct diag *diag)
{
    const struct trace_op *ops;
    uint64_t chunks;
    size_t count;
    int err;

    touched->how = calloc(set->count + 1ull, 1);
    touched->chunks = chunks_new();
    if (touched->how == NULL || touched->chunks == NULL)
        return diag_errno(diag, -ENOMEM, "--restore");
    err = trace_reader_rewind(reader);
    if (err < 0)
        return diag_errno(diag, err, "%s", trace_reader_name(reader));
    while ((err = trace_reader_next(reader, &ops, &count)) > 0)
        for (size_t i = 0; i < count; i++) {
            err = read_op(touched, conf, set, reader, &ops[i]);
            if (err < 0)
                return diag_errno(diag, err, "--restore");
        }
    if (err == 0 && (err = chunks_sort(touched->chunks, &chunks)) < 0)
        diag_errno(diag, err, "--restore");
    return err;
}

void touched_release(struct touched *touched)
{
    free(touched->how);
    chunks_free(touched->chunks);
    memset(touched, 0, sizeof *touched);
}
