/* SPDX-License-Identifier: MIT */
/*
 * A tape as text, one line an op. The columns are stable:
 *
 *     TIME OP FILE OFFSET LENGTH RESULT LATENCY STREAM API BATCH FLAGS [KEY=VALUE ...]
 *
 * TIME and LATENCY are seconds with nine decimals. FILE is quoted, with C escapes. STREAM is
 * pid/tid"comm". What is not known is "-". The keys: arg, file2, upper (the latency is an upper
 * bound), and of result tapes due, submit, ref, cause.
 */
#ifndef CONVERT_DUMP_H
#define CONVERT_DUMP_H

#include <stdio.h>

#include "convert/filter.h"
#include "traces/trace.h"

#define DUMP_HEADER "# time op file offset length result latency stream api batch flags"

/* -EPIPE and other write errors with the diag set. */
int dump_tape(struct trace_reader *reader, const struct filter_conf *conf, FILE *out,
              struct diag *diag);

#endif
