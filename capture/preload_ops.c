/* SPDX-License-Identifier: MIT */
/* The hot path: a record is reserved before the call and completed after it. */
#include "capture/preload.h"

#include <unistd.h>

/* Reserving in one instruction makes signal handlers on this thread take other slots. The ring
 * has one thread, so it need not be atomic between processors. */
static inline uint64_t reserve_position(struct ring_header *ring)
{
#if defined(__x86_64__)
    uint64_t position = 1;

    __asm__ volatile("xaddq %0, %1" : "+r"(position), "+m"(ring->tail) : : "memory");
    return position;
#else
    return __atomic_fetch_add(&ring->tail, 1, __ATOMIC_RELAXED);
#endif
}

/* dropped: what counts it when the ring is full. */
static inline struct ring_record *reserve(unsigned int kind, unsigned int api,
                                          uint64_t *dropped)
{
    struct shim_thread *thread = &shim_thread;
    struct ring_header *ring = thread->ring;
    struct ring_record *record;
    uint64_t position;

    /* Beside head, which is read next. A completion (of no api) is of an op that was recorded,
     * perhaps by another thread. */
    if (UNLIKELY(__atomic_load_n(&ring->passing, __ATOMIC_RELAXED)) && api != TRACE_API_UNKNOWN) {
        __atomic_store_n(&ring->passed, ring->passed + 1, __ATOMIC_RELAXED);
        return NULL;
    }
    if (UNLIKELY(ring->tail - __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) >
                 thread->mask - RING_SLACK)) {
        __atomic_store_n(dropped, *dropped + 1, __ATOMIC_RELAXED);
        return NULL;
    }
    position = reserve_position(ring);
    record = &thread->slots[position & thread->mask];
    record->other = 0;
    record->arg = 0;
    record->flags = 0;
    record->file = 0;
    record->kind = (uint8_t)kind;
    record->api = (uint8_t)api;
    record->completion = TRACE_COMPLETION_EXACT;
    record->type = RING_OP;
    record->offset = TRACE_UNKNOWN_U64;
    record->length = 0;
    /* The collector has had the next slots in its cache: they come back during the call. */
    __builtin_prefetch(&thread->slots[(position + 1) & thread->mask], 1);
    record->begin_ns = stamp_ns();
    __atomic_store_n(&record->state, RING_STATE_OPEN(position), __ATOMIC_RELEASE);
    return record;
}

struct ring_record *op_reserve(unsigned int kind, unsigned int api)
{
    return shim_ready() ? reserve(kind, api, &shim_thread.ring->dropped) : NULL;
}

struct ring_record *op_reserve_done(void)
{
    return shim_ready()
               ? reserve(TRACE_READ, TRACE_API_UNKNOWN, &shim_thread.ring->dropped_done)
               : NULL;
}

struct ring_record *op_begin(int fd, unsigned int kind, unsigned int api, uint64_t offset,
                             uint64_t length)
{
    struct ring_record *record;
    uint64_t slot;

    if (UNLIKELY(!shim_ready()))
        return NULL;
    slot = file_slot(fd);
    if (slot & SLOT_IGNORED)
        return NULL;
    if (UNLIKELY(slot & SLOT_LOST)) {
        shim_thread.ring->dropped_files++;
        return NULL;
    }
    record = reserve(kind, api, &shim_thread.ring->dropped);
    if (UNLIKELY(!record))
        return NULL;
    record->file = slot_file(slot);
    record->offset = offset > INT64_MAX ? TRACE_UNKNOWN_U64 : offset; /* negative: refused */
    record->length = length;
    record->flags = slot_op_flags(slot);
    return record;
}

void op_end_at(struct ring_record *record, int64_t result, uint64_t end_ns)
{
    record->end_ns = end_ns;
    record->result = result;
    __atomic_store_n(&record->state, record->state + 1, __ATOMIC_RELEASE);
}

void op_end(struct ring_record *record, int64_t result)
{
    op_end_at(record, result == -1 ? -errno : result, stamp_ns());
}

void op_end_position(struct ring_record *record, int fd, int64_t result)
{
    uint64_t end_ns = stamp_ns();
    long position = RAW(lseek, fd, 0, SEEK_CUR);

    if (position >= 0)
        record->offset = (uint64_t)position - (result > 0 ? (uint64_t)result : 0);
    record->flags |= TRACE_F_POSITION;
    op_end_at(record, result == -1 ? -errno : result, end_ns);
}
