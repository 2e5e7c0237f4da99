/* SPDX-License-Identifier: MIT */
/* Readings of the wall clock that a raw tape's blocks hold are still there when it is sorted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "traces/trace.h"

#define BLOCKS    5
#define BLOCK_OPS 2048
#define START_NS  1000 /* of the first op */
#define STEP_NS   100  /* between ops */
#define WALL_NS   UINT64_C(1700000000000000000)
#define DRIFT_NS  7 /* of the wall clock, a block */

static void write_raw(const char *path)
{
    struct trace_writer_conf conf = {.raw = true, .block_ops = BLOCK_OPS};
    struct trace_file file = {.path = "/data", .kind = TRACE_FILE_REGULAR};
    struct trace_writer *writer;
    struct trace_sink sink;
    uint32_t number;

    assert_int_equal(trace_sink_path(&sink, path, TRACE_SINK_RENAME, true, NULL), 0);
    assert_int_equal(trace_writer_open(&writer, &sink, &conf, NULL), 0);
    assert_int_equal(trace_writer_file(writer, &file, &number), 0);
    for (unsigned int block = 0; block < BLOCKS; block++) {
        int64_t at_ns = START_NS + (int64_t)block * BLOCK_OPS * STEP_NS;

        trace_writer_wall(writer, at_ns, WALL_NS + (uint64_t)at_ns + block * DRIFT_NS);
        for (unsigned int i = 0; i < BLOCK_OPS; i++) {
            struct trace_op op = TRACE_OP_INIT;

            op.kind = TRACE_READ;
            op.file = number;
            op.issue_ns = at_ns + (int64_t)i * STEP_NS;
            op.offset = i * 512;
            op.length = 512;
            assert_int_equal(trace_writer_ops(writer, &op, 1), 0);
        }
        assert_int_equal(trace_writer_flush(writer), 0);
    }
    assert_int_equal(trace_writer_close(writer), 0);
}

/* Converts raw.tape with these options; how many readings there are, each checked. */
static unsigned int readings(const char *options, int64_t zero_ns)
{
    char command[256];
    struct trace_reader *reader;
    const struct trace_op *ops;
    unsigned int count = 0;
    uint64_t wall_ns;
    int64_t tape_ns, last_ns = -1;
    size_t op_count;

    snprintf(command, sizeof(command), "iotape-convert raw.tape -o sorted.tape -q %s", options);
    remove("sorted.tape");
    assert_int_equal(system(command), 0);
    assert_int_equal(trace_reader_open_path(&reader, "sorted.tape", NULL), 0);
    while (trace_reader_next(reader, &ops, &op_count) > 0) {
        if (!trace_reader_wall(reader, &tape_ns, &wall_ns))
            continue;
        tape_ns += zero_ns;
        count += tape_ns != last_ns; /* a block's operations come in pieces */
        last_ns = tape_ns;
        assert_int_equal((tape_ns - START_NS) % (BLOCK_OPS * STEP_NS), 0);
        assert_true(wall_ns ==
                    WALL_NS + (uint64_t)tape_ns +
                        (uint64_t)(tape_ns - START_NS) / (BLOCK_OPS * STEP_NS) * DRIFT_NS);
    }
    trace_reader_free(reader);
    return count;
}

static void readings_are_kept(void **state)
{
    (void)state;
    write_raw("raw.tape");
    assert_int_equal(readings("--to tape:block=2048", START_NS), BLOCKS);
    /* A block holds one; what is cut off has none; at another speed they would be wrong. */
    assert_int_equal(readings("", START_NS), 1);
    assert_int_equal(readings("--head 3000 --to tape:block=2048", START_NS), 2);
    assert_int_equal(readings("--speed 2 --to tape:block=2048", START_NS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(readings_are_kept)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
