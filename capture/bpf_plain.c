/* SPDX-License-Identifier: MIT */
#include "capture/bpf_plain.h"

#ifdef HAVE_BPF

__asm__(".section .rodata\n"
        ".balign 8\n"
        ".globl bpf_plain_start, bpf_plain_end\n"
        "bpf_plain_start:\n"
        ".incbin \"" BPF_OBJECT "\"\n"
        "bpf_plain_end:\n"
        ".previous\n");

#endif
