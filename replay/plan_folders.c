/* SPDX-License-Identifier: MIT */
#include "replay/plan_folders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/plan.h"
#include "traces/trace.h"

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Is there a path below this one? paths are sorted. */
static bool has_below(const char *const *paths, size_t count, const char *path)
{
    size_t length = strlen(path), low = 0, high = count;

    while (length > 0 && path[length - 1] == '/')
        length--;
    /* The first path not before path + "/": those below stand together from there. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strncmp(paths[middle], path, length);

        if (order < 0 || (order == 0 && (unsigned char)paths[middle][length] < '/'))
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && strncmp(paths[low], path, length) == 0 && paths[low][length] == '/' &&
           paths[low][length + strspn(paths[low] + length, "/")] != '\0';
}

int plan_folders(struct plan *plan, const struct trace_reader *reader)
{
    const char **paths = calloc(plan->file_count + 1u, sizeof *paths);
    size_t count = 0;

    if (paths == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < plan->file_count; i++)
        if (plan->files[i].flags & PLAN_USED)
            paths[count++] = trace_reader_file(reader, i)->path;
    qsort(paths, count, sizeof *paths, by_text);
    for (uint32_t i = 0; i < plan->file_count; i++) {
        struct plan_file *file = &plan->files[i];

        if ((file->flags & (PLAN_USED | PLAN_DIRECTORY)) == PLAN_USED && file->max_end == 0 &&
            has_below(paths, count, trace_reader_file(reader, i)->path)) {
            file->flags |= PLAN_DIRECTORY;
            file->need_bytes = 0;
        }
    }
    free(paths);
    return 0;
}
