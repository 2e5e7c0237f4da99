/* SPDX-License-Identifier: MIT */
/*
 * witness_check WITNESS RESULT.tape [--p99 TIME] [--late TIME] [--json FILE]
 *
 * Lays a replay's result tape beside what `witness` saw of the same run, on the wall clock.
 * Each read and write of the tape is paired with the witness's next one of the same kind,
 * offset and length. Prints how many pairs there were, the tape's issue time less the
 * witness's, and both sides' lag behind the due time. Exits 1 when an op of the tape has no
 * pair, or with --p99 when the 99th percentile of the difference (its absolute value) is above
 * TIME. --late counts, on each side, ops later than TIME.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "traces/diag.h"
#include "traces/opts.h"
#include "traces/trace.h"

struct seen {
    int64_t time_ns; /* wall clock */
    int64_t due_ns;  /* of the tape: wall clock, or unknown */
    uint64_t offset, length;
    int write;
};

struct list {
    struct seen *items;
    size_t count, room;
};

struct conf {
    uint64_t p99_ns, late_ns;
    const char *json;
};

static const struct opt options[] = {
    {"p99", 0, OPT_TIME, offsetof(struct conf, p99_ns), .arg = "TIME",
     .help = "highest 99th percentile of the difference"},
    {"late", 0, OPT_TIME, offsetof(struct conf, late_ns), .def = "10ms", .arg = "TIME",
     .help = "an op this much behind its due time counts as late"},
    {"json", 0, OPT_STRING, offsetof(struct conf, json), .arg = "FILE",
     .help = "write the figures there"},
    {0}};

static int list_add(struct list *list, const struct seen *item)
{
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 4096;
        struct seen *grown = realloc(list->items, room * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        list->items = grown;
        list->room = room;
    }
    list->items[list->count++] = *item;
    return 0;
}

/* By what was asked, then by time. */
static int seen_order(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;

    if (x->write != y->write)
        return x->write - y->write;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

static int witness_read(const char *path, struct list *list)
{
    FILE *file = fopen(path, "re");
    char line[256], op[16];
    long long mono, real;
    uint64_t issue, taken;
    struct seen item = {0};
    int64_t offset;
    int fd, rc = -EINVAL;

    if (!file)
        return -errno;
    if (!fgets(line, sizeof(line), file) ||
        sscanf(line, "# monotonic %lld realtime %lld", &mono, &real) != 2)
        goto out;
    rc = 0;
    while (!rc && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "%" SCNu64 ",%" SCNu64 ",%15[a-z],%d,%" SCNd64 ",%" SCNu64, &issue,
                   &taken, op, &fd, &offset, &item.length) != 6)
            continue; /* a vectored one */
        item.time_ns = (int64_t)issue - mono + real;
        item.offset = (uint64_t)offset;
        item.write = strcmp(op, "write") == 0;
        rc = list_add(list, &item);
    }
out:
    fclose(file);
    return rc;
}

static int tape_read(const char *path, struct list *list, struct diag *diag)
{
    struct trace_reader *reader;
    const struct trace_op *ops;
    const char *start;
    long long start_ns;
    size_t count;
    int rc = trace_reader_open_path(&reader, path, diag);

    if (rc)
        return rc;
    rc = trace_reader_load_tables(reader); /* the last value of a key is at the end */
    start = trace_reader_meta(reader, TRACE_META_START_WALL);
    if (!start || !trace_reader_is_result(reader)) {
        rc = diag_set(diag, -EINVAL, "%s: not a result tape with a wall clock", path);
        goto out;
    }
    start_ns = atoll(start);
    while (!(rc < 0) && (rc = trace_reader_next(reader, &ops, &count)) > 0)
        for (size_t i = 0; i < count && rc >= 0; i++) {
            struct seen item = {.time_ns = start_ns + ops[i].issue_ns,
                                .due_ns = ops[i].due_ns == TRACE_UNKNOWN_I64
                                              ? TRACE_UNKNOWN_I64
                                              : start_ns + ops[i].due_ns,
                                .offset = ops[i].offset,
                                .length = ops[i].length,
                                .write = ops[i].kind == TRACE_WRITE};

            if (ops[i].kind == TRACE_READ || ops[i].kind == TRACE_WRITE)
                rc = list_add(list, &item);
        }
out:
    trace_reader_free(reader);
    return rc;
}

struct figures {
    int64_t *error_ns, *tape_lag_ns, *witness_lag_ns;
    size_t pairs, alone, paced;
    size_t tape_late, witness_late;
};

static void pair(struct figures *figures, const struct seen *tape, const struct seen *witness,
                 const struct conf *conf)
{
    figures->error_ns[figures->pairs++] = tape->time_ns - witness->time_ns;
    if (tape->due_ns == TRACE_UNKNOWN_I64)
        return;
    figures->tape_lag_ns[figures->paced] = tape->time_ns - tape->due_ns;
    figures->witness_lag_ns[figures->paced] = witness->time_ns - tape->due_ns;
    figures->tape_late += figures->tape_lag_ns[figures->paced] > (int64_t)conf->late_ns;
    figures->witness_late += figures->witness_lag_ns[figures->paced] > (int64_t)conf->late_ns;
    figures->paced++;
}

/* Both lists in order: equal keys pair up in their order in time. */
static void pair_all(struct figures *figures, struct list *tape, struct list *witness,
                     const struct conf *conf)
{
    size_t at = 0;

    for (size_t i = 0; i < tape->count; i++) {
        struct seen key = tape->items[i];

        key.time_ns = INT64_MIN;
        while (at < witness->count && seen_order(&witness->items[at], &key) < 0)
            at++;
        key.time_ns = INT64_MAX;
        if (at < witness->count && seen_order(&witness->items[at], &key) <= 0)
            pair(figures, &tape->items[i], &witness->items[at++], conf);
        else
            figures->alone++;
    }
}

static int number_order(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static int64_t at_share(const int64_t *sorted, size_t count, double share)
{
    return count ? sorted[(size_t)(share * (double)(count - 1) + 0.5)] : 0;
}

static json_t *summary(int64_t *values, size_t count)
{
    qsort(values, count, sizeof(*values), number_order);
    return json_pack("{s:I,s:I,s:I,s:I,s:I}", "min", (json_int_t)at_share(values, count, 0),
                     "p50", (json_int_t)at_share(values, count, 0.5), "p99",
                     (json_int_t)at_share(values, count, 0.99), "p99_9",
                     (json_int_t)at_share(values, count, 0.999), "max",
                     (json_int_t)at_share(values, count, 1));
}

static int64_t absolute_p99(const struct figures *figures)
{
    int64_t *values = calloc(figures->pairs + 1, sizeof(*values)), p99;

    if (!values)
        return INT64_MAX;
    for (size_t i = 0; i < figures->pairs; i++)
        values[i] = llabs(figures->error_ns[i]);
    qsort(values, figures->pairs, sizeof(*values), number_order);
    p99 = at_share(values, figures->pairs, 0.99);
    free(values);
    return p99;
}

static int report(struct figures *figures, const struct conf *conf)
{
    int64_t p99 = absolute_p99(figures);
    bool within = !conf->p99_ns || p99 <= (int64_t)conf->p99_ns;
    json_t *json =
        json_pack("{s:I,s:I,s:I,s:b,s:I,s:I,s:o,s:o,s:o}", "pairs", (json_int_t)figures->pairs,
                  "alone", (json_int_t)figures->alone, "error_abs_p99_ns", (json_int_t)p99,
                  "within", within, "tape_late", (json_int_t)figures->tape_late, "witness_late",
                  (json_int_t)figures->witness_late, "error_ns",
                  summary(figures->error_ns, figures->pairs), "tape_lag_ns",
                  summary(figures->tape_lag_ns, figures->paced), "witness_lag_ns",
                  summary(figures->witness_lag_ns, figures->paced));
    char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : NULL;
    int rc = text ? 0 : -ENOMEM;

    if (text && conf->json)
        rc = json_dump_file(json, conf->json, JSON_INDENT(2) | JSON_PRESERVE_ORDER) ? -EIO : 0;
    else if (text)
        puts(text);
    free(text);
    json_decref(json);
    if (rc)
        return rc;
    return figures->alone || !figures->pairs || !within;
}

int main(int argc, char **argv)
{
    struct diag diag = DIAG_INIT;
    struct list tape = {0}, witness = {0};
    struct figures figures = {0};
    struct conf conf = {0};
    int operands, rc;

    rc = opts_defaults(options, &conf, &diag);
    if (!rc)
        rc = opts_parse(options, &conf, argc, argv, false, NULL, &operands, &diag);
    if (rc || operands != 2) {
        fprintf(stderr, "witness_check: %s\n",
                rc ? diag.text : "WITNESS RESULT.tape [options]");
        return 2;
    }
    rc = witness_read(argv[1], &witness);
    if (rc)
        diag_errno(&diag, rc, "%s", argv[1]);
    else
        rc = tape_read(argv[2], &tape, &diag);
    figures.error_ns = calloc(tape.count + 1, sizeof(int64_t));
    figures.tape_lag_ns = calloc(tape.count + 1, sizeof(int64_t));
    figures.witness_lag_ns = calloc(tape.count + 1, sizeof(int64_t));
    if (!rc && (!figures.error_ns || !figures.tape_lag_ns || !figures.witness_lag_ns))
        rc = diag_errno(&diag, -ENOMEM, "witness_check");
    if (!rc) {
        qsort(tape.items, tape.count, sizeof(struct seen), seen_order);
        qsort(witness.items, witness.count, sizeof(struct seen), seen_order);
        pair_all(&figures, &tape, &witness, &conf);
        rc = report(&figures, &conf);
    }
    if (rc < 0)
        fprintf(stderr, "witness_check: %s\n", diag.text);
    free(figures.error_ns);
    free(figures.tape_lag_ns);
    free(figures.witness_lag_ns);
    free(tape.items);
    free(witness.items);
    return rc ? 1 : 0;
}
