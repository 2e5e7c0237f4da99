/* SPDX-License-Identifier: MIT */
#include "capture/bpf_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/bpf_path.h"

struct bpf_name {
    uint32_t number;         /* in the session's table */
    char *path;              /* as of now */
    struct trace_file facts; /* path unset */
};

void bpf_names_init(struct bpf_names *self, struct session *session)
{
    memset(self, 0, sizeof(*self));
    self->session = session;
    bpf_table_init(&self->files);
    bpf_table_init(&self->paths);
}

void bpf_names_release(struct bpf_names *self)
{
    struct bpf_name *file;
    size_t at = 0;

    while ((file = bpf_table_next(&self->files, &at, NULL))) {
        free(file->path);
        free(file);
    }
    bpf_table_release(&self->files);
    bpf_table_release(&self->paths);
}

static struct bpf_table_key file_table_key(const struct bpf_file_key *key)
{
    return (struct bpf_table_key){key->inode, key->device, key->generation};
}

static uint8_t kind_of_mode(uint32_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG: return TRACE_FILE_REGULAR;
    case S_IFBLK: return TRACE_FILE_BLOCK;
    case S_IFDIR: return TRACE_FILE_DIRECTORY;
    case S_IFCHR: return TRACE_FILE_CHAR;
    case S_IFIFO: return TRACE_FILE_PIPE;
    case S_IFSOCK: return TRACE_FILE_SOCKET;
    default: return TRACE_FILE_OTHER;
    }
}

static struct bpf_table_key path_table_key(const char *path)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (; *path; path++)
        hash = (hash ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
    return (struct bpf_table_key){hash, 0, 0};
}

/* The file that has this name now, or NULL. */
static struct bpf_name *file_named(const struct bpf_names *self, const char *path)
{
    struct bpf_name *file = bpf_table_find(&self->paths, path_table_key(path));

    return file && strcmp(file->path, path) == 0 ? file : NULL;
}

/*
 * Enters path with facts into the session's table and makes it the name of file. What a rename
 * brings there was not there before: nobody need make it for a replay.
 */
static int file_name(struct bpf_names *self, struct bpf_name *file, const char *path)
{
    struct trace_file facts = file->facts;
    uint32_t number;
    char *copy;
    int rc;

    if (file->path) {
        facts.flags = (facts.flags | TRACE_FILE_CREATED) & ~(uint32_t)TRACE_FILE_SPARSE;
        facts.size_bytes = 0;
    }
    if (file->path && strcmp(file->path, path) == 0)
        return 0;
    facts.path = path;
    rc = session_file(self->session, &facts, &number);
    if (rc)
        return rc;
    copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    if (file->path && file_named(self, file->path) == file)
        bpf_table_remove(&self->paths, path_table_key(file->path));
    free(file->path);
    file->path = copy;
    file->number = number;
    return bpf_table_put(&self->paths, path_table_key(path), file);
}

static struct bpf_name *file_new(struct bpf_names *self, const struct bpf_file_key *key)
{
    struct bpf_name *file = calloc(1, sizeof(*file));

    if (!file || bpf_table_put(&self->files, file_table_key(key), file) != 0) {
        free(file);
        return NULL;
    }
    file->facts = (struct trace_file){.size_bytes = TRACE_UNKNOWN_U64,
                                      .inode = key->inode,
                                      .device = key->device,
                                      .ops = TRACE_UNKNOWN_U64,
                                      .bytes = TRACE_UNKNOWN_U64,
                                      .max_end = TRACE_UNKNOWN_U64};
    return file;
}

static void facts_fill(struct trace_file *facts, const struct bpf_event_file *event)
{
    facts->kind = kind_of_mode(event->mode);
    facts->mode = event->mode & 07777;
    facts->size_bytes = event->size_bytes;
    if (facts->kind == TRACE_FILE_BLOCK)
        facts->device = event->rdev;
    if (facts->kind == TRACE_FILE_REGULAR && event->blocks * 512 < event->size_bytes)
        facts->flags |= TRACE_FILE_SPARSE;
    if (event->head.flags & BPF_FILE_CREATED)
        facts->flags |= TRACE_FILE_CREATED;
}

static void path_unknown(const struct bpf_file_key *key, char *out, size_t out_size)
{
    snprintf(out, out_size, "inode:%u:%u:%llu", key->device >> 20, key->device & 0xfffff,
             (unsigned long long)key->inode);
}

/* The path of a file that is known by its inode: from the process's list of mappings, while it
 * lives. */
static int path_of_mapping(const struct bpf_event_file *event, char *out, size_t out_size)
{
    char name[64], line[BPF_PATH_MAX + 256];
    unsigned int major_number, minor_number;
    unsigned long long inode;
    FILE *maps;
    int at;

    path_unknown(&event->key, out, out_size);
    snprintf(name, sizeof(name), "/proc/%u/maps", event->head.pid);
    maps = fopen(name, "re");
    if (!maps)
        return 0;
    while (fgets(line, sizeof(line), maps)) {
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%*s %*s %*s %x:%x %llu %n", &major_number, &minor_number, &inode,
                   &at) < 3)
            continue;
        if (inode != event->key.inode || line[at] != '/' ||
            (major_number << 20 | minor_number) != event->key.device)
            continue;
        snprintf(out, out_size, "%s", line + at);
        break;
    }
    fclose(maps);
    return 0;
}

int bpf_names_event(struct bpf_names *self, const struct bpf_event_file *event, size_t size)
{
    struct bpf_name *file = bpf_table_find(&self->files, file_table_key(&event->key));
    const char *text = (const char *)(event + 1);
    size_t bytes = event->path_bytes;
    int rc;

    if (sizeof(*event) + bytes > size || (bytes && text[bytes - 1] != '\0'))
        return -EBADMSG;
    if (!file)
        file = file_new(self, &event->key);
    if (!file)
        return -ENOMEM;
    if (!file->path)
        facts_fill(&file->facts, event);
    if (event->head.flags & BPF_FILE_BY_INODE)
        rc = path_of_mapping(event, self->path, sizeof(self->path));
    else if (event->head.flags & BPF_FILE_PSEUDO)
        rc = snprintf(self->path, sizeof(self->path), "%s", bytes ? text : "");
    else
        rc = bpf_path_from_components(text, bytes, self->path, sizeof(self->path));
    return rc < 0 ? rc : file_name(self, file, self->path);
}

int bpf_names_number(struct bpf_names *self, const struct bpf_file_key *key,
                     uint32_t *ret_number)
{
    struct bpf_name *file;
    int rc = 0;

    *ret_number = TRACE_NONE_U32;
    if (!key->inode && !key->device)
        return 0;
    file = bpf_table_find(&self->files, file_table_key(key));
    if (!file) {
        file = file_new(self, key);
        if (!file)
            return -ENOMEM;
        path_unknown(key, self->path, sizeof(self->path));
        rc = file_name(self, file, self->path);
    }
    *ret_number = file->number;
    return rc;
}

int bpf_names_by_path(struct bpf_names *self, const char *path, uint8_t kind,
                      uint32_t *ret_number)
{
    struct trace_file facts = {.path = path,
                               .size_bytes = TRACE_UNKNOWN_U64,
                               .kind = kind,
                               .ops = TRACE_UNKNOWN_U64,
                               .bytes = TRACE_UNKNOWN_U64,
                               .max_end = TRACE_UNKNOWN_U64};
    struct bpf_name *file = file_named(self, path);

    if (!file)
        return session_file(self->session, &facts, ret_number);
    *ret_number = file->number;
    return 0;
}

int bpf_names_renamed(struct bpf_names *self, const char *from, const char *to)
{
    size_t length = strlen(from), at = 0;
    struct bpf_name *file = file_named(self, from);
    char text[BPF_PATH_MAX * 2];
    int rc = 0;

    if (file)
        return file_name(self, file, to);
    while (!rc && (file = bpf_table_next(&self->files, &at, NULL))) {
        if (!file->path || strncmp(file->path, from, length) != 0 || file->path[length] != '/')
            continue;
        if ((size_t)snprintf(text, sizeof(text), "%s%s", to, file->path + length) <
            sizeof(text))
            rc = file_name(self, file, text);
    }
    return rc;
}
