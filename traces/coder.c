/* SPDX-License-Identifier: MIT */
#include "traces/coder.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "traces/columns.h"
#include "traces/crc32c.h"

enum slot_state {
    SLOT_FREE,
    SLOT_WAITING, /* for a thread */
    SLOT_CODING,
    SLOT_DONE,
};

struct slot {
    enum slot_state state;
    struct block_header header;
    struct trace_op *ops;
    struct buf bytes; /* header and payload, when done */
    int error;
};

struct coder {
    struct trace_writer_conf conf;
    coder_put *put;
    void *context;
    struct slot *slots; /* a ring: slots[first] leaves first, slots[next] is being filled */
    unsigned int slot_count, first, next;
    struct columns_writer *columns; /* the owner's, without threads */
    pthread_t *threads;
    unsigned int thread_count;
    /* Guards first, the states and stop; the rest of a slot goes with its state. */
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    bool stop;
};

static struct columns_writer *columns_new(const struct coder *coder)
{
    struct columns_writer *columns = columns_writer_new(
        coder->conf.level, coder->conf.small ? NUMBERS_SMALL : NUMBERS_USUAL,
        coder->conf.result);

    if (columns && coder->conf.small && coder->conf.threads <= 1)
        columns_writer_remember(columns);
    return columns;
}

/* Header in front of the payload that begins at BLOCK_HEADER_MAX: moved up to it. */
static void slot_finish(struct slot *slot)
{
    uint8_t header[BLOCK_HEADER_MAX], *data = slot->bytes.data;
    size_t payload = slot->bytes.length - BLOCK_HEADER_MAX, bytes;

    if (payload > BLOCK_PAYLOAD_MAX) {
        slot->error = -EOVERFLOW;
        return;
    }
    slot->header.payload_bytes = (uint32_t)payload;
    slot->header.payload_crc = crc32c(0, data + BLOCK_HEADER_MAX, payload);
    bytes = block_header_store(&slot->header, header);
    memmove(data + bytes, data + BLOCK_HEADER_MAX, payload);
    memcpy(data, header, bytes);
    slot->bytes.length = bytes + payload;
}

static void slot_code(struct slot *slot, struct columns_writer *columns)
{
    buf_clear(&slot->bytes);
    if (!buf_reserve(&slot->bytes, BLOCK_HEADER_MAX)) {
        slot->error = -ENOMEM;
        return;
    }
    slot->bytes.length = BLOCK_HEADER_MAX;
    slot->error = columns_write(columns, slot->ops, slot->header.entries, &slot->bytes,
                                &slot->header.raw_bytes);
    block_header_sum(&slot->header, slot->ops, slot->header.entries);
    if (slot->error == 0)
        slot_finish(slot);
}

/* The oldest block that waits, or NULL. */
static struct slot *slot_waiting(struct coder *coder)
{
    for (unsigned int i = 0; i < coder->slot_count; i++) {
        struct slot *slot = &coder->slots[(coder->first + i) % coder->slot_count];

        if (slot->state == SLOT_WAITING)
            return slot;
    }
    return NULL;
}

static void *thread_run(void *context)
{
    struct coder *coder = context;
    struct columns_writer *columns = columns_new(coder);

    pthread_mutex_lock(&coder->lock);
    while (!coder->stop) {
        struct slot *slot = slot_waiting(coder);

        if (!slot) {
            pthread_cond_wait(&coder->work, &coder->lock);
            continue;
        }
        slot->state = SLOT_CODING;
        pthread_mutex_unlock(&coder->lock);
        if (columns)
            slot_code(slot, columns);
        else
            slot->error = -ENOMEM;
        pthread_mutex_lock(&coder->lock);
        slot->state = SLOT_DONE;
        pthread_cond_signal(&coder->done);
    }
    pthread_mutex_unlock(&coder->lock);
    columns_writer_free(columns);
    return NULL;
}

static int slots_new(struct coder *coder)
{
    /* Each thread one, one being filled, one waiting. */
    coder->slot_count = coder->conf.threads ? coder->conf.threads + 2 : 1;
    coder->slots = calloc(coder->slot_count, sizeof(*coder->slots));
    if (!coder->slots)
        return -ENOMEM;
    for (unsigned int i = 0; i < coder->slot_count; i++) {
        coder->slots[i].ops = malloc(coder->conf.block_ops * sizeof(struct trace_op));
        if (!coder->slots[i].ops)
            return -ENOMEM;
    }
    return 0;
}

int coder_new(struct coder **ret_coder, const struct trace_writer_conf *conf, coder_put *put,
              void *context)
{
    struct coder *coder = calloc(1, sizeof(*coder));
    int err;

    if (!coder)
        return -ENOMEM;
    coder->conf = *conf;
    coder->put = put;
    coder->context = context;
    pthread_mutex_init(&coder->lock, NULL);
    pthread_cond_init(&coder->work, NULL);
    pthread_cond_init(&coder->done, NULL);
    err = slots_new(coder);
    if (err == 0 && conf->threads > 0) {
        coder->threads = calloc(conf->threads, sizeof(*coder->threads));
        if (!coder->threads)
            err = -ENOMEM;
    }
    /* Fewer threads than asked for still do the work, none leaves it to the owner. */
    while (err == 0 && coder->thread_count < conf->threads &&
           pthread_create(&coder->threads[coder->thread_count], NULL, thread_run, coder) == 0)
        coder->thread_count++;
    if (err == 0 && coder->thread_count == 0) {
        coder->columns = columns_new(coder);
        err = coder->columns ? 0 : -ENOMEM;
    }
    if (err < 0) {
        coder_free(coder);
        return err;
    }
    *ret_coder = coder;
    return 0;
}

void coder_free(struct coder *coder)
{
    if (!coder)
        return;
    pthread_mutex_lock(&coder->lock);
    coder->stop = true;
    pthread_cond_broadcast(&coder->work);
    pthread_mutex_unlock(&coder->lock);
    for (unsigned int i = 0; i < coder->thread_count; i++)
        pthread_join(coder->threads[i], NULL);
    for (unsigned int i = 0; coder->slots && i < coder->slot_count; i++) {
        free(coder->slots[i].ops);
        buf_release(&coder->slots[i].bytes);
    }
    columns_writer_free(coder->columns);
    pthread_mutex_destroy(&coder->lock);
    pthread_cond_destroy(&coder->work);
    pthread_cond_destroy(&coder->done);
    free(coder->threads);
    free(coder->slots);
    free(coder);
}

/* Puts the oldest block, waiting for it when it is still being coded. */
static int first_put(struct coder *coder)
{
    struct slot *slot = &coder->slots[coder->first];
    int err;

    pthread_mutex_lock(&coder->lock);
    while (slot->state != SLOT_DONE)
        pthread_cond_wait(&coder->done, &coder->lock);
    pthread_mutex_unlock(&coder->lock);
    err = slot->error;
    if (err == 0)
        err = coder->put(coder->context, &slot->header, slot->bytes.data, slot->bytes.length);
    slot->error = 0;
    pthread_mutex_lock(&coder->lock);
    slot->state = SLOT_FREE;
    coder->first = (coder->first + 1) % coder->slot_count;
    pthread_mutex_unlock(&coder->lock);
    return err;
}

struct trace_op *coder_room(struct coder *coder)
{
    return coder->slots[coder->next].ops;
}

/* Hands the slot on; the one to be filled next is made free. */
static int slot_give(struct coder *coder, enum slot_state state)
{
    pthread_mutex_lock(&coder->lock);
    coder->slots[coder->next].state = state;
    if (state == SLOT_WAITING)
        pthread_cond_signal(&coder->work);
    pthread_mutex_unlock(&coder->lock);
    coder->next = (coder->next + 1) % coder->slot_count;
    return coder->next == coder->first ? first_put(coder) : 0;
}

int coder_ops(struct coder *coder, const struct block_header *header)
{
    struct slot *slot = &coder->slots[coder->next];

    slot->header = *header;
    slot->header.codec = BLOCK_COLUMNS;
    if (coder->thread_count > 0)
        return slot_give(coder, SLOT_WAITING);
    slot_code(slot, coder->columns);
    return slot_give(coder, SLOT_DONE);
}

int coder_block(struct coder *coder, const struct block_header *header, const uint8_t *payload,
                size_t bytes)
{
    struct slot *slot = &coder->slots[coder->next], *after;
    struct trace_op *room = slot->ops;
    int err;

    slot->header = *header;
    buf_clear(&slot->bytes);
    if (!buf_reserve(&slot->bytes, BLOCK_HEADER_MAX + bytes))
        return -ENOMEM;
    slot->bytes.length = BLOCK_HEADER_MAX;
    buf_append(&slot->bytes, payload, bytes);
    slot_finish(slot);
    err = slot_give(coder, SLOT_DONE);
    /* Operations that were put in the room already stay in it. */
    after = &coder->slots[coder->next];
    slot->ops = after->ops;
    after->ops = room;
    return err;
}

int coder_drain(struct coder *coder)
{
    int err = 0;

    while (coder->first != coder->next && err == 0)
        err = first_put(coder);
    return err;
}
