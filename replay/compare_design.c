/* SPDX-License-Identifier: MIT */
#include "replay/compare_design.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engines/engine.h"
#include "replay/compare_infer.h"
#include "traces/diag.h"

void design_init(struct design *design)
{
    memset(design, 0, sizeof *design);
}

void design_release(struct design *design)
{
    unsigned int i, j;

    for (i = 0; i < design->dimensions; i++) {
        for (j = 0; j < design->dimension[i].count; j++)
            free(design->dimension[i].values[j]);
        free(design->dimension[i].values);
        free(design->dimension[i].name);
    }
    for (i = 0; i < design->count; i++)
        free(design->cells[i].excluded);
    free(design->cells);
    memset(design, 0, sizeof *design);
}

static struct design_dimension *dimension_find(struct design *design, const char *name)
{
    unsigned int i;

    for (i = 0; i < design->dimensions; i++)
        if (strcmp(design->dimension[i].name, name) == 0)
            return &design->dimension[i];
    return NULL;
}

static int dimension_make(struct design *design, const char *name,
                          struct design_dimension **ret_dimension, struct diag *diag)
{
    struct design_dimension *dimension = dimension_find(design, name);

    if (!dimension) {
        if (design->dimensions == DESIGN_DIMENSIONS)
            return diag_set(diag, -EINVAL, "more than %d dimensions", DESIGN_DIMENSIONS);
        dimension = &design->dimension[design->dimensions];
        dimension->name = strdup(name);
        if (!dimension->name)
            return diag_set(diag, -ENOMEM, "not enough memory for the design");
        design->dimensions++;
    }
    *ret_dimension = dimension;
    return 0;
}

/* Takes length bytes of text as a value, "\," as a comma. */
static int dimension_push(struct design_dimension *dimension, const char *text, size_t length,
                          struct diag *diag)
{
    char **grown = realloc(dimension->values, (dimension->count + 1) * sizeof *grown);
    char *value = malloc(length + 1);
    size_t i, used = 0;

    if (grown)
        dimension->values = grown;
    if (!grown || !value) {
        free(value);
        return diag_set(diag, -ENOMEM, "not enough memory for the design");
    }
    for (i = 0; i < length; i++) {
        if (text[i] == '\\' && i + 1 < length && text[i + 1] == ',')
            i++;
        value[used++] = text[i];
    }
    value[used] = '\0';
    dimension->values[dimension->count++] = value;
    return 0;
}

/* Bytes up to the next comma that is not escaped. */
static size_t value_length(const char *text)
{
    size_t i = 0;

    while (text[i] && text[i] != ',')
        i += text[i] == '\\' && text[i + 1] == ',' ? 2 : 1;
    return i;
}

int design_add(struct design *design, const char *name, const char *text, struct diag *diag)
{
    struct design_dimension *dimension;
    size_t length;
    int err;

    err = dimension_make(design, name, &dimension, diag);
    while (err == 0) {
        length = value_length(text);
        if (length == 0)
            return diag_set(diag, -EINVAL, "--%s: an empty value in the list", name);
        err = dimension_push(dimension, text, length, diag);
        text += length;
        if (*text++ == '\0')
            break;
    }
    return err;
}

int design_add_one(struct design *design, const char *name, const char *text, struct diag *diag)
{
    struct design_dimension *dimension;
    int err = dimension_make(design, name, &dimension, diag);

    return err < 0 ? err : dimension_push(dimension, text, strlen(text), diag);
}

static bool engine_begins(const char *text)
{
    return engine_find(text, strcspn(text, ":,")) != NULL;
}

int design_add_engines(struct design *design, const char *text, struct diag *diag)
{
    struct design_dimension *dimension;
    struct engine_choice choice;
    size_t length;
    int err;

    err = dimension_make(design, "engine", &dimension, diag);
    while (err == 0 && *text) {
        length = strcspn(text, ",");
        while (text[length] && !engine_begins(text + length + 1))
            length += 1 + strcspn(text + length + 1, ",");
        err = dimension_push(dimension, text, length, diag);
        if (err < 0)
            break;
        err = engine_choice_parse(&choice, dimension->values[dimension->count - 1], diag);
        if (err < 0)
            break;
        engine_choice_release(&choice);
        text += length + (text[length] == ',');
    }
    return err;
}

/* ---- cells -------------------------------------------------------------------------- */

static unsigned int cell_find(const struct design *design, const unsigned int *value)
{
    unsigned int i, at = 0;

    for (i = 0; i < design->dimensions; i++)
        at = at * design->dimension[i].count + value[i];
    return at;
}

/* What a baseline fixes: a value for some dimensions. */
struct fixed {
    bool is[DESIGN_DIMENSIONS];
    unsigned int value[DESIGN_DIMENSIONS];
};

static int fixed_set(const struct design *design, struct fixed *fixed, const char *name,
                     size_t name_length, const char *value, size_t value_bytes,
                     struct diag *diag)
{
    unsigned int i, j;

    for (i = 0; i < design->dimensions; i++) {
        const struct design_dimension *dimension = &design->dimension[i];

        if (strlen(dimension->name) != name_length ||
            memcmp(dimension->name, name, name_length) != 0)
            continue;
        for (j = 0; j < dimension->count; j++)
            if (strlen(dimension->values[j]) == value_bytes &&
                memcmp(dimension->values[j], value, value_bytes) == 0) {
                fixed->is[i] = true;
                fixed->value[i] = j;
                return 0;
            }
        return diag_set(diag, -EINVAL, "--baseline: %s has no value '%.*s'", dimension->name,
                        (int)value_bytes, value);
    }
    return diag_set(diag, -EINVAL, "--baseline: no dimension '%.*s'", (int)name_length, name);
}

static int fixed_parse(const struct design *design, struct fixed *fixed, const char *text,
                       struct diag *diag)
{
    size_t name, length;
    int err = 0;

    while (err == 0 && *text) {
        name = strcspn(text, "=,");
        if (text[name] != '=')
            return diag_set(diag, -EINVAL, "--baseline '%s': expected first or NAME=VALUE,...",
                            text);
        /* An engine's options may hold commas: the value ends where NAME= follows. */
        length = strcspn(text + name + 1, ",");
        while (text[name + 1 + length]) {
            const char *next = text + name + 1 + length + 1;
            size_t word = strcspn(next, "=,");
            unsigned int i;

            for (i = 0; i < design->dimensions; i++)
                if (strlen(design->dimension[i].name) == word &&
                    memcmp(design->dimension[i].name, next, word) == 0)
                    break;
            if (next[word] == '=' && i < design->dimensions)
                break;
            length += 1 + strcspn(next, ",");
        }
        err = fixed_set(design, fixed, text, name, text + name + 1, length, diag);
        text += name + 1 + length;
        text += *text == ',';
    }
    return err;
}

static int fixed_choose(const struct design *design, struct fixed *fixed, const char *baseline,
                        struct diag *diag)
{
    unsigned int i;

    memset(fixed, 0, sizeof *fixed);
    if (baseline && strcmp(baseline, "first") != 0)
        return fixed_parse(design, fixed, baseline, diag);
    for (i = 0; i < design->dimensions; i++)
        if (baseline || design->dimension[i].count > 1) {
            fixed->is[i] = true;
            if (!baseline)
                break;
        }
    return 0;
}

int design_cross(struct design *design, const char *baseline, struct diag *diag)
{
    unsigned int value[DESIGN_DIMENSIONS], i, at, rest;
    struct fixed fixed;
    uint64_t count = 1;
    int err;

    for (i = 0; i < design->dimensions; i++)
        count *= design->dimension[i].count;
    if (count == 0 || count > DESIGN_CELLS)
        return diag_set(diag, -EINVAL, "the matrix has %llu cells; at most %d",
                        (unsigned long long)count, DESIGN_CELLS);
    err = fixed_choose(design, &fixed, baseline, diag);
    if (err < 0)
        return err;
    design->cells = calloc((size_t)count, sizeof *design->cells);
    if (!design->cells)
        return diag_set(diag, -ENOMEM, "not enough memory for the design");
    design->count = (unsigned int)count;
    for (at = 0; at < design->count; at++) {
        for (i = design->dimensions, rest = at; i-- > 0;) {
            design->cells[at].value[i] = rest % design->dimension[i].count;
            rest /= design->dimension[i].count;
        }
        for (i = 0; i < design->dimensions; i++)
            value[i] = fixed.is[i] ? fixed.value[i] : design->cells[at].value[i];
        design->cells[at].baseline = cell_find(design, value);
    }
    return 0;
}

int design_exclude(struct design *design, unsigned int cell, const char *reason)
{
    char *copy = strdup(reason);

    if (!copy)
        return -ENOMEM;
    free(design->cells[cell].excluded);
    design->cells[cell].excluded = copy;
    return 0;
}

const char *design_value(const struct design *design, unsigned int cell, const char *name)
{
    unsigned int i;

    for (i = 0; i < design->dimensions; i++)
        if (strcmp(design->dimension[i].name, name) == 0)
            return design->dimension[i].values[design->cells[cell].value[i]];
    return NULL;
}

const char *design_label(const struct design *design, unsigned int cell, char *buf, size_t size)
{
    unsigned int i;
    size_t used = 0;

    buf[0] = '\0';
    for (i = 0; i < design->dimensions && used < size; i++) {
        const struct design_dimension *dimension = &design->dimension[i];

        if (dimension->count > 1)
            used += (size_t)snprintf(buf + used, size - used, "%s%s %s", used ? ", " : "",
                                     dimension->name,
                                     dimension->values[design->cells[cell].value[i]]);
    }
    if (used == 0 && design->dimensions > 0)
        snprintf(buf, size, "%s", design->dimension[0].values[0]);
    return buf;
}

unsigned int design_comparisons(const struct design *design)
{
    unsigned int i, count = 0;

    for (i = 0; i < design->count; i++)
        count += design->cells[i].baseline != i && !design->cells[i].excluded &&
                 !design->cells[design->cells[i].baseline].excluded;
    return count;
}

unsigned int design_order(const struct design *design, unsigned int block, uint32_t *ret_order)
{
    struct infer_random random = {design->seed ^ (block * 0x9e3779b97f4a7c15u)};
    unsigned int i, kept = 0;

    infer_shuffle(&random, ret_order, design->count);
    for (i = 0; i < design->count; i++)
        if (!design->cells[ret_order[i]].excluded)
            ret_order[kept++] = ret_order[i];
    return kept;
}

uint64_t design_trial_seed(const struct design *design, unsigned int block, unsigned int cell)
{
    struct infer_random random = {design->seed};

    random.state ^= infer_random_next(&random) + block;
    random.state ^= infer_random_next(&random) + cell;
    return infer_random_next(&random) >> 32;
}
