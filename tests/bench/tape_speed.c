/* SPDX-License-Identifier: MIT */
/*
 * Rates and size of tapes: writes and reads back OPS synthetic operations with a fixed seed.
 *     tape_speed [OPS [DIR]]     key=value lines; rates are of one thread's CPU time
 * The operations are 4 KiB random reads and writes of 64 files by 8 streams with latencies:
 * about the most that a column can cost.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "traces/diag.h"
#include "traces/sort.h"

#define PIECE 4096

static double cpu_s(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static uint64_t random_next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

struct synth {
    uint64_t seed, made;
    int64_t now_ns;
    uint64_t jitter_ns; /* how far out of order */
};

static void synth_fill(struct synth *synth, struct trace_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t r = random_next(&synth->seed), s = random_next(&synth->seed);
        struct trace_op op = TRACE_OP_INIT;

        synth->now_ns += (int64_t)(r % 4000);
        op.issue_ns = synth->now_ns;
        if (synth->jitter_ns)
            op.issue_ns += (int64_t)(s % synth->jitter_ns);
        op.kind = r >> 40 & 3 ? TRACE_READ : TRACE_WRITE;
        op.api = TRACE_API_SYNC;
        op.file = (uint32_t)(s >> 8) % 64;
        op.stream = (uint32_t)(s >> 16) % 8;
        op.offset = (r >> 12) % (1u << 18) * 4096;
        op.length = 4096;
        op.result = 4096;
        op.completion = TRACE_COMPLETION_EXACT;
        op.latency_ns = 20000 + (s >> 24) % 60000;
        ops[i] = op;
    }
    synth->made += count;
}

static void tables_write(struct trace_writer *writer)
{
    struct trace_stream stream = {.pid = 1, .comm = "synth"};
    struct trace_file file = {.size_bytes = 1 << 30, .kind = TRACE_FILE_REGULAR};
    char path[32];
    uint32_t index;
    int err = 0;

    for (unsigned int i = 0; i < 64 && err == 0; i++) {
        snprintf(path, sizeof(path), "/data/file-%u", i);
        file.path = path;
        err = trace_writer_file(writer, &file, &index);
    }
    for (unsigned int i = 0; i < 8 && err == 0; i++) {
        stream.tid = i;
        err = trace_writer_stream(writer, &stream, &index);
    }
    if (err < 0)
        exit(1);
}

static void fail(const struct diag *diag)
{
    fprintf(stderr, "tape_speed: %s\n", diag->text);
    exit(1);
}

static void tape_write(const char *path, const struct trace_writer_conf *conf, uint64_t count,
                       uint64_t jitter_ns, const char *name)
{
    static struct trace_op ops[PIECE];
    struct synth synth = {.seed = 88172645463325252u, .jitter_ns = jitter_ns};
    struct diag diag = DIAG_INIT;
    struct trace_writer *writer = NULL;
    struct trace_sink sink;
    double made_s = 0, start_s = cpu_s(), s;

    if (trace_sink_path(&sink, path, TRACE_SINK_IN_PLACE, true, &diag) < 0 ||
        trace_writer_open(&writer, &sink, conf, &diag) < 0)
        fail(&diag);
    tables_write(writer);
    while (synth.made < count) {
        size_t now = count - synth.made < PIECE ? (size_t)(count - synth.made) : PIECE;

        s = cpu_s();
        synth_fill(&synth, ops, now);
        made_s += cpu_s() - s;
        if (trace_writer_ops(writer, ops, now) < 0)
            fail(&diag);
    }
    if (trace_writer_flush(writer) < 0)
        fail(&diag);
    printf("%s_bytes_per_op=%.3f\n", name, (double)trace_writer_bytes(writer) / (double)count);
    if (trace_writer_close(writer) < 0)
        fail(&diag);
    printf("%s_ops_per_s=%.0f\n", name, (double)count / (cpu_s() - start_s - made_s));
}

static void tape_read(const char *path, const char *name)
{
    struct diag diag = DIAG_INIT;
    const struct trace_op *ops;
    struct trace_reader *reader;
    uint64_t total = 0, bytes = 0;
    double start_s = cpu_s();
    size_t count;
    int got;

    if (trace_reader_open_path(&reader, path, &diag) < 0)
        fail(&diag);
    while ((got = trace_reader_next(reader, &ops, &count)) > 0) {
        for (size_t i = 0; i < count; i++)
            bytes += ops[i].length;
        total += count;
    }
    if (got < 0)
        fail(&diag);
    trace_reader_free(reader);
    printf("%s_ops_per_s=%.0f\n%s_check=%" PRIu64 "\n", name,
           (double)total / (cpu_s() - start_s), name, bytes);
}

static void tape_normalise(const char *from, const char *to, uint64_t count)
{
    struct diag diag = DIAG_INIT;
    struct trace_reader *reader;
    struct trace_sink sink;
    double start_s = cpu_s();

    if (trace_reader_open_path(&reader, from, &diag) < 0 ||
        trace_sink_path(&sink, to, TRACE_SINK_IN_PLACE, true, &diag) < 0 ||
        trace_normalise(reader, &sink, NULL, &diag) < 0)
        fail(&diag);
    trace_reader_free(reader);
    printf("normalise_ops_per_s=%.0f\n", (double)count / (cpu_s() - start_s));
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    const char *dir = argc > 2 ? argv[2] : getenv("TMPDIR");
    struct trace_writer_conf raw = {.raw = true}, small = {.small = true};
    char first[4096], second[4096];
    struct rusage usage;

    if (count == 0)
        return 2;
    snprintf(first, sizeof(first), "%s/tape_speed.%d.a.tape", dir ? dir : "/tmp",
             (int)getpid());
    snprintf(second, sizeof(second), "%s/tape_speed.%d.b.tape", dir ? dir : "/tmp",
             (int)getpid());
    printf("ops=%" PRIu64 "\n", count);
    tape_write(first, &raw, count, 0, "raw_write");
    tape_read(first, "raw_read");
    tape_write(second, &small, count, 0, "small_write");
    tape_read(second, "small_read");
    tape_write(first, &raw, count, 100000, "disordered_write");
    tape_normalise(first, second, count);
    unlink(first);
    unlink(second);
    getrusage(RUSAGE_SELF, &usage);
    printf("max_rss_kib=%ld\n", usage.ru_maxrss);
    return 0;
}
