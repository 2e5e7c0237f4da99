/* SPDX-License-Identifier: MIT */
#include "replay/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replay/area.h"
#include "replay/beneath.h"
#include "replay/claim.h"
#include "replay/conf.h"
#include "replay/plan.h"
#include "traces/diag.h"

/* ---- guards --------------------------------------------------------------------------- */

static const char *map_there(const char *map)
{
    return strchr(map, '=') + 1;
}

static bool same_device(const struct stat *a, const struct stat *b)
{
    return S_ISBLK(a->st_mode) && S_ISBLK(b->st_mode) && a->st_rdev == b->st_rdev;
}

bool target_may_destroy(const struct conf *conf, const struct stat *st)
{
    for (size_t i = 0; i < conf->destroy.count; i++) {
        struct stat named;

        if (stat(conf->destroy.items[i], &named) == 0 && same_device(&named, st))
            return true;
    }
    return false;
}

static int guard_path(const struct conf *conf, const char *path, const char *option,
                      struct diag *diag)
{
    struct stat st;

    if (!conf->writes || stat(path, &st) != 0 || !S_ISBLK(st.st_mode) || target_may_destroy(conf, &st))
        return 0;
    return diag_set(diag, -EINVAL,
                    "%s %s is a block device: --writes would overwrite it; say --destroy %s to "
                    "allow that", option, path, path);
}

static bool is_named(const struct conf *conf, const struct stat *st)
{
    struct stat there;

    if (conf->target != NULL && stat(conf->target, &there) == 0 && same_device(&there, st))
        return true;
    for (size_t i = 0; i < conf->maps.count; i++)
        if (stat(map_there(conf->maps.items[i]), &there) == 0 && same_device(&there, st))
            return true;
    return false;
}

int targets_guard(const struct conf *conf, struct diag *diag)
{
    int err = 0;

    if (conf->target != NULL)
        err = guard_path(conf, conf->target, "--target", diag);
    for (size_t i = 0; i < conf->maps.count && err == 0; i++)
        err = guard_path(conf, map_there(conf->maps.items[i]), "--map to", diag);
    for (size_t i = 0; i < conf->destroy.count && err == 0; i++) {
        struct stat st;

        if (stat(conf->destroy.items[i], &st) != 0)
            err = diag_set(diag, -EINVAL, "--destroy %s: %s", conf->destroy.items[i],
                           strerror(errno));
        else if (!S_ISBLK(st.st_mode))
            err = diag_set(diag, -EINVAL, "--destroy %s: not a block device",
                           conf->destroy.items[i]);
        else if (!is_named(conf, &st))
            err = diag_set(diag, -EINVAL, "--destroy %s: no --target or --map goes there",
                           conf->destroy.items[i]);
    }
    return err;
}

static int claim(struct target_set *set, const char *path, struct diag *diag)
{
    int *claims = realloc(set->claims, (set->claim_count + 1) * sizeof *claims);
    int fd;

    if (claims == NULL)
        return diag_errno(diag, -ENOMEM, "%s", path);
    set->claims = claims;
    fd = device_claim(path, diag);
    if (fd < 0)
        return fd;
    claims[set->claim_count++] = fd;
    return 0;
}

/* ---- places --------------------------------------------------------------------------- */

static int root_add(struct target_set *set, const char *path, const char *prefix,
                    size_t prefix_length, struct diag *diag)
{
    struct target_root *roots = realloc(set->roots, (set->root_count + 1) * sizeof *roots);
    struct target_root root = {.fd = -1, .prefix = prefix, .prefix_length = prefix_length};

    if (roots == NULL)
        return diag_errno(diag, -ENOMEM, "%s", path);
    set->roots = roots;
    root.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root.fd < 0)
        return diag_errno(diag, -errno, "%s", path);
    root.path = strdup(path);
    if (root.path == NULL) {
        close(root.fd);
        return diag_errno(diag, -ENOMEM, "%s", path);
    }
    roots[set->root_count++] = root;
    return 0;
}

static int clone_roots(struct target_set *set, const struct conf *conf, struct diag *diag)
{
    for (uint64_t c = 0; c < conf->clones; c++) {
        char path[4096];
        int err;

        snprintf(path, sizeof path, "%s/clone.%llu", conf->root, (unsigned long long)c);
        if (conf->prepare && !conf->plan && mkdir(path, 0777) != 0 && errno != EEXIST)
            return diag_errno(diag, -errno, "%s", path);
        err = root_add(set, path, NULL, 0, diag);
        if (err != 0)
            return err;
    }
    return 0;
}

static int roots_open(struct target_set *set, const struct conf *conf, struct diag *diag)
{
    int err = 0;

    /* --prepare makes what is missing, its own root first; its parent is the user's. */
    if (conf->root != NULL && conf->prepare && !conf->plan && mkdir(conf->root, 0777) != 0 &&
        errno != EEXIST)
        return diag_errno(diag, -errno, "%s", conf->root);
    if (conf->clones != 0)
        err = clone_roots(set, conf, diag);
    else if (conf->root != NULL)
        err = root_add(set, conf->root, NULL, 0, diag);
    for (size_t i = 0; i < conf->maps.count && err == 0; i++) {
        const char *there = map_there(conf->maps.items[i]);
        size_t length = (size_t)(there - 1 - conf->maps.items[i]);
        struct stat st;

        while (length > 1 && conf->maps.items[i][length - 1] == '/')
            length--;
        if (stat(there, &st) == 0 && S_ISDIR(st.st_mode))
            err = root_add(set, there, conf->maps.items[i], length, diag);
    }
    return err;
}

/* The --map whose A is the whole path, or NULL. */
static const char *mapped_exactly(const struct conf *conf, const char *path)
{
    for (size_t i = 0; i < conf->maps.count; i++) {
        const char *there = map_there(conf->maps.items[i]);
        size_t length = (size_t)(there - 1 - conf->maps.items[i]);
        struct stat st;

        if (strlen(path) == length && memcmp(path, conf->maps.items[i], length) == 0 &&
            !(stat(there, &st) == 0 && S_ISDIR(st.st_mode)))
            return there;
    }
    return NULL;
}

/* The directory that stands for the longest leading part of path; -1 when none does. */
static int find_root(const struct target_set *set, uint32_t clone, const char *path,
                     const char **ret_rest)
{
    size_t best_length = 0;
    int best = -1;

    for (uint32_t i = 0; i < set->root_count; i++) {
        const struct target_root *root = &set->roots[i];

        if (root->prefix == NULL) {
            if (i == clone && best < 0) {
                best = (int)i;
                *ret_rest = path;
            }
        } else if (strncmp(path, root->prefix, root->prefix_length) == 0 &&
                   (path[root->prefix_length] == '/' || path[root->prefix_length] == '\0') &&
                   root->prefix_length > best_length) {
            best = (int)i;
            best_length = root->prefix_length;
            *ret_rest = path + root->prefix_length;
        }
    }
    return best;
}

static int target_place(const struct target_set *set, const struct conf *conf, uint32_t clone,
                        const char *path, struct target *target, struct diag *diag)
{
    const char *there = conf->target != NULL ? conf->target : mapped_exactly(conf, path);
    const char *rest = NULL;
    int length;

    if (there != NULL) {
        target->path = strdup(there);
        target->root = -1;
        return target->path ? 0 : diag_errno(diag, -ENOMEM, "%s", there);
    }
    target->root = find_root(set, clone, path, &rest);
    if (target->root < 0)
        return diag_set(diag, -ENXIO, "%s: no --map or --root says where this file is", path);
    if (rest[0] == '/' && rest[strspn(rest, "/")] == '\0') {
        rest = "."; /* the recording's "/", or what --map replaced, itself */
        target->plan_flags |= PLAN_DIRECTORY;
        target->open_flags = O_RDONLY | O_DIRECTORY;
    } else {
        rest = beneath_relative(rest);
    }
    if (rest == NULL)
        return diag_set(diag, -EXDEV, "%s: this path would lead out of %s", path,
                        set->roots[target->root].path);
    length = snprintf(NULL, 0, "%s/%s", set->roots[target->root].path, rest);
    target->path = malloc((size_t)length + 1);
    if (target->path == NULL)
        return diag_errno(diag, -ENOMEM, "%s", path);
    snprintf(target->path, (size_t)length + 1, "%s/%s", set->roots[target->root].path, rest);
    target->relative = target->path + strlen(set->roots[target->root].path) + 1;
    return 0;
}

static int open_flags(const struct conf *conf, uint32_t plan_flags, bool direct)
{
    int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

    if (plan_flags & PLAN_DIRECTORY)
        return flags | O_RDONLY | O_DIRECTORY;
    if (direct)
        flags |= O_DIRECT;
    return flags | (conf->writes && (plan_flags & PLAN_WRITTEN) ? O_RDWR : O_RDONLY);
}

static int target_add(struct target_set *set, const struct conf *conf, uint32_t clone,
                      const struct trace_file *entry, uint32_t index,
                      const struct plan_file *file, bool direct, struct diag *diag)
{
    struct target target = {
        .fd = -1,
        .file = index,
        .align = 1,
        .plan_flags = file->flags,
        .need_bytes = file->need_bytes,
        .max_end = file->max_end,
        .manifest_bytes = entry ? entry->size_bytes : TRACE_UNKNOWN_U64,
        .mode = entry && entry->mode ? entry->mode & 0777 : 0644,
        .sparse = entry && (entry->flags & TRACE_FILE_SPARSE),
        .direct = direct,
        .open_flags = open_flags(conf, file->flags, direct),
    };
    int err = target_place(set, conf, clone, entry ? entry->path : "", &target, diag);

    if (err != 0)
        return err;
    set->items[set->count++] = target;
    return 0;
}

static bool wants_buffered(const struct plan_file *file, const struct conf *conf)
{
    /* Directories and files with nothing but fsync or name-space calls have no transfers. */
    return (file->flags & PLAN_BUFFERED) || !(file->flags & PLAN_DIRECT) ||
           (conf->unaligned != UNALIGNED_ERROR && (file->align_bits & 65535) != 0);
}

static int add_files(struct target_set *set, const struct conf *conf, const struct plan *plan,
                     const struct trace_reader *reader, uint32_t clone, struct diag *diag)
{
    for (uint32_t i = 0; i < plan->file_count; i++) {
        const struct plan_file *file = &plan->files[i];
        const struct trace_file *entry = trace_reader_file(reader, i);
        int err = 0;

        if (!(file->flags & PLAN_USED))
            continue;
        if (wants_buffered(file, conf)) {
            if (clone == 0)
                set->buffered[i] = set->count;
            err = target_add(set, conf, clone, entry, i, file, false, diag);
        }
        if (err == 0 && (file->flags & PLAN_DIRECT)) {
            if (clone == 0)
                set->direct[i] = set->count;
            err = target_add(set, conf, clone, entry, i, file, true, diag);
        }
        if (err != 0)
            return err;
    }
    return 0;
}

/* --target: one buffered and one direct way to it, as the operations need. */
static int add_single(struct target_set *set, const struct conf *conf, const struct plan *plan,
                      struct diag *diag)
{
    struct plan_file sum = {0};
    int err = 0;

    for (uint32_t i = 0; i <= plan->file_count; i++) {
        const struct plan_file *file = i < plan->file_count ? &plan->files[i] : &plan->no_file;

        sum.flags |= file->flags & ~(uint32_t)(PLAN_DIRECTORY | PLAN_MADE | PLAN_VOLATILE);
        sum.align_bits |= file->align_bits;
        if (file->max_end > sum.max_end)
            sum.max_end = file->max_end;
    }
    if (plan->any_writes)
        sum.flags |= PLAN_WRITTEN;
    if (conf->direct)
        sum.flags |= PLAN_DIRECT;
    sum.need_bytes = sum.max_end;
    for (int direct = 0; direct < 2 && err == 0; direct++) {
        uint32_t *map = direct ? set->direct : set->buffered;

        if (direct ? !(sum.flags & PLAN_DIRECT) : !wants_buffered(&sum, conf))
            continue;
        for (uint32_t i = 0; i <= plan->file_count; i++)
            map[i] = set->count;
        err = target_add(set, conf, 0, NULL, TRACE_NONE_U32, &sum, direct != 0, diag);
    }
    return err;
}

static int claim_all(struct target_set *set, const struct conf *conf, struct diag *diag)
{
    int err = 0;

    if (!conf->writes || conf->plan)
        return 0;
    for (size_t i = 0; i < conf->destroy.count && err == 0; i++)
        err = claim(set, conf->destroy.items[i], diag);
    return err;
}

bool target_is_made_directory(const struct target *target)
{
    return (target->plan_flags & (PLAN_MADE | PLAN_DIRECTORY)) == (PLAN_MADE | PLAN_DIRECTORY);
}

bool target_below_made(const struct target_set *set, const struct target *target)
{
    for (uint32_t i = 0; i < set->made_count; i++) {
        const char *above = set->items[set->made[i]].path;
        size_t length = strlen(above);

        if (strncmp(target->path, above, length) == 0 && target->path[length] == '/')
            return true;
    }
    return false;
}

static int list_made(struct target_set *set, struct diag *diag)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < set->count; i++)
        count += target_is_made_directory(&set->items[i]);
    set->made = calloc(count + 1ull, sizeof *set->made);
    if (set->made == NULL)
        return diag_errno(diag, -ENOMEM, "targets");
    for (uint32_t i = 0; i < set->count; i++)
        if (target_is_made_directory(&set->items[i]))
            set->made[set->made_count++] = i;
    return 0;
}

int targets_new(struct target_set **ret_set, const struct conf *conf, const struct plan *plan,
                const struct trace_reader *reader, bool shared, struct diag *diag)
{
    struct target_set *set = calloc(1, sizeof *set);
    size_t most = ((size_t)plan->used_files * 2 + 2) * (conf->clones ? conf->clones : 1);
    int err = -ENOMEM;

    if (set == NULL)
        return diag_errno(diag, -ENOMEM, "targets");
    set->clones = conf->clones ? (uint32_t)conf->clones : 1;
    set->file_count = plan->file_count;
    set->most = most;
    set->items = calloc(most, sizeof *set->items);
    set->buffered = malloc((plan->file_count + 1ull) * sizeof *set->buffered);
    set->direct = malloc((plan->file_count + 1ull) * sizeof *set->direct);
    set->generation = area_alloc(most * sizeof *set->generation, shared);
    if (set->items == NULL || set->buffered == NULL || set->direct == NULL ||
        set->generation == NULL) {
        diag_errno(diag, err, "targets");
        goto out;
    }
    memset(set->buffered, 0xff, (plan->file_count + 1ull) * sizeof *set->buffered);
    memset(set->direct, 0xff, (plan->file_count + 1ull) * sizeof *set->direct);
    err = 0;
    if (conf->engine.engine->flags & ENGINE_NO_TARGET)
        goto out;
    err = claim_all(set, conf, diag);
    if (err == 0)
        err = roots_open(set, conf, diag);
    if (err == 0 && conf->target != NULL)
        err = add_single(set, conf, plan, diag);
    else
        for (uint32_t c = 0; c < set->clones && err == 0; c++)
            err = add_files(set, conf, plan, reader, c, diag);
    set->per_clone = set->count / set->clones;
    if (err == 0)
        err = list_made(set, diag);
out:
    if (err != 0) {
        targets_free(set);
        return err;
    }
    *ret_set = set;
    return 0;
}

void targets_free(struct target_set *set)
{
    if (set == NULL)
        return;
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->items[i].fd >= 0)
            close(set->items[i].fd);
        free(set->items[i].path);
    }
    for (uint32_t i = 0; i < set->root_count; i++) {
        close(set->roots[i].fd);
        free(set->roots[i].path);
    }
    for (uint32_t i = 0; i < set->claim_count; i++)
        close(set->claims[i]);
    area_free((void *)set->generation, set->most * sizeof *set->generation);
    free(set->made);
    free(set->claims);
    free(set->roots);
    free(set->buffered);
    free(set->direct);
    free(set->items);
    free(set);
}

uint32_t targets_find(const struct target_set *set, uint32_t file, bool direct)
{
    uint32_t index = file == TRACE_NONE_U32 ? set->file_count : file;
    uint32_t target = direct ? set->direct[index] : set->buffered[index];

    /* A call that is no transfer goes through whichever way there is. */
    return target != TRACE_NONE_U32 ? target : direct ? set->buffered[index] : set->direct[index];
}

int target_open(const struct target_set *set, const struct target *target, int extra,
                uint32_t mode)
{
    int fd;

    if (target->root < 0) {
        fd = open(target->path, target->open_flags | extra, mode);
        fd = fd < 0 ? -errno : fd;
    } else {
        fd = beneath_open(set->roots[target->root].fd, target->relative,
                          target->open_flags | extra, mode, false);
    }
    /* O_NONBLOCK kept the open from hanging on a fifo; on a file it would mean nowait. */
    if (fd >= 0)
        fcntl(fd, F_SETFL, target->open_flags & (O_DIRECT | O_APPEND));
    return fd;
}
