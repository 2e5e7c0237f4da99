/* SPDX-License-Identifier: MIT */
#include "replay/compare_tapes_report.h"

/* jansson takes NULL values as failures of set_new, so a lack of memory shows as a missing key;
 * strings that are not UTF-8 are replaced. */
static json_t *json_text(const char *text)
{
    json_t *value = text ? json_string(text) : json_null();

    return value ? value : json_string("(not UTF-8)");
}

static json_t *json_count(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *json_of_hist(const struct hist *hist)
{
    json_t *object;

    if (hist->count == 0)
        return json_null();
    object = json_object();
    json_object_set_new(object, "count", json_count(hist->count));
    json_object_set_new(object, "mean", json_real(hist_mean(hist)));
    json_object_set_new(object, "stddev", json_real(hist_stddev(hist)));
    json_object_set_new(object, "min", json_count(hist->min));
    json_object_set_new(object, "p50", json_count(hist_quantile(hist, 0.5)));
    json_object_set_new(object, "p90", json_count(hist_quantile(hist, 0.9)));
    json_object_set_new(object, "p99", json_count(hist_quantile(hist, 0.99)));
    json_object_set_new(object, "p99_9", json_count(hist_quantile(hist, 0.999)));
    json_object_set_new(object, "max", json_count(hist->max));
    return object;
}

static json_t *json_of_signed(const struct curve_signed *curve)
{
    json_t *object;

    if (curve_signed_count(curve) == 0)
        return json_null();
    object = json_object();
    json_object_set_new(object, "count", json_count(curve_signed_count(curve)));
    json_object_set_new(object, "mean", json_real(curve_signed_mean(curve)));
    json_object_set_new(object, "stddev", json_real(curve_signed_stddev(curve)));
    json_object_set_new(object, "min", json_integer(curve_signed_min(curve)));
    json_object_set_new(object, "p1", json_integer(curve_signed_quantile(curve, 0.01)));
    json_object_set_new(object, "p10", json_integer(curve_signed_quantile(curve, 0.1)));
    json_object_set_new(object, "p50", json_integer(curve_signed_quantile(curve, 0.5)));
    json_object_set_new(object, "p90", json_integer(curve_signed_quantile(curve, 0.9)));
    json_object_set_new(object, "p99", json_integer(curve_signed_quantile(curve, 0.99)));
    json_object_set_new(object, "p99_9", json_integer(curve_signed_quantile(curve, 0.999)));
    json_object_set_new(object, "max", json_integer(curve_signed_max(curve)));
    return object;
}

/* [[fraction, a, b], ...]: whole curves side by side. */
static json_t *json_of_curves(const struct hist *a, const struct hist *b)
{
    json_t *array = json_array();
    unsigned int i;

    for (i = 0; i < CURVE_POINTS; i++)
        json_array_append_new(array,
                              json_pack("[f,I,I]", curve_fraction[i],
                                        (json_int_t)hist_quantile(a, curve_fraction[i]),
                                        (json_int_t)hist_quantile(b, curve_fraction[i])));
    return array;
}

static json_t *json_of_distance(const struct hist *a, const struct hist *b)
{
    struct curve_distance distance;

    if (curve_distance(a, b, &distance) < 0)
        return json_null();
    return json_pack("{s:f,s:I,s:f}", "ks", distance.ks, "ks_at", (json_int_t)distance.ks_at,
                     "earth_mover", distance.mover);
}

static json_t *json_of_series(const struct series *series)
{
    json_t *array = json_array();
    unsigned int i;

    for (i = 0; i < series->used; i++) {
        const struct series_stretch *s = &series->stretch[i];
        json_t *object = json_object();

        json_object_set_new(object, "start_ns", json_count(i * series->width_ns));
        json_object_set_new(object, "ops", json_count(s->ops));
        json_object_set_new(object, "bytes", json_count(s->bytes));
        json_object_set_new(object, "depth_mean",
                            json_real(s->depth_ns / (double)series->width_ns));
        if (s->latency_count > 0) {
            json_object_set_new(
                object, "latency_mean_ns",
                json_real((double)s->latency_sum_ns / (double)s->latency_count));
            json_object_set_new(object, "latency_max_ns", json_count(s->latency_max_ns));
        }
        if (s->lag_count > 0) {
            json_object_set_new(object, "lag_mean_ns",
                                json_real(s->lag_sum_ns / (double)s->lag_count));
            json_object_set_new(object, "lag_max_ns", json_integer(s->lag_max_ns));
        }
        json_array_append_new(array, object);
    }
    return json_pack("{s:I,s:o}", "width_ns", (json_int_t)series->width_ns, "stretches", array);
}

static json_t *json_of_kinds(const struct side *side)
{
    json_t *object = json_object();
    unsigned int i;

    for (i = 0; i < TRACE_OP_COUNT; i++) {
        const struct side_kind *kind = side->kind[i];

        if (!kind)
            continue;
        json_object_set_new(
            object, trace_op_name(i),
            json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "count", (json_int_t)kind->ops,
                      "bytes", (json_int_t)kind->bytes, "errors", (json_int_t)kind->errors,
                      "short_transfers", (json_int_t)kind->shorts, "exact",
                      (json_int_t)kind->exact, "upper_bound", (json_int_t)kind->upper,
                      "unknown", (json_int_t)kind->unknown, "latency_ns",
                      json_of_hist(&kind->latency)));
    }
    return object;
}

static json_t *json_of_causes(const struct side *side)
{
    json_t *object = json_object();
    unsigned int i;

    for (i = 1; i < TRACE_CAUSE_COUNT; i++)
        json_object_set_new(object, trace_cause_name(i), json_count(side->cause[i]));
    return object;
}

static json_t *json_of_reader(const struct trace_reader *reader)
{
    json_t *object = json_object();
    const char *key, *value;
    size_t i;

    for (i = 0; (key = trace_reader_meta_at(reader, i, &value)); i++)
        json_object_set_new(object, key, json_text(value));
    return object;
}

static json_t *json_of_side(const struct tapes *tapes, unsigned int which)
{
    const struct trace_reader *reader = tapes->feed[which].reader;
    const struct side *side = tapes->side[which];
    struct trace_damage damage;
    json_t *object = json_object();

    trace_reader_damage(reader, &damage);
    json_object_set_new(object, "tape", json_text(trace_reader_name(reader)));
    json_object_set_new(object, "result", json_boolean(trace_reader_is_result(reader)));
    json_object_set_new(object, "raw", json_boolean(trace_reader_is_raw(reader)));
    json_object_set_new(object, "metadata", json_of_reader(reader));
    json_object_set_new(object, "lost", json_count(trace_reader_lost(reader)));
    json_object_set_new(object, "damaged_blocks", json_count(damage.blocks));
    json_object_set_new(object, "damaged_ops", json_count(damage.ops));
    json_object_set_new(object, "truncated", json_boolean(damage.truncated));
    json_object_set_new(object, "ops", json_count(side->ops));
    json_object_set_new(object, "io_ops", json_count(side->io_ops));
    json_object_set_new(object, "by_op", json_of_kinds(side));
    json_object_set_new(object, "bytes", json_count(side->bytes));
    json_object_set_new(object, "duration_ns", json_count(side_duration_ns(side)));
    json_object_set_new(object, "iops", json_real(side_per_s(side, side->io_ops)));
    json_object_set_new(object, "bytes_per_s", json_real(side_per_s(side, side->bytes)));
    json_object_set_new(object, "errors", json_count(side->errors));
    json_object_set_new(object, "short_transfers", json_count(side->shorts));
    json_object_set_new(object, "in_flight_at_end", json_count(side->in_flight_at_end));
    json_object_set_new(object, "completions",
                        json_pack("{s:I,s:I,s:I}", "exact", (json_int_t)side->exact,
                                  "upper_bound", (json_int_t)side->upper, "unknown",
                                  (json_int_t)side->unknown));
    json_object_set_new(object, "latency_ns", json_of_hist(&side->latency));
    json_object_set_new(object, "response_ns", json_of_hist(&side->response));
    json_object_set_new(object, "lag_ns", json_of_signed(&side->lag));
    json_object_set_new(object, "submit_ns", json_of_hist(&side->submit));
    json_object_set_new(object, "late_ops", json_count(side->late));
    json_object_set_new(object, "late_causes", json_of_causes(side));
    json_object_set_new(object, "gap_ns", json_of_hist(&side->gap));
    json_object_set_new(object, "size_bytes", json_of_hist(&side->size));
    json_object_set_new(object, "depth", json_of_hist(&side->depth_time));
    json_object_set_new(object, "depth_at_issue", json_of_hist(&side->depth_issue));
    json_object_set_new(object, "over_time", json_of_series(&side->series));
    return object;
}

static json_t *json_of_unmatched(const struct tapes_unmatched *unmatched)
{
    json_t *kinds = json_object();
    unsigned int i;

    for (i = 0; i < TRACE_OP_COUNT; i++)
        if (unmatched->by_kind[i] > 0)
            json_object_set_new(kinds, trace_op_name(i), json_count(unmatched->by_kind[i]));
    return json_pack("{s:I,s:o,s:I,s:I}", "ops", (json_int_t)unmatched->ops, "by_op", kinds,
                     "given_up", (json_int_t)unmatched->given_up, "too_late",
                     (json_int_t)unmatched->too_late);
}

static json_t *json_of_match(const struct tapes *tapes)
{
    const struct pairs *pairs = tapes->pairs;
    json_t *object = json_object();

    json_object_set_new(object, "by", json_string(tapes_how_names[tapes->how]));
    json_object_set_new(object, "files_by", json_string(tapes_files_names[tapes->files]));
    json_object_set_new(object, "without_offsets", json_boolean(tapes->no_offsets));
    json_object_set_new(object, "window", json_count(tapes->window));
    json_object_set_new(object, "window_used", json_count(tapes->window_used));
    json_object_set_new(object, "matched", json_count(pairs->matched));
    json_object_set_new(object, "lost", json_of_unmatched(&tapes->unmatched[0]));
    json_object_set_new(object, "extra", json_of_unmatched(&tapes->unmatched[1]));
    json_object_set_new(object, "kind_differs", json_count(pairs->kind_differs));
    json_object_set_new(object, "length_differs", json_count(pairs->length_differs));
    json_object_set_new(object, "offset_differs", json_count(pairs->offset_differs));
    json_object_set_new(object, "result_differs", json_count(pairs->result_differs));
    return object;
}

static json_t *json_of_fidelity(const struct tapes *tapes)
{
    const struct side *a = tapes->side[0], *b = tapes->side[1];
    const struct pairs *pairs = tapes->pairs;
    bool timed = !tapes->asap && !tapes->no_times[0] && !tapes->no_times[1];
    json_t *object = json_object();

    json_object_set_new(object, "speed", json_real(tapes->speed));
    json_object_set_new(object, "issue_error_ns",
                        timed ? json_of_signed(&pairs->issue_error) : json_null());
    json_object_set_new(object, "due_error_ns",
                        timed ? json_of_signed(&pairs->due_error) : json_null());
    json_object_set_new(object, "gap",
                        tapes->no_times[0] || tapes->no_times[1]
                            ? json_null()
                            : json_of_distance(&a->gap, &b->gap));
    json_object_set_new(object, "size", json_of_distance(&a->size, &b->size));
    json_object_set_new(object, "depth", json_of_distance(&a->depth_time, &b->depth_time));
    json_object_set_new(object, "overtaken", json_count(pairs->overtaken));
    json_object_set_new(object, "overtaken_most_ns", json_count(pairs->overtaken_most_ns));
    return object;
}

static json_t *json_of_groups(const struct tapes *tapes, char what,
                              const struct pairs_groups *groups)
{
    const struct trace_reader *reader = tapes->feed[0].reader;
    bool timed = !tapes->asap && !tapes->no_times[0] && !tapes->no_times[1];
    json_t *array = json_array();
    unsigned int i;

    for (i = 0; i <= PAIRS_GROUPS; i++) {
        const struct pairs_group *group = groups->group[i];
        const struct trace_stream *stream;
        const struct trace_file *file;
        json_t *object;

        if (!group)
            continue;
        object = json_object();
        if (group->id == TRACE_NONE_U32) {
            json_object_set_new(object, "others", json_true());
        } else if (what == 'k') {
            json_object_set_new(object, "op", json_string(trace_op_name(group->id)));
        } else if (what == 's') {
            stream = trace_reader_stream(reader, group->id);
            json_object_set_new(object, "stream", json_count(group->id));
            json_object_set_new(object, "comm", json_text(stream ? stream->comm : NULL));
        } else {
            file = trace_reader_file(reader, group->id);
            json_object_set_new(object, "file", json_text(file ? file->path : NULL));
        }
        json_object_set_new(object, "pairs", json_count(group->pairs));
        json_object_set_new(object, "issue_error_ns",
                            timed ? json_of_signed(&group->issue_error) : json_null());
        json_object_set_new(object, "a_ns", json_of_hist(&group->a));
        json_object_set_new(object, "b_ns", json_of_hist(&group->b));
        json_object_set_new(object, "change_ns", json_of_signed(&group->change));
        json_object_set_new(object, "curve",
                            group->a.count > 0 ? json_of_curves(&group->a, &group->b)
                                               : json_null());
        json_array_append_new(array, object);
    }
    return array;
}

static void remark_to_json(void *context, const char *text)
{
    json_array_append_new(context, json_text(text));
}

json_t *tapes_json(const struct tapes *tapes)
{
    const struct pairs *pairs = tapes->pairs;
    json_t *root = json_object(), *remarks = json_array();

    if (!root || !remarks)
        return NULL;
    tapes_remarks(tapes, remark_to_json, remarks);
    json_object_set_new(root, "report", json_string("compare-tapes"));
    json_object_set_new(root, "version", json_string(IOTAPE_VERSION));
    json_object_set_new(root, "remarks", remarks);
    json_object_set_new(root, "a", json_of_side(tapes, 0));
    json_object_set_new(root, "b", json_of_side(tapes, 1));
    json_object_set_new(root, "match", json_of_match(tapes));
    json_object_set_new(root, "fidelity", json_of_fidelity(tapes));
    json_object_set_new(
        root, "groups",
        json_pack("{s:I,s:o,s:o,s:o,s:o,s:o}", "pairs", (json_int_t)pairs->latency_pairs,
                  "change_ns", json_of_signed(&pairs->change), "curve",
                  json_of_curves(&tapes->side[0]->latency, &tapes->side[1]->latency), "by_op",
                  json_of_groups(tapes, 'k', &pairs->by_kind), "by_stream",
                  json_of_groups(tapes, 's', &pairs->by_stream), "by_file",
                  json_of_groups(tapes, 'f', &pairs->by_file)));
    return root;
}
