/* SPDX-License-Identifier: MIT */
/* What the workers ask and tell of an order. */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "replay/conf.h"
#include "replay/order_state.h"

static void raise_to(_Atomic uint64_t *value, uint64_t to)
{
    uint64_t now = atomic_load_explicit(value, memory_order_relaxed);

    while (now < to && !atomic_compare_exchange_weak_explicit(
                           value, &now, to, memory_order_acq_rel, memory_order_relaxed))
        ;
}

/* Where an operation must wait: for a number, or for one more completion of a file. */
struct blocker {
    uint64_t seq;
    uint32_t file, file_count; /* file: NONE where it is seq */
};

static bool is_done(const struct order *order, uint64_t seq, struct blocker *blocker)
{
    if (order_is_done(order, seq))
        return true;
    *blocker = (struct blocker){.seq = seq, .file = TRACE_NONE_U32};
    return false;
}

static bool scope_reached(struct order *order, struct scope *scope, uint64_t rank, bool timed,
                          struct blocker *blocker)
{
    uint64_t prefix = atomic_load_explicit(&scope->prefix, memory_order_acquire);

    while (prefix < rank) {
        struct rank_ring *ring = atomic_load_explicit(&scope->ring, memory_order_acquire);
        uint64_t seq =
            atomic_load_explicit(&ring->seq[prefix & ring->mask], memory_order_relaxed);

        if (!is_done(order, seq, blocker))
            return false;
        if (timed)
            raise_to(&scope->last_ns, order->done_ns[seq & order->window_mask]);
        if (atomic_compare_exchange_strong_explicit(&scope->prefix, &prefix, prefix + 1,
                                                    memory_order_acq_rel, memory_order_acquire))
            prefix++;
    }
    return true;
}

static bool before_reached(struct order *order, uint64_t before, struct blocker *blocker)
{
    uint64_t at = atomic_load_explicit(order->contiguous, memory_order_acquire);

    while (at < before) {
        if (!is_done(order, at, blocker))
            return false;
        if (atomic_compare_exchange_strong_explicit(order->contiguous, &at, at + 1,
                                                    memory_order_acq_rel, memory_order_acquire))
            at++;
    }
    return true;
}

static bool file_reached(const struct order *order, uint32_t file, uint32_t issued,
                         struct blocker *blocker)
{
    uint32_t done;

    if (issued == TRACE_NONE_U32)
        return true;
    done = atomic_load_explicit(&order->file_done[file], memory_order_acquire);
    if (done == issued)
        return true;
    *blocker = (struct blocker){.file = file, .file_count = done};
    return false;
}

static bool ready(struct order *order, const struct prepared *p, const struct order_tag *tag,
                  uint64_t *ret_from_ns, struct blocker *blocker)
{
    uint32_t mask = order->conf.mask;

    for (uint32_t i = 0; i < tag->edges; i++)
        if (!is_done(order, tag->edge[i], blocker))
            return false;
    if (tag->before != 0 && !before_reached(order, tag->before, blocker))
        return false;
    if (!file_reached(order, p->file, tag->file_issued, blocker) ||
        !file_reached(order, (uint32_t)(p->offset >> 32), tag->file2_issued, blocker))
        return false;
    if (((mask & ORDER_STREAM) || order->conf.think) &&
        !scope_reached(order, stream_scope(order, p->stream), tag->rank_stream,
                       order->conf.think, blocker))
        return false;
    if ((mask & ORDER_FILE) &&
        !scope_reached(order, file_scope(order, p->file), tag->rank_file, false, blocker))
        return false;
    if ((mask & ORDER_ALL) &&
        !scope_reached(order, all_scope(order), tag->rank_all, false, blocker))
        return false;
    *ret_from_ns = order->conf.think && tag->rank_stream > 0
                       ? atomic_load_explicit(&stream_scope(order, p->stream)->last_ns,
                                              memory_order_acquire)
                       : 0;
    return true;
}

bool order_ready(struct order *order, const struct prepared *p, const struct order_tag *tag,
                 uint64_t *ret_from_ns)
{
    struct blocker blocker;

    return ready(order, p, tag, ret_from_ns, &blocker);
}

/* ---- sleeping ---------------------------------------------------------------------------- */

/* The half of a number's cell that changes when it completes: a futex is a word of 32 bits. */
static uint32_t *seq_word(const struct order *order, uint64_t seq)
{
    uint32_t *words = (uint32_t *)(void *)&order->done[seq & order->window_mask];

    return &words[__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__];
}

static _Atomic uint32_t *sleepers_of(const struct order *order, uint64_t key)
{
    return &order->sleepers[key & (ORDER_SLEEPERS - 1)];
}

static void wake(const struct order *order, uint32_t *word, uint64_t key)
{
    if (atomic_load_explicit(sleepers_of(order, key), memory_order_relaxed) != 0)
        syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

bool order_wait(struct order *order, const struct prepared *p, const struct order_tag *tag,
                uint64_t timeout_ns, uint64_t *ret_from_ns)
{
    const struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
                                     .tv_nsec = (long)(timeout_ns % 1000000000u)};
    struct blocker blocker;
    uint32_t *word, value;
    uint64_t key;

    if (ready(order, p, tag, ret_from_ns, &blocker))
        return true;
    if (blocker.file == TRACE_NONE_U32) {
        key = blocker.seq;
        word = seq_word(order, blocker.seq);
        value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    } else {
        key = blocker.file;
        word = (uint32_t *)(void *)&order->file_done[blocker.file];
        value = blocker.file_count;
    }
    atomic_fetch_add_explicit(sleepers_of(order, key), 1, memory_order_seq_cst);
    /* With the fence of order_done: either it sees the sleeper, or its news are seen here. */
    atomic_thread_fence(memory_order_seq_cst);
    if (blocker.file != TRACE_NONE_U32 || !order_is_done(order, blocker.seq))
        syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
    atomic_fetch_sub_explicit(sleepers_of(order, key), 1, memory_order_relaxed);
    return ready(order, p, tag, ret_from_ns, &blocker);
}

static void file_done(const struct order *order, uint32_t file)
{
    atomic_fetch_add_explicit(&order->file_done[file], 1, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    wake(order, (uint32_t *)(void *)&order->file_done[file], file);
}

void order_done(struct order *order, const struct prepared *p, const struct order_tag *tag,
                uint64_t completed_ns)
{
    if (order->conf.think)
        order->done_ns[tag->seq & order->window_mask] = completed_ns;
    if (p->marks & (PREPARED_FENCED | PREPARED_BARRIER)) {
        if (p->file != TRACE_NONE_U32)
            file_done(order, p->file);
        if (tag->file2_issued != TRACE_NONE_U32)
            file_done(order, (uint32_t)(p->offset >> 32));
    }
    atomic_store_explicit(&order->done[tag->seq & order->window_mask], tag->seq + 1,
                          memory_order_release);
    atomic_fetch_add_explicit(order->version, 1, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    wake(order, seq_word(order, tag->seq), tag->seq);
}

uint64_t order_version(const struct order *order)
{
    return atomic_load_explicit(order->version, memory_order_acquire);
}

uint32_t order_queue(const struct order *order, const struct prepared *p)
{
    if ((order->conf.mask & ORDER_STREAM) || order->conf.think)
        return p->stream == TRACE_NONE_U32 ? order->conf.streams : p->stream;
    if (order->conf.mask & ORDER_FILE)
        return p->file == TRACE_NONE_U32 ? order->conf.files : p->file;
    if (order->conf.mask & ORDER_ALL)
        return 0;
    return UINT32_MAX;
}

uint32_t order_queues(const struct order *order)
{
    if ((order->conf.mask & ORDER_STREAM) || order->conf.think)
        return order->conf.streams + 1;
    if (order->conf.mask & ORDER_FILE)
        return order->conf.files + 1;
    return order->conf.mask & ORDER_ALL ? 1 : 0;
}
