/* SPDX-License-Identifier: MIT */
#include "convert/transform.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/diag.h"
#include "traces/units.h"

void transform_times_init(struct transform_times *times, const struct transform_conf *conf)
{
    memset(times, 0, sizeof(*times));
    times->conf = conf;
}

int64_t transform_time(struct transform_times *times, int64_t issue_ns)
{
    uint64_t most = times->conf->clamp_gap_ns;
    int64_t gap = issue_ns - times->last_ns;

    if (times->begun && most && gap > (int64_t)most) {
        times->removed_ns += gap - (int64_t)most;
        times->clamped++;
    }
    times->begun = true;
    times->last_ns = issue_ns;
    return issue_ns - times->removed_ns;
}

int64_t transform_speed(const struct transform_conf *conf, int64_t since_base_ns)
{
    if (conf->speed == 1.0)
        return since_base_ns;
    return (int64_t)llroundl((long double)since_base_ns / (long double)conf->speed);
}

/* ---- names ---------------------------------------------------------------------------- */

/* The rule's B for path, as a new string, or NULL when A does not fit. */
static char *mapped(const char *rule, const char *path)
{
    const char *equals = strchr(rule, '=');
    size_t from = (size_t)(equals - rule);
    char *name;

    while (from > 1 && rule[from - 1] == '/')
        from--;
    if (strncmp(path, rule, from) || (path[from] && path[from] != '/' && rule[from - 1] != '/'))
        return NULL;
    if (asprintf(&name, "%s%s", equals + 1, path + from) < 0)
        return NULL;
    return name;
}

static const char *best_rule(const struct opt_list *maps, const char *path)
{
    const char *best = NULL;
    size_t best_length = 0;

    for (size_t i = 0; i < maps->count; i++) {
        size_t length = strcspn(maps->items[i], "=");
        char *name = mapped(maps->items[i], path);

        if (name && (!best || length > best_length)) {
            best = maps->items[i];
            best_length = length;
        }
        free(name);
    }
    return best;
}

int transform_rename(const struct transform_conf *conf, struct catalog *tables,
                     uint64_t *ret_renamed, struct diag *diag)
{
    struct catalog seen;
    uint64_t renamed = 0;
    int err = 0;

    *ret_renamed = 0;
    if (!conf->maps.count)
        return 0;
    catalog_init(&seen);
    for (uint32_t i = 0; i < tables->file_count && err == 0; i++) {
        struct trace_file *file = catalog_file_at(tables, i);
        const char *rule = best_rule(&conf->maps, file->path);
        char *name = rule ? mapped(rule, file->path) : NULL;
        uint32_t number;

        if (name) {
            free((char *)file->path);
            file->path = name;
            renamed++;
        }
        err = catalog_file(&seen, file->path, strlen(file->path), &number);
        if (err == 0 && number != i)
            err = diag_set(diag, -EEXIST, "--map: two files would be named %s", file->path);
    }
    catalog_release(&seen);
    if (err == 0)
        *ret_renamed = renamed;
    return err;
}

/* ---- option texts --------------------------------------------------------------------- */

static int parse_shift(const char *text, size_t *ret_index, int64_t *ret_shift_ns)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    bool negative;
    uint64_t ns;

    if (end == text || *end != ':' || number == 0)
        return -EINVAL;
    negative = *++end == '-';
    end += *end == '-' || *end == '+';
    if (units_parse_time(end, &ns) < 0 || ns > (uint64_t)INT64_MAX / 4)
        return -EINVAL;
    *ret_index = number - 1;
    *ret_shift_ns = negative ? -(int64_t)ns : (int64_t)ns;
    return 0;
}

int64_t transform_shift_ns(const struct transform_conf *conf, size_t index)
{
    int64_t shift_ns, total_ns = 0;
    size_t of;

    for (size_t i = 0; i < conf->shifts.count; i++)
        if (parse_shift(conf->shifts.items[i], &of, &shift_ns) == 0 && of == index)
            total_ns += shift_ns;
    return total_ns;
}

int transform_parse_split(const struct opt *opt, void *conf, const char *text,
                          struct diag *diag)
{
    struct transform_conf *transform = (struct transform_conf *)((char *)conf + opt->offset);

    if (!strcmp(text, "file"))
        transform->split = SPLIT_FILE;
    else if (!strcmp(text, "stream"))
        transform->split = SPLIT_STREAM;
    else if (!strncmp(text, "time:", 5) &&
             units_parse_time(text + 5, &transform->split_ns) == 0 && transform->split_ns)
        transform->split = SPLIT_TIME;
    else
        return diag_set(diag, -EINVAL, "--%s: '%s' is not file, stream or time:T (time:10s)",
                        opt->name, text);
    return 0;
}

int transform_conf_check(const struct transform_conf *conf, struct diag *diag)
{
    int64_t shift_ns;
    size_t index;

    for (size_t i = 0; i < conf->maps.count; i++) {
        const char *equals = strchr(conf->maps.items[i], '=');

        if (!equals || equals == conf->maps.items[i] || !equals[1])
            return diag_set(diag, -EINVAL, "--map: '%s' is not OLD=NEW", conf->maps.items[i]);
    }
    for (size_t i = 0; i < conf->shifts.count; i++)
        if (parse_shift(conf->shifts.items[i], &index, &shift_ns) < 0)
            return diag_set(diag, -EINVAL,
                            "--shift: '%s' is not N:TIME (2:500ms, 3:-1s), N an input from 1",
                            conf->shifts.items[i]);
    return fit_conf_check(&conf->fit, diag);
}
