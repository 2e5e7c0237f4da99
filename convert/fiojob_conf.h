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
        *rate_iops, *rate, *rate_process, *sync, *sequencer, *random_pct, *service,
        *name_format;
    /* sizes, or percents of the file */
    const char *filesize, *size, *io_size, *offset, *offset_increment;
    uint64_t align_bytes;
    uint64_t files, jobs, mix_read_pct, mix_write_pct, depth, batch, complete_min, complete_max,
        depth_low;
    uint64_t think_ns, think_blocks, loops, fsync, fdatasync, direct, runtime_ns, ramp_ns, ops,
        start_delay_ns, stonewall, fill_device, no_random_map, seed, thread, time_based,
        end_fsync, fsync_on_close, unaligned_sizes, create_only, kb_base;
};

/* fio's defaults. */
void fiojob_conf_init(struct fiojob_conf *conf);

/* What became of one KEY=VALUE (value "" for a bare KEY). */
enum fiojob_set {
    FIOJOB_TAKEN,
    FIOJOB_REPORTING, /* says how fio reports: nothing to do with the I/O */
    FIOJOB_NO_EFFECT, /* says where memory or data come from, or the like: not which I/O */
    FIOJOB_UNKNOWN,   /* an option that is not understood */
    FIOJOB_BAD_VALUE,
};
/* text outlives conf. */
enum fiojob_set fiojob_conf_set(struct fiojob_conf *conf, const char *key, const char *text);

/* fio's sizes: a bare number is bytes, k, kb, ki, m ... are powers of 1024, KiB, MiB ... of
 * 1000; kb_base=1000 turns both round. 0 or -EINVAL, -ERANGE. */
int fiojob_size(const struct fiojob_conf *conf, const char *text, size_t length,
                uint64_t *ret_bytes);

#endif
