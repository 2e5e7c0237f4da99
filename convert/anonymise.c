/* SPDX-License-Identifier: MIT */
#include "convert/anonymise.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "convert/import.h"
#include "traces/bytes.h"

#define EXTENSION_MAX 8u
#define HASH_TEXT     17u

static uint64_t rotate(uint64_t value, unsigned int bits)
{
    return value << bits | value >> (64 - bits);
}

static void sip_rounds(uint64_t v[4], unsigned int rounds)
{
    while (rounds--) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

uint64_t anonymise_hash(const uint8_t key[16], const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    uint64_t k0 = load_le64(key), k1 = load_le64(key + 8), last;
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
                     k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u};
    uint8_t tail[8] = {0};
    size_t left = length;

    for (; left >= 8; left -= 8, at += 8) {
        uint64_t word = load_le64(at);

        v[3] ^= word;
        sip_rounds(v, 2);
        v[0] ^= word;
    }
    if (left)
        memcpy(tail, at, left);
    tail[7] = (uint8_t)length;
    last = load_le64(tail);
    v[3] ^= last;
    sip_rounds(v, 2);
    v[0] ^= last;
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* "8,0": says no more than which device of how many. */
static bool is_device_number(const char *path)
{
    size_t digits = strspn(path, "0123456789");

    return digits && path[digits] == ',' && path[digits + 1] &&
           strspn(path + digits + 1, "0123456789") == strlen(path + digits + 1);
}

/* The length of ".ext" at the end of a component, when it is short and plain. */
static size_t extension_length(const char *component, size_t length)
{
    size_t extension = 0;

    while (extension < length && extension <= EXTENSION_MAX &&
           isalnum((unsigned char)component[length - 1 - extension]))
        extension++;
    if (extension == 0 || extension > EXTENSION_MAX || extension + 1 >= length ||
        component[length - 1 - extension] != '.')
        return 0;
    return extension + 1;
}

char *anonymise_path(const uint8_t key[16], const char *path)
{
    size_t length = strlen(path), used = 0;
    char *name;

    if (is_device_number(path))
        return strdup(path);
    name = malloc(length * HASH_TEXT + HASH_TEXT + 1);
    if (!name)
        return NULL;
    while (*path) {
        size_t span = strcspn(path, "/");
        size_t extension = extension_length(path, span);

        if (span) {
            used += (size_t)sprintf(
                name + used, "%016llx",
                (unsigned long long)anonymise_hash(key, path, span - extension));
            memcpy(name + used, path + span - extension, extension);
            used += extension;
        }
        path += span;
        if (*path == '/')
            name[used++] = *path++;
    }
    name[used] = '\0';
    return name;
}

int anonymise_tables(struct import *import)
{
    struct catalog *tables = &import->tables;
    uint8_t key[16];
    int err = 0;

    if (getrandom(key, sizeof(key), 0) != sizeof(key))
        return diag_errno(import->diag, -errno, "--anonymise: random key");
    for (uint32_t i = 0; i < tables->file_count && err == 0; i++) {
        struct trace_file *file = catalog_file_at(tables, i);
        char *name = anonymise_path(key, file->path);

        if (!name) {
            err = diag_errno(import->diag, -ENOMEM, "--anonymise");
            continue;
        }
        free((char *)file->path);
        file->path = name;
        file->inode = 0;
    }
    explicit_bzero(key, sizeof(key));
    return err < 0 ? err : strip_identity(import);
}

int strip_identity(struct import *import)
{
    static const char *const keys[] = {
        TRACE_META_COMMAND, TRACE_META_CONFIG, "host", "hostname", "user", "cwd"};
    struct catalog *tables = &import->tables;

    for (uint32_t i = 0; i < tables->stream_count; i++) {
        char *comm = (char *)catalog_stream_at(tables, i)->comm;

        *comm = '\0';
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        import_meta_drop(import, keys[i]);
    /* That it is a result stays, of what goes. */
    if (import_meta_value(import, TRACE_META_RESULT_OF)) {
        import_meta_drop(import, TRACE_META_RESULT_OF);
        return import_meta(import, TRACE_META_RESULT_OF, "-");
    }
    return 0;
}
