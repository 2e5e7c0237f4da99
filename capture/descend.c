/* SPDX-License-Identifier: MIT */
#include "capture/descend.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct process {
    pid_t pid, parent;
    bool in;
};

struct table {
    struct process *items;
    size_t count, room;
};

/* The fourth field of stat; the second may hold blanks and parentheses. 0 when it is gone. */
static pid_t parent_of(const char *pid)
{
    char path[300], line[512];
    const char *behind;
    FILE *file;
    int parent = 0;

    snprintf(path, sizeof(path), "/proc/%s/stat", pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fgets(line, sizeof(line), file) && (behind = strrchr(line, ')')) &&
        sscanf(behind + 1, " %*c %d", &parent) != 1)
        parent = 0;
    fclose(file);
    return parent;
}

static int table_add(struct table *table, pid_t pid, pid_t parent)
{
    if (table->count == table->room) {
        size_t room = table->room ? table->room * 2 : 512;
        struct process *grown = realloc(table->items, room * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        table->items = grown;
        table->room = room;
    }
    table->items[table->count++] = (struct process){.pid = pid, .parent = parent};
    return 0;
}

static int table_read(struct table *table)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    int err = 0;

    if (!proc)
        return -errno;
    while (err == 0 && (entry = readdir(proc)) != NULL) {
        pid_t parent;

        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        parent = parent_of(entry->d_name);
        if (parent > 0)
            err = table_add(table, (pid_t)atoi(entry->d_name), parent);
    }
    closedir(proc);
    return err;
}

static int by_pid(const void *a, const void *b)
{
    const struct process *x = a, *y = b;

    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static bool is_in(const struct table *table, const pid_t *pids, size_t count, pid_t pid)
{
    const struct process wanted = {.pid = pid}, *process;

    for (size_t i = 0; i < count; i++)
        if (pids[i] == pid)
            return true;
    process = bsearch(&wanted, table->items, table->count, sizeof(wanted), by_pid);
    return process && process->in;
}

int descend(const pid_t *pids, size_t count, descend_found *found, void *context)
{
    struct table table = {0};
    int err = table_read(&table);
    bool more = true;

    if (table.count > 0)
        qsort(table.items, table.count, sizeof(table.items[0]), by_pid);
    /* A generation a turn; numbers wrap, so a child's may be the smaller one. */
    while (err == 0 && more) {
        more = false;
        for (size_t i = 0; i < table.count; i++) {
            struct process *process = &table.items[i];

            if (!process->in && is_in(&table, pids, count, process->parent)) {
                process->in = true;
                more = true;
            }
        }
    }
    for (size_t i = 0; err == 0 && i < table.count; i++)
        if (table.items[i].in)
            err = found(context, table.items[i].pid);
    free(table.items);
    return err;
}
