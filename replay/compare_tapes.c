/* SPDX-License-Identifier: MIT */
#include "replay/compare_tapes.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "replay/classify.h"
#include "traces/diag.h"

const char *const tapes_how_names[] = {"auto", "ref", "content", NULL};
const char *const tapes_files_names[] = {"auto", "path", "base", "number", NULL};

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;

    while (count-- > 0)
        hash = (hash ^ *at++) * 0x100000001b3u;
    return hash;
}

#define HASH_START 0xcbf29ce484222325u

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

static uint64_t hash_path(const char *path, enum tapes_files files)
{
    if (files == TAPES_FILES_BASE)
        path = base_name(path);
    return hash_bytes(HASH_START, path, strlen(path));
}

bool tapes_cannot_tell(const struct tapes *tapes, unsigned int which, const char *word)
{
    const char *list = trace_reader_meta(tapes->feed[which].reader, TRACE_META_CANNOT_TELL);
    size_t length = strlen(word), at;

    while (list && *list) {
        at = strcspn(list, ",");
        if (at == length && memcmp(list, word, length) == 0)
            return true;
        list += at + (list[at] == ',');
    }
    return false;
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t left, right;

    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return (left > right) - (left < right);
}

/* Does one file at least have the same name in both tables? -ENOMEM, else 0 or 1. */
static int files_meet(const struct tapes *tapes, enum tapes_files files)
{
    const struct trace_reader *a = tapes->feed[0].reader, *b = tapes->feed[1].reader;
    uint32_t count = trace_reader_file_count(a), i;
    uint64_t *hashes = malloc((count ? count : 1) * sizeof *hashes), hash;
    int met = 0;

    if (!hashes)
        return -ENOMEM;
    for (i = 0; i < count; i++)
        hashes[i] = hash_path(trace_reader_file(a, i)->path, files);
    qsort(hashes, count, sizeof *hashes, compare_hashes);
    for (i = 0; i < trace_reader_file_count(b) && !met; i++) {
        hash = hash_path(trace_reader_file(b, i)->path, files);
        met = bsearch(&hash, hashes, count, sizeof *hashes, compare_hashes) != NULL;
    }
    free(hashes);
    return met;
}

static int choose_files(struct tapes *tapes, enum tapes_files asked)
{
    int met;

    tapes->files = asked;
    if (asked != TAPES_FILES_AUTO)
        return 0;
    tapes->files = TAPES_FILES_PATH;
    if (!tapes->feed[0].tables_known || !tapes->feed[1].tables_known)
        return 0;
    met = files_meet(tapes, TAPES_FILES_PATH);
    if (met != 0)
        return met < 0 ? met : 0;
    tapes->files = TAPES_FILES_BASE;
    met = files_meet(tapes, TAPES_FILES_BASE);
    if (met == 0)
        tapes->files = TAPES_FILES_NUMBER;
    return met < 0 ? met : 0;
}

/* What a result tape's recorded configuration says of its pace; 1 and false where it is silent.
 */
static void read_pace(const struct trace_reader *reader, double *ret_speed, bool *ret_asap)
{
    const char *text = trace_reader_meta(reader, TRACE_META_CONFIG), *pace;
    json_t *root, *speed;
    double value;

    *ret_speed = 1;
    *ret_asap = false;
    root = text ? json_loads(text, 0, NULL) : NULL;
    if (!root)
        return;
    speed = json_object_get(root, "speed");
    value = json_is_string(speed) ? strtod(json_string_value(speed), NULL)
                                  : json_number_value(speed);
    if (value > 0)
        *ret_speed = value;
    pace = json_string_value(json_object_get(root, "pace"));
    *ret_asap = pace && strcmp(pace, "asap") == 0;
    json_decref(root);
}

static int choose_how(struct tapes *tapes, const struct tapes_conf *conf, struct diag *diag)
{
    const struct trace_reader *a = tapes->feed[0].reader, *b = tapes->feed[1].reader;
    bool result_a = trace_reader_is_result(a), result_b = trace_reader_is_result(b);
    const char *of_a = trace_reader_meta(a, TRACE_META_RESULT_OF);
    const char *of_b = trace_reader_meta(b, TRACE_META_RESULT_OF);
    double speed_a, speed_b;
    bool asap_a, asap_b, same;

    same = of_a && of_b && strcmp(base_name(of_a), base_name(of_b)) == 0;
    tapes->how = conf->how;
    if (conf->how == TAPES_REF && !result_a && !result_b)
        return diag_set(diag, -EINVAL, "--match ref: neither tape is the result of a replay");
    if (conf->how == TAPES_AUTO)
        tapes->how = result_a != result_b || (result_a && same) ? TAPES_REF : TAPES_CONTENT;
    if (result_b && !result_a)
        tapes->other_tape =
            of_b && strcmp(base_name(of_b), base_name(trace_reader_name(a))) != 0;
    read_pace(a, &speed_a, &asap_a);
    read_pace(b, &speed_b, &asap_b);
    tapes->speed = speed_b / speed_a;
    tapes->asap = asap_a || asap_b;
    return 0;
}

static uint64_t content_key(const struct tapes *tapes, unsigned int which,
                            const struct trace_op *op)
{
    const struct trace_file *file = trace_reader_file(tapes->feed[which].reader, op->file);
    uint64_t parts[4] = {classify_kind(op->kind), op->length, tapes->no_offsets ? 0 : op->offset, op->file};

    if (tapes->files != TAPES_FILES_NUMBER && file)
        parts[3] = hash_path(file->path, tapes->files);
    return hash_bytes(HASH_START, parts, sizeof parts);
}

/* False: the op carries no key and cannot be matched. */
static bool op_key(struct tapes *tapes, unsigned int which, const struct trace_op *op,
                   uint64_t index, uint64_t *ret_key)
{
    if (tapes->how == TAPES_CONTENT) {
        *ret_key = content_key(tapes, which, op);
        return true;
    }
    if (!trace_reader_is_result(tapes->feed[which].reader)) {
        *ret_key = index;
        return true;
    }
    *ret_key = op->ref;
    return op->ref != TRACE_UNKNOWN_U64;
}

static void add_unmatched(struct tapes *tapes, unsigned int which, const struct trace_op *op)
{
    tapes->unmatched[which].ops++;
    tapes->unmatched[which].by_kind[op->kind]++;
}

/* How far the two feeds have come, and which goes next. */
struct walk {
    struct match *match;
    uint64_t position[2];       /* highest key met (ref), or ops read (content) */
    uint64_t total[2];          /* ops of the tape, TRACE_UNKNOWN_U64 = not known */
    uint64_t given_up_below[2]; /* keys under it have been given up (ref) */
    bool ended[2];
};

static int walk_one(struct tapes *tapes, struct walk *walk, unsigned int which)
{
    const struct match_entry *partner, *gone;
    const struct trace_op *op;
    struct match_entry entry;
    int got;

    entry.index = tapes->feed[which].index;
    got = tape_feed_next(&tapes->feed[which], &op);
    if (got <= 0) {
        walk->ended[which] = true;
        return got;
    }
    got = side_add(tapes->side[which], op);
    if (got < 0)
        return got;
    if (!op_key(tapes, which, op, entry.index, &entry.key)) {
        tapes->bad_ref++;
        add_unmatched(tapes, which, op);
        return 0;
    }
    if (tapes->how == TAPES_CONTENT)
        walk->position[which]++;
    else if (entry.key >= walk->position[which])
        walk->position[which] = entry.key + 1;
    entry.op = *op;
    entry.side = (uint8_t)which;
    got = match_offer(walk->match, &entry, &partner, &gone);
    if (got == 1)
        return which == 0 ? pairs_add(tapes->pairs, op, &partner->op)
                          : pairs_add(tapes->pairs, &partner->op, op);
    if (tapes->how == TAPES_REF && entry.key < walk->given_up_below[!which])
        tapes->unmatched[which].too_late++;
    if (gone) {
        add_unmatched(tapes, gone->side, &gone->op);
        tapes->unmatched[gone->side].given_up++;
        if (gone->key >= walk->given_up_below[gone->side])
            walk->given_up_below[gone->side] = gone->key + 1;
    }
    return 0;
}

/*
 * The tape that lags goes next: by key where both count the same ops, else by share read. A is
 * kept ahead, so that B's ops find their partners waiting and pairs are met in B's order.
 */
static unsigned int walk_next(const struct tapes *tapes, const struct walk *walk)
{
    double share = 1;

    if (walk->ended[0] || walk->ended[1])
        return walk->ended[0];
    if (tapes->how == TAPES_REF)
        return walk->position[0] > walk->position[1];
    if (walk->total[0] != TRACE_UNKNOWN_U64 && walk->total[1] != TRACE_UNKNOWN_U64 &&
        walk->total[1] > 0)
        share = (double)walk->total[0] / (double)walk->total[1];
    return (double)walk->position[0] > (double)walk->position[1] * share + tapes->window / 4;
}

static int walk_both(struct tapes *tapes)
{
    const struct match_entry *entry;
    struct walk walk = {0};
    unsigned int i;
    int err;

    err = match_new(&walk.match, tapes->window);
    if (err < 0)
        return err;
    for (i = 0; i < 2; i++)
        walk.total[i] = trace_reader_op_count(tapes->feed[i].reader);
    while (err == 0 && !(walk.ended[0] && walk.ended[1]))
        err = walk_one(tapes, &walk, walk_next(tapes, &walk));
    while (err == 0 && (entry = match_drain(walk.match)))
        add_unmatched(tapes, entry->side, &entry->op);
    tapes->window_used = match_most_waiting(walk.match);
    match_free(walk.match);
    return err;
}

static int tapes_open(struct tapes *tapes, const char *const path[2], struct diag *diag)
{
    unsigned int i;
    int err;

    for (i = 0; i < 2; i++) {
        err = tape_feed_open(&tapes->feed[i], path[i], diag);
        if (err < 0)
            return err;
        err = side_new(&tapes->side[i]);
        if (err == 0 && tapes->feed[i].tables_known)
            err = side_lay_files(tapes->side[i], tapes->feed[i].reader);
        if (err < 0)
            return err;
    }
    return 0;
}

int tapes_compare(struct tapes *tapes, const char *path_a, const char *path_b,
                  const struct tapes_conf *conf, struct diag *diag)
{
    const char *const path[2] = {path_a, path_b};
    unsigned int i;
    int err;

    memset(tapes, 0, sizeof *tapes);
    tapes->window = conf->window ? conf->window : TAPES_WINDOW;
    if (strcmp(path_a, "-") == 0 && strcmp(path_b, "-") == 0)
        return diag_set(diag, -EINVAL, "only one of the two tapes can be standard input");
    err = tapes_open(tapes, path, diag);
    if (err < 0)
        goto out;
    err = choose_how(tapes, conf, diag);
    if (err == 0)
        err = choose_files(tapes, conf->files);
    if (err < 0)
        goto out;
    for (i = 0; i < 2; i++) {
        tapes->no_times[i] = tapes_cannot_tell(tapes, i, "time");
        tapes->no_offsets |= tapes_cannot_tell(tapes, i, "offset");
    }
    err = pairs_new(&tapes->pairs, tapes->speed);
    if (err == 0)
        err = walk_both(tapes);
    if (err < 0)
        goto out;
    for (i = 0; i < 2; i++) {
        side_finish(tapes->side[i]);
        tapes->no_latency[i] = tapes->side[i]->exact == 0;
    }
    return 0;
out:
    if (err == -ENOMEM)
        diag_set(diag, err, "not enough memory to compare two tapes");
    tapes_release(tapes);
    return err;
}

void tapes_release(struct tapes *tapes)
{
    unsigned int i;

    pairs_free(tapes->pairs);
    for (i = 0; i < 2; i++) {
        side_free(tapes->side[i]);
        tape_feed_close(&tapes->feed[i]);
    }
    memset(tapes, 0, sizeof *tapes);
}
