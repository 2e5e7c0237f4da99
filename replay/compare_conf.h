/* SPDX-License-Identifier: MIT */
/*
 * What the user asked of iotape compare: the option table and the checks that need nothing but
 * the options themselves.
 *
 * Lifecycle: compare_conf_parse, read, compare_conf_release. Strings point into argv.
 */
#ifndef REPLAY_COMPARE_CONF_H
#define REPLAY_COMPARE_CONF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "traces/opts.h"

enum compare_mode {
    COMPARE_TAPES,
    COMPARE_MATRIX,
    COMPARE_COMMANDS
};

enum compare_restore_by {
    COMPARE_RESTORE_AUTO,
    COMPARE_RESTORE_REFLINK,
    COMPARE_RESTORE_EXTENTS,
    COMPARE_RESTORE_NONE
};
extern const char *const compare_restore_words[];

struct compare_conf {
    /* tape against tape */
    int match, files;
    uint64_t window;
    /* the matrix */
    struct opt_list engines, sets;
    const char *depth, *batch, *processes, *workers, *pace;
    const char *baseline;
    bool ab, witness;
    const char *value_regex, *value_json;
    uint64_t trials, warmup, seed, cool_down_ns;
    const char *dir, *reset, *restore;
    int restore_by; /* enum compare_restore_by */
    bool resume, result_tapes, allow_fallback;
    /* passed on to each trial */
    const char *root, *target, *speed, *order, *clock, *cache, *runtime, *unaligned, *fit;
    struct opt_list maps, destroy;
    bool writes, prepare, direct, buffered, verify;
    /* decisions */
    const char *metrics;
    double margin_pct, detect_pct, unstable_pct, alpha_pct, noise_pct;
    uint64_t draws;
    struct opt_list fail_if;
    bool require_decision;
    /* reports */
    const char *json, *csv, *markdown, *html;
    bool quiet, help, version;
    /* set by parse */
    enum compare_mode mode;
    char **operands;
    int operand_count;
};

/* -EINVAL with diag: what the user wrote cannot be meant. help and version skip the checks. */
int compare_conf_parse(struct compare_conf *conf, int argc, char **argv, struct diag *diag);
void compare_conf_release(struct compare_conf *conf);
void compare_conf_help(FILE *out);

/*
 * The options that each trial is given as they are, "--root=/x", NULL-ended; the caller frees
 * the strings and the array. -ENOMEM with diag.
 */
int compare_conf_passed(const struct compare_conf *conf, char ***ret_passed, struct diag *diag);

#endif
