/* SPDX-License-Identifier: MIT */
/*
 * The figures of a trial that can be compared, by name.
 */
#ifndef REPLAY_COMPARE_METRIC_H
#define REPLAY_COMPARE_METRIC_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

enum metric_unit {
    METRIC_NUMBER,
    METRIC_TIME_NS,
    METRIC_SIZE,
    METRIC_PER_S,
    METRIC_SIZE_PER_S
};

struct metric {
    const char *name;
    const char *path; /* in a trial's JSON, "service_ns.p99"; NULL: made by compare */
    enum metric_unit unit;
    bool more_is_better;
    bool from_command; /* of --ab, else of a replay */
    const char *help;
};

/* The order is that of the values of a trial. */
enum metric_index {
    METRIC_IOPS,
    METRIC_BANDWIDTH,
    METRIC_DURATION,
    METRIC_MEAN,
    METRIC_P50,
    METRIC_P90,
    METRIC_P99,
    METRIC_P99_9,
    METRIC_MAX,
    METRIC_RESPONSE_MEAN,
    METRIC_RESPONSE_P50,
    METRIC_RESPONSE_P90,
    METRIC_RESPONSE_P99,
    METRIC_RESPONSE_P99_9,
    METRIC_RESPONSE_MAX,
    METRIC_LAG_MEAN,
    METRIC_LAG_P50,
    METRIC_LAG_P99,
    METRIC_LAG_MAX,
    METRIC_DEPTH_MEAN,
    METRIC_DEPTH_MAX,
    METRIC_CPU,
    METRIC_CPU_USER,
    METRIC_CPU_SYS,
    METRIC_CTX_SWITCHES,
    METRIC_OPS,
    METRIC_ERRORS,
    METRIC_SHORT,
    METRIC_LATE,
    METRIC_HOLDS,
    METRIC_UNEXPECTED,
    METRIC_RESTORE,
    METRIC_WALL,
    METRIC_CMD_CPU,
    METRIC_CMD_USER,
    METRIC_CMD_SYS,
    METRIC_CMD_RSS,
    METRIC_CMD_VALUE,
    METRIC_COUNT
};

extern const struct metric metrics[METRIC_COUNT];

/* May a tape of what a command did give it (--witness)? */
bool metric_of_tape(unsigned int metric);
/* The index of a name, or -EINVAL. */
int metric_find(const char *name, size_t length);
/* Fills value[METRIC_COUNT] from a replay's JSON report; NAN where it says nothing. */
void metrics_read(const json_t *report, double *value);
/* "12.3 us", "1.2 M", "3.4 GiB/s"; "n/a" for NAN. buf holds METRIC_TEXT; returned. */
#define METRIC_TEXT 48
const char *metric_text(const struct metric *metric, double value, char *buf);

#endif
