/* SPDX-License-Identifier: MIT */
/*
 * Which streams a sample of 1 in N keeps: the choice is by the thread's number alone, so it is the
 * same wherever it is taken, and a stream is kept whole or not at all. What 1 in N keeps is kept by
 * every smaller N too: when N grows, the streams that are left have no gap.
 *
 * Included by BPF code too: no libc.
 */
#ifndef CAPTURE_SAMPLE_H
#define CAPTURE_SAMPLE_H

#include <linux/types.h>

enum {
    SAMPLE_MOST = 1024
};

/* one_in: 1 to SAMPLE_MOST; 1 (or 0) keeps all. Numbers that follow each other, as those of threads
 * do, are spread evenly. */
static inline int sample_keeps(__u32 tid, __u32 one_in)
{
    return one_in <= 1 || (tid * 0x9e3779b1u >> 16) * one_in < 1u << 16;
}

#endif
