/* SPDX-License-Identifier: MIT */
#include "convert/rwbs.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "traces/trace.h"

/* Zone letters come in pairs since 6.x: ZR reset, ZF finish ... after a leading Z. */
static unsigned int zone_kind(char letter)
{
    switch (letter) {
    case 'A': return TRACE_ZONE_APPEND;
    case 'R': return TRACE_ZONE_RESET;
    case 'O': return TRACE_ZONE_OPEN;
    case 'C': return TRACE_ZONE_CLOSE;
    case 'F': return TRACE_ZONE_FINISH;
    }
    return TRACE_OP_COUNT;
}

static int modifier(char letter, bool after_kind, uint32_t *flags)
{
    switch (letter) {
    case 'F': *flags |= after_kind ? TRACE_F_FUA : TRACE_F_PREFLUSH; return 0;
    case 'A': *flags |= TRACE_F_READAHEAD; return 0;
    case 'S': *flags |= TRACE_F_SYNC; return 0;
    case 'M': *flags |= TRACE_F_META; return 0;
    case 'U': *flags |= TRACE_F_ATOMIC; return 0;
    /* Kernels before 2.6.37: nothing passes it, and it is durable. */
    case 'B': *flags |= TRACE_F_PREFLUSH | TRACE_F_FUA; return 0;
    case 'E': return 0; /* discard made secure: the same op to us */
    }
    return -EINVAL;
}

int rwbs_parse(const char *text, size_t length, uint64_t bytes, unsigned int *ret_kind,
               uint32_t *ret_flags)
{
    unsigned int kind = TRACE_OP_COUNT;
    bool known = false;
    uint32_t flags = 0;

    if (!length || length >= RWBS_MAX)
        return -EINVAL;
    for (size_t i = 0; i < length; i++) {
        char letter = text[i];

        if (!known && letter == 'Z' && i + 1 < length) {
            kind = zone_kind(text[++i]);
            known = true;
        } else if (!known &&
                   (letter == 'R' || letter == 'W' || letter == 'D' || letter == 'N')) {
            kind = letter == 'R'   ? TRACE_READ
                   : letter == 'W' ? TRACE_WRITE
                   : letter == 'D' ? TRACE_DISCARD
                                   : TRACE_OP_COUNT;
            known = true;
        } else if (!known && letter == 'F' && i + 1 < length && text[i + 1] == 'F') {
            /* The kernel prints FF for a flush request: PREFLUSH and the op letter F. */
            flags |= TRACE_F_PREFLUSH;
            known = true;
            i++;
        } else if (modifier(letter, known, &flags) < 0) {
            return -EINVAL;
        }
    }
    if ((flags & TRACE_F_PREFLUSH) && !bytes && kind != TRACE_READ && kind != TRACE_DISCARD) {
        kind = TRACE_FLUSH;
        flags &= ~(uint32_t)(TRACE_F_PREFLUSH | TRACE_F_FUA);
    }
    *ret_kind = kind;
    *ret_flags = flags;
    return 0;
}
