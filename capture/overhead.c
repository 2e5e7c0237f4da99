/* SPDX-License-Identifier: MIT */
#include "capture/overhead.h"

#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

void overhead_init(struct overhead *overhead, double limit_pct, uint64_t now_ns, uint64_t own_ns,
                   uint64_t added_ns)
{
    memset(overhead, 0, sizeof(*overhead));
    overhead->limit_pct = limit_pct;
    overhead->from_ns = now_ns;
    overhead->own_ns = own_ns;
    overhead->added_ns = added_ns;
}

bool overhead_due(const struct overhead *overhead, uint64_t now_ns)
{
    return overhead->limit_pct > 0 && now_ns - overhead->from_ns >= SECOND_NS;
}

bool overhead_exceeded(struct overhead *overhead, uint64_t now_ns, uint64_t own_ns,
                       uint64_t added_ns)
{
    double cost_ns = (double)(own_ns - overhead->own_ns) + (double)(added_ns - overhead->added_ns);

    overhead->last_pct = 100 * cost_ns / (double)(now_ns - overhead->from_ns);
    if (overhead->last_pct > overhead->most_pct)
        overhead->most_pct = overhead->last_pct;
    overhead->from_ns = now_ns;
    overhead->own_ns = own_ns;
    overhead->added_ns = added_ns;
    return overhead->last_pct > overhead->limit_pct;
}

unsigned int overhead_sample(const struct overhead *overhead, unsigned int one_in,
                             unsigned int most)
{
    double times = overhead->last_pct / overhead->limit_pct, next;

    if (one_in < 1)
        one_in = 1;
    if (one_in >= most)
        return 0;
    next = one_in * (times > 2 ? times : 2);
    return next >= most ? most : (unsigned int)next + (next > (unsigned int)next);
}
