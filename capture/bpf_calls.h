/* SPDX-License-Identifier: MIT */
/*
 * Which system calls and io_uring opcodes are I/O, and which argument is what: the tables the
 * bpf recorder's programs are loaded with.
 */
#ifndef CAPTURE_BPF_CALLS_H
#define CAPTURE_BPF_CALLS_H

#include "capture/bpf_event.h"

/* Fill tables of BPF_CALLS_MAX and BPF_URING_MAX rows; rows not named become BPF_CLASS_NONE. */
void bpf_calls_fill(struct bpf_call *calls);
void bpf_calls_fill_uring(struct bpf_call *calls);
/* Marks the numbers of 32-bit programs' I/O calls, which are counted but not decoded. */
void bpf_calls_fill_compat(__u8 *calls);

#endif
