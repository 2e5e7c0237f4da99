/* SPDX-License-Identifier: MIT */
/*
 * --fail-if: a condition on a figure.
 *
 *     p99>+5%        B's (the cell's) p99 is more than 5 % above A's (the baseline's)
 *     iops<-3%       lower by more than 3 %
 *     lag_p99>60us   the figure itself, with a unit where it has one
 *     lost>0
 */
#ifndef REPLAY_COMPARE_CONDITION_H
#define REPLAY_COMPARE_CONDITION_H

#include <stdbool.h>

struct diag;

struct condition {
    char metric[48];
    bool above;       /* '>', else '<' */
    bool relative;    /* limit is a share of the other's figure: 0.05 for +5% */
    double limit;     /* ns, bytes or a number */
    const char *text; /* as given; the caller's */
};

/* What became of it. */
enum condition_outcome {
    CONDITION_HOLDS,
    CONDITION_FAILS,
    CONDITION_UNDECIDED
};
extern const char *const condition_outcome_names[]; /* "holds" means: the bad thing is true */

/* -EINVAL with diag set: not of the form above. */
int condition_parse(struct condition *ret_condition, const char *text, struct diag *diag);
/* Is the figure (relative conditions: against other) beyond the limit? */
bool condition_met(const struct condition *condition, double figure, double other);

#endif
