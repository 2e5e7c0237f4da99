/* SPDX-License-Identifier: MIT */
#include "replay/compare_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "replay/compare_output.h"
#include "traces/diag.h"

#define JOURNAL_NAME "journal.jsonl"
#define PLAN_NAME    "plan.json"

static int join(const struct journal *journal, const char *name, char **ret_path,
                struct diag *diag)
{
    if (asprintf(ret_path, "%s/%s", journal->folder, name) >= 0)
        return 0;
    *ret_path = NULL;
    return diag_set(diag, -ENOMEM, "not enough memory");
}

/* ---- records as lines --------------------------------------------------------------- */

static void set_number(json_t *object, const char *key, double value)
{
    if (!isnan(value))
        json_object_set_new(object, key, json_real(value));
}

static json_t *record_pack(const struct record *record)
{
    json_t *object = json_object(), *figures = json_object(), *curve;
    int i;

    json_object_set_new(object, "block", json_integer(record->block));
    json_object_set_new(object, "cell", json_integer(record->cell));
    json_object_set_new(object, "position", json_integer(record->position));
    if (record->failed)
        json_object_set_new(object, "failed", json_string(record->failed));
    if (record->voids > 0)
        json_object_set_new(object, "voids", json_integer(record->voids));
    for (i = 0; i < METRIC_COUNT; i++)
        set_number(figures, metrics[i].name, record->value[i]);
    json_object_set_new(object, "figures", figures);
    if (record->has_curve) {
        curve = json_array();
        for (i = 0; i < CURVE_POINTS; i++)
            json_array_append_new(curve, json_real(record->curve[i]));
        json_object_set_new(object, "curve", curve);
    }
    set_number(object, "steady", record->steady);
    set_number(object, "wall_ns", record->wall_ns);
    if (record->restored[0])
        json_object_set_new(object, "restored", json_string(record->restored));
    return object;
}

static double get_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* -EBADMSG: not a record. */
static int record_unpack(const json_t *object, struct record *ret_record)
{
    const json_t *figures = json_object_get(object, "figures");
    const json_t *curve = json_object_get(object, "curve");
    const char *failed = json_string_value(json_object_get(object, "failed"));
    const char *restored = json_string_value(json_object_get(object, "restored"));
    struct record record = {0};
    double block = get_number(object, "block"), cell = get_number(object, "cell");
    double position = get_number(object, "position");
    size_t i;

    if (!(block >= 0 && block < 1e9 && cell >= 0 && cell < 1e9 && position >= 0 &&
          position < 1e9) ||
        !json_is_object(figures))
        return -EBADMSG;
    record.block = (unsigned int)block;
    record.cell = (unsigned int)cell;
    record.position = (unsigned int)position;
    for (i = 0; i < METRIC_COUNT; i++)
        record.value[i] = get_number(figures, metrics[i].name);
    record.voids = (unsigned int)json_integer_value(json_object_get(object, "voids"));
    record.has_curve = json_array_size(curve) == CURVE_POINTS;
    for (i = 0; record.has_curve && i < CURVE_POINTS; i++)
        record.curve[i] = json_number_value(json_array_get(curve, i));
    record.steady = get_number(object, "steady");
    record.wall_ns = get_number(object, "wall_ns");
    if (restored)
        snprintf(record.restored, sizeof record.restored, "%s", restored);
    if (failed) {
        record.failed = strdup(failed);
        if (!record.failed)
            return -ENOMEM;
    }
    *ret_record = record;
    return 0;
}

static int record_order(const struct record *a, const struct record *b)
{
    if (a->block != b->block)
        return a->block < b->block ? -1 : 1;
    return (a->cell > b->cell) - (a->cell < b->cell);
}

static int journal_keep(struct journal *journal, const struct record *record)
{
    struct record *grown;
    unsigned int at;

    if (journal->count == journal->room) {
        grown = realloc(journal->records, (journal->room * 2 + 64) * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        journal->records = grown;
        journal->room = journal->room * 2 + 64;
    }
    /* By block and cell: trials of a block come in any order, so the way back is short. */
    for (at = journal->count++; at > 0 && record_order(record, &journal->records[at - 1]) < 0;
         at--)
        journal->records[at] = journal->records[at - 1];
    journal->records[at] = *record;
    return 0;
}

/* Reads the whole lines; what follows the last of them is cut off. */
static int journal_load(struct journal *journal, const char *path, struct diag *diag)
{
    FILE *file = fdopen(dup(journal->fd), "r");
    struct record record;
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    off_t whole = 0;
    unsigned int number = 0;
    json_t *object;
    int err = 0;

    if (!file)
        return diag_errno(diag, -errno, "%s", path);
    while (err == 0 && (length = getline(&line, &room, file)) > 0 && line[length - 1] == '\n') {
        number++;
        object = json_loadb(line, (size_t)length, 0, NULL);
        err = object ? record_unpack(object, &record) : -EBADMSG;
        json_decref(object);
        if (err == 0)
            err = journal_keep(journal, &record);
        whole += length;
    }
    free(line);
    fclose(file);
    if (err < 0)
        return diag_set(diag, err, "%s: line %u is not a trial", path, number);
    if (ftruncate(journal->fd, whole) < 0 || lseek(journal->fd, whole, SEEK_SET) < 0)
        return diag_errno(diag, -errno, "%s", path);
    journal->resumed = number > 0;
    return 0;
}

/* ---- the plan ----------------------------------------------------------------------- */

static const char *const kept_keys[] = {"environment", "started", NULL};

/* The first key in which two plans differ, or NULL. */
static const char *plan_difference(const json_t *planned, const json_t *present)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)present, key, value)
    {
        if (strcmp(key, kept_keys[0]) == 0 || strcmp(key, kept_keys[1]) == 0 ||
            strcmp(key, "trials") == 0)
            continue;
        if (!json_equal(json_object_get(planned, key), value))
            return key;
    }
    return NULL;
}

static int plan_resume(const char *path, json_t *plan, struct diag *diag)
{
    json_error_t error;
    json_t *planned = json_load_file(path, 0, &error);
    const char *key;
    int err = 0, i;

    if (!planned)
        return diag_set(diag, -EBADMSG, "%s: %s", path, error.text);
    key = plan_difference(planned, plan);
    if (key)
        err = diag_set(
            diag, -EINVAL,
            "%s: the experiment begun there differs in '%s'; give the same options, or "
            "another --dir",
            path, key);
    for (i = 0; err == 0 && kept_keys[i]; i++)
        json_object_set(plan, kept_keys[i], json_object_get(planned, kept_keys[i]));
    json_decref(planned);
    return err;
}

static int plan_settle(struct journal *journal, bool resume, json_t *plan, struct diag *diag)
{
    char *path;
    int err = join(journal, PLAN_NAME, &path, diag);

    if (err < 0)
        return err;
    if (resume && access(path, F_OK) == 0)
        err = plan_resume(path, plan, diag);
    if (err == 0)
        err = output_json(path, plan, diag);
    free(path);
    return err;
}

/* ---- the folder --------------------------------------------------------------------- */

static int journal_claim(struct journal *journal, const char *path, bool resume,
                         struct diag *diag)
{
    const struct timespec nap = {0, 20000000};
    struct stat stat;
    unsigned int tries;

    journal->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (journal->fd < 0)
        return diag_errno(diag, -errno, "%s", path);
    /* A run that was killed may have a child that is about to let go of the lock. */
    for (tries = 0; flock(journal->fd, LOCK_EX | LOCK_NB) < 0 && tries < 50; tries++)
        nanosleep(&nap, NULL);
    if (tries == 50)
        return diag_set(diag, -EBUSY, "%s: another iotape compare is at work there", path);
    if (fstat(journal->fd, &stat) < 0)
        return diag_errno(diag, -errno, "%s", path);
    if (stat.st_size > 0 && !resume)
        return diag_set(diag, -EEXIST, "%s: holds trials already; --resume goes on with them",
                        path);
    return 0;
}

int journal_open(struct journal *journal, const char *folder, bool resume, json_t *plan,
                 struct diag *diag)
{
    char *path = NULL;
    int err;

    memset(journal, 0, sizeof *journal);
    journal->fd = -1;
    journal->folder = strdup(folder);
    if (!journal->folder)
        return diag_set(diag, -ENOMEM, "not enough memory");
    if (mkdir(folder, 0700) < 0 && errno != EEXIST) {
        err = diag_errno(diag, -errno, "%s", folder);
        goto out;
    }
    err = join(journal, JOURNAL_NAME, &path, diag);
    if (err == 0)
        err = journal_claim(journal, path, resume, diag);
    if (err == 0)
        err = plan_settle(journal, resume, plan, diag);
    if (err == 0)
        err = journal_load(journal, path, diag);
out:
    free(path);
    if (err < 0)
        journal_close(journal);
    return err;
}

int journal_add(struct journal *journal, const struct record *record, struct diag *diag)
{
    json_t *object = record_pack(record);
    char *line = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    size_t length;
    ssize_t done;
    int err = 0;

    json_decref(object);
    if (!line)
        return diag_set(diag, -ENOMEM, "not enough memory");
    length = strlen(line);
    line[length++] = '\n';
    done = write(journal->fd, line, length);
    free(line);
    if (done != (ssize_t)length)
        err =
            diag_errno(diag, done < 0 ? -errno : -ENOSPC, "%s/" JOURNAL_NAME, journal->folder);
    else if (fdatasync(journal->fd) < 0)
        err = diag_errno(diag, -errno, "%s/" JOURNAL_NAME, journal->folder);
    if (err == 0 && journal_keep(journal, record) < 0)
        err = diag_set(diag, -ENOMEM, "not enough memory");
    return err;
}

const struct record *journal_find(const struct journal *journal, unsigned int block,
                                  unsigned int cell)
{
    const struct record sought = {.block = block, .cell = cell};
    unsigned int low = 0, high = journal->count, middle;
    int order;

    while (low < high) {
        middle = low + (high - low) / 2;
        order = record_order(&sought, &journal->records[middle]);
        if (order == 0)
            return &journal->records[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

void journal_close(struct journal *journal)
{
    unsigned int i;

    for (i = 0; i < journal->count; i++)
        free(journal->records[i].failed);
    free(journal->records);
    free(journal->folder);
    if (journal->fd >= 0)
        close(journal->fd);
    memset(journal, 0, sizeof *journal);
    journal->fd = -1;
}

char *journal_new_folder(const char *tape)
{
    const char *slash = strrchr(tape, '/'), *name = slash ? slash + 1 : tape;
    char *folder;
    unsigned int i;

    for (i = 1;; i++) {
        if (asprintf(&folder, "%s.compare-%u", name, i) < 0)
            return NULL;
        if (access(folder, F_OK) < 0)
            return folder;
        free(folder);
    }
}
