/* SPDX-License-Identifier: MIT */
#include "engines/fault.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/diag.h"
#include "traces/units.h"

enum point {
    POINT_OPEN,
    POINT_SUBMIT,
    POINT_REAP,
    POINT_SHORT,
    POINT_STALL,
    POINT_COUNT
};

static const char *const point_names[POINT_COUNT] = {"open", "submit", "reap", "short",
                                                     "stall"};

#define MAX_RULES 16
#define MAX_TEXT  512

struct rule {
    enum point point;
    uint64_t nth;
    int error;
    uint64_t stall_ns;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char loaded[MAX_TEXT];
static struct rule rules[MAX_RULES];
static unsigned int rule_count;
static uint64_t counters[POINT_COUNT]; /* atomic */

static const struct {
    const char *name;
    int error;
} errnos[] = {
    {"EAGAIN", EAGAIN},
    {"EBADF", EBADF},
    {"EBUSY", EBUSY},
    {"EFBIG", EFBIG},
    {"EINTR", EINTR},
    {"EINVAL", EINVAL},
    {"EIO", EIO},
    {"EMFILE", EMFILE},
    {"ENODEV", ENODEV},
    {"ENOMEM", ENOMEM},
    {"ENOSPC", ENOSPC},
    {"ENXIO", ENXIO},
    {"EPERM", EPERM},
    {"EROFS", EROFS},
    {"ETIMEDOUT", ETIMEDOUT},
    {"EOPNOTSUPP", EOPNOTSUPP},
};

int fault_errno(const char *name)
{
    for (size_t i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++)
        if (!strcmp(errnos[i].name, name))
            return -errnos[i].error;
    return 0;
}

/* One "point:nth[:what]"; text is cut up. */
static int rule_parse(struct rule *ret_rule, char *text, struct diag *diag)
{
    struct rule rule = {.point = POINT_COUNT};
    char *nth = strchr(text, ':'), *what = nth ? strchr(nth + 1, ':') : NULL;
    bool needs_what;

    if (nth)
        *nth++ = '\0';
    if (what)
        *what++ = '\0';
    for (int i = 0; i < POINT_COUNT; i++)
        if (!strcmp(text, point_names[i]))
            rule.point = (enum point)i;
    if (rule.point == POINT_COUNT)
        return diag_set(diag, -EINVAL,
                        "IOTAPE_FAULT: '%s' is not open, submit, reap, short or stall", text);
    if (!nth || units_parse_count(nth, &rule.nth) || rule.nth == 0)
        return diag_set(diag, -EINVAL, "IOTAPE_FAULT: %s: a number from 1 must follow", text);
    needs_what = rule.point != POINT_SHORT;
    if (needs_what != (what != NULL))
        return diag_set(diag, -EINVAL, "IOTAPE_FAULT: %s: %s", text,
                        needs_what ? "an error name or a time must follow" : "takes no value");
    if (rule.point == POINT_STALL) {
        if (units_parse_time(what, &rule.stall_ns))
            return diag_set(diag, -EINVAL, "IOTAPE_FAULT: stall: '%s' is not a time", what);
    } else if (what) {
        rule.error = fault_errno(what);
        if (!rule.error)
            return diag_set(diag, -EINVAL, "IOTAPE_FAULT: '%s' is not an error name known here",
                            what);
    }
    *ret_rule = rule;
    return 0;
}

static int plan_parse(const char *text, struct diag *diag)
{
    char copy[MAX_TEXT], *next = copy, *item;
    struct rule parsed[MAX_RULES];
    unsigned int count = 0;
    int err;
    size_t length = strlen(text);

    if (length >= sizeof(copy))
        return diag_set(diag, -EINVAL, "IOTAPE_FAULT: longer than %d bytes", MAX_TEXT - 1);
    memcpy(copy, text, length + 1);
    while ((item = strsep(&next, ";"))) {
        if (!*item)
            continue;
        if (count == MAX_RULES)
            return diag_set(diag, -EINVAL, "IOTAPE_FAULT: more than %d faults", MAX_RULES);
        err = rule_parse(&parsed[count], item, diag);
        if (err)
            return err;
        count++;
    }
    memcpy(rules, parsed, sizeof(parsed[0]) * count);
    rule_count = count;
    memset(counters, 0, sizeof(counters));
    memcpy(loaded, text, length + 1);
    return 0;
}

int fault_load(const char *text, struct diag *diag)
{
    int result = 0;

    if (!text || !*text)
        return 0;
    pthread_mutex_lock(&lock);
    if (strcmp(text, loaded) != 0)
        result = plan_parse(text, diag);
    if (!result)
        result = rule_count > 0;
    pthread_mutex_unlock(&lock);
    return result;
}

void fault_reset(void)
{
    pthread_mutex_lock(&lock);
    loaded[0] = '\0';
    rule_count = 0;
    memset(counters, 0, sizeof(counters));
    pthread_mutex_unlock(&lock);
}

static const struct rule *fault_count(enum point point)
{
    uint64_t n = __atomic_add_fetch(&counters[point], 1, __ATOMIC_RELAXED);

    for (unsigned int i = 0; i < rule_count; i++)
        if (rules[i].point == point && rules[i].nth == n)
            return &rules[i];
    return NULL;
}

int fault_open(void)
{
    const struct rule *rule = fault_count(POINT_OPEN);

    return rule ? rule->error : 0;
}

int fault_submit_op(void)
{
    const struct rule *rule = fault_count(POINT_SUBMIT);

    return rule ? rule->error : 0;
}

int fault_reap(void)
{
    const struct rule *rule = fault_count(POINT_REAP);

    return rule ? rule->error : 0;
}

bool fault_short(void)
{
    return fault_count(POINT_SHORT) != NULL;
}

uint64_t fault_stall_ns(void)
{
    const struct rule *rule = fault_count(POINT_STALL);

    return rule ? rule->stall_ns : 0;
}
