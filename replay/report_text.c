/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "replay/conf.h"
#include "replay/plan.h"
#include "replay/report.h"
#include "replay/target.h"
#include "traces/units.h"

static void row(FILE *out, const char *name, const struct hist *hist)
{
    char text[6][UNITS_TEXT];

    if (hist->count == 0)
        return;
    fprintf(out, "  %-10s %10s %10s %10s %10s %10s %10s\n", name,
            units_time((uint64_t)(hist_mean(hist) + 0.5), text[0]),
            units_time(hist_quantile(hist, 0.5), text[1]),
            units_time(hist_quantile(hist, 0.9), text[2]),
            units_time(hist_quantile(hist, 0.99), text[3]),
            units_time(hist_quantile(hist, 0.999), text[4]), units_time(hist->max, text[5]));
}

static void counts(FILE *out, const struct run_report *report)
{
    const struct stats *stats = report->stats;
    uint64_t skipped = 0;

    fprintf(out, "ops        %llu issued = %llu completed + %llu failed",
            (unsigned long long)stats->issued, (unsigned long long)stats->completed,
            (unsigned long long)stats->failed);
    for (unsigned int r = 1; r < SKIP_REASON_COUNT; r++)
        skipped += stats->skipped[r];
    fprintf(out, "; %llu skipped", (unsigned long long)skipped);
    for (unsigned int r = 1, first = 1; r < SKIP_REASON_COUNT; r++)
        if (stats->skipped[r] != 0) {
            fprintf(out, "%s%s %llu", first ? " (" : ", ", skip_words[r],
                    (unsigned long long)stats->skipped[r]);
            first = 0;
        }
    fprintf(out, "%s\n", skipped ? ")" : "");
    for (unsigned int k = 0; k < TRACE_OP_COUNT; k++) {
        char bytes[UNITS_TEXT];

        if (stats->kind_ops[k] == 0)
            continue;
        fprintf(out, "  %-10s %llu", trace_op_name(k), (unsigned long long)stats->kind_ops[k]);
        if (trace_op_has_range(k))
            fprintf(out, ", %s", units_size(stats->kind_bytes[k], bytes));
        fputc('\n', out);
    }
}

static void errors(FILE *out, const struct stats *stats)
{
    for (unsigned int k = 0; k < TRACE_OP_COUNT; k++)
        for (unsigned int e = 0; e < STATS_ERRNOS; e++)
            if (stats->errnos[k][e] != 0)
                fprintf(out, "failed     %s: %s: %llu\n", trace_op_name(k),
                        e == STATS_ERRNOS - 1 ? "other" : strerror((int)e),
                        (unsigned long long)stats->errnos[k][e]);
    if (stats->short_transfers != 0)
        fprintf(out, "short      %llu transfers\n", (unsigned long long)stats->short_transfers);
    if (stats->unexpected != 0)
        fprintf(out, "unexpected %llu results differ from the recorded ones\n",
                (unsigned long long)stats->unexpected);
    if (stats->verified_blocks != 0)
        fprintf(out, "verified   %llu blocks of 512 bytes, %llu wrong\n",
                (unsigned long long)stats->verified_blocks,
                (unsigned long long)stats->verify_errors);
}

static void lateness(FILE *out, const struct run_report *report, const struct conf *conf)
{
    const struct stats *stats = report->stats;
    char late[UNITS_TEXT];

    if (conf->pace == PACE_ASAP)
        return;
    fprintf(out, "late       %llu ops by more than %s", (unsigned long long)stats->late,
            units_time(conf->late_ns, late));
    for (unsigned int c = 1, first = 1; c < TRACE_CAUSE_COUNT; c++)
        if (stats->late_by[c] != 0) {
            fprintf(out, "%s%s %llu", first ? ": " : ", ", trace_cause_name(c),
                    (unsigned long long)stats->late_by[c]);
            first = 0;
        }
    fputc('\n', out);
    if (stats->holds != 0)
        fprintf(out, "held       %llu ops by the depth cap of %u\n",
                (unsigned long long)stats->holds, report->depth);
    if (stats->held_by_order != 0)
        fprintf(out, "held       %llu ops by --order\n",
                (unsigned long long)stats->held_by_order);
}

static void cpu(FILE *out, const struct run_report *report)
{
    double ops = report->stats->issued ? (double)report->stats->issued : 1;
    char user[UNITS_TEXT], sys[UNITS_TEXT], all[UNITS_TEXT], rss[UNITS_TEXT];

    fprintf(out, "cpu/op     %s user + %s system here, %s the whole machine; %.2f context switches\n",
            units_time((uint64_t)((double)report->cpu_user_ns / ops), user),
            units_time((uint64_t)((double)report->cpu_sys_ns / ops), sys),
            units_time((uint64_t)((double)report->machine_busy_ns / ops), all),
            (double)report->ctx_switches / ops);
    fprintf(out, "memory     %s at most\n", units_size(report->max_rss_bytes, rss));
}

void report_restored(const struct run_report *report, FILE *out)
{
    const struct restore_report *restore = &report->restore;
    char bytes[UNITS_TEXT], time[UNITS_TEXT];

    fprintf(out, "restored   %llu files, %s put back and %llu new names removed in %s (%s)\n",
            (unsigned long long)restore->files, units_size(restore->bytes, bytes),
            (unsigned long long)restore->removed, units_time(restore->time_ns, time),
            restore_method(restore));
}

static void head(FILE *out, const struct run_report *report, const struct conf *conf)
{
    char kept[UNITS_TEXT], kept_in[UNITS_TEXT];
    char order[40];

    fprintf(out, "tape       %s\n", report->tape);
    fprintf(out, "engine     %s%s%s%s, depth %u, batch %u", report->engine,
            report->granted[0] ? " (" : "", report->granted, report->granted[0] ? ")" : "",
            report->depth, report->batch);
    if (report->workers > 1)
        fprintf(out, ", %u %s (depth %u in all)", report->workers,
                conf->processes ? "processes" : "workers", report->depth * report->workers);
    fprintf(out, "\npace       %s, order %s, priority %s\n", conf_word("pace", conf->pace),
            conf_order_text(conf->order, order), conf_word("priority", report->priority));
    if (report->simulated)
        fprintf(out, "CLOCK      SIMULATED: these times are a model's, nothing was measured\n");
    if (report->end != RUN_CLEAN)
        fprintf(out, "PARTIAL    the run ended early: %s\n", run_end_words[report->end]);
    if (report->restore.used && report->restore.cloned + report->restore.copied != 0) {
        if (report->restore.files + report->restore.removed != 0)
            report_restored(report, out);
        fprintf(out, "kept       %llu more files, %s, in %s, before they were changed\n",
                (unsigned long long)report->restore.kept_files,
                units_size(report->restore.kept_bytes, kept),
                units_time(report->restore.keep_time_ns, kept_in));
    }
    if (report->cache.measured)
        fprintf(out, "cache      %s: %llu of %llu pages resident at the start\n",
                conf_word("cache", conf->cache), (unsigned long long)report->cache.resident,
                (unsigned long long)report->cache.pages);
}

void report_text(const struct run_report *report, const struct conf *conf, FILE *out)
{
    const struct stats *stats = report->stats;
    uint64_t bytes = stats->kind_bytes[TRACE_READ] + stats->kind_bytes[TRACE_WRITE];
    double seconds = (double)report->duration_ns / 1e9;
    char text[5][UNITS_TEXT];

    head(out, report, conf);
    counts(out, report);
    errors(out, stats);
    fprintf(out, "duration   %s", units_time(report->duration_ns, text[0]));
    if (report->duration_with_flush_ns != report->duration_ns)
        fprintf(out, ", %s with the final flush",
                units_time(report->duration_with_flush_ns, text[1]));
    if (seconds > 0)
        fprintf(out, ": %s ops/s, %s/s", units_count((double)stats->issued / seconds, text[2]),
                units_size((uint64_t)((double)bytes / seconds), text[3]));
    fprintf(out, "\ndepth      mean %.2f, max %u\n", report->depth_mean, report->depth_max);
    if (stats->batch.count != 0)
        fprintf(out, "batches    mean %.2f, max %llu, %llu calls\n", hist_mean(&stats->batch),
                (unsigned long long)stats->batch.max, (unsigned long long)stats->submit_calls);
    lateness(out, report, conf);
    fprintf(out, "  %-10s %10s %10s %10s %10s %10s %10s\n", "", "mean", "p50", "p90", "p99",
            "p99.9", "max");
    if (conf->pace != PACE_ASAP)
        row(out, "lag", &stats->lag);
    for (unsigned int i = 0; i < STATS_CLASS_COUNT; i++)
        row(out, stats_class_words[i], &stats->service[i]);
    if (conf->pace != PACE_ASAP)
        row(out, "response", &stats->response);
    cpu(out, report);
}

/* ---- the plan -------------------------------------------------------------------------------- */

static void plan_targets(const struct run_report *report, const struct conf *conf, FILE *out)
{
    const struct target_set *set = report->targets;
    uint64_t need = 0, files = 0;
    char text[UNITS_TEXT];

    for (uint32_t i = 0; i < set->count; i++) {
        if (i > 0 && strcmp(set->items[i - 1].path, set->items[i].path) == 0)
            continue;
        files++;
        need += set->items[i].need_bytes;
    }
    fprintf(out, "files      %llu, %s of data before the start%s\n", (unsigned long long)files,
            units_size(need, text), conf->prepare ? ", made first where missing" : "");
    for (uint32_t i = 0; i < set->count && i < 10; i++)
        fprintf(out, "  %s%s%s, reaches %s\n", set->items[i].path,
                set->items[i].direct ? " (direct)" : "",
                set->items[i].plan_flags & PLAN_WRITTEN ? ", WRITTEN" : ", read",
                units_size(set->items[i].max_end, text));
    if (set->count > 10)
        fprintf(out, "  ... and %u more\n", set->count - 10);
    for (size_t i = 0; i < conf->destroy.count; i++)
        fprintf(out, "DESTROYS   the contents of %s\n", conf->destroy.items[i]);
}

void report_plan(const struct run_report *report, const struct conf *conf, FILE *out)
{
    const struct plan *plan = report->plan;
    uint64_t written = plan->kind_bytes[TRACE_WRITE] + plan->kind_bytes[TRACE_WRITE_ZEROES];
    uint64_t copies = conf->loops * (conf->clones ? conf->clones : 1);
    char text[2][UNITS_TEXT];

    fprintf(out, "tape       %s: %llu ops, %u files, %u streams\n", conf->tape,
            (unsigned long long)plan->ops, plan->file_count, plan->stream_count);
    fprintf(out, "issue      %llu ops%s\n", (unsigned long long)(plan->issue_ops * copies),
            copies > 1 ? " (all loops and clones)" : "");
    for (unsigned int k = 0; k < TRACE_OP_COUNT; k++)
        if (plan->kind_ops[k] != 0)
            fprintf(out, "  %-10s %llu, %s\n", trace_op_name(k),
                    (unsigned long long)plan->kind_ops[k],
                    units_size(plan->kind_bytes[k], text[0]));
    for (unsigned int r = 1; r < SKIP_REASON_COUNT; r++)
        if (plan->skipped[r] != 0)
            fprintf(out, "skip       %llu ops: %s\n",
                    (unsigned long long)(plan->skipped[r] * copies), skip_words[r]);
    fprintf(out, "writes     %s\n", units_size(written * copies, text[0]));
    plan_targets(report, conf, out);
    if (conf->pace == PACE_ASAP)
        fprintf(out, "duration   as fast as it goes (recorded: %s)\n",
                units_time(plan_duration_ns(plan, conf), text[0]));
    else
        fprintf(out, "duration   about %s\n", units_time(plan_duration_ns(plan, conf), text[0]));
    fprintf(out, "nothing was done\n");
}
