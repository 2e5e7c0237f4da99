/* SPDX-License-Identifier: MIT */
#include "convert/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PACKED_CHUNK (256u << 10)
#define DEPTH_MAX    3u /* archives in archives */

struct unpack {
    char *name;
    struct diag *diag;
    uint8_t head[UNPACK_HEAD];
    size_t head_length, head_used;
    bool head_full;
    int64_t (*read)(struct unpack *unpack, void *buffer, size_t bytes);
    /* a descriptor */
    int fd;
    bool seekable;
    /* memory */
    const uint8_t *bytes;
    size_t length, used;
    /* libarchive over another */
    struct archive *archive;
    struct unpack *inner;
    struct unpack *unpacked;   /* a compressed member, decompressed */
    struct unpack *archive_of; /* borrowed: whose member this reads, for unpacked */
    unsigned int depth;        /* archives around this one */
    uint8_t *chunk;
    char *member_name;
    int error;
};

static int unpack_new(struct unpack **ret_unpack, const char *name, struct diag *diag)
{
    struct unpack *unpack = calloc(1, sizeof(*unpack));

    if (unpack)
        unpack->name = strdup(name);
    if (!unpack || !unpack->name) {
        free(unpack);
        return diag_errno(diag, -ENOMEM, "%s", name);
    }
    unpack->fd = -1;
    unpack->diag = diag;
    *ret_unpack = unpack;
    return 0;
}

void unpack_free(struct unpack *unpack)
{
    if (!unpack)
        return;
    unpack_free(unpack->unpacked);
    if (unpack->archive)
        archive_read_free(unpack->archive);
    unpack_free(unpack->inner);
    if (unpack->fd > STDIN_FILENO)
        close(unpack->fd);
    free(unpack->chunk);
    free(unpack->member_name);
    free(unpack->name);
    free(unpack);
}

/* ---- files, pipes, memory ------------------------------------------------------------ */

static int64_t read_fd(struct unpack *unpack, void *buffer, size_t bytes)
{
    ssize_t got;

    do
        got = read(unpack->fd, buffer, bytes);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return diag_errno(unpack->diag, -errno, "%s", unpack->name);
    return got;
}

static int64_t read_memory(struct unpack *unpack, void *buffer, size_t bytes)
{
    size_t left = unpack->length - unpack->used;

    if (bytes > left)
        bytes = left;
    if (bytes)
        memcpy(buffer, unpack->bytes + unpack->used, bytes);
    unpack->used += bytes;
    return (int64_t)bytes;
}

int unpack_open_path(struct unpack **ret_unpack, const char *path, struct diag *diag)
{
    bool is_stdin = !strcmp(path, "-");
    struct unpack *unpack;
    struct stat st;
    int err;

    err = unpack_new(&unpack, is_stdin ? "standard input" : path, diag);
    if (err < 0)
        return err;
    unpack->read = read_fd;
    unpack->fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (unpack->fd < 0 || fstat(unpack->fd, &st) < 0) {
        err = diag_errno(diag, -errno, "%s", unpack->name);
        goto out;
    }
    if (S_ISDIR(st.st_mode)) {
        err = diag_errno(diag, -EISDIR, "%s", unpack->name);
        goto out;
    }
    unpack->seekable = S_ISREG(st.st_mode);
    *ret_unpack = unpack;
    return 0;
out:
    unpack_free(unpack);
    return err;
}

int unpack_open_memory(struct unpack **ret_unpack, const char *name, const void *bytes,
                       size_t length, struct diag *diag)
{
    struct unpack *unpack;
    int err = unpack_new(&unpack, name, diag);

    if (err < 0)
        return err;
    unpack->read = read_memory;
    unpack->bytes = bytes;
    unpack->length = length;
    *ret_unpack = unpack;
    return 0;
}

void unpack_set_diag(struct unpack *unpack, struct diag *diag)
{
    for (; unpack; unpack = unpack->inner) {
        unpack->diag = diag;
        if (unpack->unpacked)
            unpack_set_diag(unpack->unpacked, diag);
    }
}

bool unpack_is_seekable(const struct unpack *unpack)
{
    return unpack->seekable;
}

int64_t unpack_head(struct unpack *unpack, const uint8_t **ret_bytes)
{
    while (!unpack->head_full && unpack->head_length < UNPACK_HEAD) {
        int64_t got = unpack->read(unpack, unpack->head + unpack->head_length,
                                   UNPACK_HEAD - unpack->head_length);

        if (got < 0)
            return got;
        if (got == 0)
            break;
        unpack->head_length += (size_t)got;
    }
    unpack->head_full = true;
    *ret_bytes = unpack->head;
    return (int64_t)unpack->head_length;
}

int64_t unpack_read(struct unpack *unpack, void *buffer, size_t bytes)
{
    size_t left = unpack->head_length - unpack->head_used;

    if (left == 0)
        return unpack->read(unpack, buffer, bytes);
    if (bytes > left)
        bytes = left;
    memcpy(buffer, unpack->head + unpack->head_used, bytes);
    unpack->head_used += bytes;
    return (int64_t)bytes;
}

/* ---- compressed files and archives ---------------------------------------------------- */

bool unpack_head_is_packed(const uint8_t *head, size_t length)
{
    static const struct {
        size_t length, at;
        const char *bytes;
    } magics[] = {
        {2, 0, "\x1f\x8b"},
        {4, 0, "\x28\xb5\x2f\xfd"},
        {6, 0,
         "\xfd"
         "7zXZ\0"},
        {3, 0, "BZh"},
        {4, 0, "\x04\x22\x4d\x18"},
        {5, 257, "ustar"},
    };

    for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
        if (length >= magics[i].at + magics[i].length &&
            !memcmp(head + magics[i].at, magics[i].bytes, magics[i].length))
            return true;
    return false;
}

static la_ssize_t packed_more(struct archive *archive, void *context, const void **ret_bytes)
{
    struct unpack *unpack = context;
    int64_t got = unpack_read(unpack->inner, unpack->chunk, PACKED_CHUNK);

    if (got < 0) {
        unpack->error = (int)got;
        archive_set_error(archive, (int)-got, "read error");
        return ARCHIVE_FATAL;
    }
    *ret_bytes = unpack->chunk;
    return (la_ssize_t)got;
}

/* Past a member of an uncompressed tar without reading it. */
static la_int64_t packed_skip(struct archive *archive, void *context, la_int64_t bytes)
{
    struct unpack *unpack = context, *inner = unpack->inner;

    (void)archive;
    if (!inner->seekable || inner->head_used < inner->head_length || bytes <= 0)
        return 0;
    return lseek(inner->fd, bytes, SEEK_CUR) < 0 ? 0 : bytes;
}

/* A damaged archive: once, with libarchive's own words. */
static int packed_error(struct unpack *unpack)
{
    const char *words = archive_error_string(unpack->archive);

    if (unpack->error)
        return unpack->error;
    unpack->error = -EBADMSG;
    return diag_set(unpack->diag, -EBADMSG, "%s: cannot be decompressed: %s", unpack->name,
                    words ? words : "damaged");
}

static int64_t read_packed(struct unpack *unpack, void *buffer, size_t bytes)
{
    la_ssize_t got;

    if (unpack->unpacked)
        return unpack_read(unpack->unpacked, buffer, bytes);
    if (unpack->error)
        return unpack->error;
    got = archive_read_data(unpack->archive, buffer, bytes);
    return got < 0 ? packed_error(unpack) : got;
}

/* The member that libarchive stands at may be compressed itself (a tar of .csv.gz). */
static int64_t read_member_raw(struct unpack *unpack, void *buffer, size_t bytes)
{
    struct unpack *outer = unpack->archive_of;
    la_ssize_t got = archive_read_data(outer->archive, buffer, bytes);

    return got < 0 ? packed_error(outer) : got;
}

static int unpack_member(struct unpack *unpack)
{
    const uint8_t *head;
    struct unpack *member;
    int64_t length;
    int err;

    length = unpack_head(unpack, &head);
    if (length < 0)
        return (int)length;
    if (!unpack_head_is_packed(head, (size_t)length) || unpack->depth == DEPTH_MAX)
        return 0;
    err = unpack_new(&member, unpack->name, unpack->diag);
    if (err < 0)
        return err;
    /* The inner one borrows the archive and takes the head that was read already. */
    member->read = read_member_raw;
    member->archive_of = unpack;
    member->depth = unpack->depth + 1;
    memcpy(member->head, unpack->head, unpack->head_length);
    member->head_length = unpack->head_length;
    member->head_full = true;
    err = unpack_open_packed(&unpack->unpacked, member, 0, NULL, unpack->diag);
    unpack->head_length = unpack->head_used = 0;
    return err == -ENOENT ? 0 : err;
}

static int next_member(struct unpack *unpack, const char **ret_name)
{
    struct archive_entry *entry;
    bool named;
    int rc;

    unpack_free(unpack->unpacked);
    unpack->unpacked = NULL;
    unpack->head_length = unpack->head_used = 0;
    unpack->head_full = false;
    do {
        rc = archive_read_next_header(unpack->archive, &entry);
        if (rc == ARCHIVE_EOF)
            return -ENOENT;
        if (rc < ARCHIVE_WARN)
            return packed_error(unpack);
        named = archive_format(unpack->archive) != ARCHIVE_FORMAT_RAW;
    } while (named && archive_entry_filetype(entry) != AE_IFREG);
    free(unpack->member_name);
    unpack->member_name =
        named ? strdup(archive_entry_pathname(entry) ? archive_entry_pathname(entry) : "?")
              : NULL;
    if (ret_name)
        *ret_name = unpack->member_name;
    /* What is not an archive has been decompressed through all its layers already. */
    return named ? unpack_member(unpack) : 0;
}

int unpack_next_member(struct unpack *unpack, const char **ret_name)
{
    return next_member(unpack, ret_name);
}

int unpack_open_packed(struct unpack **ret_unpack, struct unpack *inner, size_t member,
                       const char **ret_name, struct diag *diag)
{
    struct unpack *unpack = NULL;
    int err = unpack_new(&unpack, inner->name, diag);

    if (err < 0) {
        unpack_free(inner);
        return err;
    }
    unpack->inner = inner;
    unpack->depth = inner->depth;
    unpack->read = read_packed;
    unpack->chunk = malloc(PACKED_CHUNK);
    unpack->archive = archive_read_new();
    if (!unpack->chunk || !unpack->archive) {
        err = diag_errno(diag, -ENOMEM, "%s", inner->name);
        goto out;
    }
    archive_read_support_filter_gzip(unpack->archive);
    archive_read_support_filter_zstd(unpack->archive);
    archive_read_support_filter_xz(unpack->archive);
    archive_read_support_filter_bzip2(unpack->archive);
    archive_read_support_filter_lz4(unpack->archive);
    archive_read_support_format_tar(unpack->archive);
    archive_read_support_format_raw(unpack->archive);
    archive_read_set_read_callback(unpack->archive, packed_more);
    archive_read_set_skip_callback(unpack->archive, packed_skip);
    archive_read_set_callback_data(unpack->archive, unpack);
    if (archive_read_open1(unpack->archive) != ARCHIVE_OK) {
        err = packed_error(unpack);
        goto out;
    }
    err = next_member(unpack, ret_name);
    while (err == 0 && member--)
        err = next_member(unpack, ret_name);
    if (err == 0) {
        *ret_unpack = unpack;
        return 0;
    }
out:
    unpack_free(unpack);
    return err;
}
