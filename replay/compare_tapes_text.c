/* SPDX-License-Identifier: MIT */
#include "replay/compare_tapes_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "replay/compare_grid.h"
#include "traces/units.h"

/* Rows shown of the streams and of the files: the busiest. JSON has them all. */
#define PATH_SHOWN   44
#define SHOWN_GROUPS 8

/* B over A, or nothing where it would mean nothing. */
static void cell_ratio(struct grid *grid, double a, double b)
{
    if (a > 0)
        grid_cell(grid, "%.3f", b / a);
    else
        grid_cell(grid, "%s", b > 0 ? "-" : "");
}

static void row_count(struct grid *grid, const char *name, uint64_t a, uint64_t b)
{
    grid_cell(grid, "%s", name);
    grid_cell(grid, "%" PRIu64, a);
    grid_cell(grid, "%" PRIu64, b);
    cell_ratio(grid, (double)a, (double)b);
}

static void row_size(struct grid *grid, const char *name, uint64_t a, uint64_t b)
{
    char text[UNITS_TEXT];

    grid_cell(grid, "%s", name);
    grid_cell(grid, "%s", units_size(a, text));
    grid_cell(grid, "%s", units_size(b, text));
    cell_ratio(grid, (double)a, (double)b);
}

static void cell_time(struct grid *grid, double ns, bool known)
{
    char text[UNITS_TEXT];

    if (!known)
        grid_cell(grid, "n/a");
    else
        grid_cell(grid, "%s%s", ns < 0 ? "-" : "",
                  units_time((uint64_t)(ns < 0 ? -ns : ns), text));
}

static void row_time(struct grid *grid, const char *name, double a, bool a_known, double b,
                     bool b_known)
{
    grid_cell(grid, "%s", name);
    cell_time(grid, a, a_known);
    cell_time(grid, b, b_known);
    if (a_known && b_known)
        cell_ratio(grid, a, b);
    else
        grid_cell(grid, "%s", "");
}

static void rows_of_hist(struct grid *grid, const char *name, const struct hist *a,
                         const struct hist *b)
{
    static const char *const figures[] = {"mean", "p50", "p90", "p99", "p99_9", "max"};
    double value[2];
    char label[64];
    bool known[2];
    size_t i;

    if (a->count == 0 && b->count == 0)
        return;
    for (i = 0; i < sizeof figures / sizeof *figures; i++) {
        value[0] = value[1] = 0;
        known[0] = figure_of_hist(a, figures[i], &value[0]) == 0;
        known[1] = figure_of_hist(b, figures[i], &value[1]) == 0;
        snprintf(label, sizeof label, "%s %s", name,
                 strcmp(figures[i], "p99_9") == 0 ? "p99.9" : figures[i]);
        row_time(grid, label, value[0], known[0], value[1], known[1]);
    }
}

static void rows_of_lag(struct grid *grid, const struct side *a, const struct side *b)
{
    static const double fractions[] = {0.5, 0.99, 1};
    static const char *const names[] = {"lag p50", "lag p99", "lag max"};
    bool known[2] = {curve_signed_count(&a->lag) > 0, curve_signed_count(&b->lag) > 0};
    size_t i;

    if (!known[0] && !known[1])
        return;
    for (i = 0; i < 3; i++)
        row_time(grid, names[i], (double)curve_signed_quantile(&a->lag, fractions[i]), known[0],
                 (double)curve_signed_quantile(&b->lag, fractions[i]), known[1]);
    row_count(grid, "late ops (over 1 ms)", a->late, b->late);
}

static void rows_of_kinds(struct grid *grid, const struct side *a, const struct side *b)
{
    static const struct side_kind none;
    char label[64];
    unsigned int i;

    for (i = 0; i < TRACE_OP_COUNT; i++) {
        const struct side_kind *ka = a->kind[i] ? a->kind[i] : &none;
        const struct side_kind *kb = b->kind[i] ? b->kind[i] : &none;

        if (ka->ops == 0 && kb->ops == 0)
            continue;
        snprintf(label, sizeof label, "  %s", trace_op_name(i));
        row_count(grid, label, ka->ops, kb->ops);
    }
}

static void rows_of_depth(struct grid *grid, const struct side *a, const struct side *b)
{
    const struct side *const side[2] = {a, b};
    unsigned int i;

    if (a->depth_time.count == 0 && b->depth_time.count == 0)
        return;
    grid_cell(grid, "depth mean");
    for (i = 0; i < 2; i++)
        if (side[i]->depth_time.count > 0)
            grid_cell(grid, "%.2f", hist_mean(&side[i]->depth_time));
        else
            grid_cell(grid, "n/a");
    cell_ratio(grid, hist_mean(&a->depth_time), hist_mean(&b->depth_time));
    grid_end_row(grid);
    grid_cell(grid, "depth max");
    for (i = 0; i < 2; i++)
        if (side[i]->depth_time.count > 0)
            grid_cell(grid, "%" PRIu64, side[i]->depth_time.max);
        else
            grid_cell(grid, "n/a");
    grid_end_row(grid);
}

/* A tape without times has no duration and no rates. */
static void rows_of_rates(struct grid *grid, const struct tapes *tapes)
{
    const struct side *a = tapes->side[0], *b = tapes->side[1];
    double rate[2] = {side_per_s(a, a->io_ops), side_per_s(b, b->io_ops)};
    char text[UNITS_TEXT];
    unsigned int i;

    row_time(grid, "duration", (double)side_duration_ns(a),
             a->io_ops > 0 && !tapes->no_times[0], (double)side_duration_ns(b),
             b->io_ops > 0 && !tapes->no_times[1]);
    grid_cell(grid, "I/O ops a second");
    for (i = 0; i < 2; i++)
        if (rate[i] > 0)
            grid_cell(grid, "%.0f", rate[i]);
        else
            grid_cell(grid, "n/a");
    cell_ratio(grid, rate[0], rate[1]);
    grid_end_row(grid);
    rate[0] = side_per_s(a, a->bytes);
    rate[1] = side_per_s(b, b->bytes);
    grid_cell(grid, "bytes a second");
    for (i = 0; i < 2; i++)
        if (rate[i] > 0)
            grid_cell(grid, "%s/s", units_size((uint64_t)rate[i], text));
        else
            grid_cell(grid, "n/a");
    cell_ratio(grid, rate[0], rate[1]);
    grid_end_row(grid);
}

struct grid *tapes_sides_grid(const struct tapes *tapes)
{
    const struct side *a = tapes->side[0], *b = tapes->side[1];
    struct grid *grid = grid_new("lrrr");

    if (!grid)
        return NULL;
    grid_cell(grid, "%s", "");
    grid_cell(grid, "A");
    grid_cell(grid, "B");
    grid_cell(grid, "B/A");
    row_count(grid, "ops", a->ops, b->ops);
    rows_of_kinds(grid, a, b);
    row_size(grid, "bytes", a->bytes, b->bytes);
    rows_of_rates(grid, tapes);
    row_count(grid, "errors", a->errors, b->errors);
    row_count(grid, "short transfers", a->shorts, b->shorts);
    row_count(grid, "exact completions", a->exact, b->exact);
    row_count(grid, "upper-bound completions", a->upper, b->upper);
    row_count(grid, "unknown completions", a->unknown, b->unknown);
    rows_of_hist(grid, "latency", &a->latency, &b->latency);
    rows_of_hist(grid, "response", &a->response, &b->response);
    rows_of_lag(grid, a, b);
    rows_of_depth(grid, a, b);
    return grid;
}

static void print_error_line(FILE *out, const char *name, const struct curve_signed *curve)
{
    static const double fractions[] = {0, 0.01, 0.5, 0.99, 1};
    static const char *const names[] = {"least", "p1", "p50", "p99", "most"};
    char text[UNITS_TEXT];
    int64_t value;
    size_t i;

    fprintf(out, "  %-18s", name);
    for (i = 0; i < 5; i++) {
        value = i == 0 ? curve_signed_min(curve) : curve_signed_quantile(curve, fractions[i]);
        if (i == 4)
            value = curve_signed_max(curve);
        fprintf(out, "  %s %s%s", names[i], value < 0 ? "-" : "",
                units_time(value < 0 ? -(uint64_t)value : (uint64_t)value, text));
    }
    fputc('\n', out);
}

static void print_distance(FILE *out, const char *name, const struct hist *a,
                           const struct hist *b, char unit)
{
    struct curve_distance distance;
    char text[UNITS_TEXT];

    if (curve_distance(a, b, &distance) < 0) {
        fprintf(out, "  %-18s  n/a\n", name);
        return;
    }
    fprintf(out, "  %-18s  KS %.4f, earth mover ", name, distance.ks);
    if (unit == 't')
        fprintf(out, "%s\n", units_time((uint64_t)distance.mover, text));
    else if (unit == 's')
        fprintf(out, "%s\n", units_size((uint64_t)distance.mover, text));
    else
        fprintf(out, "%.3f\n", distance.mover);
}

static void print_unmatched(FILE *out, const char *what,
                            const struct tapes_unmatched *unmatched)
{
    const char *separator = "  (";
    unsigned int i;

    fprintf(out, "  %-18s  %" PRIu64, what, unmatched->ops);
    for (i = 0; i < TRACE_OP_COUNT; i++)
        if (unmatched->by_kind[i] > 0) {
            fprintf(out, "%s%s %" PRIu64, separator, trace_op_name(i), unmatched->by_kind[i]);
            separator = ", ";
        }
    fputs(unmatched->ops > 0 ? ")\n" : "\n", out);
}

void tapes_print_fidelity(const struct tapes *tapes, FILE *out)
{
    const struct side *a = tapes->side[0], *b = tapes->side[1];
    const struct pairs *pairs = tapes->pairs;
    char text[UNITS_TEXT];

    fprintf(out, "Fidelity of B to A (matched by %s", tapes_how_names[tapes->how]);
    if (tapes->how == TAPES_CONTENT)
        fprintf(out, ", files by %s%s", tapes_files_names[tapes->files],
                tapes->no_offsets ? ", without offsets" : "");
    fprintf(out, ")\n  %-18s  %" PRIu64 "\n", "matched", pairs->matched);
    print_unmatched(out, "lost in B", &tapes->unmatched[0]);
    print_unmatched(out, "extra in B", &tapes->unmatched[1]);
    fprintf(out,
            "  %-18s  kind %" PRIu64 ", length %" PRIu64 ", offset %" PRIu64 ", result %" PRIu64
            "\n",
            "pairs that differ", pairs->kind_differs, pairs->length_differs,
            pairs->offset_differs, pairs->result_differs);
    if (tapes->asap)
        fprintf(out, "  %-18s  n/a: replayed as fast as possible, not at A's times\n",
                "issue-time error");
    else if (tapes->no_times[0] || tapes->no_times[1])
        fprintf(out, "  %-18s  n/a: a tape cannot tell times\n", "issue-time error");
    else
        print_error_line(out, "issue-time error", &pairs->issue_error);
    if (pairs->due_pairs > 0 && !tapes->asap)
        print_error_line(out, "due-time error", &pairs->due_error);
    if (tapes->no_times[0] || tapes->no_times[1])
        fprintf(out, "  %-18s  n/a: a tape cannot tell times\n", "gaps");
    else
        print_distance(out, "gaps", &a->gap, &b->gap, 't');
    print_distance(out, "sizes", &a->size, &b->size, 's');
    print_distance(out, "depth", &a->depth_time, &b->depth_time, 'n');
    fprintf(out, "  %-18s  %" PRIu64 " ops issued after one that A issued later", "order",
            pairs->overtaken);
    if (pairs->overtaken > 0)
        fprintf(out, ", by up to %s", units_time(pairs->overtaken_most_ns, text));
    fputc('\n', out);
}

/* The end of a long path says which file it is, and one of them would widen the whole table; all of
 * it is in the JSON. */
static void path_end(const char *path, char *buf, size_t size)
{
    size_t length = strlen(path);
    const char *cut = path + (length > PATH_SHOWN ? length - PATH_SHOWN : 0), *slash;

    slash = cut > path ? strchr(cut, '/') : NULL;
    snprintf(buf, size, "%s%s", cut > path ? "..." : "", slash ? slash : cut);
}

static void group_name(const struct tapes *tapes, char what, uint32_t id, char *buf,
                       size_t size)
{
    const struct trace_reader *reader = tapes->feed[0].reader;
    const struct trace_stream *stream;
    const struct trace_file *file;

    if (id == TRACE_NONE_U32) {
        snprintf(buf, size, "(others)");
    } else if (what == 'k') {
        snprintf(buf, size, "%s", trace_op_name(id));
    } else if (what == 's') {
        stream = trace_reader_stream(reader, id);
        snprintf(buf, size, "stream %" PRIu32 "%s%s", id, stream && stream->comm[0] ? " " : "",
                 stream ? stream->comm : "");
    } else {
        file = trace_reader_file(reader, id);
        path_end(file ? file->path : "?", buf, size);
    }
}

static int busier(const void *a, const void *b)
{
    const struct pairs_group *const *left = a, *const *right = b;

    return ((*left)->pairs < (*right)->pairs) - ((*left)->pairs > (*right)->pairs);
}

/* The groups, busiest first; returns how many. */
static unsigned int groups_sorted(const struct pairs_groups *groups,
                                  const struct pairs_group *sorted[PAIRS_GROUPS + 1])
{
    unsigned int count = 0, i;

    for (i = 0; i <= PAIRS_GROUPS; i++)
        if (groups->group[i])
            sorted[count++] = groups->group[i];
    qsort(sorted, count, sizeof *sorted, busier);
    return count;
}

static void cells_of_error(struct grid *grid, const struct curve_signed *curve, bool timed)
{
    static const double fractions[] = {0.5, 0.99};
    unsigned int i;

    for (i = 0; i < 2; i++)
        cell_time(grid, (double)curve_signed_quantile(curve, fractions[i]),
                  timed && curve_signed_count(curve) > 0);
}

static void cells_of_latency(struct grid *grid, const struct pairs_group *group)
{
    static const double fractions[] = {0.5, 0.99};
    char text[2][UNITS_TEXT];
    unsigned int i;
    uint64_t a, b;

    for (i = 0; i < 2; i++) {
        a = hist_quantile(&group->a, fractions[i]);
        b = hist_quantile(&group->b, fractions[i]);
        if (group->a.count == 0) {
            grid_cell(grid, "n/a");
            grid_cell(grid, "%s", "");
            continue;
        }
        grid_cell(grid, "%s -> %s", units_time(a, text[0]), units_time(b, text[1]));
        cell_ratio(grid, (double)a, (double)b);
    }
}

static void rows_of_groups(const struct tapes *tapes, struct grid *grid, char what,
                           const struct pairs_groups *groups)
{
    bool timed = !tapes->asap && !tapes->no_times[0] && !tapes->no_times[1];
    const struct pairs_group *sorted[PAIRS_GROUPS + 1];
    unsigned int count = groups_sorted(groups, sorted), i;
    char name[256];

    if (count == 1 && what != 'k')
        return;
    for (i = 0; i < count && i < SHOWN_GROUPS; i++) {
        group_name(tapes, what, sorted[i]->id, name, sizeof name);
        grid_cell(grid, "  %s", name);
        grid_cell(grid, "%" PRIu64, sorted[i]->pairs);
        cells_of_error(grid, &sorted[i]->issue_error, timed);
        cells_of_latency(grid, sorted[i]);
    }
    if (count > SHOWN_GROUPS) {
        grid_cell(grid, "  (%u more in --json)", count - SHOWN_GROUPS);
        grid_end_row(grid);
    }
}

struct grid *tapes_groups_grid(const struct tapes *tapes)
{
    struct grid *grid = grid_new("lrrrrrrr");

    if (!grid)
        return NULL;
    grid_cell(grid, "Matched ops");
    grid_cell(grid, "pairs");
    grid_cell(grid, "error p50");
    grid_cell(grid, "error p99");
    grid_cell(grid, "latency p50 A -> B");
    grid_cell(grid, "B/A");
    grid_cell(grid, "latency p99 A -> B");
    grid_cell(grid, "B/A");
    rows_of_groups(tapes, grid, 'k', &tapes->pairs->by_kind);
    rows_of_groups(tapes, grid, 's', &tapes->pairs->by_stream);
    rows_of_groups(tapes, grid, 'f', &tapes->pairs->by_file);
    return grid;
}

static int print_grid(struct grid *grid, FILE *out, bool bold)
{
    int err = grid ? grid_print(grid, out, GRID_TEXT, bold) : -ENOMEM;

    grid_free(grid);
    return err;
}

void tapes_print_about(const struct tapes *tapes, unsigned int which, FILE *out)
{
    static const char *const keys[] = {TRACE_META_RESULT_OF, TRACE_META_SOURCE,
                                       TRACE_META_RECORDER, TRACE_META_KERNEL,
                                       TRACE_META_CLOCK};
    const struct trace_reader *reader = tapes->feed[which].reader;
    const char *value;
    size_t i;

    fprintf(out, "%c  %s", "AB"[which], trace_reader_name(reader));
    for (i = 0; i < sizeof keys / sizeof *keys; i++) {
        value = trace_reader_meta(reader, keys[i]);
        if (value && *value)
            fprintf(out, ", %s %s", i == 0 ? "result of" : keys[i], value);
    }
    fputc('\n', out);
}

static void print_remark(void *context, const char *text)
{
    fprintf(context, "note: %s\n", text);
}

int tapes_print(const struct tapes *tapes, FILE *out, bool bold)
{
    int err;

    tapes_print_about(tapes, 0, out);
    tapes_print_about(tapes, 1, out);
    tapes_remarks(tapes, print_remark, out);
    fputc('\n', out);
    err = print_grid(tapes_sides_grid(tapes), out, bold);
    if (err < 0)
        return err;
    fputc('\n', out);
    tapes_print_fidelity(tapes, out);
    if (tapes->pairs->matched > 0) {
        fputc('\n', out);
        err = print_grid(tapes_groups_grid(tapes), out, bold);
    }
    return err == 0 && ferror(out) ? -EIO : err;
}
