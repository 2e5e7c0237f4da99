/* SPDX-License-Identifier: MIT */
/*
 * The programs of the bpf recorder for kernels before 6.2, embedded. Only where the build has
 * them (HAVE_BPF).
 */
#ifndef CAPTURE_BPF_PLAIN_H
#define CAPTURE_BPF_PLAIN_H

extern const char bpf_plain_start[], bpf_plain_end[];

#endif
