/* SPDX-License-Identifier: MIT */
#include "capture/preload.h"

#include <dlfcn.h>
#include <string.h>

/* The section's ends, by the linker. */
extern const struct real_function __start_iotape_reals[] __attribute__((visibility("hidden")));
extern const struct real_function __stop_iotape_reals[] __attribute__((visibility("hidden")));

/* Only reached through libraries that the program cannot have called without having them. */
static long missing_function(void)
{
    errno = ENOSYS;
    return -1;
}

static void *find_next(const struct real_function *function)
{
    void *found = dlsym(RTLD_NEXT, function->name);

    if (found)
        *function->slot = found;
    return found;
}

void *real_find(const struct real_function *function)
{
    int saved = errno;
    void *found = find_next(function), *library;

    /* A plugin's liburing is not in the global scope; ours shadows it all the same. */
    if (!found && strstr(function->name, "io_uring_") &&
        (library = dlopen("liburing.so.2", RTLD_LAZY | RTLD_NOLOAD))) {
        found = *function->slot = dlsym(library, function->name);
        dlclose(library);
    }
    errno = saved;
    return found ? found : (void *)missing_function;
}

/* Those that are not there yet are looked for again when they are called. */
void real_find_all(void)
{
    for (const struct real_function *f = __start_iotape_reals; f < __stop_iotape_reals; f++)
        if (!*f->slot)
            find_next(f);
}
