/* SPDX-License-Identifier: MIT */
/* --content: now and then the beginning of a write goes to the collector, which sees how far it
 * can be compressed; the bytes themselves are not kept. */
#include "capture/preload.h"

#define SAMPLE_EVERY_NS UINT64_C(5000000) /* of a thread */

bool shim_content;

/* A sample that finds the process area full is left out: nothing depends on any one of them. */
void content_sample(const void *buffer, size_t bytes)
{
    struct ring_entry entry = {.type = RING_CONTENT};
    uint64_t now = stamp_ns();

    if (bytes == 0 || !shim_ready() || now - shim_thread.sampled_ns < SAMPLE_EVERY_NS)
        return;
    shim_thread.sampled_ns = now;
    shim_entry(&entry, buffer, bytes < RING_SAMPLE_BYTES ? bytes : RING_SAMPLE_BYTES);
}
