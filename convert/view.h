/* SPDX-License-Identifier: MIT */
/*
 * A tape to look at (info, dump): the file itself, or what becomes of a file of another format
 * when it is imported into an unlinked temporary.
 */
#ifndef CONVERT_VIEW_H
#define CONVERT_VIEW_H

#include <stdbool.h>

#include "convert/conf.h"
#include "traces/trace.h"

struct view {
    struct trace_reader *reader;
    int fd;             /* of the temporary, or -1 */
    const char *format; /* of the source: "tape", "blktrace" ... */
    const char *name;
    char *report_notes; /* not a tape: what import had to say, one a line; owned */
};

/* words are the operands (per-CPU sets, directories as in convert). Errors: diag set. */
int view_open(struct view *view, const struct convert_conf *conf, char *const *words,
              int word_count, struct diag *diag);
void view_release(struct view *view);

#endif
