/* SPDX-License-Identifier: MIT */
#include "replay/compare_metric.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "traces/units.h"

#define LESS false
#define MORE true

const struct metric metrics[METRIC_COUNT] = {
    [METRIC_IOPS] = {"iops", NULL, METRIC_PER_S, MORE, false,
                     "ops a second, the closing flush of a trial with writes included"},
    [METRIC_BANDWIDTH] = {"bandwidth", NULL, METRIC_SIZE_PER_S, MORE, false,
                          "bytes a second, likewise"},
    [METRIC_DURATION] = {"duration", NULL, METRIC_TIME_NS, LESS, false,
                         "of the trial, likewise"},
    [METRIC_MEAN] = {"mean", "service_ns.mean", METRIC_TIME_NS, LESS, false, "service time"},
    [METRIC_P50] = {"p50", "service_ns.p50", METRIC_TIME_NS, LESS, false, "service time"},
    [METRIC_P90] = {"p90", "service_ns.p90", METRIC_TIME_NS, LESS, false, "service time"},
    [METRIC_P99] = {"p99", "service_ns.p99", METRIC_TIME_NS, LESS, false, "service time"},
    [METRIC_P99_9] = {"p99_9", "service_ns.p99_9", METRIC_TIME_NS, LESS, false, "service time"},
    [METRIC_MAX] = {"max", "service_ns.max", METRIC_TIME_NS, LESS, false, "service time"},
    [METRIC_RESPONSE_MEAN] = {"response_mean", "response_ns.mean", METRIC_TIME_NS, LESS, false,
                              "from due to completed"},
    [METRIC_RESPONSE_P50] = {"response_p50", "response_ns.p50", METRIC_TIME_NS, LESS, false,
                             "from due to completed"},
    [METRIC_RESPONSE_P90] = {"response_p90", "response_ns.p90", METRIC_TIME_NS, LESS, false,
                             "from due to completed"},
    [METRIC_RESPONSE_P99] = {"response_p99", "response_ns.p99", METRIC_TIME_NS, LESS, false,
                             "from due to completed"},
    [METRIC_RESPONSE_P99_9] = {"response_p99_9", "response_ns.p99_9", METRIC_TIME_NS, LESS,
                               false, "from due to completed"},
    [METRIC_RESPONSE_MAX] = {"response_max", "response_ns.max", METRIC_TIME_NS, LESS, false,
                             "from due to completed"},
    [METRIC_LAG_MEAN] = {"lag_mean", "lag_ns.mean", METRIC_TIME_NS, LESS, false,
                         "issued after due: the replayer's own error"},
    [METRIC_LAG_P50] = {"lag_p50", "lag_ns.p50", METRIC_TIME_NS, LESS, false, "likewise"},
    [METRIC_LAG_P99] = {"lag_p99", "lag_ns.p99", METRIC_TIME_NS, LESS, false, "likewise"},
    [METRIC_LAG_MAX] = {"lag_max", "lag_ns.max", METRIC_TIME_NS, LESS, false, "likewise"},
    [METRIC_DEPTH_MEAN] = {"depth_mean", "depth.mean", METRIC_NUMBER, MORE, false,
                           "ops in flight, weighted by time"},
    [METRIC_DEPTH_MAX] = {"depth_max", "depth.max", METRIC_NUMBER, MORE, false,
                          "ops in flight"},
    [METRIC_CPU] = {"cpu", NULL, METRIC_TIME_NS, LESS, false,
                    "CPU time an op, user and system"},
    [METRIC_CPU_USER] = {"cpu_user", "cpu_user_ns_per_op", METRIC_TIME_NS, LESS, false,
                         "user CPU time an op"},
    [METRIC_CPU_SYS] = {"cpu_sys", "cpu_sys_ns_per_op", METRIC_TIME_NS, LESS, false,
                        "system CPU time an op"},
    [METRIC_CTX_SWITCHES] = {"ctx_switches", "ctx_switches", METRIC_NUMBER, LESS, false,
                             "context switches"},
    [METRIC_OPS] = {"ops", "ops_issued", METRIC_NUMBER, MORE, false, "ops issued"},
    [METRIC_ERRORS] = {"errors", "errors", METRIC_NUMBER, LESS, false, "ops that failed"},
    [METRIC_SHORT] = {"short_transfers", "short_transfers", METRIC_NUMBER, LESS, false,
                      "reads and writes that moved less than asked"},
    [METRIC_LATE] = {"late", "late_ops", METRIC_NUMBER, LESS, false, "ops later than --late"},
    [METRIC_HOLDS] = {"holds", "holds", METRIC_NUMBER, LESS, false,
                      "ops held back by the depth cap"},
    [METRIC_UNEXPECTED] = {"unexpected", "unexpected_results", METRIC_NUMBER, LESS, false,
                           "results that differ from the tape's"},
    [METRIC_RESTORE] = {"restore", "restore.time_ns", METRIC_TIME_NS, LESS, false,
                        "putting the files back before the trial; not part of its duration"},
    [METRIC_WALL] = {"wall", NULL, METRIC_TIME_NS, LESS, true, "wall time of the command"},
    [METRIC_CMD_CPU] = {"cmd_cpu", NULL, METRIC_TIME_NS, LESS, true,
                        "CPU time of the command and all it waited for"},
    [METRIC_CMD_USER] = {"cmd_user", NULL, METRIC_TIME_NS, LESS, true, "its user part"},
    [METRIC_CMD_SYS] = {"cmd_sys", NULL, METRIC_TIME_NS, LESS, true, "its system part"},
    [METRIC_CMD_RSS] = {"cmd_rss", NULL, METRIC_SIZE, LESS, true, "most memory resident"},
    [METRIC_CMD_VALUE] = {"value", NULL, METRIC_NUMBER, MORE, true,
                          "what --value-regex or --value-json takes from its output"},
};

bool metric_of_tape(unsigned int metric)
{
    return metric <= METRIC_MAX || metric == METRIC_DEPTH_MEAN || metric == METRIC_DEPTH_MAX ||
           metric == METRIC_OPS || metric == METRIC_ERRORS || metric == METRIC_SHORT;
}

int metric_find(const char *name, size_t length)
{
    int i;

    for (i = 0; i < METRIC_COUNT; i++)
        if (strlen(metrics[i].name) == length && memcmp(metrics[i].name, name, length) == 0)
            return i;
    return -EINVAL;
}

/* The number at "a.b"; NAN where there is none. */
static double number_at(const json_t *object, const char *path)
{
    char key[64];
    size_t length;

    while (object) {
        length = strcspn(path, ".");
        if (length >= sizeof key)
            return NAN;
        memcpy(key, path, length);
        key[length] = '\0';
        object = json_object_get(object, key);
        if (!path[length])
            break;
        path += length + 1;
    }
    return json_is_number(object) ? json_number_value(object) : NAN;
}

void metrics_read(const json_t *report, double *value)
{
    const char *clock = json_string_value(json_object_get(report, "clock"));
    double plain = number_at(report, "duration_ns");
    double whole = number_at(report, "duration_with_flush_ns"), share;
    int i;

    for (i = 0; i < METRIC_COUNT; i++)
        value[i] = metrics[i].path ? number_at(report, metrics[i].path) : NAN;
    share = whole > 0 && plain > 0 ? plain / whole : 1;
    value[METRIC_IOPS] = number_at(report, "iops") * share;
    value[METRIC_BANDWIDTH] = number_at(report, "bytes_per_s") * share;
    value[METRIC_DURATION] = whole > 0 ? whole : plain;
    /* What simulating costs says nothing of what is simulated. */
    if (clock && strcmp(clock, "simulated") == 0)
        value[METRIC_CPU_USER] = value[METRIC_CPU_SYS] = value[METRIC_CTX_SWITCHES] = NAN;
    value[METRIC_CPU] = value[METRIC_CPU_USER] + value[METRIC_CPU_SYS];
}

const char *metric_text(const struct metric *metric, double value, char *buf)
{
    char text[UNITS_TEXT];

    if (isnan(value))
        snprintf(buf, METRIC_TEXT, "n/a");
    else if (metric->unit == METRIC_TIME_NS)
        snprintf(buf, METRIC_TEXT, "%s%s", value < 0 ? "-" : "",
                 units_time((uint64_t)llround(fabs(value)), text));
    else if (metric->unit == METRIC_SIZE || metric->unit == METRIC_SIZE_PER_S)
        snprintf(buf, METRIC_TEXT, "%s%s", units_size((uint64_t)llround(fabs(value)), text),
                 metric->unit == METRIC_SIZE ? "" : "/s");
    else if (fabs(value) < 1000)
        snprintf(buf, METRIC_TEXT, "%.3g", value);
    else
        snprintf(buf, METRIC_TEXT, "%s", units_count(value, text));
    return buf;
}
