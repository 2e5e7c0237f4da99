/* SPDX-License-Identifier: MIT */
/*
 * Reports into files: whole or not at all. The text is made in memory, then written under a
 * temporary name and renamed over path; "-" is standard output.
 */
#ifndef REPLAY_COMPARE_OUTPUT_H
#define REPLAY_COMPARE_OUTPUT_H

#include <stddef.h>

#include <jansson.h>

struct diag;

/* 0, else -errno with diag set. */
int output_text(const char *path, const char *text, size_t bytes, struct diag *diag);
/* Indented, keys in the order made, a newline at the end. root NULL is -ENOMEM. */
int output_json(const char *path, const json_t *root, struct diag *diag);

#endif
