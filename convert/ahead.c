/* SPDX-License-Identifier: MIT */
#include "convert/ahead.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CHUNKS      4u
#define CHUNK_BYTES (256u << 10)
#define THREADS_MAX 8 /* of all inputs; the others read as they are asked */

static atomic_int threads;

struct chunk {
    uint8_t bytes[CHUNK_BYTES];
    size_t length;
};

struct ahead {
    struct unpack *unpack;
    struct diag *diag, own_diag; /* the thread writes own_diag only */
    struct chunk *chunks;        /* NULL: no thread */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned int filled, taken; /* chunks, ever growing */
    size_t used;                /* of the chunk being taken */
    bool stop, ended;
    int error;
};

/* Fills one chunk; a short one only before the end or an error. */
static int64_t fill_chunk(struct ahead *ahead, struct chunk *chunk)
{
    int64_t got = 1;

    chunk->length = 0;
    while (chunk->length < CHUNK_BYTES && got > 0) {
        got = unpack_read(ahead->unpack, chunk->bytes + chunk->length,
                          CHUNK_BYTES - chunk->length);
        if (got > 0)
            chunk->length += (size_t)got;
    }
    return got;
}

static void *read_on(void *context)
{
    struct ahead *ahead = context;
    int64_t got = 1;

    while (got > 0) {
        struct chunk *chunk;

        pthread_mutex_lock(&ahead->lock);
        while (!ahead->stop && ahead->filled - ahead->taken == CHUNKS)
            pthread_cond_wait(&ahead->changed, &ahead->lock);
        got = ahead->stop ? 0 : 1;
        chunk = &ahead->chunks[ahead->filled % CHUNKS];
        pthread_mutex_unlock(&ahead->lock);
        if (got)
            got = fill_chunk(ahead, chunk);
        else
            chunk->length = 0;
        pthread_mutex_lock(&ahead->lock);
        if (chunk->length)
            ahead->filled++;
        ahead->ended = got <= 0;
        ahead->error = got < 0 ? (int)got : 0;
        pthread_cond_signal(&ahead->changed);
        pthread_mutex_unlock(&ahead->lock);
    }
    return NULL;
}

static void start_thread(struct ahead *ahead)
{
    if (atomic_fetch_add(&threads, 1) >= THREADS_MAX) {
        atomic_fetch_sub(&threads, 1);
        return;
    }
    ahead->chunks = malloc(CHUNKS * sizeof(*ahead->chunks));
    if (!ahead->chunks || pthread_create(&ahead->thread, NULL, read_on, ahead)) {
        /* It goes without, as it does beyond THREADS_MAX. */
        free(ahead->chunks);
        ahead->chunks = NULL;
        atomic_fetch_sub(&threads, 1);
    }
}

int ahead_start(struct ahead **ret_ahead, struct unpack *unpack, struct diag *diag)
{
    struct ahead *ahead = calloc(1, sizeof(*ahead));

    if (!ahead) {
        unpack_free(unpack);
        return diag_errno(diag, -ENOMEM, "reading ahead");
    }
    ahead->diag = diag;
    ahead->unpack = unpack;
    unpack_set_diag(unpack, &ahead->own_diag);
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    start_thread(ahead);
    *ret_ahead = ahead;
    return 0;
}

struct unpack *ahead_end(struct ahead *ahead)
{
    struct unpack *unpack = ahead->unpack;

    if (ahead->chunks) {
        pthread_mutex_lock(&ahead->lock);
        ahead->stop = true;
        pthread_cond_signal(&ahead->changed);
        pthread_mutex_unlock(&ahead->lock);
        pthread_join(ahead->thread, NULL);
        atomic_fetch_sub(&threads, 1);
    }
    if (ahead->own_diag.error) {
        unpack_free(unpack);
        unpack = NULL;
    }
    pthread_mutex_destroy(&ahead->lock);
    pthread_cond_destroy(&ahead->changed);
    free(ahead->chunks);
    free(ahead);
    return unpack;
}

void ahead_free(struct ahead *ahead)
{
    if (ahead)
        unpack_free(ahead_end(ahead));
}

/* An error of the thread becomes the caller's, once the thread has ended. */
static int hand_on(struct ahead *ahead, int error)
{
    if (error < 0 && ahead->own_diag.error)
        diag_set(ahead->diag, ahead->own_diag.error, "%s", ahead->own_diag.text);
    return error;
}

int64_t ahead_read(struct ahead *ahead, void *buffer, size_t bytes)
{
    struct chunk *chunk;
    bool has_chunk;
    int64_t got;

    if (!ahead->chunks) {
        got = unpack_read(ahead->unpack, buffer, bytes);
        return got < 0 ? hand_on(ahead, (int)got) : got;
    }
    pthread_mutex_lock(&ahead->lock);
    while (ahead->filled == ahead->taken && !ahead->ended)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    has_chunk = ahead->filled != ahead->taken;
    got = has_chunk ? 0 : ahead->error;
    pthread_mutex_unlock(&ahead->lock);
    if (!has_chunk)
        return hand_on(ahead, (int)got);
    chunk = &ahead->chunks[ahead->taken % CHUNKS];
    if (bytes > chunk->length - ahead->used)
        bytes = chunk->length - ahead->used;
    memcpy(buffer, chunk->bytes + ahead->used, bytes);
    ahead->used += bytes;
    if (ahead->used < chunk->length)
        return (int64_t)bytes;
    ahead->used = 0;
    pthread_mutex_lock(&ahead->lock);
    ahead->taken++;
    pthread_cond_signal(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    return (int64_t)bytes;
}
