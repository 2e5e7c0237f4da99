/* SPDX-License-Identifier: MIT */
/* Which process name a pid has at a moment of a block trace, and its stream. One thread. */
#ifndef CONVERT_BLK_NAMES_H
#define CONVERT_BLK_NAMES_H

#include "convert/importer.h"

struct blk_names;

int blk_names_new(struct blk_names **ret_names, struct import *import) TRACE_MUST_CHECK;
void blk_names_free(struct blk_names *names); /* NULL is fine */
/* A name met by the decoder: used until set says otherwise, so that an event sorted before the
 * notice has it too. comm holds 16 bytes, NUL padded. 0 or -ENOMEM. */
int blk_names_see(struct blk_names *names, uint32_t pid, const char *comm) TRACE_MUST_CHECK;
/* A name in time order. */
int blk_names_set(struct blk_names *names, uint32_t pid, const char *comm) TRACE_MUST_CHECK;
/* 0 or -errno of import_stream. Beyond a million pids: TRACE_NONE_U32. */
int blk_names_stream(struct blk_names *names, uint32_t pid,
                     uint32_t *ret_stream) TRACE_MUST_CHECK;

#endif
