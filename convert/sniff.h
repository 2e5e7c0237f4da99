/* SPDX-License-Identifier: MIT */
/*
 * Which format a file is, by its first bytes and never by its name. Two formats that fit about
 * equally well are an error that names both, and the options that decide.
 */
#ifndef CONVERT_SNIFF_H
#define CONVERT_SNIFF_H

#include "convert/importer.h"

#define SNIFF_BYTES (64u << 10)
/* A lead smaller than this does not decide. */
#define SNIFF_MARGIN 15

/* -EBADMSG with the diag set: empty, unknown, or ambiguous. */
int sniff_bytes(const char *name, const uint8_t *bytes, size_t length, bool at_end,
                const struct importer **ret_importer, struct diag *diag);
/* Looks at the input without consuming. */
int sniff_input(struct input *input, const struct importer **ret_importer, struct diag *diag);

#endif
