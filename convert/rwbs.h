/* SPDX-License-Identifier: MIT */
/*
 * The letters block tracers print for what a request is: blkparse's and the kernel's RWBS
 * ("WFS", "FWFS", "DS", "RAM", "FN").
 */
#ifndef CONVERT_RWBS_H
#define CONVERT_RWBS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Sets the op kind and TRACE_F_ flags. bytes decides between a write that flushes first and a
 * bare flush ("FF", "FN", "FWS" of no bytes). Returns 0, or -EINVAL for letters that no kernel
 * writes; *ret_kind is TRACE_OP_COUNT for "N": a request that moves nothing.
 */
int rwbs_parse(const char *text, size_t length, uint64_t bytes, unsigned int *ret_kind,
               uint32_t *ret_flags);
#define RWBS_MAX 12 /* letters; longer is no RWBS */

#endif
