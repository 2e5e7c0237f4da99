/* SPDX-License-Identifier: MIT */
/* The parts of convert that can be held alone: columns, filters, offsets, hashes, random numbers. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "convert/anonymise.h"
#include "convert/catalog.h"
#include "convert/csv_columns.h"
#include "convert/filter.h"
#include "convert/fit.h"
#include "convert/kinds.h"
#include "convert/synth_random.h"
#include "convert/transform.h"
#include "convert/workset.h"
#include "traces/diag.h"

/* ---- tables --------------------------------------------------------------------------- */

static void catalog_finds_what_it_holds(void **state)
{
    struct catalog catalog;
    char name[32];
    uint32_t number;

    (void)state;
    catalog_init(&catalog);
    for (unsigned int round = 0; round < 2; round++)
        for (unsigned int i = 0; i < 20000; i++) {
            int length = snprintf(name, sizeof(name), "/d/%u", i * 7919 % 20000);

            assert_int_equal(catalog_file(&catalog, name, (size_t)length, &number), 0);
            assert_int_equal(number, i);
        }
    assert_int_equal(catalog.file_count, 20000);
    assert_string_equal(catalog_file_at(&catalog, 1)->path, "/d/7919");
    assert_null(catalog_file_at(&catalog, 20000));
    /* the same comm of another thread is another stream */
    assert_int_equal(catalog_stream(&catalog, 1, 1, "a", 1, &number), 0);
    assert_int_equal(catalog_stream(&catalog, 1, 2, "a", 1, &number), 0);
    assert_int_equal(number, 1);
    assert_int_equal(catalog_stream(&catalog, 1, 1, "a", 1, &number), 0);
    assert_int_equal(number, 0);
    catalog_release(&catalog);
}

static void kinds_count_and_merge(void **state)
{
    struct kinds a = {0}, b = {0};
    char made[8] = "merge";

    (void)state;
    kinds_add(&a, "merge", 2);
    kinds_add(&a, made, 3); /* the same words at another address */
    kinds_add(&b, "socket", 1);
    kinds_add(&b, "merge", 1);
    kinds_merge(&a, &b);
    assert_int_equal(a.count, 2);
    assert_int_equal(a.items[0].count, 6);
    assert_int_equal(kinds_total(&a), 7);
    kinds_release(&a);
    kinds_release(&b);
}

/* ---- columns of csv ------------------------------------------------------------------- */

static void columns_have_units(void **state)
{
    struct csv_columns columns;
    struct diag diag = DIAG_INIT;

    (void)state;
    assert_int_equal(csv_columns_parse(&columns, "time:us,op,lba,length:4k,-,latency:ms", &diag), 0);
    assert_int_equal(columns.count, 6);
    assert_int_equal(columns.items[0].num, 1000);
    assert_int_equal(columns.items[2].what, CSV_OFFSET);
    assert_int_equal(columns.items[2].num, 512);
    assert_true(columns.items[2].default_unit);
    assert_int_equal(columns.items[3].num, 4096);
    assert_int_equal(columns.items[4].what, CSV_IGNORE);
    assert_int_equal(columns.items[5].num, 1000000);
    assert_int_equal(csv_columns_parse(&columns, "offset:2048,length", &diag), 0);
    assert_int_equal(columns.items[0].num, 2048);
    assert_int_equal(csv_columns_parse(&columns, "offset:ms,length", &diag), -EINVAL);
    assert_non_null(strstr(diag.text, "'ms' is not a unit of offset"));
    diag_clear(&diag);
    assert_int_equal(csv_columns_parse(&columns, "time,op", &diag), -EINVAL);
}

static void headers_have_units(void **state)
{
    static const char *const names[] = {"Time (us)", "offset_sectors", "Size[bytes]", "Response Time",
                                        "latency.ms", "whatever", "time"};
    struct csv_columns columns;
    size_t lengths[7], known;

    (void)state;
    for (unsigned int i = 0; i < 7; i++)
        lengths[i] = strlen(names[i]);
    csv_columns_header(&columns, names, lengths, 7, &known);
    assert_int_equal(columns.items[0].what, CSV_TIME);
    assert_int_equal(columns.items[0].num, 1000);
    assert_int_equal(columns.items[1].num, 512);
    assert_int_equal(columns.items[2].what, CSV_LENGTH);
    assert_int_equal(columns.items[4].what, CSV_LATENCY);
    assert_int_equal(columns.items[4].num, 1000000);
    assert_int_equal(columns.items[5].what, CSV_IGNORE);
    /* the second column of one meaning is not read */
    assert_int_equal(columns.items[6].what, CSV_IGNORE);
}

/* ---- filters -------------------------------------------------------------------------- */

static void filter_texts(void **state)
{
    struct opt opt = {.name = "time"};
    struct filter_conf conf = {0};
    struct diag diag = DIAG_INIT;

    (void)state;
    assert_int_equal(filter_parse_time(&opt, &conf, "10ms..1s", &diag), 0);
    assert_int_equal(conf.from_ns, 10000000);
    assert_int_equal(conf.to_ns, 1000000000);
    assert_int_equal(filter_parse_time(&opt, &conf, "..1s", &diag), 0);
    assert_true(conf.from_ns < 0);
    assert_int_equal(filter_parse_time(&opt, &conf, "1s..1s", &diag), -EINVAL);
    diag_clear(&diag);
    assert_int_equal(filter_parse_time(&opt, &conf, "5", &diag), -EINVAL);
    diag_clear(&diag);
    assert_int_equal(filter_parse_range(&opt, &conf, "4k..1m", &diag), 0);
    assert_int_equal(conf.from_bytes, 4096);
    assert_int_equal(filter_parse_ops(&opt, &conf, "read,flush", &diag), 0);
    assert_int_equal(conf.kinds, 1u << TRACE_READ | 1u << TRACE_FLUSH);
    assert_int_equal(filter_parse_ops(&opt, &conf, "", &diag), -EINVAL);
}

static void range_touches_at_its_edges(void **state)
{
    static const struct {
        uint64_t offset, length;
        int keep;
    } rows[] = {{0, 4096, 0}, {0, 4097, 1}, {4096, 1, 1}, {8191, 10, 1}, {8192, 10, 0}, {4096, 0, 1},
                {8192, 0, 0}, {0, 1u << 20, 1}};
    struct filter_conf conf = {.ranged = true, .from_bytes = 4096, .to_bytes = 8192};
    struct filter_tables none = {0};
    struct trace_op op = TRACE_OP_INIT;
    struct filter filter;

    (void)state;
    assert_int_equal(filter_init(&filter, &conf, &none), 0);
    for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        op.offset = rows[i].offset;
        op.length = rows[i].length;
        assert_int_equal(filter_early(&filter, &op), rows[i].keep);
    }
    op.kind = TRACE_FSYNC; /* has no range: stays */
    assert_int_equal(filter_early(&filter, &op), 1);
    filter_release(&filter);
}

/* ---- offsets -------------------------------------------------------------------------- */

static void pack_doubles_its_grain(void **state)
{
    struct fit_conf conf = {.mode = FIT_PACK, .grain_bytes = 512};
    struct trace_op op = TRACE_OP_INIT;
    struct catalog catalog;
    struct diag diag = DIAG_INIT;
    struct fit fit;

    (void)state;
    catalog_init(&catalog);
    assert_int_equal(catalog_file(&catalog, "/a", 2, &op.file), 0);
    assert_int_equal(fit_init(&fit, &conf), 0);
    op.length = 512;
    for (uint64_t i = 0; i < FIT_GRAINS_MAX + 10; i++) {
        op.offset = i * 512;
        assert_int_equal(fit_observe(&fit, &op), 0);
    }
    assert_int_equal(fit.grain_bits, 10);
    assert_int_equal(fit_finish(&fit, &catalog, &diag), 0);
    /* all of it was touched: nothing moves */
    op.offset = UINT64_C(123456) * 512;
    assert_int_equal(fit_apply(&fit, &op), 1);
    assert_int_equal(op.offset, UINT64_C(123456) * 512);
    fit_release(&fit);
    catalog_release(&catalog);
}

static void wrapped_stays_inside(void **state)
{
    struct fit_conf conf = {.mode = FIT_WRAP, .size_bytes = 10000, .grain_bytes = 512};
    struct trace_op op = TRACE_OP_INIT;
    struct fit fit;

    (void)state;
    op.file = 0;
    assert_int_equal(fit_init(&fit, &conf), 0);
    op.offset = 29999;
    op.length = 4096;
    assert_int_equal(fit_apply(&fit, &op), 1);
    assert_int_equal(op.offset, 10000 - 4096);
    op.offset = 12345;
    op.length = 20000;
    op.result = 20000;
    assert_int_equal(fit_apply(&fit, &op), 1);
    assert_int_equal(op.offset, 0);
    assert_int_equal(op.length, 10000);
    assert_int_equal(op.result, 10000);
    assert_int_equal(fit.shortened, 1);
    fit_release(&fit);
}

static void gaps_are_taken_out_once(void **state)
{
    struct transform_conf conf = {.speed = 1, .clamp_gap_ns = 100};
    struct transform_times times;

    (void)state;
    transform_times_init(&times, &conf);
    assert_int_equal(transform_time(&times, 1000000), 1000000);
    assert_int_equal(transform_time(&times, 1000050), 1000050);
    assert_int_equal(transform_time(&times, 2000000), 1000150);
    assert_int_equal(transform_time(&times, 2000100), 1000250);
    assert_int_equal(times.clamped, 1);
    /* from absolute distances: a third of 10^15 is not a sum of rounded gaps */
    conf.speed = 3;
    assert_int_equal(transform_speed(&conf, INT64_C(1000000000000001)), INT64_C(333333333333334));
    assert_int_equal(transform_speed(&conf, -3), -1);
}

/* ---- names ---------------------------------------------------------------------------- */

static void hash_is_siphash(void **state)
{
    uint8_t key[16], bytes[15];

    (void)state;
    for (unsigned int i = 0; i < 16; i++)
        key[i] = (uint8_t)i;
    for (unsigned int i = 0; i < 15; i++)
        bytes[i] = (uint8_t)i;
    /* the example of the paper that describes SipHash-2-4 */
    assert_int_equal(anonymise_hash(key, bytes, sizeof(bytes)), UINT64_C(0xa129ca6149be45e5));
}

static void paths_keep_their_shape(void **state)
{
    uint8_t key[16] = {1};
    char *a = anonymise_path(key, "/home/me/a.txt"), *b = anonymise_path(key, "/home/me/b.txt/x");
    char *device = anonymise_path(key, "259,0");

    (void)state;
    assert_memory_equal(a, b, 1 + 16 + 1 + 16 + 1);
    assert_memory_not_equal(a, b, strlen(a));
    assert_string_equal(a + strlen(a) - 4, ".txt");
    assert_int_equal(b[1 + 16 + 1 + 16 + 1 + 16], '.');
    assert_string_equal(device, "259,0");
    free(a);
    free(b);
    free(device);
}

/* ---- random numbers ------------------------------------------------------------------- */

static void shuffle_is_a_permutation(void **state)
{
    static const uint64_t counts[] = {1, 2, 3, 100, 1000, 4097};

    (void)state;
    for (unsigned int c = 0; c < 6; c++) {
        struct synth_shuffle shuffle;
        uint8_t *seen = calloc(counts[c], 1);

        synth_shuffle_init(&shuffle, counts[c], 7);
        for (uint64_t i = 0; i < counts[c]; i++) {
            uint64_t at = synth_shuffle_at(&shuffle, i);

            assert_true(at < counts[c]);
            assert_int_equal(seen[at]++, 0);
        }
        free(seen);
    }
}

static void zipf_follows_its_law(void **state)
{
    static const double thetas[] = {0.5, 1.0, 1.2};
    struct synth_rng rng;

    (void)state;
    synth_rng_init(&rng, 1, 1);
    for (unsigned int t = 0; t < 3; t++) {
        struct synth_zipf zipf;
        uint64_t hits[4] = {0};
        double total = 0;
        const unsigned int draws = 200000, ranks = 1000;

        synth_zipf_init(&zipf, ranks, thetas[t]);
        for (unsigned int i = 1; i <= ranks; i++)
            total += pow(i, -thetas[t]);
        for (unsigned int i = 0; i < draws; i++) {
            uint64_t rank = synth_zipf_rank(&zipf, &rng);

            assert_true(rank < ranks);
            if (rank < 4)
                hits[rank]++;
        }
        for (unsigned int i = 0; i < 4; i++) {
            double expected = draws * pow(i + 1, -thetas[t]) / total;

            assert_true(fabs((double)hits[i] - expected) < 5 * sqrt(expected) + 1);
        }
    }
}

static void workset_counts_blocks(void **state)
{
    struct workset set;
    double share;

    (void)state;
    assert_int_equal(workset_init(&set), 0);
    workset_add(&set, 0, 4095, 2); /* two blocks */
    workset_add(&set, 0, 0, 4096); /* one of them again */
    workset_add(&set, 1, 0, 1);    /* of another file */
    workset_add(&set, 1, 4096, 0); /* nothing */
    assert_int_equal(workset_bytes(&set), 3 * 4096);
    assert_true(workset_is_exact(&set));
    for (uint64_t i = 0; i < 1000000; i++)
        workset_add(&set, 2, i << WORKSET_BLOCK_BITS, 4096);
    share = (double)workset_bytes(&set) / (1000003.0 * 4096);
    assert_true(share > 0.98 && share < 1.02);
    assert_false(workset_is_exact(&set));
    workset_release(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(catalog_finds_what_it_holds),
        cmocka_unit_test(kinds_count_and_merge),
        cmocka_unit_test(columns_have_units),
        cmocka_unit_test(headers_have_units),
        cmocka_unit_test(filter_texts),
        cmocka_unit_test(range_touches_at_its_edges),
        cmocka_unit_test(pack_doubles_its_grain),
        cmocka_unit_test(wrapped_stays_inside),
        cmocka_unit_test(gaps_are_taken_out_once),
        cmocka_unit_test(hash_is_siphash),
        cmocka_unit_test(paths_keep_their_shape),
        cmocka_unit_test(shuffle_is_a_permutation),
        cmocka_unit_test(zipf_follows_its_law),
        cmocka_unit_test(workset_counts_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
