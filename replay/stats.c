/* SPDX-License-Identifier: MIT */
#include "replay/stats.h"

#include <string.h>
#include <sys/resource.h>

#define FIRST_WIDTH_NS 10000000u /* 10 ms */

const char *const stats_class_words[STATS_CLASS_COUNT] = {"read", "write", "sync", "other"};

const char *const skip_words[SKIP_REASON_COUNT] = {
    "none",  "read_only",  "unsupported", "no_range",    "name_space",
    "close", "not_a_file", "window",      "not_reached", "mapping",
    "copy",  "symlink",    "zone",        "passthrough",
};

enum stats_class stats_class(unsigned int kind)
{
    switch (kind) {
    case TRACE_READ: return STATS_READ;
    case TRACE_WRITE: return STATS_WRITE;
    case TRACE_FSYNC:
    case TRACE_FDATASYNC:
    case TRACE_SYNC_RANGE:
    case TRACE_FLUSH:
    case TRACE_SYNCFS:
    case TRACE_MSYNC: return STATS_SYNC;
    default: return STATS_OTHER;
    }
}

void stats_init(struct stats *stats)
{
    /* Not hist_init: writing every slot would touch memory that most runs never need. */
    stats->lag.min = UINT64_MAX;
    stats->response.min = UINT64_MAX;
    stats->batch.min = UINT64_MAX;
    for (unsigned int i = 0; i < STATS_CLASS_COUNT; i++)
        stats->service[i].min = UINT64_MAX;
    stats->timeline.width_ns = FIRST_WIDTH_NS;
}

static void timeline_widen(struct stats_timeline *timeline)
{
    struct stats_bucket *b = timeline->buckets;

    for (unsigned int i = 0; i < STATS_BUCKETS / 2; i++) {
        struct stats_bucket one = b[2 * i], two = b[2 * i + 1];

        b[i] = (struct stats_bucket){
            .completed = one.completed + two.completed,
            .bytes = one.bytes + two.bytes,
            .depth_ns = one.depth_ns + two.depth_ns,
            .service_ns = one.service_ns + two.service_ns,
            .lag_ns = one.lag_ns + two.lag_ns,
            .lag_max_ns = one.lag_max_ns > two.lag_max_ns ? one.lag_max_ns : two.lag_max_ns,
            .issued = one.issued + two.issued,
        };
    }
    memset(b + STATS_BUCKETS / 2, 0, sizeof *b * (STATS_BUCKETS / 2));
    timeline->width_ns *= 2;
}

struct stats_bucket *stats_bucket(struct stats_timeline *timeline, uint64_t at_ns)
{
    while (at_ns / timeline->width_ns >= STATS_BUCKETS)
        timeline_widen(timeline);
    return &timeline->buckets[at_ns / timeline->width_ns];
}

void stats_depth(struct stats *stats, uint64_t start_ns, uint64_t from_ns, uint64_t to_ns,
                 uint32_t depth)
{
    if (to_ns <= from_ns || depth == 0)
        return;
    stats->depth_ns += depth * (to_ns - from_ns);
    while (from_ns < to_ns) {
        struct stats_bucket *bucket;
        uint64_t width_ns, end_ns;

        bucket = stats_bucket(&stats->timeline, to_ns > start_ns ? to_ns - start_ns : 0);
        width_ns = stats->timeline.width_ns;
        bucket = &stats->timeline.buckets[from_ns > start_ns ? (from_ns - start_ns) / width_ns : 0];
        end_ns = from_ns > start_ns
                     ? start_ns + ((from_ns - start_ns) / width_ns + 1) * width_ns
                     : start_ns + width_ns;
        if (end_ns > to_ns)
            end_ns = to_ns;
        bucket->depth_ns += depth * (end_ns - from_ns);
        from_ns = end_ns;
    }
}

static void timeline_merge(struct stats_timeline *into, const struct stats_timeline *from,
                           bool used)
{
    if (!used)
        return;
    while (into->width_ns < from->width_ns)
        timeline_widen(into);
    for (unsigned int i = 0; i < STATS_BUCKETS; i++) {
        const struct stats_bucket *b = &from->buckets[i];
        struct stats_bucket *a = &into->buckets[i * from->width_ns / into->width_ns];

        a->completed += b->completed;
        a->bytes += b->bytes;
        a->depth_ns += b->depth_ns;
        a->service_ns += b->service_ns;
        a->lag_ns += b->lag_ns;
        a->lag_max_ns = a->lag_max_ns > b->lag_max_ns ? a->lag_max_ns : b->lag_max_ns;
        a->issued += b->issued;
    }
}

static void max_u64(uint64_t *into, uint64_t from)
{
    if (from > *into)
        *into = from;
}

static void counters_merge(struct stats *into, const struct stats *from)
{
    into->issued += from->issued;
    into->completed += from->completed;
    into->failed += from->failed;
    for (unsigned int k = 0; k < TRACE_OP_COUNT; k++) {
        into->kind_ops[k] += from->kind_ops[k];
        into->kind_bytes[k] += from->kind_bytes[k];
        into->kind_failed[k] += from->kind_failed[k];
        for (unsigned int e = 0; from->failed != 0 && e < STATS_ERRNOS; e++)
            into->errnos[k][e] += from->errnos[k][e];
    }
    into->short_transfers += from->short_transfers;
    into->unexpected += from->unexpected;
    into->verified_blocks += from->verified_blocks;
    into->verify_errors += from->verify_errors;
    into->late += from->late;
    for (unsigned int c = 0; c < TRACE_CAUSE_COUNT; c++)
        into->late_by[c] += from->late_by[c];
    into->holds += from->holds;
    into->held_by_order += from->held_by_order;
    for (unsigned int r = 0; r < SKIP_REASON_COUNT; r++)
        into->skipped[r] += from->skipped[r];
}

/* An unused histogram has no pages yet, and reading it would make them. */
static void merge_used(struct hist *into, const struct hist *from)
{
    if (from->count != 0)
        hist_merge(into, from);
}

void stats_merge(struct stats *into, const struct stats *from)
{
    counters_merge(into, from);
    into->submit_calls += from->submit_calls;
    into->submit_ns += from->submit_ns;
    into->eagain += from->eagain;
    into->depth_ns += from->depth_ns;
    into->depth_max += from->depth_max; /* an upper bound; struct stats_depth has the truth */
    if (from->batch_max > into->batch_max)
        into->batch_max = from->batch_max;
    if (from->first_issue_ns != 0 &&
        (into->first_issue_ns == 0 || from->first_issue_ns < into->first_issue_ns))
        into->first_issue_ns = from->first_issue_ns;
    max_u64(&into->last_completion_ns, from->last_completion_ns);
    into->starved += from->starved;
    into->starved_ns += from->starved_ns;
    into->result_full += from->result_full;
    into->result_full_ns += from->result_full_ns;
    into->sleeps += from->sleeps;
    into->slept_ns += from->slept_ns;
    into->spun_ns += from->spun_ns;
    max_u64(&into->overshoot_max_ns, from->overshoot_max_ns);
    max_u64(&into->margin_ns, from->margin_ns);
    into->cpu_user_ns += from->cpu_user_ns;
    into->cpu_sys_ns += from->cpu_sys_ns;
    into->voluntary += from->voluntary;
    into->involuntary += from->involuntary;
    into->opens += from->opens;
    merge_used(&into->lag, &from->lag);
    merge_used(&into->response, &from->response);
    merge_used(&into->batch, &from->batch);
    for (unsigned int i = 0; i < STATS_CLASS_COUNT; i++)
        merge_used(&into->service[i], &from->service[i]);
    timeline_merge(&into->timeline, &from->timeline,
                   from->issued != 0 || from->completed != 0 || from->depth_ns != 0);
}

void stats_count_error(struct stats *stats, unsigned int kind, int64_t result)
{
    uint64_t number = (uint64_t)-result;

    stats->failed++;
    stats->kind_failed[kind]++;
    stats->errnos[kind][number < STATS_ERRNOS - 1 ? number : STATS_ERRNOS - 1]++;
}

void stats_thread_usage(struct stats *stats, int sign)
{
    struct rusage usage;
    uint64_t factor = (uint64_t)(int64_t)sign; /* wraps: subtraction modulo 2^64 */

    getrusage(RUSAGE_THREAD, &usage);
    stats->cpu_user_ns += factor * ((uint64_t)usage.ru_utime.tv_sec * 1000000000u +
                                    (uint64_t)usage.ru_utime.tv_usec * 1000u);
    stats->cpu_sys_ns += factor * ((uint64_t)usage.ru_stime.tv_sec * 1000000000u +
                                   (uint64_t)usage.ru_stime.tv_usec * 1000u);
    stats->voluntary += factor * (uint64_t)usage.ru_nvcsw;
    stats->involuntary += factor * (uint64_t)usage.ru_nivcsw;
}

void stats_depth_add(struct stats_depth *depth, uint32_t count)
{
    uint32_t now = atomic_fetch_add_explicit(&depth->now, count, memory_order_relaxed) + count;
    uint32_t max = atomic_load_explicit(&depth->max, memory_order_relaxed);

    while (now > max && !atomic_compare_exchange_weak_explicit(
                            &depth->max, &max, now, memory_order_relaxed, memory_order_relaxed))
        ;
}

void stats_depth_sub(struct stats_depth *depth, uint32_t count)
{
    atomic_fetch_sub_explicit(&depth->now, count, memory_order_relaxed);
}
