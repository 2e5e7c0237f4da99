/* SPDX-License-Identifier: MIT */
#include "capture/anonymise.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define NAME_DIGITS      12 /* of a component's hash: 48 bits */
#define EXTENSION_LENGTH 8  /* longer ones are names, not extensions */

int anonymiser_init(struct anonymiser *anonymiser)
{
    ssize_t got = getrandom(anonymiser->key, sizeof(anonymiser->key), 0);

    if (got < 0)
        return -errno;
    return got == sizeof(anonymiser->key) ? 0 : -EIO;
}

static uint64_t rotate(uint64_t value, unsigned int bits)
{
    return (value << bits) | (value >> (64 - bits));
}

static void sip_round(uint64_t state[4])
{
    state[0] += state[1];
    state[1] = rotate(state[1], 13) ^ state[0];
    state[0] = rotate(state[0], 32);
    state[2] += state[3];
    state[3] = rotate(state[3], 16) ^ state[2];
    state[0] += state[3];
    state[3] = rotate(state[3], 21) ^ state[0];
    state[2] += state[1];
    state[1] = rotate(state[1], 17) ^ state[2];
    state[2] = rotate(state[2], 32);
}

/* SipHash-2-4: a keyed hash, so that nobody without the key can test a guessed name. */
static uint64_t keyed_hash(const uint64_t key[2], const char *bytes, size_t length)
{
    uint64_t state[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                         key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
    size_t at = 0;

    for (;;) {
        uint64_t word = 0;
        size_t left = length - at, take = left < 8 ? left : 8;

        for (size_t i = 0; i < take; i++)
            word |= (uint64_t)(unsigned char)bytes[at + i] << (8 * i);
        if (left < 8)
            word |= (uint64_t)length << 56;
        state[3] ^= word;
        sip_round(state);
        sip_round(state);
        state[0] ^= word;
        at += take;
        if (left < 8)
            break;
    }
    state[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(state);
    return state[0] ^ state[1] ^ state[2] ^ state[3];
}

/* The length of ".ext" at the end of a component, 0 when it has none worth keeping. */
static size_t extension_length(const char *name, size_t length)
{
    size_t at = length;

    while (at > 0 && isalnum((unsigned char)name[at - 1]))
        at--;
    if (at < 2 || name[at - 1] != '.' || at == length || length - at > EXTENSION_LENGTH)
        return 0;
    return length - at + 1;
}

char *anonymiser_path(const struct anonymiser *anonymiser, const char *path)
{
    size_t room = strlen(path) * (NAME_DIGITS + EXTENSION_LENGTH + 2) + 1, used = 0;
    char *text = malloc(room);

    if (!text)
        return NULL;
    while (*path) {
        size_t length = strcspn(path, "/"), keep;

        if (length == 0) {
            text[used++] = *path++;
            continue;
        }
        keep = extension_length(path, length);
        used += (size_t)snprintf(
            text + used, room - used, "%0*llx%.*s", NAME_DIGITS,
            (unsigned long long)(keyed_hash(anonymiser->key, path, length - keep) >>
                                 (64 - 4 * NAME_DIGITS)),
            (int)keep, path + length - keep);
        path += length;
    }
    text[used] = '\0';
    return text;
}
