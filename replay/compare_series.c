/* SPDX-License-Identifier: MIT */
#include "replay/compare_series.h"

#include <string.h>

#define FIRST_WIDTH_NS  100000u
#define FIRST_ROW_BYTES 65536u

void series_init(struct series *series, int64_t origin_ns)
{
    memset(series, 0, sizeof *series);
    series->origin_ns = origin_ns;
    series->width_ns = FIRST_WIDTH_NS;
    series->row_bytes = FIRST_ROW_BYTES;
}

static void stretch_join(struct series_stretch *into, const struct series_stretch *from)
{
    into->ops += from->ops;
    into->bytes += from->bytes;
    into->latency_count += from->latency_count;
    into->latency_sum_ns += from->latency_sum_ns;
    if (from->latency_max_ns > into->latency_max_ns)
        into->latency_max_ns = from->latency_max_ns;
    if (from->lag_count > 0 && (into->lag_count == 0 || from->lag_max_ns > into->lag_max_ns))
        into->lag_max_ns = from->lag_max_ns;
    into->lag_count += from->lag_count;
    into->lag_sum_ns += from->lag_sum_ns;
    into->depth_ns += from->depth_ns;
}

static void series_widen(struct series *series)
{
    struct series_stretch joined;
    unsigned int i, side, row;

    for (i = 0; i < SERIES_STRETCHES / 2; i++) {
        joined = series->stretch[2 * i];
        stretch_join(&joined, &series->stretch[2 * i + 1]);
        series->stretch[i] = joined;
    }
    memset(&series->stretch[i], 0, sizeof series->stretch / 2);
    for (side = 0; side < 2; side++)
        for (row = 0; row < SERIES_ROWS; row++) {
            uint32_t *cells = series->map[side][row];

            for (i = 0; i < SERIES_STRETCHES / 2; i++)
                cells[i] = cells[2 * i] + cells[2 * i + 1];
            memset(&cells[i], 0, SERIES_STRETCHES / 2 * sizeof *cells);
        }
    series->used = (series->used + 1) / 2;
    series->width_ns *= 2;
}

struct series_stretch *series_at(struct series *series, int64_t time_ns)
{
    uint64_t since = (uint64_t)time_ns - (uint64_t)series->origin_ns, at;

    if (time_ns < series->origin_ns)
        since = 0;
    while ((at = since / series->width_ns) >= SERIES_STRETCHES)
        series_widen(series);
    if (at >= series->used)
        series->used = (unsigned int)at + 1;
    return &series->stretch[at];
}

void series_depth(struct series *series, int64_t from_ns, int64_t to_ns, uint64_t depth)
{
    struct series_stretch *stretch;
    int64_t edge;

    if (to_ns <= from_ns || from_ns < series->origin_ns)
        return;
    series_at(series, to_ns);
    while (from_ns < to_ns) {
        stretch = series_at(series, from_ns);
        edge = series->origin_ns +
               (int64_t)((uint64_t)(stretch - series->stretch + 1) * series->width_ns);
        if (edge > to_ns)
            edge = to_ns;
        stretch->depth_ns += (double)(edge - from_ns) * (double)depth;
        from_ns = edge;
    }
}

static void series_heighten(struct series *series)
{
    unsigned int side, row, i;

    for (side = 0; side < 2; side++) {
        for (row = 0; row < SERIES_ROWS / 2; row++)
            for (i = 0; i < SERIES_STRETCHES; i++)
                series->map[side][row][i] =
                    series->map[side][2 * row][i] + series->map[side][2 * row + 1][i];
        memset(series->map[side][row], 0, sizeof series->map[side] / 2);
    }
    series->rows_used = (series->rows_used + 1) / 2;
    series->row_bytes *= 2;
}

void series_mark(struct series *series, int64_t time_ns, uint64_t position, bool writes)
{
    struct series_stretch *stretch = series_at(series, time_ns);
    uint64_t row;

    while ((row = position / series->row_bytes) >= SERIES_ROWS)
        series_heighten(series);
    if (row >= series->rows_used)
        series->rows_used = (unsigned int)row + 1;
    series->map[writes][row][stretch - series->stretch]++;
}
