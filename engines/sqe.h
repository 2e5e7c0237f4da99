/* SPDX-License-Identifier: MIT */
/*
 * An op as an io_uring submission entry. No state but the form, which holds what the kernel has
 * and what was registered; one thread.
 */
#ifndef ENGINES_SQE_H
#define ENGINES_SQE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "engines/engine.h"
#include "engines/ring.h"

struct sqe_form {
    const struct engine_env *env;
    uint8_t flags;    /* IOSQE_ bits of every entry */
    bool fixed_files; /* targets are registered, by their index */
    bool has_read, has_fallocate, has_fadvise;
    bool fixed_buffers;
    char *buffers; /* the registered area, in buffers of chunk_bytes, the last one shorter */
    uint64_t buffer_bytes;
    uint64_t chunk_bytes;
    struct iovec *iovs; /* one a slot, where READ and WRITE are missing */
};

/* Fills sqe. -EOPNOTSUPP: this kernel's io_uring cannot do op (never a read or a write);
 * blocking_run does it. */
int sqe_fill(const struct sqe_form *form, struct io_uring_sqe *sqe, struct engine_op *op);
/*
 * Fills sqe with the flush that op's own entry, the next one, is linked to. Its completion is
 * wanted: the kernel does not break the link when an fsync fails, so only that tells.
 */
void sqe_fill_flush(const struct sqe_form *form, struct io_uring_sqe *sqe,
                    struct engine_op *op);

#endif
