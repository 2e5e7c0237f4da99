/* SPDX-License-Identifier: MIT */
/* CRC-32C (Castagnoli): reflected polynomial 0x82f63b78, start and final inversion. The
 * processor's instruction is used where there is one (SSE4.2, ARMv8 CRC when built for it). */
#ifndef TRACES_CRC32C_H
#define TRACES_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of bytes; crc is 0 to begin, or the value so far to go on. */
uint32_t crc32c(uint32_t crc, const void *data, size_t bytes);
/* The table form alone: the fallback, and what the tests compare with. */
uint32_t crc32c_table(uint32_t crc, const void *data, size_t bytes);

#endif
