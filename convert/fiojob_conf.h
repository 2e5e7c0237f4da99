/* SPDX-License-Identifier: MIT */
/* The options of a fio job section that describe a workload, as they are read. */
#ifndef CONVERT_FIOJOB_CONF_H
#define CONVERT_FIOJOB_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One section with what it inherits from [global]. Texts belong to the reader of the file. */
struct fiojob_conf {
    const char *name;
    const char *rw, *bs, *bsrange, *bssplit, *filename, *directory, *ioengine, *random,
        *rate_iops, *rate_process, *sync, *filesize;
    uint64_t size_bytes, io_size_bytes, offset_bytes, offset_increment_bytes, align_bytes;
    uint64_t files, jobs, mix_read_pct, mix_write_pct, depth, batch, complete_min, complete_max,
        depth_low;
    uint64_t think_ns, think_blocks, loops, fsync, fdatasync, direct, buffered, runtime_ns, ops,
        no_random_map, seed, thread, time_based, end_fsync, fsync_on_close;
};

/* fio's defaults. */
void fiojob_conf_init(struct fiojob_conf *conf);

/* What became of one KEY=VALUE (value "" for a bare KEY). */
enum fiojob_set {
    FIOJOB_TAKEN,
    FIOJOB_NO_EFFECT, /* an option that says nothing about the I/O (reporting, naming) */
    FIOJOB_UNKNOWN,   /* an option that is not understood */
    FIOJOB_BAD_VALUE,
};
/* text outlives conf. */
enum fiojob_set fiojob_conf_set(struct fiojob_conf *conf, const char *key, const char *text);

/* fio's sizes: 4k, 4kb, 4KiB, 4K are 4096 bytes; a bare number is bytes. 0 or -EINVAL, -ERANGE.
 */
int fiojob_size(const char *text, size_t length, uint64_t *ret_bytes);

#endif
