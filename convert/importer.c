/* SPDX-License-Identifier: MIT */
#include "convert/importer.h"

#include <string.h>

#define REGISTER(name) extern const struct importer importer_##name;
#include "importers.def"
#undef REGISTER

static const struct importer *const importers[] = {
#define REGISTER(name) &importer_##name,
#include "importers.def"
#undef REGISTER
    NULL,
};

const struct importer *importer_at(unsigned int index)
{
    return index < sizeof(importers) / sizeof(importers[0]) ? importers[index] : NULL;
}

const struct importer *importer_find(const char *name, size_t length)
{
    for (unsigned int i = 0; importers[i]; i++)
        if (!strncmp(importers[i]->name, name, length) && !importers[i]->name[length])
            return importers[i];
    return NULL;
}
