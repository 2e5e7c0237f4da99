/* SPDX-License-Identifier: MIT */
#include "capture/bpf_block.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
    COMMAND_MASK = 0xff
};

/* ---- devices ----------------------------------------------------------------------------- */

static int sysfs_number(const char *folder, const char *name, unsigned long long *ret_value)
{
    char path[256];
    FILE *file;
    int n;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "re");
    if (!file)
        return -errno;
    n = fscanf(file, "%llu", ret_value);
    fclose(file);
    return n == 1 ? 0 : -EINVAL;
}

static int sysfs_device(const char *folder, const char *name, uint32_t *ret_device)
{
    char path[256];
    unsigned int major_number, minor_number;
    FILE *file;
    int n;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "re");
    if (!file)
        return -errno;
    n = fscanf(file, "%u:%u", &major_number, &minor_number);
    fclose(file);
    if (n != 2)
        return -EINVAL;
    *ret_device = major_number << 20 | minor_number;
    return 0;
}

static bool sysfs_has(const char *folder, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static int target_facts(struct block_target *self, const char *folder)
{
    bool part = sysfs_has(folder, "partition");
    unsigned long long value;
    int rc;

    if (part) {
        rc = sysfs_number(folder, "start", &value);
        if (rc)
            return rc;
        self->first_sector = value;
    }
    rc = sysfs_number(folder, "size", &value);
    if (rc)
        return rc;
    self->sectors = value;
    rc = sysfs_device(folder, part ? "../dev" : "dev", &self->disk);
    /* Drivers with request queues have this folder; others are handed bios. */
    self->mode = sysfs_has(folder, part ? "../mq" : "mq") ? BPF_BLOCK_REQUESTS : BPF_BLOCK_BIOS;
    return rc;
}

int block_target_init(struct block_target *self, const char *path, struct diag *diag)
{
    char folder[64];
    struct stat facts;
    int rc;

    memset(self, 0, sizeof(*self));
    if (stat(path, &facts) != 0)
        return diag_errno(diag, -errno, "--device %s", path);
    if (!S_ISBLK(facts.st_mode))
        return diag_set(diag, -ENOTBLK, "--device %s: not a block device", path);
    self->device = major(facts.st_rdev) << 20 | minor(facts.st_rdev);
    snprintf(folder, sizeof(folder), "/sys/dev/block/%u:%u", major(facts.st_rdev),
             minor(facts.st_rdev));
    rc = target_facts(self, folder);
    if (rc)
        return diag_errno(diag, rc, "--device %s: %s", path, folder);
    self->path = realpath(path, NULL);
    return self->path ? 0 : -ENOMEM;
}

void block_target_release(struct block_target *self)
{
    free(self->path);
    memset(self, 0, sizeof(*self));
}

/* ---- words ------------------------------------------------------------------------------- */

void block_words_init(struct block_words *self, int (*value)(void *context, const char *name),
                      void *context)
{
    static const struct {
        const char *name;
        uint8_t kind;
    } commands[] = {
        {"REQ_OP_READ", TRACE_READ},
        {"REQ_OP_WRITE", TRACE_WRITE},
        {"REQ_OP_FLUSH", TRACE_FLUSH},
        {"REQ_OP_DISCARD", TRACE_DISCARD},
        {"REQ_OP_SECURE_ERASE", TRACE_DISCARD},
        {"REQ_OP_WRITE_ZEROES", TRACE_WRITE_ZEROES},
        {"REQ_OP_WRITE_SAME", TRACE_WRITE_ZEROES},
        {"REQ_OP_ZONE_APPEND", TRACE_ZONE_APPEND},
        {"REQ_OP_ZONE_OPEN", TRACE_ZONE_OPEN},
        {"REQ_OP_ZONE_CLOSE", TRACE_ZONE_CLOSE},
        {"REQ_OP_ZONE_FINISH", TRACE_ZONE_FINISH},
        {"REQ_OP_ZONE_RESET", TRACE_ZONE_RESET},
        {"REQ_OP_ZONE_RESET_ALL", TRACE_ZONE_RESET},
        {"REQ_OP_DRV_IN", TRACE_PASSTHROUGH},
        {"REQ_OP_DRV_OUT", TRACE_PASSTHROUGH},
        {"REQ_OP_SCSI_IN", TRACE_PASSTHROUGH},
        {"REQ_OP_SCSI_OUT", TRACE_PASSTHROUGH},
    };
    static const struct {
        const char *name;
        uint32_t flag;
    } flags[] = {
        {"__REQ_SYNC", TRACE_F_SYNC},        {"__REQ_META", TRACE_F_META},
        {"__REQ_FUA", TRACE_F_FUA},          {"__REQ_PREFLUSH", TRACE_F_PREFLUSH},
        {"__REQ_RAHEAD", TRACE_F_READAHEAD}, {"__REQ_NOWAIT", TRACE_F_NOWAIT},
        {"__REQ_POLLED", TRACE_F_POLLED},    {"__REQ_HIPRI", TRACE_F_POLLED},
        {"__REQ_ATOMIC", TRACE_F_ATOMIC},
    };

    memset(self, 0, sizeof(*self));
    memset(self->kind, TRACE_OP_COUNT, sizeof(self->kind));
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        int number = value(context, commands[i].name);

        if (number >= 0 && number < BLOCK_COMMANDS_MAX)
            self->kind[number] = commands[i].kind;
    }
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        int number = value(context, flags[i].name);

        if (number < 0 || number >= 32)
            continue;
        self->flags[self->flag_count].bit = 1u << number;
        self->flags[self->flag_count].flag = flags[i].flag;
        self->flag_count++;
    }
}

/* blk_status_t to -errno; older kernels hand over the latter. */
static int64_t block_error(int32_t status)
{
    static const int errors[] = {0,         EOPNOTSUPP, ETIMEDOUT, ENOSPC, ENOLINK,
                                 EREMOTEIO, EBADE,      ENODATA,   EILSEQ, ENOMEM,
                                 EIO,       EREMCHG,    EAGAIN};

    if (status <= 0)
        return status;
    if ((size_t)status < sizeof(errors) / sizeof(errors[0]))
        return -errors[status];
    return -EIO;
}

void block_op_fill(const struct block_words *self, const struct bpf_event_block *event,
                   bool done, struct trace_op *ret_op)
{
    struct trace_op op = TRACE_OP_INIT;
    uint8_t kind = self->kind[event->command & COMMAND_MASK];

    op.api = TRACE_API_BLOCK;
    op.kind = kind < TRACE_OP_COUNT ? kind : TRACE_PASSTHROUGH;
    op.issue_ns = (int64_t)event->issue_ns;
    op.length = event->bytes;
    for (unsigned int i = 0; i < self->flag_count; i++)
        if (event->command & self->flags[i].bit)
            op.flags |= self->flags[i].flag;
    if (event->head.class != BPF_BLOCK_BIOS || op.length == 0)
        op.flags &= ~(uint32_t)TRACE_F_PREFLUSH;
    if (event->head.class == BPF_BLOCK_BIOS && op.kind == TRACE_WRITE && op.length == 0)
        op.kind = TRACE_FLUSH;
    if (op.kind != TRACE_FLUSH && op.kind != TRACE_PASSTHROUGH)
        op.offset = event->sector * 512;
    if (event->issues > 1)
        op.flags |= TRACE_F_REQUEUED;
    if (done) {
        op.latency_ns = event->done_ns - event->issue_ns;
        op.completion = TRACE_COMPLETION_EXACT;
        op.result = event->error ? block_error(event->error) : (int64_t)event->done_bytes;
    } else {
        op.flags |= TRACE_F_INFLIGHT;
    }
    *ret_op = op;
}
