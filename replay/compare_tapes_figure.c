/* SPDX-License-Identifier: MIT */
#include "replay/compare_tapes_report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "p99_9" is 0.999; p0 to p100, -1 for anything else. */
static double fraction_of_name(const char *name)
{
    char text[16];
    double percent;
    char *end;

    if (name[0] != 'p' || strlen(name) >= sizeof text || !name[1])
        return -1;
    strcpy(text, name + 1);
    if (strspn(text, "0123456789_") != strlen(text))
        return -1;
    if (strchr(text, '_'))
        *strchr(text, '_') = '.';
    percent = strtod(text, &end);
    return *end || percent > 100 ? -1 : percent / 100;
}

int figure_of_hist(const struct hist *hist, const char *name, double *ret_value)
{
    double fraction = fraction_of_name(name);

    if (fraction < 0 && strcmp(name, "max") != 0 && strcmp(name, "mean") != 0 &&
        strcmp(name, "min") != 0)
        return -EINVAL;
    if (hist->count == 0)
        return -ENODATA;
    if (fraction >= 0)
        *ret_value = (double)hist_quantile(hist, fraction);
    else if (name[1] == 'e')
        *ret_value = hist_mean(hist);
    else
        *ret_value = name[1] == 'a' ? (double)hist->max : (double)hist->min;
    return 0;
}

static int figure_of_signed(const struct curve_signed *curve, const char *name,
                            double *ret_value)
{
    double fraction = fraction_of_name(name);

    if (fraction < 0 && strcmp(name, "max") != 0 && strcmp(name, "mean") != 0)
        return -EINVAL;
    if (curve_signed_count(curve) == 0)
        return -ENODATA;
    if (fraction >= 0)
        *ret_value = (double)curve_signed_quantile(curve, fraction);
    else
        *ret_value =
            name[1] == 'e' ? curve_signed_mean(curve) : (double)curve_signed_max(curve);
    return 0;
}

/* The largest size of error that the fraction of ops stays within. */
static double error_within(const struct curve_signed *curve, double fraction)
{
    struct hist sizes = curve->below;

    hist_merge(&sizes, &curve->above);
    return fraction >= 1 ? (double)sizes.max : (double)hist_quantile(&sizes, fraction);
}

/* Figures of one tape. */
static int figure_of_side(const struct side *side, const char *name, double *ret_value)
{
    static const struct {
        const char *name;
        size_t offset;
    } counts[] = {
        {"ops", offsetof(struct side, ops)},
        {"bytes", offsetof(struct side, bytes)},
        {"errors", offsetof(struct side, errors)},
        {"short_transfers", offsetof(struct side, shorts)},
        {"late", offsetof(struct side, late)},
    };
    uint64_t count;
    size_t i;

    for (i = 0; i < sizeof counts / sizeof *counts; i++)
        if (strcmp(name, counts[i].name) == 0) {
            memcpy(&count, (const char *)side + counts[i].offset, sizeof count);
            *ret_value = (double)count;
            return 0;
        }
    if (strcmp(name, "iops") == 0 || strcmp(name, "bandwidth") == 0) {
        *ret_value = side_per_s(side, name[0] == 'i' ? side->io_ops : side->bytes);
        return *ret_value > 0 ? 0 : -ENODATA;
    }
    if (strcmp(name, "duration") == 0) {
        *ret_value = (double)side_duration_ns(side);
        return 0;
    }
    if (strncmp(name, "response_", 9) == 0)
        return figure_of_hist(&side->response, name + 9, ret_value);
    if (strncmp(name, "submit_", 7) == 0)
        return figure_of_hist(&side->submit, name + 7, ret_value);
    if (strncmp(name, "lag_", 4) == 0)
        return figure_of_signed(&side->lag, name + 4, ret_value);
    if (strncmp(name, "depth_m", 7) == 0)
        return figure_of_hist(&side->depth_time, name + 6, ret_value);
    return figure_of_hist(&side->latency, name, ret_value);
}

/* "read.p99": latency of one kind. */
static int figure_of_kind(const struct side *side, const char *name, double *ret_value)
{
    const char *dot = strchr(name, '.');
    int kind = trace_op_from_name(name, (size_t)(dot - name));

    if (kind < 0)
        return -EINVAL;
    if (!side->kind[kind])
        return -ENODATA;
    return figure_of_hist(&side->kind[kind]->latency, dot + 1, ret_value);
}

static int figure_of_distance(const struct hist *a, const struct hist *b, double *ret_value)
{
    struct curve_distance distance;
    int err = curve_distance(a, b, &distance);

    if (err == 0)
        *ret_value = distance.ks;
    return err;
}

/* Figures of the pair; -EINVAL: not one. */
static int figure_of_pair(const struct tapes *tapes, const char *name, double *ret_value)
{
    const struct side *a = tapes->side[0], *b = tapes->side[1];
    const struct curve_signed *error = &tapes->pairs->issue_error;
    double lost = (double)tapes->unmatched[0].ops, extra = (double)tapes->unmatched[1].ops;

    if (strcmp(name, "gap_ks") == 0)
        return figure_of_distance(&a->gap, &b->gap, ret_value);
    if (strcmp(name, "size_ks") == 0)
        return figure_of_distance(&a->size, &b->size, ret_value);
    if (strcmp(name, "depth_ks") == 0)
        return figure_of_distance(&a->depth_time, &b->depth_time, ret_value);
    if (strncmp(name, "issue_error_", 12) == 0) {
        double fraction = strcmp(name + 12, "max") == 0 ? 1 : fraction_of_name(name + 12);

        if (fraction < 0)
            return -EINVAL;
        if (tapes->asap || tapes->no_times[0] || curve_signed_count(error) == 0)
            return -ENODATA;
        *ret_value = error_within(error, fraction);
        return 0;
    }
    if (strcmp(name, "lost") == 0)
        *ret_value = lost;
    else if (strcmp(name, "extra") == 0)
        *ret_value = extra;
    else if (strcmp(name, "unmatched") == 0)
        *ret_value = lost + extra;
    else if (strcmp(name, "overtaken") == 0)
        *ret_value = (double)tapes->pairs->overtaken;
    else
        return -EINVAL;
    return 0;
}

int tapes_figure(const struct tapes *tapes, const char *name, double *ret_a, double *ret_b)
{
    double figure[2] = {0, 0};
    unsigned int i;
    int err;

    err = figure_of_pair(tapes, name, &figure[1]);
    if (err == -EINVAL)
        for (i = 0, err = 0; i < 2 && err == 0; i++)
            err = strchr(name, '.') ? figure_of_kind(tapes->side[i], name, &figure[i])
                                    : figure_of_side(tapes->side[i], name, &figure[i]);
    if (err < 0)
        return err;
    *ret_a = figure[0];
    *ret_b = figure[1];
    return 0;
}
