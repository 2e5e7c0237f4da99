/* SPDX-License-Identifier: MIT */
#include "replay/run.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "replay/area.h"
#include "replay/data.h"
#include "replay/feed.h"
#include "replay/order.h"
#include "replay/plan.h"
#include "replay/progress.h"
#include "replay/result.h"
#include "replay/run_state.h"
#include "replay/target.h"
#include "traces/diag.h"

const char *const run_end_words[] = {"clean", "runtime", "signal", "error", "failed"};

#define TICK_NS 20000000u

/* ---- workers ---------------------------------------------------------------------------- */

static void *worker_thread(void *arg)
{
    worker_run(arg);
    return NULL;
}

/* A worker process ends with its parent, whatever ends that. */
static void worker_process(const struct worker_conf *conf, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    worker_run(conf);
    _exit(0);
}

static int workers_start(struct run *run, struct diag *diag)
{
    pid_t parent = getpid();

    atomic_store(&run->control->running, run->worker_count);
    for (uint32_t i = 0; i < run->worker_count; i++) {
        int err = 0;

        if (run->processes) {
            pid_t pid = fork();

            if (pid == 0)
                worker_process(&run->worker_confs[i], parent);
            run->pids[i] = pid;
            err = pid < 0 ? -errno : 0;
        } else {
            err = -pthread_create(&run->threads[i], NULL, worker_thread, &run->worker_confs[i]);
        }
        if (err != 0) {
            atomic_store(&run->control->stop, 1);
            atomic_fetch_sub(&run->control->running, run->worker_count - i);
            return diag_errno(diag, err, "worker %u", i);
        }
        run->started++;
    }
    return 0;
}

static void workers_join(struct run *run)
{
    for (uint32_t i = 0; i < run->started; i++) {
        if (!run->processes)
            pthread_join(run->threads[i], NULL);
        else if (run->pids[i] > 0)
            while (waitpid(run->pids[i], NULL, 0) < 0 && errno == EINTR)
                ;
    }
    run->started = 0;
}

/* A worker process that died without saying so (killed): the run cannot be whole. */
static void workers_check(struct run *run)
{
    for (uint32_t i = 0; run->processes && i < run->started; i++) {
        struct worker_report *report = &run->reports[i];
        int status;

        if (run->pids[i] <= 0 || waitpid(run->pids[i], &status, WNOHANG) != run->pids[i])
            continue;
        run->pids[i] = -1;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        if (report->error == 0) {
            report->error = -ECHILD;
            snprintf(report->text, sizeof report->text, "worker process %u was killed (%s)", i,
                     WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit");
        }
        atomic_fetch_sub(&run->control->running, 1);
        atomic_store(&run->control->stop, 1);
    }
}

static void pause_tick(const sigset_t *signals, struct run *run)
{
    const struct timespec tick = {.tv_nsec = TICK_NS};
    int signal = sigtimedwait(signals, NULL, &tick);

    if (signal < 0)
        return;
    if (run->signal != 0) {
        /* Asked twice: what is in flight does not come back. */
        struct sigaction action = {.sa_handler = SIG_DFL};

        sigaction(signal, &action, NULL);
        pthread_sigmask(SIG_UNBLOCK, signals, NULL);
        raise(signal);
    }
    run->signal = signal;
    atomic_store(&run->control->stop, 1);
}

/* Until every issuing thread is prepared, or one cannot be. */
static int workers_ready(struct run *run, const sigset_t *signals)
{
    uint32_t wanted = run->worker_count * run->threads_per_worker;

    while (atomic_load_explicit(&run->control->ready, memory_order_acquire) < wanted) {
        const struct timespec pause = {.tv_nsec = 200000};
        int signal;

        if (atomic_load(&run->control->stop))
            return -ECANCELED;
        workers_check(run);
        nanosleep(&pause, NULL);
        signal = sigtimedwait(signals, NULL, &(struct timespec){0});
        if (signal > 0) {
            run->signal = signal;
            atomic_store(&run->control->stop, 1);
        }
    }
    return 0;
}

/* Some operations must lie ready, or the first ones would be late. */
static void feed_prime(struct run *run)
{
    for (uint32_t i = 0; i < run->worker_count; i++) {
        struct feed_ring *ring = feed_ring(run->feed, i);

        for (int turns = 0; turns < 2000 && !atomic_load(&ring->ended) &&
                            atomic_load(&ring->tail) == 0; turns++) {
            const struct timespec pause = {.tv_nsec = 100000};

            nanosleep(&pause, NULL);
        }
    }
}

static void let_go(struct run *run, enum worker_go go)
{
    atomic_store_explicit(&run->control->go, go, memory_order_release);
    syscall(SYS_futex, &run->control->go, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void start_set(struct run *run)
{
    uint64_t now_ns = clock_now_ns(run->clock);
    int64_t first_ns = run->plan->first_ns - run->plan->origin_ns;

    /* A little later, so that the first operation finds everybody waiting. */
    if (!run->clock->simulated && run->conf->pace != PACE_ASAP)
        now_ns += 2000000;
    run->go_ns = now_ns;
    run->control->start_ns = now_ns;
    if (first_ns < 0)
        run->control->start_ns += (uint64_t)((double)-first_ns / run->conf->speed);
    run->control->deadline_ns =
        run->conf->runtime_ns ? now_ns + run->conf->runtime_ns : UINT64_MAX;
    getrusage(RUSAGE_SELF, &run->usage_before);
    run->machine_before_ns = run_machine_busy_ns();
    run->wall_from_ns = clock_now_ns(&clock_real);
    let_go(run, WORKER_GO_RUN);
}

static void watch(struct run *run, const sigset_t *signals)
{
    struct progress progress;

    progress_start(&progress, run);
    while (atomic_load_explicit(&run->control->running, memory_order_acquire) > 0) {
        pause_tick(signals, run);
        workers_check(run);
        if (run->results != NULL && results_failed(run->results)) {
            atomic_store(&run->control->results_broken, 1);
            atomic_store(&run->control->stop, 1);
        }
        if (atomic_load_explicit(&run->control->stop, memory_order_relaxed))
            feed_wake(run->feed);
        progress_tick(&progress, run);
    }
    progress_end(&progress);
    run->wall_ns = clock_now_ns(&clock_real) - run->wall_from_ns;
}

/* fsync of everything that was written: what was issued is not done before that. */
static int flush_targets(struct run *run, struct diag *diag)
{
    bool whole = false;

    if (!run->plan->any_writes)
        return 0;
    for (uint32_t i = 0; i < run->targets->count; i++) {
        const struct target *target = &run->targets->items[i];

        if (!(target->plan_flags & PLAN_WRITTEN))
            continue;
        if (target->fd < 0)
            whole = true;
        else if (fsync(target->fd) != 0)
            return diag_errno(diag, -errno, "%s: fsync at the end", target->path);
    }
    for (uint32_t i = 0; whole && i < run->targets->root_count; i++)
        if (syncfs(run->targets->roots[i].fd) != 0)
            return diag_errno(diag, -errno, "%s: syncfs at the end", run->targets->roots[i].path);
    return 0;
}

static int run_workers(struct run *run, struct diag *diag)
{
    struct sigaction hangup;
    sigset_t signals, before;
    int err;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    /* Blocked, it would come even where nohup had it ignored. */
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    fflush(NULL);
    err = workers_start(run, diag);
    if (err == 0)
        err = workers_ready(run, &signals);
    if (err == 0)
        err = feed_start(run->feed);
    if (err == 0 && run->results != NULL)
        err = results_start(run->results);
    if (err == 0) {
        feed_prime(run);
        start_set(run);
        watch(run, &signals);
    } else {
        atomic_store(&run->control->stop, 1);
        let_go(run, WORKER_GO_END);
    }
    workers_join(run);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err == -ECANCELED ? 0 : err;
}

/* What the workers said went wrong, if anything did. */
static int workers_error(const struct run *run, struct diag *diag)
{
    for (uint32_t i = 0; i < run->worker_count; i++)
        if (run->reports[i].error != 0)
            return diag_set(diag, run->reports[i].error, "%s", run->reports[i].text);
    return 0;
}

/* The Unix time of the result tape's time 0, by which others' stamps can be laid beside it. */
static uint64_t start_wall(const struct run *run)
{
    struct timespec wall;
    uint64_t since_ns;

    if (run->clock->simulated || run->control->start_ns == 0)
        return 0;
    clock_gettime(CLOCK_REALTIME, &wall);
    since_ns = clock_now_ns(run->clock) - run->control->start_ns;
    return (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec - since_ns;
}

static int results_close(struct run *run, int err, struct diag *diag)
{
    const char *end = run->signal ? "signal" : err != 0 ? "abrupt" : "clean";
    int closed;

    if (run->results == NULL)
        return err;
    closed = results_finish(run->results, start_wall(run), end, diag);
    return err != 0 ? err : closed;
}

int run_replay(struct run **ret_run, const struct conf *conf, struct run_report *report,
               bool *ret_usage, struct diag *diag)
{
    struct run *run = calloc(1, sizeof *run);
    uint64_t flush_from_ns;
    int err;

    if (run == NULL)
        return diag_errno(diag, -ENOMEM, "replay");
    *ret_run = run;
    run->conf = conf;
    memset(report, 0, sizeof *report);
    err = run_open(run, report, ret_usage, diag);
    if (err != 0 || conf->plan || conf->restore_only)
        return err;
    err = run_alloc(run, report, diag);
    if (err != 0)
        return err;
    err = run_workers(run, diag);
    if (err == 0)
        err = workers_error(run, diag);
    if (err == 0)
        err = feed_stop(run->feed, diag);
    else
        feed_stop(run->feed, NULL);
    flush_from_ns = clock_now_ns(&clock_real);
    if (err == 0)
        err = flush_targets(run, diag);
    run->flush_ns = clock_now_ns(&clock_real) - flush_from_ns;
    run_report_fill(run, report);
    err = results_close(run, err, diag);
    if (err != 0)
        report->end = RUN_FAILED;
    return err;
}
