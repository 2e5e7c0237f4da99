/* SPDX-License-Identifier: MIT */
#include "capture/filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "traces/units.h"

enum condition_kind {
    ON_PATH,
    ON_OP,
    ON_SIZE
};

struct condition {
    enum condition_kind kind;
    bool negated;
    const char *glob;   /* ON_PATH: points into the caller's text */
    uint64_t ops;       /* ON_OP: bits by enum trace_op_kind */
    uint64_t low, high; /* ON_SIZE: inclusive */
};

struct filter {
    struct condition *conditions;
    size_t count;
    bool any_path;
    uint8_t *known; /* by file number: 0 not asked yet, 1 passes, 2 does not */
    uint32_t known_room;
};

static int parse_ops(const char *text, uint64_t *ret_ops)
{
    uint64_t ops = 0;

    for (;;) {
        size_t length = strcspn(text, ",");
        int kind = trace_op_from_name(text, length);

        if (kind < 0)
            return -EINVAL;
        ops |= UINT64_C(1) << kind;
        if (!text[length])
            break;
        text += length + 1;
    }
    *ret_ops = ops;
    return 0;
}

static int parse_size(const char *text, struct condition *condition)
{
    bool orequal = text[0] != '\0' && text[1] == '=';
    char comparison = text[0];
    uint64_t bytes;

    if (!comparison || units_parse_size(text + (orequal ? 2 : 1), &bytes) < 0)
        return -EINVAL;
    condition->low = 0;
    condition->high = UINT64_MAX;
    if (comparison == '=' && !orequal)
        condition->low = condition->high = bytes;
    else if (comparison == '>' && (orequal || bytes < UINT64_MAX))
        condition->low = orequal ? bytes : bytes + 1;
    else if (comparison == '<' && (orequal || bytes > 0))
        condition->high = orequal ? bytes : bytes - 1;
    else
        return -EINVAL;
    return 0;
}

static int parse_condition(const char *text, struct condition *ret_condition)
{
    struct condition condition = {ON_PATH, false, NULL, 0, 0, 0};
    size_t word = strspn(text, "abcdefghijklmnopqrstuvwxyz");
    const char *rest = text + word;
    int err = 0;

    if (word == 4 && !strncmp(text, "size", 4)) {
        condition.kind = ON_SIZE;
        err = parse_size(rest, &condition);
    } else {
        if (*rest == '!') {
            condition.negated = true;
            rest++;
        }
        if (*rest++ != '=' || !*rest)
            return -EINVAL;
        if (word == 2 && !strncmp(text, "op", 2)) {
            condition.kind = ON_OP;
            err = parse_ops(rest, &condition.ops);
        } else if (word == 4 && !strncmp(text, "path", 4)) {
            condition.glob = rest;
        } else {
            return -EINVAL;
        }
    }
    if (!err)
        *ret_condition = condition;
    return err;
}

int filter_new(struct filter **ret_filter, const char *const *texts, size_t count,
               struct diag *diag)
{
    struct filter *filter = calloc(1, sizeof(*filter));
    int err;

    if (!filter)
        return diag_errno(diag, -ENOMEM, "--filter");
    filter->conditions = calloc(count ? count : 1, sizeof(*filter->conditions));
    if (!filter->conditions) {
        err = diag_errno(diag, -ENOMEM, "--filter");
        goto out;
    }
    for (size_t i = 0; i < count; i++) {
        err = parse_condition(texts[i], &filter->conditions[i]);
        if (err) {
            diag_set(diag, err,
                     "--filter %s: expected path=GLOB, op=NAME,... (or != for not) or size>=N",
                     texts[i]);
            goto out;
        }
        filter->count++;
        filter->any_path |= filter->conditions[i].kind == ON_PATH;
    }
    *ret_filter = filter;
    return 0;
out:
    filter_free(filter);
    return err;
}

void filter_free(struct filter *filter)
{
    if (!filter)
        return;
    free(filter->conditions);
    free(filter->known);
    free(filter);
}

static bool path_passes(const struct filter *filter, const char *path)
{
    for (size_t i = 0; i < filter->count; i++) {
        const struct condition *condition = &filter->conditions[i];

        if (condition->kind != ON_PATH)
            continue;
        if ((path && fnmatch(condition->glob, path, 0) == 0) == condition->negated)
            return false;
    }
    return true;
}

/* Matching costs more than an op may: each file is asked about once. */
static bool file_passes(struct filter *filter, uint32_t file, const char *path)
{
    if (!path || file == TRACE_NONE_U32)
        return path_passes(filter, path);
    if (file >= filter->known_room) {
        uint32_t room = file < 128 ? 256 : file * 2;
        uint8_t *known = realloc(filter->known, room);

        if (!known)
            return path_passes(filter, path);
        memset(known + filter->known_room, 0, room - filter->known_room);
        filter->known = known;
        filter->known_room = room;
    }
    if (!filter->known[file])
        filter->known[file] = path_passes(filter, path) ? 1 : 2;
    return filter->known[file] == 1;
}

static bool op_has_length(unsigned int kind)
{
    return trace_op_has_range(kind) || kind == TRACE_COPY || kind == TRACE_SYNC_RANGE ||
           kind == TRACE_READAHEAD;
}

bool filter_passes(struct filter *filter, const struct trace_op *op, uint32_t file,
                   const char *path)
{
    if (!filter)
        return true;
    for (size_t i = 0; i < filter->count; i++) {
        const struct condition *condition = &filter->conditions[i];

        if (condition->kind == ON_OP &&
            ((condition->ops >> op->kind) & 1) == condition->negated)
            return false;
        if (condition->kind == ON_SIZE && op_has_length(op->kind) &&
            (op->length < condition->low || op->length > condition->high))
            return false;
    }
    return !filter->any_path || file_passes(filter, file, path);
}
