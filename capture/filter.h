/* SPDX-License-Identifier: MIT */
/*
 * --filter: which ops are kept. Each filter is one condition, all of them must hold:
 *
 *     path=GLOB  path!=GLOB      the file's path; '*' matches '/' too
 *     op=A,B     op!=A,B         kinds by name: read, write, fsync ...
 *     size>=N size<=N size>N size<N size=N    bytes asked for (reads, writes and the like;
 *                                ops without a length pass)
 */
#ifndef CAPTURE_FILTER_H
#define CAPTURE_FILTER_H

#include "traces/diag.h"
#include "traces/trace.h"

struct filter;

/* -EINVAL with diag set: the text is not a condition. */
int filter_new(struct filter **ret_filter, const char *const *texts, size_t count,
               struct diag *diag) TRACE_MUST_CHECK;
/* file is the number of path (answers are kept by it) and may be TRACE_NONE_U32 with a NULL
 * path: then path= fails and path!= holds. A NULL filter passes everything. */
bool filter_passes(struct filter *filter, const struct trace_op *op, uint32_t file,
                   const char *path);
void filter_free(struct filter *filter); /* NULL is fine */

#endif
