/* SPDX-License-Identifier: MIT */
/* The pieces of compare that need no tape: curves, matching, series, the design, the grid,
 * conditions, the journal. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "replay/compare_condition.h"
#include "replay/compare_curve.h"
#include "replay/compare_design.h"
#include "replay/compare_grid.h"
#include "replay/compare_journal.h"
#include "replay/compare_match.h"
#include "replay/compare_series.h"
#include "traces/diag.h"

static void near_to(double value, double expected, double within)
{
    if (!(fabs(value - expected) <= within))
        fail_msg("got %.9g, expected %.9g within %g", value, expected, within);
}

static void distances(void **state)
{
    static struct hist a, b;
    struct curve_distance distance;
    unsigned int i;

    hist_init(&a);
    hist_init(&b);
    assert_int_equal(curve_distance(&a, &b, &distance), -ENODATA);
    for (i = 0; i < 100; i++) {
        hist_add(&a, i);
        hist_add(&b, i);
    }
    assert_int_equal(curve_distance(&a, &b, &distance), 0);
    near_to(distance.ks, 0, 0);
    near_to(distance.mover, 0, 0);
    hist_init(&b);
    for (i = 0; i < 100; i++)
        hist_add(&b, i + 10); /* moved by ten: KS 0.1, mover 10 */
    assert_int_equal(curve_distance(&a, &b, &distance), 0);
    near_to(distance.ks, 0.1, 1e-9);
    near_to(distance.mover, 10, 1e-9);
    hist_init(&a);
    hist_init(&b);
    curve_add_weighted(&a, 1000000, 3); /* three quarters at 1 ms, the rest at 0 */
    curve_add_weighted(&a, 0, 1);
    curve_add_weighted(&b, 0, 7);
    assert_int_equal(curve_distance(&a, &b, &distance), 0);
    near_to(distance.ks, 0.75, 1e-9);
    near_to(distance.mover, 750000, 750000 * 0.008);
}

static void signed_curves(void **state)
{
    static struct curve_signed curve;
    int i;

    curve_signed_init(&curve);
    assert_int_equal(curve_signed_quantile(&curve, 0.5), 0);
    for (i = -50; i <= 50; i++)
        curve_signed_add(&curve, i);
    assert_int_equal(curve_signed_count(&curve), 101);
    assert_int_equal(curve_signed_min(&curve), -50);
    assert_int_equal(curve_signed_max(&curve), 50);
    near_to(curve_signed_mean(&curve), 0, 1e-9);
    near_to((double)curve_signed_quantile(&curve, 0.5), 0, 1);
    near_to((double)curve_signed_quantile(&curve, 0.1), -40, 1);
    near_to((double)curve_signed_quantile(&curve, 0.9), 40, 1);
}

static struct match_entry entry(uint64_t key, unsigned int side)
{
    struct match_entry made = {.key = key, .index = key, .side = (uint8_t)side};

    return made;
}

static void matching(void **state)
{
    const struct match_entry *partner, *gone;
    struct match_entry offered;
    struct match *match;
    unsigned int i;

    assert_int_equal(match_new(&match, 0), -EINVAL);
    assert_int_equal(match_new(&match, 4), 0);
    /* The same key three times on one side: met in their order. */
    for (i = 0; i < 3; i++) {
        offered = entry(7, MATCH_A);
        offered.index = i;
        assert_int_equal(match_offer(match, &offered, &partner, &gone), 0);
        assert_null(gone);
    }
    for (i = 0; i < 3; i++) {
        offered = entry(7, MATCH_B);
        assert_int_equal(match_offer(match, &offered, &partner, &gone), 1);
        assert_int_equal(partner->index, i);
        assert_int_equal(partner->side, MATCH_A);
    }
    /* A fifth that waits pushes the oldest out. */
    for (i = 0; i < 5; i++) {
        offered = entry(100 + i, MATCH_A);
        assert_int_equal(match_offer(match, &offered, &partner, &gone), 0);
        if (i < 4)
            assert_null(gone);
    }
    assert_non_null(gone);
    assert_int_equal(gone->key, 100);
    assert_int_equal(match_waiting(match, MATCH_A), 4);
    assert_int_equal(match_waiting(match, MATCH_B), 0);
    offered = entry(100, MATCH_B); /* its partner is gone: it waits, another goes */
    assert_int_equal(match_offer(match, &offered, &partner, &gone), 0);
    assert_int_equal(gone->key, 101);
    for (i = 0; i < 3; i++)
        assert_int_equal(match_drain(match)->key, 102 + i);
    assert_int_equal(match_drain(match)->side, MATCH_B);
    assert_null(match_drain(match));
    match_free(match);
}

/* Many keys in random order on both sides: every one is met exactly once. */
static void matching_many(void **state)
{
    enum {
        KEYS = 5000
    };
    struct {
        uint64_t at;
    } random = {1};
    static uint64_t keys[2][KEYS];
    const struct match_entry *partner, *gone;
    struct match_entry offered;
    struct match *match;
    unsigned int i, j, side, met = 0;

    for (side = 0; side < 2; side++)
        for (i = 0; i < KEYS; i++) {
            random.at = random.at * 6364136223846793005u + 1442695040888963407u;
            j = (unsigned int)((random.at >> 33) % (i + 1));
            keys[side][i] = keys[side][j];
            keys[side][j] = i;
        }
    assert_int_equal(match_new(&match, 2 * KEYS), 0);
    for (i = 0; i < KEYS; i++)
        for (side = 0; side < 2; side++) {
            offered = entry(keys[side][i], side);
            if (match_offer(match, &offered, &partner, &gone) == 1) {
                met++;
                assert_int_equal(partner->key, keys[side][i]);
                assert_int_not_equal(partner->side, side);
            }
            assert_null(gone);
        }
    assert_int_equal(met, KEYS);
    assert_null(match_drain(match));
    match_free(match);
}

static void series_widens(void **state)
{
    struct series *series = malloc(sizeof *series);
    uint64_t ops = 0, marks = 0;
    double depth_ns = 0;
    unsigned int i, j;

    assert_non_null(series);
    series_init(series, -5);
    for (i = 0; i < 1000; i++) {
        int64_t at_ns = -5 + (int64_t)i * 1000000;

        series_at(series, at_ns)->ops++;
        series_depth(series, at_ns, at_ns + 500000, 2);
        series_mark(series, at_ns, (uint64_t)i << 20, i % 2 == 0);
    }
    assert_true(series->used <= SERIES_STRETCHES && series->used > SERIES_STRETCHES / 2);
    for (i = 0; i < SERIES_STRETCHES; i++) {
        ops += series->stretch[i].ops;
        depth_ns += series->stretch[i].depth_ns;
    }
    for (i = 0; i < SERIES_ROWS; i++)
        for (j = 0; j < SERIES_STRETCHES; j++)
            marks += series->map[0][i][j] + series->map[1][i][j];
    assert_int_equal(ops, 1000);
    assert_int_equal(marks, 1000);
    near_to(depth_ns, 1000.0 * 2 * 500000, 1);
    assert_true(series->rows_used <= SERIES_ROWS);
    free(series);
}

static void design_crosses(void **state)
{
    struct diag diag = DIAG_INIT;
    struct design design;
    uint32_t order[16], again[16];
    char label[128];
    unsigned int i, seen = 0;

    design_init(&design);
    assert_int_equal(design_add_engines(&design, "sync,model:service=1ms,noise=2,null", &diag),
                     0);
    assert_int_equal(design.dimension[0].count, 3);
    assert_string_equal(design.dimension[0].values[1], "model:service=1ms,noise=2");
    assert_int_equal(design_add(&design, "depth", "1,32", &diag), 0);
    assert_int_equal(design_add(&design, "order", "overlap\\,file,none", &diag), 0);
    assert_string_equal(design.dimension[2].values[0], "overlap,file");
    assert_int_equal(design_cross(&design, NULL, &diag), 0);
    assert_int_equal(design.count, 12);
    assert_string_equal(design_value(&design, 0, "engine"), "sync");
    assert_string_equal(design_value(&design, 11, "engine"), "null");
    assert_string_equal(design_value(&design, 2, "depth"), "32");
    assert_int_equal(design.cells[11].baseline, 3); /* sync, 32, none */
    assert_int_equal(design_comparisons(&design), 8);
    assert_string_equal(design_label(&design, 3, label, sizeof label),
                        "engine sync, depth 32, order none");
    assert_int_equal(design_exclude(&design, 3, "no"), 0);
    assert_int_equal(design_comparisons(&design), 6);
    assert_int_equal(design_order(&design, 4, order), 11);
    assert_int_equal(design_order(&design, 4, again), 11);
    for (i = 0; i < 11; i++) {
        assert_int_equal(order[i], again[i]);
        seen |= 1u << order[i];
    }
    assert_int_equal(seen, 0xfff & ~(1u << 3));
    assert_true(design_trial_seed(&design, 1, 2) != design_trial_seed(&design, 2, 1));
    assert_true(design_trial_seed(&design, 1, 2) == design_trial_seed(&design, 1, 2));
    design_release(&design);
}

static void design_baselines(void **state)
{
    struct diag diag = DIAG_INIT;
    struct design design;

    design_init(&design);
    assert_int_equal(design_add_engines(&design, "sync,model:service=1ms,noise=2", &diag), 0);
    assert_int_equal(design_add(&design, "depth", "1,32", &diag), 0);
    assert_int_equal(design_cross(&design, "engine=model:service=1ms,noise=2,depth=32", &diag),
                     0);
    assert_int_equal(design.cells[0].baseline, 3);
    design_release(&design);

    design_init(&design);
    assert_int_equal(design_add(&design, "depth", "1,32", &diag), 0);
    assert_int_equal(design_cross(&design, "depth=7", &diag), -EINVAL);
    assert_non_null(strstr(diag.text, "no value '7'"));
    diag_clear(&diag);
    assert_int_equal(design_cross(&design, "colour=7", &diag), -EINVAL);
    diag_clear(&diag);
    assert_int_equal(design_add(&design, "batch", "1,,2", &diag), -EINVAL);
    diag_clear(&diag);
    assert_int_equal(design_add_engines(&design, "nosuch", &diag), -EINVAL);
    design_release(&design);
}

static void conditions(void **state)
{
    struct diag diag = DIAG_INIT;
    struct condition condition;

    assert_int_equal(condition_parse(&condition, "p99>+5%", &diag), 0);
    assert_true(condition.above && condition.relative);
    near_to(condition.limit, 0.05, 1e-12);
    assert_true(condition_met(&condition, 106, 100));
    assert_false(condition_met(&condition, 104, 100));
    assert_int_equal(condition_parse(&condition, "iops<-3%", &diag), 0);
    assert_true(condition_met(&condition, 96, 100));
    assert_false(condition_met(&condition, 98, 100));
    assert_int_equal(condition_parse(&condition, "lag_p99>60us", &diag), 0);
    near_to(condition.limit, 60000, 0);
    assert_int_equal(condition_parse(&condition, "lost>0", &diag), 0);
    assert_false(condition_met(&condition, 0, 0));
    assert_int_equal(condition_parse(&condition, "p99", &diag), -EINVAL);
    diag_clear(&diag);
    assert_int_equal(condition_parse(&condition, "p99>much", &diag), -EINVAL);
    diag_clear(&diag);
    assert_int_equal(condition_parse(&condition, ">5", &diag), -EINVAL);
}

static char *grid_text(const struct grid *grid, enum grid_form form)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    assert_non_null(out);
    assert_int_equal(grid_print(grid, out, form, false), 0);
    fclose(out);
    return text;
}

static void grids(void **state)
{
    struct grid *grid = grid_new("lr");
    char *text;

    grid_cell(grid, "name");
    grid_cell(grid, "n");
    grid_cell(grid, "a|b, \"q\"");
    grid_cell(grid, "%d", 12);
    grid_cell(grid, "bad\nline");
    grid_end_row(grid);
    text = grid_text(grid, GRID_TEXT);
    assert_string_equal(text, "name       n\n"
                              "a|b, \"q\"  12\n"
                              "bad?line    \n");
    free(text);
    text = grid_text(grid, GRID_MARKDOWN);
    assert_string_equal(text, "| name | n |\n| --- | ---: |\n| a\\|b, \"q\" | 12 |\n"
                              "| bad?line |  |\n");
    free(text);
    text = grid_text(grid, GRID_CSV);
    assert_string_equal(text, "name,n\n\"a|b, \"\"q\"\"\",12\nbad?line,\n");
    free(text);
    grid_free(grid);
}

static struct record record_of(unsigned int block, unsigned int cell, double iops)
{
    struct record record = {.block = block, .cell = cell, .steady = NAN, .wall_ns = 1};
    int i;

    for (i = 0; i < METRIC_COUNT; i++)
        record.value[i] = NAN;
    record.value[METRIC_IOPS] = iops;
    return record;
}

static void journals(void **state)
{
    char folder[] = "journal.XXXXXX", path[64];
    json_t *plan = json_pack("{s:i,s:i,s:s}", "seed", 7, "trials", 5, "started", "then");
    json_t *other = json_pack("{s:i,s:i,s:s}", "seed", 8, "trials", 5, "started", "now");
    json_t *same = json_pack("{s:i,s:i,s:s}", "seed", 7, "trials", 9, "started", "now");
    struct diag diag = DIAG_INIT;
    struct journal journal, second;
    struct record record;
    FILE *file;

    assert_non_null(mkdtemp(folder));
    assert_int_equal(journal_open(&journal, folder, false, plan, &diag), 0);
    assert_int_equal(journal_open(&second, folder, true, plan, &diag), -EBUSY);
    diag_clear(&diag);
    record = record_of(0, 1, 1.0 / 3);
    assert_int_equal(journal_add(&journal, &record, &diag), 0);
    record = record_of(0, 0, 1e17 / 7);
    record.failed = strdup("exit 1: no");
    assert_int_equal(journal_add(&journal, &record, &diag), 0);
    journal_close(&journal);

    /* A line torn by a kill is dropped; what is whole is exactly as it was. */
    snprintf(path, sizeof path, "%s/journal.jsonl", folder);
    file = fopen(path, "a");
    assert_non_null(file);
    fputs("{\"block\":1,\"cell\":0,\"fig", file);
    fclose(file);
    assert_int_equal(journal_open(&journal, folder, false, plan, &diag), -EEXIST);
    diag_clear(&diag);
    assert_int_equal(journal_open(&journal, folder, true, other, &diag), -EINVAL);
    assert_non_null(strstr(diag.text, "'seed'"));
    diag_clear(&diag);
    assert_int_equal(journal_open(&journal, folder, true, same, &diag), 0);
    assert_true(journal.resumed);
    assert_int_equal(journal.count, 2);
    assert_true(journal_find(&journal, 0, 1)->value[METRIC_IOPS] == 1.0 / 3);
    assert_true(isnan(journal_find(&journal, 0, 1)->value[METRIC_P99]));
    assert_string_equal(journal_find(&journal, 0, 0)->failed, "exit 1: no");
    assert_null(journal_find(&journal, 1, 0));
    assert_string_equal(json_string_value(json_object_get(same, "started")), "then");
    record = record_of(1, 0, 5);
    assert_int_equal(journal_add(&journal, &record, &diag), 0);
    journal_close(&journal);
    assert_int_equal(journal_open(&journal, folder, true, same, &diag), 0);
    assert_int_equal(journal.count, 3);
    journal_close(&journal);
    json_decref(plan);
    json_decref(other);
    json_decref(same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances),
        cmocka_unit_test(signed_curves),
        cmocka_unit_test(matching),
        cmocka_unit_test(matching_many),
        cmocka_unit_test(series_widens),
        cmocka_unit_test(design_crosses),
        cmocka_unit_test(design_baselines),
        cmocka_unit_test(conditions),
        cmocka_unit_test(grids),
        cmocka_unit_test(journals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
