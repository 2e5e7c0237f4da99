/* SPDX-License-Identifier: MIT */
/*
 * From what the BPF programs saw to an op of the tape: kinds that only an argument tells apart,
 * flags of the descriptor and of the call, O_ numbers of this architecture.
 */
#ifndef CAPTURE_BPF_OP_H
#define CAPTURE_BPF_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/bpf_event.h"
#include "traces/trace.h"

/*
 * Fills everything but file, file2, stream and batch. Completion is exact for BPF_EVENT_OP and
 * BPF_EVENT_COPY, unknown for BPF_EVENT_SUBMIT. False: not an I/O op after all (io_uring's
 * fadvise for other advice than WILLNEED).
 */
bool bpf_op_fill(const struct bpf_event_op *event, struct trace_op *ret_op);

/* The result of a call as the tape has it: what calls return that is no count of bytes (a
 * descriptor, an address) becomes 0, the kernel's restart codes become -EINTR. */
int64_t bpf_op_result(unsigned int kind, int64_t result);

/* O_ flags of this machine in the numbers of most architectures, which the tape uses. */
uint32_t bpf_op_open_flags(uint64_t flags);

#endif
