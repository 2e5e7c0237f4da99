/* SPDX-License-Identifier: MIT */
#include "replay/compare_tapes_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

struct remarks {
    void (*each)(void *context, const char *text);
    void *context;
};

__attribute__((format(printf, 2, 3))) static void remark(const struct remarks *remarks,
                                                         const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    remarks->each(remarks->context, text);
}

static void remark_tape(const struct tapes *tapes, unsigned int which,
                        const struct remarks *remarks)
{
    const struct trace_reader *reader = tapes->feed[which].reader;
    const struct side *side = tapes->side[which];
    const char *clock = trace_reader_meta(reader, TRACE_META_CLOCK);
    const char *silent = trace_reader_meta(reader, TRACE_META_CANNOT_TELL);
    struct trace_damage damage;
    uint64_t lost = trace_reader_lost(reader);
    struct trace_sample sample;
    char name = "AB"[which];

    if (clock && strcmp(clock, "simulated") == 0 && trace_reader_is_result(reader))
        remark(remarks, "%c ran on a SIMULATED clock: its times are a model's, no device's",
               name);
    if (silent && *silent)
        remark(remarks, "%c's source could not tell: %s", name, silent);
    if (lost > 0)
        remark(remarks, "%c's recorder lost %" PRIu64 " events", name, lost);
    if (trace_reader_sample(reader, &sample))
        remark(remarks,
               "%c is a sample: one thread in %" PRIu64 " was recorded, %" PRIu64
               " ops of the others were passed over",
               name, sample.one_in, sample.passed_ops);
    trace_reader_damage(reader, &damage);
    if (damage.blocks > 0)
        remark(remarks, "%c is damaged: %" PRIu64 " blocks, %" PRIu64 " ops could not be read",
               name, damage.blocks, damage.ops);
    if (damage.truncated)
        remark(remarks, "%c is cut off: what follows its last whole block is missing", name);
    if (side->upper > 0)
        remark(remarks,
               "%c: %" PRIu64 " completions are upper bounds; they are in no latency figure, "
               "and depth counts them as they stand",
               name, side->upper);
    if (side->unknown > 0 && side->exact + side->upper > 0)
        remark(remarks, "%c: depth leaves out %" PRIu64 " ops whose completion is unknown",
               name, side->unknown);
    if (side->depth_cut)
        remark(remarks, "%c: more ops in flight than are followed; depth is a lower bound",
               name);
    if (side->backward > 0)
        remark(remarks,
               "%c: %" PRIu64 " ops out of issue order in a tape that says it is sorted", name,
               side->backward);
}

static void remark_match(const struct tapes *tapes, const struct remarks *remarks)
{
    const struct pairs *pairs = tapes->pairs;
    uint64_t given_up = tapes->unmatched[0].given_up + tapes->unmatched[1].given_up;
    uint64_t too_late = tapes->unmatched[0].too_late + tapes->unmatched[1].too_late;

    if (tapes->other_tape)
        remark(remarks, "B says it is the result of %s, not of %s",
               trace_reader_meta(tapes->feed[1].reader, TRACE_META_RESULT_OF),
               trace_reader_name(tapes->feed[0].reader));
    if (tapes->how == TAPES_REF && pairs->matched > 0 &&
        pairs->kind_differs + pairs->length_differs > pairs->matched / 100)
        remark(remarks,
               "over 1 %% of the pairs differ in kind or length: B does not look like a replay "
               "of A (--match content compares them as strangers)");
    if (too_late > 0 || (tapes->how == TAPES_CONTENT && given_up > 0))
        remark(remarks,
               "the window of %" PRIu32 " waiting ops was not enough: %" PRIu64
               " ops counted as unmatched may have partners farther away (--window)",
               tapes->window, too_late > 0 ? too_late : given_up);
    if (tapes->bad_ref > 0)
        remark(remarks, "%" PRIu64 " ops of a result tape do not say which op they replay",
               tapes->bad_ref);
    if (tapes->speed != 1)
        remark(remarks, "B was meant to go %.4g times as fast as A; errors are against that",
               tapes->speed);
}

void tapes_remarks(const struct tapes *tapes, void (*each)(void *context, const char *text),
                   void *context)
{
    const struct remarks remarks = {each, context};

    remark_tape(tapes, 0, &remarks);
    remark_tape(tapes, 1, &remarks);
    remark_match(tapes, &remarks);
}
