/* SPDX-License-Identifier: MIT */
#include "traces/crc32c.h"

#include <pthread.h>

#include "traces/bytes.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

#define POLYNOMIAL 0x82f63b78u

/* table[k][b]: the effect of byte b with k zero bytes after it, so eight bytes a step. */
static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void table_fill(void)
{
    for (unsigned int byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;

        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
        table[0][byte] = crc;
    }
    for (unsigned int byte = 0; byte < 256; byte++)
        for (int k = 1; k < 8; k++)
            table[k][byte] = table[k - 1][byte] >> 8 ^ table[0][table[k - 1][byte] & 0xff];
}

uint32_t crc32c_table(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *at = data;

    pthread_once(&table_once, table_fill);
    crc = ~crc;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint32_t low = load_le32(at) ^ crc, high = load_le32(at + 4);

        crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^
              table[4][low >> 24] ^ table[3][high & 0xff] ^ table[2][high >> 8 & 0xff] ^
              table[1][high >> 16 & 0xff] ^ table[0][high >> 24];
    }
    for (; bytes > 0; bytes--, at++)
        crc = crc >> 8 ^ table[0][(crc ^ *at) & 0xff];
    return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const void *data,
                                                               size_t bytes)
{
    const uint8_t *at = data;
    uint64_t wide = (uint32_t)~crc;

    for (; bytes >= 8; bytes -= 8, at += 8)
        wide = _mm_crc32_u64(wide, load_le64(at));
    crc = (uint32_t)wide;
    for (; bytes > 0; bytes--, at++)
        crc = _mm_crc32_u8(crc, *at);
    return ~crc;
}

uint32_t crc32c(uint32_t crc, const void *data, size_t bytes)
{
    if (__builtin_cpu_supports("sse4.2"))
        return crc32c_sse42(crc, data, bytes);
    return crc32c_table(crc, data, bytes);
}
#elif defined(__ARM_FEATURE_CRC32)
uint32_t crc32c(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *at = data;

    crc = ~crc;
    for (; bytes >= 8; bytes -= 8, at += 8)
        crc = __crc32cd(crc, load_le64(at));
    for (; bytes > 0; bytes--, at++)
        crc = __crc32cb(crc, *at);
    return ~crc;
}
#else
uint32_t crc32c(uint32_t crc, const void *data, size_t bytes)
{
    return crc32c_table(crc, data, bytes);
}
#endif
