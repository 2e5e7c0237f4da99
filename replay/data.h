/* SPDX-License-Identifier: MIT */
/*
 * What is written, and with --verify the proof that it came back.
 *
 * Content: zeros; random; or random of which a share of each 4 KiB is zeros, so that PCT percent
 * can be compressed away. Taken from a pattern made before the start; the first eight bytes of
 * each 4 KiB are unique, so nothing is deduplicated.
 *
 * Verify: each aligned 512-byte block of a write begins with a header of magic, checksum, place
 * and the number of the write, and a map remembers the number of the last write of every block.
 * A read must find in each block just that write (--order overlap sees to it that none is under
 * way); a block not written in this run must, if it carries a header, be whole and in its place,
 * which is the check after a kill. Blocks written in part are left alone. The map is shared memory: 8 bytes a block that was written.
 *
 * data_new before the workers start; the rest from any worker.
 */
#ifndef REPLAY_DATA_H
#define REPLAY_DATA_H

#include <stdint.h>

#include "replay/prepared.h"

struct conf;
struct data;
struct diag;
struct stats;
struct target_set;

int data_new(struct data **ret_data, const struct conf *conf, const struct target_set *targets,
             struct diag *diag) TRACE_MUST_CHECK;
void data_free(struct data *data); /* NULL is fine */
/* Fills length bytes of buffer for the write p, number seq of the run. */
void data_fill(struct data *data, void *buffer, const struct prepared *p, uint64_t seq);
/*
 * --verify: books a completed write (or other change), checks what a read found. Counts blocks
 * and errors; returns result, or -EILSEQ when the read found anything wrong or stale.
 */
int64_t data_check(struct data *data, const void *buffer, const struct prepared *p, uint64_t seq,
                   int64_t result, struct stats *stats);

#endif
