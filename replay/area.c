/* SPDX-License-Identifier: MIT */
#include "replay/area.h"

#include <sys/mman.h>

void *area_alloc(size_t bytes, bool shared)
{
    int flags = MAP_ANONYMOUS | MAP_NORESERVE | (shared ? MAP_SHARED : MAP_PRIVATE);
    void *area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);

    return area == MAP_FAILED ? NULL : area;
}

void area_free(void *area, size_t bytes)
{
    if (area != NULL)
        munmap(area, bytes);
}
