/* SPDX-License-Identifier: MIT */
#include "convert/operands.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "convert/sniff.h"

#define CPU_PART ".blktrace."

struct names {
    char **items;
    size_t count;
};

static void names_release(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
}

static int names_add(struct names *names, char *name)
{
    char **grown = name ? realloc(names->items, (names->count + 1) * sizeof(*grown)) : NULL;

    if (!grown) {
        free(name);
        return -ENOMEM;
    }
    names->items = grown;
    grown[names->count++] = name;
    return 0;
}

/* Text compare in which runs of digits count as numbers: cpu 2 before cpu 10. */
static int names_compare(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* Is name "BASE.blktrace.NUMBER"? Then the length of BASE, else 0. */
static size_t cpu_base(const char *name)
{
    const char *part = NULL, *at = name;

    while ((at = strstr(at, CPU_PART)))
        part = at++;
    if (!part || part == name)
        return 0;
    at = part + strlen(CPU_PART);
    if (!isdigit((unsigned char)*at))
        return 0;
    while (isdigit((unsigned char)*at))
        at++;
    return *at ? 0 : (size_t)(part - name);
}

/* Files of dir: those of a per-CPU set (of base when not NULL), or all regular ones. */
static int list_dir(const char *dir, bool cpu_files, const char *base, struct names *names,
                    struct diag *diag)
{
    DIR *handle = opendir(*dir ? dir : ".");
    struct dirent *entry;
    int err = 0;

    if (!handle)
        return diag_errno(diag, -errno, "%s", dir);
    while (err == 0 && (entry = readdir(handle))) {
        size_t length = cpu_base(entry->d_name);
        struct stat st;
        char *path;

        if (entry->d_name[0] == '.' || (cpu_files && !length) ||
            (base && (strlen(base) != length || strncmp(entry->d_name, base, length))))
            continue;
        if (asprintf(&path, "%s%s%s", dir, *dir ? "/" : "", entry->d_name) < 0)
            path = NULL;
        if (path && (stat(path, &st) < 0 || !S_ISREG(st.st_mode)))
            free(path);
        else
            err = names_add(names, path);
    }
    closedir(handle);
    if (err == 0 && names->count)
        qsort(names->items, names->count, sizeof(*names->items), names_compare);
    return err;
}

/* dir and last part of path; dir is "" when there is none. */
static void split_path(const char *path, char **ret_dir, const char **ret_last)
{
    const char *slash = strrchr(path, '/');

    *ret_last = slash ? slash + 1 : path;
    *ret_dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup("");
}

static int remember(struct operands *operands, const char *path)
{
    struct operands_file *grown;
    struct stat st;

    if (!strcmp(path, "-") || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    grown = realloc(operands->files, (operands->file_count + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    operands->files = grown;
    grown[operands->file_count++] = (struct operands_file){st.st_dev, st.st_ino};
    return 0;
}

bool operands_include(const struct operands *operands, const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return false;
    for (size_t i = 0; i < operands->file_count; i++)
        if (operands->files[i].device == st.st_dev && operands->files[i].inode == st.st_ino)
            return true;
    return false;
}

static int add_file(struct operands *operands, const char *path, struct diag *diag)
{
    int err = remember(operands, path);

    if (err < 0)
        return diag_errno(diag, err, "%s", path);
    return input_list_add_path(&operands->inputs, path, diag);
}

/* One CPU's file given alone, while others of its set lie beside it. */
static int warn_of_siblings(struct operands *operands, const char *path, struct diag *diag)
{
    size_t base_length;
    struct names names = {0};
    const char *last;
    char *dir, *base = NULL;
    int err = 0;

    split_path(path, &dir, &last);
    base_length = dir ? cpu_base(last) : 0;
    if (base_length)
        base = strndup(last, base_length);
    if (base)
        err = list_dir(dir, true, base, &names, NULL);
    if (err == 0 && names.count > 1 && operands->note_count < 8) {
        char *note;

        if (asprintf(
                &note, "%s is one of %zu per-CPU files: give %.*s to convert the whole trace",
                path, names.count, (int)(strlen(path) - strlen(last) + base_length), path) > 0)
            operands->notes[operands->note_count++] = note;
    }
    names_release(&names);
    free(dir);
    free(base);
    (void)diag;
    return 0;
}

static int add_names(struct operands *operands, struct names *names, struct diag *diag)
{
    int err = 0;

    for (size_t i = 0; i < names->count && err == 0; i++)
        err = add_file(operands, names->items[i], diag);
    return err;
}

/* The format that takes directories and knows a file of this one, or NULL. */
static const struct importer *dir_importer(const struct names *names)
{
    const struct importer *found = NULL, *importer;

    for (size_t i = 0; i < names->count && !found; i++) {
        struct diag quiet = DIAG_INIT;
        struct input_list list = {0};
        const uint8_t *bytes;
        int64_t length = 0;

        if (input_list_add_path(&list, names->items[i], &quiet) == 0 && list.count)
            length = input_peek(list.items[0], &bytes, SNIFF_BYTES);
        for (unsigned int at = 0; length > 0 && !found && (importer = importer_at(at)); at++)
            if ((importer->flags & IMPORTER_DIRECTORY) && importer->sniff &&
                importer->sniff(bytes, (size_t)length, length < (int64_t)SNIFF_BYTES) > 0)
                found = importer;
        input_list_release(&list);
    }
    return found;
}

static int add_dir(struct operands *operands, const char *path, const struct importer *forced,
                   struct diag *diag)
{
    struct names names = {0};
    int err;

    err = list_dir(path, true, NULL, &names, diag);
    if (err == 0 && !names.count) {
        err = list_dir(path, false, NULL, &names, diag);
        operands->importer = forced ? forced : err == 0 ? dir_importer(&names) : NULL;
        if (err == 0 &&
            (!operands->importer || !(operands->importer->flags & IMPORTER_DIRECTORY)))
            err = diag_set(diag, -EISDIR,
                           "%s: is a directory without NAME.blktrace.CPU files, and not the "
                           "directory of a format that has one",
                           path);
    }
    if (err == 0)
        err = add_names(operands, &names, diag);
    names_release(&names);
    return err;
}

/* 1 when path is the base name of a per-CPU set. */
static int add_base(struct operands *operands, const char *path, struct diag *diag)
{
    struct names names = {0};
    struct diag quiet = DIAG_INIT;
    const char *last;
    char *dir;
    int err;

    split_path(path, &dir, &last);
    if (!dir)
        return diag_errno(diag, -ENOMEM, "%s", path);
    err = list_dir(dir, true, last, &names, &quiet);
    if (err == 0 && names.count)
        err = add_names(operands, &names, diag);
    else
        err = -ENOENT;
    if (err == 0)
        err = 1;
    names_release(&names);
    free(dir);
    return err == -ENOENT && !(diag && diag->error) ? 0 : err;
}

int operands_add(struct operands *operands, const char *word, const struct importer *importer,
                 struct diag *diag)
{
    struct stat st;
    int err;

    if (importer && (importer->flags & IMPORTER_TEXT))
        return input_list_add_memory(&operands->inputs, word, word, strlen(word), diag);
    if (!strcmp(word, "-"))
        return add_file(operands, word, diag);
    if (stat(word, &st) < 0) {
        int missing = -errno;

        err = missing == -ENOENT ? add_base(operands, word, diag) : 0;
        if (err != 0)
            return err < 0 ? err : 0;
        return diag_errno(diag, missing, "%s", word);
    }
    if (S_ISDIR(st.st_mode))
        return add_dir(operands, word, importer, diag);
    err = add_file(operands, word, diag);
    return err < 0 ? err : warn_of_siblings(operands, word, diag);
}

void operands_release(struct operands *operands)
{
    input_list_release(&operands->inputs);
    for (size_t i = 0; i < operands->note_count; i++)
        free(operands->notes[i]);
    free(operands->files);
    memset(operands, 0, sizeof(*operands));
}
