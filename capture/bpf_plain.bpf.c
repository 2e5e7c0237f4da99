/* SPDX-License-Identifier: MIT */
/* The programs of the bpf recorder for kernels before 6.2: see GET. */
#define BPF_PLAIN
#include "capture/with_bpf.bpf.c"
