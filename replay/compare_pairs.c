/* SPDX-License-Identifier: MIT */
#include "replay/compare_pairs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "replay/classify.h"

int pairs_new(struct pairs **ret_pairs, double speed)
{
    struct pairs *pairs = calloc(1, sizeof *pairs);

    if (!pairs)
        return -ENOMEM;
    pairs->speed = speed > 0 ? speed : 1;
    curve_signed_init(&pairs->change);
    curve_signed_init(&pairs->issue_error);
    curve_signed_init(&pairs->due_error);
    *ret_pairs = pairs;
    return 0;
}

static void groups_release(struct pairs_groups *groups)
{
    unsigned int i;

    for (i = 0; i <= PAIRS_GROUPS; i++)
        free(groups->group[i]);
}

void pairs_free(struct pairs *pairs)
{
    if (!pairs)
        return;
    groups_release(&pairs->by_kind);
    groups_release(&pairs->by_stream);
    groups_release(&pairs->by_file);
    free(pairs);
}

/* The group of id, made when met first; the others' when all are taken. */
static struct pairs_group *groups_find(struct pairs_groups *groups, uint32_t id)
{
    struct pairs_group *group;
    uint32_t at;

    for (at = 0; at < groups->used; at++)
        if (groups->group[at]->id == id)
            return groups->group[at];
    /* at is the first free place, or that of the others. */
    if (groups->group[at])
        return groups->group[at];
    group = calloc(1, sizeof *group);
    if (!group)
        return NULL;
    group->id = at < PAIRS_GROUPS ? id : TRACE_NONE_U32;
    hist_init(&group->a);
    hist_init(&group->b);
    curve_signed_init(&group->change);
    curve_signed_init(&group->issue_error);
    groups->group[at] = group;
    if (at < PAIRS_GROUPS)
        groups->used++;
    return group;
}

/* What one pair has to say to a group. */
struct pair_figures {
    bool timed, exact;
    int64_t error_ns;
    uint64_t a_ns, b_ns;
};

static int groups_add(struct pairs_groups *groups, uint32_t id,
                      const struct pair_figures *figures)
{
    struct pairs_group *group = groups_find(groups, id);

    if (!group)
        return -ENOMEM;
    group->pairs++;
    if (figures->timed)
        curve_signed_add(&group->issue_error, figures->error_ns);
    if (!figures->exact)
        return 0;
    hist_add(&group->a, figures->a_ns);
    hist_add(&group->b, figures->b_ns);
    curve_signed_add(&group->change, (int64_t)(figures->b_ns - figures->a_ns));
    return 0;
}

/* Ops that B issued in one instant, as a batch is, have no order among themselves: an op is
 * judged against those that B issued strictly before it. */
static void pairs_add_order(struct pairs *pairs, int64_t a_ns, int64_t b_ns)
{
    if (b_ns < pairs->highest_b_ns)
        return;
    if (b_ns > pairs->highest_b_ns) {
        pairs->highest_b_ns = b_ns;
        if (pairs->instant_a_ns > pairs->highest_a_ns)
            pairs->highest_a_ns = pairs->instant_a_ns;
        pairs->instant_a_ns = a_ns;
    } else if (a_ns > pairs->instant_a_ns) {
        pairs->instant_a_ns = a_ns;
    }
    if (a_ns >= pairs->highest_a_ns)
        return;
    pairs->overtaken++;
    if ((uint64_t)(pairs->highest_a_ns - a_ns) > pairs->overtaken_most_ns)
        pairs->overtaken_most_ns = (uint64_t)(pairs->highest_a_ns - a_ns);
}

/* Returns the issue-time error. */
static int64_t pairs_add_times(struct pairs *pairs, const struct trace_op *a,
                               const struct trace_op *b)
{
    int64_t expected_ns;

    if (!pairs->anchored) {
        pairs->anchored = true;
        pairs->anchor_a_ns = a->issue_ns;
        pairs->anchor_b_ns = b->due_ns != TRACE_UNKNOWN_I64 ? b->due_ns : b->issue_ns;
        pairs->highest_a_ns = INT64_MIN;
        pairs->instant_a_ns = a->issue_ns;
        pairs->highest_b_ns = b->issue_ns;
    }
    expected_ns = pairs->anchor_b_ns +
                  (int64_t)llrint((double)(a->issue_ns - pairs->anchor_a_ns) / pairs->speed);
    curve_signed_add(&pairs->issue_error, b->issue_ns - expected_ns);
    if (b->due_ns != TRACE_UNKNOWN_I64) {
        pairs->due_pairs++;
        curve_signed_add(&pairs->due_error, b->due_ns - expected_ns);
    }
    pairs_add_order(pairs, a->issue_ns, b->issue_ns);
    return b->issue_ns - expected_ns;
}

static int pairs_add_groups(struct pairs *pairs, const struct trace_op *a,
                            const struct pair_figures *figures)
{
    int err = groups_add(&pairs->by_kind, a->kind, figures);

    if (err == 0 && a->stream != TRACE_NONE_U32)
        err = groups_add(&pairs->by_stream, a->stream, figures);
    if (err == 0 && a->file != TRACE_NONE_U32)
        err = groups_add(&pairs->by_file, a->file, figures);
    return err;
}

int pairs_add(struct pairs *pairs, const struct trace_op *a, const struct trace_op *b)
{
    struct pair_figures figures = {
        .timed = trace_op_is_io(a->kind),
        .exact =
            a->completion == TRACE_COMPLETION_EXACT && b->completion == TRACE_COMPLETION_EXACT,
        .a_ns = a->latency_ns,
        .b_ns = b->latency_ns,
    };

    pairs->matched++;
    pairs->kind_differs += classify_kind(a->kind) != classify_kind(b->kind);
    pairs->length_differs += a->length != b->length;
    pairs->offset_differs += a->offset != TRACE_UNKNOWN_U64 && a->offset != b->offset;
    pairs->result_differs += a->result != TRACE_UNKNOWN_I64 && b->result != TRACE_UNKNOWN_I64 &&
                             a->result != b->result;
    if (figures.timed)
        figures.error_ns = pairs_add_times(pairs, a, b);
    if (figures.exact) {
        pairs->latency_pairs++;
        curve_signed_add(&pairs->change, (int64_t)(b->latency_ns - a->latency_ns));
    }
    return pairs_add_groups(pairs, a, &figures);
}
