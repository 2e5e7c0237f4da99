/* SPDX-License-Identifier: MIT */
/* Inputs: lines and peeks at every boundary, and what an import makes of ops. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "convert/import.h"
#include "convert/input.h"
#include "convert/sniff.h"
#include "traces/diag.h"

static struct input *open_bytes(struct input_list *list, const void *bytes, size_t length,
                                struct diag *diag)
{
    assert_int_equal(input_list_add_memory(list, "bytes", bytes, length, diag), 0);
    return list->items[list->count - 1];
}

/* A mark and blank lines stand before a text, not in it; numbers in binary are left alone. */
static void what_stands_before(void **state)
{
    static const char text[] = "\xef\xbb\xbf\r\n\nfirst\n\nthird";
    static const char binary[] = "\n\0\0\0\x01\x02";
    struct input_list list = {0};
    struct diag diag = DIAG_INIT;
    struct input *input = open_bytes(&list, text, sizeof(text) - 1, &diag);
    const uint8_t *bytes;
    size_t length;
    char *line;

    (void)state;
    assert_int_equal(input_peek(input, &bytes, 5), 5);
    assert_memory_equal(bytes, "first", 5);
    input_park(input);
    assert_int_equal(input_line(input, &line, &length), 1);
    assert_string_equal(line, "first");
    assert_int_equal(input_line_number(input), 3);
    assert_int_equal(input_line(input, &line, &length), 1);
    assert_int_equal(length, 0);
    assert_int_equal(input_line(input, &line, &length), 1);
    assert_string_equal(line, "third");
    assert_int_equal(input_line_number(input), 5);
    input_list_release(&list);
    input = open_bytes(&list, binary, sizeof(binary) - 1, &diag);
    assert_int_equal(input_peek(input, &bytes, 6), 6);
    assert_memory_equal(bytes, binary, 6);
    input_list_release(&list);
}

static void lines_of_every_length(void **state)
{
    static const size_t lengths[] = {1, 0, 2, 4095, 4096, 100000, 524287, 524288, 524289, 3000000};
    struct input_list list = {0};
    struct diag diag = DIAG_INIT;
    size_t total = 0, at = 0, length;
    struct input *input;
    char *text, *line;

    (void)state;
    for (unsigned int i = 0; i < 10; i++)
        total += lengths[i] + 2;
    text = malloc(total);
    for (unsigned int i = 0; i < 10; i++) {
        memset(text + at, 'a' + (int)i, lengths[i]);
        at += lengths[i];
        if (i % 2)
            text[at++] = '\r';
        text[at++] = '\n';
    }
    at--; /* the last line has no newline */
    input = open_bytes(&list, text, at, &diag);
    for (unsigned int i = 0; i < 10; i++) {
        assert_int_equal(input_line(input, &line, &length), 1);
        assert_int_equal(length, lengths[i]);
        assert_int_equal(strlen(line), lengths[i]);
        assert_int_equal(input_line_number(input), i + 1);
        if (length)
            assert_int_equal(line[length - 1], 'a' + (int)i);
    }
    assert_int_equal(input_line(input, &line, &length), 0);
    assert_int_equal(input_offset(input), at);
    input_list_release(&list);
    free(text);
}

static void peeks_and_skips(void **state)
{
    struct input_list list = {0};
    struct diag diag = DIAG_INIT;
    size_t total = 3u << 20;
    uint8_t *bytes = malloc(total);
    const uint8_t *seen;
    struct input *input;
    uint64_t at = 0;

    (void)state;
    for (size_t i = 0; i < total; i++)
        bytes[i] = (uint8_t)(i * 31 >> 3);
    input = open_bytes(&list, bytes, total, &diag);
    assert_int_equal(input_peek(input, &seen, INPUT_PEEK_MAX + 1), -EINVAL);
    for (size_t step = 1; at < total; step = step * 3 % 700001 + 1) {
        size_t want = step < INPUT_PEEK_MAX ? step : INPUT_PEEK_MAX;
        int64_t got = input_peek(input, &seen, want);

        assert_int_equal(got, want < total - at ? want : total - at);
        assert_memory_equal(seen, bytes + at, got);
        input_skip(input, (size_t)got);
        at += (uint64_t)got;
        assert_int_equal(input_offset(input), at);
    }
    assert_int_equal(input_peek(input, &seen, 1), 0);
    input_list_release(&list);
    free(bytes);
}

/* ---- import --------------------------------------------------------------------------- */

struct taken {
    struct trace_op ops[16];
    size_t count;
};

static int take(void *context, const struct trace_op *ops, size_t count)
{
    struct taken *taken = context;

    assert_true(taken->count + count <= 16);
    memcpy(taken->ops + taken->count, ops, count * sizeof(*ops));
    taken->count += count;
    return 0;
}

static struct import *import_new(struct taken *taken, struct diag *diag)
{
    static const struct import_options options;
    struct import *import = malloc(sizeof(*import));

    import_init(import, &options, 1, take, taken, diag);
    import_begin_run(import, 0, false);
    return import;
}

static void import_free(struct import *import)
{
    import_release(import);
    free(import);
}

static void impossible_ranges_are_counted(void **state)
{
    struct taken taken = {.count = 0};
    struct diag diag = DIAG_INIT;
    struct import *import = import_new(&taken, &diag);
    struct trace_op op = TRACE_OP_INIT;

    (void)state;
    op.offset = (uint64_t)INT64_MAX - 10;
    op.length = 11;
    assert_int_equal(import_op(import, &op), 0);
    op.length = 10;
    assert_int_equal(import_op(import, &op), 0);
    op.issue_ns = INT64_MAX;
    assert_int_equal(import_op(import, &op), 0);
    op.issue_ns = 0;
    op.length = UINT64_MAX;
    assert_int_equal(import_op(import, &op), 0);
    assert_int_equal(import_flush(import), 0);
    assert_int_equal(taken.count, 1);
    assert_int_equal(kinds_total(&import->skipped), 3);
    op.length = 0;
    op.file = 3; /* our own mistake, not the source's */
    assert_int_equal(import_op(import, &op), -EINVAL);
    import_free(import);
}

static void bad_lines_up_to_a_number(void **state)
{
    struct taken taken = {.count = 0};
    struct diag diag = DIAG_INIT;
    struct import *import = import_new(&taken, &diag);
    struct input_list list = {0};
    struct input *input = open_bytes(&list, "a\nb\n", 4, &diag);
    size_t length;
    char *line;

    (void)state;
    assert_int_equal(input_line(input, &line, &length), 1);
    assert_int_equal(import_bad(import, input, 3, "expected %s", "x"), 0);
    assert_int_equal(import->bad, 1);
    assert_string_equal(import->first_bad, "bytes:1:3: expected x");
    assert_int_equal(input_line(input, &line, &length), 1);
    assert_int_equal(import_bad(import, input, 1, "expected y"), -EBADMSG);
    assert_string_equal(diag.text, "bytes:2:1: expected y");
    import_free(import);
    input_list_release(&list);
}

static void runs_meet_by_their_clocks(void **state)
{
    struct taken taken = {.count = 0};
    struct diag diag = DIAG_INIT;
    struct import *import = import_new(&taken, &diag);
    struct trace_op op = TRACE_OP_INIT;

    (void)state;
    op.batch = 5;
    op.issue_ns = 10;
    assert_int_equal(import_meta(import, TRACE_META_START_WALL, "1000"), 0);
    assert_int_equal(import_meta(import, "k", "first"), 0);
    assert_int_equal(import_op(import, &op), 0);
    import_begin_run(import, 7, false);
    assert_int_equal(import_meta(import, TRACE_META_START_WALL, "3000"), 0);
    assert_int_equal(import_meta(import, "k", "second"), 0);
    assert_int_equal(import_op(import, &op), 0);
    import_begin_run(import, 0, true);
    assert_int_equal(import_op(import, &op), 0);
    assert_int_equal(import_flush(import), 0);
    assert_int_equal(taken.ops[0].issue_ns, 10);
    assert_int_equal(taken.ops[1].issue_ns, 10 + 2000 + 7);
    assert_int_equal(taken.ops[2].issue_ns, 0);
    /* batches of different inputs are different */
    assert_int_equal(taken.ops[0].batch, 5);
    assert_int_equal(taken.ops[1].batch, 11);
    assert_string_equal(import_meta_value(import, "k"), "first");
    import_free(import);
}

static void words_are_said_once(void **state)
{
    struct taken taken = {.count = 0};
    struct diag diag = DIAG_INIT;
    struct import *import = import_new(&taken, &diag);

    (void)state;
    assert_int_equal(import_cannot_tell(import, "latency"), 0);
    assert_int_equal(import_cannot_tell(import, "late"), 0);
    assert_int_equal(import_cannot_tell(import, "latency"), 0);
    assert_string_equal(import->cannot_tell, "latency,late");
    import_note(import, "a %d", 1);
    import_note(import, "a %d", 1);
    assert_int_equal(import->note_count, 1);
    import_free(import);
}

/* Every importer's table of options and its name; every one says no to nothing at all. */
static void importers_are_sound(void **state)
{
    const struct importer *importer, *chosen, *last = NULL;
    struct diag diag = DIAG_INIT;

    (void)state;
    for (unsigned int i = 0; (importer = importer_at(i)); i++, last = importer) {
        void *conf = calloc(1, importer->conf_size + 1);

        assert_non_null(importer->summary);
        assert_non_null(importer->run);
        assert_ptr_equal(importer_find(importer->name, strlen(importer->name)), importer);
        assert_true(!last || strcmp(last->name, importer->name) < 0);
        assert_true(importer->sniff || (importer->flags & IMPORTER_FORCED));
        assert_true(!importer->opts || importer->conf_size);
        if (importer->opts)
            assert_int_equal(opts_defaults(importer->opts, conf, &diag), 0);
        if (importer->sniff) {
            assert_int_equal(importer->sniff((const uint8_t *)"", 0, true), IMPORT_NO);
            assert_int_equal(importer->sniff((const uint8_t *)"\0\1\2\3", 4, true), IMPORT_NO);
        }
        free(conf);
    }
    assert_null(importer_find("cs", 2));
    assert_int_equal(sniff_bytes("x", (const uint8_t *)"", 0, true, &chosen, &diag), -EBADMSG);
    assert_string_equal(diag.text, "x: is empty");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stands_before),
        cmocka_unit_test(lines_of_every_length),     cmocka_unit_test(peeks_and_skips),
        cmocka_unit_test(impossible_ranges_are_counted), cmocka_unit_test(bad_lines_up_to_a_number),
        cmocka_unit_test(runs_meet_by_their_clocks), cmocka_unit_test(words_are_said_once),
        cmocka_unit_test(importers_are_sound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
