/* SPDX-License-Identifier: MIT */
#include "convert/exporter.h"

#include <string.h>

#define REGISTER(name) extern const struct exporter exporter_##name;
#include "exporters.def"
#undef REGISTER

static const struct exporter *const exporters[] = {
#define REGISTER(name) &exporter_##name,
#include "exporters.def"
#undef REGISTER
    NULL,
};

const struct exporter *exporter_at(unsigned int index)
{
    return index < sizeof(exporters) / sizeof(exporters[0]) ? exporters[index] : NULL;
}

const struct exporter *exporter_find(const char *name, size_t length)
{
    for (unsigned int i = 0; exporters[i]; i++)
        if (!strncmp(exporters[i]->name, name, length) && !exporters[i]->name[length])
            return exporters[i];
    return NULL;
}
