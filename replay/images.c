/* SPDX-License-Identifier: MIT */
#include "replay/images.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "replay/beneath.h"
#include "replay/chunks.h"
#include "traces/diag.h"

#define JOURNAL    "journal.jsonl"
#define FORMAT     "iotape before-images 1"
#define IMAGES_MAX (1u << 26)

static const char *const was_words[] = {"nothing", "file", "directory", "device", NULL};

/* ---- by path ---------------------------------------------------------------------------- */

static uint32_t path_hash(const char *path)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (; *path != '\0'; path++)
        hash = (hash ^ (unsigned char)*path) * 16777619u;
    return hash;
}

static uint32_t *path_slot(const struct images *images, const char *path)
{
    uint32_t at = path_hash(path) & (images->table_size - 1);

    while (images->table[at] != TRACE_NONE_U32 &&
           strcmp(images->items[images->table[at]].path, path) != 0)
        at = (at + 1) & (images->table_size - 1);
    return &images->table[at];
}

static int table_grow(struct images *images)
{
    uint32_t size = images->table_size ? images->table_size * 2 : 64;
    uint32_t *table = malloc(size * sizeof *table);

    if (table == NULL)
        return -ENOMEM;
    memset(table, 0xff, size * sizeof *table);
    free(images->table);
    images->table = table;
    images->table_size = size;
    for (uint32_t i = 0; i < images->count; i++)
        *path_slot(images, images->items[i].path) = i;
    return 0;
}

uint32_t images_find(const struct images *images, const char *path)
{
    return images->table_size ? *path_slot(images, path) : TRACE_NONE_U32;
}

static int image_insert(struct images *images, const struct image *image)
{
    struct image *items;

    if (images->count == IMAGES_MAX)
        return -E2BIG;
    if ((images->count + 1) * 2 > images->table_size && table_grow(images) != 0)
        return -ENOMEM;
    if (images->count == images->room) {
        items = realloc(images->items, (images->room * 2 + 64) * sizeof *items);
        if (items == NULL)
            return -ENOMEM;
        images->items = items;
        images->room = images->room * 2 + 64;
    }
    items = &images->items[images->count];
    *items = *image;
    items->path = strdup(image->path);
    if (items->path == NULL)
        return -ENOMEM;
    *path_slot(images, items->path) = images->count++;
    return 0;
}

/* ---- the journal, reading ---------------------------------------------------------------- */

static int load_image(struct images *images, json_int_t number, json_t *line)
{
    const char *was, *path;
    json_int_t bytes, mode, inode;
    struct image image = {0};

    if (json_unpack(line, "{s:s, s:s, s:I, s:I, s:I}", "path", &path, "was", &was, "bytes",
                    &bytes, "mode", &mode, "inode", &inode) != 0 ||
        number != images->count || path[0] != '/' || beneath_relative(path) == NULL ||
        bytes < 0 || images_find(images, path) != TRACE_NONE_U32)
        return -EBADMSG;
    while (was_words[image.was] != NULL && strcmp(was_words[image.was], was) != 0)
        image.was++;
    if (was_words[image.was] == NULL)
        return -EBADMSG;
    image.path = (char *)path;
    image.mode = (uint32_t)mode & 07777;
    image.bytes = (uint64_t)bytes;
    image.inode = (uint64_t)inode;
    return image_insert(images, &image);
}

static int load_part(struct images *images, json_int_t number, json_t *line)
{
    json_int_t from, to;

    if (json_unpack(line, "{s:I, s:I}", "from", &from, "to", &to) != 0 || from < 0 ||
        from >= to || (from | to) % (json_int_t)CHUNK_BYTES != 0 || number >= images->count)
        return -EBADMSG;
    return chunks_touch(json_is_true(json_object_get(line, "hole")) ? images->holes
                                                                    : images->data,
                        (uint32_t)number, (uint64_t)from, (uint64_t)(to - from));
}

/* 1: the line commits what came before. */
static int load_line(struct images *images, const char *text)
{
    json_t *line = json_loads(text, 0, NULL);
    json_t *number = json_object_get(line, "n"), *whole;
    json_int_t n = json_integer_value(number);
    int err = -EBADMSG;

    if (line == NULL)
        return -EBADMSG;
    if (json_object_get(line, "commit") != NULL) {
        err = 1;
    } else if (json_is_integer(number) && n >= 0) {
        whole = json_object_get(line, "whole");
        if (json_object_get(line, "path") != NULL) {
            err = load_image(images, n, line);
        } else if (json_is_string(whole) && n < images->count) {
            images->items[n].whole = true;
            images->items[n].cloned = strcmp(json_string_value(whole), "clone") == 0;
            err = 0;
        } else {
            err = load_part(images, n, line);
        }
    }
    json_decref(line);
    return err;
}

/* Lines up to the last that commits. */
static int load_lines(struct images *images, FILE *file, off_t committed)
{
    char *text = NULL;
    size_t room = 0;
    int err = 0;

    rewind(file);
    if (getline(&text, &room, file) < 0 || strstr(text, FORMAT) == NULL)
        err = -EBADMSG;
    while (err >= 0 && ftello(file) < committed)
        err = getline(&text, &room, file) > 0 ? load_line(images, text) : -EBADMSG;
    free(text);
    return err < 0 ? err : 0;
}

/* Where the last whole line that commits ends; 0: there is none. */
static off_t find_committed(FILE *file)
{
    char *text = NULL;
    size_t room = 0;
    off_t committed = 0;
    ssize_t length;

    while ((length = getline(&text, &room, file)) > 0 && text[length - 1] == '\n')
        if (strstr(text, "\"commit\"") != NULL)
            committed = ftello(file);
    free(text);
    return committed;
}

static int journal_load(struct images *images, struct diag *diag)
{
    FILE *file = fdopen(dup(images->journal_fd), "r");
    off_t committed;
    int err;

    if (file == NULL)
        return diag_errno(diag, -errno, "%s/" JOURNAL, images->folder);
    committed = find_committed(file);
    err = committed > 0 ? load_lines(images, file, committed) : 0;
    fclose(file);
    if (err == -EBADMSG)
        return diag_set(diag, err, "%s/" JOURNAL ": not the journal of a folder of before-images",
                        images->folder);
    /* What a killed writer left after it never counted. */
    if (err == 0 && ftruncate(images->journal_fd, committed) != 0)
        err = -errno;
    if (err == 0 && lseek(images->journal_fd, committed, SEEK_SET) < 0)
        err = -errno;
    return err < 0 ? diag_errno(diag, err, "%s/" JOURNAL, images->folder) : 0;
}

/* ---- the journal, writing ---------------------------------------------------------------- */

static int pend(struct images *images, const char *text)
{
    size_t length = strlen(text);

    if (images->pending_bytes + length + 1 > images->pending_room) {
        size_t room = (images->pending_bytes + length + 1) * 2;
        char *pending = realloc(images->pending, room);

        if (pending == NULL)
            return -ENOMEM;
        images->pending = pending;
        images->pending_room = room;
    }
    memcpy(images->pending + images->pending_bytes, text, length);
    images->pending_bytes += length;
    return 0;
}

/* Takes line over. */
static int pend_line(struct images *images, json_t *line, struct diag *diag)
{
    char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    int err = text ? pend(images, text) : -ENOMEM;

    if (err == 0)
        err = pend(images, "\n");
    free(text);
    json_decref(line);
    return err < 0 ? diag_errno(diag, err, "%s", images->folder) : 0;
}

int images_add(struct images *images, const struct image *image, uint32_t *ret_number,
               struct diag *diag)
{
    uint32_t number = images->count;
    int err = image_insert(images, image);

    if (err < 0)
        return diag_errno(diag, err, "%s", images->folder);
    err = pend_line(images,
                    json_pack("{s:I, s:s, s:s, s:I, s:I, s:I}", "n", (json_int_t)number, "path",
                              image->path, "was", was_words[image->was], "bytes",
                              (json_int_t)image->bytes, "mode", (json_int_t)image->mode,
                              "inode", (json_int_t)image->inode),
                    diag);
    *ret_number = number;
    return err;
}

int images_keep(struct images *images, uint32_t number, uint64_t from, uint64_t to, bool hole,
                struct diag *diag)
{
    int err = chunks_touch(hole ? images->holes : images->data, number, from, to - from);
    json_t *line;

    if (err < 0)
        return diag_errno(diag, err, "%s", images->folder);
    line = json_pack("{s:I, s:I, s:I}", "n", (json_int_t)number, "from", (json_int_t)from, "to",
                     (json_int_t)to);
    if (hole)
        json_object_set_new(line, "hole", json_true());
    return pend_line(images, line, diag);
}

int images_whole(struct images *images, uint32_t number, bool cloned, struct diag *diag)
{
    images->items[number].whole = true;
    images->items[number].cloned = cloned;
    return pend_line(images,
                     json_pack("{s:I, s:s}", "n", (json_int_t)number, "whole",
                               cloned ? "clone" : "parts"),
                     diag);
}

int images_data(const struct images *images, uint32_t number, int flags, struct diag *diag)
{
    char name[16];
    int fd;

    snprintf(name, sizeof name, "%u", number);
    fd = openat(images->dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? diag_errno(diag, -errno, "%s/%s", images->folder, name) : fd;
}

static int write_all(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t got = write(fd, text, bytes);

        if (got < 0 && errno != EINTR)
            return -errno;
        if (got > 0) {
            text += got;
            bytes -= (size_t)got;
        }
    }
    return 0;
}

int images_commit(struct images *images, struct diag *diag)
{
    off_t begin = lseek(images->journal_fd, 0, SEEK_CUR);
    char head[64];
    int err = 0;

    if (images->pending_bytes == 0)
        return 0;
    /* The parts first: the line that commits them must not be on disk before they are. */
    if (syncfs(images->dir_fd) != 0)
        return diag_errno(diag, -errno, "%s", images->folder);
    snprintf(head, sizeof head, "{\"format\":\"%s\"}\n", FORMAT);
    if (begin == 0)
        err = write_all(images->journal_fd, head, strlen(head));
    if (err == 0)
        err = write_all(images->journal_fd, images->pending, images->pending_bytes);
    if (err == 0)
        err = write_all(images->journal_fd, "{\"commit\":true}\n", 16);
    if (err == 0 && (fsync(images->journal_fd) != 0 || fsync(images->dir_fd) != 0))
        err = -errno;
    images->pending_bytes = 0;
    if (err == 0)
        images->committed = images->count;
    return err < 0 ? diag_errno(diag, err, "%s/" JOURNAL, images->folder) : 0;
}

/* ---- opening and closing ----------------------------------------------------------------- */

/* 1, 0 or -errno. */
static int folder_empty(const struct images *images)
{
    int fd = openat(images->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int empty = 1;

    if (dir == NULL)
        return -errno;
    while ((entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            empty = 0;
    closedir(dir);
    return empty;
}

static int journal_open(struct images *images, struct diag *diag)
{
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW, empty, err;

    images->journal_fd = openat(images->dir_fd, JOURNAL, flags);
    if (images->journal_fd < 0 && errno == ENOENT) {
        empty = folder_empty(images);
        if (empty == 0)
            return diag_set(diag, -ENOTEMPTY,
                            "%s holds other things than before-images: name a new or empty folder",
                            images->folder);
        images->journal_fd = openat(images->dir_fd, JOURNAL, flags | O_CREAT | O_EXCL, 0600);
    }
    if (images->journal_fd < 0)
        return diag_errno(diag, -errno, "%s/" JOURNAL, images->folder);
    if (flock(images->journal_fd, LOCK_EX | LOCK_NB) != 0)
        return diag_set(diag, errno == EWOULDBLOCK ? -EBUSY : -errno,
                        "%s: another replay is using these before-images", images->folder);
    err = journal_load(images, diag);
    images->committed = images->count;
    return err;
}

int images_open(struct images **ret_images, const char *folder, struct diag *diag)
{
    struct images *images = calloc(1, sizeof *images);
    int err = 0;

    if (images == NULL)
        return diag_errno(diag, -ENOMEM, "%s", folder);
    images->dir_fd = images->journal_fd = -1;
    images->folder = strdup(folder);
    images->data = chunks_new();
    images->holes = chunks_new();
    if (images->folder == NULL || images->data == NULL || images->holes == NULL)
        err = diag_errno(diag, -ENOMEM, "%s", folder);
    if (err == 0 && mkdir(folder, 0700) != 0 && errno != EEXIST)
        err = diag_errno(diag, -errno, "%s", folder);
    if (err == 0) {
        images->dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        err = images->dir_fd < 0 ? diag_errno(diag, -errno, "%s", folder)
                                 : journal_open(images, diag);
    }
    if (err < 0) {
        images_close(images);
        return err;
    }
    *ret_images = images;
    return 0;
}

static int remove_files(const struct images *images, uint32_t from, struct diag *diag)
{
    char name[16];

    for (uint32_t i = from; i < images->count; i++) {
        snprintf(name, sizeof name, "%u", i);
        if (unlinkat(images->dir_fd, name, 0) != 0 && errno != ENOENT)
            return diag_errno(diag, -errno, "%s/%s", images->folder, name);
    }
    return 0;
}

int images_remove(struct images *images, struct diag *diag)
{
    int err;

    /* An empty journal says that nothing is kept, whatever still lies there. */
    if (ftruncate(images->journal_fd, 0) != 0)
        return diag_errno(diag, -errno, "%s/" JOURNAL, images->folder);
    err = remove_files(images, 0, diag);
    if (err == 0 && unlinkat(images->dir_fd, JOURNAL, 0) != 0)
        err = diag_errno(diag, -errno, "%s/" JOURNAL, images->folder);
    /* Something of the user's may lie there too. */
    if (err == 0 && rmdir(images->folder) != 0 && errno != ENOTEMPTY && errno != EEXIST)
        err = diag_errno(diag, -errno, "%s", images->folder);
    return err;
}

void images_close(struct images *images)
{
    if (images == NULL)
        return;
    /* What was not committed does not count, and takes room. */
    if (images->committed < images->count && images->committed == 0)
        images_remove(images, NULL);
    else if (images->committed < images->count)
        remove_files(images, images->committed, NULL);
    for (uint32_t i = 0; i < images->count; i++)
        free(images->items[i].path);
    free(images->items);
    free(images->table);
    free(images->pending);
    chunks_free(images->data);
    chunks_free(images->holes);
    if (images->journal_fd >= 0)
        close(images->journal_fd);
    if (images->dir_fd >= 0)
        close(images->dir_fd);
    free(images->folder);
    free(images);
}
