/* SPDX-License-Identifier: MIT */
/*
 * No device: service times drawn from a distribution, N channels that serve in order of
 * arrival. The same seed gives the same times; on a simulated clock a run is exact and takes no
 * time.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "engines/engine.h"
#include "traces/diag.h"

#define NS_PER_S       1e9
#define MAX_CHANNELS   65536
#define MAX_SERVICE_NS 1e18 /* 31 years: keeps sums within 64 bits */

enum dist {
    DIST_EXPONENTIAL,
    DIST_UNIFORM,
    DIST_LOGNORMAL,
    DIST_CONSTANT
};
static const char *const dist_names[] = {"exponential", "uniform", "lognormal", "constant",
                                         NULL};

struct model_conf {
    uint64_t service_ns, random_ns;
    uint64_t write_service_ns, write_random_ns;
    uint64_t sync_service_ns;
    uint64_t bytes_per_s;
    uint64_t channels;
    uint64_t seed;
    int dist;
    double sigma;
    double hump_pct;
    uint64_t hump_extra_ns;
    double error_pct;
    double scale;
    double noise_pct;
    double drift_pct;
    double run_hump_pct, run_hump_slower_pct;
};

#define FIELD(name) offsetof(struct model_conf, name)
static const struct opt model_opts[] = {
    {"service", 0, OPT_TIME, FIELD(service_ns), .arg = "TIME", .def = "100us",
     .help = "fixed part of the service time of a read or write"},
    {"random", 0, OPT_TIME, FIELD(random_ns), .arg = "TIME", .def = "0",
     .help = "mean of the random part added to it"},
    {"dist", 0, OPT_ENUM, FIELD(dist), .arg = "NAME", .def = "exponential",
     .values = dist_names,
     .help = "distribution of the random part: exponential, uniform (0 to twice the mean), "
             "lognormal (see sigma) or constant"},
    {"sigma", 0, OPT_DOUBLE, FIELD(sigma), .arg = "X", .def = "1", .max = 10,
     .help = "sigma of the logarithm for dist=lognormal"},
    {"write-service", 0, OPT_TIME, FIELD(write_service_ns), .arg = "TIME", .def = "0",
     .help = "fixed part for writes; 0 = as service"},
    {"write-random", 0, OPT_TIME, FIELD(write_random_ns), .arg = "TIME", .def = "0",
     .help = "mean of the random part for writes; 0 = as random"},
    {"sync-service", 0, OPT_TIME, FIELD(sync_service_ns), .arg = "TIME", .def = "0",
     .help = "service time of every op that is neither read nor write; 0 = none"},
    {"bandwidth", 0, OPT_SIZE, FIELD(bytes_per_s), .arg = "SIZE", .def = "0",
     .help = "bytes a second one channel moves: adds length / bandwidth; 0 = no limit"},
    {"channels", 0, OPT_COUNT, FIELD(channels), .arg = "N", .def = "1", .min = 1,
     .max = MAX_CHANNELS, .help = "ops served at once; the rest queue in order of arrival"},
    {"hump", 0, OPT_DOUBLE, FIELD(hump_pct), .arg = "PCT", .def = "0", .max = 100,
     .help = "percent of ops that take hump-extra longer: a second hump"},
    {"hump-extra", 0, OPT_TIME, FIELD(hump_extra_ns), .arg = "TIME", .def = "1ms",
     .help = "how much longer those take"},
    {"error-rate", 0, OPT_DOUBLE, FIELD(error_pct), .arg = "PCT", .def = "0", .max = 100,
     .help = "percent of ops that fail with EIO after their service time"},
    {"scale", 0, OPT_DOUBLE, FIELD(scale), .arg = "X", .def = "1", .max = 1000000,
     .help = "multiplies every service time"},
    {"noise", 0, OPT_DOUBLE, FIELD(noise_pct), .arg = "PCT", .def = "0", .max = 1000,
     .help =
         "run to run noise: one lognormal factor with this standard deviation, drawn by seed "
         "when the engine opens, multiplies every service time"},
    {"drift", 0, OPT_DOUBLE, FIELD(drift_pct), .arg = "PCT", .def = "0", .max = 1000000,
     .help = "percent by which service times grow a second of run"},
    {"run-hump", 0, OPT_DOUBLE, FIELD(run_hump_pct), .arg = "PCT", .def = "0", .max = 100,
     .help = "chance in percent that the whole run is run-hump-slower slower"},
    {"run-hump-slower", 0, OPT_DOUBLE, FIELD(run_hump_slower_pct), .arg = "PCT", .def = "30",
     .max = 1000000, .help = "by how many percent such a run is slower"},
    {"seed", 0, OPT_COUNT, FIELD(seed), .arg = "N", .def = "0",
     .help = "seed of noise and run-hump, the same for all workers of a run; 0 = as the run's"},
    {0}};
#undef FIELD

struct flight {
    uint64_t complete_ns;
    uint64_t order; /* of submission: ties complete in order */
    struct engine_op *op;
};

struct model_state {
    const struct model_conf *conf;
    const struct clock *clock;
    uint64_t open_ns;
    uint64_t random; /* state of the generator of service times */
    double factor;   /* scale, noise and run-hump */
    uint64_t submitted;
    unsigned int channel_count;
    unsigned int flight_count;
    uint64_t *free_ns;      /* a min-heap: when each channel becomes free */
    struct flight *flights; /* a min-heap by completion */
};

/* ---- numbers ---------------------------------------------------------------------------- */

/* A counter through a mixing function: every seed gives a full-period stream of its own. */
static uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Within (0, 1). */
static double random_unit(uint64_t *state)
{
    return ((double)(random_next(state) >> 11) + 0.5) * 0x1p-53;
}

static double random_normal(uint64_t *state)
{
    double radius = sqrt(-2.0 * log(random_unit(state)));

    return radius * cos(2.0 * M_PI * random_unit(state));
}

/* Of mean 1. */
static double random_part(const struct model_conf *conf, uint64_t *state)
{
    switch ((enum dist)conf->dist) {
    case DIST_EXPONENTIAL: return -log(random_unit(state));
    case DIST_UNIFORM: return 2.0 * random_unit(state);
    case DIST_LOGNORMAL:
        return exp(conf->sigma * random_normal(state) - conf->sigma * conf->sigma / 2.0);
    case DIST_CONSTANT: break;
    }
    return 1.0;
}

static double run_factor(const struct model_conf *conf, uint64_t seed)
{
    double factor = conf->scale;

    /* Both are drawn always, so that one option does not change the other's draw. */
    factor *= exp(conf->noise_pct / 100.0 * random_normal(&seed));
    if (random_unit(&seed) * 100.0 < conf->run_hump_pct)
        factor *= 1.0 + conf->run_hump_slower_pct / 100.0;
    return factor;
}

static uint64_t service_ns(struct model_state *state, const struct engine_op *op,
                           uint64_t now_ns)
{
    const struct model_conf *conf = state->conf;
    bool write = op->kind == TRACE_WRITE;
    double fixed, mean, service;

    if (op->kind != TRACE_READ && !write) {
        service = (double)conf->sync_service_ns;
    } else {
        fixed = (double)(write && conf->write_service_ns ? conf->write_service_ns
                                                         : conf->service_ns);
        mean =
            (double)(write && conf->write_random_ns ? conf->write_random_ns : conf->random_ns);
        service = fixed;
        if (mean > 0.0)
            service += mean * random_part(conf, &state->random);
        if (conf->bytes_per_s)
            service += (double)op->length * NS_PER_S / (double)conf->bytes_per_s;
    }
    if (conf->hump_pct > 0.0 && random_unit(&state->random) * 100.0 < conf->hump_pct)
        service += (double)conf->hump_extra_ns;
    service *= state->factor;
    service *= 1.0 + conf->drift_pct / 100.0 * (double)(now_ns - state->open_ns) / NS_PER_S;
    return (uint64_t)fmin(service, MAX_SERVICE_NS);
}

/* ---- the two heaps ---------------------------------------------------------------------- */

/* The channel that is free first takes an op and is free again at until_ns. */
static void channel_take(struct model_state *state, uint64_t until_ns)
{
    uint64_t *heap = state->free_ns;
    unsigned int at = 0, child;

    while ((child = 2 * at + 1) < state->channel_count) {
        if (child + 1 < state->channel_count && heap[child + 1] < heap[child])
            child++;
        if (until_ns <= heap[child])
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = until_ns;
}

static bool flight_before(const struct flight *a, const struct flight *b)
{
    return a->complete_ns != b->complete_ns ? a->complete_ns < b->complete_ns
                                            : a->order < b->order;
}

static void flight_push(struct model_state *state, struct flight flight)
{
    struct flight *heap = state->flights;
    unsigned int at = state->flight_count++, parent;

    while (at > 0) {
        parent = (at - 1) / 2;
        if (flight_before(&heap[parent], &flight))
            break;
        heap[at] = heap[parent];
        at = parent;
    }
    heap[at] = flight;
}

static struct flight flight_pop(struct model_state *state)
{
    struct flight *heap = state->flights;
    struct flight first = heap[0], last = heap[--state->flight_count];
    unsigned int at = 0, child;

    while ((child = 2 * at + 1) < state->flight_count) {
        if (child + 1 < state->flight_count && flight_before(&heap[child + 1], &heap[child]))
            child++;
        if (flight_before(&last, &heap[child]))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

/* ---- the engine ------------------------------------------------------------------------- */

static void model_close(void *opaque)
{
    struct model_state *state = opaque;

    if (!state)
        return;
    free(state->free_ns);
    free(state->flights);
    free(state);
}

static int model_open(const void *conf, const struct engine_env *env, void **ret_state)
{
    struct model_state *state = calloc(1, sizeof(*state));

    if (!state)
        return diag_errno(env->diag, -ENOMEM, "engine model");
    state->conf = conf;
    state->clock = env->clock;
    state->open_ns = clock_now_ns(env->clock);
    state->random = env->seed;
    state->factor = run_factor(conf, state->conf->seed ? state->conf->seed : env->seed);
    state->channel_count = (unsigned int)state->conf->channels;
    state->free_ns = calloc(state->channel_count, sizeof(state->free_ns[0]));
    state->flights = calloc(env->depth, sizeof(state->flights[0]));
    if (!state->free_ns || !state->flights) {
        model_close(state);
        return diag_errno(env->diag, -ENOMEM, "engine model");
    }
    *ret_state = state;
    return 0;
}

static int model_submit(void *opaque, struct engine_op **ops, unsigned int count)
{
    struct model_state *state = opaque;
    uint64_t now_ns = clock_now_ns(state->clock), start_ns;

    for (unsigned int i = 0; i < count; i++) {
        struct engine_op *op = ops[i];
        uint64_t service = service_ns(state, op, now_ns);

        op->issued_ns = now_ns;
        start_ns = state->free_ns[0] > now_ns ? state->free_ns[0] : now_ns;
        op->completed_ns = start_ns + service;
        op->result =
            op->kind == TRACE_READ || op->kind == TRACE_WRITE ? (int64_t)op->length : 0;
        if (state->conf->error_pct > 0.0 &&
            random_unit(&state->random) * 100.0 < state->conf->error_pct)
            op->result = -EIO;
        channel_take(state, op->completed_ns);
        flight_push(state, (struct flight){op->completed_ns, state->submitted++, op});
    }
    return (int)count;
}

static unsigned int pop_due(struct model_state *state, struct engine_op **done,
                            unsigned int max)
{
    uint64_t now_ns = clock_now_ns(state->clock);
    unsigned int count = 0;

    while (count < max && state->flight_count && state->flights[0].complete_ns <= now_ns)
        done[count++] = flight_pop(state).op;
    return count;
}

static int model_reap(void *opaque, struct engine_op **done, unsigned int min, unsigned int max,
                      uint64_t timeout_ns)
{
    struct model_state *state = opaque;
    uint64_t start_ns = clock_now_ns(state->clock), deadline_ns, next_ns;
    unsigned int count = pop_due(state, done, max);

    deadline_ns = timeout_ns > UINT64_MAX - start_ns ? UINT64_MAX : start_ns + timeout_ns;
    while (count < min) {
        next_ns = state->flights[0].complete_ns;
        if (next_ns > deadline_ns)
            next_ns = deadline_ns;
        state->clock->wait_until(state->clock, next_ns);
        count += pop_due(state, done + count, max - count);
        /* Short of next_ns only when a signal ended the wait: the caller looks at its flags. */
        if (clock_now_ns(state->clock) >= deadline_ns || clock_now_ns(state->clock) < next_ns)
            break;
    }
    return (int)count;
}

static const char *model_counter(void *opaque, unsigned int index, uint64_t *ret_value)
{
    const struct model_state *state = opaque;

    if (index > 0)
        return NULL;
    *ret_value = (uint64_t)(state->factor * 1e6 + 0.5);
    return "service_factor_ppm";
}

const struct engine engine_model = {
    .name = "model",
    .summary = "no device: service times from a distribution, reproducible by seed",
    .help = "An op waits for the channel that is free first, then takes service + random (by "
            "dist) + length / bandwidth, times scale and the run's noise. Completion times are "
            "the model's own, so they are exact whatever the wake-up error. With a simulated "
            "clock a day of trace takes seconds and every figure is reproducible to the "
            "nanosecond. Buffers are left as they are and no file is touched.",
    .opts = model_opts,
    .conf_size = sizeof(struct model_conf),
    .ops = (1ull << TRACE_OP_COUNT) - 1,
    .flags = ENGINE_NO_TARGET | ENGINE_SIMULATES | ENGINE_STAMPS,
    .open = model_open,
    .submit = model_submit,
    .reap = model_reap,
    .close = model_close,
    .counter = model_counter,
};
