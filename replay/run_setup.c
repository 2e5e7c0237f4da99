/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "replay/area.h"
#include "replay/data.h"
#include "replay/feed.h"
#include "replay/order.h"
#include "replay/plan.h"
#include "replay/report.h"
#include "replay/restore.h"
#include "replay/result.h"
#include "replay/run_state.h"
#include "replay/target.h"
#include "traces/diag.h"

#define RING_OPS        16384u /* of the one worker; several share about four times that */
#define RESULT_OPS      16384u
#define PARK_RANKED     16384u
#define PARK_OVERLAP    512u
#define PACED_DEPTH     4096u  /* where the engine knows no limit of its own */
#define PACED_THREADS   128u
#define ASAP_BATCH      32u
#define PACED_BATCH     128u

/* ---- opening ------------------------------------------------------------------------------ */

static void note_tape(const struct run *run, struct diag *diag)
{
    const struct plan *plan = run->plan;
    const char *name = run->conf->tape;
    uint64_t damaged = plan->damaged_ops + run->tape.damaged_ops;

    if (plan->truncated || run->tape.truncated)
        diag_note(diag, "%s has no end: replayed as far as it goes", name);
    if (damaged != 0)
        diag_note(diag, "%s is damaged: %llu operations are missing", name,
                  (unsigned long long)damaged);
    if (plan->mapped_ops != 0 && !(run->conf->engine.engine->flags & ENGINE_NO_TARGET))
        diag_note(diag, "%s: %llu page-cache fills and write-backs of mapped files are replayed as reads "
                        "and writes (--mapped skip leaves them out)", name,
                  (unsigned long long)plan->mapped_ops);
    if (plan->lost != 0)
        diag_note(diag, "%s: its recorder lost %llu events", name,
                  (unsigned long long)plan->lost);
    if (plan->sample.one_in != 0)
        diag_note(diag,
                  "%s is a sample: one thread in %llu was recorded, %llu operations of the others "
                  "are not in it",
                  name, (unsigned long long)plan->sample.one_in,
                  (unsigned long long)plan->sample.passed_ops);
}

int run_open(struct run *run, struct run_report *report, bool *ret_usage, struct diag *diag)
{
    const struct conf *conf = run->conf;
    int err;

    *ret_usage = true;
    err = targets_guard(conf, diag);
    if (err != 0)
        return err;
    *ret_usage = false;
    err = engine_choice_probe(&conf->engine, diag);
    if (err == 0)
        err = tape_open(&run->tape, conf->tape, diag);
    if (err == 0)
        err = plan_new(&run->plan, run->tape.reader, conf, diag);
    if (err != 0)
        return err;
    note_tape(run, diag);
    if (run->tape.lost > run->plan->lost)
        run->plan->lost = run->tape.lost;
    report->plan = run->plan;
    err = targets_new(&run->targets, conf, run->plan, run->tape.reader, conf->processes != 0,
                      diag);
    report->targets = run->targets;
    if (err != 0 || conf->plan)
        return err;
    if (conf->restore != NULL && run->targets->count != 0) {
        err = restore_open(&run->restore, conf, diag);
        if (err == 0)
            err = restore_put_back(run->restore, &report->restore, diag);
        if (err == 0 && conf->restore_only)
            return restore_forget(run->restore, diag);
    }
    if (err == 0 && conf->prepare)
        err = prepare(run->targets, conf, &report->prepared, diag);
    if (err == 0)
        err = targets_open(run->targets, conf, run->plan, run->tape.reader, diag);
    if (err == 0 && run->restore != NULL)
        err = restore_keep(run->restore, run->targets, run->tape.reader, &report->restore, diag);
    if (err == 0 && run->targets->count != 0)
        err = cache_set(run->targets, conf, &report->cache, diag);
    return err;
}

/* ---- sizes -------------------------------------------------------------------------------- */

static int choose_depth(struct run *run, struct diag *diag)
{
    const struct conf *conf = run->conf;
    bool threads = (conf->engine.engine->flags & ENGINE_CORE_THREADS) != 0;
    struct engine_capacity capacity = {0};
    uint32_t depth = (uint32_t)conf->depth;

    if (depth == 0 && conf->pace == PACE_ASAP)
        depth = 1;
    else if (depth == 0)
        depth = threads ? PACED_THREADS : PACED_DEPTH;
    engine_choice_capacity(&conf->engine, depth, run->worker_count, &capacity);
    if (capacity.max_depth != 0 && capacity.max_depth < depth) {
        if (conf->depth != 0)
            return diag_set(diag, -ERANGE, "engine %s: depth %u is more than it can hold (%u): %s",
                            conf->engine.engine->name, depth, capacity.max_depth,
                            capacity.reason);
        depth = capacity.max_depth;
    }
    run->depth = depth;
    run->batch = (uint32_t)conf->batch;
    if (run->batch == 0) {
        uint32_t most = conf->pace == PACE_ASAP ? ASAP_BATCH : PACED_BATCH;

        run->batch = depth < most ? depth : most;
    }
    if (run->batch > depth)
        return diag_set(diag, -ERANGE, "--batch %u is above the depth of %u", run->batch, depth);
    return 0;
}

static uint32_t power_of_two(uint32_t value)
{
    uint32_t power = 1;

    while (power * 2 <= value)
        power *= 2;
    return power;
}

static uint32_t share(uint32_t ops, uint32_t among)
{
    uint32_t each = among > 4 ? ops * 4 / among : ops;

    return power_of_two(each < 256 ? 256 : each);
}

/* CPUs that cpu_set_t can name, and the longest list. */
#define PIN_CPUS 1024

/* "0-3,6" -> the CPU of each worker in turn. */
static int pin_cpus(const char *text, int **ret_cpus, uint32_t *ret_count, struct diag *diag)
{
    int *cpus = calloc(PIN_CPUS, sizeof *cpus);
    uint32_t count = 0;
    const char *at = text;

    if (cpus == NULL)
        return diag_errno(diag, -ENOMEM, "--pin");
    for (;;) {
        char *end;
        long from = strtol(at, &end, 10), to = from;

        if (end == at || from < 0)
            break;
        if (*end == '-') {
            at = end + 1;
            to = strtol(at, &end, 10);
            if (end == at || to < from)
                break;
        }
        if (to >= PIN_CPUS || count + (to - from) >= PIN_CPUS)
            break;
        for (; from <= to; from++)
            cpus[count++] = (int)from;
        if (*end == '\0') {
            *ret_cpus = cpus;
            *ret_count = count;
            return 0;
        }
        if (*end != ',')
            break;
        at = end + 1;
    }
    free(cpus);
    return diag_set(diag, -EINVAL, "--pin: '%s' is not a list of CPUs below 1024 (0-3,6)", text);
}

/* ---- allocation --------------------------------------------------------------------------- */

static int alloc_engine_targets(struct run *run)
{
    const struct target_set *set = run->targets;

    run->engine_targets = calloc(set->count + 1ull, sizeof *run->engine_targets);
    if (run->engine_targets == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < set->count; i++)
        run->engine_targets[i] = (struct engine_target){
            .fd = set->items[i].fd,
            .size_bytes = set->items[i].size_bytes,
            .block_device = set->items[i].block,
            .direct = set->items[i].direct,
            .path = set->items[i].path,
        };
    return 0;
}

static int alloc_orders(struct run *run)
{
    const struct conf *conf = run->conf;
    bool barriers = run->plan->barriers && !(conf->engine.engine->flags & ENGINE_NO_TARGET);
    struct order_conf order_conf = {
        .mask = conf->order,
        .think = conf->pace == PACE_THINK,
        .streams = run->plan->stream_count,
        .files = run->plan->file_count,
        .assume_ns = conf->assume_latency_ns,
        .assume = conf->latency_assumed,
        .shared = run->processes,
    };
    int err = 0;

    /* One at a time is in order anyway. */
    if (conf->order == 0 && !order_conf.think &&
        !(barriers && run->worker_count * run->depth > 1))
        return 0;
    run->order_count = conf->clones ? run->worker_count : 1;
    run->orders = calloc(run->order_count, sizeof(struct order *));
    if (run->orders == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < run->order_count && err == 0; i++)
        err = order_new(&run->orders[i], &order_conf);
    return err;
}

static int alloc_counters(struct run *run)
{
    size_t threads = (size_t)run->worker_count * run->threads_per_worker;

    run->control = area_alloc(sizeof *run->control, run->processes);
    run->stats = area_alloc(threads * sizeof *run->stats, run->processes);
    run->sum = area_alloc(sizeof *run->sum, false);
    run->reports = area_alloc(run->worker_count * sizeof *run->reports, run->processes);
    run->worker_confs = calloc(run->worker_count, sizeof *run->worker_confs);
    run->threads = calloc(run->worker_count, sizeof *run->threads);
    run->pids = calloc(run->worker_count, sizeof *run->pids);
    if (run->control == NULL || run->stats == NULL || run->sum == NULL || run->reports == NULL ||
        run->worker_confs == NULL || run->threads == NULL || run->pids == NULL)
        return -ENOMEM;
    stats_init(run->sum);
    return 0;
}

static bool all_direct(const struct target_set *set)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (!set->items[i].direct)
            return false;
    return set->count > 0;
}

static uint32_t largest_align(const struct target_set *set)
{
    uint32_t align = 4096;

    for (uint32_t i = 0; i < set->count; i++)
        if (set->items[i].align > align)
            align = set->items[i].align;
    return align;
}

static bool all_open(const struct target_set *set)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (set->items[i].fd < 0)
            return false;
    return true;
}

static int fill_worker_confs(struct run *run, struct diag *diag)
{
    const struct conf *conf = run->conf;
    bool moves = !(conf->engine.engine->flags & ENGINE_NO_TARGET) && run->plan->max_transfer > 0;
    uint64_t stride = (run->plan->max_transfer + 4095) & ~4095ull;
    int *cpus = NULL;
    uint32_t cpu_count = 0;
    int err = conf->pin ? pin_cpus(conf->pin, &cpus, &cpu_count, diag) : 0;

    if (err != 0)
        return err;
    if (conf->unaligned == UNALIGNED_ROUND)
        stride += 2ull * largest_align(run->targets);
    for (uint32_t i = 0; i < run->worker_count; i++) {
        bool ordered = run->orders != NULL;

        run->worker_confs[i] = (struct worker_conf){
            .conf = conf,
            .clock = run->clock,
            .targets = run->targets,
            .engine_targets = run->engine_targets,
            .control = run->control,
            .ring = feed_ring(run->feed, i),
            .order = ordered ? run->orders[conf->clones ? i : 0] : NULL,
            .results = run->results ? results_ring(run->results, i * run->threads_per_worker)
                                    : NULL,
            .result_rings = run->threads_per_worker,
            .stats = &run->stats[(size_t)i * run->threads_per_worker],
            .report = &run->reports[i],
            .data = run->data,
            .depth = run->depth,
            .batch = run->batch,
            .fd_capacity = run->targets->fd_budget / run->worker_count,
            .park_capacity = conf->order & ORDER_RANKED || conf->pace == PACE_THINK
                                 ? share(PARK_RANKED, run->worker_count)
                                 : PARK_OVERLAP,
            .stride_bytes = moves ? stride : 0,
            .max_length = run->plan->max_transfer,
            .writes = run->plan->any_writes,
            .all_direct = all_direct(run->targets),
            .targets_fixed = all_open(run->targets),
            .index = i,
            .workers = run->worker_count,
            .cpu = cpu_count ? cpus[i % cpu_count] : -1,
        };
    }
    free(cpus);
    return 0;
}

static uint64_t wall_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int alloc_results(struct run *run, const struct run_report *report, struct diag *diag)
{
    uint32_t threads = run->worker_count * run->threads_per_worker;
    char cache[96];
    struct results_conf conf = {
        .path = run->conf->result,
        .force = run->conf->force,
        .rings = threads,
        .capacity = share(RESULT_OPS, threads),
        .shared = run->processes,
        .of = run->conf->tape,
        .reader = run->tape.reader,
        .config = report->config,
        .cache = cache,
        .clock = run->conf->simulated ? "simulated" : "monotonic",
        .start_wall_ns = run->conf->simulated ? 0 : wall_now_ns(),
    };

    snprintf(cache, sizeof cache, "%s: %llu of %llu pages resident",
             conf_word("cache", run->conf->cache), (unsigned long long)report->cache.resident,
             (unsigned long long)report->cache.pages);
    return run->conf->result ? results_new(&run->results, &conf, diag) : 0;
}

static int choose_shape(struct run *run, struct diag *diag)
{
    const struct conf *conf = run->conf;
    int err;

    run->processes = conf->processes != 0;
    run->worker_count = conf->clones      ? (uint32_t)conf->clones
                        : conf->processes ? (uint32_t)conf->processes
                                          : (uint32_t)conf->workers;
    err = choose_depth(run, diag);
    run->threads_per_worker = worker_threads(conf, run->depth);
    run->clock = &clock_real;
    if (conf->simulated) {
        run->simulated = clock_simulated_new(1000000000);
        run->clock = run->simulated;
        if (run->simulated == NULL)
            return diag_errno(diag, -ENOMEM, "clock");
    }
    return err;
}

int run_alloc(struct run *run, struct run_report *report, struct diag *diag)
{
    const struct conf *conf = run->conf;
    bool data = conf->verify || (run->plan->any_writes && run->targets->count != 0);
    struct feed_conf feed_conf;
    int err = choose_shape(run, diag);

    if (err != 0)
        return err;
    report_config(conf, run->depth, run->batch, report->config, sizeof report->config);
    if (alloc_engine_targets(run) != 0 || alloc_counters(run) != 0 || alloc_orders(run) != 0)
        return diag_errno(diag, -ENOMEM, "%u workers of depth %u", run->worker_count, run->depth);
    feed_conf = (struct feed_conf){
        .reader = run->tape.reader,
        .conf = conf,
        .plan = run->plan,
        .targets = run->targets,
        .orders = run->orders,
        .workers = run->worker_count,
        .capacity = share(RING_OPS, run->worker_count),
        .shared = run->processes,
        .claimed = (conf->engine.engine->flags & ENGINE_CORE_THREADS) != 0,
    };
    err = feed_new(&run->feed, &feed_conf, diag);
    if (err == 0 && data)
        err = data_new(&run->data, conf, run->targets, diag);
    if (err == 0)
        err = alloc_results(run, report, diag);
    if (err == 0)
        err = fill_worker_confs(run, diag);
    return err;
}

void run_release(struct run *run)
{
    if (run == NULL)
        return;
    feed_free(run->feed);
    results_free(run->results);
    data_free(run->data);
    for (uint32_t i = 0; i < run->order_count; i++)
        order_free(run->orders[i]);
    free(run->orders);
    area_free(run->control, sizeof *run->control);
    area_free(run->stats,
              (size_t)run->worker_count * run->threads_per_worker * sizeof *run->stats);
    area_free(run->sum, sizeof *run->sum);
    area_free(run->reports, run->worker_count * sizeof *run->reports);
    free(run->worker_confs);
    free(run->threads);
    free(run->pids);
    free(run->engine_targets);
    clock_simulated_free(run->simulated);
    restore_free(run->restore);
    targets_free(run->targets);
    plan_free(run->plan);
    tape_close(&run->tape);
    free(run);
}

/* ---- the report ---------------------------------------------------------------------------- */

uint64_t run_machine_busy_ns(void)
{
    unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
    FILE *file = fopen("/proc/stat", "re");
    uint64_t ticks = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
               &iowait, &irq, &softirq, &steal) == 8)
        ticks = user + nice + system + irq + softirq + steal;
    fclose(file);
    return ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

static uint64_t timeval_ns(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

static void fill_usage(struct run *run, struct run_report *report)
{
    struct rusage now, children;

    if (run->wall_from_ns == 0)
        return; /* it never started */

    getrusage(RUSAGE_SELF, &now);
    report->cpu_user_ns = timeval_ns(&now.ru_utime) - timeval_ns(&run->usage_before.ru_utime);
    report->cpu_sys_ns = timeval_ns(&now.ru_stime) - timeval_ns(&run->usage_before.ru_stime);
    report->ctx_switches = (uint64_t)(now.ru_nvcsw + now.ru_nivcsw - run->usage_before.ru_nvcsw -
                                      run->usage_before.ru_nivcsw);
    report->max_rss_bytes = (uint64_t)now.ru_maxrss * 1024;
    report->worker_user_ns = run->sum->cpu_user_ns;
    report->worker_sys_ns = run->sum->cpu_sys_ns;
    if (run->processes) {
        report->cpu_user_ns += run->sum->cpu_user_ns;
        report->cpu_sys_ns += run->sum->cpu_sys_ns;
        report->ctx_switches += run->sum->voluntary + run->sum->involuntary;
        getrusage(RUSAGE_CHILDREN, &children);
        report->max_rss_bytes += (uint64_t)children.ru_maxrss * 1024 * run->worker_count;
    }
    report->machine_busy_ns = run_machine_busy_ns() - run->machine_before_ns;
}

static void fill_engine(struct run *run, struct run_report *report)
{
    struct worker_report *first = &run->reports[0];

    for (uint32_t w = 1; w < run->worker_count; w++)
        for (unsigned int i = 0; i < WORKER_COUNTERS; i++)
            first->counters[i].value += run->reports[w].counters[i].value;
    report->counters = first;
    memcpy(report->granted, first->granted, sizeof report->granted);
    memcpy(report->notes, first->notes, sizeof report->notes);
    report->downgraded = first->downgraded;
    report->priority = first->priority ? first->priority : PRIORITY_NORMAL;
}

static void fill_times(struct run *run, struct run_report *report)
{
    const struct stats *sum = run->sum;

    if (sum->first_issue_ns != 0)
        report->duration_ns = sum->last_completion_ns - sum->first_issue_ns;
    report->duration_with_flush_ns =
        report->duration_ns + (run->plan->any_writes ? run->flush_ns : 0);
    report->start_ns = run->control->start_ns;
    report->wall_ns = run->wall_ns;
    if (report->duration_ns != 0)
        report->depth_mean = (double)sum->depth_ns / (double)report->duration_ns;
}

void run_report_fill(struct run *run, struct run_report *report)
{
    const struct conf *conf = run->conf;
    uint64_t copies = conf->loops * (conf->clones ? conf->clones : 1);
    uint64_t accounted;

    for (size_t i = 0; i < (size_t)run->worker_count * run->threads_per_worker; i++)
        stats_merge(run->sum, &run->stats[i]);
    run->sum->skipped[SKIP_WINDOW] = run->plan->skipped[SKIP_WINDOW] * copies;
    accounted = run->sum->issued;
    for (unsigned int r = 0; r < SKIP_REASON_COUNT; r++)
        accounted += run->sum->skipped[r];
    report->tape_ops = run->plan->ops * copies;
    report->not_reached = report->tape_ops - accounted;
    run->sum->skipped[SKIP_NOT_REACHED] = report->not_reached;
    report->tape = conf->tape;
    report->engine = conf->engine.text;
    report->stats = run->sum;
    report->depth = run->depth;
    report->batch = run->batch;
    report->workers = run->worker_count;
    report->depth_max = atomic_load(&run->control->depth.max);
    report->simulated = conf->simulated;
    report->signal = run->signal;
    report->end = run->signal                ? RUN_SIGNAL
                  : report->not_reached == 0 ? RUN_CLEAN
                  : conf->runtime_ns         ? RUN_RUNTIME
                                             : RUN_ERROR_STOP;
    fill_times(run, report);
    fill_usage(run, report);
    fill_engine(run, report);
}
