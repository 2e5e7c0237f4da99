/* SPDX-License-Identifier: MIT */
#include "convert/fit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/catalog.h"
#include "traces/diag.h"
#include "traces/units.h"

#define SCALE_ALIGN 4096u

int fit_conf_check(const struct fit_conf *conf, struct diag *diag)
{
    if ((conf->mode == FIT_WRAP || conf->mode == FIT_SCALE) && !conf->size_bytes)
        return diag_set(diag, -EINVAL, "--fit wrap and scale need --fit-size");
    if (conf->mode == FIT_NONE && conf->size_bytes)
        return diag_set(diag, -EINVAL, "--fit-size needs --fit wrap, scale or pack");
    if (conf->grain_bytes & (conf->grain_bytes - 1) || conf->grain_bytes < 512)
        return diag_set(diag, -EINVAL, "--fit-grain: not a power of two of at least 512");
    return 0;
}

int fit_init(struct fit *fit, const struct fit_conf *conf)
{
    memset(fit, 0, sizeof(*fit));
    fit->conf = conf;
    if (conf->mode == FIT_PACK) {
        fit->grain_bits = (unsigned int)__builtin_ctzll(conf->grain_bytes);
        fit->mask = (1u << 12) - 1;
        fit->grains = calloc(fit->mask + 1, sizeof(*fit->grains));
        if (!fit->grains)
            return -ENOMEM;
    }
    return 0;
}

void fit_release(struct fit *fit)
{
    free(fit->grains);
    free(fit->max_ends);
    fit->grains = NULL;
    fit->max_ends = NULL;
}

/* ---- what is touched ------------------------------------------------------------------- */

static uint32_t grain_slot(const struct fit *fit, uint32_t file, uint64_t number)
{
    uint64_t hash = (number ^ (uint64_t)file << 40) * 0x9e3779b97f4a7c15u;
    uint32_t at = (uint32_t)(hash >> 32) & fit->mask;

    while (fit->grains[at].position &&
           (fit->grains[at].file != file || fit->grains[at].number != number))
        at = (at + 1) & fit->mask;
    return at;
}

/* The set again in a table of size entries, numbers shifted right by coarser bits. */
static int grains_rebuild(struct fit *fit, uint32_t size, unsigned int coarser)
{
    struct fit_grain *old = fit->grains;
    uint32_t old_mask = fit->mask;

    fit->grains = calloc(size, sizeof(*fit->grains));
    if (!fit->grains) {
        fit->grains = old;
        return -ENOMEM;
    }
    fit->mask = size - 1;
    fit->grain_bits += coarser;
    fit->grain_count = 0;
    for (uint32_t i = 0; i <= old_mask; i++) {
        uint32_t at;

        if (!old[i].position)
            continue;
        at = grain_slot(fit, old[i].file, old[i].number >> coarser);
        if (!fit->grains[at].position)
            fit->grain_count++;
        fit->grains[at] = (struct fit_grain){old[i].number >> coarser, old[i].file, 1};
    }
    free(old);
    return 0;
}

static int grain_add(struct fit *fit, uint32_t file, uint64_t number)
{
    uint32_t at = grain_slot(fit, file, number);

    if (fit->grains[at].position)
        return 0;
    fit->grains[at] = (struct fit_grain){number, file, 1};
    if (++fit->grain_count > FIT_GRAINS_MAX)
        return grains_rebuild(fit, fit->mask + 1, 1);
    if (fit->grain_count > fit->mask / 2)
        return grains_rebuild(fit, (fit->mask + 1) * 2, 0);
    return 0;
}

static int observe_end(struct fit *fit, const struct trace_op *op)
{
    if (op->file >= fit->max_ends_known) {
        uint32_t next = op->file + op->file / 2 + 64;
        uint64_t *grown = realloc(fit->max_ends, next * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        memset(grown + fit->max_ends_known, 0, (next - fit->max_ends_known) * sizeof(*grown));
        fit->max_ends = grown;
        fit->max_ends_known = next;
    }
    if (op->offset + op->length > fit->max_ends[op->file])
        fit->max_ends[op->file] = op->offset + op->length;
    return 0;
}

static bool is_fitted(const struct trace_op *op)
{
    return trace_op_has_range(op->kind) && op->offset != TRACE_UNKNOWN_U64 &&
           op->file != TRACE_NONE_U32;
}

static bool is_clipped(const struct trace_op *op)
{
    return op->kind == TRACE_DISCARD || op->kind == TRACE_WRITE_ZEROES;
}

int fit_observe(struct fit *fit, const struct trace_op *op)
{
    int err;

    if (fit->conf->mode == FIT_NONE || !is_fitted(op))
        return 0;
    err = observe_end(fit, op);
    if (fit->conf->mode != FIT_PACK || is_clipped(op))
        return err;
    for (uint64_t at = op->offset; err == 0;) {
        err = grain_add(fit, op->file, at >> fit->grain_bits);
        /* Adding may have made the grain coarser. */
        at = ((at >> fit->grain_bits) + 1) << fit->grain_bits;
        if (at >= op->offset + op->length)
            break;
    }
    return err;
}

static int grain_compare(const void *a, const void *b)
{
    const struct fit_grain *left = a, *right = b;

    if (left->file != right->file)
        return left->file < right->file ? -1 : 1;
    return left->number < right->number ? -1 : left->number > right->number;
}

static int pack_finish(struct fit *fit, struct catalog *tables, struct diag *diag)
{
    uint32_t kept = 0, rank = 0;

    for (uint32_t i = 0; i <= fit->mask; i++)
        if (fit->grains[i].position)
            fit->grains[kept++] = fit->grains[i];
    qsort(fit->grains, kept, sizeof(*fit->grains), grain_compare);
    for (uint32_t i = 0; i < kept; i++) {
        struct trace_file *file = catalog_file_at(tables, fit->grains[i].file);
        uint64_t end;

        rank = i && fit->grains[i].file == fit->grains[i - 1].file ? rank + 1 : 0;
        fit->grains[i].position = rank;
        end = ((uint64_t)rank + 1) << fit->grain_bits;
        file->size_bytes = end;
        if (end > fit->largest_bytes)
            fit->largest_bytes = end;
    }
    fit->grain_count = kept;
    if (fit->conf->size_bytes && fit->largest_bytes > fit->conf->size_bytes) {
        char need[UNITS_TEXT], have[UNITS_TEXT];

        return diag_set(diag, -ENOSPC,
                        "--fit pack: what is touched takes %s, more than --fit-size %s: give "
                        "more, a smaller --fit-grain, or --fit wrap",
                        units_size(fit->largest_bytes, need),
                        units_size(fit->conf->size_bytes, have));
    }
    return 0;
}

int fit_finish(struct fit *fit, struct catalog *tables, struct diag *diag)
{
    if (fit->conf->mode == FIT_NONE)
        return 0;
    if (fit->conf->mode == FIT_PACK)
        return pack_finish(fit, tables, diag);
    for (uint32_t i = 0; i < tables->file_count && i < fit->max_ends_known; i++) {
        struct trace_file *file = catalog_file_at(tables, i);

        if (fit->max_ends[i] > fit->conf->size_bytes ||
            (file->size_bytes != TRACE_UNKNOWN_U64 && file->size_bytes > fit->conf->size_bytes))
            file->size_bytes = fit->conf->size_bytes;
    }
    return 0;
}

/* ---- moving --------------------------------------------------------------------------- */

/* The index of the first grain at or after (file, number). */
static uint32_t grain_find(const struct fit *fit, uint32_t file, uint64_t number)
{
    struct fit_grain wanted = {number, file, 0};
    uint32_t low = 0, high = fit->grain_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (grain_compare(&fit->grains[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int pack_apply(struct fit *fit, struct trace_op *op)
{
    uint64_t grain_bytes = UINT64_C(1) << fit->grain_bits;
    uint64_t end = op->offset + op->length, last = end ? (end - 1) >> fit->grain_bits : 0;
    uint32_t at = grain_find(fit, op->file, op->offset >> fit->grain_bits), after;
    uint64_t inside = op->offset & (grain_bytes - 1);

    if (!is_clipped(op)) {
        op->offset = ((uint64_t)fit->grains[at].position << fit->grain_bits) + inside;
        return 1;
    }
    if (at == fit->grain_count || fit->grains[at].file != op->file ||
        fit->grains[at].number > last) {
        fit->dropped++;
        return 0;
    }
    if (fit->grains[at].number != op->offset >> fit->grain_bits)
        inside = 0;
    after = grain_find(fit, op->file, last + 1) - 1;
    op->offset = ((uint64_t)fit->grains[at].position << fit->grain_bits) + inside;
    end = fit->grains[after].number == last ? ((end - 1) & (grain_bytes - 1)) + 1 : grain_bytes;
    end += (uint64_t)fit->grains[after].position << fit->grain_bits;
    if (end - op->offset != op->length)
        fit->shortened++;
    op->length = end - op->offset;
    return 1;
}

static void wrap_apply(struct fit *fit, struct trace_op *op)
{
    uint64_t size = fit->conf->size_bytes;

    if (op->length > size) {
        op->length = size;
        fit->shortened++;
    }
    op->offset %= size;
    if (op->offset + op->length > size)
        op->offset = size - op->length;
}

static void scale_apply(struct fit *fit, struct trace_op *op)
{
    uint64_t size = fit->conf->size_bytes, max_end = fit->max_ends[op->file];
    uint64_t align = (op->offset | SCALE_ALIGN) & -(op->offset | SCALE_ALIGN);

    if (max_end <= size)
        return;
    op->offset = (uint64_t)((unsigned __int128)op->offset * size / max_end) & ~(align - 1);
    wrap_apply(fit, op);
}

int fit_apply(struct fit *fit, struct trace_op *op)
{
    uint64_t offset = op->offset, length = op->length;
    int keep = 1;

    if (fit->conf->mode == FIT_NONE || !is_fitted(op))
        return 1;
    switch (fit->conf->mode) {
    case FIT_WRAP: wrap_apply(fit, op); break;
    case FIT_SCALE: scale_apply(fit, op); break;
    case FIT_PACK: keep = pack_apply(fit, op); break;
    }
    if (keep && (op->offset != offset || op->length != length))
        fit->moved++;
    /* What was transferred of a longer op cannot be more than what is asked now. */
    if (op->result != TRACE_UNKNOWN_I64 && op->result > 0 && (uint64_t)op->result > op->length)
        op->result = (int64_t)op->length;
    return keep;
}
