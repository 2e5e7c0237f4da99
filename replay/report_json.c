/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "replay/conf.h"
#include "replay/plan.h"
#include "replay/report.h"
#include "replay/target.h"
#include "traces/diag.h"
#include "traces/trace.h"

static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static json_t *number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *distribution(const struct hist *hist)
{
    json_t *object = json_object();

    set(object, "count", number(hist->count));
    set(object, "mean", json_real(hist_mean(hist)));
    set(object, "stddev", json_real(hist_stddev(hist)));
    set(object, "min", number(hist->count ? hist->min : 0));
    set(object, "p50", number(hist_quantile(hist, 0.5)));
    set(object, "p90", number(hist_quantile(hist, 0.9)));
    set(object, "p99", number(hist_quantile(hist, 0.99)));
    set(object, "p99_9", number(hist_quantile(hist, 0.999)));
    set(object, "max", number(hist->count ? hist->max : 0));
    return object;
}

static void add_counts(json_t *root, const struct run_report *report)
{
    const struct stats *stats = report->stats;
    json_t *skipped = json_object(), *by_op = json_object();
    uint64_t sum = 0;

    for (unsigned int r = 1; r < SKIP_REASON_COUNT; r++) {
        sum += stats->skipped[r];
        if (stats->skipped[r] != 0)
            set(skipped, skip_words[r], number(stats->skipped[r]));
    }
    for (unsigned int k = 0; k < TRACE_OP_COUNT; k++) {
        if (stats->kind_ops[k] == 0)
            continue;
        set(by_op, trace_op_name(k),
            json_pack("{s:I, s:I, s:I}", "count", (json_int_t)stats->kind_ops[k], "bytes",
                      (json_int_t)stats->kind_bytes[k], "errors",
                      (json_int_t)stats->kind_failed[k]));
    }
    set(root, "ops", number(report->tape_ops));
    set(root, "ops_issued", number(stats->issued));
    set(root, "ops_completed", number(stats->completed));
    set(root, "errors", number(stats->failed));
    set(root, "ops_skipped", number(sum));
    set(root, "ops_skipped_by", skipped);
    set(root, "mapped_ops", number(report->plan->mapped_ops));
    set(root, "by_op", by_op);
    set(root, "short_transfers", number(stats->short_transfers));
    set(root, "unexpected_results", number(stats->unexpected));
}

static void add_errors(json_t *root, const struct stats *stats)
{
    json_t *list = json_array();

    for (unsigned int k = 0; k < TRACE_OP_COUNT; k++)
        for (unsigned int e = 0; e < STATS_ERRNOS; e++) {
            const char *name = e == STATS_ERRNOS - 1 ? NULL : strerrorname_np((int)e);

            if (stats->errnos[k][e] != 0)
                json_array_append_new(
                    list, json_pack("{s:s, s:s, s:i, s:I}", "op", trace_op_name(k), "errno",
                                    name ? name : "other", "number", (int)e, "count",
                                    (json_int_t)stats->errnos[k][e]));
        }
    set(root, "errors_by", list);
}

static void add_times(json_t *root, const struct run_report *report, const struct conf *conf)
{
    const struct stats *stats = report->stats;
    double seconds = (double)report->duration_ns / 1e9;
    uint64_t bytes = stats->kind_bytes[TRACE_READ] + stats->kind_bytes[TRACE_WRITE];
    struct hist *service = calloc(1, sizeof *service);
    json_t *by_class = json_object();

    if (service == NULL)
        return;
    hist_init(service);
    for (unsigned int i = 0; i < STATS_CLASS_COUNT; i++) {
        if (stats->service[i].count == 0)
            continue;
        hist_merge(service, &stats->service[i]);
        set(by_class, stats_class_words[i], distribution(&stats->service[i]));
    }
    set(root, "duration_ns", number(report->duration_ns));
    set(root, "duration_with_flush_ns", number(report->duration_with_flush_ns));
    set(root, "wall_ns", number(report->wall_ns));
    set(root, "start_ns", number(report->start_ns));
    set(root, "recorded_duration_ns", number(plan_duration_ns(report->plan, conf)));
    set(root, "iops", json_real(seconds > 0 ? (double)stats->issued / seconds : 0));
    set(root, "bytes", number(bytes));
    set(root, "bytes_per_s", json_real(seconds > 0 ? (double)bytes / seconds : 0));
    set(root, "service_ns", distribution(service));
    set(root, "service_ns_by", by_class);
    free(service);
}

static void add_lateness(json_t *root, const struct run_report *report, const struct conf *conf)
{
    const struct stats *stats = report->stats;
    bool paced = conf->pace != PACE_ASAP;
    json_t *by = paced ? json_object() : json_null();

    set(root, "lag_ns", paced ? distribution(&stats->lag) : json_null());
    set(root, "response_ns", paced ? distribution(&stats->response) : json_null());
    set(root, "late_ops", paced ? number(stats->late) : json_null());
    set(root, "late_threshold_ns", number(conf->late_ns));
    for (unsigned int c = 1; paced && c < TRACE_CAUSE_COUNT; c++)
        set(by, trace_cause_name(c), number(stats->late_by[c]));
    set(root, "late_by", by);
    set(root, "holds", number(stats->holds));
    set(root, "held_by_order", number(stats->held_by_order));
    set(root, "decoder_starved", number(stats->starved));
    set(root, "result_ring_full", number(stats->result_full));
    set(root, "result_ring_full_ns", number(stats->result_full_ns));
}

static void add_load(json_t *root, const struct run_report *report)
{
    const struct stats *stats = report->stats;

    set(root, "depth", json_pack("{s:f, s:i, s:i, s:i}", "mean", report->depth_mean, "max",
                                 (int)report->depth_max, "per_worker", (int)report->depth, "cap",
                                 (int)(report->depth * report->workers)));
    set(root, "workers", json_integer(report->workers));
    set(root, "batch", distribution(&stats->batch));
    set(root, "submit_calls", number(stats->submit_calls));
    set(root, "submit_ns", number(stats->submit_ns));
    set(root, "submit_refused", number(stats->eagain));
    set(root, "file_opens", number(stats->opens));
    set(root, "wait", json_pack("{s:I, s:I, s:I, s:I, s:I}", "sleeps", (json_int_t)stats->sleeps,
                                "slept_ns", (json_int_t)stats->slept_ns, "spun_ns",
                                (json_int_t)stats->spun_ns, "overshoot_max_ns",
                                (json_int_t)stats->overshoot_max_ns, "margin_ns",
                                (json_int_t)stats->margin_ns));
}

static double per_op(uint64_t ns, uint64_t ops)
{
    return ops ? (double)ns / (double)ops : 0;
}

static void add_cpu(json_t *root, const struct run_report *report)
{
    uint64_t ops = report->stats->issued;

    set(root, "cpu_user_ns_per_op", json_real(per_op(report->cpu_user_ns, ops)));
    set(root, "cpu_sys_ns_per_op", json_real(per_op(report->cpu_sys_ns, ops)));
    set(root, "worker_cpu_user_ns_per_op", json_real(per_op(report->worker_user_ns, ops)));
    set(root, "worker_cpu_sys_ns_per_op", json_real(per_op(report->worker_sys_ns, ops)));
    set(root, "machine_cpu_ns_per_op", json_real(per_op(report->machine_busy_ns, ops)));
    set(root, "submit_ns_per_op",
        report->stats->submit_ns ? json_real(per_op(report->stats->submit_ns, ops))
                                 : json_null());
    set(root, "ctx_switches", number(report->ctx_switches));
    set(root, "ctx_switches_per_op", json_real(per_op(report->ctx_switches, ops)));
    set(root, "max_rss_bytes", number(report->max_rss_bytes));
}

static void add_engine(json_t *root, const struct run_report *report)
{
    json_t *counters = json_object();

    for (unsigned int i = 0; i < WORKER_COUNTERS && report->counters->counters[i].name[0]; i++)
        set(counters, report->counters->counters[i].name,
            number(report->counters->counters[i].value));
    set(root, "engine", json_string(report->engine));
    set(root, "engine_granted", json_string(report->granted));
    set(root, "engine_downgraded", json_boolean(report->downgraded));
    set(root, "engine_notes", json_string(report->notes));
    set(root, "engine_counters", counters);
    set(root, "priority", json_string(conf_word("priority", report->priority)));
}

/* null without --restore. */
static json_t *restore_json(const struct restore_report *restore)
{
    json_t *object;

    if (!restore->used)
        return json_null();
    object = json_object();
    set(object, "method", json_string(restore_method(restore)));
    set(object, "files", number(restore->files));
    set(object, "bytes", number(restore->bytes));
    set(object, "removed", number(restore->removed));
    set(object, "time_ns", number(restore->time_ns));
    set(object, "kept_files", number(restore->kept_files));
    set(object, "kept_bytes", number(restore->kept_bytes));
    set(object, "keep_time_ns", number(restore->keep_time_ns));
    return object;
}

static void add_targets(json_t *root, const struct run_report *report, const struct conf *conf)
{
    const struct stats *stats = report->stats;

    set(root, "targets", json_integer(report->targets->count));
    set(root, "prepared", json_pack("{s:I, s:I, s:I, s:I, s:I}", "made",
                                    (json_int_t)report->prepared.made, "grown",
                                    (json_int_t)report->prepared.grown, "cut",
                                    (json_int_t)report->prepared.cut, "removed",
                                    (json_int_t)report->prepared.removed, "bytes",
                                    (json_int_t)report->prepared.bytes));
    set(root, "restore", restore_json(&report->restore));
    set(root, "cache", json_pack("{s:s, s:I, s:I, s:b}", "asked",
                                 conf_word("cache", conf->cache), "pages",
                                 (json_int_t)report->cache.pages, "resident",
                                 (json_int_t)report->cache.resident, "measured",
                                 report->cache.measured));
    if (conf->verify)
        set(root, "verify", json_pack("{s:I, s:I}", "blocks", (json_int_t)stats->verified_blocks,
                                      "errors", (json_int_t)stats->verify_errors));
}

static void add_timeline(json_t *root, const struct stats_timeline *timeline)
{
    json_t *slices = json_array();
    unsigned int last = STATS_BUCKETS;

    while (last > 0 && timeline->buckets[last - 1].completed == 0 &&
           timeline->buckets[last - 1].depth_ns == 0)
        last--;
    for (unsigned int i = 0; i < last; i++) {
        const struct stats_bucket *b = &timeline->buckets[i];
        double done = b->completed ? (double)b->completed : 1;

        json_array_append_new(
            slices,
            json_pack("{s:I, s:I, s:f, s:f, s:f, s:I}", "ops", (json_int_t)b->completed, "bytes",
                      (json_int_t)b->bytes, "depth_mean",
                      (double)b->depth_ns / (double)timeline->width_ns, "service_mean_ns",
                      (double)b->service_ns / done, "lag_mean_ns", (double)b->lag_ns / done,
                      "lag_max_ns", (json_int_t)b->lag_max_ns));
    }
    set(root, "timeline",
        json_pack("{s:I, s:o}", "slice_ns", (json_int_t)timeline->width_ns, "slices", slices));
}

static json_t *build(const struct run_report *report, const struct conf *conf)
{
    json_t *root = json_object();
    json_t *config = json_loads(report->config, 0, NULL);

    set(root, "tool", json_string("iotape " IOTAPE_VERSION));
    set(root, "tape", json_string(report->tape));
    set(root, "end", json_string(run_end_words[report->end]));
    set(root, "clock", json_string(report->simulated ? "simulated" : "real"));
    add_engine(root, report);
    set(root, "config", config ? config : json_object());
    add_counts(root, report);
    add_errors(root, report->stats);
    add_times(root, report, conf);
    add_lateness(root, report, conf);
    add_load(root, report);
    add_cpu(root, report);
    add_targets(root, report, conf);
    set(root, "tape_damage",
        json_pack("{s:I, s:b, s:I}", "ops", (json_int_t)report->plan->damaged_ops, "truncated",
                  report->plan->truncated, "recorder_lost", (json_int_t)report->plan->lost));
    set(root, "tape_sample",
        report->plan->sample.one_in != 0
            ? json_pack("{s:I, s:I}", "one_in", (json_int_t)report->plan->sample.one_in,
                        "passed_over", (json_int_t)report->plan->sample.passed_ops)
            : json_null());
    add_timeline(root, &report->stats->timeline);
    return root;
}

int report_json(const struct run_report *report, const struct conf *conf, const char *path,
                struct diag *diag)
{
    json_t *root = build(report, conf);
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
    struct trace_sink sink;
    int err, closed;

    json_decref(root);
    if (text == NULL)
        return diag_errno(diag, -ENOMEM, "%s", path);
    err = trace_sink_path(&sink, path, TRACE_SINK_RENAME, true, diag);
    if (err == 0) {
        err = sink.write(sink.context, text, strlen(text));
        if (err == 0)
            err = sink.write(sink.context, "\n", 1);
        closed = sink.close(sink.context, err == 0);
        if (err == 0)
            err = closed;
        if (err != 0)
            diag_errno(diag, err, "%s", path);
    }
    free(text);
    return err;
}

/* ---- configuration ------------------------------------------------------------------------- */

static void config_each(void *context, const struct opt *opt, const char *text)
{
    if (opt->type != OPT_CALL)
        set(context, opt->name, json_string(text));
}

void report_config(const struct conf *conf, uint32_t depth, uint32_t batch, char *text,
                   size_t size)
{
    json_t *root = json_object();
    char order[40], fill[32], flags[256];
    size_t length;

    opts_each(conf_table, conf, config_each, root);
    if (conf->fill == FILL_COMPRESS)
        snprintf(fill, sizeof fill, "compress=%u", conf->fill_pct);
    else
        snprintf(fill, sizeof fill, "%s", conf->fill == FILL_ZERO ? "zero" : "random");
    set(root, "order", json_string(conf_order_text(conf->order, order)));
    set(root, "fill", json_string(fill));
    set(root, "drop-flags", json_string(trace_flags_text(conf->drop_flags, flags, sizeof flags)));
    set(root, "assume-latency",
        conf->latency_assumed ? number(conf->assume_latency_ns) : json_null());
    set(root, "numa", conf->numa_given ? json_integer(conf->numa) : json_null());
    set(root, "depth_chosen", json_integer(depth));
    set(root, "batch_chosen", json_integer(batch));
    length = json_dumpb(root, text, size - 1, JSON_COMPACT);
    if (length > size - 1)
        length = 0;
    text[length] = '\0';
    json_decref(root);
}
