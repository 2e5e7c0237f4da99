/* SPDX-License-Identifier: MIT */
/*
 * A BPF object embedded in the program: opened, given its settings, loaded, attached, read
 * and removed. Shared by the bpf and block recorders. Kernel objects live only as long as the
 * process (nothing is pinned), so nothing is left behind however it ends.
 *
 *     open -> set, skip ... -> load -> attach -> poll ... -> detach -> poll until 0 -> release
 *
 * Without libbpf in the build there are none of these functions. IOTAPE_BPF_DEBUG=1 in the
 * environment prints what libbpf says while loading, the verifier's log included;
 * IOTAPE_BPF_OLD=1 makes the programs do without what kernels after 5.8 have.
 */
#ifndef CAPTURE_BPF_LOADER_H
#define CAPTURE_BPF_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/recorder.h"

struct bpf_loader {
    struct bpf_object *object;
    struct ring_buffer *ring;
    struct bpf_link **links;
    size_t link_count;
    struct diag *diag;
    uint64_t *lost_told; /* [kind * cpus + cpu], what has been told already */
    uint64_t misses_told, losses_ms, passed_told;
    int last_records;
    int stats_fd; /* while open the kernel counts what BPF programs take; 0: not asked yet */
    int cpus;
    struct btf *kernel; /* its type information */
    int (*event)(void *context, const void *bytes, size_t size);
    void *event_context;
    int event_error;
};

/* Can BPF tracing run here? As recorder.probe. */
int bpf_loader_probe(char *reason, size_t reason_size, char *fix, size_t fix_size);
bool bpf_loader_kernel_before(int major_number, int minor_number);
bool bpf_loader_kernel_old(void); /* IOTAPE_BPF_OLD */
/* bytes must stay valid until load. -EINVAL: not an object. Tells the programs what the kernel
 * has. */
int bpf_loader_open(struct bpf_loader *self, const void *bytes, size_t size, struct diag *diag);
/* The kernel has this tracepoint; *ret_arguments (may be NULL) gets how many it passes. */
bool bpf_loader_has_tracepoint(struct bpf_loader *self, const char *name, int *ret_arguments);
/* The number of an enumerator of the kernel ("REQ_OP_READ"), or -ENOENT. */
int bpf_loader_kernel_number(struct bpf_loader *self, const char *enumerator);
/* Sets a `const volatile` variable of the programs; -ENOENT, or -EINVAL when sizes differ. */
int bpf_loader_set(struct bpf_loader *self, const char *name, const void *value, size_t size);
void bpf_loader_skip(struct bpf_loader *self, const char *program); /* not loaded */
/* ring_bytes is for all CPUs, rounded up to a power of two. event gets every record of the
 * ring; an error it returns ends poll. -EPERM, -ENOMEM, -EINVAL (refused: the verifier's last
 * line). */
int bpf_loader_load(struct bpf_loader *self, uint64_t ring_bytes,
                    int (*event)(void *context, const void *bytes, size_t size),
                    void *event_context);
int bpf_loader_attach(struct bpf_loader *self);
void bpf_loader_detach(struct bpf_loader *self);
int bpf_loader_map_fd(struct bpf_loader *self, const char *name); /* or -ENOENT */
/* Records handled (> 0), 0 when none came within timeout_ms, or -errno. */
int bpf_loader_poll(struct bpf_loader *self, int timeout_ms);
/* Tells the session what was lost since the last time: the map `lost`, by kind and CPU, and
 * runs the kernel skipped; and what was passed over: the map `passed`, where there is one. Not now: only when a while has passed, so it may be called often. */
void bpf_loader_tell_losses(struct bpf_loader *self, struct session *session, bool now);
/* CPU time, ns, that the programs have taken from those they ran in, the way to them included.
 * The kernel counts it from the first call on. -EOPNOTSUPP: it does not (CAP_SYS_ADMIN). */
int bpf_loader_cost(struct bpf_loader *self, uint64_t *ret_ns);
void bpf_loader_release(struct bpf_loader *self);

#endif
