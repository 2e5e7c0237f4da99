/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/blk_names.h"

#define NAMES_MAX  (1u << 20)
#define NAME_BYTES 16

struct name {
    uint32_t pid, stream;
    bool used, timed; /* timed: set in time order at least once */
    char comm[NAME_BYTES];
};

struct blk_names {
    struct import *import;
    struct name *slots;
    uint32_t size, count;
};

int blk_names_new(struct blk_names **ret_names, struct import *import)
{
    struct blk_names *names = calloc(1, sizeof(*names));

    if (names != NULL)
        names->slots = calloc(256, sizeof(*names->slots));
    if (names == NULL || names->slots == NULL) {
        free(names);
        return -ENOMEM;
    }
    names->import = import;
    names->size = 256;
    *ret_names = names;
    return 0;
}

void blk_names_free(struct blk_names *names)
{
    if (names == NULL)
        return;
    free(names->slots);
    free(names);
}

static struct name *probe(struct name *slots, uint32_t size, uint32_t pid)
{
    uint32_t at = (pid * 2654435761u) & (size - 1);

    while (slots[at].used && slots[at].pid != pid)
        at = (at + 1) & (size - 1);
    return &slots[at];
}

/* 1 and the entry, 0 when there is no room for another pid, -ENOMEM. */
static int name_of(struct blk_names *names, uint32_t pid, struct name **ret_name)
{
    struct name *name = probe(names->slots, names->size, pid), *slots;

    if (!name->used && names->count == NAMES_MAX)
        return 0;
    if (!name->used && names->count >= names->size / 2) {
        slots = calloc(2 * (size_t)names->size, sizeof(*slots));
        if (slots == NULL)
            return -ENOMEM;
        for (uint32_t i = 0; i < names->size; i++)
            if (names->slots[i].used)
                *probe(slots, 2 * names->size, names->slots[i].pid) = names->slots[i];
        free(names->slots);
        names->slots = slots;
        names->size *= 2;
        name = probe(slots, names->size, pid);
    }
    if (!name->used) {
        *name = (struct name){.pid = pid, .stream = TRACE_NONE_U32, .used = true};
        names->count++;
    }
    *ret_name = name;
    return 1;
}

static void rename_to(struct name *name, const char *comm)
{
    if (memcmp(name->comm, comm, NAME_BYTES) == 0)
        return;
    memcpy(name->comm, comm, NAME_BYTES);
    name->stream = TRACE_NONE_U32;
}

int blk_names_see(struct blk_names *names, uint32_t pid, const char *comm)
{
    struct name *name;
    int ret = name_of(names, pid, &name);

    if (ret == 1 && !name->timed && name->comm[0] == '\0')
        rename_to(name, comm);
    return ret < 0 ? ret : 0;
}

int blk_names_set(struct blk_names *names, uint32_t pid, const char *comm)
{
    struct name *name;
    int ret = name_of(names, pid, &name);

    if (ret == 1) {
        rename_to(name, comm);
        name->timed = true;
    }
    return ret < 0 ? ret : 0;
}

int blk_names_stream(struct blk_names *names, uint32_t pid, uint32_t *ret_stream)
{
    struct name *name;
    int ret = name_of(names, pid, &name);

    if (ret < 0)
        return ret;
    if (ret == 0) {
        *ret_stream = TRACE_NONE_U32;
        return 0;
    }
    if (name->stream == TRACE_NONE_U32) {
        ret = import_stream(names->import, pid, pid, name->comm,
                            strnlen(name->comm, NAME_BYTES), &name->stream);
        if (ret < 0)
            return ret;
    }
    *ret_stream = name->stream;
    return 0;
}
