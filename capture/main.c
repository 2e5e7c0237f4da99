/* SPDX-License-Identifier: MIT */
/* iotape capture: starts or attaches, lets the recorder deliver, ends cleanly. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "capture/list.h"
#include "capture/options.h"
#include "capture/overhead.h"
#include "capture/recorder.h"
#include "capture/sample.h"
#include "capture/session.h"
#include "capture/target.h"
#include "capture/trigger.h"
#include "traces/units.h"

#define POLL_MS       50
#define RECORDER_NICE (-10)
#define SECOND_NS     UINT64_C(1000000000)
#define PROGRESS_NS   SECOND_NS

static volatile sig_atomic_t got_end; /* the last of SIGINT, SIGTERM, SIGHUP */
static volatile sig_atomic_t end_count;
static volatile sig_atomic_t end_from_terminal;
static volatile sig_atomic_t got_dump;

struct capture {
    struct options options;
    struct diag diag;
    const struct recorder *recorder;
    void *state; /* the recorder's */
    struct session *session;
    struct target target;
    struct trigger trigger;
    uint64_t start_ns, progress_ns;
    uint64_t progress_ops; /* at the last progress line */
    struct overhead overhead;
    unsigned int sample; /* one stream in so many is recorded; 0 or 1: all */
    bool progress_shown;
    bool lingering_said;
    const char *end; /* why it ended: TRACE_META_END */
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    if (number == SIGUSR1) {
        got_dump = 1;
    } else if (number != SIGCHLD) {
        got_end = number;
        end_from_terminal = number == SIGINT && info->si_code == SI_KERNEL;
        end_count++;
    }
}

/* No SA_RESTART: a signal ends the recorder's wait. What the caller ignores stays ignored. */
static void catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD};
    struct sigaction action, old;

    memset(&action, 0, sizeof(action));
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        if (sigaction(signals[i], NULL, &old) == 0 &&
            (old.sa_handler != SIG_IGN || signals[i] == SIGCHLD))
            sigaction(signals[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void clear_progress(struct capture *capture)
{
    if (capture->progress_shown)
        fputs("\r\033[K", stderr);
    capture->progress_shown = false;
}

static void print_note(void *context, const char *text)
{
    struct capture *capture = context;

    if (capture->options.quiet)
        return;
    clear_progress(capture);
    fprintf(stderr, "iotape capture: %s\n", text);
}

static void show_progress(struct capture *capture, uint64_t now)
{
    struct session_totals totals;
    char rate[UNITS_TEXT], bytes[UNITS_TEXT], tape[UNITS_TEXT];
    double seconds = (double)(now - capture->progress_ns) / 1e9;

    if (capture->options.quiet || now - capture->progress_ns < PROGRESS_NS || !isatty(2))
        return;
    session_totals(capture->session, &totals);
    fprintf(stderr, "\r%6.0f s  %s ops/s  %s moved  %llu lost  tape %s\033[K",
            (double)(now - capture->start_ns) / 1e9,
            units_count((double)(totals.ops - capture->progress_ops) / seconds, rate),
            units_size(totals.bytes, bytes), (unsigned long long)totals.lost,
            units_size(totals.tape_bytes, tape));
    fflush(stderr);
    capture->progress_shown = true;
    capture->progress_ns = now;
    capture->progress_ops = totals.ops;
}

static void print_loss(void *context, const char *kind, uint64_t count, bool unseen)
{
    fprintf(stderr, "iotape capture: %llu %s: %s\n", (unsigned long long)count,
            unseen ? "not seen" : "lost", kind);
}

static void print_summary(struct capture *capture, uint64_t ended_ns)
{
    struct session_totals totals;
    char bytes[UNITS_TEXT], tape[UNITS_TEXT];

    clear_progress(capture);
    if (capture->options.quiet)
        return;
    session_totals(capture->session, &totals);
    session_each_loss(capture->session, print_loss, NULL);
    fprintf(stderr, "iotape capture: %llu ops, %s read and written in %.1f s, %llu lost; ",
            (unsigned long long)totals.ops, units_size(totals.bytes, bytes),
            (double)(ended_ns - capture->start_ns) / 1e9, (unsigned long long)totals.lost);
    if (totals.sampled_bytes)
        fprintf(stderr, "writes compress by %u%%; ", session_compress_pct(&totals));
    if (capture->overhead.most_pct > 0)
        fprintf(stderr, "recording took at most %.1f%% of a CPU for a second; ",
                capture->overhead.most_pct);
    if (capture->sample > 1)
        fprintf(stderr, "a sample of one thread in %u%s, %llu passed over; ", capture->sample,
                capture->options.sample > 1 ? "" : " since it cost too much",
                (unsigned long long)totals.passed);
    if (totals.filtered)
        fprintf(stderr, "%llu filtered out; ", (unsigned long long)totals.filtered);
    if (totals.tapes == 0)
        fputs("no tape written\n", stderr);
    else if (totals.tapes == 1)
        fprintf(stderr, "%s (%s)\n", session_tape_name(capture->session),
                units_size(totals.tape_bytes, tape));
    else
        fprintf(stderr, "%u tapes, the last %s (%s)\n", totals.tapes,
                session_tape_name(capture->session), units_size(totals.tape_bytes, tape));
}

static uint64_t own_cpu_ns(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * SECOND_NS +
           (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
}

/* What seeing ops has cost the programs recorded: measured, or by the op. */
static uint64_t added_cpu_ns(struct capture *capture)
{
    const struct recorder *recorder = capture->recorder;
    struct session_totals totals;
    uint64_t ns;

    if (recorder->cost && recorder->cost(capture->state, &ns) == 0)
        return ns;
    if (recorder->cost)
        session_note(capture->session,
                     "--max-overhead counts %u ns for each op: what the probes really take, with "
                     "the calls they pass over, needs the kernel's BPF statistics (CAP_SYS_ADMIN)",
                     recorder->op_cost_ns);
    session_totals(capture->session, &totals);
    return (totals.ops + totals.filtered) * recorder->op_cost_ns;
}

static void overhead_start(struct capture *capture, uint64_t now)
{
    double limit_pct = capture->options.max_overhead_pct;

    overhead_init(&capture->overhead, limit_pct, now, own_cpu_ns(),
                  limit_pct > 0 ? added_cpu_ns(capture) : 0);
}

/* The recorder samples one stream in so many from here on: the tape says so. */
static int sample_from(struct capture *capture, unsigned int one_in, uint64_t now)
{
    int err = session_sampled(capture->session, one_in, now);

    capture->sample = one_in;
    return err;
}

/* Fewer streams instead of an end; false when that is not wanted or no fewer are left. */
static bool sample_more(struct capture *capture, uint64_t now)
{
    const struct overhead *overhead = &capture->overhead;
    unsigned int one_in;

    if (capture->options.overhead_action != OVERHEAD_SAMPLE)
        return false;
    one_in = overhead_sample(overhead, capture->sample, SAMPLE_MOST);
    if (!one_in || capture->recorder->sample(capture->state, one_in) < 0 ||
        sample_from(capture, one_in, now) < 0)
        return false;
    session_note(capture->session,
                 "recording took %.1f%% of a CPU, more than --max-overhead %g: from %.1f s on one "
                 "thread in %u is recorded",
                 overhead->last_pct, overhead->limit_pct,
                 (double)(now - capture->start_ns) / 1e9, one_in);
    return true;
}

static bool costs_too_much(struct capture *capture, uint64_t now)
{
    if (!overhead_due(&capture->overhead, now) ||
        !overhead_exceeded(&capture->overhead, now, own_cpu_ns(), added_cpu_ns(capture)))
        return false;
    if (sample_more(capture, now))
        return false;
    session_note(capture->session,
                 "recording has stopped: it took %.1f%% of a CPU, more than --max-overhead %g",
                 capture->overhead.last_pct, capture->overhead.limit_pct);
    return true;
}

static int prepare_child(void *context)
{
    struct capture *capture = context;

    return capture->recorder->child ? capture->recorder->child(capture->state) : 0;
}

static int start_target(struct capture *capture)
{
    char **command = capture->options.session.scope.command;
    int err;

    if (!command)
        return 0;
    err = target_fork(&capture->target, command, prepare_child, capture, &capture->diag);
    if (!err && capture->recorder->started)
        err = capture->recorder->started(capture->state, capture->target.pid);
    if (!err)
        err = target_run(&capture->target, command, &capture->diag);
    /* Where it may, the recorder goes before the programs whose rings it must empty in time; it
     * works in short turns. */
    if (!err)
        setpriority(PRIO_PROCESS, 0, RECORDER_NICE);
    return err;
}

static int choose_recorder(struct capture *capture)
{
    const struct options *options = &capture->options;
    char reason[512], fix[512];

    if (!options->recorder) {
        capture->recorder = recorder_choose(&options->session.scope, &capture->diag);
        return capture->recorder ? 0 : -EOPNOTSUPP;
    }
    capture->recorder = recorder_find(options->recorder);
    if (!capture->recorder)
        return diag_set(&capture->diag, -EINVAL,
                        "option --recorder: '%s' is not a recorder; see --list",
                        options->recorder);
    if (recorder_probe(capture->recorder, reason, sizeof(reason), fix, sizeof(fix)) < 0)
        return diag_set(&capture->diag, -EOPNOTSUPP, "recorder %s cannot run here: %s%s%s",
                        capture->recorder->name, reason, fix[0] ? "; to enable: " : "", fix);
    return capture->recorder->accepts(&options->session.scope, &capture->diag);
}

/* Gone, or a zombie that its parent has not collected. */
static bool process_gone(pid_t pid)
{
    char path[64], line[512], *after;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return true;
    after = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
    fclose(file);
    return !after || strlen(after) < 3 || after[2] == 'Z' || after[2] == 'X';
}

/* All that --pid named have ended. */
static bool pids_gone(const struct capture_scope *scope)
{
    for (size_t i = 0; i < scope->pid_count; i++)
        if (!process_gone(scope->pids[i]))
            return false;
    return scope->pid_count > 0;
}

/* Why recording should end now, or NULL. */
static const char *ended(struct capture *capture, uint64_t now)
{
    struct target *target = &capture->target;
    bool command = capture->options.session.scope.command != NULL;

    if (command) {
        target_reap(target, &capture->trigger);
        if (target->ended)
            trigger_stop(&capture->trigger);
        if (target->all_ended)
            return "clean";
        if (target->ended && !capture->lingering_said) {
            capture->lingering_said = true;
            diag_note(&capture->diag, "the command has ended; recording what it started until "
                                      "that ends too, or Ctrl-C");
        }
    } else {
        trigger_reap(&capture->trigger);
    }
    /* Ctrl-C reaches the command as well: what it does on its way out is worth having. */
    if (end_count > 1 || (end_count == 1 && !(command && end_from_terminal && !target->ended)))
        return "signal";
    if (capture->options.duration_ns && now - capture->start_ns >= capture->options.duration_ns)
        return "clean";
    if (pids_gone(&capture->options.session.scope))
        return "clean";
    return NULL;
}

static int handle_dump(struct capture *capture)
{
    bool triggered = trigger_fired(&capture->trigger);
    int err;

    if (!got_dump && !triggered)
        return 0;
    if (!capture->options.keep_ns) {
        got_dump = 0;
        return 0;
    }
    err = session_dump(capture->session, triggered ? "trigger" : "SIGUSR1");
    got_dump = 0;
    if (!err)
        diag_note(&capture->diag, "ring written to %s", session_tape_name(capture->session));
    return err;
}

/* Takes what was issued until now, the last there is. */
static int stop_recorder(struct capture *capture)
{
    int got = capture->recorder->stop(capture->state);

    while (got >= 0 && (got = capture->recorder->poll(capture->state, 0)) > 0)
        ;
    return got < 0 && got != -EINTR ? got : 0;
}

static int record(struct capture *capture)
{
    const struct recorder *recorder = capture->recorder;
    bool stopped = false, tape_lost = false;
    int err = 0, got;

    while (!capture->end) {
        uint64_t now;

        if (stopped)
            poll(NULL, 0, POLL_MS);
        else if ((got = recorder->poll(capture->state, POLL_MS)) < 0 && got != -EINTR)
            return got;
        now = now_ns();
        capture->end = ended(capture, now);
        got = stopped ? 0 : session_tick(capture->session, now);
        if (!err && got < 0)
            err = got;
        if (got == 1 || (!stopped && costs_too_much(capture, now)))
            capture->end = "clean";
        if (got < 0 && !tape_lost) {
            /* The target goes on; its end is waited for as if nothing had happened. What it
             * has issued so far is counted. */
            tape_lost = stopped = true;
            (void)!stop_recorder(capture);
            print_note(capture, "the tape cannot be written; recording has stopped");
        }
        if (!stopped && !err)
            err = handle_dump(capture);
        trigger_run(&capture->trigger, now);
        show_progress(capture, now);
    }
    if (!stopped) {
        got = stop_recorder(capture);
        if (!err)
            err = got;
    }
    return err;
}

static int capture_run(struct capture *capture)
{
    struct options *options = &capture->options;
    uint64_t ended_ns;
    int err = choose_recorder(capture), finished;

    if (err)
        return err;
    options->session.recorder = capture->recorder->name;
    catch_signals();
    err = session_new(&capture->session, &options->session, &capture->diag);
    if (err)
        return err;
    err = capture->recorder->open(capture->session, &capture->state);
    if (!err && options->sample > 1)
        err = sample_from(capture, (unsigned int)options->sample, 0);
    if (!err) {
        capture->start_ns = capture->progress_ns = now_ns();
        overhead_start(capture, capture->start_ns);
        err = start_target(capture);
    }
    if (err) {
        target_cancel(&capture->target);
        session_abandon(capture->session);
        return err;
    }
    trigger_init(&capture->trigger, options->trigger, options->keep_ns);
    err = record(capture);
    ended_ns = now_ns();
    if (!err && options->keep_ns)
        err = session_dump(capture->session, "end");
    finished = session_finish(capture->session, capture->end ? capture->end : "abrupt");
    if (!err)
        err = finished;
    print_summary(capture, ended_ns);
    return err;
}

int main(int argc, char **argv)
{
    static struct capture capture;
    int err, status = 0;

    capture.diag.note = print_note;
    capture.diag.note_context = &capture;
    err = options_parse(&capture.options, argc, argv, &capture.diag);
    if (!err && capture.options.help)
        options_help(stdout);
    else if (!err && capture.options.version)
        puts("iotape " IOTAPE_VERSION);
    else if (!err && capture.options.list)
        list_print(stdout);
    else if (!err)
        err = capture_run(&capture);
    if (!err && fflush(stdout) != 0)
        err = diag_errno(&capture.diag, -errno, "standard output");
    trigger_stop(&capture.trigger);
    if (capture.recorder && capture.state)
        capture.recorder->close(capture.state);
    session_free(capture.session);
    if (err) {
        clear_progress(&capture);
        fprintf(stderr, "iotape capture: %s\n",
                capture.diag.text[0] ? capture.diag.text : strerror(-err));
        status = err == -EINVAL ? 2 : 1;
    } else if (capture.target.ended) {
        status = target_exit_status(&capture.target);
    }
    options_release(&capture.options);
    return status;
}
