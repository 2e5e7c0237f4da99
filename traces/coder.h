/* SPDX-License-Identifier: MIT */
/*
 * Blocks on their way to the sink: operations are coded by the caller or by threads of the
 * coder's own, and leave in the order they came. Internal to traces/.
 *
 * Lifecycle: new, room and ops or block as often as wanted, drain, free. One owner; put is
 * called in the owner's thread only.
 */
#ifndef TRACES_CODER_H
#define TRACES_CODER_H

#include "traces/block.h"
#include "traces/buf.h"

struct coder;

/* Takes a whole block: header and payload in one string. 0 or -errno, which the coder hands up.
 */
typedef int coder_put(void *context, const struct block_header *header, const uint8_t *bytes,
                      size_t length);

int coder_new(struct coder **ret_coder, const struct trace_writer_conf *conf, coder_put *put,
              void *context) TRACE_MUST_CHECK;
void coder_free(struct coder *coder); /* waits for its threads; drops what was not drained */
/* Where the next block's operations go, conf's block_ops of them. Valid until coder_ops. */
struct trace_op *coder_room(struct coder *coder);
/* Takes the first header->entries operations of the room for coding; the header's payload
 * fields are the coder's. May put earlier blocks. */
int coder_ops(struct coder *coder, const struct block_header *header) TRACE_MUST_CHECK;
/* Takes a block whose payload is made already; copied. */
int coder_block(struct coder *coder, const struct block_header *header, const uint8_t *payload,
                size_t bytes) TRACE_MUST_CHECK;
/* Puts all that was taken. */
int coder_drain(struct coder *coder) TRACE_MUST_CHECK;

#endif
