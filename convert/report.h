/* SPDX-License-Identifier: MIT */
/* What a conversion did, for people and as JSON, from the same figures. */
#ifndef CONVERT_REPORT_H
#define CONVERT_REPORT_H

#include <stdio.h>

struct pipeline;
struct operands;
struct diag;

void report_print(const struct pipeline *pipeline, const struct operands *operands, FILE *out);
/* path "-" is standard output. -errno with the diag set. */
int report_json(const struct pipeline *pipeline, const struct operands *operands,
                const char *path, struct diag *diag);

#endif
