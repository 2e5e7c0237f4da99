/* SPDX-License-Identifier: MIT */
/*
 * What both kinds of issuing loop (worker.c, worker_threads.c) need before they can start: slots,
 * buffers, the engine, descriptors. One thread's own.
 */
#ifndef REPLAY_WORKER_SETUP_H
#define REPLAY_WORKER_SETUP_H

#include "replay/account.h"
#include "replay/core_op.h"
#include "replay/wait.h"
#include "replay/worker.h"
#include "traces/diag.h"

/* An operation in flight. */
struct slot {
    struct engine_op op; /* op.core leads back here */
    struct prepared p;
    struct order_tag tag;
    uint64_t due_ns;
    uint64_t batch;      /* number of the call that carried it */
    uint32_t handle;     /* of the descriptor cache, or TRACE_NONE_U32 */
    uint8_t cause;
};

/* One issuing thread: a worker, or a slot thread of one. */
struct issuer {
    const struct worker_conf *conf;
    struct engine_handle *engine;
    struct engine_env env;
    struct account account;
    struct waiter waiter;
    struct core_op core;
    struct fdcache *cache;
    struct slot *slots; /* depth */
    void *buffers;
    uint32_t depth, batch;
    struct diag diag;
    char notes[512];
    char granted[WORKER_GRANTED];
    bool downgraded;
};

/*
 * thread: which of the worker's stats and result rings it uses. depth: of this issuer's engine
 * state. 0, or -errno with issuer->diag; issuer_release either way.
 */
int issuer_setup(struct issuer *issuer, const struct worker_conf *conf, uint32_t thread,
                 uint32_t depth, uint32_t fd_capacity);
/* Tells the others that this thread is ready and returns when the run starts; false: it does not. */
bool issuer_wait_go(struct issuer *issuer);
/* Final figures into the stats, what the engine said into the report. */
void issuer_finish(struct issuer *issuer);
void issuer_release(struct issuer *issuer);
/* Records why the run cannot go on, and stops it. */
void issuer_fail(struct issuer *issuer, int error);

/*
 * Fills a slot's engine_op from its prepared operation: descriptor, buffer, data to write. 0, or
 * the -errno with which the operation fails before it reaches the engine.
 */
int issuer_stage(struct issuer *issuer, struct slot *slot);
/* Checks what was read (--verify), books the completion, lets go of the descriptor. */
void issuer_complete(struct issuer *issuer, struct slot *slot, uint64_t submit_ns);
/* Carries out an operation of the replayer's own, or books a skipped one. */
void issuer_core(struct issuer *issuer, const struct prepared *p, const struct order_tag *tag,
                 uint64_t due_ns, uint8_t cause);

#endif
