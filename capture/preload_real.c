/* SPDX-License-Identifier: MIT */
#include "capture/preload.h"

#include <dlfcn.h>

/* The section's ends, by the linker. */
extern const struct real_function __start_iotape_reals[] __attribute__((visibility("hidden")));
extern const struct real_function __stop_iotape_reals[] __attribute__((visibility("hidden")));

/* Only reached through libraries that the program cannot have called without having them. */
static long missing_function(void)
{
    errno = ENOSYS;
    return -1;
}

void *real_find(const struct real_function *function)
{
    int saved = errno;
    void *found = dlsym(RTLD_NEXT, function->name);

    *function->slot = found ? found : (void *)missing_function;
    errno = saved;
    return *function->slot;
}

void real_find_all(void)
{
    for (const struct real_function *f = __start_iotape_reals; f < __stop_iotape_reals; f++)
        if (!*f->slot)
            real_find(f);
}
