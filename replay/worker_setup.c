/* SPDX-License-Identifier: MIT */
#include "replay/worker_setup.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "replay/area.h"
#include "replay/conf.h"
#include "replay/data.h"
#include "replay/fdcache.h"
#include "replay/target.h"

static uint8_t api_of(const struct engine *engine)
{
    static const struct {
        const char *name;
        enum trace_api api;
    } known[] = {{"sync", TRACE_API_SYNC},         {"threads", TRACE_API_SYNC},
                 {"syslet", TRACE_API_SYNC},       {"vsync", TRACE_API_VECTORED},
                 {"libaio", TRACE_API_LIBAIO},     {"io_uring", TRACE_API_IO_URING},
                 {"posixaio", TRACE_API_POSIX_AIO}, {"mmap", TRACE_API_MMAP}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(engine->name, known[i].name) == 0)
            return (uint8_t)known[i].api;
    return TRACE_API_UNKNOWN;
}

static void note(void *context, const char *text)
{
    struct issuer *issuer = context;
    size_t used = strlen(issuer->notes);

    if (strstr(issuer->notes, text) == NULL)
        snprintf(issuer->notes + used, sizeof issuer->notes - used, "%s\n", text);
}

static void env_fill(struct issuer *issuer, const struct worker_conf *conf, uint32_t thread)
{
    issuer->env = (struct engine_env){
        .clock = conf->clock,
        .targets = conf->engine_targets,
        .target_count = conf->targets->count,
        .targets_fixed = conf->targets_fixed,
        .depth = issuer->depth,
        .batch = issuer->batch,
        .buffers = issuer->buffers,
        .buffer_bytes = issuer->buffers ? conf->stride_bytes * issuer->depth : 0,
        .buffer_stride = conf->stride_bytes,
        .max_length = conf->max_length,
        .writes = conf->writes,
        .all_direct = conf->all_direct,
        .seed = conf->conf->seed + conf->index * 65536ull + thread,
        .diag = &issuer->diag,
        .granted = issuer->granted,
        .granted_size = sizeof issuer->granted,
        .ret_downgraded = &issuer->downgraded,
    };
}

static void account_fill(struct issuer *issuer, const struct worker_conf *conf, uint32_t thread)
{
    issuer->account = (struct account){
        .stats = &conf->stats[thread],
        .results = conf->results ? &conf->results[thread] : NULL,
        .order = conf->order,
        .control = conf->control,
        .clock = conf->clock,
        .paced = conf->conf->pace != PACE_ASAP,
        .late_ns = conf->conf->late_ns,
        .api = api_of(conf->conf->engine.engine),
    };
    stats_init(issuer->account.stats);
}

/*
 * Issuing on time is all that this thread is for: it asks to run when others also want to. With a
 * real-time policy only while a CPU is left for the decoder and the rest of the machine.
 */
static int raise_priority(struct issuer *issuer)
{
    const struct conf *conf = issuer->conf->conf;
    const struct sched_param param = {.sched_priority = 1};
    bool automatic = conf->priority == PRIORITY_AUTO;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int err = 0;

    if (conf->priority == PRIORITY_NORMAL || (automatic && conf->pace == PACE_ASAP) ||
        issuer->conf->clock->simulated)
        return 0;
    if (conf->priority == PRIORITY_REALTIME || (automatic && issuer->conf->workers < cpus)) {
        if (sched_setscheduler(0, SCHED_FIFO, &param) == 0) {
            issuer->conf->report->priority = PRIORITY_REALTIME;
            return 0;
        }
        err = -errno;
    }
    if (conf->priority != PRIORITY_REALTIME) {
        err = setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), -20) == 0 ? 0 : -errno;
        if (err == 0)
            issuer->conf->report->priority = PRIORITY_HIGH;
    }
    if (err != 0 && !automatic)
        return diag_errno(&issuer->diag, err, "--priority %s",
                          conf_word("priority", conf->priority));
    return 0;
}

/* "0-3,8" as the kernel writes it. */
static int read_cpu_list(const char *path, cpu_set_t *ret_set)
{
    FILE *file = fopen(path, "re");
    unsigned int from, to;
    int count = 0;

    if (file == NULL)
        return -errno;
    CPU_ZERO(ret_set);
    while (fscanf(file, "%u", &from) == 1) {
        to = from;
        if (fscanf(file, "-%u", &to) != 1)
            to = from;
        for (; from <= to && from < CPU_SETSIZE; from++, count++)
            CPU_SET(from, ret_set);
        if (fgetc(file) != ',')
            break;
    }
    fclose(file);
    return count > 0 ? 0 : -ENXIO;
}

/* Where the thread may run, and where its memory comes from; before it touches any. */
static int bind_thread(struct issuer *issuer)
{
    const struct conf *conf = issuer->conf->conf;
    unsigned long nodes[CONF_NODES_MAX / (8 * sizeof(unsigned long))] = {0};
    char path[64];
    cpu_set_t set;
    int err;

    if (issuer->conf->cpu >= 0) {
        CPU_ZERO(&set);
        CPU_SET((unsigned int)issuer->conf->cpu, &set);
        if (sched_setaffinity(0, sizeof set, &set) != 0)
            return diag_errno(&issuer->diag, -errno, "--pin: CPU %d", issuer->conf->cpu);
    }
    if (!conf->numa_given)
        return 0;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%u/cpulist", conf->numa);
    err = read_cpu_list(path, &set);
    if (err == 0 && issuer->conf->cpu < 0 && sched_setaffinity(0, sizeof set, &set) != 0)
        err = -errno;
    nodes[conf->numa / (8 * sizeof nodes[0])] |= 1ul << (conf->numa % (8 * sizeof nodes[0]));
    if (err == 0 && syscall(SYS_set_mempolicy, MPOL_BIND, nodes, CONF_NODES_MAX) != 0)
        err = -errno;
    return err == 0 ? 0 : diag_errno(&issuer->diag, err, "--numa %u", conf->numa);
}

/* Of a worker, touched before the run so that it has no faults: as many of the buffers, first
 * to be used, as cost little however deep and many the workers are. */
#define TOUCHED_BYTES (16u << 20)

static int buffers_make(struct issuer *issuer)
{
    const struct worker_conf *conf = issuer->conf;
    uint64_t stride = conf->stride_bytes, bytes = stride * issuer->depth;
    uint64_t touched = TOUCHED_BYTES / worker_threads(conf->conf, conf->depth);

    if (stride == 0)
        return 0;
    issuer->buffers = area_alloc(bytes, false);
    if (issuer->buffers == NULL)
        return diag_errno(&issuer->diag, -ENOMEM, "%u buffers of %llu bytes", issuer->depth,
                          (unsigned long long)stride);
    for (uint64_t at = 0; at < bytes && at < touched; at += 4096)
        ((volatile char *)issuer->buffers)[at] = 0;
    return 0;
}

int issuer_setup(struct issuer *issuer, const struct worker_conf *conf, uint32_t thread,
                 uint32_t depth, uint32_t fd_capacity)
{
    int err;

    memset(issuer, 0, sizeof *issuer);
    issuer->conf = conf;
    issuer->depth = depth;
    issuer->batch = conf->batch < depth ? conf->batch : depth;
    issuer->diag.note = note;
    issuer->diag.note_context = issuer;
    err = bind_thread(issuer);
    if (err != 0)
        return err;
    issuer->slots = calloc(depth, sizeof *issuer->slots);
    if (issuer->slots == NULL)
        return diag_errno(&issuer->diag, -ENOMEM, "depth %u", depth);
    err = buffers_make(issuer);
    if (err != 0)
        return err;
    err = fdcache_new(&issuer->cache, conf->targets, fd_capacity);
    if (err != 0)
        return diag_errno(&issuer->diag, err, "descriptors");
    account_fill(issuer, conf, thread);
    env_fill(issuer, conf, thread);
    for (uint32_t i = 0; i < depth; i++) {
        issuer->slots[i].op.slot_index = i;
        issuer->slots[i].op.core = &issuer->slots[i];
        issuer->slots[i].handle = TRACE_NONE_U32;
    }
    issuer->core = (struct core_op){
        .targets = conf->targets, .cache = issuer->cache, .env = &issuer->env};
    err = engine_open(&issuer->engine, &conf->conf->engine, &issuer->env);
    return err != 0 ? err : raise_priority(issuer);
}

bool issuer_wait_go(struct issuer *issuer)
{
    /* Long: tens of thousands that looked up often would keep the others from getting ready. */
    const struct timespec look = {.tv_sec = 10};
    struct worker_control *control = issuer->conf->control;

    atomic_fetch_add_explicit(&control->ready, 1, memory_order_release);
    while (!atomic_load_explicit(&control->go, memory_order_acquire))
        syscall(SYS_futex, &control->go, FUTEX_WAIT, 0, &look, NULL, 0);
    if (atomic_load_explicit(&control->go, memory_order_acquire) == WORKER_GO_END)
        return false;
    account_start(&issuer->account, control->start_ns);
    waiter_init(&issuer->waiter, issuer->conf->clock, (enum conf_wait)issuer->conf->conf->wait,
                &control->stop);
    stats_thread_usage(issuer->account.stats, -1);
    return true;
}

void issuer_finish(struct issuer *issuer)
{
    struct stats *stats = issuer->account.stats;
    struct worker_report *report = issuer->conf->report;

    stats_thread_usage(stats, 1);
    stats->sleeps = issuer->waiter.sleeps;
    stats->slept_ns = issuer->waiter.slept_ns;
    stats->spun_ns = issuer->waiter.spun_ns;
    stats->overshoot_max_ns = issuer->waiter.overshoot_max_ns;
    stats->margin_ns = issuer->waiter.margin_ns;
    stats->opens = fdcache_opens(issuer->cache);
    for (unsigned int i = 0; i < WORKER_COUNTERS && issuer->engine != NULL; i++) {
        uint64_t value;
        const char *name = engine_counter(issuer->engine, i, &value);

        if (name == NULL)
            break;
        snprintf(report->counters[i].name, sizeof report->counters[i].name, "%s", name);
        __atomic_fetch_add(&report->counters[i].value, value, __ATOMIC_RELAXED);
    }
}

void issuer_fail(struct issuer *issuer, int error)
{
    struct worker_report *report = issuer->conf->report;
    int none = 0;

    if (__atomic_compare_exchange_n(&report->error, &none, error, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
        snprintf(report->text, sizeof report->text, "%.*s", (int)sizeof report->text - 1,
                 issuer->diag.error ? issuer->diag.text : strerror(-error));
    atomic_store(&issuer->conf->control->stop, 1);
}

void issuer_release(struct issuer *issuer)
{
    engine_close(issuer->engine);
    fdcache_free(issuer->cache);
    area_free(issuer->buffers, issuer->conf->stride_bytes * issuer->depth);
    free(issuer->slots);
}

int issuer_stage(struct issuer *issuer, struct slot *slot)
{
    const struct prepared *p = &slot->p;
    struct engine_op *op = &slot->op;

    op->kind = p->kind;
    op->flags = p->flags;
    op->target = p->target;
    op->arg = p->arg;
    op->offset = p->offset;
    op->length = p->length;
    op->buffer = NULL;
    op->fd = -1;
    if (p->kind <= TRACE_WRITE && issuer->buffers != NULL)
        op->buffer = (char *)issuer->buffers + op->slot_index * issuer->conf->stride_bytes;
    if (p->target == TRACE_NONE_U32)
        return 0;
    op->fd = core_op_fd(&issuer->core, p, &slot->handle);
    if (op->fd < 0)
        return op->fd;
    if (p->kind == TRACE_WRITE && issuer->conf->data != NULL)
        data_fill(issuer->conf->data, op->buffer, p, slot->tag.seq);
    return 0;
}

void issuer_complete(struct issuer *issuer, struct slot *slot, uint64_t submit_ns)
{
    struct engine_op *op = &slot->op;

    if (issuer->conf->data != NULL && issuer->conf->conf->verify)
        op->result = data_check(issuer->conf->data, op->buffer, &slot->p, slot->tag.seq,
                                op->result, issuer->account.stats);
    account_done(&issuer->account,
                 &(struct account_op){.p = &slot->p,
                                      .tag = &slot->tag,
                                      .result = op->result,
                                      .due_ns = slot->due_ns,
                                      .issued_ns = op->issued_ns,
                                      .completed_ns = op->completed_ns,
                                      .submit_ns = submit_ns,
                                      .batch = slot->batch,
                                      .cause = slot->cause});
    if (slot->handle != TRACE_NONE_U32) {
        core_op_put(&issuer->core, slot->handle);
        slot->handle = TRACE_NONE_U32;
    }
    if (__builtin_expect(op->result < 0, 0) &&
        issuer->conf->conf->on_error == ON_ERROR_STOP)
        atomic_store(&issuer->conf->control->stop, 1);
}

void issuer_core(struct issuer *issuer, const struct prepared *p, const struct order_tag *tag,
                 uint64_t due_ns, uint8_t cause)
{
    struct account_op op = {.p = p,
                            .tag = tag,
                            .due_ns = due_ns,
                            .submit_ns = TRACE_UNKNOWN_U64,
                            .batch = TRACE_UNKNOWN_U64,
                            .cause = cause};

    op.issued_ns = clock_now_ns(issuer->conf->clock);
    if (p->action == PREPARED_SKIP) {
        account_skip(&issuer->account, p, tag, op.issued_ns);
        return;
    }
    op.result = core_op_run(&issuer->core, p);
    op.completed_ns = clock_now_ns(issuer->conf->clock);
    if (issuer->conf->data != NULL && issuer->conf->conf->verify)
        op.result = data_check(issuer->conf->data, NULL, p, tag->seq, op.result,
                               issuer->account.stats);
    account_depth(&issuer->account, op.issued_ns, op.completed_ns, 1);
    account_done(&issuer->account, &op);
    if (op.result < 0 && issuer->conf->conf->on_error == ON_ERROR_STOP)
        atomic_store(&issuer->conf->control->stop, 1);
}
